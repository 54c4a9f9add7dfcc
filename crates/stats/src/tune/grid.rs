//! The configurations that a search begins with, and the neighbours of one.

use iolens_model::tune::{Candidate, Configuration};

/// Bounds of the axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    /// Smallest block, a power of two.
    pub block_least: u64,
    /// Largest block, a power of two.
    pub block_most: u64,
    /// Most threads; at least 1.
    pub threads_max: u32,
    /// Reads under way at once that the grid has, of engines that can have several.
    pub depths: Vec<u32>,
    /// Most of them.
    pub depth_max: u32,
}

/// Steps between the blocks of the grid: one size in four, and the largest.
const BLOCK_STEP: u64 = 4;

/// Every engine with few blocks, one thread and all, and the depths that it can have.
pub fn grid(candidates: &[Candidate], axes: &Axes) -> Vec<Configuration> {
    let mut all = Vec::new();
    for candidate in candidates {
        for &threads in &threads(candidate, axes) {
            for &depth in &depths(candidate, axes) {
                let engine = &candidate.engine;
                let of = |block_bytes| Configuration {
                    engine: engine.clone(),
                    block_bytes,
                    threads,
                    depth,
                };
                all.extend(blocks(axes).map(of).filter(|one| candidate.may_lock(one)));
            }
        }
    }
    all
}

fn blocks(axes: &Axes) -> impl Iterator<Item = u64> {
    let most = axes.block_most;
    let stepped =
        std::iter::successors(Some(axes.block_least), |block| block.checked_mul(BLOCK_STEP));
    stepped.take_while(move |&block| block <= most)
}

fn threads(candidate: &Candidate, axes: &Axes) -> Vec<u32> {
    match axes.threads_max {
        most @ 2.. if candidate.is_shared => vec![1, most],
        _ => vec![1],
    }
}

fn depths(candidate: &Candidate, axes: &Axes) -> Vec<u32> {
    match candidate.has_depth {
        true => axes.depths.clone(),
        false => vec![1],
    }
}

/// What differs from a configuration by one step of one axis.
pub fn neighbours(of: &Configuration, candidate: &Candidate, axes: &Axes) -> Vec<Configuration> {
    let mut all = Vec::new();
    for block_bytes in [of.block_bytes * 2, of.block_bytes / 2] {
        if (axes.block_least..=axes.block_most).contains(&block_bytes) {
            all.push(Configuration { block_bytes, ..of.clone() });
        }
    }
    if candidate.is_shared {
        for threads in [of.threads + 1, of.threads - 1] {
            if (1..=axes.threads_max).contains(&threads) {
                all.push(Configuration { threads, ..of.clone() });
            }
        }
    }
    if candidate.has_depth {
        for depth in [of.depth * 2, of.depth / 2] {
            if (1..=axes.depth_max).contains(&depth) {
                all.push(Configuration { depth, ..of.clone() });
            }
        }
    }
    all.retain(|one| candidate.may_lock(one));
    all
}

// The line that most engines follow: a block costs a crossing and its bytes.

/// t = a + b·bytes of one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// a, nanoseconds of a block without bytes; at least 0.
    pub fixed_ns: f64,
    /// b, nanoseconds of a byte; above 0.
    pub per_byte_ns: f64,
}

/// Share of a block's time that its fixed cost may be where larger blocks are worth
/// nothing any more.
const KNEE: f64 = 0.02;

impl Fit {
    /// The smallest power of two whose fixed cost is [`KNEE`] of its bytes' at most,
    /// within bounds.
    pub fn knee_bytes(&self, least: u64, most: u64) -> u64 {
        let wanted = self.fixed_ns / (KNEE * self.per_byte_ns);
        let mut bytes = least;
        while (bytes as f64) < wanted && bytes < most {
            bytes *= 2;
        }
        bytes
    }
}

/// The line through (bytes of a block, nanoseconds of one) with the smallest relative
/// squares; `None` with fewer than two sizes, or where bytes cost nothing.
pub fn fit(points: &[(u64, f64)]) -> Option<Fit> {
    // Of ((t − a − b·x) / t)²: every size counts alike.
    let (mut s, mut sx, mut sxx, mut st, mut sxt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(bytes, ns) in points {
        let (x, weight) = (bytes as f64, 1.0 / (ns * ns));
        s += weight;
        sx += weight * x;
        sxx += weight * x * x;
        st += weight * ns;
        sxt += weight * x * ns;
    }
    let determinant = s * sxx - sx * sx;
    let (fixed_ns, per_byte_ns) =
        ((st * sxx - sx * sxt) / determinant, (s * sxt - sx * st) / determinant);
    let fit = match fixed_ns {
        // Blocks without a crossing: the line through nothing.
        below if below < 0.0 => Fit { fixed_ns: 0.0, per_byte_ns: sxt / sxx },
        _ => Fit { fixed_ns, per_byte_ns },
    };
    let is_one = points.len() > 1 && determinant > 0.0;
    (is_one && fit.fixed_ns.is_finite() && fit.per_byte_ns > 0.0).then_some(fit)
}

#[cfg(test)]
mod tests {
    use iolens_model::tune::Way;

    use super::*;

    fn candidate(engine: &str, has_depth: bool, is_shared: bool) -> Candidate {
        let (engine, calls) = (engine.to_owned(), String::new());
        Candidate { engine, way: Way::Called, has_depth, is_shared, calls, locked_bytes_max: None }
    }

    fn axes() -> Axes {
        Axes {
            block_least: 16 << 10,
            block_most: 8 << 20,
            threads_max: 4,
            depths: vec![4, 16],
            depth_max: 64,
        }
    }

    #[test]
    fn a_grid_has_what_an_engine_can_do() {
        let only = |candidate| grid(&[candidate], &axes());
        let plain = only(candidate("read", false, false));
        let blocks: Vec<u64> = plain.iter().map(|one| one.block_bytes >> 10).collect();
        assert_eq!(blocks, [16, 64, 256, 1024, 4096]);
        assert!(plain.iter().all(|one| one.threads == 1 && one.depth == 1));
        assert_eq!(only(candidate("read", false, true)).len(), 10);
        assert_eq!(only(candidate("uring", true, true)).len(), 20);
        let alone = Axes { threads_max: 1, depths: vec![2], ..axes() };
        assert_eq!(grid(&[candidate("uring", true, true)], &alone).len(), 5);
    }

    #[test]
    fn what_may_not_be_locked_is_not_tried() {
        let limited =
            Candidate { locked_bytes_max: Some(8 << 20), ..candidate("uring_fixed", true, true) };
        let locked =
            |one: &Configuration| one.block_bytes * u64::from(one.threads) * u64::from(one.depth);
        let all = grid(std::slice::from_ref(&limited), &axes());
        assert!(all.iter().all(|one| locked(one) < 8 << 20), "{all:?}");
        assert_eq!(all.iter().map(locked).max(), Some(4 << 20), "as much as may be");
        let engine = limited.engine.clone();
        let most = Configuration { engine, block_bytes: 1 << 20, threads: 1, depth: 4 };
        assert!(neighbours(&most, &limited, &axes()).iter().all(|one| locked(one) < 8 << 20));
    }

    #[test]
    fn neighbours_are_one_step_away_and_within_bounds() {
        let of = |block_bytes, threads, depth| Configuration {
            engine: "uring".to_owned(),
            block_bytes,
            threads,
            depth,
        };
        let ring = candidate("uring", true, true);
        let inner = neighbours(&of(1 << 20, 2, 8), &ring, &axes());
        assert_eq!(inner.len(), 6);
        let corner = neighbours(&of(16 << 10, 1, 1), &ring, &axes());
        assert_eq!(corner, [of(32 << 10, 1, 1), of(16 << 10, 2, 1), of(16 << 10, 1, 2)]);
    }

    #[test]
    fn a_line_is_found_again() {
        let sizes = [1u64 << 12, 1 << 14, 1 << 17, 1 << 20];
        let points = sizes.map(|bytes| (bytes, 700.0 + 0.08 * bytes as f64));
        let found = fit(&points).expect("a line");
        assert!((found.fixed_ns / 700.0 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.per_byte_ns / 0.08 - 1.0).abs() < 1e-6, "{found:?}");
        // 700 / (0.02 · 0.08) = 437 500 bytes.
        assert_eq!(found.knee_bytes(1 << 12, 8 << 20), 1 << 19);
        assert_eq!(found.knee_bytes(1 << 12, 1 << 16), 1 << 16);
    }

    #[test]
    fn one_size_is_no_line() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(4096, 100.0)]), None);
        assert_eq!(fit(&[(4096, 100.0), (4096, 101.0)]), None);
        let none = fit(&[(4096, 400.0), (8192, 900.0)]).expect("a line");
        assert!(none.fixed_ns == 0.0 && none.per_byte_ns > 0.09, "{none:?}");
    }
}

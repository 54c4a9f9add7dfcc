//! The line that most engines follow: a block costs a crossing and its bytes.

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
    #[must_use]
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
#[must_use]
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
    use super::*;

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

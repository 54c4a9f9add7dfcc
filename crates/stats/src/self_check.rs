//! Whether the run can be trusted: the hidden second copies of the baseline give the noise floor,
//! and what an arm does the same in all cells is a warning.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::analysis::{ArmAnalysis, CellAnalysis, Contrast, SelfCheck};
use crate::estimate::Interval;
use crate::interval::{count, median};
use crate::physics::{self, Switching};
use crate::remark::Warning;
use crate::roster::{Track, grouped};

/// Trials under which a self-check says nothing about the run.
const TRIALS_MIN: u32 = 5;

/// What the self-checks of a run say.
pub(crate) fn of(cells: &[CellAnalysis], delta: f64) -> SelfCheck {
    let contrasts = cells.iter().flat_map(|cell| &cell.checks).filter_map(|c| c.contrast.as_ref());
    let check =
        |c: &Contrast| Check { n: c.n, pointwise: c.pointwise, simultaneous: c.simultaneous };
    of_checks(&contrasts.map(check).collect::<Vec<Check>>(), delta)
}

/// A self-check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// Trials.
    pub(crate) n: u32,
    pub(crate) pointwise: Option<Interval>,
    pub(crate) simultaneous: Option<Interval>,
}

/// The same of self-checks of any origin.
pub(crate) fn of_checks(checks: &[Check], delta: f64) -> SelfCheck {
    let mut widths: Vec<f64> =
        checks.iter().filter_map(|c| Some(c.pointwise?.half_width())).collect();
    let counts = |c: &&Check| c.pointwise.is_some() && c.n >= TRIALS_MIN;
    let counted: Vec<&Check> = checks.iter().filter(counts).collect();
    let with = |which: &dyn Fn(&Check) -> bool| count(counted.iter().filter(|c| which(c)).count());
    SelfCheck {
        checks: count(widths.len()),
        counted: count(counted.len()),
        excluding_one: with(&|check| leaves_one_out(check.pointwise)),
        bound: bound(count(counted.len())),
        floor_widest: widths.iter().copied().max_by(f64::total_cmp),
        floor_median: median(&mut widths),
        judged: with(&|check| is_beyond(check.simultaneous, delta)),
    }
}

fn leaves_one_out(pointwise: Option<Interval>) -> bool {
    pointwise.is_some_and(|interval| !interval.contains(1.0))
}

/// Whether any other arm with this interval would be FASTER or SLOWER.
fn is_beyond(simultaneous: Option<Interval>, delta: f64) -> bool {
    simultaneous.is_some_and(|i| i.low > 1.0 + delta || i.high < 1.0 / (1.0 + delta))
}

/// Whether the pointwise interval excludes 1; about 5 % do by chance.
pub(crate) fn excludes_one(contrast: &Contrast) -> bool {
    leaves_one_out(contrast.pointwise)
}

/// The number of intervals that exclude 1 by chance at most, at 99 %: the
/// smallest k with P(X ≤ k) ≥ 0.99 for X from the binomial distribution of
/// this many checks at 5 %.
pub(crate) fn bound(checks: u32) -> u32 {
    let Ok(excluding) = Binomial::new(0.05, u64::from(checks)) else {
        return checks;
    };
    (0..checks).find(|&k| excluding.cdf(u64::from(k)) >= 0.99).unwrap_or(checks)
}

// What an arm does the same in all cells and should not.
// They only warn, since a link or a limit can do it too.

/// The warnings over a whole run.
pub(crate) fn across_cells(cells: &[CellAnalysis], tracks: &[Track<'_>]) -> Vec<Warning> {
    let mut warnings = flat_throughput(cells);
    warnings.extend(constant_switching(tracks));
    warnings
}

/// Goodput that is the same for messages under 1 KiB and over 64 KiB.
fn flat_throughput(cells: &[CellAnalysis]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (curve, cells) in grouped(cells, |cell| cell.cell.curve()) {
        let arms = cells.iter().flat_map(|cell| cell.arms.iter().map(|arm| (*cell, arm)));
        let rows: Vec<(u64, &str, f64)> = arms.filter_map(|(cell, arm)| row(cell, arm)).collect();
        for (label, rows) in grouped(&rows, |(_, label, _)| *label) {
            let points: Vec<(f64, f64)> =
                rows.iter().map(|(size, _, goodput)| (*size as f64, *goodput)).collect();
            if let Some((least, most)) = physics::flat_throughput(&points) {
                warnings.push(Warning::FlatThroughput {
                    arm: label.to_owned(),
                    least_bits_per_s: least,
                    most_bits_per_s: most,
                    curve: curve.clone(),
                });
            }
        }
    }
    warnings
}

fn row<'a>(cell: &CellAnalysis, arm: &'a ArmAnalysis) -> Option<(u64, &'a str, f64)> {
    let shown = matches!(arm.arm.role, Role::Baseline | Role::Compared);
    let figures = arm.figures.as_ref().filter(|_| shown && arm.status == Status::Ok)?;
    let goodput = figures.goodput_bits_per_s?.value;
    Some((cell.cell.size.0, arm.arm.label.as_str(), goodput))
}

/// Context switches that follow the clock and not the work.
///
/// A slice of this tool itself costs each thread pair about two switches, one
/// at either end, and slices are equally long everywhere, so an arm is judged
/// only where it switches more than twice as often in every cell.
fn constant_switching(tracks: &[Track<'_>]) -> Vec<Warning> {
    /// Twice what a slice costs a thread pair.
    const OWN_PER_SLICE: f64 = 4.0;
    let shown: Vec<&Track<'_>> = tracks
        .iter()
        .filter(|track| matches!(track.arm.role, Role::Baseline | Role::Compared))
        .collect();
    let mut warnings = Vec::new();
    for (label, tracks) in grouped(&shown, |track| track.arm.label.as_str()) {
        let cells: Vec<(Switching, f64)> =
            tracks.iter().filter_map(|track| switching(track)).collect();
        let own = cells.iter().any(|(_, per_slice)| *per_slice <= OWN_PER_SLICE);
        let cells: Vec<Switching> = cells.into_iter().map(|(cell, _)| cell).collect();
        if let Some(found) = physics::steady_switching(&cells).filter(|_| !own) {
            warnings.push(Warning::SteadySwitching {
                arm: label.to_owned(),
                least_per_s: found.least,
                most_per_s: found.most,
                cells: count(cells.len()),
                rates_apart: found.rates_apart,
            });
        }
    }
    warnings
}

/// What an arm switches in one cell, and how often in a slice of one thread
/// pair.
fn switching(track: &Track<'_>) -> Option<(Switching, f64)> {
    let points = || track.points();
    let switches = points().map(|point| Some(f64::from(point.switches?))).sum::<Option<f64>>()?;
    let seconds = points().map(|point| point.time.over).sum::<f64>() / 1e9;
    let slices = points().map(|point| f64::from(point.slices)).sum::<f64>();
    let switching = Switching {
        per_s: switches / seconds,
        messages_per_s: points().map(|point| point.time.under).sum::<f64>() / seconds,
    };
    Some((switching, switches / slices / f64::from(track.cell.threads.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixture::{self, time};
    use crate::remark::Warning;

    /// P(X ≤ k) summed term by term, without the library.
    fn cumulative(n: u32, k: u32) -> f64 {
        let mut term = 0.95f64.powf(f64::from(n));
        let mut sum = term;
        for i in 0..k {
            term *= f64::from(n - i) / f64::from(i + 1) * 0.05 / 0.95;
            sum += term;
        }
        sum
    }

    /// Their intervals are so wide that one which excludes 1 says more of chance than of the run.
    #[test]
    fn copies_of_fewer_than_five_trials_say_nothing_of_the_run() {
        let away = Some(Interval { low: 1.2, high: 1.3 });
        let of = |n: u32| of_checks(&[Check { n, pointwise: away, simultaneous: away }; 12], 0.03);
        let few = of(4);
        assert_eq!((few.checks, few.counted, few.excluding_one, few.judged), (12, 0, 0, 0));
        assert!(!few.untrustworthy() && few.floor_median.is_some());
        let enough = of(5);
        assert_eq!((enough.counted, enough.excluding_one, enough.judged), (12, 12, 12));
        assert!(enough.untrustworthy());
    }

    #[test]
    fn the_bound_is_the_99_percent_point_of_the_binomial() {
        for n in [1, 2, 5, 12, 20, 48, 100, 400] {
            let k = bound(n);
            assert!(k == n || cumulative(n, k) >= 0.99, "{n} {k}");
            assert!(k == 0 || cumulative(n, k - 1) < 0.99, "{n} {k}");
        }
        // Tables of the binomial distribution, n = 20, p = 0.05:
        // P(X ≤ 3) = 0.9841, P(X ≤ 4) = 0.9974.
        assert_eq!(bound(20), 4);
        assert_eq!(bound(0), 0);
    }

    /// Warnings of one arm at these sizes, ns per message and
    /// switches of each end in a slice.
    fn warnings(points: &[(u64, f64, u64)]) -> Vec<Warning> {
        let sizes: Vec<u64> = points.iter().map(|(size, _, _)| *size).collect();
        let mut run = fixture::run_of(fixture::sized(&["base"], &sizes), 2, |_, position, _| {
            [time("base", points[position as usize].1)]
        });
        run.header.calibration.as_mut().unwrap().memcpy_hot_bytes_per_s = 1e15;
        for trial in &mut run.trials {
            let switches = Some(points[trial.position as usize].2);
            for slice in &mut trial.slices {
                slice.tx.voluntary_switches = switches;
                slice.rx.as_mut().unwrap().voluntary_switches = switches;
            }
        }
        let mut found = analyse(&run).warnings;
        found.retain(|warning| {
            matches!(warning, Warning::FlatThroughput { .. } | Warning::SteadySwitching { .. })
        });
        found
    }

    #[test]
    fn goodput_that_ignores_the_size_is_suspicious() {
        let found = warnings(&[(512, 512.0, 2), (8192, 8192.0, 2), (131_072, 120_000.0, 2)]);
        let [Warning::FlatThroughput { arm, least_bits_per_s, most_bits_per_s, .. }] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!(arm, "base");
        assert!((least_bits_per_s / 1e9 - 8.0).abs() < 1e-6, "{found:?}");
        assert!((most_bits_per_s / 1e9 - 8.738).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn goodput_that_grows_and_sizes_that_do_not_span_are_not() {
        let grows = [(512, 512.0, 2), (131_072, 60_000.0, 2)];
        assert_eq!(warnings(&grows), []);
        let narrow = [(1024, 1024.0, 2), (131_072, 131_072.0, 2)];
        assert_eq!(warnings(&narrow), []);
    }

    /// 10 000 messages in a slice: 5, 10, 20 and 40 ms; 2000 switches a
    /// second at each end.
    #[test]
    fn switches_by_the_clock_are_suspicious() {
        let by_clock = [(64, 500.0, 10), (256, 1000.0, 20), (512, 2000.0, 40), (768, 4000.0, 80)];
        let found = warnings(&by_clock);
        let [Warning::SteadySwitching { least_per_s, most_per_s, cells: 4, rates_apart, .. }] =
            found[..]
        else {
            panic!("{found:?}")
        };
        assert!([least_per_s, most_per_s].iter().all(|n| (n - 4000.0).abs() < 1e-6), "{found:?}");
        assert!((rates_apart - 8.0).abs() < 1e-6, "{found:?}");
        assert_eq!(warnings(&by_clock[..3]), []);
    }

    #[test]
    fn switches_by_the_work_or_by_the_slice_are_not() {
        let by_work = [(64, 500.0, 10), (256, 1000.0, 10), (512, 2000.0, 10), (768, 4000.0, 10)];
        assert_eq!(warnings(&by_work), []);
        let one_speed = [(64, 500.0, 10), (256, 510.0, 10), (512, 520.0, 10), (768, 530.0, 10)];
        assert_eq!(warnings(&one_speed), []);
        let by_slice = [(64, 500.0, 1), (256, 1000.0, 2), (512, 2000.0, 4), (768, 4000.0, 8)];
        assert_eq!(warnings(&by_slice), []);
    }
}

//! The best figures of a run, and where they are.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;

use crate::analysis::{ArmAnalysis, CellAnalysis, Extreme, ExtremeKind, Figures};
use crate::estimate::{Estimate, Interval};

/// The best of each kind that anything has; of equals the first in the order
/// of the plan. Self-checks and controls do not compete.
pub(crate) fn of(cells: &[CellAnalysis]) -> Vec<Extreme> {
    const KINDS: [ExtremeKind; 8] = [
        ExtremeKind::HighestGoodput,
        ExtremeKind::LowestNsPerMessage,
        ExtremeKind::LowestLatencyP50,
        ExtremeKind::LowestLatencyP99,
        ExtremeKind::LeastCpuNsPerByte,
        ExtremeKind::FewestL1dMissesPerKib,
        ExtremeKind::FewestLlcMissesPerKib,
        ExtremeKind::FewestContextSwitchesPerMessage,
    ];
    KINDS.iter().filter_map(|&what| best(what, cells)).collect()
}

fn best(what: ExtremeKind, cells: &[CellAnalysis]) -> Option<Extreme> {
    let worth = |value: f64| if what == ExtremeKind::HighestGoodput { -value } else { value };
    let rows = cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let found = rows.filter(|(_, arm)| competes(what, arm)).filter_map(|(cell, arm)| {
        let value = figure(what, cell, arm)?;
        Some(Extreme { what, label: arm.arm.label.clone(), cell: cell.cell.clone(), value })
    });
    found.min_by(|a, b| worth(a.value.value).total_cmp(&worth(b.value.value)))
}

/// Figures of slices hold a part of what a slice has besides its messages, which is larger in
/// short ones; round trips are timed one by one.
fn competes(what: ExtremeKind, arm: &ArmAnalysis) -> bool {
    let is_fair = match what {
        ExtremeKind::LowestLatencyP50 | ExtremeKind::LowestLatencyP99 => arm.status == Status::Ok,
        _ => arm.is_ranked(),
    };
    is_fair && matches!(arm.arm.role, Role::Baseline | Role::Compared)
}

fn figure(what: ExtremeKind, cell: &CellAnalysis, arm: &ArmAnalysis) -> Option<Estimate> {
    let figures = arm.figures.as_ref()?;
    let latency = || arm.latency.as_ref().filter(|_| cell.cell.is_rr());
    match what {
        ExtremeKind::HighestGoodput => figures.goodput_bits_per_s,
        ExtremeKind::LowestNsPerMessage => (!cell.cell.is_rr()).then_some(figures.ns_per_message),
        ExtremeKind::LowestLatencyP50 => latency()?.p50_ns,
        ExtremeKind::LowestLatencyP99 => latency()?.p99_ns,
        ExtremeKind::LeastCpuNsPerByte => cpu(figures),
        ExtremeKind::FewestL1dMissesPerKib => figures.l1d_misses_per_kib,
        ExtremeKind::FewestLlcMissesPerKib => figures.llc_misses_per_kib,
        ExtremeKind::FewestContextSwitchesPerMessage => figures.context_switches_per_message,
    }
}

/// CPU time of both ends per byte. The ends of the two intervals are added,
/// which is right where the ends stray together and too wide where not.
fn cpu(figures: &Figures) -> Option<Estimate> {
    let (tx, rx) = (figures.tx_cpu_ns_per_byte?, figures.rx_cpu_ns_per_byte?);
    let interval = tx.interval.zip(rx.interval);
    Some(Estimate {
        value: tx.value + rx.value,
        interval: interval
            .map(|(tx, rx)| Interval { low: tx.low + rx.low, high: tx.high + rx.high }),
        n: tx.n,
    })
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Mode;
    use iolens_model::latency::Histogram;
    use iolens_model::units::Bytes;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, ArmTime};

    /// `arm` takes `ns` per message of each size, `base` 500 ns, a control
    /// and a self-check nothing worth mentioning.
    fn extremes(mode: Mode, sizes: &[u64], ns: impl Fn(u64) -> f64) -> Vec<Extreme> {
        let mut plan = fixture::plan(&["base", "arm"]);
        plan.sizes = sizes.iter().copied().map(Bytes).collect();
        plan.net_mut().unwrap().modes = vec![mode];
        let mut run = fixture::run(plan);
        run.header.calibration.memcpy_hot_bytes_per_s = 1e15;
        for pass in 1..=2 {
            for cell in run.header.plan.cells() {
                let arms = [
                    ArmTime::new("base", Role::Baseline, &[500.0; 4]),
                    ArmTime::new("arm", Role::Compared, &[ns(cell.size.0); 4]),
                    ArmTime::new("base (A/A)", Role::SelfCheck, &[200.0; 4]),
                    ArmTime::new("memcpy", Role::Control, &[200.0; 4]),
                ];
                let mut trial = fixture::trial(pass, &cell, &arms);
                if mode == Mode::Rr {
                    fixture::round_trips(&mut trial);
                }
                run.trials.push(trial);
            }
        }
        analyse(&run).extremes
    }

    fn check(found: &[Extreme], what: ExtremeKind, label: &str, size: u64, value: f64) {
        let one = found.iter().find(|extreme| extreme.what == what).expect("an extreme");
        assert_eq!((one.label.as_str(), one.cell.size.0), (label, size), "{what:?}");
        assert!((one.value.value / value - 1.0).abs() < 1e-3, "{what:?}: {}", one.value.value);
    }

    #[test]
    fn each_kind_names_its_best_arm_and_cell() {
        let found = extremes(Mode::Stream, &[256, 1024], |n| if n == 256 { 400.0 } else { 800.0 });
        check(&found, ExtremeKind::HighestGoodput, "base", 1024, 1024.0 * 8.0 / 500e-9);
        check(&found, ExtremeKind::LowestNsPerMessage, "arm", 256, 400.0);
        check(&found, ExtremeKind::LeastCpuNsPerByte, "base", 1024, 2.0 * 0.9 * 500.0 / 1024.0);
        // Four switches in each slice of 10 000 messages, everywhere: the first.
        check(&found, ExtremeKind::FewestContextSwitchesPerMessage, "base", 256, 4e-4);
        // Without a PMU and without requests there is nothing to be best at.
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn round_trips_compete_in_their_own_mode() {
        let found = extremes(Mode::Rr, &[256, 1024], |n| if n == 256 { 400.0 } else { 800.0 });
        check(&found, ExtremeKind::LowestLatencyP50, "arm", 256, 400.0);
        check(&found, ExtremeKind::LowestLatencyP99, "arm", 256, 400.0);
        assert!(found.iter().all(|extreme| extreme.what != ExtremeKind::LowestNsPerMessage));
    }

    #[test]
    fn a_histogram_outside_its_mode_is_no_latency() {
        let mut run = fixture::passes(&[1.0; 2]);
        for arm in run.trials.iter_mut().flat_map(|trial| &mut trial.arms) {
            arm.latency = Some(Histogram { buckets: vec![(1, 40_000)] });
        }
        let found = analyse(&run).extremes;
        assert!(found.iter().all(|extreme| extreme.what != ExtremeKind::LowestLatencyP50));
    }
}

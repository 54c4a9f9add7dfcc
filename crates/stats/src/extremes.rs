//! The best figures of a run, where they are, and from where on more bytes or threads do not help.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;

use crate::analysis::{
    ArmAnalysis, CellAnalysis, Extreme, ExtremeKind, Figures, Plateau, PlateauAxis, ReadPlateau,
};
use crate::estimate::{Estimate, Interval};
use crate::roster::grouped;

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

// From where on more bytes or more threads no longer help.

/// The plateaus of every arm along sizes and along threads. None where the
/// goodput still grows at the end of the axis, or where it may.
pub(crate) fn plateaus(cells: &[CellAnalysis], delta: f64) -> Vec<Plateau> {
    let found = of_rate(cells, delta, |figures| figures.goodput_bits_per_s);
    let plateau = |found: Found| Plateau {
        label: found.label,
        from: found.from,
        axis: found.axis,
        goodput_bits_per_s: found.here,
        best_beyond_bits_per_s: found.best_beyond,
    };
    found.into_iter().map(plateau).collect()
}

/// The same of what is read of a file.
pub(crate) fn read_plateaus(cells: &[CellAnalysis], delta: f64) -> Vec<ReadPlateau> {
    let found = of_rate(cells, delta, |figures| figures.read_bytes_per_s);
    let plateau = |found: Found| ReadPlateau {
        label: found.label,
        from: found.from,
        axis: found.axis,
        read_bytes_per_s: found.here,
        best_beyond_bytes_per_s: found.best_beyond,
    };
    found.into_iter().map(plateau).collect()
}

/// A plateau of any rate.
struct Found {
    label: String,
    from: Cell,
    axis: PlateauAxis,
    here: Estimate,
    best_beyond: Estimate,
}

type Rate = fn(&Figures) -> Option<Estimate>;

fn of_rate(cells: &[CellAnalysis], delta: f64, rate: Rate) -> Vec<Found> {
    let mut found = Vec::new();
    for axis in [PlateauAxis::Size, PlateauAxis::Threads] {
        for (_, mut line) in grouped(cells, |cell| without(axis, &cell.cell)) {
            line.sort_by_key(|cell| place(axis, &cell.cell));
            for label in labels(&line) {
                found.extend(of_line(axis, label, &line, delta, rate));
            }
        }
    }
    found
}

/// The cell without its place on an axis.
fn without(axis: PlateauAxis, cell: &Cell) -> Cell {
    match axis {
        PlateauAxis::Size => cell.curve(),
        PlateauAxis::Threads => Cell { threads: 0, ..cell.clone() },
    }
}

fn place(axis: PlateauAxis, cell: &Cell) -> u64 {
    match axis {
        PlateauAxis::Size => cell.size.0,
        PlateauAxis::Threads => u64::from(cell.threads),
    }
}

/// Arms of the first cell, which are those of every cell.
fn labels<'a>(line: &[&'a CellAnalysis]) -> Vec<&'a str> {
    let arms = line.first().map(|cell| cell.arms.iter()).into_iter().flatten();
    let shown = arms.filter(|arm| matches!(arm.arm.role, Role::Baseline | Role::Compared));
    shown.map(|arm| arm.arm.label.as_str()).collect()
}

/// The first cell of a line above which none beyond it rises by δ or more.
fn of_line(
    axis: PlateauAxis,
    label: &str,
    line: &[&CellAnalysis],
    delta: f64,
    rate: Rate,
) -> Option<Found> {
    let rate = |cell: &CellAnalysis| {
        let arm = cell.arm(label)?;
        let rate = rate(arm.figures.as_ref().filter(|_| arm.status == Status::Ok)?)?;
        // Of what slices of another length did to it nobody knows how far it goes: it is known
        // of no such place that it is no higher.
        Some(Estimate { interval: rate.interval.filter(|_| arm.is_ranked()), ..rate })
    };
    // A setting without a usable rate is one that nothing is known of: nothing begins before it.
    let rates: Vec<Option<Estimate>> = line.iter().map(|cell| rate(cell)).collect();
    let begins = |&from: &usize| {
        let stays = |here: &Estimate| {
            let beyond = &rates[from + 1..];
            let is_shown =
                |there: &Option<Estimate>| there.is_some_and(|there| stays(here, &there, delta));
            !beyond.is_empty() && beyond.iter().all(is_shown)
        };
        rates[from].as_ref().is_some_and(stays)
    };
    let from = (0..rates.len()).find(begins)?;
    let beyond = rates[from + 1..].iter().flatten().copied();
    Some(Found {
        label: label.to_owned(),
        from: line[from].cell.clone(),
        axis,
        here: rates[from]?,
        best_beyond: beyond.max_by(|a, b| a.value.total_cmp(&b.value))?,
    })
}

/// Whether `there` is shown to be less than δ above `here`: the rise with the
/// half-widths of both, of the logarithm and added in quadrature. That no rise
/// was seen is not enough; without intervals nothing is shown.
fn stays(here: &Estimate, there: &Estimate, delta: f64) -> bool {
    let rise = (there.value / here.value).ln();
    let half = |estimate: &Estimate| estimate.interval.map(|interval| interval.half_of_ratio());
    match (half(here), half(there)) {
        (Some(here), Some(there)) => rise + here.hypot(there) < delta.ln_1p(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Mode;
    use iolens_model::reading::Histogram;
    use iolens_model::units::Bytes;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, time};

    /// `arm` takes `ns` per message of each size, `base` 500 ns, a control
    /// and a self-check nothing worth mentioning.
    fn extremes(mode: Mode, sizes: &[u64], ns: impl Fn(u64) -> f64) -> Vec<Extreme> {
        let mut plan = fixture::sized(&["base", "arm"], sizes);
        plan.net_mut().unwrap().modes = vec![mode];
        let mut run = fixture::run_of(plan, 2, |_, _, cell| {
            let ns = ns(cell.size.0);
            [("base", 500.0), ("arm", ns), ("base (A/A)", 200.0), ("memcpy", 200.0)]
                .map(|(label, ns)| time(label, ns))
        });
        run.header.calibration.as_mut().unwrap().memcpy_hot_bytes_per_s = 1e15;
        if mode == Mode::Rr {
            run.trials.iter_mut().for_each(fixture::round_trips);
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

    /// Plateaus of a run whose `base` reaches these bit/s at sizes or thread
    /// counts 1, 2, 4, … with a spread of the trials of `stray` to each side; it is skipped at 0.
    fn plateaus(axis: PlateauAxis, gbits: &[f64], stray: f64) -> Vec<(u64, f64)> {
        let mut plan = fixture::plan(&["base"]);
        match axis {
            PlateauAxis::Size => plan.sizes = (0..gbits.len()).map(|i| Bytes(1024 << i)).collect(),
            PlateauAxis::Threads => plan.threads = (0..gbits.len()).map(|i| 1 << i).collect(),
        }
        let mut run = fixture::run_of(plan, 4, |pass, position, cell| {
            let sign = if pass % 2 == 0 { 1.0 } else { -1.0 };
            let gbit = gbits[position as usize].max(1.0);
            [time("base", cell.size.0 as f64 * 8.0 / gbit * (1.0 + sign * stray))]
        });
        for trial in run.trials.iter_mut().filter(|trial| gbits[trial.position as usize] == 0.0) {
            trial.arms[0].status = Status::Skipped;
            trial.arms[0].reason = Some("no memory may be locked".to_owned());
        }
        run.header.calibration.as_mut().unwrap().memcpy_hot_bytes_per_s = 1e15;
        let found = analyse(&run).plateaus.into_iter().filter(|plateau| plateau.axis == axis);
        found.map(|p| (place(axis, &p.from), p.best_beyond_bits_per_s.value / 1e9)).collect()
    }

    fn check_plateau(axis: PlateauAxis, gbits: &[f64], stray: f64, expect: Option<(u64, f64)>) {
        let found = plateaus(axis, gbits, stray);
        assert_eq!(found.len(), usize::from(expect.is_some()), "{gbits:?}: {found:?}");
        for (found, expect) in found.iter().zip(expect) {
            assert_eq!(found.0, expect.0, "{gbits:?}");
            assert!((found.1 / expect.1 - 1.0).abs() < 1e-2, "{gbits:?}: {found:?}");
        }
    }

    #[test]
    fn it_begins_where_nothing_beyond_is_higher_by_more_than_delta() {
        let size = PlateauAxis::Size;
        check_plateau(size, &[4.0, 8.0, 10.0, 10.2, 9.0], 1e-4, Some((4096, 10.2)));
        check_plateau(size, &[4.0, 8.0, 10.0, 10.4, 9.0], 1e-4, Some((8192, 9.0)));
        check_plateau(size, &[4.0, 3.0, 8.0], 1e-4, None);
        check_plateau(size, &[10.0, 10.1, 0.0], 1e-4, None);
        check_plateau(size, &[0.0, 10.0, 10.1], 1e-4, Some((2048, 10.1)));
        check_plateau(size, &[4.0, 3.0, 2.0], 1e-4, Some((1024, 3.0)));
        check_plateau(PlateauAxis::Threads, &[4.0, 8.0, 8.1], 1e-4, Some((2, 8.1)));
    }

    /// t₃ · sd / √4 is 3.18 · 1.15 · stray / 2, √2 of which is 26 % for 10 %.
    #[test]
    fn a_rise_that_the_intervals_cannot_exclude_is_no_plateau() {
        check_plateau(PlateauAxis::Size, &[4.0, 8.0, 8.0], 0.1, None);
        check_plateau(PlateauAxis::Size, &[4.0, 8.0, 8.0], 0.001, Some((2048, 8.0)));
        check_plateau(PlateauAxis::Size, &[4.0, 8.0, 5.0], 0.1, Some((2048, 5.0)));
    }
}

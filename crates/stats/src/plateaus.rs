//! From where on more bytes or more threads no longer help.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;

use crate::analysis::{CellAnalysis, Figures, Plateau, PlateauAxis, ReadPlateau};
use crate::estimate::Estimate;
use crate::tracks::grouped;

/// The plateaus of every arm along sizes and along threads. None where the
/// goodput still grows at the end of the axis, or where it may.
pub(crate) fn of(cells: &[CellAnalysis], delta: f64) -> Vec<Plateau> {
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
pub(crate) fn of_reads(cells: &[CellAnalysis], delta: f64) -> Vec<ReadPlateau> {
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
        let arm = cell.arms.iter().find(|arm| arm.arm.label == label)?;
        let rate = rate(arm.figures.as_ref().filter(|_| arm.status == Status::Ok)?)?;
        // Of what slices of another length did to it nobody knows how far it goes: it is known
        // of no such place that it is no higher.
        Some(Estimate { interval: rate.interval.filter(|_| arm.is_ranked()), ..rate })
    };
    let points: Vec<(&Cell, Estimate)> =
        line.iter().filter_map(|cell| Some((&cell.cell, rate(cell)?))).collect();
    let begins = |i: usize| {
        let (_, here) = points[i];
        let mut beyond = points[i + 1..].iter().map(|(_, there)| *there).peekable();
        beyond.peek().is_some() && beyond.all(|there| stays(&here, &there, delta))
    };
    let from = (0..points.len()).find(|&i| begins(i))?;
    let beyond = points[from + 1..].iter().map(|(_, there)| *there);
    Some(Found {
        label: label.to_owned(),
        from: points[from].0.clone(),
        axis,
        here: points[from].1,
        best_beyond: beyond.max_by(|a, b| a.value.total_cmp(&b.value))?,
    })
}

/// Whether `there` is shown to be less than δ above `here`: the rise with the
/// half-widths of both, of the logarithm and added in quadrature. That no rise
/// was seen is not enough; without intervals nothing is shown.
fn stays(here: &Estimate, there: &Estimate, delta: f64) -> bool {
    let rise = (there.value / here.value).ln();
    let half = |estimate: &Estimate| {
        estimate.interval.map(|interval| (interval.high / interval.low).ln() / 2.0)
    };
    match (half(here), half(there)) {
        (Some(here), Some(there)) => rise + here.hypot(there) < delta.ln_1p(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::units::Bytes;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, ArmTime};

    /// Plateaus of a run whose `base` reaches these bit/s at sizes or thread
    /// counts 1, 2, 4, … with a spread of the trials of `stray` to each side.
    fn plateaus(axis: PlateauAxis, gbits: &[f64], stray: f64) -> Vec<(u64, f64)> {
        let mut plan = fixture::plan(&["base"]);
        match axis {
            PlateauAxis::Size => plan.sizes = (0..gbits.len()).map(|i| Bytes(1024 << i)).collect(),
            PlateauAxis::Threads => plan.threads = (0..gbits.len()).map(|i| 1 << i).collect(),
        }
        let mut run = fixture::run(plan);
        run.header.calibration.memcpy_hot_bytes_per_s = 1e15;
        for pass in 1..=4u32 {
            for (cell, gbit) in run.header.plan.cells().iter().zip(gbits) {
                let sign = if pass % 2 == 0 { 1.0 } else { -1.0 };
                let ns = cell.size.0 as f64 * 8.0 / gbit * (1.0 + sign * stray);
                let arms = [ArmTime::new("base", Role::Baseline, &[ns; 4])];
                run.trials.push(fixture::trial(pass, cell, &arms));
            }
        }
        let found = analyse(&run).plateaus.into_iter().filter(|plateau| plateau.axis == axis);
        found.map(|p| (place(axis, &p.from), p.best_beyond_bits_per_s.value / 1e9)).collect()
    }

    fn check(axis: PlateauAxis, gbits: &[f64], stray: f64, expect: Option<(u64, f64)>) {
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
        check(size, &[4.0, 8.0, 10.0, 10.2, 9.0], 1e-4, Some((4096, 10.2)));
        check(size, &[4.0, 8.0, 10.0, 10.4, 9.0], 1e-4, Some((8192, 9.0)));
        check(size, &[4.0, 3.0, 8.0], 1e-4, None);
        check(size, &[4.0, 3.0, 2.0], 1e-4, Some((1024, 3.0)));
        check(PlateauAxis::Threads, &[4.0, 8.0, 8.1], 1e-4, Some((2, 8.1)));
    }

    /// t₃ · sd / √4 is 3.18 · 1.15 · stray / 2, √2 of which is 26 % for 10 %.
    #[test]
    fn a_rise_that_the_intervals_cannot_exclude_is_no_plateau() {
        check(PlateauAxis::Size, &[4.0, 8.0, 8.0], 0.1, None);
        check(PlateauAxis::Size, &[4.0, 8.0, 8.0], 0.001, Some((2048, 8.0)));
        check(PlateauAxis::Size, &[4.0, 8.0, 5.0], 0.1, Some((2048, 5.0)));
    }
}

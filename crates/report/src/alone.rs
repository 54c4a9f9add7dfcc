//! One way alone: a run that compares nothing asks how fast that way is, at which sizes, and
//! where larger ones bring no more.

use crate::answers::Point;
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Estimate, PlateauAxis};

use crate::number::{self, nanoseconds, percent};
use crate::rates::{self, said};
use crate::table::{Column, Entry, Table, Tone};
use crate::{results, words};

/// Whether nothing is compared in any of these cells.
pub(crate) fn is_alone<'a>(cells: impl IntoIterator<Item = &'a CellAnalysis>) -> bool {
    let compares = |cell: &CellAnalysis| cell.arms.iter().any(|a| a.arm.role == Role::Compared);
    !cells.into_iter().any(compares)
}

/// The arm of a cell that compares nothing, if it has usable numbers.
pub(crate) fn of(cell: &CellAnalysis) -> Option<&ArmAnalysis> {
    let own = |arm: &&ArmAnalysis| arm.arm.role == Role::Baseline && arm.status == Status::Ok;
    is_alone([cell]).then(|| cell.arms.iter().find(own))?.filter(|arm| arm.figures.is_some())
}

/// What is said of a curve: the rates at its ends and at the best size, and from where on
/// larger sizes bring no more; null where a size has no number, or there is but one.
pub(crate) fn over_sizes(
    run: &Run,
    analysis: &Analysis,
    curve: &Cell,
    cells: &[&CellAnalysis],
) -> Option<Vec<Point>> {
    let arms: Option<Vec<_>> = cells.iter().map(|&cell| Some((cell, of(cell)?))).collect();
    let arms = arms.filter(|arms| arms.len() > 1)?;
    let ((first, _), (last, arm)) = (arms.first()?, arms.last()?);
    let speed = |arm: &ArmAnalysis| rate(arm).map_or(0.0, |rate| rate.value);
    let (best, _) = arms.iter().max_by(|(_, a), (_, b)| speed(a).total_cmp(&speed(b)))?;
    let at =
        |cell: &CellAnalysis| Some(format!("{} at {}", speed_of(run, of(cell)?), cell.cell.size));
    let mut detail = format!("{} to {}", at(first)?, at(last)?);
    if rate(arm).is_some() && ![first.cell.size, last.cell.size].contains(&best.cell.size) {
        detail.push_str(&format!(", highest {}", at(best)?));
    }
    let n = cells.iter().map(|cell| cell.trials_used).min()?;
    let (size, delta) = (words::size_of(&run.header.plan), percent(analysis.delta));
    let stop = match stops_at(analysis, curve, &arm.arm.label) {
        Some(from) => format!("a larger {size} than {from} brings less than δ = {delta} more"),
        None => {
            format!("at no {size} is it shown that a larger one brings less than δ = {delta} more")
        }
    };
    let plain = |lead: String| Point { lead, detail: String::new() };
    let alone = Point { lead: format!("{} alone", arm.arm.label), detail };
    Some(vec![alone, plain(stop), plain(format!("n = {n}"))])
}

/// What is said of a single cell.
pub(crate) fn at_once(run: &Run, cell: &CellAnalysis) -> Option<String> {
    let arm = of(cell)?;
    let mut claim = format!("{} alone, {}", arm.arm.label, speed_of(run, arm));
    if rate(arm).is_some() {
        claim.push_str(&format!(", {}", time_of(run, arm)?));
    }
    Some(format!("{claim}; n = {}", cell.trials_used))
}

/// Every rate and time of a run that compares nothing.
pub(crate) fn table(run: &Run, analysis: &Analysis) -> Table {
    let plan = &run.header.plan;
    let columns = vec![
        Column::left("curve", ""),
        Column::right(&words::size_of(plan), ""),
        Column::left(words::arm_of(plan), ""),
        Column::left("rate", "[95 %]"),
        Column::left(&format!("time per {}", plan.study().unit()), "[95 %]"),
        Column::right("n", ""),
    ];
    let caption = "One way alone: nothing is compared";
    let mut table = Table::new(caption, columns);
    for (curve, cells) in results::curves(analysis) {
        let mut name = words::curve(&run.header, &curve);
        for (cell, arm) in cells.iter().filter_map(|&cell| Some((cell, of(cell)?))) {
            let starts = !name.is_empty();
            let row: Vec<Entry> = vec![
                std::mem::take(&mut name).into(),
                cell.cell.size.to_string().into(),
                Entry::toned(&arm.arm.label, Tone::Arm(arm.arm.primitive.clone())),
                rate(arm).map_or_else(String::new, |_| speed_of(run, arm)).into(),
                time_of(run, arm).unwrap_or_default().into(),
                cell.trials_used.to_string().into(),
            ];
            if starts { table.push_group(row) } else { table.push(row) }
        }
    }
    table
}

/// The smallest size above which none is shown to bring δ more.
fn stops_at(analysis: &Analysis, curve: &Cell, label: &str) -> Option<String> {
    let is_here = |axis, from: &Cell, of: &str| {
        axis == PlateauAxis::Size && of == label && from.curve() == *curve
    };
    let reads = analysis.read_plateaus.iter().map(|p| (p.axis, &p.from, &p.label));
    let sends = analysis.plateaus.iter().map(|p| (p.axis, &p.from, &p.label));
    let mut all = reads.chain(sends);
    all.find(|(axis, from, of)| is_here(*axis, from, of)).map(|(_, from, _)| from.size.to_string())
}

/// Bytes, or bits, per second; null where neither is a measure of the study.
fn rate(arm: &ArmAnalysis) -> Option<Estimate> {
    let figures = arm.figures.as_ref()?;
    let moves = figures.read_bytes_per_s.or(figures.goodput_bits_per_s);
    moves.filter(|rate| rate.value > 0.0)
}

/// `14.2 GiB/s [14.0, 14.5]`, or the time where there is no rate.
fn speed_of(run: &Run, arm: &ArmAnalysis) -> String {
    let Some(found) = rate(arm) else { return time_of(run, arm).unwrap_or_default() };
    let is_file = arm.figures.as_ref().is_some_and(|f| f.read_bytes_per_s.is_some());
    said(if is_file { rates::BYTES } else { rates::BITS }, found)
}

/// `3.12 µs [3.05 µs, 3.20 µs] per block`.
fn time_of(run: &Run, arm: &ArmAnalysis) -> Option<String> {
    let ns = arm.figures.as_ref()?.ns_per_message;
    let ends = |interval| format!(" {}", number::ends(interval, nanoseconds));
    let interval = ns.interval.map(ends).unwrap_or_default();
    Some(format!("{}{interval} per {}", nanoseconds(ns.value), run.header.plan.study().unit()))
}

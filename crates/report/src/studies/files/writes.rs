//! The study `write`: what a block takes, and what it takes that it is on the device before the
//! next one; and the first screen of a run of it.

#[cfg(test)]
pub(crate) mod tests;

use iolens_document::{Align, Answer, Block, Column, Grid, Joined, Label, Row, Screen};
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval};

use super::facts::{self, is_durable};
use super::findings::has_several_durable;
use crate::findings::{self, Ranking};
use crate::groups::grouped;
use crate::screen::table::{self, Better, INTERVALS, Marks};
use crate::screen::{choices, more, short};
use crate::standing::standing_among;
use crate::{arms, words};

/// The durable arms of a cell whose numbers may be held against those of others.
pub(crate) fn durable<'a>(run: &Run, cell: &'a CellAnalysis) -> Vec<&'a ArmAnalysis> {
    let own = |arm: &&ArmAnalysis| {
        let has_numbers = arm.is_ranked() && arm.figures.is_some();
        has_numbers && is_durable(run, &arm.arm.primitive)
    };
    arms::methods(cell).filter(own).collect()
}

/// Whether the baseline leaves a block to the kernel, so that durable arms are compared with it.
pub(crate) fn is_lazy(run: &Run, cell: &CellAnalysis) -> bool {
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline);
    baseline.is_some_and(|arm| !is_durable(run, &arm.arm.primitive) && arm.status == Status::Ok)
}

/// The time of a block over the baseline's, of slices that alternated.
pub(crate) fn over_baseline(arm: &ArmAnalysis) -> Option<Estimate> {
    let contrast = arm.contrast.as_ref().filter(|contrast| contrast.ratio > 0.0)?;
    let positive = contrast.simultaneous.filter(|interval| interval.low > 0.0);
    let interval = positive.map(Interval::inverse);
    Some(Estimate { value: 1.0 / contrast.ratio, interval, n: contrast.n })
}

/// The time of a durable engine over that of the one which promises less, where both were
/// measured.
pub(crate) fn over_next<'a>(
    run: &Run,
    cell: &'a CellAnalysis,
    arm: &ArmAnalysis,
) -> Option<(&'a str, Estimate)> {
    const LESS: [(&str, &str); 2] =
        [("write_fsync", "write_fdatasync"), ("write_fdatasync", "write_dsync")];
    let (_, less) = LESS.iter().find(|(more, _)| *more == arm.arm.primitive)?;
    let other = durable(run, cell).into_iter().find(|other| other.arm.primitive == *less)?;
    Some((&other.arm.label, over(cell, &arm.arm.label, &other.arm.label)?))
}

/// The time of one arm over that of another, of what they were measured in together: totals of
/// each alone hold how fast the machine was at that time. Its interval is the simultaneous one
/// of pairs; `None` where they never met.
fn over(cell: &CellAnalysis, slow: &str, fast: &str) -> Option<Estimate> {
    let (pair, is_turned) = arms::pair(cell, slow, fast)?;
    let value = if is_turned { pair.ratio } else { 1.0 / pair.ratio };
    Some(Estimate { value, interval: pair.interval_of(fast), n: pair.n })
}

/// Columns that are shown; the others are in `iolens show`.
const COLUMNS_MAX: usize = 4;

pub(crate) fn fill(screen: &mut Screen, run: &Run, analysis: &Analysis) {
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().collect();
    for shown in cells.chunks(COLUMNS_MAX).take(2) {
        let mut grid = grid(run, shown);
        if !screen.blocks.is_empty() {
            grid.title.clear();
        }
        screen.blocks.push(Block::Grid(grid));
    }
    screen.legend.extend(more(run, cells.len(), 2 * COLUMNS_MAX, " settings"));
    let baseline = &run.header.plan.baseline;
    screen.legend.extend(table::legend(marks(run, &cells), analysis.delta, baseline, &[]));
    screen.answers = answers(run, analysis);
}

/// Engines as rows, settings as columns; those that leave a block to the kernel first.
fn grid(run: &Run, cells: &[&CellAnalysis]) -> Grid {
    let methods = table::methods(cells);
    let mut columns = vec![Column::left("")];
    for cell in cells {
        let size = cell.cell.size.to_string();
        let curve = short(run, &cell.cell);
        let column = Column::of(size, &[Align::Decimal, Align::Left]);
        columns.push(if curve.is_empty() { column } else { column.below(curve) });
    }
    let line = |name: String, label: &str, of: &dyn Fn(&ArmAnalysis) -> Vec<String>| {
        let own = |cell: &&CellAnalysis| arms::labelled(cell, label).map_or_else(Vec::new, of);
        Row::Cells(std::iter::once(vec![name]).chain(cells.iter().map(own)).collect())
    };
    let mut rows: Vec<Row> = Vec::new();
    for (durable, words) in [(false, "not durable"), (true, "durable")] {
        let own: Vec<&&ArmAnalysis> =
            methods.iter().filter(|arm| is_durable(run, &arm.arm.primitive) == durable).collect();
        rows.extend((!own.is_empty()).then(|| Row::Heading(words.to_owned())));
        for label in own.into_iter().map(|method| &method.arm.label) {
            rows.push(line(format!("  {label}"), label, &|arm| entry(run, arm)));
            let mut arms = arms::of_cells(cells);
            if arms.any(|arm| arm.arm.label == *label && facts::has_stalls(arm)) {
                rows.push(line("    with stalls".to_owned(), label, &with_stalls));
            }
        }
    }
    let threads = cells.iter().map(|cell| cell.cell.threads).max().unwrap_or(1);
    let title = format!(
        "µs per block{} ({}'s × ratio), lower is better [{INTERVALS}]",
        words::together(threads),
        run.header.plan.baseline
    );
    Grid { title, columns, rows }
}

/// The marks of engines against the first row.
fn marks(run: &Run, cells: &[&CellAnalysis]) -> Marks {
    let mut marks = Marks::default();
    let arms = arms::of_cells(cells);
    let methods = arms.filter(|arm| arm.arm.role == Role::Compared && arm.is_ranked());
    for contrast in methods.filter_map(|arm| arm.contrast.as_ref()) {
        marks.note(table::compared(contrast, Better::Less, run.header.plan.quick).1);
    }
    marks
}

/// The typical time of a block with its interval.
fn entry(run: &Run, arm: &ArmAnalysis) -> Vec<String> {
    if let Some(word) = table::without_value(arm) {
        return vec![word.to_owned()];
    }
    let Some(time) = arm.time() else { return Vec::new() };
    let us = time.value / 1e3;
    let Some(contrast) = &arm.contrast else { return vec![three_digits(us), String::new()] };
    if let Some(word) = table::without_change(contrast) {
        return vec![word.to_owned()];
    }
    let (factor, mark) = table::compared(contrast, Better::Less, run.header.plan.quick);
    let interval = factor.ends_of(us).unwrap_or_else(|| iolens_document::unusable().to_owned());
    vec![three_digits(us), format!("[{interval}] {mark}").trim_end().to_owned()]
}

/// The same by total times.
fn with_stalls(arm: &ArmAnalysis) -> Vec<String> {
    let time = arm.time().zip(arm.contrast.as_ref().filter(|_| facts::has_stalls(arm)));
    let us = time.map(|(time, contrast)| {
        // What is shown is the baseline's mean over the typical ratio.
        time.value * contrast.ratio / contrast.total_ratio.value / 1e3
    });
    us.map_or_else(Vec::new, |us| vec![three_digits(us), String::new()])
}

fn answers(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    let curve = |ranking: &Ranking| short(run, &ranking.setting);
    let rankings = findings::rankings(run, &findings::ranked(run, analysis));
    let mut out = choices(Label::Fastest, run, &rankings, curve);
    if has_several_durable(run, analysis) {
        out.truncate(2);
        out.extend(durability(run, analysis));
    }
    out.extend(flush_unproven(run));
    out
}

/// Which way of having a block on the device is fastest.
fn durability(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let mut found: Vec<Option<&str>> = Vec::new();
    for cell in &analysis.cells {
        let own = arms::methods(cell)
            .filter(|arm| is_durable(run, &arm.arm.primitive) && arm.status == Status::Ok);
        let labels: Vec<&str> = own.map(|arm| arm.arm.label.as_str()).collect();
        found.extend((labels.len() > 1).then(|| standing_among(cell, &labels)));
    }
    let cells = found.len();
    let fastest = grouped(found.into_iter().flatten().map(|label| (label, ())));
    let open = cells - fastest.iter().map(|(_, columns)| columns.len()).sum::<usize>();
    let said = match fastest.as_slice() {
        _ if cells == 0 => return None,
        [] => "undecided in every column: choose by what each promises, not by speed".to_owned(),
        [(label, _)] if open == 0 => format!("{label} in every column"),
        several => {
            let one = |(label, own): &(&str, Vec<()>)| {
                format!("{label} in {} of {cells} columns", own.len())
            };
            let told = several.iter().map(one).joined(", ");
            let rest = if open > 0 { format!(", undecided in {open}") } else { String::new() };
            format!("{told}{rest}")
        }
    };
    Some(Answer::one(Label::Durable, said))
}

/// That a host may say that bytes are on its device when they are not.
fn flush_unproven(run: &Run) -> Option<Answer> {
    let writes = run.header.engines.iter().any(|facts| facts.is_durable);
    (writes && words::is_guest(&run.header.host)).then(|| {
        Answer::one(
            Label::Caution,
            "a VM's host may acknowledge a flush it never makes: durability is not proven here",
        )
    })
}

//! What is shown of one message that somebody asked for.

use iolens_document::{
    Align, Answer, Block, Column, Grid, Label, Screen, Text, change, change_interval,
};
use iolens_model::outcome::Status;
use iolens_model::run::{Part, Run};
use iolens_model::units;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate};

use super::table::{self, Better, Marks, compared};
use super::{outcome, trust};
use crate::findings;
use crate::number::{self, InWords, Unit, count, list};

/// Where the numbers of an answer come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// They were measured for it.
    Measured,
    /// From a run that was stored before, and what has changed since.
    Stored(Vec<Part>),
}

/// The screen of a question about messages of `cell`.
pub(crate) fn asked(
    run: &Run,
    analysis: &Analysis,
    cell: &CellAnalysis,
    source: &Source,
) -> Screen {
    let alone = Analysis { cells: vec![cell.clone()], ..analysis.clone() };
    let mut marks = Marks::default();
    let methods = table::methods(&[cell]);
    let grid = grid(run, &methods, &mut marks);
    let mut screen = Screen {
        header: header(cell),
        effort: vec![from(run, source).into()],
        alarm: trust::alarm(&alone),
        blocks: vec![Block::Grid(grid)],
        legend: table::legend(marks, analysis.delta, &run.header.plan.baseline, &methods),
        problems: trust::problems(run, &alone),
        ..Screen::default()
    };
    if screen.alarm.is_none() {
        screen.answers.extend(answers(run, analysis, cell));
    }
    if let Source::Stored(changed) = source
        && !changed.is_empty()
    {
        let changed = changed.iter().map(|part| format!("another {}", part.word()));
        let said = format!("that run had {}", list(changed));
        screen.answers.push(Answer::one(Label::Caution, said));
    }
    screen.answers.extend(trust::cautions(run, &alone));
    screen.answers.push(trust::trust(run, &alone));
    screen.answers.push(next(run, source));
    screen
}

/// `ask`, the message and how it goes.
fn header(cell: &CellAnalysis) -> Vec<Text> {
    let cell = &cell.cell;
    let mut parts = vec!["ask".to_owned(), cell.size.to_string()];
    if let Some(net) = cell.net() {
        let fields = net.fields_in_words();
        parts.extend([fields.clone(), count(cell.threads, "connection")]);
        parts.extend(cell.words());
        parts.extend(cell.unusual().into_iter().filter(|word| *word != fields));
    }
    Text::parts(parts)
}

/// Where the numbers come from.
fn from(run: &Run, source: &Source) -> String {
    let quick = if run.header.plan.quick { " (quick look)" } else { "" };
    match source {
        Source::Measured => format!("measured now, run {}{quick}", run.header.id),
        Source::Stored(_) => format!(
            "from run {}{quick} of {}",
            run.header.id,
            units::utc(run.header.started_unix_ns)
        ),
    }
}

/// A quantity beside its change: `29.7  +16%  [+13, +19]`.
const PARTS: [Align; 4] = [Align::Decimal, Align::Right, Align::Left, Align::Left];

fn grid(run: &Run, methods: &[&ArmAnalysis], marks: &mut Marks) -> Grid {
    let goodput = |arm: &ArmAnalysis| Some(arm.figure(|f| f.goodput_bits_per_s)?.value);
    let unit = Unit::of(number::BITS, methods.iter().filter_map(|arm| goodput(arm)));
    let has_rate = methods.iter().any(|arm| goodput(arm).is_some());
    let (speed, better) = match has_rate {
        true => (format!("throughput, {}", unit.name), Better::More),
        false => ("time per message, µs".to_owned(), Better::Less),
    };
    let row = |arm: &&ArmAnalysis| {
        let star = if arm.condition.is_some() { "*" } else { "" };
        let us = |time: Option<Estimate>| Some(time?.value / 1e3);
        let value = goodput(arm).map(|rate| rate / unit.size).or_else(|| us(arm.time()));
        let cpu = us(arm.figure(|f| f.cpu_ns_per_message));
        let by_time = quantity(run, arm, value, arm.contrast.as_ref(), better, marks);
        let by_cpu = quantity(run, arm, cpu, arm.cpu_contrast.as_ref(), Better::Less, marks);
        vec![
            (Column::left(""), vec![format!("{}{star}", arm.arm.label)]),
            (Column::of(&speed, &PARTS), by_time),
            (Column::of("CPU of both ends, µs per message", &PARTS), by_cpu),
        ]
    };
    let title = format!("change against {} [{}]", run.header.plan.baseline, table::INTERVALS);
    Grid::filled(title, methods.iter().map(row))
}

/// A value, its change, the interval that decides, and a mark.
fn quantity(
    run: &Run,
    arm: &ArmAnalysis,
    value: Option<f64>,
    contrast: Option<&Contrast>,
    better: Better,
    marks: &mut Marks,
) -> Vec<String> {
    if arm.status != Status::Ok {
        return vec![arm.status.word().to_owned()];
    }
    let mut parts = vec![value.or_empty(three_digits)];
    let Some(contrast) = contrast else { return parts };
    if !contrast.verdict.is_ranked() {
        return vec!["not ranked".to_owned()];
    }
    let (factor, mark) = compared(contrast, better, run.header.plan.quick);
    marks.note(mark);
    let ends = factor.interval.or_empty(change_interval);
    parts.extend([change(factor.typical), ends, mark.to_owned()]);
    parts
}

/// Which method, by time and by CPU time, and what is at the sizes beside.
fn answers(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Vec<Answer> {
    let standing = |cell: &CellAnalysis| {
        let ranking = findings::ranking(cell, analysis.delta, run.header.plan.quick);
        outcome(&ranking.outcome, analysis.delta)
    };
    let least_cpu = format!("least CPU: {}", standing(&cell.by_cpu()));
    let used = vec![standing(cell).into(), least_cpu.into()];
    let curve = cell.cell.curve();
    let is_nearby = |other: &&CellAnalysis| other.cell != cell.cell && other.cell.curve() == curve;
    let others = analysis.cells.iter().filter(is_nearby);
    let mut nearby: Vec<Text> =
        others.map(|other| format!("{}: {}", other.cell.size, standing(other)).into()).collect();
    if nearby.is_empty() {
        nearby.push("no other size was measured: how far this holds is not known".into());
    }
    vec![Answer { label: Label::Use, said: used }, Answer { label: Label::Nearby, said: nearby }]
}

fn next(run: &Run, source: &Source) -> Answer {
    let mut said = Vec::new();
    if matches!(source, Source::Stored(_)) {
        said.push(Text::code("--fresh").and(" (measures it now)"));
    }
    said.push(Text::code(super::show(run)));
    Answer { label: Label::Next, said }
}

//! Values of methods in settings, as the tables of a screen have them.

use iolens_document::{
    Align, Block, Cell as Entry, Column, Factor, Head, Matrix, MatrixRow, MatrixSection, Text,
};
use iolens_model::family::Condition;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Contrast, Estimate, Verdict};

use crate::arms;
use crate::groups::{first_of_each, grouped};
use crate::number::{percent, usable};

/// What the intervals on a screen are.
pub(crate) const INTERVALS: &str = "95%, adjusted for all comparisons, this run";

/// Whether more or less of a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// A quantity of arms.
pub(crate) struct Measure {
    /// With its unit: `throughput, Gbit/s`.
    title: String,
    /// Its value in base units.
    read: Read,
    /// Base units in one that is shown.
    unit: f64,
    /// By which methods are compared; `None` of one that stands beside what they are compared by.
    better: Option<Better>,
    /// Whether it is a time that passes in each thread by itself.
    is_of_each: bool,
}

type Read = fn(&ArmAnalysis) -> Option<Estimate>;

impl Measure {
    pub(crate) fn compared(title: String, read: Read, unit: f64, better: Better) -> Measure {
        Measure { title, read, unit, better: Some(better), is_of_each: false }
    }

    pub(crate) fn beside(title: &str, read: Read, unit: f64) -> Measure {
        Measure { title: title.to_owned(), read, unit, better: None, is_of_each: false }
    }

    /// A time that passes in each thread by itself: that of all together, times the threads.
    pub(crate) fn of_each_thread(self) -> Measure {
        Measure { is_of_each: true, ..self }
    }

    pub(crate) fn is_compared(&self) -> bool {
        self.better.is_some()
    }
}

/// Marks that occur on a screen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    undecided: bool,
    same: bool,
}

impl Marks {
    /// This mark occurs.
    pub(crate) fn note(&mut self, mark: &str) {
        self.undecided |= mark == UNDECIDED;
        self.same |= mark == SAME;
    }
}

/// The methods of cells, the baseline first, without copies and controls.
pub(crate) fn methods<'a>(cells: &[&'a CellAnalysis]) -> Vec<&'a ArmAnalysis> {
    let all = cells.iter().flat_map(|cell| arms::methods(cell));
    first_of_each(all.map(|arm| (&arm.arm.label, arm)))
}

/// What stands beside methods whose sends the kernel copied.
pub(crate) const COPIED: &str = "†";

/// The heads of methods, of which the kernel copied what these sent.
pub(crate) fn heads(methods: &[&ArmAnalysis], copied: &[String]) -> Vec<Head> {
    let head = |arm: &&ArmAnalysis| Head {
        name: arm.arm.label.clone(),
        mark: match arm.condition {
            Some(_) => "*",
            None if copied.contains(&arm.arm.label) => COPIED,
            None => "",
        },
    };
    methods.iter().map(head).collect()
}

/// Values of methods against the baseline.
pub(crate) fn matrix(run: &Run, heads: Vec<Head>, sections: Vec<MatrixSection>) -> Block {
    Block::Matrix(Matrix {
        heads,
        reference: Some(run.header.plan.baseline.clone()),
        intervals: INTERVALS.to_owned(),
        elsewhere: super::show(run),
        sections,
    })
}

/// A section of a table: these cells as rows.
pub(crate) fn section(
    run: &Run,
    cells: &[&CellAnalysis],
    methods: &[&ArmAnalysis],
    measure: &Measure,
    marks: &mut Marks,
) -> MatrixSection {
    let quick = run.header.plan.quick;
    let mut curves: Vec<_> = cells.iter().map(|cell| cell.cell.curve()).collect();
    curves.dedup();
    let row = |cell: &&CellAnalysis| {
        let is_alone = arms::only(cell).is_some();
        let threads = if measure.is_of_each { f64::from(cell.cell.threads) } else { 1.0 };
        let unit = measure.unit / threads;
        let entry = |method: &&ArmAnalysis| {
            let own = arms::labelled(cell, &method.arm.label);
            own.map_or(Entry::Empty, |arm| entry(arm, (measure, unit), quick, is_alone))
        };
        MatrixRow {
            group: match curves.len() {
                0 | 1 => String::new(),
                _ => super::short(run, &cell.cell),
            },
            label: cell.cell.size.to_string(),
            cells: methods.iter().map(entry).collect(),
        }
    };
    let rows: Vec<MatrixRow> = cells.iter().map(row).collect();
    for entry in rows.iter().flat_map(|row| &row.cells) {
        if let Entry::Compared { mark, .. } = entry {
            marks.note(mark);
        }
    }
    let (title, is_compared) = (measure.title.clone(), measure.is_compared());
    MatrixSection { title, rows, is_compared }
}

pub(crate) const UNDECIDED: &str = "?";
pub(crate) const SAME: &str = "=";

/// Why an arm has no value, in a word.
pub(crate) fn without_value(arm: &ArmAnalysis) -> Option<&'static str> {
    match arm.status {
        Status::Ok => None,
        Status::Skipped => Some("not run"),
        status => Some(status.word()),
    }
}

/// Why a contrast has no change, in a word.
pub(crate) fn without_change(contrast: &Contrast) -> Option<&'static str> {
    match contrast.verdict {
        Verdict::Invalid => Some("invalid"),
        Verdict::Unranked => Some("not ranked"),
        _ => None,
    }
}

/// One value of a table.
fn entry(
    arm: &ArmAnalysis,
    (measure, unit): (&Measure, f64),
    quick: bool,
    is_alone: bool,
) -> Entry {
    if let Some(word) = without_value(arm) {
        return Entry::Word(word.to_owned());
    }
    let Some(found) = (measure.read)(arm) else { return Entry::Empty };
    let value = found.value / unit;
    if is_alone {
        let ends = usable(found.interval);
        return Entry::Alone(value, ends.map(|(a, b)| (a / unit, b / unit)));
    }
    let (Some(contrast), Some(better)) = (&arm.contrast, measure.better) else {
        return Entry::Plain(value);
    };
    if let Some(word) = without_change(contrast) {
        return Entry::Word(word.to_owned());
    }
    let (factor, mark) = compared(contrast, better, quick);
    Entry::Compared { value, factor, mark }
}

/// What a contrast says of a quantity: its factor with the interval that decides, and a mark.
pub(crate) fn compared(contrast: &Contrast, better: Better, quick: bool) -> (Factor, &'static str) {
    let is_same = !quick && contrast.verdict == Verdict::Equivalent;
    let interval = if is_same { contrast.pointwise90 } else { contrast.simultaneous };
    let factor = Factor { typical: contrast.ratio, interval: usable(interval) };
    let factor = if better == Better::More { factor } else { factor.inverse() };
    let is_undecided = !quick && contrast.verdict == Verdict::Inconclusive;
    (factor, mark(factor, is_same, is_undecided))
}

/// The mark of a change.
pub(crate) fn mark(factor: Factor, is_same: bool, is_undecided: bool) -> &'static str {
    match is_undecided || factor.is_open() {
        _ if is_same => SAME,
        true => UNDECIDED,
        false => "",
    }
}

/// A column of [`beside`].
pub(crate) fn change_column(head: impl Into<String>) -> Column {
    Column::of(head, &[Align::Right, Align::Right, Align::Right, Align::Left])
}

/// The change of a quantity against the baseline, both ends of its interval, and its mark.
pub(crate) fn against(
    run: &Run,
    contrast: Option<&Contrast>,
    better: Better,
    marks: &mut Marks,
) -> (Column, Vec<String>) {
    let plan = &run.header.plan;
    let parts = contrast.map(|contrast| match without_change(contrast) {
        Some(word) => vec![word.to_owned()],
        None => {
            let (factor, mark) = compared(contrast, better, plan.quick);
            beside(factor, mark, marks)
        }
    });
    (change_column(format!("against {}", plan.baseline)), parts.unwrap_or_default())
}

/// A change, both ends of its interval, and its mark: parts of [`change_column`].
pub(crate) fn beside(factor: Factor, mark: &str, marks: &mut Marks) -> Vec<String> {
    marks.note(mark);
    factor.parts().into_iter().chain([mark.to_owned()]).collect()
}

/// What the marks mean that occur, and who is restricted to what.
pub(crate) fn legend(
    marks: Marks,
    delta: f64,
    baseline: &str,
    methods: &[&ArmAnalysis],
) -> Vec<Text> {
    let mut out: Vec<String> = Vec::new();
    out.extend(marks.same.then(|| format!("= same within {} (90% interval)", percent(delta))));
    out.extend(marks.undecided.then(|| format!("? undecided against {baseline}")));
    let restricted = methods.iter().filter_map(|arm| Some((arm.condition?, &*arm.arm.label)));
    let by_condition: Vec<(Condition, Vec<&str>)> = grouped(restricted);
    match by_condition.as_slice() {
        [] => {}
        [(condition, _)] => out.push(format!("* only if {}, not ranked", only_if(*condition))),
        several => out.extend(several.iter().map(|(condition, labels)| {
            format!("* {}: only if {}", labels.join(", "), only_if(*condition))
        })),
    }
    Text::parts(out)
}

fn only_if(condition: Condition) -> &'static str {
    match condition {
        Condition::Contiguous => "the message is in one piece already",
        Condition::InFile => "the message is in a file already",
        Condition::Datagram => "the message is in one piece already and may be lost",
        Condition::Unchanged => "its memory is left alone until the receiver has read it",
    }
}

//! Values of methods in settings, as the tables of a screen have them.

use iolens_document::{
    Align, Cell as Entry, Column, Factor, Head, MatrixRow, MatrixSection, Text, change,
    change_ends, unusable,
};
use iolens_model::arm::Role;
use iolens_model::family::Condition;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Contrast, Estimate, Interval, Verdict};

use crate::alone;

/// What the intervals on a screen are.
pub(crate) const INTERVALS: &str = "95%, adjusted for all comparisons, this run";

/// Whether more or less of a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// A quantity of arms.
pub(super) struct Measure {
    /// With its unit: `throughput, Gbit/s`.
    pub(super) title: String,
    /// Its value in base units.
    pub(super) read: fn(&ArmAnalysis) -> Option<Estimate>,
    /// What compares it.
    pub(super) contrast: fn(&ArmAnalysis) -> Option<&Contrast>,
    /// Base units in one that is shown.
    pub(super) unit: f64,
    pub(super) better: Better,
    pub(super) is_compared: bool,
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
pub(super) fn methods<'a>(cells: &[&'a CellAnalysis]) -> Vec<&'a ArmAnalysis> {
    let mut found: Vec<&ArmAnalysis> = Vec::new();
    for arm in cells.iter().flat_map(|cell| &cell.arms) {
        let is_method = matches!(arm.arm.role, Role::Baseline | Role::Compared);
        if is_method && found.iter().all(|known| known.arm.label != arm.arm.label) {
            found.push(arm);
        }
    }
    found
}

/// What stands beside methods whose sends the kernel copied.
pub(super) const COPIED: &str = "†";

/// The heads of methods, of which the kernel copied what these sent.
pub(super) fn heads(methods: &[&ArmAnalysis], copied: &[String]) -> Vec<Head> {
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

/// A section of a table: these cells as rows.
pub(super) fn section(
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
        let is_alone = alone::of(cell).is_some();
        let entry = |method: &&ArmAnalysis| {
            let own = cell.arms.iter().find(|arm| arm.arm.label == method.arm.label);
            own.map_or(Entry::Empty, |arm| entry(arm, measure, quick, is_alone))
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
    MatrixSection { title: measure.title.clone(), rows, is_compared: measure.is_compared }
}

pub(crate) const UNDECIDED: &str = "?";
pub(crate) const SAME: &str = "=";

/// One value of a table.
pub(super) fn entry(arm: &ArmAnalysis, measure: &Measure, quick: bool, is_alone: bool) -> Entry {
    match arm.status {
        Status::Ok => {}
        Status::Skipped => return Entry::Word("not run".to_owned()),
        status => return Entry::Word(status.word().to_owned()),
    }
    let Some(found) = (measure.read)(arm) else { return Entry::Empty };
    let value = found.value / measure.unit;
    if is_alone {
        let usable = found.interval.filter(Interval::is_usable);
        let scaled = usable.map(|i| (i.low / measure.unit, i.high / measure.unit));
        return Entry::Alone(value, scaled);
    }
    let Some(contrast) = (measure.contrast)(arm) else { return Entry::Plain(value) };
    match contrast.verdict {
        Verdict::Invalid => return Entry::Word("invalid".to_owned()),
        Verdict::Unranked => return Entry::Word("not ranked".to_owned()),
        _ => {}
    }
    let (factor, mark) = compared(contrast, measure.better, quick);
    Entry::Compared { value, factor, mark }
}

/// What a contrast says of a quantity: its factor with the interval that decides, and a mark.
pub(crate) fn compared(contrast: &Contrast, better: Better, quick: bool) -> (Factor, &'static str) {
    let is_same = !quick && contrast.verdict == Verdict::Equivalent;
    let interval = if is_same { contrast.pointwise90 } else { contrast.simultaneous };
    let usable = interval.filter(Interval::is_usable).map(|i| (i.low, i.high));
    let factor = Factor { typical: contrast.ratio, interval: usable };
    let factor = if better == Better::More { factor } else { factor.inverse() };
    let mark = match contrast.verdict {
        _ if is_same => SAME,
        Verdict::Inconclusive if !quick => UNDECIDED,
        _ if factor.is_open() => UNDECIDED,
        _ => "",
    };
    (factor, mark)
}

/// A column of [`against`].
pub(crate) fn against_column(head: impl Into<String>) -> Column {
    Column::of(head, &[Align::Right, Align::Right, Align::Right, Align::Left])
}

/// The change of a quantity against the baseline, both ends of its interval, and its mark.
pub(crate) fn against(
    contrast: Option<&Contrast>,
    better: Better,
    quick: bool,
    marks: &mut Marks,
) -> Vec<String> {
    let Some(contrast) = contrast else { return Vec::new() };
    match contrast.verdict {
        Verdict::Invalid => return vec!["invalid".to_owned()],
        Verdict::Unranked => return vec!["not ranked".to_owned()],
        _ => {}
    }
    let (factor, mark) = compared(contrast, better, quick);
    beside(factor, mark, marks)
}

/// A change, both ends of its interval, and its mark: parts of [`against_column`].
pub(crate) fn beside(factor: Factor, mark: &str, marks: &mut Marks) -> Vec<String> {
    marks.note(mark);
    let mut parts = vec![change(factor.typical)];
    parts.extend(changes(factor.interval));
    parts.push(mark.to_owned());
    parts
}

/// Both ends of an interval of changes.
pub(crate) fn changes(interval: Option<(f64, f64)>) -> [String; 2] {
    match interval.map(change_ends) {
        Some([low, high]) => [format!("[{low},"), format!("{high}]")],
        None => [String::new(), format!("[{}]", unusable())],
    }
}

/// What the marks mean that occur, and who is restricted to what.
pub(crate) fn legend(marks: Marks, baseline: &str, methods: &[&ArmAnalysis]) -> Vec<Text> {
    let mut out: Vec<String> = Vec::new();
    out.extend(marks.same.then(|| "= same within 3% (its interval is 90%)".to_owned()));
    out.extend(marks.undecided.then(|| format!("? undecided against {baseline}")));
    let mut by_condition: Vec<(Condition, Vec<&str>)> = Vec::new();
    for arm in methods {
        let Some(condition) = arm.condition else { continue };
        match by_condition.iter_mut().find(|(known, _)| *known == condition) {
            Some((_, labels)) => labels.push(&arm.arm.label),
            None => by_condition.push((condition, vec![&arm.arm.label])),
        }
    }
    match by_condition.as_slice() {
        [] => {}
        [(condition, _)] => out.push(format!("* only if {}, not ranked", only_if(*condition))),
        several => out.extend(several.iter().map(|(condition, labels)| {
            format!("* {}: only if {}", labels.join(", "), only_if(*condition))
        })),
    }
    out.into_iter().map(Text::from).collect()
}

fn only_if(condition: Condition) -> &'static str {
    match condition {
        Condition::Contiguous => "the message is in one piece already",
        Condition::InFile => "the message is in a file already",
        Condition::Datagram => "the message is in one piece already and may be lost",
        Condition::Unchanged => "its memory is left alone until the receiver has read it",
    }
}

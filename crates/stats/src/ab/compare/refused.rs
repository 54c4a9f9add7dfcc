//! Runs of `ab` whose ratios are not to the same baseline, and what to do.

use std::fmt;

use iolens_model::ab::{AbAxes, AbMode, AbQuantity};
use iolens_model::command_line;
use iolens_model::plan::Schedule;
use iolens_model::units::Nanos;

use super::{AbSide, axes};
use crate::ab::AbCell;

/// Slices of one arm that differ by more in their operations, and in their time, hold another part
/// of what comes now and then, such as the collection of garbage.
const SLICES_APART: f64 = 2.0;

/// What keeps two runs of `ab` from being compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbDiffers {
    /// One has loops, the other whole commands.
    Mode,
    /// The file of the baseline.
    File,
    /// The arguments of the baseline.
    Arguments,
    /// Whether programs ran where they are.
    Place,
    /// The standard input of commands.
    Input,
    /// What runs before each command.
    Preparation,
    /// Programs are several links, whose ratio is not to one file.
    Links,
    /// How long slices are asked to be.
    Slice,
    /// How long calibration made them.
    FoundSlice,
    /// All settings.
    Settings,
    /// All arms.
    Arms,
    /// What was judged.
    Judged,
}

impl AbDiffers {
    fn words(self) -> (&'static str, &'static str) {
        const AGAIN: &str = "measure one of them again with what the other has";
        match self {
            AbDiffers::Mode => ("one measures loops and the other whole commands", AGAIN),
            AbDiffers::File => (
                "their baselines are different files",
                "keep one baseline for both: iolens keep PROGRAM --as NAME, then \
                 iolens ab --against NAME",
            ),
            AbDiffers::Arguments => ("their baselines have different arguments", AGAIN),
            AbDiffers::Place => ("only one runs programs --in-place", AGAIN),
            AbDiffers::Input => ("their standard inputs (--input) differ", AGAIN),
            AbDiffers::Preparation => ("what runs before each command (--prepare) differs", AGAIN),
            AbDiffers::Links => (
                "with --links the baseline is several files",
                "compare the two versions in one run: iolens ab --links",
            ),
            AbDiffers::Slice => {
                ("their slices differ in length", "measure both with one length: --slice 5ms")
            }
            AbDiffers::FoundSlice => (
                "calibration made the slices of one more than twice as long",
                "measure both again with slices that are long anyway: --slice 5ms",
            ),
            AbDiffers::Settings => (
                "they have no setting in common",
                "measure one of them again with a value of --with that the other has",
            ),
            AbDiffers::Arms => {
                ("they have no arm in common", "call the arm the same in both: --names")
            }
            AbDiffers::Judged => ("what one judges the other does not", "leave --judge as it is"),
        }
    }
}

/// Why two runs of `ab` cannot be compared. Prints as what was tried, on what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbRefused {
    /// What differs.
    pub differs: AbDiffers,
    /// Id of each run, and what it has there.
    pub runs: [(String, String); 2],
}

impl fmt::Display for AbRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, advice) = self.differs.words();
        writeln!(f, "cannot compare these runs: {what}")?;
        for (run, has) in &self.runs {
            writeln!(f, "  run {run}: {has}")?;
        }
        write!(f, "  {advice}")
    }
}

impl std::error::Error for AbRefused {}

/// What two runs have in common.
pub(super) struct Common<'a> {
    /// The settings, in the order of the first.
    pub(super) cells: Vec<[&'a AbCell; 2]>,
    /// The places of compared arms.
    pub(super) arms: Vec<[usize; 2]>,
    /// What both judge.
    pub(super) judged: Vec<AbQuantity>,
}

pub(super) fn common<'a>(a: &AbSide<'a>, b: &AbSide<'a>) -> Result<Common<'a>, AbRefused> {
    let refused = |differs, of: &dyn Fn(&AbSide<'_>) -> String| AbRefused {
        differs,
        runs: [a, b].map(|side| (side.header.id.clone(), of(side))),
    };
    let same = |differs, of: &dyn Fn(&AbSide<'_>) -> String| match of(a) == of(b) {
        true => Ok(()),
        false => Err(refused(differs, of)),
    };
    let of_axes = |of: fn(&AbAxes) -> String| {
        move |side: &AbSide<'_>| axes(side).map_or_else(|| "not of `ab`".to_owned(), of)
    };
    same(AbDiffers::Mode, &of_axes(|axes| axes.mode.to_string()))?;
    same(
        AbDiffers::Place,
        &of_axes(|axes| if axes.in_place { "--in-place" } else { "fresh copies" }.to_owned()),
    )?;
    let links = of_axes(|axes| if axes.links { "--links" } else { "one file" }.to_owned());
    if [a, b].into_iter().any(|side| axes(side).is_some_and(|axes| axes.links)) {
        return Err(refused(AbDiffers::Links, &links));
    }
    same(AbDiffers::Slice, &slice)?;
    let cells = cells(a, b);
    if cells.is_empty() {
        return Err(refused(AbDiffers::Settings, &settings));
    }
    for pair @ [cell, _] in &cells {
        let setting = &cell.setting;
        if are_apart(pair) {
            let of = |side: &AbSide<'_>| {
                let own = side.analysis.cells.iter().find(|own| own.setting == *setting);
                own.map_or_else(nothing, found)
            };
            return Err(refused(AbDiffers::FoundSlice, &of));
        }
        same(AbDiffers::Input, &|side| {
            let input = axes(side).and_then(|axes| axes.input(setting));
            or_none(input.unwrap_or_default().to_owned())
        })?;
        let prepare =
            |side: &AbSide<'_>| axes(side).and_then(|axes| Some(axes.prepare(setting)?.to_vec()));
        if prepare(a) != prepare(b) {
            return Err(refused(AbDiffers::Preparation, &|side| shown(prepare(side), 0)));
        }
        let file = |side: &AbSide<'_>| {
            let file = side.header.ab_program(setting, 0);
            file.map_or_else(nothing, |file| format!("SHA-256 {}", file.sha256))
        };
        same(AbDiffers::File, &file)?;
        let command = |side: &AbSide<'_>| axes(side).and_then(|axes| axes.command(setting, 0));
        let arguments = |side| command(side).and_then(|words| Some(words.get(1..)?.to_vec()));
        if arguments(a) != arguments(b) {
            return Err(refused(AbDiffers::Arguments, &|side| shown(command(side), 1)));
        }
    }
    let arms = arms(a, b);
    if arms.is_empty() {
        return Err(refused(AbDiffers::Arms, &|side| or_none(names(side).join(", "))));
    }
    let judged = |side: &AbSide<'_>| axes(side).map_or(&[][..], |axes| &axes.judged).to_vec();
    let of_b = judged(b);
    let both: Vec<_> = judged(a).into_iter().filter(|one| of_b.contains(one)).collect();
    if both.is_empty() {
        let words = |side: &AbSide<'_>| {
            judged(side).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        return Err(refused(AbDiffers::Judged, &words));
    }
    Ok(Common { cells, arms, judged: both })
}

/// Words of a command from one on, without secrets.
fn shown(words: Option<Vec<String>>, from: usize) -> String {
    let words = command_line::redacted(&words.unwrap_or_default());
    or_none(command_line::join(words.into_iter().skip(from)))
}

fn or_none(words: String) -> String {
    if words.is_empty() { nothing() } else { words }
}

fn nothing() -> String {
    "none".to_owned()
}

/// Slices of loops; whole commands have none.
fn slice(side: &AbSide<'_>) -> String {
    let is_loop = axes(side).is_some_and(|axes| axes.mode == AbMode::Loop);
    match side.header.plan.schedule {
        Schedule::Slices { slice, .. } if is_loop => slice.to_string(),
        _ => nothing(),
    }
}

/// Whether calibration has found slices of another length for the baseline in the second run; whole
/// commands have none.
pub(in crate::ab) fn are_apart(pair: &[&AbCell; 2]) -> bool {
    let [Some(a), Some(b)] = pair.map(|cell| cell.arms.first()) else { return false };
    let apart = |a: f64, b: f64| a.max(b) > SLICES_APART * a.min(b);
    let times = a.slice_ns().zip(b.slice_ns());
    pair[0].setting.mode == AbMode::Loop
        && times.is_some_and(|(a, b)| apart(a, b))
        && apart(a.operations, b.operations)
}

/// The slices that calibration has found: `123 operations, 795 µs`.
fn found(cell: &AbCell) -> String {
    let base = cell.arms.first();
    let words = base.and_then(|arm| {
        let ns = arm.slice_ns()?.round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let time = Nanos(ns as u64);
        Some(format!("{:.0} operations, {time}", arm.operations))
    });
    words.unwrap_or_else(nothing)
}

fn cells<'a>(a: &AbSide<'a>, b: &AbSide<'a>) -> Vec<[&'a AbCell; 2]> {
    let (of_a, of_b) = (&a.analysis.cells, &b.analysis.cells);
    let other = |cell: &AbCell| of_b.iter().find(|other| other.setting == cell.setting);
    of_a.iter().filter_map(|cell| Some([cell, other(cell)?])).collect()
}

fn settings(side: &AbSide<'_>) -> String {
    const SHOWN: usize = 3;
    let all = &side.analysis.cells;
    let words = |cell: &AbCell| {
        let values = cell.setting.values.iter().map(|(name, value)| format!("{name} {value}"));
        values.collect::<Vec<_>>().join(", ")
    };
    let shown: Vec<String> = all.iter().take(SHOWN).map(words).collect();
    let shown: Vec<String> = shown.into_iter().filter(|words| !words.is_empty()).collect();
    let more = all.len().saturating_sub(SHOWN);
    match (shown.is_empty(), more) {
        (true, _) => nothing(),
        (false, 0) => shown.join("; "),
        (false, more) => format!("{}; and {more} more", shown.join("; ")),
    }
}

/// Names of all arms but the baseline.
fn names<'a>(side: &AbSide<'a>) -> Vec<&'a str> {
    let programs = axes(side).map_or(&[][..], |axes| &axes.programs);
    programs.iter().skip(1).map(|program| program.name.as_str()).collect()
}

/// Arms of one name; where each run has but one, these.
fn arms(a: &AbSide<'_>, b: &AbSide<'_>) -> Vec<[usize; 2]> {
    let (of_a, of_b) = (names(a), names(b));
    if let ([_], [_]) = (&of_a[..], &of_b[..]) {
        return vec![[1, 1]];
    }
    let other = |name: &str| of_b.iter().position(|other| *other == name);
    let pair = |(nth, name): (usize, &&str)| Some([nth + 1, other(name)? + 1]);
    of_a.iter().enumerate().filter_map(pair).collect()
}

//! Two runs against each other (METHOD, Comparing runs).
//!
//! Two runs are two moments, and often two machines: their times differ for reasons that
//! are nobody's. What is compared is therefore each arm's ratio to the baseline that it
//! took turns with. The change of an arm is the quotient of its ratios, the second run's
//! over the first's, so that whatever slowed everything down cancels. Above 1 the arm is
//! faster against the baseline (or costs less) in the second run than in the first.
//!
//! The baseline itself has no ratio, so nothing can be judged of it here. How long each arm
//! takes by itself stands beside, without a verdict unless it is asked for: two runs take no
//! turns, but where their trials were measured in turn, as those of two builds are.

mod arms;
pub(crate) mod inputs;
mod refused;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use serde::Serialize;

use crate::analysis::{Analysis, CellAnalysis, SelfCheck};
use crate::estimate::{Interval, Verdict};
use crate::interval::count;
use crate::quantity::Quantity;
use crate::remark::VerdictReason;
use crate::self_check::{self, Check};
use crate::student::{self, StudentTable};

pub use self::inputs::Input;
pub use self::refused::Refused;

/// One of the two runs.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// What is known of it.
    pub header: &'a RunHeader,
    /// Its own analysis.
    pub analysis: &'a Analysis,
    /// What its plan asks for, key by key, as a plan file has it.
    pub asked: &'a [(String, String)],
}

/// Whether what an arm takes by itself is judged too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absolute {
    /// It is shown.
    Shown,
    /// It gets an interval and a verdict, whether the runs took turns or not.
    Judged,
}

/// Two runs compared: `a`, and `b` against it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Id of the first run.
    pub a: String,
    /// Id of the second.
    pub b: String,
    /// What both study.
    pub study: Study,
    /// The arm that the others are compared with in either.
    pub baseline: String,
    /// Smallest difference that matters, as a fraction: the larger of the two runs'.
    pub delta: f64,
    /// Whether one of them was a first look: then there are no verdict words.
    pub indicative: bool,
    /// Whether the trials of both were measured in turn: then what an arm takes by itself can
    /// be judged too.
    pub interleaved: bool,
    /// Changes that the simultaneous intervals cover together (J).
    pub contrasts: u32,
    /// What differs between the runs besides what was measured.
    pub inputs: Vec<Input>,
    /// Cells of both runs, in the order of the first.
    pub cells: Vec<CellChange>,
    /// Cells and arms that one of the runs does not have.
    pub missing: Vec<Missing>,
    /// How the hidden second copies of the baseline changed: by nothing, if all is well.
    pub self_check: SelfCheck,
    /// Warnings about the whole comparison, each one sentence.
    pub warnings: Vec<String>,
}

/// One cell of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellChange {
    /// Which cell.
    pub cell: Cell,
    /// Its arms, in the first run's order, each once for every quantity that is compared.
    pub arms: Vec<ArmChange>,
    /// Where all arms moved the same way against the baseline, which by itself moved the
    /// other way: it is likelier that the baseline changed.
    pub baseline_moved: Vec<BaselineMoved>,
}

/// One arm in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmChange {
    /// Which arm.
    pub arm: Arm,
    /// Of what so much for each message is compared.
    pub quantity: Quantity,
    /// Its ratio to the baseline in the first run, above 1 faster; `None` for the baseline
    /// and controls, and where it has none.
    pub ratio_a: Option<f64>,
    /// The same in the second.
    pub ratio_b: Option<f64>,
    /// How that ratio changed; `None` for the baseline and for controls.
    pub change: Option<Change>,
    /// What the arm takes by itself; `None` where a run has no figure of it.
    pub own: Option<Own>,
}

/// A change with its conclusion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The second run over the first: above 1 faster, or cheaper, in the second. `None` where
    /// a run has no number.
    pub ratio: Option<f64>,
    /// Trials of the first run.
    pub trials_a: u32,
    /// Trials of the second.
    pub trials_b: u32,
    /// 95 % for this change alone.
    pub pointwise: Option<Interval>,
    /// 90 % for this change alone, for equivalence.
    pub pointwise90: Option<Interval>,
    /// 95 % for all changes of the comparison together, the one that verdicts use.
    pub simultaneous: Option<Interval>,
    /// The conclusion.
    pub verdict: Verdict,
    /// The rule and the numbers behind it; in which run, where one is at fault.
    pub reason: VerdictReason,
    /// For an undecided change, about how many trials in each run would decide it.
    pub trials_needed: Option<u32>,
}

/// What an arm takes by itself, in two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Own {
    /// Of the quantity for each message in the first run, ns.
    pub ns_a: f64,
    /// The same in the second.
    pub ns_b: f64,
    /// The first over the second: above 1 faster, or cheaper, in the second.
    pub ratio: f64,
    /// The verdict, where one was asked for; never of copies and controls.
    pub judged: Option<Change>,
}

/// A baseline that is likelier to have changed than all its arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BaselineMoved {
    /// By which quantity.
    pub quantity: Quantity,
    /// What became of the baseline by itself: above 1 faster in the second run.
    pub ratio: f64,
    /// Arms that moved the other way against it.
    pub arms: u32,
}

/// What one of the runs does not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missing {
    /// Id of the run that has it.
    pub only_in: String,
    /// Whether that is the second.
    pub is_b: bool,
    /// The cell; `None` for an arm that the other run has nowhere.
    pub cell: Option<Cell>,
    /// The arm; `None` for a cell.
    pub arm: Option<String>,
}

/// Compares the second run with the first.
///
/// Errors: runs that have nothing to compare, and what to do.
pub fn compare(a: &Side<'_>, b: &Side<'_>, absolute: Absolute) -> Result<Comparison, Refused> {
    refused::check(a, b)?;
    let interleaved = took_turns(a.header, b.header);
    let absolute = if interleaved { Absolute::Judged } else { absolute };
    let delta = a.header.plan.delta.max(b.header.plan.delta);
    let common: Vec<(&CellAnalysis, &CellAnalysis)> = common_cells(a, b);
    let drafts: Vec<Vec<arms::Draft<'_>>> =
        common.iter().map(|(a, b)| arms::drafts(a, b, absolute)).collect();
    let contrasts = count(drafts.iter().flatten().map(arms::Draft::claims).sum());
    let inflation = [a, b].map(|side| student::inflation(side.analysis.neighbours.as_ref()));
    let rules = arms::Rules { delta, contrasts, inflation, same_trials: is_one_run(a, b) };
    let table = &mut StudentTable::new(contrasts);
    let cells: Vec<CellChange> = common
        .iter()
        .zip(&drafts)
        .map(|((cell, _), drafts)| cell_change(cell, drafts, &rules, table))
        .collect();
    let self_check = self_check::of_checks(&checks(&cells), delta);
    Ok(Comparison {
        a: a.header.id.clone(),
        b: b.header.id.clone(),
        study: a.header.plan.study(),
        baseline: a.header.plan.baseline.clone(),
        delta,
        indicative: a.header.plan.quick || b.header.plan.quick,
        interleaved,
        contrasts,
        inputs: inputs::differences(a, b),
        missing: missing(a, b),
        warnings: warnings(a, b, &self_check),
        self_check,
        cells,
    })
}

impl Comparison {
    /// Every change that has a verdict and is one of an arm of interest: of ratios, and of
    /// what arms take by themselves where that is judged.
    pub fn judged(&self) -> impl Iterator<Item = &Change> {
        let arms = self.cells.iter().flat_map(|cell| &cell.arms);
        arms.flat_map(ArmChange::judged)
    }

    /// How many of them are SLOWER: by more than δ, surely.
    pub fn slower(&self) -> usize {
        self.judged().filter(|change| change.verdict == Verdict::Slower).count()
    }

    /// Whether anything could be compared at all.
    pub fn is_usable(&self) -> bool {
        self.judged().any(|change| change.verdict.is_ranked())
    }
}

impl ArmChange {
    /// Its changes that count, as of [`Comparison::judged`].
    pub fn judged(&self) -> impl Iterator<Item = &Change> {
        let ratio = self.change.as_ref().filter(|_| self.arm.role == Role::Compared);
        ratio.into_iter().chain(self.own.as_ref().and_then(|own| own.judged.as_ref()))
    }
}

/// Cells of both, in the order of the first.
fn common_cells<'a>(a: &Side<'a>, b: &Side<'a>) -> Vec<(&'a CellAnalysis, &'a CellAnalysis)> {
    let of_b = |cell: &Cell| b.analysis.cells.iter().find(|other| other.cell == *cell);
    a.analysis.cells.iter().filter_map(|cell| Some((cell, of_b(&cell.cell)?))).collect()
}

fn cell_change(
    cell: &CellAnalysis,
    drafts: &[arms::Draft<'_>],
    rules: &arms::Rules,
    table: &mut StudentTable,
) -> CellChange {
    let arms = arms::judge(drafts, rules, table);
    let quantities = Quantity::between_runs(&cell.cell);
    let moved = quantities.filter_map(|quantity| baseline_moved(&arms, quantity));
    CellChange { cell: cell.cell.clone(), baseline_moved: moved.collect(), arms }
}

/// Whether all arms that have a verdict moved beyond δ to one side, and the baseline by
/// itself to the other, by half as much at least.
fn baseline_moved(arms: &[ArmChange], quantity: Quantity) -> Option<BaselineMoved> {
    let of = |role: Role| {
        arms.iter().filter(move |arm| arm.arm.role == role && arm.quantity == quantity)
    };
    let changes = of(Role::Compared).filter_map(|arm| arm.change.as_ref());
    let ranked: Vec<_> = changes.filter(|change| change.verdict.is_ranked()).collect();
    let all = |verdict| !ranked.is_empty() && ranked.iter().all(|c| c.verdict == verdict);
    if !all(Verdict::Faster) && !all(Verdict::Slower) {
        return None;
    }
    let lns = ranked.iter().filter_map(|change| Some(change.ratio?.ln()));
    let arms_ln = lns.sum::<f64>() / ranked.len() as f64;
    let ratio = of(Role::Baseline).find_map(|arm| Some(arm.own.as_ref()?.ratio))?;
    let opposite = ratio.ln() * arms_ln.signum() <= -arms_ln.abs() / 2.0;
    opposite.then(|| BaselineMoved { quantity, ratio, arms: count(ranked.len()) })
}

fn checks(cells: &[CellChange]) -> Vec<Check> {
    let arms = cells.iter().flat_map(|cell| &cell.arms);
    let copies = arms.filter(|arm| arm.arm.role == Role::SelfCheck);
    let changes = copies.filter_map(|arm| arm.change.as_ref());
    let check = |change: &Change| Check {
        n: change.trials_a.min(change.trials_b),
        pointwise: change.pointwise,
        simultaneous: change.simultaneous,
    };
    changes.map(check).collect()
}

/// Cells that one run alone has, and arms that it has and the other nowhere.
fn missing(a: &Side<'_>, b: &Side<'_>) -> Vec<Missing> {
    let one = |is_b: bool| {
        let (own, other) = if is_b { (b, a) } else { (a, b) };
        let known: BTreeSet<&Cell> = other.analysis.cells.iter().map(|cell| &cell.cell).collect();
        let cells = own.analysis.cells.iter().map(|cell| &cell.cell);
        let cells = cells.filter(|cell| !known.contains(cell)).map(|cell| (Some(cell), None));
        let labels = labels(other.analysis);
        let arms = self::labels(own.analysis).into_iter().filter(|arm| !labels.contains(arm));
        let found: Vec<(Option<&Cell>, Option<&str>)> =
            cells.chain(arms.map(|arm| (None, Some(arm)))).collect();
        found.into_iter().map(move |(cell, arm)| Missing {
            only_in: own.header.id.clone(),
            is_b,
            cell: cell.cloned(),
            arm: arm.map(str::to_owned),
        })
    };
    one(false).chain(one(true)).collect()
}

/// Labels of all arms of a run.
fn labels(analysis: &Analysis) -> BTreeSet<&str> {
    let arms = analysis.arms();
    arms.map(|arm| arm.arm.label.as_str()).collect()
}

/// Whether the trials of two runs were measured in turn. One run at a time measures on a
/// machine, so two of one plan and one seed that were under way at the same time took turns.
fn took_turns(a: &RunHeader, b: &RunHeader) -> bool {
    let (Some(end_a), Some(end_b)) = (&a.end, &b.end) else { return false };
    let overlap =
        a.started_unix_ns < end_b.finished_unix_ns && b.started_unix_ns < end_a.finished_unix_ns;
    a.id != b.id && a.plan == b.plan && overlap && a.changes(&a.build, &b.host).is_empty()
}

/// Whether a run is held against itself: nothing can differ then, and nothing is uncertain.
fn is_one_run(a: &Side<'_>, b: &Side<'_>) -> bool {
    a.header.id == b.header.id && a.analysis == b.analysis
}

fn warnings(a: &Side<'_>, b: &Side<'_>, changes: &SelfCheck) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_one_run(a, b) {
        warnings.push(format!(
            "Both are run {}, the same trials: every change is exactly 1, which says nothing of \
             how far two runs would differ",
            a.header.id
        ));
    }
    for side in [a, b] {
        let check = &side.analysis.self_check;
        warnings.extend(check.failed().map(|failed| {
            format!(
                "Run {} is not trustworthy by itself: {failed} of {} self-checks found a \
                 difference where there is none; neither are changes against it",
                side.header.id, check.counted
            )
        }));
    }
    warnings.extend(changes.failed().map(|failed| {
        format!(
            "This comparison is not trustworthy: in {failed} of {} self-checks the second copy of \
             the baseline changed against the baseline; do not use its changes",
            changes.counted
        )
    }));
    warnings.extend([a, b].into_iter().filter_map(cut_short));
    // A run beside itself is warned of once.
    warnings.dedup();
    warnings
}

/// That a run has fewer trials than it was to have, and an interval over few says too much.
fn cut_short(side: &Side<'_>) -> Option<String> {
    let how = match side.header.end.as_ref().map(|end| end.stopped_by) {
        None => "has not ended, or was killed,",
        Some(rule) if rule.is_cut_short() => "was cut short",
        Some(_) => return None,
    };
    Some(format!(
        "Run {} {how} after {} complete passes: with few trials, intervals cover the truth less \
         often than they claim",
        side.header.id, side.analysis.passes
    ))
}

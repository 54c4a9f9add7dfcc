//! Two runs of `ab` against each other.
//!
//! What is compared is an arm's change against the baseline: ln(arm / baseline) of the second run
//! less that of the first, so that whatever made both programs of a run slow cancels. That takes
//! one baseline in both: the same file, arguments, and way of measuring. Other runs are refused.
//!
//! A run's interval at any level has two ends, which for whole commands (order statistics) lie
//! at different distances from the median. They are combined without a normal approximation
//! (MOVER; Zou and Donner, Stat. Med. 27, 2008): the lower end of b − a is
//! b − a − √((b − l_b)² + (u_a − a)²), for it is reached where b is low and a is high. For
//! intervals of t that is √(h_a² + h_b²), never narrower than Welch's.

mod refused;
#[cfg(test)]
pub(super) mod tests;

use iolens_model::ab::{AbAxes, AbQuantity, AbSetting};
use iolens_model::run::RunHeader;
use serde::Serialize;

use super::findings::{AbContrast, AbMissingWhy, AbNoise, AbReason, AbVerdict};
use super::verdict::{Bounds, noise_in};
use super::{AB_UNITS_MIN, AbAnalysis, AbCell, changes, known_change};
use crate::compare::{Input, inputs};
use crate::estimate::Interval;
use crate::interval::count;

pub(super) use self::refused::are_apart;
pub use self::refused::{AbDiffers, AbRefused};

/// One of the two runs.
#[derive(Debug, Clone, Copy)]
pub struct AbSide<'a> {
    /// What is known of it.
    pub header: &'a RunHeader,
    /// What is concluded of it.
    pub analysis: &'a AbAnalysis,
}

/// Two runs compared: `a`, and `b` against it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbComparison {
    /// Id of the first run.
    pub a: String,
    /// Id of the second.
    pub b: String,
    /// Smallest difference that matters, as a fraction: the larger of the two runs'.
    pub delta: f64,
    /// Changes that the simultaneous intervals cover together (J).
    pub claims: u32,
    /// What differs between the runs besides what was measured.
    pub inputs: Vec<Input>,
    /// By setting of both runs, in the order of the first.
    pub settings: Vec<AbSettingChanges>,
    /// What one of the runs does not have.
    pub missing: Vec<AbMissingPart>,
    /// What takes trust from the whole comparison.
    pub warnings: Vec<AbWarning>,
}

/// One setting of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbSettingChanges {
    /// The values of parameters.
    pub setting: AbSetting,
    /// By arm and quantity.
    pub changes: Vec<AbChange>,
}

/// How an arm's change against the baseline differs between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbChange {
    /// The arm's name in the first run, then in the second.
    pub arms: [String; 2],
    /// What is compared.
    pub quantity: AbQuantity,
    /// What was found in the first run, then in the second.
    pub sides: [AbStanding; 2],
    /// How much more it takes against the baseline in the second run.
    #[serde(flatten)]
    pub judged: AbJudgedChange,
}

/// A change from one run to another with what is concluded of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbJudgedChange {
    /// How much more the arm takes, as a fraction; `None` where a run has no number.
    pub change: Option<f64>,
    /// 95 % for this change alone.
    pub pointwise: Option<Interval>,
    /// 95 % for all changes that are looked at together, the one that verdicts use.
    pub simultaneous: Option<Interval>,
    /// What layout may explain, of both runs together, as a fraction; `None` where neither has
    /// any, and where both measured one file.
    pub layout_allowance: Option<f64>,
    /// The word.
    pub verdict: AbVerdict,
    /// The rule and its numbers.
    pub reason: AbChangeReason,
}

impl AbJudgedChange {
    /// Whether it is beyond the threshold, whatever the cause.
    pub fn is_beyond(&self) -> bool {
        matches!(self.verdict, AbVerdict::Slower | AbVerdict::Faster | AbVerdict::Build)
    }
}

/// An arm against the baseline in one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbStanding {
    /// Units that have both.
    pub units: u32,
    /// The change; `None` without one.
    pub change: Option<f64>,
    /// Interval of 95 % for it alone.
    pub pointwise: Option<Interval>,
    /// What the run by itself concludes; `None` where it has no contrast.
    pub verdict: Option<AbVerdict>,
}

/// The rule behind a verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AbChangeReason {
    /// One of a single run, applied to the change.
    Rule(AbReason),
    /// A run whose numbers cannot be used, the first run's reason before the second's.
    Unusable {
        /// By run; `None` for one that is not at fault.
        unusable: [Option<AbUnusable>; 2],
    },
}

/// Why a run says nothing of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum AbUnusable {
    /// Copies of one program differ.
    CopiesDiffer {
        /// The arm, by its place; it may be the baseline.
        of: usize,
    },
    /// A program works between its turns.
    WorksBetween {
        /// The arm, by its place; it may be the baseline.
        of: usize,
    },
    /// Something was not measured.
    Missing {
        /// What.
        why: AbMissingWhy,
    },
    /// There are fewer units than a verdict takes.
    TooFew {
        /// Units.
        units: u32,
        /// As many as it takes.
        least: u32,
    },
    /// So few have no interval at this level.
    NoInterval {
        /// Units.
        units: u32,
    },
}

/// What one of the runs alone has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbMissingPart {
    /// Whether that is the second run.
    pub is_b: bool,
    /// The setting; `None` for an arm.
    pub setting: Option<AbSetting>,
    /// The arm; `None` for a setting.
    pub arm: Option<String>,
}

/// What takes trust from a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum AbWarning {
    /// Both are one run.
    SameRun,
    /// A run was interrupted.
    CutShort {
        /// Whether it is the second.
        is_b: bool,
    },
    /// A run has not ended, or was killed.
    NotEnded {
        /// Whether it is the second.
        is_b: bool,
    },
}

/// Compares the second run with the first.
///
/// Errors: runs whose ratios are not to the same baseline, or that have nothing in common.
pub fn compare(a: &AbSide<'_>, b: &AbSide<'_>) -> Result<AbComparison, AbRefused> {
    let common = refused::common(a, b)?;
    let cells = common.cells.len();
    let claims = count(cells * common.arms.len() * common.judged.len()).max(1);
    let rules = Rules {
        delta: a.header.plan.delta.max(b.header.plan.delta).max(0.0),
        claims,
        is_one_run: is_one_run(a, b),
    };
    let settings = common.cells.iter().map(|&cells| {
        let arms = common.arms.iter();
        let all =
            arms.flat_map(|arms| common.judged.iter().map(move |&quantity| (*arms, quantity)));
        let pair = Pair { sides: [*a, *b], cells };
        AbSettingChanges {
            setting: cells[0].setting.clone(),
            changes: all.map(|(arms, quantity)| pair.change(arms, quantity, &rules)).collect(),
        }
    });
    Ok(AbComparison {
        a: a.header.id.clone(),
        b: b.header.id.clone(),
        delta: rules.delta,
        claims,
        inputs: inputs::of_runs([a.header, b.header], [&asked(a.header), &asked(b.header)]),
        settings: settings.collect(),
        missing: missing(a, b, &common.arms),
        warnings: warnings(a, b),
    })
}

impl AbComparison {
    /// Every change of every setting.
    pub fn changes(&self) -> impl Iterator<Item = &AbChange> {
        self.settings.iter().flat_map(|setting| &setting.changes)
    }

    /// Whether something is SLOWER in the second run.
    pub fn has_slower(&self) -> bool {
        self.changes().any(|change| change.judged.verdict == AbVerdict::Slower)
    }

    /// Whether anything could be compared at all.
    pub fn is_usable(&self) -> bool {
        self.changes().any(|change| change.judged.verdict != AbVerdict::Invalid)
    }
}

/// What holds for every change of a comparison.
pub(super) struct Rules {
    pub(super) delta: f64,
    pub(super) claims: u32,
    /// Whether both sides are one run, whose trials differ by nothing.
    pub(super) is_one_run: bool,
}

impl Rules {
    /// The chance with which an interval may miss.
    pub(super) fn error(&self) -> f64 {
        0.05 / f64::from(self.claims)
    }
}

/// One setting in both runs.
pub(super) struct Pair<'a> {
    pub(super) sides: [AbSide<'a>; 2],
    pub(super) cells: [&'a AbCell; 2],
}

impl Pair<'_> {
    /// How an arm's change differs between the runs.
    fn change(&self, arms: [usize; 2], quantity: AbQuantity, rules: &Rules) -> AbChange {
        AbChange {
            arms: [0, 1].map(|side| name(&self.sides[side], arms[side])),
            quantity,
            sides: self.contrasts(arms, quantity).map(standing),
            judged: self.judged(arms, quantity, rules),
        }
    }

    fn contrasts(&self, arms: [usize; 2], quantity: AbQuantity) -> [Option<&AbContrast>; 2] {
        [0, 1].map(|side| self.cells[side].judgement.contrast(arms[side], quantity))
    }

    pub(super) fn judged(
        &self,
        arms: [usize; 2],
        quantity: AbQuantity,
        rules: &Rules,
    ) -> AbJudgedChange {
        let contrasts = self.contrasts(arms, quantity);
        let (error, both) = (rules.error(), (contrasts[0], contrasts[1]));
        let between = |error| match both {
            (Some(a), Some(b)) if rules.is_one_run => nothing(a, b, error),
            (Some(a), Some(b)) => between(a, b, error),
            _ => None,
        };
        let layout_allowance = self.allowance(arms, contrasts);
        let bounds = Bounds { delta: rules.delta, allowance: layout_allowance };
        let unusable = [0, 1].map(|side| unusable(self.cells[side], arms[side], quantity, error));
        let (verdict, reason) = match (between(2.0 * error), between(error)) {
            (Some(one_sided), Some(interval)) if unusable == [None, None] => {
                let noise = |side: usize| noise(self.cells[side], (arms[side], quantity), rules);
                let mut sides = if rules.is_one_run { 0..0 } else { 0..2 };
                let noise = sides.find_map(noise);
                let (verdict, reason) = bounds.conclude([one_sided, interval], noise);
                (verdict, AbChangeReason::Rule(reason))
            }
            _ => (AbVerdict::Invalid, AbChangeReason::Unusable { unusable }),
        };
        let centres = contrasts.map(|contrast| contrast.and_then(|of| of.sample.centre()));
        let ln = centres[0].zip(centres[1]).map(|(a, b)| b - a);
        AbJudgedChange {
            change: ln.and_then(known_change),
            pointwise: between(0.05).map(changes),
            simultaneous: between(error).map(changes),
            layout_allowance,
            verdict,
            reason,
        }
    }

    /// On one processor and kernel the baseline's layout weighs the same in both runs and cancels,
    /// which leaves that of one file against another, as in a single run. Elsewhere it does not,
    /// and the allowances of both add. One file in both was not linked anew.
    fn allowance(&self, arms: [usize; 2], contrasts: [Option<&AbContrast>; 2]) -> Option<f64> {
        let file =
            |side: usize| self.sides[side].header.ab_program(&self.cells[side].setting, arms[side]);
        if file(0).zip(file(1)).is_some_and(|(a, b)| a.sha256 == b.sha256) {
            return None;
        }
        let own = contrasts.into_iter().flatten().filter_map(|contrast| contrast.layout_allowance);
        match is_one_machine(self.sides.map(|side| side.header)) {
            true => own.reduce(f64::max),
            false => own.reduce(|a, b| a + b),
        }
    }
}

/// Whether both runs were on one model of processor and under one kernel, as far as is known.
pub(super) fn is_one_machine(headers: [&RunHeader; 2]) -> bool {
    let [a, b] = headers.map(|header| {
        [("cpu", "model"), ("kernel", "release")]
            .map(|(group, name)| header.host.known(group, name))
    });
    a == b && a.iter().all(Option::is_some)
}

/// Why a run says nothing of an arm, where that is so, at this chance of an interval to miss.
pub(super) fn unusable(
    cell: &AbCell,
    arm: usize,
    quantity: AbQuantity,
    error: f64,
) -> Option<AbUnusable> {
    let Some(contrast) = cell.judgement.contrast(arm, quantity) else {
        let mut missing = cell.judgement.missing.iter();
        let own = missing.find(|missing| (missing.arm, missing.quantity) == (arm, quantity));
        let why = own.map_or(AbMissingWhy::OfArm, |missing| missing.why);
        return Some(AbUnusable::Missing { why });
    };
    let units = contrast.units;
    match contrast.reason {
        AbReason::CopiesDiffer { of, .. } => Some(AbUnusable::CopiesDiffer { of }),
        AbReason::WorksBetween { of, .. } => Some(AbUnusable::WorksBetween { of }),
        _ if units < AB_UNITS_MIN => Some(AbUnusable::TooFew { units, least: AB_UNITS_MIN }),
        _ => match contrast.sample.interval(error) {
            Some(interval) if is_finite(interval) => None,
            _ => Some(AbUnusable::NoInterval { units }),
        },
    }
}

/// Copies in a run that are not known to be equal within the threshold.
pub(super) fn noise(cell: &AbCell, own: (usize, AbQuantity), rules: &Rules) -> Option<AbNoise> {
    let (arm, quantity) = own;
    let copies = cell.judgement.copies.iter();
    let mut own = copies
        .filter(|copies| copies.quantity == quantity && (copies.arm == 0 || copies.arm == arm));
    own.find_map(|copies| noise_in(copies.arm, copies.sample.interval(rules.error()), rules.delta))
}

/// The interval of the second's logarithm less the first's, that misses with this chance.
fn between(a: &AbContrast, b: &AbContrast, error: f64) -> Option<Interval> {
    let (centre_a, centre_b) = (a.sample.centre()?, b.sample.centre()?);
    let (of_a, of_b) = (a.sample.interval(error)?, b.sample.interval(error)?);
    let difference = centre_b - centre_a;
    let interval = Interval {
        low: difference - (centre_b - of_b.low).hypot(of_a.high - centre_a),
        high: difference + (of_b.high - centre_b).hypot(centre_a - of_a.low),
    };
    is_finite(interval).then_some(interval)
}

/// The same of a run against itself: nothing, and surely.
fn nothing(a: &AbContrast, b: &AbContrast, error: f64) -> Option<Interval> {
    between(a, b, error).map(|_| Interval { low: 0.0, high: 0.0 })
}

pub(super) fn is_finite(interval: Interval) -> bool {
    interval.low.is_finite() && interval.high.is_finite()
}

pub(super) fn standing(contrast: Option<&AbContrast>) -> AbStanding {
    AbStanding {
        units: contrast.map_or(0, |contrast| contrast.units),
        change: contrast.and_then(|contrast| contrast.change),
        pointwise: contrast.and_then(|contrast| contrast.pointwise),
        verdict: contrast.map(|contrast| contrast.verdict),
    }
}

pub(super) fn axes<'a>(side: &AbSide<'a>) -> Option<&'a AbAxes> {
    side.header.plan.ab()
}

pub(super) fn name(side: &AbSide<'_>, arm: usize) -> String {
    let program = axes(side).and_then(|axes| axes.programs.get(arm));
    program.map(|program| program.name.clone()).unwrap_or_default()
}

/// What a plan asks for besides what must be the same in both.
fn asked(header: &RunHeader) -> Vec<(String, String)> {
    let plan = &header.plan;
    let judged = plan
        .ab()
        .map(|axes| axes.judged.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    let stated = [
        ("threshold", Some(format!("{}%", plan.delta * 100.0))),
        ("budget", Some(plan.budget.to_string())),
        ("judge", judged),
        ("cpus", plan.cpus.as_ref().map(|cpus| format!("{cpus:?}"))),
    ];
    let stated = stated.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    stated.collect()
}

/// Settings and arms that one run alone has.
fn missing(a: &AbSide<'_>, b: &AbSide<'_>, paired: &[[usize; 2]]) -> Vec<AbMissingPart> {
    let one = |is_b: bool| {
        let (own, other) = if is_b { (b, a) } else { (a, b) };
        let other = &other.analysis.cells;
        let settings = own.analysis.cells.iter().map(|cell| &cell.setting);
        let settings = settings.filter(|own| other.iter().all(|cell| cell.setting != **own));
        let arms = 1..axes(own).map_or(0, |axes| axes.programs.len());
        let arms = arms.filter(|arm| paired.iter().all(|pair| pair[usize::from(is_b)] != *arm));
        let setting =
            |setting: &AbSetting| AbMissingPart { is_b, setting: Some(setting.clone()), arm: None };
        let arm = |arm| AbMissingPart { is_b, setting: None, arm: Some(name(own, arm)) };
        settings.map(setting).chain(arms.map(arm)).collect::<Vec<_>>()
    };
    [one(false), one(true)].concat()
}

/// Whether a run is held against itself.
fn is_one_run(a: &AbSide<'_>, b: &AbSide<'_>) -> bool {
    a.header.id == b.header.id && a.analysis == b.analysis
}

fn warnings(a: &AbSide<'_>, b: &AbSide<'_>) -> Vec<AbWarning> {
    let of = |(side, is_b): (&AbSide<'_>, bool)| match &side.header.end {
        None => Some(AbWarning::NotEnded { is_b }),
        Some(end) => end.stopped_by.is_cut_short().then_some(AbWarning::CutShort { is_b }),
    };
    let same = is_one_run(a, b).then_some(AbWarning::SameRun);
    same.into_iter().chain([(a, false), (b, true)].into_iter().filter_map(of)).collect()
}

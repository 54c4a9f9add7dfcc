//! What is concluded of the study `ab`: every arm against the first, which is the baseline.
//!
//! [`AbTrials::of`] takes what is judged from stored trials, [`judge`] gives the verdicts, and
//! [`AbUnit::next_look`] says after how many units to ask again.
//!
//! In loop mode the unit is the trial, whose processes and copies of files are fresh. Its value
//! is the mean, over the pairs of copies {A, A'} × {B, B'}, of the median over rounds of the
//! paired ln ratio, and intervals are those of t. In command mode every round is fresh processes,
//! and its values are the ln ratios of the pairs (A, B) and (A', B'). The centre is the median of
//! all pairs, and intervals are exact order statistics (sign test), because the noise of whole
//! processes has heavy tails.
//!
//! The two pairs of a round count as two: a round runs its programs in random order, so that
//! without a difference each pair falls either way with one half, whatever the other does and
//! however the machine's speed wanders within the round. The mean of both would be as precise
//! in quiet rounds, and wrong twice as often in others. A copy that the other side has not is not
//! used: the mean of A and A' against B alone lies off 0 where noise has one long tail.
//!
//! A run is looked at several times, and may end at each look. After Haybittle (Repeated
//! assessment of results in clinical trials of cancer treatment, Br J Radiol 44, 1971) and Peto
//! and others (Br J Cancer 34, 1976) all looks but the last ask so much that the last costs hardly
//! more than a single one would: see [`AbLook`].

mod compare;
mod findings;
mod history;
mod links;
mod power;
mod run;
mod sample;
mod trials;
mod trimmed;
mod verdict;

#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use iolens_model::ab::{AbMode, AbQuantity};
use serde::Serialize;

pub use self::compare::{
    AbChange, AbChangeReason, AbComparison, AbDiffers, AbJudgedChange, AbMissingPart, AbRefused,
    AbSettingChanges, AbSide, AbStanding, AbUnusable, AbWarning, compare,
};
pub use self::findings::{
    AbContrast, AbCopies, AbJudgement, AbMissing, AbMissingWhy, AbNoise, AbPower, AbReason,
    AbVerdict,
};
pub use self::history::{
    AbHistory, AbJoined, AbJoinedSeries, AbLeftOut, AbLeftOutWhy, AbMember, AbNamed, AbRow,
    AbSeries, AbStep, AbWanted, AbWantedBaseline, history, join,
};
pub use self::links::{AbLinkMean, AbLinkSide, AbLinks};
pub use self::run::{
    AbAnalysis, AbArmFigures, AbByteRate, AbCallRate, AbCell, analyse, at, passes_ns,
};
use self::sample::Sample;
pub use self::trials::{AbArmRounds, AbCost, AbThrottled, AbTrial, AbTrials};
use self::verdict::Question;
use crate::estimate::Interval;

/// Units under which there is no verdict.
pub const AB_UNITS_MIN: u32 = 12;

/// Links of a side under which there is no verdict: their spread would not be known.
pub const AB_LINKS_MIN: u32 = 4;

/// What relinking one source may cost, as a fraction of user time: more than it has ever shown. Of
/// 43 pairs of links of SQLite (shuffled sections, padding before the code) on an EPYC (Zen 4) the
/// largest differed by 4.6 %, of 28 pairs (padding) on a Xeon (Sapphire Rapids) by 5.9 %.
pub const AB_LAYOUT_SHARE: f64 = 0.07;

iolens_model::words! {
    /// What counts as one independent value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AbUnit {
        /// A trial.
        Trial = "trial",
        /// A round.
        Round = "round",
    }
}

impl AbUnit {
    /// That of a mode.
    pub fn of(mode: AbMode) -> AbUnit {
        match mode {
            AbMode::Loop => AbUnit::Trial,
            AbMode::Command => AbUnit::Round,
        }
    }

    /// Units at the first look after so many: 12, 24, 48, … trials; 30, 60, 120, … rounds.
    pub fn next_look(self, units: u32) -> u32 {
        let mut look: u32 = match self {
            AbUnit::Trial => 12,
            AbUnit::Round => 30,
        };
        while look <= units && look < u32::MAX {
            look = look.saturating_mul(2);
        }
        look
    }
}

/// Which look at a run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbLook {
    /// One after which the run may go on: intervals of 99.9 %, EQUIVALENT by 99.8 %.
    Early,
    /// The end of the budget: intervals of 95.5 %, EQUIVALENT by 91 %. Five early looks and the
    /// last exclude no change somewhere in at most 5 % of the runs without one.
    Last,
}

impl AbLook {
    /// The chance that a two-sided interval misses, before it is divided among the claims.
    fn error(self) -> f64 {
        match self {
            AbLook::Early => 0.001,
            AbLook::Last => 0.045,
        }
    }
}

/// What is to be judged, and by what.
#[derive(Debug, Clone, Copy)]
pub struct AbInput<'a> {
    /// What counts as one value.
    pub unit: AbUnit,
    /// Whether programs are several links each, over which intervals are taken.
    pub by_link: bool,
    /// What was measured in one cell.
    pub trials: &'a [AbTrial],
    /// By arm, the baseline first: what layout may explain, from [`layout_allowance`]. The
    /// baseline's is not used, and none where intervals are taken over links.
    pub allowances: &'a [Option<f64>],
    /// By arm: CPU time between its slices, as a part of that within them; none of those that are
    /// left out.
    pub idle: &'a [f64],
    /// What is judged.
    pub judged: &'a [AbQuantity],
    /// Smallest difference that matters, as a fraction above 0; nothing is EQUIVALENT within 0.
    pub delta: f64,
    /// Verdicts of the whole run (J): compared arms × quantities × cells. The chance of an error
    /// is divided among them (Bonferroni).
    pub claims: u32,
    /// Units that the whole budget would give; `None` where that is not known.
    pub budget_units: Option<u32>,
}

/// How much slower an arm may be by where its code lies, as a fraction of its time: 7 % of the
/// share that is user time. `None` where the two arms are not different ELF files: then nothing
/// of them was linked anew.
///
/// `user_share` is the part of the CPU time that is user time, 0 to 1; unknown, it may be all.
pub fn layout_allowance(are_different_elf: bool, user_share: Option<f64>) -> Option<f64> {
    let share = user_share.filter(|share| (0.0..=1.0).contains(share)).unwrap_or(1.0);
    are_different_elf.then_some(AB_LAYOUT_SHARE * share)
}

/// Judges every compared arm by every quantity.
pub fn judge(input: &AbInput<'_>, look: AbLook) -> AbJudgement {
    // What is below 0, or no number, is 0.
    let input = &AbInput { delta: input.delta.max(0.0), ..*input };
    let arms = 0..input.allowances.len();
    let mut judgement = AbJudgement { look, contrasts: vec![], copies: vec![], missing: vec![] };
    for &quantity in input.judged {
        let copies = arms.clone().filter_map(|arm| verdict::check(input, arm, quantity));
        let copies: Vec<AbCopies> = copies.collect();
        for arm in arms.clone().skip(1) {
            let sample = Sample::of_arms(input, arm, quantity);
            if sample.units == 0 {
                let why = why_missing(input, arm, quantity);
                judgement.missing.push(AbMissing { arm, quantity, why });
                continue;
            }
            let question = Question { input, look, arm, quantity, sample: &sample };
            judgement.contrasts.push(question.answer(&copies));
        }
        judgement.copies.extend(copies);
    }
    judgement
}

fn why_missing(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> AbMissingWhy {
    let has = |arm| input.trials.iter().any(|trial| trial.has(arm, quantity));
    let alone = AbInput { by_link: false, ..*input };
    match (has(0), has(arm)) {
        (false, _) => AbMissingWhy::OfBaseline,
        (true, false) => AbMissingWhy::OfArm,
        _ if Sample::of_arms(&alone, arm, quantity).units > 0 => AbMissingWhy::OfLinks,
        (true, true) => AbMissingWhy::NeverTogether,
    }
}

/// The change that a difference of logarithms is.
fn change(ln: f64) -> f64 {
    ln.exp_m1()
}

/// The same, where it is a number.
fn known_change(ln: f64) -> Option<f64> {
    Some(change(ln)).filter(|change| change.is_finite())
}

/// The same of both ends of an interval.
fn changes(ln: Interval) -> Interval {
    ln.map(change)
}

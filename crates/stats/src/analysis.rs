//! What the analysis of a run says: plain data for reports, derived on read
//! and never stored.

mod curves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::family::{Condition, Family};
use iolens_model::outcome::{MultishotCounts, Status};
use serde::Serialize;

pub use self::curves::{
    CostModel, Crossing, Crossover, CrossoverPoint, CrossoverShape, Drift, Extreme, ExtremeKind,
    Plateau, PlateauAxis, ReadPlateau, RemovedCopy, Unexpected,
};
pub use crate::estimate::{Estimate, Interval, Verdict};
pub use crate::figures::servers::{
    CpuOf, CpuShares, EndFigure, EndFigures, EndMetric, Limits, Saturated, ServerFigures,
};
pub use crate::figures::{Figures, ZerocopyFigures};
pub use crate::latency::LatencyFigures;
pub use crate::quantity::Quantity;
use crate::remark::Check;
use crate::remark::VerdictReason;
use crate::remark::{Remark, UnequalSlices, Warning};
pub use crate::student::Neighbours;
pub use crate::told::{PmuPlace, TimeSpent, Told, ToldFact};

/// The analysis of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Complete passes the figures rest on.
    pub passes: u32,
    /// Smallest difference that matters, as a fraction.
    pub delta: f64,
    /// Comparisons that the simultaneous intervals cover together (J): of arms with the
    /// baseline, of its copy in each group of arms, and of every two arms with each other.
    pub contrasts: u32,
    /// Cells, in the order of the plan.
    pub cells: Vec<CellAnalysis>,
    /// What the self-checks say about the run.
    pub self_check: SelfCheck,
    /// Where one arm overtakes another along the sizes, per curve and pair.
    pub crossovers: Vec<Crossover>,
    /// Where bands were looked at anew: by the run itself if it confirms another, else by the
    /// runs that confirm it.
    pub crossings: Vec<Crossing>,
    /// The fit t = a + b·n of each arm's curve with at least four sizes.
    pub cost_models: Vec<CostModel>,
    /// What the copy into the staging buffer costs, per cell that can tell.
    pub removed_copies: Vec<RemovedCopy>,
    /// The best figures of the run, and where they are.
    pub extremes: Vec<Extreme>,
    /// From where on more bytes or more threads no longer help.
    pub plateaus: Vec<Plateau>,
    /// The same of what is read of a file; empty in other studies than `file`.
    pub read_plateaus: Vec<ReadPlateau>,
    /// The cell farthest from its cost model; `None` where no curve has one.
    pub unexpected: Option<Unexpected>,
    /// The slope of single-arm figures over the run; `None` with too few trials.
    pub drift: Option<Drift>,
    /// How much trials resemble those of the passes before them; `None` with too few passes.
    pub neighbours: Option<Neighbours>,
    /// Trials that are not used, by reason.
    pub rejected: Vec<Rejected>,
    /// Warnings about the whole run.
    pub warnings: Vec<Warning>,
    /// What all trials told besides.
    #[serde(skip)]
    pub told: Arc<Told>,
    /// The models of a run of servers by their kinds.
    #[serde(skip)]
    pub kinds: Arc<Kinds>,
}

/// The analysis of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellAnalysis {
    /// Which cell.
    pub cell: Cell,
    /// Trials whose numbers are used.
    pub trials_used: u32,
    /// Trials that were started.
    pub trials_started: u32,
    /// Arms: the baseline first, then the compared ones in the plan's order,
    /// then the self-check, then controls.
    pub arms: Vec<ArmAnalysis>,
    /// The copy of the baseline in each group of arms, those that share their trials; one where
    /// all do, none in a run without a copy. The copy's own row has the widest.
    pub checks: Vec<GroupCheck>,
    /// What contrasts and pairs compare.
    pub compared: Quantity,
    /// Every two compared arms against each other; with the baseline each has
    /// its contrast.
    pub pairs: Vec<PairContrast>,
    /// The same of CPU time; empty in studies where that is not compared.
    pub cpu_pairs: Vec<PairContrast>,
    /// Remarks on the cell's numbers.
    pub remarks: Vec<Remark>,
}

impl CellAnalysis {
    /// The arm of this label.
    pub fn arm(&self, label: &str) -> Option<&ArmAnalysis> {
        self.arms.iter().find(|arm| arm.arm.label == label)
    }

    /// What the others are compared with.
    pub fn baseline(&self) -> Option<&ArmAnalysis> {
        self.arms.iter().find(|arm| arm.arm.role == Role::Baseline)
    }

    /// The cell as if CPU time were what it compares: who is cheapest by that is decided by
    /// the same rules.
    pub fn by_cpu(&self) -> CellAnalysis {
        let arm =
            |arm: &ArmAnalysis| ArmAnalysis { contrast: arm.cpu_contrast.clone(), ..arm.clone() };
        let check = |check: &GroupCheck| GroupCheck {
            contrast: check.cpu_contrast.clone(),
            ..check.clone()
        };
        CellAnalysis {
            arms: self.arms.iter().map(arm).collect(),
            checks: self.checks.iter().map(check).collect(),
            pairs: self.cpu_pairs.clone(),
            compared: Quantity::cpu_of(&self.cell).unwrap_or(self.compared),
            ..self.clone()
        }
    }

    /// The trials that a comparison in this cell rests on, the least and the most; `None` where
    /// nothing is compared. A cell with several groups of arms has more trials than any of them.
    pub fn compared_trials(&self) -> Option<(u32, u32)> {
        let compared = self.arms.iter().filter(|arm| arm.arm.role != Role::SelfCheck);
        let n = compared.filter_map(|arm| Some((arm.contrast.as_ref()?.n, arm)));
        let n = n.filter(|(_, arm)| arm.status == Status::Ok).map(|(n, _)| (n, n));
        n.reduce(|(least, most), (n, _)| (least.min(n), most.max(n)))
    }
}

/// The copy of the baseline among the arms of one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupCheck {
    /// Labels of the group, without the baseline and its copy.
    pub arms: Vec<String>,
    /// Against the baseline: the noise floor of these arms.
    pub contrast: Option<Contrast>,
    /// The same of CPU time; `None` where that is not compared.
    pub cpu_contrast: Option<Contrast>,
}

/// The analysis of one arm in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmAnalysis {
    /// Which arm.
    pub arm: Arm,
    /// What its primitive is listed with; `None` where the run does not say.
    pub family: Option<Family>,
    /// What its primitive needs of a message; `None` where it can send any.
    pub condition: Option<Condition>,
    /// `ok`, or why there are no numbers.
    pub status: Status,
    /// The reason, for every status but `ok`.
    pub reason: Option<String>,
    /// The check that refuses it; `None` where the engine or the kernel did.
    pub check: Option<Check>,
    /// Single-arm figures; `None` where there is no usable trial.
    pub figures: Option<Figures>,
    /// The ratio to the baseline; `None` for the baseline and for controls.
    pub contrast: Option<Contrast>,
    /// The same of CPU time, of servers per request, of both ends of a connection per
    /// message, whatever the cell compares; `None` in studies where that is not compared.
    pub cpu_contrast: Option<Contrast>,
    /// The same ratio from isolated trials, where there are any.
    pub isolated: Option<Contrast>,
    /// That slices are not as long as the baseline's, and what that may do to the ratio; `None`
    /// where it is too little to be said.
    pub unequal: Option<UnequalSlices>,
    /// CPU copies of each payload byte at the sender.
    pub copies_sender: Option<f64>,
    /// CPU copies of each payload byte, end to end.
    pub copies_end_to_end: Option<f64>,
    /// Zero-copy sends over all used trials; `None` for arms that make none.
    pub zerocopy: Option<ZerocopyFigures>,
    /// Share of received bytes that were mapped, 0 to 1; `None` for receivers that map none.
    pub mapped_share: Option<f64>,
    /// Multishot receives over all used trials; `None` for receivers that make none.
    pub multishot: Option<MultishotCounts>,
    /// Round-trip times pooled over all used trials; `None` without requests. Of a server
    /// from when each request was due.
    pub latency: Option<LatencyFigures>,
    /// What a server was offered and spent; `None` in other studies.
    pub server: Option<ServerFigures>,
}

impl ArmAnalysis {
    /// The arm's label for tables and figures: what the kernel copied after
    /// all says so.
    pub fn shown_label(&self) -> String {
        match self.zerocopy.is_some_and(|zerocopy| zerocopy.is_copied()) {
            true => format!("{} (copied)", self.arm.label),
            false => self.arm.label.clone(),
        }
    }

    /// One of its figures.
    pub fn figure(&self, of: impl Fn(&Figures) -> Option<Estimate>) -> Option<Estimate> {
        self.figures.as_ref().and_then(of)
    }

    /// Time over messages, ns, or over what else is the unit of its study.
    pub fn time(&self) -> Option<Estimate> {
        self.figure(|figures| Some(figures.ns_per_message))
    }

    /// Whether its numbers may be held against those of other arms: they are usable, and where
    /// there is a verdict it is about the arm.
    pub fn is_ranked(&self) -> bool {
        let of_arm = |contrast: &Contrast| contrast.verdict.is_ranked();
        self.status == Status::Ok && self.contrast.as_ref().is_none_or(of_arm)
    }

    /// The conclusion about this arm: its contrast's, or INVALID where it was
    /// to be compared and has no numbers; `None` for the baseline and controls.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.arm.role {
            Role::Baseline | Role::Control => None,
            Role::Compared | Role::SelfCheck => {
                Some(self.contrast.as_ref().map_or(Verdict::Invalid, |contrast| contrast.verdict))
            }
        }
    }
}

/// An arm against the baseline: time per message (or what else is compared) of the
/// baseline over that of the arm, so above 1 the arm is faster (or costs less).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// Geometric mean over trials of the trial's typical (median) ratio.
    pub ratio: f64,
    /// Trials.
    pub n: u32,
    /// Standard deviation over trials of the ln ratio; `None` under two.
    pub sd_ln: Option<f64>,
    /// Pointwise 95 % interval, the one that is shown.
    pub pointwise: Option<Interval>,
    /// Pointwise 90 % interval, for equivalence.
    pub pointwise90: Option<Interval>,
    /// Simultaneous 95 % interval over all contrasts and all pairs of the run, the one
    /// that verdicts use.
    pub simultaneous: Option<Interval>,
    /// The ratio of total times, and its interval: where it leaves the
    /// typical ratio's interval, a tail lives.
    pub total_ratio: Estimate,
    /// Whether the total ratio and the typical ratio disagree beyond their
    /// intervals.
    pub tail: bool,
    /// The conclusion.
    pub verdict: Verdict,
    /// The rule and the numbers behind it.
    pub reason: VerdictReason,
    /// For an undecided contrast, about how many trials would decide it.
    pub trials_needed: Option<u32>,
}

impl Contrast {
    /// Half-width of the pointwise interval as a fraction of the ratio:
    /// exp(half-width of ln) − 1. `None` without an interval.
    pub fn half_width(&self) -> Option<f64> {
        self.pointwise.map(|interval| interval.half_width())
    }
}

/// Two compared arms against each other, paired by trial through the baseline
/// that both were measured with, or by pass through the baselines of both where they
/// share no trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairContrast {
    /// Label of an arm.
    pub first: String,
    /// Label of a later one.
    pub second: String,
    /// Time per message (or what else is compared) of the second over that of the
    /// first: above 1 the first is faster.
    pub ratio: f64,
    /// Trials.
    pub n: u32,
    /// Simultaneous 95 % interval over all contrasts and all pairs of the run.
    pub simultaneous: Option<Interval>,
}

impl PairContrast {
    /// The interval of `label` against the other arm; above 1 it is faster.
    pub fn interval_of(&self, label: &str) -> Option<Interval> {
        let of_first = self.simultaneous?;
        Some(if label == self.first { of_first } else { of_first.inverse() })
    }
}

/// What the hidden second copies of the baseline say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfCheck {
    /// Self-checks with an interval: one for each group of arms of each cell.
    pub checks: u32,
    /// Those of them that count, which have at least five trials: an interval over fewer
    /// covers less often than it says.
    pub counted: u32,
    /// How many of these exclude 1 pointwise; about 5 % do by chance.
    pub excluding_one: u32,
    /// More than this many is beyond the 99 % binomial bound.
    pub bound: u32,
    /// Median over all checks of the half-width, as a fraction: the noise floor.
    pub floor_median: Option<f64>,
    /// The widest half-width.
    pub floor_widest: Option<f64>,
    /// Those that count and were called FASTER or SLOWER; must be zero.
    pub judged: u32,
}

impl SelfCheck {
    /// Whether more self-checks exclude 1 than chance allows.
    pub fn untrustworthy(&self) -> bool {
        self.excluding_one > self.bound
    }

    /// How many found a difference where there is none; `None` where that is no more than chance.
    pub fn failed(&self) -> Option<u32> {
        match (self.untrustworthy(), self.judged) {
            (true, _) => Some(self.excluding_one),
            (false, 0) => None,
            (false, judged) => Some(judged),
        }
    }
}

/// An arm of a trial that is kept in the store and not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Pass.
    pub pass: u32,
    /// Cell.
    pub cell: String,
    /// Arm, or null for the whole trial.
    pub arm: Option<String>,
    /// `failed`, `invalid`, `skipped` or `interrupted`.
    pub status: Status,
    /// The check that refuses it; `None` where the engine or the kernel did.
    pub check: Option<Check>,
    /// In its words, with the numbers.
    pub reason: String,
}

iolens_model::words! {
    /// The two kinds of models, each of which is offered a rate of its own.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        /// Connections share threads.
        Shared = "connections share threads",
        /// Each connection has a process or a thread.
        Alone = "a process or a thread for each connection",
    }
}

/// The models of a run of servers by their kinds; empty in other studies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kinds {
    /// Models that make something for each connection, by their ids.
    pub(crate) makers: BTreeSet<String>,
    /// The analysis of the trials of one kind alone, in cells that offer a rate; empty where
    /// all models are of one kind.
    pub of_kind: Vec<(Kind, Analysis)>,
    /// Requests per second that were offered: the least and the most by cell, and by what
    /// the trials were about.
    pub(crate) offered: BTreeMap<(Cell, Option<Kind>), (f64, f64)>,
}

// Whether a run has shown anything.

impl Analysis {
    /// The verdicts that answer what the user asked: all but the self-check's.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let compared = self.arms().filter(|arm| arm.arm.role == Role::Compared);
        compared.filter_map(ArmAnalysis::verdict)
    }

    /// Whether at least one contrast is not INVALID, or one row has numbers where there are
    /// no contrasts.
    pub fn is_usable(&self) -> bool {
        match self.verdicts().next() {
            None => self.arms().any(|arm| arm.status == Status::Ok && arm.figures.is_some()),
            Some(_) => self.verdicts().any(|verdict| verdict != Verdict::Invalid),
        }
    }

    /// Every arm of every cell.
    pub fn arms(&self) -> impl Iterator<Item = &ArmAnalysis> {
        self.cells.iter().flat_map(|cell| &cell.arms)
    }
}

#[cfg(test)]
mod tests {
    use crate::{analyse, fixture};

    #[test]
    fn a_run_is_usable_as_soon_as_one_contrast_is() {
        let mut run = fixture::passes(&[1.1; 12]);
        assert!(analyse(&run).is_usable());
        let refuse = |run: &mut iolens_model::run::Run, arm: usize| {
            for trial in &mut run.trials {
                trial.arms[arm].status = iolens_model::outcome::Status::Failed;
                trial.arms[arm].reason = Some("it broke".to_owned());
            }
        };
        refuse(&mut run, 1);
        assert!(!analyse(&run).is_usable(), "the only arm that is compared has failed");
        run.trials.clear();
        assert!(!analyse(&run).is_usable(), "there is nothing");
    }

    #[test]
    fn without_contrasts_a_row_with_numbers_is_enough() {
        let run = fixture::one_arm_trial(|_| {});
        let mut analysis = analyse(&run);
        assert!(analysis.is_usable());
        analysis.cells[0].arms[0].figures = None;
        assert!(!analysis.is_usable());
    }
}

//! Runs of `ab` beside one baseline file, as a series in time.
//!
//! Each run has a ratio to the baseline, measured in the same moments, so that the machine of that
//! day cancels before any change is looked for. A step is the change from one run to the next,
//! judged as `compare` judges two runs. Only runs that can be used by themselves are compared:
//! steps go over the others.
//!
//! Many small steps may add up to one that matters, and each be too small to be seen. So the newest
//! run is compared with the oldest as well. All steps and these are one family: the chance of an
//! error is divided among them (Bonferroni).
//!
//! Without one baseline file there may still be a chain: runs of which each has the program of the
//! one before as its baseline. Each of these is a step by itself, and their ratios multiply.

mod chain;
mod join;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iolens_model::ab::{AbProgramFacts, AbQuantity, AbSetting};
use iolens_model::run::RunHeader;
use serde::Serialize;

use super::compare::{
    AbJudgedChange, AbSide, AbStanding, AbUnusable, Pair, Rules, are_apart, name, standing,
    unusable,
};
use super::{AbAnalysis, AbCell};
use crate::interval::count;

pub use self::join::{
    AbJoined, AbJoinedSeries, AbLeftOut, AbLeftOutWhy, AbMember, AbWanted, AbWantedBaseline, join,
};

/// The runs of a database, as series.
#[derive(Debug, Clone, PartialEq)]
pub struct AbHistory {
    /// Changes that the simultaneous intervals cover together (J): the steps of all series, and
    /// the newest run of each against the oldest.
    pub claims: u32,
    /// Series in the order in which they begin.
    pub series: Vec<AbSeries>,
    /// Runs that are in none.
    pub left_out: Vec<AbLeftOut>,
}

/// Runs of one arm beside one baseline in one setting, or a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct AbSeries {
    /// Whether it is a chain.
    pub is_chain: bool,
    /// The baseline, as the newest run calls it; of a chain that of the oldest.
    pub baseline: AbNamed,
    /// The arm, as the newest run calls it.
    pub arm: AbNamed,
    /// The values of parameters, and how programs were measured.
    pub setting: AbSetting,
    /// What is compared.
    pub quantity: AbQuantity,
    /// Smallest difference that matters, as a fraction: the largest of the runs'.
    pub delta: f64,
    /// Older runs, which are not wanted.
    pub older: u32,
    /// A run each, the oldest first.
    pub rows: Vec<AbRow>,
    /// The newest usable run against the oldest, of a chain against its baseline; `None` where
    /// that is a step, and of a chain that has a gap.
    pub overall: Option<AbStep>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbNamed {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file; `None` where that is not stored.
    pub sha256: Option<String>,
    /// Its argument list.
    pub command: Vec<String>,
}

/// A run in a series.
#[derive(Debug, Clone, PartialEq)]
pub struct AbRow {
    /// Its id.
    pub run: String,
    /// The user's name for it.
    pub name: Option<String>,
    /// When it began, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// The machine's label.
    pub host: Option<String>,
    /// The arm.
    pub arm: AbNamed,
    /// The arm against the baseline; of a chain against that of the oldest run, without a verdict.
    pub standing: AbStanding,
    /// Why no other run is compared with this one.
    pub unusable: Option<AbUnusable>,
    /// Whether calibration has found slices of another length than in every usable run before,
    /// none of which this one can be compared with.
    pub is_apart: bool,
    /// What has changed since the last usable run that is not apart, in a chain against its own
    /// baseline; `None` of the first that is none of a chain, of what is apart and of what is
    /// unusable.
    pub step: Option<AbStep>,
}

/// A change from one run of a series to a later one.
#[derive(Debug, Clone, PartialEq)]
pub struct AbStep {
    /// The earlier run, by its row; `None` in a chain, where the later run has both programs.
    pub since: Option<usize>,
    /// Whether both ran one file of the arm; what that reads may differ.
    pub is_one_file: bool,
    /// How much more the arm takes.
    pub judged: AbJudgedChange,
}

impl AbSeries {
    /// The steps, each with its row.
    pub fn steps(&self) -> impl Iterator<Item = (&AbRow, &AbStep)> {
        self.rows.iter().filter_map(|row| Some((row, row.step.as_ref()?)))
    }
}

/// What is known of a run before its steps are judged.
struct Known<'a> {
    side: AbSide<'a>,
    cell: &'a AbCell,
    arm: usize,
    quantity: AbQuantity,
}

impl<'a> Known<'a> {
    fn program(&self, arm: usize) -> Option<&'a AbProgramFacts> {
        self.side.header.ab_program(&self.cell.setting, arm)
    }

    fn named(&self, arm: usize) -> AbNamed {
        let axes = self.side.header.plan.ab();
        let command = axes.and_then(|axes| axes.command(&self.cell.setting, arm));
        AbNamed {
            name: name(&self.side, arm),
            sha256: self.program(arm).map(|program| program.sha256.clone()),
            command: command.unwrap_or_default(),
        }
    }

    /// Why it is compared with no other run.
    fn unusable(&self) -> Option<AbUnusable> {
        unusable(self.cell, self.arm, self.quantity, 0.05)
    }

    fn row(&self) -> AbRow {
        let header = self.side.header;
        AbRow {
            run: header.id.clone(),
            name: header.name.clone(),
            started_unix_ns: header.started_unix_ns,
            host: header.host_label().map(str::to_owned),
            arm: self.named(self.arm),
            standing: standing(self.cell.judgement.contrast(self.arm, self.quantity)),
            unusable: self.unusable(),
            is_apart: false,
            step: None,
        }
    }
}

/// Judges what is joined, by the analyses of its runs; a run without one is passed over.
pub fn history(
    joined: &AbJoined,
    headers: &[RunHeader],
    analyses: &BTreeMap<usize, AbAnalysis>,
) -> AbHistory {
    let known = |series: &AbJoinedSeries| -> Vec<Known<'_>> {
        let known = series.members.iter().filter_map(|&AbMember { run, arm }| {
            let (header, analysis) = (headers.get(run)?, analyses.get(&run)?);
            let cell = analysis.cells.iter().find(|cell| cell.setting == series.setting)?;
            let side = AbSide { header, analysis };
            Some(Known { side, cell, arm, quantity: series.quantity })
        });
        known.collect()
    };
    let all: Vec<(&AbJoinedSeries, Vec<Known<'_>>)> =
        joined.series.iter().map(|series| (series, known(series))).collect();
    let claims = all.iter().map(|(series, runs)| match series.is_chain {
        false => Course::of(runs).claims(),
        true => {
            // All steps together are one more.
            let steps = usable(runs).count();
            steps + usize::from(steps > 1)
        }
    });
    let claims = count(claims.sum::<usize>()).max(1);
    let series = all.iter().filter_map(|(series, runs)| match series.is_chain {
        false => judged(series, runs, claims),
        true => chain::judged(series, runs, claims),
    });
    AbHistory { claims, series: series.collect(), left_out: joined.left_out.clone() }
}

/// The largest threshold of some runs.
fn widest_delta(runs: &[Known<'_>]) -> f64 {
    runs.iter().map(|run| run.side.header.plan.delta).fold(0.0, f64::max)
}

/// Runs that can be compared, by their places, the oldest first.
fn usable<'a>(runs: &'a [Known<'_>]) -> impl Iterator<Item = usize> + 'a {
    (0..runs.len()).filter(|&run| runs[run].unusable().is_none())
}

/// Which runs of a series are compared with which.
struct Course {
    /// Each usable run with the last one before that is not apart from it.
    since: Vec<(usize, Option<usize>)>,
    /// The oldest and the newest, where that is no step and they are not apart.
    whole: Option<[usize; 2]>,
}

impl Course {
    fn of(runs: &[Known<'_>]) -> Course {
        let usable: Vec<usize> = usable(runs).collect();
        let is_apart = |a: usize, b: usize| are_apart(&[runs[a].cell, runs[b].cell]);
        let since = usable.iter().enumerate().map(|(nth, &run)| {
            (run, usable[..nth].iter().copied().rfind(|&before| !is_apart(before, run)))
        });
        let since: Vec<_> = since.collect();
        let whole = match (usable.first(), since.last()) {
            (Some(&oldest), Some(&(newest, Some(before))))
                if before != oldest && !is_apart(oldest, newest) =>
            {
                Some([oldest, newest])
            }
            _ => None,
        };
        Course { since, whole }
    }

    fn claims(&self) -> usize {
        self.since.iter().filter_map(|(_, since)| *since).count()
            + usize::from(self.whole.is_some())
    }
}

fn judged(joined: &AbJoinedSeries, runs: &[Known<'_>], claims: u32) -> Option<AbSeries> {
    let newest = runs.last()?;
    let delta = widest_delta(runs);
    let rules = Rules { delta, claims, is_one_run: false };
    let step = |since: usize, to: usize| {
        let [from, until] = [&runs[since], &runs[to]];
        let pair = Pair { sides: [from.side, until.side], cells: [from.cell, until.cell] };
        let files = [from.program(from.arm), until.program(until.arm)];
        AbStep {
            since: Some(since),
            is_one_file: matches!(files, [Some(a), Some(b)] if a.sha256 == b.sha256),
            judged: pair.judged([from.arm, until.arm], joined.quantity, &rules),
        }
    };
    let mut rows: Vec<AbRow> = runs.iter().map(Known::row).collect();
    let course = Course::of(runs);
    for (nth, &(run, since)) in course.since.iter().enumerate() {
        rows[run].is_apart = nth > 0 && since.is_none();
        rows[run].step = since.map(|since| step(since, run));
    }
    let overall = course.whole.map(|[oldest, newest]| step(oldest, newest));
    Some(AbSeries {
        is_chain: false,
        baseline: newest.named(0),
        arm: newest.named(newest.arm),
        setting: joined.setting.clone(),
        quantity: joined.quantity,
        delta,
        older: joined.older,
        rows,
        overall,
    })
}

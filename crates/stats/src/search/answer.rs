//! What a search has found: the highest rate that kept what is asked, the next one that
//! broke it, and how many phases said so.

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::SearchPhase;
use iolens_model::slo::{Goal, Percentile};
use iolens_model::units::Nanos;
use serde::Serialize;

use super::judge::Rule;
use super::ladder::{self, Next, Said, Tally, Verdict};
use super::{Search, cell_of, cells};
use crate::analysis::{Analysis, ArmAnalysis};
use crate::load::quantile;

/// What was found of one goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The setting of the axes.
    pub cell: Cell,
    /// The model.
    pub arm: Arm,
    /// What was searched for.
    pub goal: Goal,
    /// Whose percentile is to stay below the limit.
    pub percentile: Percentile,
    /// The limit: as it was asked, or for the knee a multiple of the time at the low rate;
    /// `None` before that was measured.
    pub limit_ns: Option<Nanos>,
    /// Requests per second that a closed loop took, of which rates are shares.
    pub closed_loop_per_s: Option<f64>,
    /// The highest rate that more phases kept than broke, requests per second.
    pub kept_per_s: Option<f64>,
    /// The lowest rate above it that more broke than kept, or of which nothing can be said.
    pub broken_per_s: Option<f64>,
    /// Up to this rate every phase kept it.
    pub all_kept_per_s: Option<f64>,
    /// From this rate on every phase broke it.
    pub all_broken_per_s: Option<f64>,
    /// How it ended.
    pub ended: Ended,
    /// Why, where it did not end between two rates.
    pub why: Option<String>,
    /// Every rate that was tried, rates rising.
    pub levels: Vec<Level>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Between two rates: one kept it, the next one broke it.
    Found,
    /// The client or the machine allow no higher rate: the answer is a lower bound.
    AtLeast,
    /// It was broken at the lowest rate that was tried.
    Below,
    /// Nothing can be concluded.
    Unusable,
    /// It was cut short: bounds are as far as it came.
    CutShort,
}

/// A rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Requests per second that were offered.
    pub rate_per_s: f64,
    /// Right replies per second while requests were due, over its phases.
    pub achieved_per_s: Option<f64>,
    /// Phases that kept what is asked.
    pub kept: u32,
    /// Those that broke it.
    pub broken: u32,
    /// Those that say nothing.
    pub set_aside: u32,
    /// The percentile in the middle one of its phases, as it is most of them that decide;
    /// of those that are not set aside where there are any.
    pub value_ns: Option<Nanos>,
    /// The least of a phase's own percentile, and the most.
    pub span_ns: Option<[Nanos; 2]>,
    /// Why phases broke it or were set aside, each reason once.
    pub why: Vec<String>,
}

/// Every answer of a run: by cell, model and goal, in the order of the plan. Models that
/// could not be measured in a cell have none.
pub fn answers(plan: &Plan, phases: &[SearchPhase], analysis: &Analysis) -> Vec<Answer> {
    let of_cell = |cell: &Cell| -> Vec<Answer> {
        let arms = arms(phases, analysis, cell);
        let search = |arm: &Arm| Search::of(plan, cell, arm, phases).answers(cell, arm);
        arms.iter().flat_map(search).collect()
    };
    cells(plan).iter().flat_map(of_cell).collect()
}

/// The models that are searched in a cell: those that are compared there and were measured
/// at any load of it, or were searched.
fn arms(phases: &[SearchPhase], analysis: &Analysis, cell: &Cell) -> Vec<Arm> {
    let beside = |other: &Cell| cell_of(other).as_ref() == Some(cell);
    let mut arms: Vec<Arm> = Vec::new();
    for of_cell in analysis.cells.iter().filter(|known| beside(&known.cell)) {
        for ArmAnalysis { arm, status, .. } in &of_cell.arms {
            let plays = matches!(arm.role, Role::Baseline | Role::Compared);
            let was_searched =
                || phases.iter().any(|phase| phase.arm == *arm && beside(&phase.cell));
            if plays && !arms.contains(arm) && (*status == Status::Ok || was_searched()) {
                arms.push(arm.clone());
            }
        }
    }
    arms
}

impl Search<'_> {
    /// What is known of each goal.
    pub fn answers(&self, cell: &Cell, arm: &Arm) -> Vec<Answer> {
        self.goals.iter().map(|goal| self.answer(*goal, cell, arm)).collect()
    }

    fn answer(&self, goal: Goal, cell: &Cell, arm: &Arm) -> Answer {
        let nothing = Answer {
            cell: cell.clone(),
            arm: arm.clone(),
            goal,
            percentile: percentile(goal),
            limit_ns: None,
            closed_loop_per_s: self.capacity(),
            kept_per_s: None,
            broken_per_s: None,
            all_kept_per_s: None,
            all_broken_per_s: None,
            ended: Ended::CutShort,
            why: None,
            levels: Vec::new(),
        };
        let Some(rule) = self.rule(goal) else {
            let (ended, why) = self.why_nothing();
            return Answer { ended, why, ..nothing };
        };
        let seen = self.seen(&rule);
        let tallies = ladder::tallies(&seen);
        let bounds = ladder::bounds(&tallies);
        let (ended, why) = self.ended(goal, &rule, bounds);
        let rate = |tally: Option<Tally>| tally.and_then(|tally| self.rate_at(tally.step));
        let clean = |tally: &&Tally| tally.broken == 0 && tally.kept > 0;
        let all_kept = tallies.iter().take_while(|t| t.broken == 0).filter(clean).last();
        let dirty = |tally: &&Tally| tally.kept == 0 && tally.broken > 0;
        let all_broken = tallies.iter().rev().take_while(|t| t.kept == 0).filter(dirty).last();
        Answer {
            limit_ns: Some(rule.limit),
            kept_per_s: rate(bounds[0]),
            broken_per_s: rate(bounds[1]),
            all_kept_per_s: rate(all_kept.copied()),
            all_broken_per_s: rate(all_broken.copied()),
            ended,
            why,
            levels: tallies.iter().filter_map(|tally| self.level(&rule, tally)).collect(),
            ..nothing
        }
    }

    /// Why nothing was searched at all.
    fn why_nothing(&self) -> (Ended, Option<String>) {
        let last = self.phases.last();
        let is_stuck = self.wanted() == super::Wanted::Nothing;
        let why = last.map(|phase| match &phase.reason {
            Some(reason) => format!("{}: {reason}", phase.status.word()),
            None => "the low rate has too few usable phases".to_owned(),
        });
        match last {
            Some(_) if is_stuck => (Ended::Unusable, why),
            _ => (Ended::CutShort, None),
        }
    }

    fn ended(
        &self,
        goal: Goal,
        rule: &Rule,
        [lower, upper]: [Option<Tally>; 2],
    ) -> (Ended, Option<String>) {
        let Some(capacity) = self.capacity() else { return self.why_nothing() };
        let Some(ladder) = self.ladder(goal, capacity, rule.percentile) else {
            let why = format!("at so few requests {} takes longer phases", rule.percentile);
            return (Ended::Unusable, Some(format!("{why} than {}", super::PHASE_MAX)));
        };
        if ladder.next(&self.seen(rule)) != Next::End {
            let why = "the machine was too noisy for an answer";
            return (Ended::CutShort, self.is_out_of_patience().then(|| why.to_owned()));
        }
        let is_blocked = upper.is_some_and(|tally| tally.verdict() == Verdict::Blocked);
        let reason = || upper.and_then(|tally| self.why_set_aside(rule, tally.step));
        match (lower, upper) {
            (Some(_), Some(_)) if is_blocked => (Ended::AtLeast, reason()),
            (Some(_), Some(_)) => (Ended::Found, None),
            (Some(_), None) => {
                let why = "the highest rate that is tried: a closed loop took no more";
                (Ended::AtLeast, Some(why.to_owned()))
            }
            (None, _) if is_blocked => (Ended::Unusable, reason()),
            (None, _) => (Ended::Below, None),
        }
    }

    fn rate_at(&self, step: i32) -> Option<f64> {
        self.at(step).next()?.rate
    }

    fn at(&self, step: i32) -> impl Iterator<Item = &SearchPhase> {
        self.phases.iter().copied().filter(move |phase| phase.step == Some(step))
    }

    /// Why phases of a step were set aside, the client's part first.
    fn why_set_aside(&self, rule: &Rule, step: i32) -> Option<String> {
        let judged = self.at(step).map(|phase| rule.judge(phase));
        let aside: Vec<_> = judged.filter(|judged| judged.said == Said::SetAside).collect();
        let first = aside.iter().find(|judged| judged.by_client).or(aside.first())?;
        let lead = if first.by_client { "client-limited: " } else { "" };
        Some(format!("{lead}{}", first.why))
    }

    fn level(&self, rule: &Rule, tally: &Tally) -> Option<Level> {
        let judged: Vec<_> = self.at(tally.step).map(|phase| (phase, rule.judge(phase))).collect();
        let decided = tally.kept + tally.broken > 0;
        let counts = judged.iter().filter(|(_, j)| !decided || j.said != Said::SetAside);
        let phases: Vec<&SearchPhase> = counts.map(|(phase, _)| *phase).collect();
        let q = rule.percentile.share();
        let own = |phase: &&SearchPhase| quantile(phase.latency.as_ref()?, q);
        let mut each: Vec<Nanos> = phases.iter().filter_map(own).collect();
        each.sort_unstable();
        let seen = phases.iter().filter_map(|phase| phase.offered());
        let (replies, window) = seen.fold((0, 0.0), |(replies, window), offered| {
            (replies + offered.replies_in_window, window + offered.window.as_seconds())
        });
        let mut why: Vec<String> = judged.into_iter().map(|(_, judged)| judged.why).collect();
        why.retain(|why| !why.is_empty());
        why.dedup();
        Some(Level {
            rate_per_s: self.rate_at(tally.step)?,
            achieved_per_s: (window > 0.0).then(|| replies as f64 / window),
            kept: tally.kept,
            broken: tally.broken,
            set_aside: tally.set_aside,
            value_ns: each.get(each.len() / 2).copied(),
            span_ns: each.first().zip(each.last()).map(|(least, most)| [*least, *most]),
            why,
        })
    }
}

fn percentile(goal: Goal) -> Percentile {
    match goal {
        Goal::Slo(slo) => slo.percentile,
        Goal::Knee => Percentile::P50,
    }
}

impl Answer {
    /// Whether every phase below the answer kept it and every one above broke it.
    pub fn is_clear(&self) -> bool {
        self.all_kept_per_s == self.kept_per_s && self.all_broken_per_s == self.broken_per_s
    }
}

//! Searches for the highest rate at which a model keeps what is asked: a limit of latency,
//! or latency near what it is at a low rate (the knee).
//!
//! A search is a function of its phases. [`Search::wanted`] says what to measure next, and
//! [`Search::answers`] what is known so far: the same answer while it goes on, in the
//! report, and of an old run. A search is no contrast, and gets no verdict.

mod answer;
mod judge;
mod ladder;
#[cfg(test)]
mod simulation;

use iolens_model::arm::Arm;
use iolens_model::cell::{Cell, Setting};
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::reading::Histogram;
use iolens_model::run::SearchPhase;
use iolens_model::server::{LoadLevel, ServerAxes, ServerSetting};
use iolens_model::slo::{Goal, Percentile};
use iolens_model::units::Nanos;

pub use self::answer::{Answer, Ended, Level, answers};
use self::judge::Rule;
use self::ladder::{Ladder, Next, Said};

/// How far a step lies above the one below it: what an answer is exact to.
pub const STEP: f64 = 0.05;

/// Latency has climbed where the median is more than so many times what it is at the low
/// rate: the time of a request at the load of maximal power (throughput over time), over
/// that of one that waits for nobody (Kleinrock 1979, for M/M/1).
pub const CLIMB: f64 = 2.0;

/// The low rate is this share of what a closed loop takes, about.
pub const LOW_SHARE: f64 = 0.1;

/// Phases at the low rate.
pub const LOW_PHASES: usize = 3;

/// A search begins at this share of what a closed loop takes, about.
pub const START_SHARE: f64 = 0.5;

/// Rates go up to this many times what a closed loop takes, about, since it may have been
/// measured in a bad moment, and down to this share.
const TOP: f64 = 1.25;
const BOTTOM: f64 = 1.0 / 64.0;

/// No phase is shorter.
const PHASE_MIN: Nanos = Nanos(2 * Nanos::SECOND.0);

/// Of a limit that only a lower rate keeps there is no phase longer than this.
const PHASE_MAX: Nanos = Nanos(30 * Nanos::SECOND.0);

/// Share of a phase at its beginning that does not count.
pub const DROPPED_SHARE: u64 = 4;

/// Phases at each of the two rates that an answer rests on.
const REPEATS: u32 = 5;
const REPEATS_QUICK: u32 = 3;

/// A search ends after so many times the phases that it takes on a quiet machine.
const PATIENCE: usize = 3;

/// What is to be measured next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// How much a closed loop takes: rates are steps from there.
    Closed {
        /// How long, what does not count included.
        phase: Nanos,
    },
    /// A phase at a rate.
    Rate {
        /// The step of the rate.
        step: i32,
        /// Requests per second.
        rate: f64,
        /// How long, what does not count included.
        phase: Nanos,
    },
    /// Nothing: the search has come to its end.
    Nothing,
}

/// The searches of one model in one cell, which share their phases.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    goals: Vec<Goal>,
    repeats: u32,
    phase: Nanos,
    phases: Vec<&'a SearchPhase>,
}

/// The cell of a search: that of any load there.
pub fn cell_of(cell: &Cell) -> Option<Cell> {
    let setting = cell.server()?;
    let setting = ServerSetting { load: LoadLevel::Searched, ..setting.clone() };
    Some(Cell { setting: Setting::Server(setting), ..cell.clone() })
}

/// The cells of a plan's searches, each once; none where nothing is searched for.
pub fn cells(plan: &Plan) -> Vec<Cell> {
    let mut cells = Vec::new();
    if plan.server().is_some_and(|axes| !axes.goals().is_empty()) {
        for cell in plan.cells().iter().filter_map(cell_of) {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    cells
}

/// Phases that the searches of one model in one cell take on a quiet machine, and how long
/// these are where none has to be longer for its percentile.
pub fn expected(plan: &Plan) -> (usize, Nanos) {
    let goals = plan.server().map(ServerAxes::goals).unwrap_or_default();
    if goals.is_empty() {
        return (0, Nanos(0));
    }
    let phases = quiet(&goals, repeats(plan));
    (phases, Nanos(shortest(plan).0.saturating_mul(phases as u64)))
}

/// How long phases are where their percentile needs no longer ones.
fn shortest(plan: &Plan) -> Nanos {
    plan.server().map_or(PHASE_MIN, |axes| axes.phase.max(PHASE_MIN))
}

fn repeats(plan: &Plan) -> u32 {
    if plan.quick { REPEATS_QUICK } else { REPEATS }
}

fn quiet(goals: &[Goal], repeats: u32) -> usize {
    let ladder = Ladder { bottom: step(BOTTOM), start: step(START_SHARE), top: step(TOP), repeats };
    let low = if goals.contains(&Goal::Knee) { LOW_PHASES } else { 0 };
    1 + low + goals.len() * ladder.phases() as usize
}

impl<'a> Search<'a> {
    /// The searches of a model in a cell, of which `phases` are among those of the run.
    pub fn of(plan: &Plan, cell: &Cell, arm: &Arm, phases: &'a [SearchPhase]) -> Search<'a> {
        let wanted = cell_of(cell);
        let is_own = |phase: &&SearchPhase| {
            let is_there = phase.arm == *arm && cell_of(&phase.cell) == wanted;
            is_there && phase.status != Status::Interrupted
        };
        Search {
            goals: plan.server().map(ServerAxes::goals).unwrap_or_default(),
            repeats: repeats(plan),
            phase: shortest(plan),
            phases: phases.iter().filter(is_own).collect(),
        }
    }

    /// What is to be measured next.
    pub fn wanted(&self) -> Wanted {
        if self.is_out_of_patience() {
            return Wanted::Nothing;
        }
        let Some(capacity) = self.capacity() else {
            let tries = self.phases.iter().filter(|phase| phase.rate.is_none()).count();
            let again = tries < ladder::TRIES as usize && !self.goals.is_empty();
            return if again { Wanted::Closed { phase: self.phase } } else { Wanted::Nothing };
        };
        let ask = |step: i32, percentile: Percentile| {
            let rate = rate(capacity, step);
            Wanted::Rate { step, rate, phase: self.length(rate, percentile) }
        };
        for goal in &self.goals {
            if *goal == Goal::Knee && self.wants_low() {
                return ask(step(LOW_SHARE), Percentile::P50);
            }
            let Some(rule) = self.rule(*goal) else { continue };
            let Some(ladder) = self.ladder(*goal, capacity, rule.percentile) else { continue };
            if let Next::Ask(step) = ladder.next(&self.seen(&rule)) {
                return ask(step, rule.percentile);
            }
        }
        Wanted::Nothing
    }

    /// Requests per second that a closed loop took; `None` before it was measured.
    pub fn capacity(&self) -> Option<f64> {
        let usable = |phase: &&&SearchPhase| phase.rate.is_none() && phase.status == Status::Ok;
        self.phases.iter().filter(usable).find_map(|phase| phase.achieved().filter(|r| *r > 0.0))
    }

    /// Whether the machine was too restless for an end.
    fn is_out_of_patience(&self) -> bool {
        self.phases.len() >= PATIENCE * quiet(&self.goals, self.repeats)
    }

    /// How long a phase must be for its percentile.
    fn length(&self, rate: f64, percentile: Percentile) -> Nanos {
        // As many requests as a percentile needs, and what chance may take of them.
        const MARGIN: f64 = 1.1;
        let requests = 3.7 / (1.0 - percentile.share()) * MARGIN;
        let counted_s = requests / rate;
        let kept = 1.0 - 1.0 / DROPPED_SHARE as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let wanted = Nanos((counted_s / kept * 1e9) as u64);
        self.phase.max(wanted)
    }

    /// The steps of a goal; `None` where every phase would be too long.
    fn ladder(&self, goal: Goal, capacity: f64, percentile: Percentile) -> Option<Ladder> {
        let top = step(TOP);
        let lowest = if goal == Goal::Knee { step(LOW_SHARE) } else { step(BOTTOM) };
        let is_short = |step: &i32| {
            let needs = self.length(rate(capacity, *step), percentile);
            needs <= PHASE_MAX.max(self.phase)
        };
        let bottom = (lowest..=top).find(is_short)?;
        let start = step(START_SHARE).clamp(bottom, top);
        Some(Ladder { bottom, start, top, repeats: self.repeats })
    }

    /// Phases at the low rate that tell what latency is there.
    fn low(&self) -> impl Iterator<Item = &'a SearchPhase> {
        let is_low = |phase: &&SearchPhase| phase.step == Some(step(LOW_SHARE));
        self.phases.iter().copied().filter(is_low)
    }

    fn wants_low(&self) -> bool {
        let usable = self.low().filter(|phase| judge::is_usable(phase)).count();
        usable < LOW_PHASES && self.low().count() < 2 * LOW_PHASES
    }

    /// The median at the low rate, over all its phases; `None` as long as there are too few.
    fn low_median(&self) -> Option<Nanos> {
        let mut pooled = Histogram::default();
        let usable: Vec<_> = self.low().filter(|phase| judge::is_usable(phase)).collect();
        usable.iter().filter_map(|phase| phase.latency.as_ref()).for_each(|l| pooled.add(l));
        let enough = usable.len() >= LOW_PHASES;
        crate::load::quantile(&pooled, 0.5).filter(|_| enough)
    }

    /// What a phase must keep; `None` where it is not known yet.
    fn rule(&self, goal: Goal) -> Option<Rule> {
        match goal {
            Goal::Slo(slo) => Some(Rule { percentile: slo.percentile, limit: slo.limit }),
            Goal::Knee => {
                let low = self.low_median()?;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a positive time"
                )]
                let limit = Nanos((low.0 as f64 * CLIMB) as u64);
                Some(Rule { percentile: Percentile::P50, limit })
            }
        }
    }

    /// What every phase says of a rule, by step.
    fn seen(&self, rule: &Rule) -> Vec<(i32, Said)> {
        let said = |phase: &&SearchPhase| Some((phase.step?, rule.judge(phase).said));
        self.phases.iter().filter_map(said).collect()
    }
}

/// The step nearest to a share of what a closed loop takes.
fn step(share: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "of a share it is small")]
    let step = (share.ln() / (1.0 + STEP).ln()).round() as i32;
    step
}

/// Requests per second at a step.
fn rate(capacity: f64, step: i32) -> f64 {
    capacity * (1.0 + STEP).powi(step)
}

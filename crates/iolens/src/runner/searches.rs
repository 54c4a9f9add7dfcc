//! Searches of a run of servers, behind its passes: for each cell and model the highest
//! rate at which it keeps a limit, or from which on latency climbs. What is measured next
//! follows from what is stored (`iolens_stats::search`); all searches of the run take turns,
//! a phase each in random order, so that a budget that ends finds them equally far.

use iolens_model::arm::Arm;
use iolens_model::cell::{Cell, Setting};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::Plan;
use iolens_model::run::SearchPhase;
use iolens_model::run::StoppedBy;
use iolens_model::server::{LoadLevel, ServerSetting};
use iolens_model::trial::Trial;
use iolens_model::units::Nanos;
use iolens_stats::search::{self, DROPPED_SHARE, Search, Wanted};
use rand::Rng;
use rand::seq::SliceRandom;

use super::cells::{CellState, Place, STALL_MIN, TRIAL_MIN, TRIAL_OVERHEAD};
use super::{Course, Cut, is_compared, order_of, servers};

/// Searches have this many times what they take on a quiet machine, of the budget that is
/// given, but no more than this share of it.
const MARGIN: f64 = 1.25;
const SHARE_MAX: f64 = 0.75;

/// The order of searches has streams of its own, far from those of passes.
const STREAMS: u32 = 1 << 30;

/// Starting a phase's processes, connecting, and the last replies after it, about.
const PHASE_OVERHEAD: Nanos = Nanos(2 * TRIAL_OVERHEAD.0);

/// A model that is searched in a cell.
pub(super) struct Searched {
    cell: Cell,
    state: CellState,
    arm: Arm,
}

/// What searches will take, said before a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outlook {
    /// One for each cell and model.
    pub(crate) searches: usize,
    /// Phases of all, on a quiet machine.
    pub(crate) phases: usize,
    /// How long these take, about.
    pub(crate) time: Nanos,
    /// Time of the budget that is theirs alone.
    pub(crate) share: Nanos,
}

/// What `searches` searches will take; null where nothing is searched for.
pub(super) fn outlook(plan: &Plan, searches: usize) -> Option<Outlook> {
    let (phases, time) = search::expected(plan);
    let phases = phases * searches;
    let beside = PHASE_OVERHEAD.0.saturating_mul(phases as u64);
    let time = Nanos(time.0.saturating_mul(searches as u64).saturating_add(beside));
    let share = Nanos(share(time, plan.budget));
    (phases > 0).then_some(Outlook { searches, phases, time, share })
}

fn share(time: Nanos, budget: Nanos) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let ns = (time.0 as f64 * MARGIN).min(budget.0 as f64 * SHARE_MAX) as u64;
    ns
}

/// A budget with room for searches beside what passes have, in whole seconds.
pub(crate) fn budget_with(plan: &Plan, searches: usize) -> Nanos {
    let time = outlook(plan, searches).map_or(0.0, |outlook| outlook.time.0 as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let seconds = (time * MARGIN / 1e9).ceil() as u64;
    Nanos(plan.budget.0.saturating_add(seconds.saturating_mul(Nanos::SECOND.0)))
}

/// The models that are searched, of those that are still in their cells.
pub(super) fn places(
    plan: &Plan,
    host: &iolens_model::host::HostFacts,
    cells: &[CellState],
) -> Vec<Searched> {
    let mut all = Vec::new();
    for cell in search::cells(plan) {
        let beside = |state: &&CellState| search::cell_of(&state.cell).as_ref() == Some(&cell);
        let is_there =
            |arm: &Arm| cells.iter().filter(beside).any(|state| state.find(&arm.label).is_some());
        let state = CellState::new(plan, cell.clone(), host);
        let mut arms: Vec<Arm> = Vec::new();
        for arm in state.groups.iter().flat_map(|group| &group.arms) {
            if is_compared(arm.arm.role) && is_there(&arm.arm) && !arms.contains(&arm.arm) {
                arms.push(arm.arm.clone());
            }
        }
        let searched = |arm| Searched { cell: cell.clone(), state: state.clone(), arm };
        all.extend(arms.into_iter().map(searched));
    }
    all
}

impl Searched {
    /// What is measured next.
    fn wanted(&self, plan: &Plan, phases: &[SearchPhase]) -> Wanted {
        Search::of(plan, &self.cell, &self.arm, phases).wanted()
    }

    /// The trial of a phase: the model alone, with one slice, and no rest before it.
    fn trial(&self, plan: &Plan, number: u32, asked: Asked, rng: &mut impl Rng) -> Option<Trial> {
        let (group, arm) = self.state.find(&self.arm.label)?;
        let place = Place { pass: number, position: 0 };
        let trial = self.state.trial(plan, place, group, Some(arm), rng);
        let mut servers = trial.servers?;
        (servers.rate, servers.dropped) = (asked.rate, asked.dropped());
        servers.rest = Nanos(0);
        let mut slices = trial.slices;
        servers::as_phases(&mut slices, asked.phase);
        Some(Trial {
            cell: asked.cell(&self.cell),
            slices,
            servers: Some(servers),
            stall_limit: trial.stall_limit.max(patience(STALL_MIN, asked.phase)),
            trial_limit: trial.trial_limit.max(patience(TRIAL_MIN, asked.phase)),
            ..trial
        })
    }
}

/// A phase may take so much longer than it is meant to.
fn patience(least: Nanos, phase: Nanos) -> Nanos {
    Nanos(least.0.saturating_add(phase.0.saturating_mul(20)))
}

/// What a phase is asked: a rate and its step, or as much as is taken.
#[derive(Debug, Clone, Copy)]
struct Asked {
    step: Option<i32>,
    rate: Option<f64>,
    phase: Nanos,
}

impl Asked {
    /// Null where nothing is.
    fn of(wanted: Wanted) -> Option<Asked> {
        match wanted {
            Wanted::Closed { phase } => Some(Asked { step: None, rate: None, phase }),
            Wanted::Rate { step, rate, phase } => {
                Some(Asked { step: Some(step), rate: Some(rate), phase })
            }
            Wanted::Nothing => None,
        }
    }

    fn dropped(self) -> Nanos {
        Nanos(self.phase.0 / DROPPED_SHARE)
    }

    /// The cell with the load of this phase.
    fn cell(self, cell: &Cell) -> Cell {
        match (&cell.setting, self.rate) {
            (Setting::Server(setting), None) => {
                let setting = ServerSetting { load: LoadLevel::Closed, ..setting.clone() };
                Cell { setting: Setting::Server(setting), ..cell.clone() }
            }
            _ => cell.clone(),
        }
    }
}

impl Course<'_> {
    /// Time of the budget that passes leave to searches that are still to come.
    pub(super) fn time_of_searches(&self) -> Nanos {
        let wants = |place: &Searched| place.wanted(self.plan(), &self.searches) != Wanted::Nothing;
        let open = places(self.plan(), &self.header().host, &self.cells);
        let open = open.iter().filter(|place| wants(place)).count();
        outlook(&Plan { budget: self.budget, ..self.plan().clone() }, open)
            .map_or(Nanos(0), |outlook| outlook.share)
    }

    /// Searches until all have come to their end, or the budget has; returns the rule that
    /// ended the run.
    pub(super) fn search(&mut self, ended: StoppedBy) -> Result<StoppedBy, Cut> {
        let places = places(self.plan(), &self.header().host, &self.cells);
        self.means.progress.searching(places.len());
        loop {
            let stored = u32::try_from(self.searches.len()).unwrap_or(u32::MAX);
            self.rng = order_of(self.plan().seed, STREAMS.saturating_add(stored));
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.shuffle(&mut self.rng);
            let mut rested = true;
            for place in order.into_iter().map(|index| &places[index]) {
                let Some(asked) = Asked::of(place.wanted(self.plan(), &self.searches)) else {
                    continue;
                };
                let ends_ns = self.elapsed_ns() + asked.phase.0 + PHASE_OVERHEAD.0;
                if ends_ns > self.budget.0 {
                    return Ok(StoppedBy::Budget);
                }
                self.search_phase(place, asked)?;
                rested = false;
            }
            if rested {
                return Ok(ended);
            }
            self.means.progress.search_turn(self.searches.len(), self.elapsed_ns());
        }
    }

    /// One phase; stored, whatever came of it.
    fn search_phase(&mut self, place: &Searched, asked: Asked) -> Result<(), Cut> {
        if self.means.interrupts.came() {
            return Err(Cut::Short);
        }
        let number = self.searches.last().map_or(1, |last| last.number + 1);
        let trial = place.trial(&self.builds[0].header.plan, number, asked, &mut self.rng);
        let Some(trial) = trial else { return Ok(()) };
        let mut outcome = self.builds[0].run(&trial, None, self.means.interrupts)?;
        if let Some(arm) = outcome.arms.iter().find(|arm| arm.status == Status::Invalid) {
            (outcome.status, outcome.reason) = (Status::Invalid, arm.reason.clone());
        }
        let phase = stored(number, asked, outcome);
        let id = &self.builds[0].header.id;
        self.means.store.append_search(id, &phase)?;
        self.means.progress.search_phase(&phase, self.elapsed_ns());
        let is_interrupted = phase.status == Status::Interrupted;
        self.searches.push(phase);
        if is_interrupted { Err(Cut::Short) } else { Ok(()) }
    }

    /// The searches that were cut short, in words.
    pub(super) fn unmet_searches(
        &self,
        analysis: &iolens_stats::analysis::Analysis,
    ) -> Vec<String> {
        let answers = search::answers(self.plan(), &self.searches, analysis);
        let cut = answers.iter().filter(|answer| answer.ended == search::Ended::CutShort).count();
        let of = answers.len();
        match cut {
            0 => Vec::new(),
            cut => vec![format!("{cut} of {of} searches were cut short before their end")],
        }
    }
}

/// A phase as it is stored.
fn stored(number: u32, asked: Asked, outcome: TrialOutcome) -> SearchPhase {
    let arm = outcome.arms.into_iter().next().expect("the trial has one arm");
    SearchPhase {
        number,
        cell: outcome.cell,
        arm: arm.arm,
        step: asked.step,
        rate: asked.rate,
        phase: asked.phase,
        dropped: asked.dropped(),
        started_unix_ns: outcome.started_unix_ns,
        duration_ns: outcome.duration_ns,
        status: outcome.status,
        reason: outcome.reason,
        latency: arm.latency,
        server: arm.server,
        slice: outcome.slices.into_iter().next_back(),
        environment: outcome.environment,
    }
}

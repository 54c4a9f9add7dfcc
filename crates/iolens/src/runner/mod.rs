//! The run itself: slice work, passes over all cells in random order, every
//! trial stored as it ends, until a stopping rule says enough.

mod arms;
mod calls;
mod cells;
mod copies;
mod explain;
mod preflight;
mod resume;
mod searches;
mod servers;
mod writes;

use std::path::PathBuf;

use iolens_engine::files::material::Material;
use iolens_engine::perf_control::PerfControl;
use iolens_engine::trial::{self, Launch};
use iolens_model::arm::Role;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::{Run, RunEnd, RunHeader, StoppedBy};
use iolens_model::search::SearchPhase;
use iolens_model::trial::Trial;
use iolens_model::units::Nanos;
use iolens_stats::{Decision, Fold, PassSummary};
use iolens_store::Store;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use self::cells::{CellState, Place};
pub(crate) use self::explain::{Question, explain};
use self::preflight::both_ways;
pub(crate) use self::preflight::{FirstLook, check, check_congestion, check_cpus, first_look};
pub(crate) use self::resume::resume;
pub(crate) use self::searches::{Outlook as Searches, budget_with};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::progress::news::{News, Precision};

/// Re-runs of trials that a gate refused may cost this share of the budget.
const REDO_SHARE: f64 = 0.3;

/// What a run needs besides its plan.
pub(crate) struct Means<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) interrupts: &'a iolens_engine::Interrupts,
    pub(crate) progress: &'a mut Progress,
    /// Is told of the slices that count.
    pub(crate) perf: Option<&'a PerfControl>,
    /// The files of its trials; null in studies that need none.
    pub(crate) material: Option<&'a Material>,
}

/// A run in progress.
struct Course<'a> {
    means: Means<'a>,
    header: RunHeader,
    fold: Fold,
    cells: Vec<CellState>,
    /// The cell that is measured isolated as well, where there is one.
    both_ways: Option<usize>,
    launch: Launch,
    rng: Pcg64Mcg,
    begin_ns: u64,
    /// Of this session: a run that is gone on with has it anew.
    budget: Nanos,
    redo_ns: u64,
    history: Vec<PassSummary>,
    /// Phases of searches that are stored.
    searches: Vec<SearchPhase>,
}

/// Where a run stands after a pass.
struct Moment {
    pass: u32,
    /// Passes of this session.
    passes_here: u32,
    /// What passes have of the budget.
    budget_ns: u64,
    longest_ns: u64,
}

/// How a visit or a pass went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    GoOn,
    /// As above, but a gate refused an arm of the trial, or the machine did.
    Refused,
    Interrupted,
}

/// Whether an arm is a way to send that is compared, and not a check or a
/// control.
pub(crate) fn is_compared(role: Role) -> bool {
    matches!(role, Role::Baseline | Role::Compared)
}

/// Measures the plan in `header` and returns the run as it is stored.
pub(crate) fn measure(header: RunHeader, means: Means<'_>) -> Result<Run, Failure> {
    let budget = header.plan.budget;
    let mut course = Course::new(header, budget, means)?;
    course.means.store.begin_run(&course.header).map_err(Failure::unusable)?;
    let impossible: Vec<_> = course.cells.iter().flat_map(CellState::never_began).collect();
    for outcome in &impossible {
        course.keep(outcome)?;
    }
    course.run_from(1)
}

/// The random order of a pass; pass 0 is the search for slice work. Each pass
/// has a stream of its own, so that a run can go on at any of them.
fn order_of(seed: u64, pass: u32) -> Pcg64Mcg {
    // Odd, so that no two passes share a stream: 2^64 over the golden ratio.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    Pcg64Mcg::seed_from_u64(seed.wrapping_add(STEP.wrapping_mul(u64::from(pass))))
}

fn launch(program: PathBuf, perf: Option<&PerfControl>) -> Launch {
    let mut arguments = vec!["worker".to_owned()];
    arguments.extend(perf.map(|perf| format!("--perf-control={perf}")));
    Launch { program, arguments }
}

impl<'a> Course<'a> {
    fn new(header: RunHeader, budget: Nanos, means: Means<'a>) -> Result<Course<'a>, Failure> {
        let program = std::env::current_exe()
            .map_err(|e| Failure::unusable(format!("cannot find the program that runs: {e}")))?;
        let cells = header.plan.cells();
        let file = means.material.map(Material::facts);
        let cells: Vec<CellState> = cells
            .into_iter()
            .map(|cell| CellState::new(&header.plan, cell, &header.host).reading(file))
            .collect();
        Ok(Course {
            both_ways: both_ways(&header.plan, &cells),
            cells,
            launch: launch(program, means.perf),
            rng: order_of(header.plan.seed, 0),
            begin_ns: iolens_engine::clock::monotonic_ns(),
            budget,
            redo_ns: 0,
            history: Vec::new(),
            searches: Vec::new(),
            fold: Fold::default(),
            header,
            means,
        })
    }

    /// Runs from a pass to the end, and stores how it ended.
    fn run_from(mut self, first: u32) -> Result<Run, Failure> {
        let stopped_by = self.passes(first).and_then(|ended| self.search(ended));
        self.means.progress.finish();
        self.end(stopped_by?)
    }

    /// A trial with the files that it needs.
    fn with_files(&self, trial: Trial) -> Trial {
        match self.means.material {
            Some(material) => material.given_to(trial, self.header.plan.seed),
            None => trial,
        }
    }

    fn plan(&self) -> &Plan {
        &self.header.plan
    }

    fn elapsed_ns(&self) -> u64 {
        iolens_engine::clock::monotonic_ns() - self.begin_ns
    }

    /// All passes from `first` on; returns the rule that ended them.
    fn passes(&mut self, first: u32) -> Result<StoppedBy, Failure> {
        if self.find_work()? == Flow::Interrupted {
            return Ok(StoppedBy::Interrupted);
        }
        let budget_ns = self.budget.0.saturating_sub(self.time_of_searches().0);
        let mut longest_ns = 0;
        for pass in first..=self.plan().passes.maximum {
            let begin_ns = self.elapsed_ns();
            if pass > first && begin_ns + longest_ns > budget_ns {
                return Ok(StoppedBy::Budget);
            }
            if self.pass(pass)? == Flow::Interrupted {
                return Ok(StoppedBy::Interrupted);
            }
            if !self.cells.iter().any(CellState::is_alive) {
                return Ok(StoppedBy::NothingUsable);
            }
            longest_ns = longest_ns.max(self.elapsed_ns() - begin_ns);
            let at = Moment { pass, passes_here: pass - first + 1, budget_ns, longest_ns };
            if let Decision::Stop(rule) = self.judge(at) {
                return Ok(rule);
            }
        }
        Ok(StoppedBy::Passes)
    }

    /// Finds how many messages a slice of each arm is, by two probes of each
    /// cell that are part of no pass: a quarter slice of guessed work, then a
    /// whole one of what that has found. A window needs none: it ends by time.
    fn find_work(&mut self) -> Result<Flow, Failure> {
        if matches!(self.plan().schedule, Schedule::Window { .. }) {
            return Ok(Flow::GoOn);
        }
        self.means.progress.calibrating(self.cells.len());
        for cell in 0..self.cells.len() {
            let (before, own) = self.cells.split_at_mut(cell);
            if before.iter().any(|other| own[0].take_over(other)) {
                continue;
            }
            for share in [4, 1] {
                for group in (0..self.cells[cell].groups.len()).rev() {
                    if self.cells[cell].is_fixed(group)
                        || (share == 1 && self.cells[cell].is_known(group))
                    {
                        continue;
                    }
                    if self.probe_group(cell, group, share)? == Flow::Interrupted {
                        return Ok(Flow::Interrupted);
                    }
                }
            }
        }
        Ok(Flow::GoOn)
    }

    /// The probes of a group: one, or of servers that may not stand beside each other one
    /// for each.
    fn probe_group(&mut self, cell: usize, group: usize, share: u64) -> Result<Flow, Failure> {
        let state = &self.cells[cell];
        if !(self.plan().measures_alone(&state.cell) && self.plan().server().is_some()) {
            return self.probe(cell, (group, None), share);
        }
        let groups = state.groups.len();
        let labels = |group: &cells::Group| -> Vec<String> {
            group.arms.iter().map(|arm| arm.arm.label.clone()).collect()
        };
        for label in labels(&state.groups[group]) {
            // An arm may have dropped out since, or its group.
            let state = &self.cells[cell];
            let arm = state.place_of(&label, group).filter(|_| state.groups.len() == groups);
            let Some(arm) = arm else { continue };
            if self.probe(cell, (group, Some(arm)), share)? == Flow::Interrupted {
                return Ok(Flow::Interrupted);
            }
        }
        Ok(Flow::GoOn)
    }

    /// One probe; a failed one is kept, and counts.
    fn probe(
        &mut self,
        cell: usize,
        (group, only): (usize, Option<usize>),
        share: u64,
    ) -> Result<Flow, Failure> {
        let state = &self.cells[cell];
        let target = Nanos(state.target.0 / share);
        let trial = state.probe(&self.header.plan, (group, only), target, &mut self.rng);
        let trial = self.with_files(trial);
        let outcome = trial::run(&trial, &self.launch, Some(self.means.interrupts));
        match outcome.status {
            Status::Ok => self.cells[cell].learn(group, &outcome),
            Status::Interrupted => return Ok(Flow::Interrupted),
            Status::Failed | Status::Invalid => {
                self.cells[cell].note_failure(group, &outcome);
                self.keep(&outcome)?;
            }
            Status::Skipped => {
                let arms = trial.arms.len();
                self.cells[cell].note_failure(group, &outcome);
                self.keep(&outcome)?;
                // The others are still to be probed; each time there is one less.
                let left = self.cells[cell].groups.get(group).map(|group| group.arms.len());
                if only.is_none() && left.is_some_and(|left| left < arms) {
                    return self.probe(cell, (group, None), share);
                }
            }
        }
        Ok(Flow::GoOn)
    }

    /// Visits every cell that is alive once, in random order, then redoes the
    /// trials that a gate refused.
    fn pass(&mut self, pass: u32) -> Result<Flow, Failure> {
        self.rng = order_of(self.plan().seed, pass);
        let mut order: Vec<usize> =
            (0..self.cells.len()).filter(|&cell| self.cells[cell].is_alive()).collect();
        order.shuffle(&mut self.rng);
        let mut place = Place { pass, position: 0 };
        let mut again = Vec::new();
        for cell in order {
            let isolate = self.plan().measures_alone(&self.cells[cell].cell);
            // Backwards: a group that drops out does not move those to come.
            for group in (0..self.cells[cell].groups.len()).rev() {
                let flow = if isolate {
                    self.isolated(cell, group, &mut place)?
                } else {
                    self.together(cell, group, &mut place, &mut again)?
                };
                if flow == Flow::Interrupted {
                    return Ok(flow);
                }
            }
            if self.both_ways == Some(cell)
                && self.isolated(cell, 0, &mut place)? == Flow::Interrupted
            {
                return Ok(Flow::Interrupted);
            }
        }
        self.redo(&again, &mut place)
    }

    /// One trial of all arms of a group.
    fn together(
        &mut self,
        cell: usize,
        group: usize,
        place: &mut Place,
        again: &mut Vec<(usize, usize)>,
    ) -> Result<Flow, Failure> {
        let flow = self.one_trial(cell, group, None, place)?;
        if flow == Flow::Refused {
            again.push((cell, group));
        }
        Ok(flow)
    }

    /// One trial for each arm of a group, in random order; the self-check and
    /// the controls take part only where everything is isolated.
    fn isolated(&mut self, cell: usize, group: usize, place: &mut Place) -> Result<Flow, Failure> {
        let all = self.plan().measures_alone(&self.cells[cell].cell);
        let groups = self.cells[cell].groups.len();
        let Some(state) = self.cells[cell].groups.get(group) else { return Ok(Flow::GoOn) };
        let mut labels: Vec<String> = state
            .arms
            .iter()
            .filter(|arm| all || is_compared(arm.arm.role))
            .map(|arm| arm.arm.label.clone())
            .collect();
        labels.shuffle(&mut self.rng);
        for label in labels {
            // An arm may have dropped out since, or its group.
            let state = &self.cells[cell];
            let arm = state.place_of(&label, group).filter(|_| state.groups.len() == groups);
            let Some(arm) = arm else { continue };
            if self.one_trial(cell, group, Some(arm), place)? == Flow::Interrupted {
                return Ok(Flow::Interrupted);
            }
        }
        Ok(Flow::GoOn)
    }

    /// Redoes refused trials whole, as long as that costs no more than its
    /// share of the budget; the refused ones stay, marked.
    fn redo(&mut self, again: &[(usize, usize)], place: &mut Place) -> Result<Flow, Failure> {
        for &(cell, group) in again {
            if self.redo_ns as f64 > REDO_SHARE * self.budget.0 as f64 {
                break;
            }
            if self.cells[cell].groups.len() <= group {
                continue;
            }
            let begin_ns = self.elapsed_ns();
            let flow = self.one_trial(cell, group, None, place)?;
            self.redo_ns += self.elapsed_ns() - begin_ns;
            if flow == Flow::Interrupted {
                return Ok(flow);
            }
        }
        Ok(Flow::GoOn)
    }

    /// Runs one trial, judges it by the gates, and stores it.
    fn one_trial(
        &mut self,
        cell: usize,
        group: usize,
        only: Option<usize>,
        place: &mut Place,
    ) -> Result<Flow, Failure> {
        if self.means.interrupts.came() {
            return Ok(Flow::Interrupted);
        }
        let state = &self.cells[cell];
        let trial = state.trial(&self.header.plan, *place, group, only, &mut self.rng);
        let trial = self.with_files(trial);
        place.position += 1;
        let mut outcome = trial::run(&trial, &self.launch, Some(self.means.interrupts));
        if outcome.status == Status::Ok {
            for (arm, reason) in iolens_stats::invalid_arms(&self.header, &outcome) {
                outcome.arms[arm].status = Status::Invalid;
                outcome.arms[arm].reason = Some(reason);
            }
        }
        if outcome.status != Status::Interrupted {
            let rows = self.cells[cell].refused_rows(group, &trial);
            if matches!(outcome.status, Status::Failed | Status::Skipped) {
                self.cells[cell].note_failure(group, &outcome);
            }
            outcome.arms.extend(rows);
        }
        self.keep(&outcome)?;
        let refused = outcome.status == Status::Skipped
            || outcome.arms.iter().any(|arm| arm.status == Status::Invalid);
        Ok(match outcome.status {
            Status::Interrupted => Flow::Interrupted,
            _ if refused => Flow::Refused,
            _ => Flow::GoOn,
        })
    }

    /// Stores a trial and takes what the analysis needs of it; its slices are
    /// in the store from then on and not here.
    fn keep(&mut self, outcome: &TrialOutcome) -> Result<(), Failure> {
        let id = &self.header.id;
        self.means.store.append_trial(id, outcome).map_err(Failure::unusable)?;
        self.means.progress.trial(outcome, self.elapsed_ns());
        self.fold.add(&self.header, outcome);
        Ok(())
    }

    /// Looks at the intervals after a pass.
    fn judge(&mut self, at: Moment) -> Decision {
        let analysis = self.fold.analysis(&self.header);
        self.means.progress.pass(&News {
            precision: Precision::of(&analysis, self.plan()),
            passes: self.plan().passes,
            pass: at.pass,
            passes_here: at.passes_here,
            elapsed: Nanos(self.elapsed_ns()),
            budget: Nanos(at.budget_ns),
            pass_time: Nanos(at.longest_ns),
        });
        self.history.push(PassSummary::of(&analysis));
        iolens_stats::decide(&self.history, self.plan())
    }

    /// Writes down how the run ended.
    fn end(self, stopped_by: StoppedBy) -> Result<Run, Failure> {
        let analysis = self.fold.analysis(&self.header);
        let mut unmet = iolens_stats::unmet(&analysis, self.plan());
        unmet.extend(self.unmet_searches(&analysis));
        let finished_unix_ns = iolens_engine::clock::unix_ns();
        let end = RunEnd { finished_unix_ns, stopped_by, unmet };
        let store = self.means.store;
        store.end_run(&self.header.id, &end).map_err(Failure::unusable)?;
        store.load(&self.header.id).map_err(Failure::unusable)
    }
}

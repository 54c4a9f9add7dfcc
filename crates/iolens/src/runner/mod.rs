//! The run itself: slice work, passes over all cells in random order, every
//! trial stored as it ends, until a stopping rule says enough.

mod ab;
mod arms;
mod build;
mod cells;
mod explain;
mod preflight;
mod searches;
mod servers;

use std::path::{Path, PathBuf};

use iolens_engine::far::Far;
use iolens_file::leftover::Leftovers;
use iolens_file::material::Material;
use iolens_harness::perf_control::PerfControl;
use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::SearchPhase;
use iolens_model::run::{Run, RunEnd, RunHeader, StoppedBy};
use iolens_model::trial::Trial;
use iolens_model::units::Nanos;
use iolens_programs::spawn::Launch;
use iolens_stats::analysis::Analysis;
use iolens_stats::{Decision, Fold};
use iolens_store::Store;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

pub(crate) use self::ab::{AbMeans, facts as ab_facts, measure as measure_ab};
use self::build::{Build, Copies};
use self::cells::{CellState, Place};
pub(crate) use self::explain::{Question, explain};
use self::preflight::both_ways;
pub(crate) use self::preflight::{
    FirstLook, check, check_congestion, check_cpus, check_machine, first_look,
};
pub(crate) use self::searches::{Outlook as Searches, budget_with};
use crate::failure::{Failure, this_program};
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
    /// The other machine; null where there is none.
    pub(crate) far: Option<&'a mut Far>,
}

/// A run in progress.
struct Course<'a> {
    means: Means<'a>,
    /// Never empty. The first is this build, which finds the work of slices.
    builds: Vec<Build>,
    cells: Vec<CellState>,
    /// The cell that is measured isolated as well, where there is one.
    both_ways: Option<usize>,
    rng: Pcg64Mcg,
    begin_ns: u64,
    /// Of this session: a run that is gone on with has it anew.
    budget: Nanos,
    redo_ns: u64,
    /// Of earlier sessions: between them nothing was measured.
    paused_ns: u64,
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

/// What ends passes and searches before their end.
enum Cut {
    /// The user, or the other machine, which was lost and not found again.
    Short,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Cut {
    fn from(error: E) -> Cut {
        Cut::Failed(error.into())
    }
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
    course.begin()?;
    course.run_from(1).map(own)
}

/// Goes on with `run` for at most `budget` and returns it as it is stored: the same plan, the
/// same work in every slice, the same arms left out, from the pass after the last complete one.
/// A pass that was cut short is done again whole; what it has stored stays, and the analysis
/// takes the later trial of two.
pub(crate) fn resume(run: Run, budget: Nanos, means: Means<'_>) -> Result<Run, Failure> {
    let Run { mut header, trials, searches, .. } = run;
    let fold = Fold::of(&header, &trials);
    let reached = iolens_stats::reached(&header, fold.values());
    let paused_ns = paused_ns(&header, &trials);
    header.end = None;
    let mut course = Course::new(header, budget, means)?;
    course.paused_ns = paused_ns;
    for trial in &trials {
        let plan = &course.builds[0].header.plan;
        if let Some(state) = course.cells.iter_mut().find(|state| state.cell == trial.cell) {
            state.recall(plan, trial);
        }
    }
    course.builds[0].fold = fold;
    course.searches = searches;
    course.builds[0].history = reached.history;
    course.run_from(reached.pass + 1).map(own)
}

/// How long nothing was measured of a run that is now resumed, all pauses together.
fn paused_ns(header: &RunHeader, trials: &[TrialOutcome]) -> u64 {
    let ends = trials.iter().map(|trial| trial.started_unix_ns.saturating_add(trial.duration_ns));
    let (stopped_unix_ns, earlier_ns) = match &header.end {
        Some(end) => (end.finished_unix_ns, end.paused_ns),
        // It was killed.
        None => (ends.max().unwrap_or(header.started_unix_ns), 0),
    };
    earlier_ns.saturating_add(iolens_engine::clock::unix_ns().saturating_sub(stopped_unix_ns))
}

/// Measures a plan with the workers of two builds that take turns, trial by trial: of each
/// visit of a cell both do the same slices, in an order that is random each time. `other` is
/// what is known of the run of the other build, and its program. Returns both runs as they
/// are stored, this build's first.
///
/// Each trial is of a fresh copy of its program, which is removed after it. `data` is the folder
/// of the database.
pub(crate) fn measure_in_turn(
    header: RunHeader,
    (other, program): (RunHeader, PathBuf),
    data: &Path,
    means: Means<'_>,
) -> Result<Vec<Run>, Failure> {
    let budget = header.plan.budget;
    let mut course = Course::new(header, budget, means)?;
    let launch = launch(program, course.means.perf);
    course.builds.push(Build::new(other, launch));
    let builds = std::mem::take(&mut course.builds).into_iter();
    course.builds =
        builds.map(|build| of_fresh_copies(build, data)).collect::<Result<_, Failure>>()?;
    course.begin()?;
    course.run_from(1)
}

/// Programs may not be started everywhere: /tmp may be mounted `noexec`.
fn of_fresh_copies(build: Build, data: &Path) -> Result<Build, Failure> {
    let own = build.launch.program.parent().map(Path::to_owned);
    let folders: Vec<PathBuf> =
        [Some(std::env::temp_dir()), own, Some(data.to_owned())].into_iter().flatten().collect();
    let copies = Copies::below_one_of(&folders, &build.launch, &Leftovers::here());
    let cannot =
        |why| format!("{why}\n  name a folder that programs may be started in with TMPDIR=FOLDER");
    Ok(build.copied(copies.map_err(|why| Failure::unusable(cannot(why)))?))
}

/// The run of this build.
fn own(mut runs: Vec<Run>) -> Run {
    runs.swap_remove(0)
}

/// The random order of a pass; pass 0 is the search for slice work. Each pass
/// has a stream of its own, so that a run can go on at any of them.
fn order_of(seed: u64, pass: u32) -> Pcg64Mcg {
    // Odd, so that no two passes share a stream: 2^64 over the golden ratio.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    Pcg64Mcg::seed_from_u64(seed.wrapping_add(STEP.wrapping_mul(u64::from(pass))))
}

/// How workers of a program are started.
pub(crate) fn launch(program: PathBuf, perf: Option<&PerfControl>) -> Launch {
    let mut arguments = vec!["worker".to_owned()];
    arguments.extend(perf.map(|perf| format!("--perf-control={perf}")));
    Launch { program, arguments }
}

impl<'a> Course<'a> {
    fn new(header: RunHeader, budget: Nanos, means: Means<'a>) -> Result<Course<'a>, Failure> {
        let program = this_program()?;
        let cells = header.plan.cells();
        let file = means.material.map(Material::facts);
        let cells: Vec<CellState> = cells
            .into_iter()
            .map(|cell| CellState::new(&header.plan, cell, &header.host).reading(file))
            .map(|cell| cell.towards(header.far.as_ref()))
            .collect();
        Ok(Course {
            both_ways: both_ways(&header.plan, &cells),
            cells,
            rng: order_of(header.plan.seed, 0),
            begin_ns: iolens_engine::clock::monotonic_ns(),
            budget,
            redo_ns: 0,
            paused_ns: 0,
            searches: Vec::new(),
            builds: vec![Build::new(header, launch(program, means.perf))],
            means,
        })
    }

    /// Stores what is known before the first trial, and what can never be measured.
    fn begin(&mut self) -> Result<(), Failure> {
        for build in &self.builds {
            self.means.store.begin_run(&build.header)?;
        }
        let impossible: Vec<_> = self.cells.iter().flat_map(CellState::never_began).collect();
        impossible.iter().try_for_each(|outcome| self.keep_for_all(outcome))
    }

    /// Runs from a pass to the end, and stores how it ended.
    fn run_from(mut self, first: u32) -> Result<Vec<Run>, Failure> {
        let ended = self.passes(first).and_then(|ended| self.search(ended));
        self.means.progress.finish();
        match ended {
            Ok(rule) => self.end(rule),
            Err(Cut::Short) if self.is_lost() => self.end(StoppedBy::Lost),
            Err(Cut::Short) => self.end(StoppedBy::Interrupted),
            Err(Cut::Failed(failure)) => Err(failure),
        }
    }

    /// A trial with the files that it needs.
    fn with_files(&self, trial: Trial) -> Trial {
        match self.means.material {
            Some(material) => material.given_to(trial, self.plan().seed),
            None => trial,
        }
    }

    fn header(&self) -> &RunHeader {
        &self.builds[0].header
    }

    fn plan(&self) -> &Plan {
        &self.header().plan
    }

    fn elapsed_ns(&self) -> u64 {
        iolens_engine::clock::monotonic_ns() - self.begin_ns
    }

    /// All passes from `first` on; returns the rule that ended them.
    fn passes(&mut self, first: u32) -> Result<StoppedBy, Cut> {
        self.find_work()?;
        let budget_ns = self.budget.0.saturating_sub(self.time_of_searches().0);
        let mut longest_ns = 0;
        for pass in first..=self.plan().passes.maximum {
            let begin_ns = self.elapsed_ns();
            if pass > first && begin_ns + longest_ns > budget_ns {
                return Ok(StoppedBy::Budget);
            }
            self.pass(pass)?;
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

    /// Whether the other machine was lost and not found again: no trial comes to its end.
    fn is_lost(&self) -> bool {
        self.means.far.as_ref().is_some_and(|far| far.is_lost())
    }

    fn check_far(&self) -> Result<(), Cut> {
        if self.is_lost() { Err(Cut::Short) } else { Ok(()) }
    }

    /// Finds how many messages a slice of each arm is, by probes of each cell that are part of
    /// no pass: one of quarter slices of guessed work, then some of whole ones of what that has
    /// found. What goes to another machine is guessed as if the link were slow, and needs one
    /// more where it is not. A window needs none: it ends by time.
    fn find_work(&mut self) -> Result<(), Cut> {
        if matches!(self.plan().schedule, Schedule::Window { .. }) {
            return Ok(());
        }
        self.means.progress.calibrating(self.cells.len());
        let last = CellState::probes(self.plan());
        for cell in 0..self.cells.len() {
            let (before, own) = self.cells.split_at_mut(cell);
            if before.iter().any(|other| own[0].take_over(other)) {
                continue;
            }
            let apart = [(4, 1), (1, 1), (1, last)];
            let stages = if own[0].is_apart() { &apart[..] } else { &[(4, 1), (1, last)] };
            for &(share, probes) in stages {
                for group in (0..self.cells[cell].groups.len()).rev() {
                    let state = &self.cells[cell];
                    if !(state.is_recalled(group) || share == 1 && state.is_known(group)) {
                        self.learn(cell, group, share, probes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Probes a group so many times, in fresh processes, and takes over what they have found.
    fn learn(&mut self, cell: usize, group: usize, share: u64, probes: usize) -> Result<(), Cut> {
        let groups = self.cells[cell].groups.len();
        let mut found = Vec::new();
        for _ in 0..probes {
            self.probe_group(cell, group, share, &mut found)?;
            // It may have dropped out.
            if self.cells[cell].groups.len() != groups {
                return Ok(());
            }
        }
        self.cells[cell].learn(group, &found);
        Ok(())
    }

    /// The probe of a group; of servers that may not stand beside each other one for each.
    fn probe_group(
        &mut self,
        cell: usize,
        group: usize,
        share: u64,
        found: &mut Vec<TrialOutcome>,
    ) -> Result<(), Cut> {
        let state = &self.cells[cell];
        if !(self.plan().measures_alone(&state.cell) && self.plan().server().is_some()) {
            return self.probe(cell, (group, None), share, found);
        }
        let labels = state.groups[group].labels(|_| true);
        self.each_alone(cell, group, &labels, |course, arm| {
            course.probe(cell, (group, Some(arm)), share, found)
        })
    }

    /// Does something for each arm of a group that has not dropped out meanwhile, nor its group.
    fn each_alone(
        &mut self,
        cell: usize,
        group: usize,
        labels: &[String],
        mut what: impl FnMut(&mut Self, usize) -> Result<(), Cut>,
    ) -> Result<(), Cut> {
        let groups = self.cells[cell].groups.len();
        for label in labels {
            let state = &self.cells[cell];
            let arm = state.place_of(label, group).filter(|_| state.groups.len() == groups);
            arm.map_or(Ok(()), |arm| what(self, arm))?;
        }
        Ok(())
    }

    /// One probe; a failed one is kept, and counts.
    fn probe(
        &mut self,
        cell: usize,
        (group, only): (usize, Option<usize>),
        share: u64,
        found: &mut Vec<TrialOutcome>,
    ) -> Result<(), Cut> {
        let state = &self.cells[cell];
        let trial = state.probe(&self.builds[0].header.plan, (group, only), share, &mut self.rng);
        let trial = self.with_files(trial);
        let Means { interrupts, far, .. } = &mut self.means;
        let outcome = self.builds[0].conduct(&trial, far.as_deref_mut(), interrupts)?;
        // Gates have not judged it, so it is invalid because iolens was stopped (Ctrl-Z).
        if outcome.arms.iter().any(|arm| arm.status == Status::Invalid) {
            return self.probe(cell, (group, only), share, found);
        }
        match outcome.status {
            Status::Ok => found.push(outcome),
            Status::Interrupted => return Err(Cut::Short),
            Status::Failed | Status::Invalid => {
                self.cells[cell].note_failure(group, &outcome);
                self.keep_for_all(&outcome)?;
                self.check_far()?;
            }
            Status::Skipped => {
                let arms = trial.arms.len();
                self.cells[cell].note_failure(group, &outcome);
                self.keep_for_all(&outcome)?;
                // The others are still to be probed; each time there is one less.
                let left = self.cells[cell].groups.get(group).map(|group| group.arms.len());
                if only.is_none() && left.is_some_and(|left| left < arms) {
                    return self.probe(cell, (group, None), share, found);
                }
            }
        }
        Ok(())
    }

    /// Visits every cell that is alive once, in random order, then redoes the
    /// trials that a gate refused.
    fn pass(&mut self, pass: u32) -> Result<(), Cut> {
        self.rng = order_of(self.plan().seed, pass);
        let mut order: Vec<usize> =
            (0..self.cells.len()).filter(|&cell| self.cells[cell].is_alive()).collect();
        order.shuffle(&mut self.rng);
        let mut place = Place { pass, position: 0 };
        let mut again = Vec::new();
        for cell in order {
            let isolate = self.plan().measures_alone(&self.cells[cell].cell);
            // Each group once: what the machine does in the course of a visit falls on none of
            // them in particular.
            let mut turn: Vec<usize> =
                self.cells[cell].groups.iter().map(|group| group.id).collect();
            turn.shuffle(&mut self.rng);
            for id in turn {
                // It may have dropped out since; those that are left have moved then.
                let Some(group) = self.cells[cell].place_of_group(id) else { continue };
                if isolate {
                    self.isolated(cell, group, &mut place)?;
                } else if self.one_trial(cell, group, None, &mut place)? {
                    again.push((cell, id));
                }
            }
            if self.both_ways == Some(cell) {
                self.isolated(cell, 0, &mut place)?;
            }
        }
        self.redo(&again, &mut place)
    }

    /// One trial for each arm of a group, in random order; the self-check and
    /// the controls take part only where everything is isolated.
    fn isolated(&mut self, cell: usize, group: usize, place: &mut Place) -> Result<(), Cut> {
        let all = self.plan().measures_alone(&self.cells[cell].cell);
        let Some(state) = self.cells[cell].groups.get(group) else { return Ok(()) };
        let mut labels = state.labels(|role| all || is_compared(role));
        labels.shuffle(&mut self.rng);
        self.each_alone(cell, group, &labels, |course, arm| {
            course.one_trial(cell, group, Some(arm), place).map(drop)
        })
    }

    /// Redoes refused trials whole, as long as that costs no more than its
    /// share of the budget; the refused ones stay, marked.
    fn redo(&mut self, again: &[(usize, usize)], place: &mut Place) -> Result<(), Cut> {
        for &(cell, id) in again {
            if self.redo_ns as f64 > REDO_SHARE * self.budget.0 as f64 {
                break;
            }
            let Some(group) = self.cells[cell].place_of_group(id) else { continue };
            let begin_ns = self.elapsed_ns();
            self.one_trial(cell, group, None, place)?;
            self.redo_ns += self.elapsed_ns() - begin_ns;
        }
        Ok(())
    }

    /// Runs one trial with each build, judges it by the gates, and stores it. Returns whether a
    /// gate refused an arm of it, or the machine did.
    fn one_trial(
        &mut self,
        cell: usize,
        group: usize,
        only: Option<usize>,
        place: &mut Place,
    ) -> Result<bool, Cut> {
        if self.means.interrupts.came() {
            return Err(Cut::Short);
        }
        let state = &self.cells[cell];
        let trial = state.trial(&self.builds[0].header.plan, *place, group, only, &mut self.rng);
        let trial = self.with_files(trial);
        place.position += 1;
        let rows = self.cells[cell].refused_rows(group, &trial);
        let (mut is_refused, mut is_noted) = (false, false);
        for build in self.turn() {
            let Means { interrupts, far, .. } = &mut self.means;
            let mut outcome = self.builds[build].run(&trial, far.as_deref_mut(), interrupts)?;
            let status = outcome.status;
            // What one build cannot do is left out for the other too.
            if matches!(status, Status::Failed | Status::Skipped) && !is_noted {
                is_noted = true;
                self.cells[cell].note_failure(group, &outcome);
            }
            // This build's trials decide for both, as its probes do.
            if status == Status::Ok && build == 0 {
                let plan = &self.builds[0].header.plan;
                self.cells[cell].follow(plan, group, &outcome);
            }
            if status != Status::Interrupted {
                outcome.arms.extend(rows.iter().cloned());
            }
            self.keep(build, &outcome)?;
            self.check_far()?;
            if status == Status::Interrupted {
                return Err(Cut::Short);
            }
            let is_invalid = |arm: &ArmOutcome| arm.status == Status::Invalid;
            is_refused |= status == Status::Skipped || outcome.arms.iter().any(is_invalid);
        }
        Ok(is_refused)
    }

    /// Every build once, in random order.
    fn turn(&mut self) -> Vec<usize> {
        let mut turn: Vec<usize> = (0..self.builds.len()).collect();
        turn.shuffle(&mut self.rng);
        turn
    }

    /// Stores what is so for every build.
    fn keep_for_all(&mut self, outcome: &TrialOutcome) -> Result<(), Failure> {
        (0..self.builds.len()).try_for_each(|build| self.keep(build, outcome))
    }

    /// Stores a trial of a build and takes what the analysis needs of it; its slices are in
    /// the store from then on and not here.
    fn keep(&mut self, build: usize, outcome: &TrialOutcome) -> Result<(), Failure> {
        let elapsed_ns = self.elapsed_ns();
        let build = &mut self.builds[build];
        self.means.store.append_trial(&build.header.id, outcome)?;
        self.means.progress.trial(outcome, elapsed_ns);
        build.fold.add(&build.header, outcome);
        Ok(())
    }

    /// Looks at the intervals after a pass. The run of every build has to have enough.
    fn judge(&mut self, at: Moment) -> Decision {
        let analyses: Vec<Analysis> = self.builds.iter().map(Build::analysis).collect();
        self.means.progress.pass(&News {
            precision: Precision::of(&analyses[0], self.plan()),
            passes: self.plan().passes,
            pass: at.pass,
            passes_here: at.passes_here,
            elapsed: Nanos(self.elapsed_ns()),
            budget: Nanos(at.budget_ns),
            pass_time: Nanos(at.longest_ns),
        });
        let decide = |(build, analysis): (&mut Build, &Analysis)| build.decide(analysis);
        let decisions: Vec<Decision> = self.builds.iter_mut().zip(&analyses).map(decide).collect();
        let goes_on = decisions.contains(&Decision::GoOn);
        if goes_on { Decision::GoOn } else { decisions[0] }
    }

    /// Writes down how the run ended.
    fn end(self, stopped_by: StoppedBy) -> Result<Vec<Run>, Failure> {
        let mut ends = Vec::new();
        for build in &self.builds {
            let analysis = build.analysis();
            let mut unmet = iolens_stats::unmet(&analysis, self.plan());
            unmet.extend(self.unmet_searches(&analysis));
            let finished_unix_ns = iolens_engine::clock::unix_ns();
            let paused_ns = self.paused_ns;
            let end = RunEnd { finished_unix_ns, stopped_by, unmet, paused_ns };
            ends.push((&build.header.id, end));
        }
        let store = self.means.store;
        let mut stored = |(id, end): (&String, RunEnd)| {
            store.end_run(id, &end)?;
            store.load(id)
        };
        ends.into_iter().map(&mut stored).collect::<Result<_, _>>().map_err(Failure::unusable)
    }
}

//! The run of `ab`: a trial of each setting in turn, and a look at all of them after 12, 24, 48, …
//! units, until a look decides or the budget is used up.

use iolens_ab::calls::{CALLS_TRIALS, CountedCalls};
use iolens_ab::{AbError, AbExit, AbLayout, AbLinkOrder, AbPosition, AbSetup, AbTurn};
use iolens_engine::worker::protocol::BUILD;
use iolens_engine::{Interrupts, clock};
use iolens_model::ab::{
    AB_OUTPUT_START_BYTES, AbArm, AbAxes, AbCommand, AbMode, AbProgramFacts, AbSetting,
};
use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::cell::Cell;
use iolens_model::external::External;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::{Run, RunEnd, RunHeader, StoppedBy};
use iolens_model::units::Nanos;
use iolens_programs::protocol::quoted;
use iolens_programs::{ProgramFile, ProgramLimits, ProgramPlace, UserProgram};
use iolens_stats::ab::{self, AB_UNITS_MIN, AbLook, AbUnit};
use iolens_store::Store;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::build::refuse_stopped;
use super::order_of;
use crate::failure::{Failure, unusable, usage};
use crate::progress::Progress;

/// What a run needs besides its plan.
pub(crate) struct AbMeans<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) interrupts: &'a Interrupts,
    pub(crate) progress: &'a mut Progress,
    /// Whether system calls are to be counted still.
    pub(crate) counts_calls: bool,
    /// How long a program may take to get ready; `None` for the usual.
    pub(crate) start_limit: Option<Nanos>,
    /// When its budget began, ns of the monotonic clock.
    pub(crate) begin_ns: u64,
}

/// A setting in a run.
struct State {
    cell: Cell,
    setup: AbSetup,
    layout: AbLayout,
    /// Trials in which a program failed, in the order of the setup.
    failures: Vec<u32>,
}

struct Course<'a> {
    means: AbMeans<'a>,
    run: Run,
    unit: AbUnit,
    /// Which links the trials run; `None` where each program is one file.
    links: Option<AbLinkOrder>,
    cells: Vec<State>,
    /// What the rounds of all trials took.
    rounds_ns: u64,
}

/// Passes that have room in the budget, where trials can be that short: a verdict takes 12, what
/// moves whole processes is told from the change after 24, and what comes before the rounds of a
/// trial does not become shorter.
const PASSES_WANTED: u32 = 26;

/// One in so many parts of the budget may be spent on finding out anew what slices take, where a
/// busy machine or a cold cache has them seem to become cheaper.
const ANEW_SHARE: u64 = 8;

/// One in so many parts of the budget is left to the ends of processes, and as much to those of
/// processes that do not end by themselves; at most [`END_NS_MAX`] each.
const END_SHARE: u64 = 50;

/// What the ends of processes take on a busy machine, ns, whatever the budget.
const END_NS_MAX: u64 = 250_000_000;

/// Failed trials after which a program is left out.
const FAILURES_MAX: u32 = 2;

/// Measures the plan in `header` and returns the run as it is stored.
///
/// Errors: a program that cannot be measured, before anything is stored; programs that do not
/// compute the same.
pub(crate) fn measure(header: RunHeader, means: AbMeans<'_>) -> Result<Run, Failure> {
    let axes =
        header.plan.ab().ok_or_else(|| Failure::usage("this is not a plan of `ab`"))?.clone();
    let links = axes.links.then(|| link_order(&header)).transpose()?;
    means.progress.calibrating(header.plan.cells().len());
    let cells = header.plan.cells().into_iter().filter_map(|cell| {
        let setting = cell.ab()?.clone();
        Some(State::found(&header, &axes, (cell, &setting), &means))
    });
    let cells = cells.collect::<Result<Vec<State>, Failure>>()?;
    means.store.begin_run(&header)?;
    let run = Run { header, trials: Vec::new(), profiles: Vec::new(), searches: Vec::new() };
    let unit = AbUnit::of(axes.mode);
    let mut course = Course { means, run, unit, links, cells, rounds_ns: 0 };
    let stopped = course.passes();
    course.means.progress.finish();
    let (stopped_by, failure) = match stopped {
        Ok(rule) => (rule, None),
        Err(failure) => (StoppedBy::NothingUsable, Some(failure)),
    };
    if failure.is_none() && stopped_by != StoppedBy::Interrupted {
        course.count_calls()?;
    }
    course.end(stopped_by)?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(course.run),
    }
}

impl State {
    /// A setting, and how its trials are to be.
    fn found(
        header: &RunHeader,
        axes: &AbAxes,
        (cell, setting): (Cell, &AbSetting),
        means: &AbMeans<'_>,
    ) -> Result<State, Failure> {
        let mut setup = setup(header, axes, setting);
        if let Some(limit) = means.start_limit {
            setup.limits.start_ns = limit.0;
        }
        let interrupted = || means.interrupts.came();
        let layout = iolens_ab::calibrate(&setup, header.plan.seed, &interrupted);
        let layout = layout.map_err(|error| match error {
            AbError::Interrupted => Failure::interrupted("interrupted: nothing is measured"),
            AbError::System(_) | AbError::NoRoom { .. } => Failure::unusable(error),
            AbError::Program { .. }
            | AbError::NotProportional { .. }
            | AbError::SpeaksLoop { .. }
            | AbError::PreparesDiffer { .. }
            | AbError::TooShort { .. } => Failure::usage(error),
        })?;
        let failures = vec![0; setup.programs.len()];
        Ok(State { cell, setup, layout, failures })
    }

    /// The setup of a trial whose programs run these of their links, by the order of the plan.
    fn with_links(&self, header: &RunHeader, links: &[u32]) -> AbSetup {
        let mut setup = self.setup.clone();
        for program in &mut setup.programs {
            let Some(nth) = place_of(&header.plan, &program.name) else { continue };
            let facts = self.cell.ab().and_then(|setting| header.ab_program(setting, nth));
            let Some((facts, &link)) = facts.zip(links.get(nth)) else { continue };
            program.file = ProgramFile::from(&facts.of_link(link as usize));
            program.argv[0].clone_from(&program.file.path);
        }
        setup
    }

    /// Leaves out a program.
    fn drop_program(&mut self, at: usize) {
        self.setup.programs.remove(at);
        self.layout.programs.remove(at);
        self.failures.remove(at);
    }

    /// Counts the programs that failed, and leaves out those that did too often.
    fn note_failures(&mut self, trial: &iolens_ab::AbTrial) {
        for at in (0..self.setup.programs.len()).rev() {
            let name = &self.setup.programs[at].name;
            let own = trial.arms.iter().filter(|arm| arm.arm.primitive == *name);
            let faults: Vec<_> = own.filter_map(|arm| arm.fault.as_ref()).collect();
            self.failures[at] += u32::from(!faults.is_empty());
            let is_over = faults.iter().any(|fault| fault.ends_the_arm());
            if is_over || self.failures[at] >= FAILURES_MAX {
                self.drop_program(at);
            }
        }
    }

    /// Whether there is still something to compare with the baseline.
    fn is_alive(&self, baseline: &str) -> bool {
        let programs = &self.setup.programs;
        programs.len() > 1 && programs.first().is_some_and(|first| first.name == baseline)
    }
}

fn setup(header: &RunHeader, axes: &AbAxes, setting: &AbSetting) -> AbSetup {
    let program = |(nth, program): (usize, &External)| {
        let (mut argv, facts) = (axes.command(setting, nth)?, header.ab_program(setting, nth)?);
        if let (true, Some(first)) = (axes.links, argv.first_mut()) {
            // Until a trial takes another one.
            first.clone_from(&facts.path);
        }
        Some(UserProgram { name: program.name.clone(), argv, file: facts.into() })
    };
    AbSetup {
        mode: axes.mode,
        programs: axes.programs.iter().enumerate().filter_map(program).collect(),
        place: if axes.in_place { ProgramPlace::InPlace } else { ProgramPlace::FreshCopy },
        exit: if axes.ignore_exit { AbExit::Ignored } else { AbExit::MustBeZero },
        input: axes.input(setting).map(str::to_owned),
        prepare: axes.prepare(setting).map(<[String]>::to_vec),
        cpus: header.plan.cpus.as_ref().unwrap_or(&header.host.cpus).clone(),
        slice_ns: match header.plan.schedule {
            Schedule::Slices { slice, .. } => slice.0,
            Schedule::Window { .. } | Schedule::Messages { .. } => iolens_ab::AB_SLICE_NS,
        },
        warm_up_ns: axes.warm_up.map(|time| time.0),
        anew_ns: header.plan.budget.0 / (ANEW_SHARE * header.plan.cells().len().max(1) as u64),
        limits: ProgramLimits::USUAL,
    }
}

impl Course<'_> {
    fn elapsed_ns(&self) -> u64 {
        clock::monotonic_ns() - self.means.begin_ns
    }

    /// Passes until a look decides.
    fn passes(&mut self) -> Result<StoppedBy, Failure> {
        let baseline = self.run.header.plan.baseline.clone();
        let (mut longest_ns, mut look) = (0, self.unit.next_look(0));
        for pass in 1..=self.run.header.plan.passes.maximum {
            let begin_ns = self.elapsed_ns();
            if !self.has_time(pass, longest_ns) {
                return Ok(StoppedBy::Budget);
            }
            let failures = self.failures();
            if let Some(rule) = self.pass(pass)? {
                return Ok(rule);
            }
            if !self.cells.iter().any(|cell| cell.is_alive(&baseline)) {
                return Ok(StoppedBy::NothingUsable);
            }
            let took_ns = self.elapsed_ns() - begin_ns;
            // The first says nothing of those that it has made shorter.
            longest_ns = if pass == 2 { took_ns } else { longest_ns.max(took_ns) };
            if pass == 1 && self.unit == AbUnit::Trial {
                self.shorten(took_ns);
            }
            // Early, so that the budget has room for it; not of a program that hangs.
            if self.failures() == failures && !self.verdict_needs_all(pass, longest_ns) {
                self.count_calls()?;
            }
            if self.units(pass) < look || !pass.is_multiple_of(self.passes_of_a_round()) {
                continue;
            }
            look = self.unit.next_look(self.units(pass));
            let analysis = ab::at(&self.run, AbLook::Early, Some(self.elapsed_ns()));
            match analysis {
                Some(analysis) if analysis.decided() => return Ok(StoppedBy::Precision),
                Some(analysis) if analysis.is_exhausted() => return Ok(StoppedBy::Stalled),
                _ => self.tell_undecided(pass),
            }
        }
        Ok(StoppedBy::Passes)
    }

    /// Has trials be short enough for a verdict within the budget, of which the first pass took so
    /// long.
    fn shorten(&mut self, pass_ns: u64) {
        let left_ns = self.run.header.plan.budget.0.saturating_sub(self.elapsed_ns());
        let pass_at_most_ns = left_ns / u64::from(PASSES_WANTED);
        for state in &mut self.cells {
            state.layout.shorten(pass_ns, self.rounds_ns, pass_at_most_ns);
        }
    }

    /// Trials of programs that failed and are not left out yet.
    fn failures(&self) -> u32 {
        self.cells.iter().flat_map(|cell| &cell.failures).sum()
    }

    fn tell_undecided(&self, passes: u32) {
        let elapsed_ns = self.elapsed_ns();
        let left_ns = self.run.header.plan.budget.0.saturating_sub(elapsed_ns);
        self.means.progress.undecided(passes, elapsed_ns, left_ns);
    }

    /// Whether a pass fits into the budget, of which the longest took so long; of links all that
    /// are left of a round. In the first round any pass is of use, in others half of one is not.
    fn has_time(&self, pass: u32, longest_ns: u64) -> bool {
        let (begin_ns, round) = (self.elapsed_ns(), self.passes_of_a_round());
        let before = u64::from(pass - 1);
        let next_ns = match before % u64::from(round) {
            _ if pass <= round => longest_ns,
            0 => longest_ns + ab::passes_ns(&self.run.trials) / before * u64::from(round - 1),
            _ => 0,
        };
        pass == 1 || begin_ns + next_ns <= self.run.header.plan.budget.0 - self.end_ns()
    }

    /// What is kept of the budget for processes that have to be ended, ns.
    fn end_ns(&self) -> u64 {
        (self.run.header.plan.budget.0 / END_SHARE).min(END_NS_MAX)
    }

    /// Passes after which every link has been used equally often; 1 where there are none.
    fn passes_of_a_round(&self) -> u32 {
        self.links.as_ref().map_or(1, AbLinkOrder::round)
    }

    /// Units that every setting has after so many passes, if nothing failed.
    fn units(&self, pass: u32) -> u32 {
        let a_trial = |cell: &State| match self.unit {
            AbUnit::Trial => 1,
            AbUnit::Round => cell.layout.rounds,
        };
        pass.saturating_mul(self.cells.iter().map(a_trial).min().unwrap_or(1))
    }

    /// A trial of each setting, in random order; what ends the run, if something does. Loops, whose
    /// trials are a small part of the budget, end with it, but for the first pass: what is going on
    /// then is lost.
    fn pass(&mut self, pass: u32) -> Result<Option<StoppedBy>, Failure> {
        let mut rng = order_of(self.run.header.plan.seed, pass);
        let baseline = self.run.header.plan.baseline.clone();
        let is_alive = |at: &usize| self.cells[*at].is_alive(&baseline);
        let mut order: Vec<usize> = (0..self.cells.len()).filter(is_alive).collect();
        order.shuffle(&mut rng);
        let links = self.links.as_ref().map(|links| links.of(pass));
        let before_end = |ns| self.run.header.plan.budget.0 - ns;
        let end_ns = self.means.begin_ns.saturating_add(before_end(self.end_ns()));
        let deadline_ns = self.means.begin_ns.saturating_add(before_end(2 * self.end_ns()));
        let can_be_cut = pass > 1 && self.unit == AbUnit::Trial;
        for (position, at) in (0..).zip(order) {
            let state = &mut self.cells[at];
            let is_over = || can_be_cut && clock::monotonic_ns() >= end_ns;
            let interrupted = || self.means.interrupts.came() || is_over();
            let header = &self.run.header;
            let setup = links.as_ref().map(|links| state.with_links(header, links));
            let setup = setup.as_ref().unwrap_or(&state.setup);
            let turn = AbTurn { pass, seed: rng.random(), deadline_ns };
            self.means.interrupts.was_stopped();
            let mut trial = iolens_ab::trial(setup, &state.layout, turn, &interrupted);
            let was_stopped = self.means.interrupts.was_stopped();
            let is_cut = trial.status().0 == Status::Interrupted;
            if is_cut && !self.means.interrupts.came() {
                return Ok(Some(StoppedBy::Budget));
            }
            for arm in &mut trial.arms {
                let place = place_of(&header.plan, &arm.arm.primitive);
                arm.ab.link =
                    place.zip(links.as_ref()).and_then(|(at, links)| links.get(at).copied());
            }
            self.rounds_ns += trial.rounds_ns;
            if !was_stopped {
                state.note_failures(&trial);
                state.layout.learn(&state.setup, &trial);
            }
            let at = AbPosition { pass, position, cell: state.cell.clone(), build: BUILD.into() };
            let mut outcome = trial.outcome(at);
            if was_stopped {
                refuse_stopped(&mut outcome);
            }
            let status = outcome.status;
            self.keep(outcome)?;
            if status == Status::Interrupted {
                return Ok(Some(StoppedBy::Interrupted));
            }
        }
        Ok(None)
    }

    fn keep(&mut self, mut outcome: TrialOutcome) -> Result<(), Failure> {
        let differ = self.run.header.plan.ab().filter(|axes| !axes.different_output);
        let differ = differ.and_then(|axes| different(axes, &outcome));
        for own in outcome.arms.iter_mut().filter_map(|arm| arm.ab.as_mut()) {
            own.output_start = Vec::new();
        }
        self.means.store.append_trial(&self.run.header.id, &outcome)?;
        self.means.progress.program_trial(&outcome, self.elapsed_ns());
        self.run.trials.push(outcome);
        differ.map_or(Ok(()), Err)
    }

    /// Whether a verdict takes all that is left of the budget, of which the longest pass took so
    /// long: calls are counted afterwards then, if there is time.
    fn verdict_needs_all(&self, pass: u32, longest_ns: u64) -> bool {
        let left_ns = self.run.header.plan.budget.0.saturating_sub(self.elapsed_ns());
        let units = self.units(pass);
        let passes = AB_UNITS_MIN.saturating_sub(units).div_ceil((units / pass).max(1));
        let verdict_ns = longest_ns.saturating_mul(passes.into());
        // Two trials of each program start it as often as a pass does with its copies.
        (verdict_ns..verdict_ns.saturating_add(longest_ns)).contains(&left_ns)
    }

    /// Counts the system calls of each program once, in trials of their own, which no clock sees,
    /// as far as the budget has room for them.
    fn count_calls(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.means.counts_calls) {
            return Ok(());
        }
        let programs: u64 = self.cells.iter().map(|cell| cell.setup.programs.len() as u64).sum();
        let passes: u64 = self.run.trials.iter().map(|trial| trial.pass.into()).max().unwrap_or(0);
        let mut longest_ns = ab::passes_ns(&self.run.trials) / (passes * programs).max(1);
        for at in 0..self.cells.len() {
            for program in 0..self.cells[at].setup.programs.len() {
                let begin_ns = self.elapsed_ns();
                if begin_ns + longest_ns > self.run.header.plan.budget.0 {
                    let now = [clock::unix_ns(), clock::monotonic_ns()];
                    let why = Err("the budget has no time for that".to_owned());
                    self.keep(self.counting(at, program, now, why))?;
                    continue;
                }
                for position in 0..CALLS_TRIALS {
                    let outcome = self.counted(at, program, position);
                    let is_over = outcome.arms[0].status != Status::Ok;
                    self.keep(outcome)?;
                    if is_over {
                        break;
                    }
                }
                longest_ns = longest_ns.max(self.elapsed_ns() - begin_ns);
            }
        }
        Ok(())
    }

    /// A trial of one program that counts its calls.
    fn counted(&self, at: usize, program: usize, position: usize) -> TrialOutcome {
        let State { setup, layout, .. } = &self.cells[at];
        let begin = [clock::unix_ns(), clock::monotonic_ns()];
        let interrupted = || self.means.interrupts.came();
        let counted = iolens_ab::count_calls(setup, program, layout.operations, &interrupted);
        let counted = counted.map_err(|why| why.to_string());
        let position = u32::try_from(position).unwrap_or(0);
        TrialOutcome { position, ..self.counting(at, program, begin, counted) }
    }

    /// What a trial that counts calls has come to, which is of no pass; it began at this time, ns
    /// since 1970 and of the monotonic clock.
    fn counting(
        &self,
        at: usize,
        program: usize,
        [started_unix_ns, begin_ns]: [u64; 2],
        counted: Result<CountedCalls, String>,
    ) -> TrialOutcome {
        let State { cell, setup, .. } = &self.cells[at];
        let (status, reason, counted) = match counted {
            Ok(CountedCalls { calls, by }) => (Status::Ok, None, (calls, Some(by))),
            Err(why) => {
                let reason = format!("system calls are not counted: {why}");
                (Status::Skipped, Some(reason), <_>::default())
            }
        };
        let (calls, calls_by) = counted;
        let name = &setup.programs[program].name;
        let role = Role::against(*name == self.run.header.plan.baseline, false);
        let arm = Arm { label: name.clone(), primitive: name.clone(), role };
        TrialOutcome {
            pass: 0,
            position: 0,
            isolated: true,
            cell: cell.clone(),
            started_unix_ns,
            duration_ns: clock::monotonic_ns() - begin_ns,
            status: Status::Ok,
            reason: None,
            arms: vec![ArmOutcome {
                ab: Some(Box::new(AbArm { calls, calls_by, ..AbArm::default() })),
                ..ArmOutcome::of(arm, status, reason)
            }],
            slices: Vec::new(),
            environment: iolens_model::outcome::Environment::unknown("calls are counted"),
            far_environment: None,
            tx: None,
            rx: None,
        }
    }

    fn end(&mut self, stopped_by: StoppedBy) -> Result<(), Failure> {
        let end = RunEnd {
            finished_unix_ns: clock::unix_ns(),
            stopped_by,
            unmet: Vec::new(),
            paused_ns: 0,
        };
        self.means.store.end_run(&self.run.header.id, &end)?;
        self.run.header.end = Some(end);
        Ok(())
    }
}

/// The place of a program in the plan.
fn place_of(plan: &Plan, name: &str) -> Option<usize> {
    plan.primitives.iter().position(|own| own == name)
}

/// Errors: it would take too many trials until every link has been used equally often.
fn link_order(header: &RunHeader) -> Result<AbLinkOrder, Failure> {
    let counts = || header.programs.iter().map(|facts| facts.links.len());
    AbLinkOrder::new(counts(), header.plan.seed).ok_or_else(|| {
        let counts: Vec<String> = counts().map(|count| count.to_string()).collect();
        usage!(
            "the programs have {} links: it takes more than {} trials to use all equally often\n  \
             give each program as many as the others",
            counts.join(" and "),
            AbLinkOrder::ROUND_MAX
        )
    })
}

/// What is known of the programs.
///
/// Errors: one that cannot be run or read, or whose links are none.
pub(crate) fn facts(axes: &AbAxes) -> Result<Vec<AbProgramFacts>, Failure> {
    let fact = |command: AbCommand<'_>| {
        let found = match axes.links {
            true => iolens_ab::links(command.argv).map_err(|error| error.to_string()),
            false => iolens_programs::facts(command.argv).map_err(|error| error.to_string()),
        };
        found.map_err(|error| {
            let of = command.bench.map_or_else(String::new, |bench| format!("{bench}: "));
            usage!("{of}{}: {error}", command.program)
        })
    };
    axes.commands().into_iter().map(fact).collect()
}

// Programs that print or compute different things: they are not compared, and the first
// difference is shown.

/// What an arm printed, by the name of its program.
type Output<'a> = (&'a str, &'a AbArm);

/// Why a trial is no comparison; `None` where all of its programs did the same.
pub(super) fn different(axes: &AbAxes, trial: &TrialOutcome) -> Option<Failure> {
    let ended = trial.arms.iter().filter(|outcome| outcome.status == Status::Ok);
    let outputs = ended.filter_map(|outcome| {
        let own = outcome.ab.as_deref()?;
        Some((outcome.arm.primitive.as_str(), own.output_sha256.as_ref().and(Some(own))?))
    });
    let outputs: Vec<Output<'_>> = outputs.collect();
    let first = outputs.first()?;
    let other = outputs.iter().find(|(_, own)| own.output_sha256 != first.1.output_sha256)?;
    let what = match axes.mode {
        AbMode::Loop => "answer with different sums",
        AbMode::Command => "print different bytes",
    };
    let who = match first.0 == other.0 {
        true => format!("two runs of {}", first.0),
        false => format!("{} and {}", first.0, other.0),
    };
    Some(unusable!(
        "{who} {what}: faster and wrong is not faster\n  {}\n  accept that with --different-output",
        first_difference(axes.mode, first, other)
    ))
}

/// Where two outputs differ first.
fn first_difference(mode: AbMode, a: &Output<'_>, b: &Output<'_>) -> String {
    let lines = |output: &Output<'_>| -> Vec<Vec<u8>> {
        output.1.output_start.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (of_a, of_b) = (lines(a), lines(b));
    let unit = match mode {
        AbMode::Loop => "slice",
        AbMode::Command => "line",
    };
    let said = |line: Option<&Vec<u8>>| match line {
        Some(line) if !line.is_empty() => format!("`{}`", quoted(line)),
        _ => "nothing".to_owned(),
    };
    let places = 0..of_a.len().max(of_b.len());
    match places.into_iter().find(|&at| of_a.get(at) != of_b.get(at)) {
        Some(at) => {
            let (of_a, of_b) = (said(of_a.get(at)), said(of_b.get(at)));
            format!("{unit} {}: {of_a} ({}), {of_b} ({})", at + 1, a.0, b.0)
        }
        None => format!("they agree in their first {} KiB", AB_OUTPUT_START_BYTES >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &[u8]) -> AbArm {
        AbArm { output_start: text.to_vec(), ..AbArm::default() }
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let said = |mode, a: &[u8], b: &[u8]| {
            first_difference(mode, &("main", &printed(a)), &("pr", &printed(b)))
        };
        let command = AbMode::Command;
        assert_eq!(said(command, b"a\nb\n", b"a\nc\n"), "line 2: `b` (main), `c` (pr)");
        assert_eq!(said(command, b"a\n", b"a\nc"), "line 2: nothing (main), `c` (pr)");
        assert_eq!(said(command, b"\x1b[2J", b""), "line 1: `\\u{1b}[2J` (main), nothing (pr)");
        assert_eq!(said(command, b"a\n", b"a"), "line 2: nothing (main), nothing (pr)");
        assert_eq!(said(command, b"same", b"same"), "they agree in their first 64 KiB");
        assert_eq!(said(AbMode::Loop, b"9f\n3c\n", b"9f\n3d\n"), "slice 2: `3c` (main), `3d` (pr)");
    }
}

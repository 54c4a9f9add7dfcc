//! Whole commands: each run from start to end is one operation. A round runs each arm once.
//!
//! Standard output is a file in memory, emptied between runs, and never /dev/null: grep(1) stops at
//! its first match where that is its output.

use iolens_model::ab::AB_OUTPUT_START_BYTES;
use iolens_programs::{
    Around, Charged, Prepared, Process, ProgramFault, ProgramFile, ProgramPlace, Reading,
    UserProgram, describe_end, find_program, protocol, sha256_of,
};
use std::fs::File;
use std::io::Seek;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use iolens_model::command_line;
use iolens_sys::errno::Errno;
use iolens_sys::{clock, file};

use crate::calibrate::{AbError, median};
use crate::setup::{AbCopies, AbExit, AbLayout, AbPlacement, AbProgramLayout, AbSetup};
use crate::trial::{AbTrial, AbTurn, Course, Draws, Pinned, slice_outcome, within};

/// A run that takes less is refused.
const RUN_NS_MIN: u64 = 1_000_000;

/// Time of a trial's rounds, in which there is one at least.
const ROUNDS_NS: u64 = 300_000_000;

/// Rounds of a trial at most.
const ROUNDS_MAX: u64 = 10;

/// CPU time over time, from which a command uses more than one processor.
const CPUS_OF_ONE: f64 = 1.05;

/// Runs a trial to its end. An arm that fails does not stop the others.
pub(crate) fn trial(
    setup: &AbSetup,
    layout: &AbLayout,
    turn: AbTurn,
    interrupted: &dyn Fn() -> bool,
) -> AbTrial {
    within(setup, layout, turn.seed, |_, draws, course| {
        let arms = setup.arms(layout.copies);
        let mut stages: Vec<Option<Stage<'_>>> = Vec::with_capacity(arms.len());
        for (arm, (_, program)) in arms.iter().enumerate() {
            let expected_ns = layout.programs.get(*program).map_or(0, |own| own.expected_ns);
            let limit_ns = setup.limits.of_slice(expected_ns);
            let stage = Stage::new(setup, &setup.programs[*program], limit_ns);
            stages.push(stage.map_err(|fault| course.end(arm, fault)).ok());
        }
        let mut round = 0;
        while turn.has_round(round, layout.rounds, 1) {
            let mut order = course.going();
            draws.shuffle(&mut order);
            for arm in order {
                if course.is_interrupted() {
                    return;
                }
                if let Some(stage) = &mut stages[arm] {
                    run_one(stage, (arm, round), draws, course, interrupted);
                }
            }
            round += 1;
        }
    })
}

fn run_one(
    stage: &mut Stage<'_>,
    (arm, round): (usize, u32),
    draws: &mut Draws,
    course: &mut Course,
    interrupted: &dyn Fn() -> bool,
) {
    let done = stage.run(&format!("in run {round}"), draws, interrupted).and_then(|reading| {
        let output = if round == 0 { Some(stage.output()?) } else { None };
        Ok((reading, output))
    });
    match done {
        Ok((reading, output)) => {
            let seq = course.slices.len();
            let cpu_ns = reading.cpu_ns;
            let ticks = &mut course.arms[arm].ab.ticks;
            *ticks = match (*ticks, reading.charged.ticks) {
                (Some(sum), Some(own)) => Some([sum[0] + own[0], sum[1] + own[1]]),
                (sum, own) => sum.or(own),
            };
            course.slices.push(slice_outcome((seq, round, arm), 1, &reading, cpu_ns));
            if let Some((sha256, start)) = output {
                let ab = &mut course.arms[arm].ab;
                (ab.output_sha256, ab.output_start) = (Some(sha256), start);
            }
        }
        Err(fault) => course.end(arm, fault),
    }
}

/// Finds out how long each command takes and what it uses, and that each runs at all.
pub(crate) fn calibrate(
    setup: &AbSetup,
    seed: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<AbLayout, AbError> {
    let mut draws = Draws::of(seed);
    let all_cpus = AbPlacement::AllCpus;
    let pinned = Pinned::as_placed(setup, all_cpus, &mut draws).map_err(AbError::System)?;
    let true_ns = time_of_true(setup, &mut draws, interrupted);
    let (mut programs, mut placement) = (Vec::new(), AbPlacement::OneCpu);
    for (index, program) in setup.programs.iter().enumerate() {
        let failed = |fault| AbError::of(setup, index, fault);
        let limit_ns = setup.limits.first_run_ns;
        let mut stage = Stage::new(setup, program, limit_ns).map_err(failed)?;
        let usual = stage.usual(&mut draws, interrupted).map_err(failed)?;
        if stage.says_ready_alone() {
            return Err(AbError::SpeaksLoop { name: program.name.clone() });
        }
        if let Some(why) = too_short(&program.name, usual.fastest_ns, true_ns) {
            return Err(why);
        }
        if usual.cpus > CPUS_OF_ONE {
            placement = all_cpus;
        }
        let expected_ns = usual.middle_ns;
        programs.push(AbProgramLayout { operations: 1, expected_ns, ..AbProgramLayout::default() });
    }
    drop(pinned);
    let of_arm = |(_, program): (_, usize)| programs[program].expected_ns;
    let round_ns: u64 = setup.arms(AbCopies::OfAll).into_iter().map(of_arm).sum();
    let rounds = (ROUNDS_NS / round_ns.max(1)).clamp(1, ROUNDS_MAX);
    Ok(AbLayout {
        operations: 1,
        rounds: u32::try_from(rounds).unwrap_or(1),
        warm_slices: 0,
        // One runs at a time.
        copies: AbCopies::OfAll,
        placement,
        around: Around::Process,
        programs,
        true_ns,
    })
}

/// What starting the smallest program takes; `None` where there is none.
fn time_of_true(setup: &AbSetup, draws: &mut Draws, interrupted: &dyn Fn() -> bool) -> Option<u64> {
    let argv = vec!["true".to_owned()];
    let program = UserProgram { name: "true".to_owned(), file: ProgramFile::of(&argv).ok()?, argv };
    let alone = AbSetup { prepare: None, input: None, ..setup.clone() };
    let mut stage = Stage::new(&alone, &program, setup.limits.first_run_ns).ok()?;
    stage.usual(draws, interrupted).ok().map(|usual| usual.fastest_ns)
}

/// Why a run is mostly the start of a process, if it is: its fastest, as others on the machine
/// make some of them longer.
fn too_short(name: &str, fastest_ns: u64, true_ns: Option<u64>) -> Option<AbError> {
    let (name, us, true_us) = (name.to_owned(), fastest_ns / 1000, true_ns.unwrap_or(0) / 1000);
    (fastest_ns < RUN_NS_MIN).then_some(AbError::TooShort { name, us, true_us })
}

/// User and kernel time of a run in ticks, where it has enough of them: of a run in which none fell
/// the kernel calls all user time.
fn ticks(cpu: Duration, kernel: Duration) -> Option<[u64; 2]> {
    const TICK: Duration = Duration::from_millis(10);
    const LEAST: Duration = Duration::from_millis(100);
    let whole = |time: Duration| u64::try_from(time.as_nanos() / TICK.as_nanos()).unwrap_or(0);
    let user = cpu.saturating_sub(kernel);
    (cpu >= LEAST).then(|| [whole(user), whole(kernel)])
}

/// What a few runs took.
struct Usual {
    fastest_ns: u64,
    middle_ns: u64,
    /// CPU time over time.
    cpus: f64,
}

/// Bytes of output that are looked at for a `ready`.
const READY_BYTES: usize = 1024;

/// A command and where its output goes.
pub(crate) struct Stage<'a> {
    setup: &'a AbSetup,
    program: &'a UserProgram,
    output: File,
    limit_ns: u64,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        setup: &'a AbSetup,
        program: &'a UserProgram,
        limit_ns: u64,
    ) -> Result<Stage<'a>, ProgramFault> {
        let output = file::in_memory("iolens-output").map_err(|errno| {
            ProgramFault::System(format!("cannot create a file in memory for its output: {errno}"))
        })?;
        Ok(Stage { setup, program, output, limit_ns })
    }

    /// Runs it a few times.
    fn usual(
        &mut self,
        draws: &mut Draws,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Usual, ProgramFault> {
        const RUNS: usize = 5;
        const MOST_NS: u64 = 1_000_000_000;
        let (mut times, mut cpus, mut spent_ns) = (Vec::new(), Vec::new(), 0);
        while times.is_empty() || times.len() < RUNS && spent_ns < MOST_NS {
            let reading = self.run("in a run before the trials", draws, interrupted)?;
            spent_ns += reading.took_ns;
            times.push(reading.took_ns);
            cpus.extend(reading.cpu_ns.map(|cpu| cpu as f64 / reading.took_ns.max(1) as f64));
        }
        times.sort_unstable();
        let at = |place: usize| times.get(place).copied().unwrap_or(0);
        let (fastest_ns, middle_ns) = (at(0), at(times.len() / 2));
        Ok(Usual { fastest_ns, middle_ns, cpus: median(cpus).unwrap_or(0.0) })
    }

    /// Runs it once, from a fresh copy of its file.
    fn run(
        &mut self,
        when: &str,
        draws: &mut Draws,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Reading, ProgramFault> {
        let [input, output] = self.ready(draws, interrupted)?;
        let files = [input.as_fd(), output.as_fd()];
        let mut prepared = Prepared::new(self.program, self.setup.place, draws.seed(), &files)?;
        let begin_ns = clock::monotonic_ns();
        let process = prepared.begin_timed(&self.program.file)?;
        let deadline_ns = begin_ns.saturating_add(self.limit_ns);
        if !process.ends_by(deadline_ns, interrupted) {
            return Err(self.did_not_end(when, &process, interrupted));
        }
        let ended = process.wait();
        let end_ns = clock::monotonic_ns();
        let ended = ended.map_err(|errno| {
            ProgramFault::System(format!("{when}: cannot wait for it: {errno}"))
        })?;
        self.must_be_well(when, &process, ended.status)?;
        Ok(Reading {
            took_ns: end_ns - begin_ns,
            cpu_ns: u64::try_from(ended.cpu.as_nanos()).ok(),
            charged: Charged {
                faults: Some(ended.faults()),
                switches: Some(ended.switches()),
                ticks: ticks(ended.cpu, ended.kernel),
                ..Charged::default()
            },
            ..Reading::default()
        })
    }

    /// Does what comes before a run, and returns its input and its output.
    pub(crate) fn ready(
        &mut self,
        draws: &mut Draws,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<[File; 2], ProgramFault> {
        if let Some(words) = &self.setup.prepare {
            self.prepare(words, draws, interrupted)?;
        }
        self.empty_output()?;
        let output = self.output.try_clone().map_err(|e| {
            let errno = Errno::from(e);
            ProgramFault::System(format!("cannot hand over the file of its output: {errno}"))
        })?;
        Ok([self.input()?, output])
    }

    fn did_not_end(
        &self,
        when: &str,
        process: &Process,
        interrupted: &dyn Fn() -> bool,
    ) -> ProgramFault {
        if interrupted() {
            return ProgramFault::Interrupted;
        }
        let when =
            format!("{when}, of a whole command (--loop is for programs that wait for work)");
        ProgramFault::Hangs {
            when,
            what: "end",
            limit_ns: self.limit_ns,
            heard: process.last_words(),
        }
    }

    fn must_be_well(&self, when: &str, process: &Process, status: i32) -> Result<(), ProgramFault> {
        let status = ExitStatus::from_raw(status);
        match status.code() {
            Some(0) => Ok(()),
            Some(_) if self.setup.exit == AbExit::Ignored => Ok(()),
            Some(_) => {
                let more = " (--ignore-exit measures it all the same)";
                Err(ProgramFault::BadExit(format!("{when}: it {}", process.obituary_with(more))))
            }
            None => Err(ProgramFault::Died { when: when.to_owned(), how: process.obituary() }),
        }
    }

    fn empty_output(&mut self) -> Result<(), ProgramFault> {
        let emptied = self.output.set_len(0).and_then(|()| self.output.rewind());
        emptied.map_err(|e| {
            ProgramFault::System(format!("cannot empty the file of its output: {}", Errno::from(e)))
        })
    }

    fn input(&self) -> Result<File, ProgramFault> {
        let path = self.setup.input.as_deref().unwrap_or("/dev/null");
        File::open(path).map_err(|e| {
            ProgramFault::NotStarted(format!("cannot open its input {path}: {}", Errno::from(e)))
        })
    }

    /// SHA-256 of what the last run printed, and how it begins.
    fn output(&mut self) -> Result<(String, Vec<u8>), ProgramFault> {
        let read = sha256_of(&mut self.output).and_then(|sha256| {
            let mut start = vec![0; AB_OUTPUT_START_BYTES];
            let length = self.output.read_at(&mut start, 0)?;
            start.truncate(length);
            Ok((sha256, start))
        });
        read.map_err(|errno| ProgramFault::System(format!("cannot read its output back: {errno}")))
    }

    /// Whether the last run printed a line that begins with `ready`, and no other.
    fn says_ready_alone(&self) -> bool {
        let mut start = [0; READY_BYTES];
        let read = self.output.read_at(&mut start, 0).unwrap_or(0);
        match start[..read].split_last() {
            Some((b'\n', line)) => {
                !line.contains(&b'\n') && matches!(protocol::ready(line), Ok(Some(_)))
            }
            _ => false,
        }
    }

    /// Runs the command that comes before each run.
    fn prepare(
        &mut self,
        words: &[String],
        draws: &mut Draws,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), ProgramFault> {
        let command = command_line::join(words);
        let failed = |why: &str| ProgramFault::NotStarted(format!("--prepare `{command}` {why}"));
        let name = words.first().ok_or_else(|| failed("is empty: name a program"))?;
        let found = find_program(name).map_err(|why| failed(&format!("is not there: {why}")))?;
        let file = ProgramFile { path: found.display().to_string(), is_elf: false };
        let program = UserProgram { name: name.clone(), argv: words.to_vec(), file };
        self.empty_output()?;
        let null = File::open("/dev/null").map_err(|e| {
            ProgramFault::System(format!("cannot open /dev/null: {}", Errno::from(e)))
        })?;
        let files = [null.as_fd(), self.output.as_fd()];
        let mut prepared = Prepared::new(&program, ProgramPlace::InPlace, draws.seed(), &files)?;
        let process = prepared.begin_timed(&program.file)?;
        let deadline_ns = clock::monotonic_ns().saturating_add(self.setup.limits.first_run_ns);
        if !process.ends_by(deadline_ns, interrupted) {
            return match interrupted() {
                true => Err(ProgramFault::Interrupted),
                false => Err(failed("does not end, and was killed")),
            };
        }
        match process.wait() {
            Ok(ended) if ended.status == 0 => Ok(()),
            Ok(ended) => {
                let how = describe_end(ExitStatus::from_raw(ended.status));
                Err(failed(&format!("{how}{}", process.last_words())))
            }
            Err(errno) => Err(failed(&format!("cannot be waited for: {errno}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_few_ticks_is_not_split() {
        let ms = Duration::from_millis;
        assert_eq!(ticks(ms(99), ms(0)), None);
        assert_eq!(ticks(ms(250), ms(110)), Some([14, 11]));
        assert_eq!(ticks(ms(100), ms(200)), Some([0, 20]));
    }

    #[test]
    fn a_short_run_is_refused_with_the_remedy() {
        assert_eq!(too_short("a", RUN_NS_MIN, Some(1)), None);
        let why = too_short("a", RUN_NS_MIN - 1, Some(400_000)).unwrap().to_string();
        assert!(why.starts_with("a run of `a` takes 999 µs"), "{why}");
        assert!(why.contains("`true` takes 400 µs") && why.ends_with("--loop"), "{why}");
    }
}

//! What is found out before the trials of a cell: how many operations a slice is, how long to warm
//! up, and whether one processor is enough.

use iolens_model::ab::AbMode;
use iolens_programs::{Around, Conversation, ProgramFault, Reading, Request, finish};
use thiserror::Error;

use crate::commands;
use crate::setup::{AB_SLICE_ALL_CPUS_NS, AbLayout, AbPlacement, AbProgramLayout, AbSetup};
use crate::trial::{Draws, Pinned};

/// Why nothing can be measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AbError {
    /// A program failed.
    #[error("`{name}` {fault}")]
    Program {
        /// The arm.
        name: String,
        /// What ended it.
        fault: ProgramFault,
    },
    /// Twice the operations do not take twice the time.
    #[error(
        "the time of `{name}` does not grow with the number of operations: twice as many take \
         {times} times as long. Is the work optimised away, is the number not used, or does the \
         program answer before the work is done?"
    )]
    NotProportional {
        /// The arm.
        name: String,
        /// The ratio, with two digits.
        times: String,
    },
    /// One is asked to prepare and another is not: who prepares has its memory in the cache.
    #[error(
        "`{with}` says `ready prepare` and `{without}` does not: let all programs prepare, or none, \
         or the one that does finds its memory in the cache"
    )]
    PreparesDiffer {
        /// An arm that prepares.
        with: String,
        /// One that does not.
        without: String,
    },
    /// It says that it is ready, and ends as nobody asks it for anything.
    #[error(
        "`{name}` prints `ready` and nothing else: it speaks the loop protocol, which --loop \
         measures"
    )]
    SpeaksLoop {
        /// The arm.
        name: String,
    },
    /// Commands this short are mostly the start of a process.
    #[error(
        "a run of `{name}` takes {us} µs, of which starting a process is most (`true` takes \
         {true_us} µs): have it repeat its work and speak the loop protocol, --loop"
    )]
    TooShort {
        /// The arm.
        name: String,
        /// What it takes.
        us: u64,
        /// What `true` takes.
        true_us: u64,
    },
    /// Something of the system's.
    #[error("{0}")]
    System(ProgramFault),
    /// The user wanted an end.
    #[error("interrupted")]
    Interrupted,
}

impl AbError {
    pub(crate) fn of(setup: &AbSetup, program: usize, fault: ProgramFault) -> AbError {
        match fault {
            ProgramFault::Interrupted => AbError::Interrupted,
            fault => AbError::Program { name: setup.programs[program].name.clone(), fault },
        }
    }
}

/// Time of the slices of a trial, of each arm.
const ROUNDS_NS: u64 = 30_000_000;

/// How many rounds there are at least and at most.
const ROUNDS: (u64, u64) = (5, 60);

/// How long a slice of the slowest program may be for the sake of the fastest.
const SLOWEST_NS: u64 = 20_000_000;

/// CPU time over time, from which an arm uses more than one processor.
const CPUS_OF_ONE: f64 = 1.05;

/// How much less CPU time a block of slices takes than the one before while a program warms up.
const STILL_FALLS: f64 = 0.98;

/// Slices of such a block.
const BLOCK: u32 = 5;

/// How long a program may warm up.
const WARM_UP_NS: u64 = 2_000_000_000;

/// The largest part of a slice that does not grow with its operations.
const FIXED_SHARE_MAX: f64 = 0.1;

/// How often all is found out again where the baseline became so much faster meanwhile.
const PASSES_MAX: u32 = 4;

/// A slice that takes this part of what it took is as it was.
const STILL_THE_SAME: f64 = 0.7;

/// How often a slice that was long enough is tried again.
const AGAIN: u32 = 2;

/// A slice that takes so long is long whatever interrupts it.
const LONG_NS: u64 = 100_000_000;

/// An operation longer than this hides what asking for it takes, ns.
const ASKED_FOR_NS_MAX: f64 = 1_000_000.0;

/// Twice the operations take between so many times as long.
const PROPORTIONAL: std::ops::RangeInclusive<f64> = 1.6..=2.4;

/// Finds out how the trials of a cell are to be.
///
/// Errors: a program that fails, or whose time tells nothing.
pub fn calibrate(
    setup: &AbSetup,
    seed: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<AbLayout, AbError> {
    match setup.mode {
        AbMode::Loop => of_loops(setup, seed, interrupted),
        AbMode::Command => commands::calibrate(setup, seed, interrupted),
    }
}

fn of_loops(
    setup: &AbSetup,
    seed: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<AbLayout, AbError> {
    let mut draws = Draws::of(seed);
    let placement = AbPlacement::AllCpus;
    let mut probes = Probes { setup, interrupted, placement, around: Around::Process };
    let programs = 0..setup.programs.len();
    let found = programs.clone().map(|program| probes.resources(program, &mut draws));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    must_prepare_alike(setup, &found)?;
    let placement = match found.iter().any(|found| found.uses_several) {
        true => AbPlacement::AllCpus,
        false => AbPlacement::OneCpu,
    };
    probes.placement = placement;
    // All alike: reading a tree takes longer.
    if found.iter().any(|found| found.has_children) {
        probes.around = Around::Tree;
    }
    let target_ns = match placement {
        AbPlacement::OneCpu => setup.slice_ns,
        AbPlacement::AllCpus => setup.slice_ns.max(AB_SLICE_ALL_CPUS_NS),
    };
    let mut passes = 0;
    let (operations, own, warm_slices, expected_ns) = loop {
        let own = programs.clone().map(|program| probes.operations(program, target_ns, &mut draws));
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let operations = for_all(&own, target_ns);
        let slice_ns = own[0].operation_ns * operations as f64;
        let (mut warm_slices, mut expected_ns) = (0, Vec::new());
        for program in programs.clone() {
            let (slices, slice_ns) = probes.warm_up(program, operations, &mut draws)?;
            warm_slices = warm_slices.max(slices);
            expected_ns.push(slice_ns);
        }
        let (_, again_ns) = probes.warm_up(0, operations, &mut draws)?;
        expected_ns[0] = again_ns;
        passes += 1;
        // Files that the programs have in common are cached by now: the work may be much less.
        if again_ns as f64 >= STILL_THE_SAME * slice_ns || passes == PASSES_MAX {
            break (operations, own, warm_slices, expected_ns);
        }
    };
    let rounds = ROUNDS_NS / expected_ns.iter().copied().max().unwrap_or(1).max(1);
    let layouts = found.into_iter().zip(own).zip(expected_ns).map(|((found, own), expected_ns)| {
        let (asking_ns, cpu_unknown) = (own.asking_ns, found.cpu_unknown);
        AbProgramLayout { expected_ns, asking_ns, cpu_unknown }
    });
    Ok(AbLayout {
        operations,
        rounds: u32::try_from(rounds.clamp(ROUNDS.0, ROUNDS.1)).unwrap_or(u32::MAX),
        warm_slices,
        placement,
        around: probes.around,
        programs: layouts.collect(),
        true_ns: None,
    })
}

/// What a program is like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Resources {
    /// Whether it uses more than one processor.
    uses_several: bool,
    /// Whether it wants to prepare before each slice.
    prepares: bool,
    /// Whether children of it work in its slices.
    has_children: bool,
    /// Why its CPU time is not known.
    cpu_unknown: Option<String>,
}

fn must_prepare_alike(setup: &AbSetup, found: &[Resources]) -> Result<(), AbError> {
    let first = |prepares| found.iter().position(|found| found.prepares == prepares);
    let name = |program: usize| setup.programs[program].name.clone();
    match (first(true), first(false)) {
        (Some(with), Some(without)) => {
            Err(AbError::PreparesDiffer { with: name(with), without: name(without) })
        }
        _ => Ok(()),
    }
}

/// What a slice of one program is.
#[derive(Debug, Clone, Copy)]
struct OwnSlice {
    /// Operations of a slice of the length that is meant.
    operations: u64,
    operation_ns: f64,
    /// What asking for it takes, ns.
    asking_ns: Option<u64>,
}

/// How many operations of each program a slice is: as many as the fastest wants, or a slice of it
/// would be pipes and switches; no more than make a slice of the slowest long.
fn for_all(own: &[OwnSlice], target_ns: u64) -> u64 {
    let wanted = own.iter().map(|own| own.operations).max().unwrap_or(1);
    let slowest_ns = own.iter().map(|own| own.operation_ns).fold(1.0, f64::max);
    wanted.min(at_least_one(SLOWEST_NS.max(target_ns) as f64 / slowest_ns)).max(1)
}

struct Probes<'a> {
    setup: &'a AbSetup,
    interrupted: &'a dyn Fn() -> bool,
    placement: AbPlacement,
    /// What is read around slices.
    around: Around,
}

impl Probes<'_> {
    /// Talks with a fresh process of a program.
    fn with<T>(
        &self,
        program: usize,
        draws: &mut Draws,
        talk: impl FnOnce(&mut Probe<'_>) -> Result<T, AbError>,
    ) -> Result<T, AbError> {
        let setup = self.setup;
        let failed = |fault| AbError::of(setup, program, fault);
        let pinned = Pinned::as_placed(setup, self.placement, draws).map_err(AbError::System)?;
        let own = &setup.programs[program];
        let mut conversation =
            Conversation::start(own, setup.place, draws.seed(), pinned.beside()).map_err(failed)?;
        conversation.wait_until_ready(&setup.limits, self.interrupted).map_err(failed)?;
        let mut probe =
            Probe { probes: self, program, conversation, around: self.around, operation_ns: None };
        let result = talk(&mut probe)?;
        probe.conversation.must_have_said_all().map_err(failed)?;
        let ends = finish(vec![probe.conversation], &setup.limits, self.interrupted);
        for end in ends {
            match end {
                // The status is the trials' business.
                Ok(()) | Err(ProgramFault::BadExit(_)) => {}
                Err(fault) => return Err(failed(fault)),
            }
        }
        Ok(result)
    }

    /// What a program is like.
    fn resources(&self, program: usize, draws: &mut Draws) -> Result<Resources, AbError> {
        const SLICES: usize = 9;
        self.with(program, draws, |probe| {
            let operations = probe.grow(1, AB_SLICE_ALL_CPUS_NS)?;
            let before = probe.conversation.children();
            let mut readings = probe.several(operations, SLICES, 500_000_000)?;
            let has_children = probe.conversation.children() != before;
            if has_children {
                probe.around = Around::Tree;
                readings = probe.several(operations, SLICES, 500_000_000)?;
            }
            let is_known = readings.iter().all(|reading| reading.cpu_ns.is_some());
            let cpus = readings.iter().filter_map(|r| Some(r.cpu_ns? as f64 / r.took_ns as f64));
            let uses_several = median(cpus.collect()).is_some_and(|cpus| cpus > CPUS_OF_ONE);
            let why = "starts and ends child processes in its slices, whose CPU time is not known";
            let prepares = probe.conversation.ready().prepares;
            Ok(Resources {
                uses_several,
                prepares,
                // Of those that come and go no reading counts.
                has_children: has_children && is_known,
                cpu_unknown: (!is_known).then(|| why.to_owned()),
            })
        })
    }

    /// How many operations of a program take so long. Where much of a
    /// slice does not grow with their number, as the line that a runtime reads, they take longer:
    /// that part is the same in all arms, and makes every difference smaller.
    ///
    /// Errors: its time does not grow with them.
    fn operations(
        &self,
        program: usize,
        target_ns: u64,
        draws: &mut Draws,
    ) -> Result<OwnSlice, AbError> {
        const TRIES: usize = 3;
        self.with(program, draws, |probe| {
            let cold = probe.grow(1, target_ns)?;
            probe.warm_up(cold)?;
            // What was read for the first time is cached by now.
            let warm = probe.grow(cold.div_ceil(4), target_ns)?;
            let slice_ns = probe.slice_ns(warm)?.max(1);
            let per_slice = target_ns as f64 / slice_ns as f64 * warm as f64;
            let mut operations = at_least_one(per_slice);
            let mut slice_ns = at_least_one(operations as f64 / warm as f64 * slice_ns as f64);
            let mut ratio = probe.ratio_of_twice(operations)?;
            while 2.0 - ratio > FIXED_SHARE_MAX && slice_ns <= AB_SLICE_ALL_CPUS_NS / 2 {
                operations = operations.saturating_mul(2);
                slice_ns = slice_ns.saturating_mul(2);
                ratio = probe.ratio_of_twice(operations)?;
            }
            for _ in 0..TRIES {
                if !PROPORTIONAL.contains(&ratio) {
                    ratio = probe.ratio_of_twice(operations)?;
                }
            }
            let operation_ns = slice_ns as f64 / operations as f64;
            match PROPORTIONAL.contains(&ratio) {
                true => {
                    let asking_ns = probe.asking_ns(operations, slice_ns)?;
                    Ok(OwnSlice { operations, operation_ns, asking_ns })
                }
                false => Err(AbError::NotProportional {
                    name: self.setup.programs[program].name.clone(),
                    times: format!("{ratio:.2}"),
                }),
            }
        })
    }

    /// Slices that a program needs to warm up, and what one takes then.
    fn warm_up(
        &self,
        program: usize,
        operations: u64,
        draws: &mut Draws,
    ) -> Result<(u32, u64), AbError> {
        self.with(program, draws, |probe| {
            let slices = match self.setup.warm_up_ns {
                Some(ns) => probe.warm_up_for(operations, ns)?,
                None => probe.warm_up(operations)?,
            };
            Ok((slices, probe.slice_ns(operations)?))
        })
    }
}

/// A process that is asked this and that.
struct Probe<'a> {
    probes: &'a Probes<'a>,
    program: usize,
    conversation: Conversation,
    around: Around,
    /// What an operation took in the slice before; `None` before the first.
    operation_ns: Option<f64>,
}

impl Probe<'_> {
    fn slice(&mut self, operations: u64) -> Result<Reading, AbError> {
        let (setup, limits) = (self.probes.setup, self.probes.setup.limits);
        let limit_ns = match self.operation_ns {
            Some(ns) => limits.of_slice(at_least_one(ns * operations as f64)),
            // One operation may take long, and the first one longest.
            None => limits.start_ns.max(limits.slice_ns),
        };
        let (request, interrupted) = (Request::of(operations), self.probes.interrupted);
        let done = self.conversation.slice(&request, self.around, limit_ns, interrupted);
        let reading = done.map_err(|fault| AbError::of(setup, self.program, fault))?;
        self.operation_ns = Some(reading.took_ns as f64 / operations as f64);
        Ok(reading)
    }

    /// Asks for more and more operations until they take so long.
    fn grow(&mut self, from: u64, target_ns: u64) -> Result<u64, AbError> {
        let mut operations = from.max(1);
        loop {
            let mut took_ns = self.slice(operations)?.took_ns.max(1);
            // What others on the machine have made longer is too soon long enough.
            for _ in 0..AGAIN {
                if (target_ns..LONG_NS).contains(&took_ns) {
                    took_ns = took_ns.min(self.slice(operations)?.took_ns.max(1));
                }
            }
            if took_ns >= target_ns || operations >= u64::MAX / 32 {
                return Ok(operations);
            }
            let growth = (target_ns as f64 / took_ns as f64 * 1.1).clamp(1.5, 10.0);
            operations = at_least_one(operations as f64 * growth).max(operations + 1);
        }
    }

    /// Some slices, one at least, as many as fit into a time.
    fn several(
        &mut self,
        operations: u64,
        count: usize,
        most_ns: u64,
    ) -> Result<Vec<Reading>, AbError> {
        let (mut readings, mut spent_ns) = (Vec::with_capacity(count), 0);
        while readings.is_empty() || readings.len() < count && spent_ns < most_ns {
            let reading = self.slice(operations)?;
            spent_ns += reading.took_ns;
            readings.push(reading);
        }
        Ok(readings)
    }

    /// What a slice takes where nobody else wants the processor: the least of a few.
    fn slice_ns(&mut self, operations: u64) -> Result<u64, AbError> {
        const SLICES: usize = 9;
        let readings = self.several(operations, SLICES, 500_000_000)?;
        Ok(readings.iter().map(|reading| reading.took_ns).min().unwrap_or(0))
    }

    /// What asking for a slice takes, ns.
    fn asking_ns(&mut self, operations: u64, slice_ns: u64) -> Result<Option<u64>, AbError> {
        const SLICES: usize = 21;
        if operations < 2 || slice_ns as f64 / operations as f64 > ASKED_FOR_NS_MAX {
            return Ok(None);
        }
        let one = self.several(1, SLICES, 30_000_000)?;
        let one_ns = median(one.iter().map(|reading| reading.took_ns as f64).collect());
        Ok(one_ns.map(|one_ns| beyond_operations(one_ns, slice_ns as f64, operations as f64)))
    }

    /// How many times as long twice as many operations take: by CPU time, which others on the
    /// machine disturb less, where that is most of the time.
    fn ratio_of_twice(&mut self, operations: u64) -> Result<f64, AbError> {
        const PAIRS: usize = 9;
        let (mut times, mut cpus, mut spent_ns) = (Vec::new(), Vec::new(), 0);
        // Of a slice that nobody interrupted.
        let mut cpu_share: f64 = 0.0;
        while times.is_empty() || times.len() < PAIRS && spent_ns < 1_000_000_000 {
            let once = self.slice(operations)?;
            let twice = self.slice(operations.saturating_mul(2))?;
            spent_ns += once.took_ns + twice.took_ns;
            times.push(twice.took_ns as f64 / once.took_ns.max(1) as f64);
            if let (Some(one), Some(two)) = (once.cpu_ns, twice.cpu_ns) {
                cpus.push(two as f64 / one.max(1) as f64);
                cpu_share = cpu_share.max(one as f64 / once.took_ns.max(1) as f64);
            }
        }
        let ratio = if cpu_share > 0.5 { median(cpus) } else { median(times) };
        Ok(ratio.unwrap_or(f64::NAN))
    }

    /// Runs slices for so long; how many that took.
    fn warm_up_for(&mut self, operations: u64, ns: u64) -> Result<u32, AbError> {
        let (mut slices, mut spent_ns) = (0, 0);
        while spent_ns < ns {
            spent_ns += self.slice(operations)?.took_ns;
            slices += 1;
        }
        Ok(slices)
    }

    /// Runs slices until they do not become cheaper; how many that took.
    fn warm_up(&mut self, operations: u64) -> Result<u32, AbError> {
        let (mut slices, mut spent_ns, mut last, mut steady) = (0, 0, f64::INFINITY, 0);
        loop {
            let mut block = Vec::new();
            for _ in 0..BLOCK {
                let reading = self.slice(operations)?;
                slices += 1;
                spent_ns += reading.took_ns;
                block.push(reading.cpu_ns.unwrap_or(reading.took_ns) as f64);
                if spent_ns > WARM_UP_NS {
                    return Ok(slices);
                }
            }
            let now = median(block).unwrap_or(last);
            steady = if now < last * STILL_FALLS { 0 } else { steady + 1 };
            last = now;
            // A plateau of one block may be noise.
            if steady == 2 {
                return Ok(slices);
            }
        }
    }
}

/// What a slice takes beyond its operations, ns, from one of one operation and one of more: these
/// are c + t and c + n·t.
fn beyond_operations(one_ns: f64, slice_ns: f64, operations: f64) -> u64 {
    let fixed_ns = (operations * one_ns - slice_ns) / (operations - 1.0);
    if fixed_ns > 0.0 { at_least_one(fixed_ns) } else { 0 }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
fn at_least_one(operations: f64) -> u64 {
    (operations.round() as u64).clamp(1, i64::MAX.unsigned_abs())
}

/// The middle one; `None` of none.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_grow_with_the_operations_is_asking() {
        assert_eq!(beyond_operations(12_000.0 + 200.0, 12_000.0 + 200.0 * 2500.0, 2500.0), 12_000);
        assert_eq!(beyond_operations(15_000.0, 20_000.0, 2.0), 10_000);
        // Noise may make it less than nothing.
        assert_eq!(beyond_operations(100.0, 500_000.0, 1000.0), 0);
    }

    #[test]
    fn the_fastest_has_a_whole_slice_unless_the_slowest_would_take_too_long() {
        let of = |all: &[(u64, f64)]| {
            let own = |&(operations, operation_ns)| OwnSlice {
                operations,
                operation_ns,
                asking_ns: None,
            };
            for_all(&all.iter().map(own).collect::<Vec<_>>(), 500_000)
        };
        assert_eq!(of(&[(500, 1000.0)]), 500);
        assert_eq!(of(&[(500, 1000.0), (5000, 100.0)]), 5000);
        // 20 ms of the slowest.
        assert_eq!(of(&[(500_000, 1.0), (5, 100_000.0)]), 200);
        assert_eq!(of(&[(500_000, 1.0), (1, 1e9)]), 1);
    }
}

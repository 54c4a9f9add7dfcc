//! What is found out before the trials of a cell: how many operations a slice is, how long to warm
//! up, and whether one processor is enough.

mod probe;
mod slices;
mod turns;

use iolens_harness::host::memory_room;
use iolens_model::units::Bytes;
use iolens_programs::{Around, Conversation, ProgramFault, finish};
use iolens_sys::clock;
use iolens_sys::launch::StackPlace;
use iolens_sys::proc::Root;
use thiserror::Error;

use self::probe::Probe;
pub(crate) use self::slices::ROUNDS_MIN;
use self::slices::{OwnSlice, Slices, at_least_one, for_all};
use crate::setup::{
    AB_SLICE_ALL_CPUS_NS, AbCopies, AbLayout, AbPlacement, AbProgramLayout, AbSetup,
};
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
    /// Their processes do not fit into memory side by side.
    #[error(
        "the programs need {needed} of memory side by side, and {room}: let them use less, or \
         compare whole commands, which run one at a time"
    )]
    NoRoom {
        /// What two processes of the first and one of each other need.
        needed: String,
        /// What there is, and what says so.
        room: String,
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

/// How long a slice of a program may be for the sake of another, where none is meant to be longer.
const SLOWEST_NS: u64 = 20_000_000;

/// CPU time over time, from which an arm uses more than one processor.
const CPUS_OF_ONE: f64 = 1.05;

/// How often all is found out again where the baseline became so much faster meanwhile.
const PASSES_MAX: u32 = 4;

/// A slice that takes this part of what it took is as it was.
const STILL_THE_SAME: f64 = 0.7;

/// Twice the operations take between so many times as long.
const PROPORTIONAL: std::ops::RangeInclusive<f64> = 1.6..=2.4;

/// Finds out how long the slices of programs are to be that speak the loop protocol.
pub(crate) fn of_loops(
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
    let copies = copies_that_fit(&found, &memory_room(&Root::real()))?;
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
    let (mut slices, asking_ns) = probes.slices(target_ns, &mut draws)?;
    let fixed_ppm = match copies {
        AbCopies::OfAll => probes.lengthen(&mut slices, &mut draws)?,
        AbCopies::OfBaseline => vec![None; setup.programs.len()],
    };
    let (operations, rounds) = (slices.operations(), slices.rounds());
    let baseline_ns = slices.own[0].operation_ns;
    let each = found.into_iter().zip(asking_ns).zip(fixed_ppm).zip(slices.own);
    let layouts = each.map(|(((found, asking_ns), fixed_ppm), own)| AbProgramLayout {
        operations: own.operations,
        times_baseline: vec![own.operation_ns / baseline_ns],
        expected_ns: own.slice_ns(),
        asking_ns,
        fixed_ppm,
        cpu_unknown: found.cpu_unknown,
    });
    Ok(AbLayout {
        operations,
        rounds,
        warm_slices: slices.warm,
        copies,
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
    /// Memory that a process of it and its children have for themselves.
    memory_bytes: u64,
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

/// Memory that is left to others.
const LEFT_SHARE: f64 = 0.1;

/// Which programs have a hidden copy, where this is the room in memory: all processes of a trial
/// live side by side, and none may push another, or others on the machine, out of it.
fn copies_that_fit(found: &[Resources], room: &[(Bytes, String)]) -> Result<AbCopies, AbError> {
    let Some((least, source)) = room.iter().min_by_key(|(bytes, _)| *bytes) else {
        return Ok(AbCopies::OfAll);
    };
    let one_each = found.iter().map(|own| own.memory_bytes).fold(0, u64::saturating_add);
    let baseline = found.first().map_or(0, |own| own.memory_bytes);
    let fits = |bytes: u64| bytes as f64 <= least.0 as f64 * (1.0 - LEFT_SHARE);
    let needed = one_each.saturating_add(baseline);
    match (fits(one_each.saturating_mul(2)), fits(needed)) {
        (true, _) => Ok(AbCopies::OfAll),
        (false, true) => Ok(AbCopies::OfBaseline),
        (false, false) => Err(AbError::NoRoom {
            needed: Bytes(needed).to_string(),
            room: format!("{least} is {source}"),
        }),
    }
}

/// How a program has warmed up.
#[derive(Debug, Clone, Copy)]
struct WarmedUp {
    /// Slices until it was warm.
    slices: u32,
    /// From before its start until it was ready.
    start_ns: u64,
    /// What a slice takes then.
    slice_ns: u64,
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
        self.with_each(&[program], draws, |probes| talk(&mut probes[0]))
    }

    /// Talks with fresh processes of some programs, side by side.
    fn with_each<T>(
        &self,
        programs: &[usize],
        draws: &mut Draws,
        talk: impl FnOnce(&mut [Probe<'_>]) -> Result<T, AbError>,
    ) -> Result<T, AbError> {
        let setup = self.setup;
        let pinned = Pinned::as_placed(setup, self.placement, draws).map_err(AbError::System)?;
        let stack = draws.stack();
        let started = programs.iter().map(|&program| self.start(program, &pinned, stack, draws));
        let mut probes = started.collect::<Result<Vec<_>, _>>()?;
        let result = talk(&mut probes)?;
        for probe in &mut probes {
            let said_all = probe.conversation.must_have_said_all();
            said_all.map_err(|fault| AbError::of(setup, probe.program, fault))?;
        }
        let talks = probes.into_iter().map(|probe| probe.conversation).collect();
        let ends = finish(talks, &setup.limits, self.interrupted);
        for (&program, end) in programs.iter().zip(ends) {
            match end {
                // The status is the trials' business.
                Ok(()) | Err(ProgramFault::BadExit(_)) => {}
                Err(fault) => return Err(AbError::of(setup, program, fault)),
            }
        }
        Ok(result)
    }

    /// A fresh process of a program, which has said that it is ready.
    fn start(
        &self,
        program: usize,
        pinned: &Pinned,
        stack: StackPlace,
        draws: &mut Draws,
    ) -> Result<Probe<'_>, AbError> {
        let setup = self.setup;
        let failed = |fault| AbError::of(setup, program, fault);
        let own = &setup.programs[program];
        let (place, seed) = (setup.place, draws.seed());
        let started = Conversation::start(own, place, seed, pinned.beside(), Some(stack));
        let mut conversation = started.map_err(failed)?;
        conversation.wait_until_ready(&setup.limits, self.interrupted).map_err(failed)?;
        Ok(Probe { probes: self, program, conversation, around: self.around, operation_ns: None })
    }

    /// How many operations a slice is, and what asking each program for one takes.
    fn slices(
        &self,
        target_ns: u64,
        draws: &mut Draws,
    ) -> Result<(Slices, Vec<Option<u64>>), AbError> {
        let programs = 0..self.setup.programs.len();
        let longest_ns = SLOWEST_NS.max(target_ns);
        let (mut passes, begin_ns) = (0, clock::monotonic_ns());
        loop {
            let own = programs.clone().map(|program| self.operations(program, target_ns, draws));
            let (own, asking_ns): (Vec<_>, Vec<_>) =
                own.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
            let operations = for_all(&own, longest_ns);
            let slice_ns = own[0].operation_ns * operations as f64;
            let (mut warm, mut start_ns, mut took_ns) = (0, 0, Vec::new());
            for program in programs.clone() {
                let warmed = self.warm_up(program, operations, draws)?;
                warm = warm.max(warmed.slices);
                start_ns = start_ns.max(warmed.start_ns);
                took_ns.push(warmed.slice_ns);
            }
            let again_ns = self.warm_up(0, operations, draws)?.slice_ns;
            took_ns[0] = again_ns;
            passes += 1;
            // Files that the programs have in common are cached by now: the work may be much less.
            let has_time = clock::monotonic_ns() - begin_ns < self.setup.anew_ns;
            let is_last = passes == PASSES_MAX || !has_time;
            if again_ns as f64 >= STILL_THE_SAME * slice_ns || is_last {
                let mut slices = Slices { warm, own, longest_ns, start_ns };
                let operation_ns = |ns: u64| Some(ns.max(1) as f64 / operations as f64);
                slices.now_take(&took_ns.into_iter().map(operation_ns).collect::<Vec<_>>());
                return Ok((slices, asking_ns));
            }
        }
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
            let memory_bytes = probe.conversation.memory_bytes();
            Ok(Resources {
                uses_several,
                prepares,
                memory_bytes,
                // Of those that come and go no reading counts.
                has_children: has_children && is_known,
                cpu_unknown: (!is_known).then(|| why.to_owned()),
            })
        })
    }

    /// How many operations of a program take so long; longer, where most of a slice does not grow
    /// with their number, as the line that a runtime reads. With what asking for it takes, ns.
    ///
    /// Errors: its time does not grow with them.
    fn operations(
        &self,
        program: usize,
        target_ns: u64,
        draws: &mut Draws,
    ) -> Result<(OwnSlice, Option<u64>), AbError> {
        const TRIES: usize = 3;
        self.with(program, draws, |probe| {
            let cold = probe.grow(1, target_ns)?;
            probe.warm_up(cold, None)?;
            // What was read for the first time is cached by now.
            let warm = probe.grow(cold.div_ceil(4), target_ns)?;
            let slice_ns = probe.slice_ns(warm)?.max(1);
            let per_slice = target_ns as f64 / slice_ns as f64 * warm as f64;
            let mut operations = at_least_one(per_slice);
            let mut slice_ns = at_least_one(operations as f64 / warm as f64 * slice_ns as f64);
            let mut ratio = probe.ratio_of_twice(operations)?;
            while ratio < *PROPORTIONAL.start() && slice_ns <= AB_SLICE_ALL_CPUS_NS / 2 {
                operations = operations.saturating_mul(2);
                slice_ns = slice_ns.saturating_mul(2);
                ratio = probe.ratio_of_twice(operations)?;
            }
            // Waiting for the processor weighs less in longer slices.
            let mut longer = operations;
            for _ in 0..TRIES {
                if !PROPORTIONAL.contains(&ratio) {
                    longer = longer.saturating_mul(2);
                    ratio = probe.ratio_of_twice(longer)?;
                }
            }
            let operation_ns = slice_ns as f64 / operations as f64;
            match PROPORTIONAL.contains(&ratio) {
                true => {
                    let asking_ns = probe.asking_ns(operations, operation_ns)?;
                    Ok((OwnSlice { operations, operation_ns }, asking_ns))
                }
                false => Err(AbError::NotProportional {
                    name: self.setup.programs[program].name.clone(),
                    times: format!("{ratio:.2}"),
                }),
            }
        })
    }

    /// Warms up a fresh process of a program.
    fn warm_up(
        &self,
        program: usize,
        operations: u64,
        draws: &mut Draws,
    ) -> Result<WarmedUp, AbError> {
        let begin_ns = clock::monotonic_ns();
        self.with(program, draws, |probe| {
            let start_ns = clock::monotonic_ns().saturating_sub(begin_ns);
            let slices = probe.warm_up(operations, self.setup.warm_up_ns)?;
            Ok(WarmedUp { slices, start_ns, slice_ns: probe.slice_ns(operations)? })
        })
    }
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
    fn a_hidden_copy_is_only_where_there_is_room() {
        let own = |memory_bytes| Resources {
            uses_several: false,
            prepares: false,
            memory_bytes,
            has_children: false,
            cpu_unknown: None,
        };
        let of = |each: &[u64], room: &[u64]| {
            let found: Vec<Resources> = each.iter().copied().map(own).collect();
            let room: Vec<_> = room.iter().map(|bytes| (Bytes(*bytes), "left".into())).collect();
            copies_that_fit(&found, &room)
        };
        assert_eq!(of(&[100, 100], &[1000, 500]), Ok(AbCopies::OfAll));
        assert_eq!(of(&[100, 100], &[1000, 400]), Ok(AbCopies::OfBaseline));
        assert_eq!(of(&[100, 100], &[]), Ok(AbCopies::OfAll));
        let refused = of(&[100, 100], &[300]).unwrap_err().to_string();
        assert!(
            refused.contains("need 300 B of memory side by side, and 300 B is left"),
            "{refused}"
        );
        assert!(of(&[u64::MAX, u64::MAX], &[300]).is_err());
    }
}

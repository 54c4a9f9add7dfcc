//! A trial of the loop protocol: all arms are started, and take turns in slices.

use std::cmp::Reverse;

use iolens_model::ab::{AB_OUTPUT_START_BYTES, AbArm, ab_first};
use iolens_model::outcome::ArmFact;
use iolens_programs::{
    Around, Charged, Children, Conversation, ProgramFault, Reading, Request, TreeCharged, finish,
    hex,
};
use iolens_sys::clock;
use sha2::{Digest, Sha256};

use crate::calibrate::ROUNDS_MIN;
use crate::setup::{AbCopies, AbExit, AbLayout, AbProgramLayout, AbSetup};
use crate::trial::{AbTrial, AbTurn, Course, Draws, Pinned, slice_outcome, within};

/// Slices at least whose sums are compared.
const SUMMED: u32 = 3;

/// Runs a trial to its end. An arm that fails does not stop the others.
pub(crate) fn trial(
    setup: &AbSetup,
    layout: &AbLayout,
    turn: AbTurn,
    interrupted: &dyn Fn() -> bool,
) -> AbTrial {
    within(setup, layout, turn.seed, |pinned, draws, course| {
        let programs: Vec<usize> =
            setup.arms(layout.copies).into_iter().map(|(_, program)| program).collect();
        let start_order = start_order(&programs, turn.pass, draws);
        let arms = Vec::new();
        let mut all = Turns { setup, layout, programs, start_order, course, interrupted, arms };
        all.start(pinned, draws);
        all.warm_up(draws);
        all.measure(turn, draws);
        all.end();
    })
}

/// In which order arms start that run these programs: there and back, with another program at both
/// ends each pass, and either of a program's arms first. So each program has each part of the
/// memory equally often ([`ab_first`]), whether a trial finds what the one before has given back in
/// the order in which it took it or in the reverse. At random where a program has no hidden copy.
fn start_order(programs: &[usize], pass: u32, draws: &mut Draws) -> Vec<usize> {
    let mut order: Vec<usize> = (0..programs.len()).collect();
    draws.shuffle(&mut order);
    let of = programs.iter().max().map_or(0, |last| last + 1);
    if programs.len() != 2 * of {
        return order;
    }
    let first = ab_first(pass, of);
    let (mut there, mut back) = (Vec::with_capacity(of), Vec::with_capacity(of));
    for program in (0..of).map(|nth| (first + nth) % of) {
        let mut own = order.iter().copied().filter(|arm| programs[*arm] == program);
        there.extend(own.next());
        back.extend(own.next());
    }
    there.extend(back.into_iter().rev());
    there
}

/// An arm while it runs.
#[derive(Debug)]
struct Turn {
    /// `None` from when it has failed.
    talk: Option<Conversation>,
    /// What all its slices came to.
    sums: Sums,
    /// `None` before its first measured slice.
    before: Option<ChargedBefore>,
    /// Bytes that it had written to stderr by then.
    stderr_bytes: u64,
    idle_ns: Option<u64>,
}

/// What an arm was charged before its first measured slice.
#[derive(Debug)]
enum ChargedBefore {
    /// Itself, and the children that it had, which do not count.
    Process(Charged, Children),
    /// With its children; `None` where they could not be read.
    Tree(Option<TreeCharged>),
}

impl ChargedBefore {
    fn of(talk: &mut Conversation, around: Around) -> ChargedBefore {
        match around {
            Around::Process => ChargedBefore::Process(talk.charged(), talk.children()),
            Around::Tree => ChargedBefore::Tree(talk.charged_with_children()),
        }
    }
}

/// The sums that a program told while it warmed up, by the number of its slice.
#[derive(Debug, Default)]
struct Sums {
    hash: Sha256,
    slices: u64,
    any: bool,
    /// The first of them, a line each.
    start: Vec<u8>,
}

impl Sums {
    fn add(&mut self, sum: Option<&str>) {
        self.any |= sum.is_some();
        let sum = sum.unwrap_or_default();
        self.hash.update(format!("{} {sum}\n", self.slices));
        if self.start.len() + sum.len() < AB_OUTPUT_START_BYTES {
            self.start.extend_from_slice(sum.as_bytes());
            self.start.push(b'\n');
        }
        self.slices += 1;
    }

    fn sha256(&mut self) -> Option<String> {
        self.any.then(|| hex(&std::mem::take(&mut self.hash).finalize()))
    }
}

struct Turns<'a> {
    setup: &'a AbSetup,
    layout: &'a AbLayout,
    /// The program of each arm.
    programs: Vec<usize>,
    /// In which order the arms start.
    start_order: Vec<usize>,
    course: &'a mut Course,
    interrupted: &'a dyn Fn() -> bool,
    arms: Vec<Turn>,
}

impl Turns<'_> {
    /// Starts the arms one after another, each when the one before is set up. Their stacks begin
    /// alike, and from trial to trial elsewhere: what that does to speed is in the noise of times,
    /// and not in that of changes.
    fn start(&mut self, pinned: &Pinned, draws: &mut Draws) {
        let silent = |_| Turn {
            talk: None,
            sums: Sums::default(),
            before: None,
            stderr_bytes: 0,
            idle_ns: Some(0),
        };
        self.arms = self.programs.iter().map(silent).collect();
        let stack = Some(draws.stack());
        for arm in self.start_order.clone() {
            if self.course.is_interrupted() {
                break;
            }
            let program = &self.setup.programs[self.programs[arm]];
            let (place, seed) = (self.setup.place, draws.seed());
            let started = Conversation::start(program, place, seed, pinned.beside(), stack);
            let ready = started.and_then(|mut talk| {
                talk.wait_until_ready(&self.setup.limits, self.interrupted)?;
                Ok(talk)
            });
            match ready {
                Ok(talk) => self.arms[arm].talk = Some(talk),
                Err(fault) => self.fail(arm, fault),
            }
        }
    }

    /// The arms that still run, in random order; none where the user wants an end.
    fn order(&self, draws: &mut Draws) -> Vec<usize> {
        if self.course.is_interrupted() {
            return Vec::new();
        }
        let mut order = self.course.going();
        draws.shuffle(&mut order);
        order
    }

    /// What was found out of an arm's program.
    fn found(&self, arm: usize) -> Option<&AbProgramLayout> {
        self.layout.programs.get(self.programs[arm])
    }

    fn fail(&mut self, arm: usize, fault: ProgramFault) {
        // Its process goes with what is dropped here.
        self.keep(arm);
        self.course.end(arm, fault);
    }

    /// What so many operations of an arm take, ns; 0 where that is not known.
    fn expected_ns(&self, arm: usize, operations: u64) -> u64 {
        self.found(arm).map_or(0, |own| {
            let ns = u128::from(own.expected_ns) * u128::from(operations);
            u64::try_from(ns / u128::from(own.operations.max(1))).unwrap_or(u64::MAX)
        })
    }

    fn slice(&mut self, arm: usize, operations: u64) -> Option<Reading> {
        let limit_ns = self.setup.limits.of_slice(self.expected_ns(arm, operations));
        let talk = self.arms[arm].talk.as_mut()?;
        let request = Request::of(operations);
        match talk.slice(&request, self.layout.around, limit_ns, self.interrupted) {
            Ok(reading) => Some(reading),
            Err(fault) => {
                self.fail(arm, fault);
                None
            }
        }
    }

    /// All do the same, as often as the others: what they compute may depend on what came before.
    fn warm_up(&mut self, draws: &mut Draws) {
        let (mut slices, mut spent_ns) = (0, vec![0; self.arms.len()]);
        while self.is_cold(slices, &spent_ns) {
            for arm in self.order(draws) {
                if let Some(reading) = self.slice(arm, self.layout.operations) {
                    self.arms[arm].sums.add(reading.answer.sum.as_deref());
                    spent_ns[arm] += reading.took_ns;
                }
            }
            self.trim_errors();
            if (self.interrupted)() {
                self.interrupt();
            }
            slices += 1;
        }
    }

    /// Whether the arms are to warm up further, after so many slices that took so long.
    fn is_cold(&self, slices: u32, spent_ns: &[u64]) -> bool {
        match self.setup.warm_up_ns {
            _ if self.course.is_interrupted() => false,
            _ if slices < SUMMED => true,
            None => slices < self.layout.warm_slices,
            Some(ns) => self.course.going().iter().any(|&arm| spent_ns[arm] < ns),
        }
    }

    fn trim_errors(&self) {
        self.arms.iter().filter_map(|turn| turn.talk.as_ref()).for_each(Conversation::trim_errors);
    }

    fn measure(&mut self, turn: AbTurn, draws: &mut Draws) {
        for arm in &mut self.arms {
            if let Some(talk) = arm.talk.as_mut() {
                arm.before = Some(ChargedBefore::of(talk, self.layout.around));
                arm.stderr_bytes = talk.stderr_bytes();
            }
        }
        self.course.slices.reserve(self.arms.len() * self.layout.rounds as usize);
        let (begin_ns, mut round) = (clock::monotonic_ns(), 0);
        while turn.has_round(round, self.layout.rounds, ROUNDS_MIN) {
            for arm in self.order(draws) {
                let operations = self.found(arm).map_or(1, |own| own.operations);
                if let Some(reading) = self.slice(arm, operations) {
                    self.note(arm, (round, operations), &reading);
                }
            }
            self.trim_errors();
            round += 1;
        }
        self.course.rounds_ns = clock::monotonic_ns() - begin_ns;
    }

    fn note(&mut self, arm: usize, (round, operations): (u32, u64), reading: &Reading) {
        let seq = self.course.slices.len();
        let is_known = self.found(arm).is_none_or(|own| own.cpu_unknown.is_none());
        let cpu_ns = reading.cpu_ns.filter(|_| is_known);
        if cpu_ns.is_none() && self.layout.around == Around::Tree {
            self.course.with_new_children.insert(self.programs[arm]);
        }
        self.course.slices.push(slice_outcome((seq, round, arm), operations, reading, cpu_ns));
        let turn = &mut self.arms[arm];
        // The one before the first measured slice is not between two of them.
        if round > 0 {
            turn.idle_ns = turn.idle_ns.zip(reading.idle_cpu_ns).map(|(sum, idle)| sum + idle);
        }
        let passed_over = &mut self.course.arms[arm].ab.passed_over;
        if passed_over.is_none() {
            passed_over.clone_from(&reading.answer.passed_over);
        }
        if let Some(own_ns) = reading.answer.own_ns {
            self.course.arms[arm].ab.own_ns.push((u32::try_from(seq).unwrap_or(u32::MAX), own_ns));
        }
    }

    /// Keeps what is known of an arm, whose process goes.
    fn keep(&mut self, arm: usize) -> Option<Conversation> {
        let found = self.found(arm);
        let (asking_ns, fixed_ppm) =
            found.map_or((None, None), |own| (own.asking_ns, own.fixed_ppm));
        let turn = &mut self.arms[arm];
        let mut talk = turn.talk.take()?;
        let is_measured = turn.before.is_some();
        let (ticks, has_new_children) = match turn.before.take() {
            None => (None, false),
            Some(ChargedBefore::Process(own, children)) => {
                (talk.charged().since(&own).ticks, children != talk.children())
            }
            Some(ChargedBefore::Tree(then)) => {
                let both = talk.charged_with_children().zip(then);
                let spent = both.and_then(|(now, then)| now.since(&then));
                (spent.map(|spent| spent.ticks), false)
            }
        };
        if has_new_children {
            // No slice has read what they spent.
            let slices = self.course.slices.iter_mut().filter(|slice| slice.arm == arm);
            slices.for_each(|slice| slice.tx.task_clock_ns = None);
            self.course.with_new_children.insert(self.programs[arm]);
        }
        let ab = &mut self.course.arms[arm].ab;
        *ab = AbArm {
            unit: talk.ready().unit.clone(),
            own_ns: std::mem::take(&mut ab.own_ns),
            passed_over: ab.passed_over.take(),
            output_sha256: turn.sums.sha256(),
            output_start: std::mem::take(&mut turn.sums.start),
            stray_lines: talk.stray_lines(),
            stderr_bytes: match is_measured {
                true => talk.stderr_bytes().saturating_sub(turn.stderr_bytes),
                false => 0,
            },
            asking_ns,
            fixed_ppm,
            idle_cpu_ns: turn.idle_ns,
            ticks,
            ..AbArm::default()
        };
        Some(talk)
    }

    fn end(&mut self) {
        let mut talks = Vec::new();
        for arm in self.course.going() {
            let Some(mut talk) = self.keep(arm) else { continue };
            if let Err(fault) = talk.must_have_said_all() {
                self.course.end(arm, fault);
                continue;
            }
            if self.programs[arm] > 0 && self.layout.copies == AbCopies::OfBaseline {
                let value = "none: there is no memory for a second process".to_owned();
                self.course.arm_facts.push(ArmFact { arm, name: "hidden copy".to_owned(), value });
            }
            if talk.children().are_there() {
                let value = "it has child processes, which end with the trial".to_owned();
                self.course.arm_facts.push(ArmFact { arm, name: "children".to_owned(), value });
            }
            if let Some(bytes) = talk.ready().bytes {
                let (name, value) = ("bytes per operation".to_owned(), bytes.to_string());
                self.course.arm_facts.push(ArmFact { arm, name, value });
            }
            talks.push((arm, talk));
        }
        // The last to start is the first to end.
        let place = |arm: &usize| self.start_order.iter().position(|own| own == arm);
        talks.sort_by_key(|(arm, _)| Reverse(place(arm)));
        let (arms, talks): (Vec<_>, Vec<_>) = talks.into_iter().unzip();
        let ends = finish(talks, &self.setup.limits, self.interrupted);
        for (arm, end) in arms.into_iter().zip(ends) {
            match end {
                Err(ProgramFault::BadExit(_)) if self.setup.exit == AbExit::Ignored => {}
                Err(fault) => self.course.end(arm, fault),
                Ok(()) => {}
            }
        }
        if (self.interrupted)() {
            self.interrupt();
        }
    }

    fn interrupt(&mut self) {
        for arm in self.course.going() {
            self.course.end(arm, ProgramFault::Interrupted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over as many passes as there are programs, each has had each place equally often.
    #[test]
    fn every_program_has_every_place_in_turn() {
        for of in 2..6 {
            let programs: Vec<usize> = (0..of).flat_map(|program| [program; 2]).collect();
            let mut had = vec![vec![0; 2 * of]; of];
            for pass in (1..).take(of) {
                let order = start_order(&programs, pass, &mut Draws::of(u64::from(pass)));
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..2 * of).collect::<Vec<_>>());
                let names: Vec<usize> = order.iter().map(|arm| programs[*arm]).collect();
                assert_eq!(names[0], ab_first(pass, of));
                assert!(names.iter().eq(names.iter().rev()), "{names:?}");
                names.iter().enumerate().for_each(|(place, program)| had[*program][place] += 1);
            }
            assert!(had.iter().flatten().all(|times| *times == 1), "{had:?}");
        }
    }

    #[test]
    fn either_arm_of_a_program_is_its_first_to_start() {
        let orders = (0..20).map(|seed| start_order(&[0, 0, 1, 1], 1, &mut Draws::of(seed)));
        let orders: std::collections::BTreeSet<_> = orders.collect();
        assert_eq!(orders.len(), 4);
    }

    #[test]
    fn without_a_copy_of_each_program_the_order_is_random() {
        let orders = (0..50).map(|seed| start_order(&[0, 0, 1], 1, &mut Draws::of(seed)));
        let orders: std::collections::BTreeSet<_> = orders.collect();
        assert_eq!(orders.len(), 6);
    }
}

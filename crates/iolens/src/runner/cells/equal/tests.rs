//! Runs on a machine that is simulated: a message takes so long, a slice so much besides.

use iolens_harness::host;
use iolens_model::axes::Study;
use iolens_model::outcome::{Counts, Environment};
use iolens_model::trial::{SliceKind, Trial, Work};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::super::Place;
use super::*;
use crate::args::flags_of;
use crate::request;

const MESSAGE_NS: f64 = 1000.0;
const OVERHEAD_NS: f64 = 45_000.0;

fn plan() -> Plan {
    let line = "--network loopback --methods send,write --baseline send --sizes 4KiB --threads 1";
    let asked = flags_of(Study::Net, line.split_whitespace()).unwrap();
    request::plan(request::complete(asked).unwrap(), 1, &|_| Ok(())).unwrap().plan
}

/// A cell whose trials are run by the machine.
struct Simulated {
    plan: Plan,
    state: CellState,
    rng: Pcg64Mcg,
    pass: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Machine {
    /// The arms of this label are so many times as slow.
    Slow(&'static str, f64),
    /// The same in the middle, and another in each round.
    Restless(&'static str, f64),
    /// Slices last for a turn of the scheduler, whatever is in them.
    Crowded,
}
use Machine::{Crowded, Restless, Slow};

const WELL: Machine = Slow("", 1.0);
const TURN_NS: u64 = 3_800_000;

impl Machine {
    fn slice_ns(self, label: &str, round: u32, messages: u64) -> u64 {
        // The machine is in a mood of its own in each round.
        let mood = [1.0, 1.6, 0.8][round as usize % 3];
        let times = match self {
            Crowded => return TURN_NS,
            Slow(slow, times) if slow == label => times,
            Restless(slow, times) if slow == label => {
                times * [0.7, 1.0, 1.4][round as usize / 3 % 3]
            }
            Slow(..) | Restless(..) => 1.0,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let ns = (mood * times * MESSAGE_NS * messages as f64 + OVERHEAD_NS) as u64;
        ns
    }
}

impl Simulated {
    fn new() -> Simulated {
        let plan = plan();
        let host = host::read(&host::Root::real()).unwrap();
        let state = CellState::new(&plan, plan.cells().remove(0), &host);
        Simulated { plan, state, rng: Pcg64Mcg::seed_from_u64(1), pass: 0 }
    }

    /// The probes before the first pass, one of short slices among them.
    fn probed(each: [Machine; 4]) -> Simulated {
        let mut this = Simulated::new();
        let [first, rest @ ..] = each;
        let probe = this.state.probe(&this.plan, (0, None), 4, &mut this.rng);
        this.state.learn(0, &[outcome(&probe, first)]);
        let mut probe = |machine| {
            let trial = this.state.probe(&this.plan, (0, None), 1, &mut this.rng);
            outcome(&trial, machine)
        };
        let probes = rest.map(&mut probe);
        assert_eq!(probes.len(), CellState::probes(&this.plan));
        this.state.learn(0, &probes);
        this
    }

    fn pass(&mut self, machine: Machine) -> TrialOutcome {
        self.pass += 1;
        let place = Place { pass: self.pass, position: 0 };
        let trial = self.state.trial(&self.plan, place, 0, None, &mut self.rng);
        let outcome = outcome(&trial, machine);
        self.state.follow(&self.plan, 0, &outcome);
        outcome
    }
}

/// What the machine makes of a trial.
fn outcome(trial: &Trial, machine: Machine) -> TrialOutcome {
    let slice = |(seq, slice): (usize, &iolens_model::trial::Slice)| {
        let Work::Messages(messages) = slice.work else { panic!("{slice:?}") };
        let time_ns = machine.slice_ns(&trial.arms[slice.arm].label, slice.round, messages);
        SliceOutcome {
            seq: u32::try_from(seq).unwrap(),
            round: slice.round,
            kind: slice.kind,
            arm: slice.arm,
            all_active_ns: time_ns,
            tx: Counts { messages, time_ns, ..Counts::default() },
            rx: None,
        }
    };
    let arm = |arm: &Arm| ArmOutcome {
        arm: arm.clone(),
        status: Status::Ok,
        reason: None,
        copies_sender: None,
        copies_end_to_end: None,
        latency: None,
        server: None,
        ab: None,
    };
    TrialOutcome {
        pass: trial.pass,
        position: trial.position,
        isolated: trial.isolated,
        cell: trial.cell.clone(),
        started_unix_ns: 0,
        duration_ns: 0,
        status: Status::Ok,
        reason: None,
        arms: trial.arms.iter().map(arm).collect(),
        slices: trial.slices.iter().enumerate().map(slice).collect(),
        environment: Environment::unknown("simulated"),
        far_environment: None,
        tx: None,
        rx: None,
    }
}

/// Slices of an arm over those of the baseline in a trial, in time on the machine when it is
/// well.
fn length(trial: &TrialOutcome, label: &str) -> f64 {
    let time_ns = |label: &str| {
        let arm = trial.arms.iter().position(|arm| arm.arm.label == label);
        let is_it = |s: &&SliceOutcome| Some(s.arm) == arm && s.kind == SliceKind::Measured;
        let slice = trial.slices.iter().find(is_it).expect("a slice");
        MESSAGE_NS * slice.tx.messages as f64 + OVERHEAD_NS
    };
    time_ns(label) / time_ns("send")
}

fn is_equal(length: f64) -> bool {
    (0.8..=1.25).contains(&length)
}

#[test]
fn one_probe_in_which_an_arm_is_twice_as_slow_does_not_decide() {
    for bad in 1..4 {
        let mut probes = [WELL; 4];
        probes[bad] = Slow("write", 2.0);
        let length = length(&Simulated::probed(probes).pass(WELL), "write");
        println!("probe {bad} of 3 twice as slow: slices are {length:.3} of the baseline's");
        assert!(is_equal(length), "probe {bad}: {length}");
    }
}

#[test]
fn the_copy_of_the_baseline_learns_its_own_work() {
    let copy = "send (A/A)";
    let length = length(&Simulated::probed([Slow(copy, 1.2); 4]).pass(WELL), copy);
    assert!((0.8..0.9).contains(&length), "{length}");
}

#[test]
fn slices_that_have_drifted_apart_are_corrected() {
    let slow = Slow("write", 2.0);
    // Slow in all probes and never after them; and the other way round.
    for (before, later) in [(slow, WELL), (WELL, slow)] {
        let mut run = Simulated::probed([before; 4]);
        let lengths = [(); 6].map(|()| {
            let length = length(&run.pass(later), "write");
            if later == WELL { length } else { 2.0 * length }
        });
        println!("slices of passes over the baseline's: {lengths:.3?}");
        assert!(!is_equal(lengths[0]), "{lengths:?}");
        // Three trials agree, from the next one on.
        assert!(lengths[3..].iter().all(|&length| is_equal(length)), "{lengths:?}");
    }
}

/// Rounds differ by more than the arms do, and agree over trials.
#[test]
fn what_many_trials_agree_on_is_corrected() {
    let slow = Restless("write", 0.7);
    let mut run = Simulated::probed([WELL; 4]);
    let lengths = [(); TRIALS + 1].map(|()| 0.7 * length(&run.pass(slow), "write"));
    println!("slices of passes over the baseline's: {lengths:.3?}");
    assert!(lengths[..PROBES].iter().all(|&length| !is_equal(length)), "{lengths:?}");
    assert!(is_equal(lengths[TRIALS]), "{lengths:?}");
}

/// A first look that was wrong is not confirmed by slices that last as long with any work.
#[test]
fn turns_of_the_scheduler_confirm_nothing() {
    for (label, times) in [("write", 2.0), ("write", 0.4), ("send (A/A)", 3.0)] {
        let mut run = Simulated::probed([Slow(label, times), Crowded, Crowded, Crowded]);
        for length in [(); 6].map(|()| length(&run.pass(Crowded), label)) {
            assert!((0.99..1.01).contains(&length), "{label}, {times} times: {length}");
        }
    }
}

/// Where probes disagree, an arm that may be as fast as the baseline does the same work.
#[test]
fn who_may_be_as_fast_does_the_same_work() {
    let of = |times: [f64; 3]| {
        let [a, b, c] = times.map(|times| Slow("write", times));
        length(&Simulated::probed([WELL, a, b, c]).pass(WELL), "write")
    };
    for times in [[0.5, 1.7, 1.4], [1.5, 1.9, 1.1], [2.0, 1.0, 3.0]] {
        let length = of(times);
        assert!((0.99..1.01).contains(&length), "{times:?}: {length}");
    }
    // Who is slower in each of them has slices that are as long, or somewhat longer.
    let work = of([2.0, 2.1, 2.2]);
    assert!((0.5..0.6).contains(&work), "{work}");
    let work = of([9.0, 20.0, 30.0]);
    assert!((0.06..0.3).contains(&work), "{work}");
}

#[test]
fn one_bad_trial_corrects_nothing() {
    let mut run = Simulated::probed([WELL; 4]);
    let first = length(&run.pass(Slow("write", 2.0)), "write");
    let rest = [(); 3].map(|()| length(&run.pass(WELL), "write"));
    assert!(rest.iter().all(|length| (length - first).abs() < 1e-9), "{first} {rest:?}");
}

#[test]
fn a_run_that_goes_on_does_the_same_work_and_keeps_no_bad_one() {
    let messages = |trial: &TrialOutcome| -> Vec<u64> {
        let of = |arm| trial.slices.iter().find(move |slice| slice.arm == arm);
        (0..trial.arms.len()).map(|arm| of(arm).expect("a slice").tx.messages).collect()
    };
    for (probes, same) in [(WELL, true), (Slow("write", 2.0), false)] {
        let mut run = Simulated::probed([probes; 4]);
        let trials = [(); 3].map(|()| run.pass(WELL));
        let mut resumed = Simulated::new();
        for trial in &trials[..2] {
            resumed.state.recall(&resumed.plan, trial);
        }
        assert!(resumed.state.is_recalled(0));
        // Two trials do not outvote what was found before.
        assert_eq!(messages(&resumed.pass(WELL)), messages(&trials[1]));
        let next = resumed.pass(WELL);
        assert_eq!(messages(&next) == messages(&trials[0]), same);
        assert!(is_equal(length(&next, "write")), "{}", length(&next, "write"));
    }
}

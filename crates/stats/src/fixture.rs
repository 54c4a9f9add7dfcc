//! Runs for tests, made from times per message.

pub(crate) mod servers;

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::axes::{Direction, Iovec, Mode, Topology, WorkingSet};
use iolens_model::cell::Cell;
use iolens_model::host::{Calibration, Costs, HostFacts, Spreads};
use iolens_model::outcome::{Counts, EndFacts, Environment, SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::{Axes, NetAxes, Passes, Plan, Probes, Schedule};
use iolens_model::reading::{Histogram, Reading};
use iolens_model::run::{Run, RunHeader};
use iolens_model::trial::SliceKind;
use iolens_model::tuning::TuningAxes;
use iolens_model::units::{Bytes, Nanos};

use crate::analysis::{Analysis, ArmAnalysis, Contrast};
use crate::gates::{Case, Flag, Ruling};
use crate::remark::Circumstance;
use crate::sums;

/// Messages of one slice.
pub(crate) const MESSAGES: u64 = 10_000;

/// One arm with its times per message, one for each measured round.
#[derive(Debug, Clone)]
pub(crate) struct ArmTime {
    pub(crate) label: &'static str,
    pub(crate) role: Role,
    pub(crate) round_ns: Vec<f64>,
}

impl ArmTime {
    /// The fixed loop of the fixture's machine.
    pub(crate) const LOOP_NS: u64 = 1_000_000;
}

/// An arm with these rounds. Its label says its role: `base` is the baseline, `memcpy` a control,
/// what ends in `(A/A)` a self-check, and anything else is compared.
pub(crate) fn rounds(label: &'static str, round_ns: &[f64]) -> ArmTime {
    ArmTime { label, role: role_of(label), round_ns: round_ns.to_vec() }
}

fn role_of(label: &str) -> Role {
    match label {
        "base" => Role::Baseline,
        "memcpy" => Role::Control,
        _ if label.ends_with(" (A/A)") => Role::SelfCheck,
        _ => Role::Compared,
    }
}

/// The same with four rounds that take as long each.
pub(crate) fn time(label: &'static str, ns: f64) -> ArmTime {
    rounds(label, &[ns; 4])
}

/// The plan of a run with these primitives, `base` the baseline, one cell of
/// 1 KiB and one thread, δ and precision 3 %.
pub(crate) fn plan(primitives: &[&str]) -> Plan {
    Plan {
        axes: Axes::Net(NetAxes {
            topologies: vec![Topology::Loopback],
            modes: vec![Mode::Stream],
            working_sets: vec![WorkingSet::Hot],
            fields: vec![1],
            iovec: vec![Iovec::PerMessage],
            receivers: vec!["recv".to_owned()],
            congestion: "cubic".to_owned(),
            tuning: TuningAxes {
                socket_buffer_bytes: vec![Bytes(1 << 20)],
                receive_size_bytes: vec![Some(Bytes(65536))],
                ..TuningAxes::default()
            },
            allow_sysctl: false,
            direction: Direction::Tx,
            external: Vec::new(),
            external_loop: false,
        }),
        primitives: primitives.iter().map(|id| (*id).to_owned()).collect(),
        baseline: "base".to_owned(),
        sizes: vec![Bytes(1024)],
        threads: vec![1],
        schedule: Schedule::Slices { slice: Nanos(5_000_000), discarded_rounds: 0, rounds: 4 },
        passes: Passes { minimum: 12, maximum: 60 },
        budget: Nanos(600 * 1_000_000_000),
        precision: 0.03,
        delta: 0.03,
        quick: false,
        isolate: false,
        seed: 1,
        cpus: None,
        probes: Probes::default(),
    }
}

/// The same with these sizes.
pub(crate) fn sized(primitives: &[&str], sizes: &[u64]) -> Plan {
    Plan { sizes: sizes.iter().copied().map(Bytes).collect(), ..plan(primitives) }
}

/// A run without trials, on a machine whose empty call costs 100 ns and whose
/// memcpy does 10 GB/s per thread.
pub(crate) fn run(plan: Plan) -> Run {
    let missing = || Reading::not_measured("not in a fixture");
    Run {
        profiles: Vec::new(),
        searches: Vec::new(),
        header: RunHeader {
            primitives: Vec::new(),
            receivers: Vec::new(),
            calls: Vec::new(),
            engines: Vec::new(),
            file: None,
            programs: Vec::new(),
            id: "00000000".to_owned(),
            name: None,
            confirms: None,
            far: None,
            origin: None,
            started_unix_ns: 0,
            build: "test".to_owned(),
            command: Vec::new(),
            plan,
            host: HostFacts {
                cores: Vec::new(),
                cpus: vec![0, 1],
                l1d: missing_bytes(),
                l2: missing_bytes(),
                llc: missing_bytes(),
                memory: missing_bytes(),
                descriptors_max: missing(),
                changed: Vec::new(),
                facts: Vec::new(),
            },
            calibration: Some(Calibration {
                empty_call_ns: 100.0,
                clock_read_ns: 20.0,
                loop_ns: ArmTime::LOOP_NS,
                harness_message_ns: 1.0,
                harness_slice_ns: 100.0,
                receipt_round_trip_ns: Some(20_000.0),
                memcpy_hot_bytes_per_s: 10e9,
                spread: Spreads::default(),
                memcpy_cold_bytes_per_s: 5e9,
                memcpy_hot_all_bytes_per_s: 20e9,
                memcpy_cold_all_bytes_per_s: 8e9,
                threads: 2,
                duration_ns: 1,
                costs: Costs::default(),
            }),
            end: None,
        },
        trials: Vec::new(),
    }
}

/// A run in which every pass makes a trial of each cell of the plan, with the arms that it has in
/// that pass. The second number is the trial's place in its pass.
pub(crate) fn run_of<Arms: AsRef<[ArmTime]>>(
    plan: Plan,
    passes: u32,
    mut arms: impl FnMut(u32, u32, &Cell) -> Arms,
) -> Run {
    let mut run = run(plan);
    for pass in 1..=passes {
        for (position, cell) in (0..).zip(run.header.plan.cells()) {
            let trial = trial(pass, &cell, arms(pass, position, &cell).as_ref());
            run.trials.push(TrialOutcome { position, ..trial });
        }
    }
    run
}

/// Each arm of a trial in a trial of its own, one after another.
pub(crate) fn alone(trial: &TrialOutcome) -> impl Iterator<Item = TrialOutcome> {
    let arms = (0..).zip(&trial.arms).enumerate();
    arms.map(|(index, (place, arm))| {
        let own = trial.slices.iter().filter(move |slice| slice.arm == index);
        TrialOutcome {
            isolated: true,
            position: trial.position * u32::try_from(trial.arms.len()).unwrap() + place,
            arms: vec![arm.clone()],
            slices: own.map(|slice| SliceOutcome { arm: 0, ..slice.clone() }).collect(),
            ..trial.clone()
        }
    })
}

/// The slices of the arm in that place of every trial.
pub(crate) fn slices_of(run: &mut Run, arm: usize) -> impl Iterator<Item = &mut SliceOutcome> {
    let slices = run.trials.iter_mut().flat_map(|trial| &mut trial.slices);
    slices.filter(move |slice| slice.arm == arm)
}

/// The arm of this label in the first cell.
pub(crate) fn arm<'a>(analysis: &'a Analysis, label: &str) -> &'a ArmAnalysis {
    analysis.cells[0].arm(label).expect("an arm of this label")
}

/// The contrast of that arm.
pub(crate) fn contrast<'a>(analysis: &'a Analysis, label: &str) -> &'a Contrast {
    arm(analysis, label).contrast.as_ref().expect("a contrast")
}

fn missing_bytes() -> Reading<Bytes> {
    Reading::not_measured("not in a fixture")
}

/// A trial of a cell in which every gate passes, from times per message.
pub(crate) fn trial(pass: u32, cell: &Cell, arms: &[ArmTime]) -> TrialOutcome {
    let rounds = arms.iter().map(|arm| arm.round_ns.len()).max().unwrap_or(0);
    let mut slices = Vec::new();
    for round in 0..rounds {
        for (index, arm) in arms.iter().enumerate() {
            if let Some(&ns) = arm.round_ns.get(round) {
                slices.push(slice(slices.len(), round, index, cell, ns));
            }
        }
    }
    TrialOutcome {
        pass,
        position: 0,
        isolated: false,
        cell: cell.clone(),
        started_unix_ns: 0,
        duration_ns: u64::MAX,
        status: Status::Ok,
        reason: None,
        arms: arms.iter().map(outcome).collect(),
        slices,
        environment: Environment::unknown("not in a fixture"),
        far_environment: None,
        tx: Some(end(cell)),
        rx: Some(end(cell)),
    }
}

fn outcome(arm: &ArmTime) -> ArmOutcome {
    let primitive = arm.label.trim_end_matches(" (A/A)").to_owned();
    ArmOutcome {
        arm: Arm { label: arm.label.to_owned(), primitive, role: arm.role },
        status: Status::Ok,
        reason: None,
        copies_sender: Some(1.0),
        copies_end_to_end: Some(2.0),
        latency: None,
        server: None,
        ab: None,
    }
}

fn slice(seq: usize, round: usize, arm: usize, cell: &Cell, ns: f64) -> SliceOutcome {
    let time_ns = whole(ns * MESSAGES as f64);
    let counts = Counts {
        messages: MESSAGES,
        bytes: MESSAGES * cell.size.0,
        calls: Some(MESSAGES),
        time_ns,
        task_clock_ns: Some(time_ns / 10 * 9),
        voluntary_switches: Some(2),
        involuntary_switches: Some(0),
        migrations: Some(0),
        minor_faults: Some(0),
        major_faults: Some(0),
        retransmits: Some(0),
        softirq_ticks: Some(0),
        zerocopy: None,
        ..Counts::default()
    };
    SliceOutcome {
        seq: u32::try_from(seq).unwrap(),
        round: u32::try_from(round).unwrap(),
        kind: SliceKind::Measured,
        arm,
        all_active_ns: time_ns / 100 * 95,
        tx: counts,
        rx: Some(counts),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times in tests are positive and far below 2^53"
)]
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

fn end(cell: &Cell) -> EndFacts {
    EndFacts {
        build: "test".to_owned(),
        message_bytes: cell.size.0,
        threads: cell.threads,
        thread_cpus: vec![vec![0]; cell.threads as usize],
        congestion: Some("cubic".to_owned()),
        send_buffer_bytes: Some(2 << 20),
        receive_buffer_bytes: Some(2 << 20),
        nodelay: Some(true),
        packet_taps: Some(0),
        ring_bytes: Some(65_536),
        ..EndFacts::default()
    }
}

/// A run of one trial with one arm and four slices of 512 ns per 1 KiB
/// message, each changed by `change`.
pub(crate) fn one_arm_trial(change: impl Fn(&mut SliceOutcome)) -> Run {
    let mut run = run_of(plan(&["base"]), 1, |_, _, _| [time("base", 512.0)]);
    run.trials[0].slices.iter_mut().for_each(change);
    run
}

type Gate = fn(&Case<'_>) -> Option<Ruling>;

/// Asks one gate about the first arm of the first trial. `expect` is `None` for
/// a pass, `flag` for a flag, and a part of the reason otherwise.
pub(crate) fn check_gate(gate: Gate, run: &Run, expect: Option<&str>) {
    match (asked(gate, run), expect) {
        (None, None) | (Some(Ruling::Flag(_)), Some("flag")) => {}
        (Some(Ruling::Invalid(why)), Some(part)) if why.contains(part) => {}
        (check, expect) => panic!("found {check:?}, expected {expect:?}"),
    }
}

/// What a gate says once of the first arm of the first trial, beside passing it.
pub(crate) fn said_once(gate: Gate, run: &Run) -> Circumstance {
    match asked(gate, run) {
        Some(Ruling::Flag(Flag::Once(found))) => (*found).clone(),
        check => panic!("found {check:?}"),
    }
}

pub(crate) fn asked(gate: Gate, run: &Run) -> Option<Ruling> {
    let trial = &run.trials[0];
    let sums = sums::sums(trial);
    gate(&Case { header: &run.header, trial, outcome: &trial.arms[0], sums: &sums[0] })
}

/// Asks all gates about the first arm of the first trial, so that a gate that
/// is not in the table is missed. `expect` is `None` where no gate refuses it,
/// and a part of the reason otherwise.
pub(crate) fn check_gates(run: &Run, expect: Option<&str>) {
    let refused = crate::invalid_arms(&run.header, &run.trials[0]);
    match (&refused[..], expect) {
        ([], None) => {}
        ([(0, reason), ..], Some(part)) if reason.contains(part) => {}
        (refused, expect) => panic!("found {refused:?}, expected {expect:?}"),
    }
}

/// Passes of a plan with one cell: each entry is a pass with the ratio of
/// `arm` to `base`, whose own time per message is 500 ns; a self-check is
/// there too.
pub(crate) fn passes(ratios: &[f64]) -> Run {
    let passes = u32::try_from(ratios.len()).unwrap();
    run_of(plan(&["base", "arm"]), passes, |pass, _, _| {
        // The self-check strays by 0.1 % to either side, so that it has a width.
        let stray = if pass % 2 == 0 { 1.001 } else { 0.999 };
        let of_arm = 500.0 / ratios[pass as usize - 1];
        [time("base", 500.0), time("arm", of_arm), time("base (A/A)", 500.0 * stray)]
    })
}

/// Gives every arm of a trial the round trips that its slices imply: each
/// request takes as long as its thread's share of the time.
pub(crate) fn round_trips(trial: &mut TrialOutcome) {
    let threads = u64::from(trial.cell.threads);
    for (index, arm) in trial.arms.iter_mut().enumerate() {
        let mut histogram = Histogram::default();
        for slice in trial.slices.iter().filter(|slice| slice.arm == index) {
            let ns = slice.tx.time_ns * threads / slice.tx.messages;
            histogram.add(&Histogram { buckets: vec![(ns, slice.tx.messages)] });
        }
        arm.latency = Some(histogram);
    }
}

//! One small run, for tests that are not about what is in it.

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::axes::{Direction, Iovec, Mode, Topology, WorkingSet};
use iolens_model::host::{Calibration, Costs, HostFacts, Spreads};
use iolens_model::outcome::{Counts, Environment, SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::{Axes, NetAxes, Passes, Plan, Probes, Schedule};
use iolens_model::reading::Reading;
use iolens_model::run::SearchPhase;
use iolens_model::run::{RunEnd, RunHeader, StoppedBy};
use iolens_model::trial::SliceKind;
use iolens_model::tuning::TuningAxes;
use iolens_model::units::{Bytes, Nanos};

/// What is known of a run `id` when it begins.
pub(crate) fn header(id: &str) -> RunHeader {
    RunHeader {
        primitives: Vec::new(),
        receivers: Vec::new(),
        calls: Vec::new(),
        engines: Vec::new(),
        file: None,
        programs: Vec::new(),
        id: id.to_owned(),
        name: None,
        confirms: None,
        far: None,
        origin: None,
        started_unix_ns: 1_700_000_000_000_000_000,
        build: "iolens 0.1.0".to_owned(),
        command: vec!["iolens".to_owned(), "run".to_owned(), "net".to_owned()],
        plan: plan(),
        host: HostFacts {
            cores: Vec::new(),
            cpus: vec![0, 1],
            l1d: Reading::Exact(Bytes(32 << 10)),
            l2: Reading::Exact(Bytes(1 << 20)),
            llc: Reading::not_measured("no cache directory in sysfs"),
            memory: Reading::Exact(Bytes(8 << 30)),
            descriptors_max: Reading::Exact(1024),
            changed: Vec::new(),
            facts: Vec::new(),
        },
        calibration: Some(Calibration {
            empty_call_ns: 61.5,
            clock_read_ns: 21.25,
            loop_ns: 1_000_000,
            harness_message_ns: 1.5,
            harness_slice_ns: 900.0,
            receipt_round_trip_ns: Some(22_000.0),
            memcpy_hot_bytes_per_s: 4e10,
            spread: Spreads::default(),
            memcpy_cold_bytes_per_s: 1e10,
            memcpy_hot_all_bytes_per_s: 7e10,
            memcpy_cold_all_bytes_per_s: 1.1e10,
            threads: 2,
            duration_ns: 50_000_000,
            costs: Costs::default(),
        }),
        end: None,
    }
}

fn plan() -> Plan {
    Plan {
        axes: Axes::Net(NetAxes {
            topologies: vec![Topology::Loopback],
            modes: vec![Mode::Stream],
            working_sets: vec![WorkingSet::Hot],
            fields: vec![8],
            iovec: vec![Iovec::PerMessage],
            receivers: vec!["recv".to_owned()],
            congestion: "reno".to_owned(),
            tuning: TuningAxes {
                socket_buffer_bytes: vec![Bytes(4 << 20)],
                ..TuningAxes::default()
            },
            allow_sysctl: false,
            direction: Direction::Tx,
            external: Vec::new(),
            external_loop: false,
        }),
        primitives: vec!["send_staged".to_owned(), "sendmsg_iov".to_owned()],
        baseline: "send_staged".to_owned(),
        sizes: vec![Bytes(64), Bytes(4096)],
        threads: vec![1],
        schedule: Schedule::Slices { slice: Nanos(5_000_000), discarded_rounds: 3, rounds: 40 },
        passes: Passes { minimum: 12, maximum: 60 },
        budget: Nanos(600_000_000_000),
        precision: 0.03,
        delta: 0.03,
        quick: false,
        isolate: false,
        seed: 7,
        cpus: None,
        probes: Probes::default(),
    }
}

/// The trial of pass `pass`, with two slices of the size at `position`.
pub(crate) fn trial(pass: u32, position: u32) -> TrialOutcome {
    let slice = |seq| SliceOutcome {
        seq,
        round: 0,
        kind: SliceKind::Measured,
        arm: 0,
        all_active_ns: 4_000_000,
        tx: Counts {
            messages: 100,
            bytes: 6400,
            calls: Some(100),
            time_ns: 5_000_000,
            ..Counts::default()
        },
        rx: None,
    };
    TrialOutcome {
        pass,
        position,
        isolated: false,
        cell: plan().cells().swap_remove(position as usize),
        started_unix_ns: 1_700_000_000_000_000_000,
        duration_ns: 400_000_000,
        status: Status::Ok,
        reason: None,
        arms: vec![ArmOutcome {
            arm: Arm {
                label: "send_staged".to_owned(),
                primitive: "send_staged".to_owned(),
                role: Role::Baseline,
            },
            status: Status::Ok,
            reason: None,
            copies_sender: Some(2.0),
            copies_end_to_end: None,
            latency: None,
            server: None,
            ab: None,
        }],
        slices: vec![slice(0), slice(1)],
        environment: Environment::unknown("not looked at"),
        far_environment: None,
        tx: None,
        rx: None,
    }
}

/// The end of a run that did all its passes.
pub(crate) fn end() -> RunEnd {
    RunEnd {
        finished_unix_ns: 1_700_000_060_000_000_000,
        stopped_by: StoppedBy::Passes,
        unmet: Vec::new(),
        paused_ns: 7,
    }
}

/// A phase of a search that did not come to its end.
pub(crate) fn phase() -> SearchPhase {
    let trial = trial(1, 0);
    SearchPhase {
        number: 1,
        cell: trial.cell,
        arm: trial.arms[0].arm.clone(),
        step: Some(-14),
        rate: Some(2_000.5),
        phase: Nanos(2_000_000_000),
        dropped: Nanos(500_000_000),
        started_unix_ns: 8,
        duration_ns: 9,
        status: Status::Failed,
        reason: Some("the server ended".to_owned()),
        latency: None,
        server: None,
        slice: None,
        environment: trial.environment,
    }
}

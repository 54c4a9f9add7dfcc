//! Programs that are not our worker, started as one: each makes one failed
//! trial that says what is wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use iolens_engine::trial::{Launch, run};
use iolens_engine::worker::protocol::PROTOCOL_VERSION;
use iolens_model::arm::{Arm, Role};
use iolens_model::axes::{Iovec, Mode, Topology, WorkingSet};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::outcome::Status;
use iolens_model::plan::{NetworkOptions, Probes, SocketOptions};
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};

fn trial() -> Trial {
    Trial {
        pass: 1,
        position: 0,
        isolated: false,
        cell: Cell {
            setting: Setting::Net(NetSetting {
                topology: Topology::Loopback,
                mode: Mode::Stream,
                working_set: WorkingSet::Hot,
                fields: 8,
                iovec: Iovec::PerMessage,
                receiver: "recv".into(),
                tuning: Tuning::DEFAULT,
            }),
            threads: 1,
            size: Bytes(64),
        },
        arms: vec![Arm { label: "send".into(), primitive: "send".into(), role: Role::Baseline }],
        slices: vec![Slice {
            arm: 0,
            round: 0,
            kind: SliceKind::Measured,
            work: Work::Messages(4),
        }],
        socket: SocketOptions {
            congestion: "reno".into(),
            buffer_bytes: Bytes(65_536),
            nodelay: true,
            receive_bytes: Bytes(65_536),
        },
        network: NetworkOptions::default(),
        hosts: None,
        probes: Probes::default(),
        tx_cpus: vec![0],
        rx_cpus: vec![0],
        ring_messages: 1,
        file: None,
        copies: None,
        servers: None,
        sampling: None,
        stall_limit: Nanos(1_000_000_000),
        trial_limit: Nanos(1_000_000_000),
    }
}

fn reason(program: &str, arguments: &[&str]) -> String {
    let arguments = arguments.iter().map(|&a| a.to_owned()).collect();
    let outcome = run(&trial(), &Launch { program: program.into(), arguments }, None);
    assert_eq!(outcome.status, Status::Failed);
    assert!(outcome.slices.is_empty());
    outcome.reason.unwrap()
}

#[test]
fn a_program_that_is_not_there() {
    let reason = reason("/nowhere/iolens", &[]);
    assert_eq!(reason, "cannot start /nowhere/iolens: ENOENT (no such file or directory)");
}

#[test]
fn a_worker_that_ends_at_once() {
    assert!(reason("/bin/sh", &["-c", "exit 3"]).contains("worker exited with status 3"));
}

#[test]
fn a_worker_of_another_protocol_is_refused() {
    let hello = r#"{"hello":{"protocol":99,"build":"0.0.9"}}"#;
    let script = format!(r"printf '\{:03o}\000\000\000{hello}'; cat >/dev/null", hello.len());
    let reason = reason("/bin/sh", &["-c", &script]);
    assert!(reason.contains("(build 0.0.9) speaks protocol 99, this iolens (build "), "{reason}");
    assert!(reason.contains(&format!(") speaks {PROTOCOL_VERSION}: use builds")), "{reason}");
}

#[test]
fn a_worker_that_speaks_nonsense() {
    let reason = reason("/bin/sh", &["-c", r"printf '\004\000\000\000what'; cat >/dev/null"]);
    assert!(reason.contains("speaks nonsense"), "{reason}");
}

#[test]
fn a_worker_that_says_nothing_after_hello() {
    let hello = format!(r#"{{"hello":{{"protocol":{PROTOCOL_VERSION},"build":"x"}}}}"#);
    let script = format!(r"printf '\{:03o}\000\000\000{hello}'; cat >/dev/null", hello.len());
    let reason = reason("/bin/sh", &["-c", &script]);
    assert!(reason.contains("did not end within its time limit"), "{reason}");
}

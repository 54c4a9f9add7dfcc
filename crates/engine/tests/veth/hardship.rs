//! What takes zero-copy or io_uring from a sender: brought about in the place
//! of a worker that is stopped meanwhile, or in the worker itself, by this
//! program started with a word of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use iolens_engine::trial::run;
use iolens_engine::{stage, worker};
use iolens_model::axes::Topology;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::NetworkOptions;
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_model::units::Nanos;
use iolens_net::registry::find;
use iolens_programs::spawn::Launch;
use iolens_sys::errno::Errno;
use iolens_sys::packet::Tap;
use iolens_sys::{ethtool, seccomp};

use super::{conduct, kill, say, trial, worker_at_work};

/// Listens to every packet for as long as its standard input is open.
const TAP: &str = "tap";
/// Takes scatter-gather from the sink's device, and ends.
const WHOLE_PACKETS: &str = "whole-packets";
/// Becomes a worker that may make no ring.
const WITHOUT_RINGS: &str = "without-rings";

/// Every word that [`bring_about`] knows.
pub(super) const ALL: [&str; 3] = [TAP, WHOLE_PACKETS, WITHOUT_RINGS];

/// What a word stands for, in this process.
pub(super) fn bring_about(word: &str) {
    match word {
        TAP => {
            let _tap = Tap::open().unwrap();
            say("ready");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        WHOLE_PACKETS => {
            ethtool::switch_off_scatter_gather(stage::SINK_DEVICE).unwrap();
            say("ready");
        }
        _ => {
            seccomp::give_up_io_uring(Errno::EPERM).unwrap();
            worker::become_worker().unwrap();
            worker::serve(std::io::stdin(), std::io::stdout(), None).unwrap();
        }
    }
}

/// Brings it about in the network namespace of the sending worker, which sends
/// nothing meanwhile.
fn beside_the_sender(word: &str) -> Child {
    let pid = worker_at_work("tx").to_string();
    kill(&pid, "STOP");
    let mut command = Command::new("nsenter");
    command.args(["--target", &pid, "--net"]);
    if iolens_sys::process::effective_uid() != 0 {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.arg(std::env::current_exe().unwrap()).arg(word);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    kill(&pid, "CONT");
    assert_eq!(line, "ready\n", "{word} in the worker's namespace");
    child
}

/// A window in which something can be brought about, and then eight messages of
/// every arm that is not copied in a sink by itself.
fn zerocopy_after_a_while() -> Trial {
    let mut trial = trial(Topology::Sink, NetworkOptions::default());
    let is_zerocopy = |id: &str| find(id).is_some_and(|entry| entry.data_path().may_copy_late());
    trial.arms.retain(|arm| is_zerocopy(&arm.primitive));
    trial.cell.net_mut().unwrap().fields = 1;
    trial.stall_limit = Nanos(60_000_000_000);
    let slice = |arm, work| Slice { arm, round: 0, kind: SliceKind::Measured, work };
    let arms = 0..trial.arms.len();
    let each = arms.map(|arm| slice(arm, Work::Messages(8)));
    trial.slices = [slice(0, Work::Window(Nanos(2_000_000_000)))].into_iter().chain(each).collect();
    trial
}

/// Conducts it with a hardship, and checks that from then on all is copied.
fn all_is_copied(word: &str) -> TrialOutcome {
    let trial = zerocopy_after_a_while();
    let outcome = std::thread::scope(|scope| {
        let conducting = scope.spawn(|| conduct(&trial));
        let mut child = beside_the_sender(word);
        let outcome = conducting.join().unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        outcome
    });
    assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
    for slice in &outcome.slices[1..] {
        let counts = slice.tx.zerocopy.unwrap();
        let arm = &outcome.arms[slice.arm].arm.label;
        assert_eq!((counts.sends, counts.completions), (8, 8), "{arm}");
        assert!(counts.copied.is_none_or(|copied| copied == 8), "{arm}: {counts:?}");
    }
    let said = outcome.slices[1..].iter().filter_map(|slice| slice.tx.zerocopy?.copied);
    assert!(said.count() > 0, "no arm says what was copied");
    outcome
}

pub(super) fn a_packet_tap_copies_zero_copy_sends_and_is_seen() {
    let outcome = all_is_copied(TAP);
    assert_eq!(outcome.tx.unwrap().packet_taps, Some(1));
}

pub(super) fn a_device_without_scatter_gather_copies_zero_copy_sends() {
    let outcome = all_is_copied(WHOLE_PACKETS);
    assert_eq!(outcome.tx.unwrap().packet_taps, Some(0));
}

pub(super) fn rings_that_a_seccomp_filter_refuses_are_skipped() {
    let trial = trial(Topology::Loopback, NetworkOptions::default());
    let program = std::env::current_exe().unwrap();
    let outcome = run(&trial, &Launch { program, arguments: vec![WITHOUT_RINGS.into()] }, None);
    assert_eq!(outcome.status, Status::Skipped, "{:?}", outcome.reason);
    let reason = outcome.reason.unwrap();
    assert!(reason.contains("cannot set up an io_uring (a seccomp filter"), "{reason}");
    assert!(reason.contains("EPERM"), "{reason}");
    let refused = outcome.arms.iter().filter(|arm| arm.reason.as_deref() != Some(&reason));
    for arm in refused.clone() {
        assert_eq!(arm.status, Status::Skipped, "{arm:?}");
    }
}

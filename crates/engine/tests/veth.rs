//! Trials in network namespaces of our own, between two of them and into a
//! device that drops everything: whole ones, and ones whose device or worker or
//! coordinator goes away. Started as `veth worker` this is a worker,
//! as `veth coordinate` a process that can be killed in the middle of a trial.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "veth/busy_poll.rs"]
mod busy_poll;
#[path = "veth/hardship.rs"]
mod hardship;
#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use iolens_engine::trial::run;
use iolens_engine::{clock, stage, worker};
use iolens_model::arm::{Arm, Role};
use iolens_model::axes::{Iovec, IpVersion, Mode, Topology, WorkingSet};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::data_path::CallsPerMessage;
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::plan::{NetworkOptions, Probes, SocketOptions};
use iolens_model::transport::Transport;
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};
use iolens_net::entry::{Ends, Entry};
use iolens_net::registry::{self, REGISTRY};
use iolens_programs::spawn::{END_VARIABLE, Launch};

type Test = (&'static str, Topology, fn());

const TESTS: &[Test] = &[
    ("a_trial_reads_back_what_was_asked", Topology::Veth, a_trial_reads_back_what_was_asked),
    (
        "every_transport_passes_between_namespaces",
        Topology::Veth,
        every_transport_passes_between_namespaces,
    ),
    (
        "what_polls_the_device_finds_packets",
        Topology::Veth,
        busy_poll::what_polls_the_device_finds_packets,
    ),
    ("frames_pass_between_namespaces", Topology::Veth, frames_pass_between_namespaces),
    (
        "a_segment_larger_than_the_mtu_is_refused",
        Topology::Veth,
        a_segment_larger_than_the_mtu_is_refused,
    ),
    (
        "an_impossible_mtu_is_one_failed_trial",
        Topology::Veth,
        an_impossible_mtu_is_one_failed_trial,
    ),
    ("a_removed_device_is_one_failed_trial", Topology::Veth, a_removed_device_is_one_failed_trial),
    ("a_killed_worker_is_one_failed_trial", Topology::Veth, a_killed_worker_is_one_failed_trial),
    ("a_killed_coordinator_leaves_nothing", Topology::Veth, a_killed_coordinator_leaves_nothing),
    (
        "a_datagram_that_is_too_scattered_is_refused",
        Topology::Sink,
        a_datagram_that_is_too_scattered_is_refused,
    ),
    (
        "what_is_sent_into_a_sink_is_not_copied",
        Topology::Sink,
        what_is_sent_into_a_sink_is_not_copied,
    ),
    (
        "a_sink_takes_one_datagram_and_no_more",
        Topology::Sink,
        a_sink_takes_one_datagram_and_no_more,
    ),
    ("a_removed_sink_is_one_failed_trial", Topology::Sink, a_removed_sink_is_one_failed_trial),
    (
        "a_packet_tap_copies_zero_copy_sends_and_is_seen",
        Topology::Sink,
        hardship::a_packet_tap_copies_zero_copy_sends_and_is_seen,
    ),
    (
        "a_device_without_scatter_gather_copies_zero_copy_sends",
        Topology::Sink,
        hardship::a_device_without_scatter_gather_copies_zero_copy_sends,
    ),
    (
        "rings_that_a_seccomp_filter_refuses_are_skipped",
        Topology::Loopback,
        hardship::rings_that_a_seccomp_filter_refuses_are_skipped,
    ),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("worker") => {
            worker::become_worker().unwrap();
            worker::serve(std::io::stdin(), std::io::stdout(), None).unwrap();
        }
        Some(word) if hardship::ALL.contains(&word) => hardship::bring_about(word),
        Some("coordinate") => {
            conduct(&endless(Topology::Veth));
        }
        filter => run_tests(filter.filter(|word| !word.starts_with('-'))),
    }
}

fn run_tests(filter: Option<&str>) {
    loopback_has_both_protocols();
    for (name, topology, test) in TESTS {
        if filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        if let Err(why) = stage::available(*topology) {
            skip::note(name, &why);
            continue;
        }
        let before = traces();
        test();
        wait_until("what a trial made is gone", || traces() == before);
        say(&format!("test {name} ... ok"));
    }
}

/// Says what libtest would.
#[expect(clippy::print_stdout, reason = "it stands in for libtest")]
fn say(line: &str) {
    println!("{line}");
}

/// What a trial took, so that one that takes its time is seen.
fn say_duration(outcome: &TrialOutcome, what: &str) {
    say(&format!("  {what}: {} us", outcome.duration_ns / 1000));
}

/// What must be the same before and after: devices, named namespaces, mounts,
/// children.
fn traces() -> [BTreeSet<String>; 4] {
    let names = |path: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    let mounts = lines(std::fs::read_to_string("/proc/self/mountinfo").unwrap());
    let workers = children(std::process::id()).iter().map(u32::to_string).collect();
    [names("/sys/class/net"), names("/run/netns"), mounts, workers]
}

/// A message of every entry that fits, as large as most of them take.
fn trial(topology: Topology, network: NetworkOptions) -> Trial {
    let fits = |entry: &&Entry| match topology.has_receiver() {
        true => !entry.transport.loses(),
        false => entry.fits(topology).is_ok(),
    };
    let size = if topology.has_receiver() { 100_000 } else { 1000 };
    trial_of(fits, topology, network, size, Mode::Stream)
}

fn trial_of(
    fits: impl Fn(&&Entry) -> bool,
    topology: Topology,
    network: NetworkOptions,
    message_bytes: u64,
    mode: Mode,
) -> Trial {
    let pairs = REGISTRY.iter().copied().filter(|entry| entry.ends == Ends::Pair && !entry.hidden);
    let arms: Vec<Arm> = pairs
        .filter(fits)
        .map(|entry| Arm {
            label: entry.id.to_owned(),
            primitive: entry.id.to_owned(),
            role: Role::Compared,
        })
        .collect();
    let slice = |arm| Slice { arm, round: 0, kind: SliceKind::Measured, work: Work::Messages(8) };
    Trial {
        pass: 1,
        position: 0,
        isolated: false,
        cell: Cell {
            setting: Setting::Net(NetSetting {
                topology,
                mode,
                working_set: WorkingSet::Hot,
                fields: 8,
                iovec: Iovec::PerMessage,
                receiver: "recv".into(),
                tuning: Tuning::DEFAULT,
            }),
            threads: 2,
            size: Bytes(message_bytes),
        },
        slices: (0..arms.len()).map(slice).collect(),
        arms,
        socket: SocketOptions {
            congestion: "reno".into(),
            buffer_bytes: Bytes(262_144),
            nodelay: true,
            receive_bytes: Bytes(65_536),
        },
        network,
        hosts: None,
        probes: Probes::default(),
        tx_cpus: vec![own_cpu()],
        rx_cpus: vec![own_cpu()],
        ring_messages: 2,
        file: None,
        copies: None,
        programs: Vec::new(),
        programs_loop: false,
        servers: None,
        sampling: None,
        stall_limit: Nanos(5_000_000_000),
        trial_limit: Nanos(60_000_000_000),
    }
}

/// A processor that this process may run on.
fn own_cpu() -> u32 {
    iolens_sys::affinity::thread_cpus().unwrap()[0]
}

/// A trial during which something can happen.
fn endless(topology: Topology) -> Trial {
    let plain = |entry: &&Entry| entry.id == "send";
    let mut trial = trial_of(plain, topology, NetworkOptions::default(), 1000, Mode::Stream);
    // Without a receiver the other end waits for as long as the slice lasts.
    let stall_limit_s = if topology.has_receiver() { 1 } else { 60 };
    trial.stall_limit = Nanos(stall_limit_s * 1_000_000_000);
    trial.arms.truncate(1);
    trial.slices.truncate(1);
    trial.slices[0].work = Work::Window(Nanos(50_000_000_000));
    trial
}

fn conduct(trial: &Trial) -> TrialOutcome {
    let program = std::env::current_exe().unwrap();
    run(trial, &Launch { program, arguments: vec!["worker".into()] }, None)
}

/// Conducts an endless trial while `disturb` goes on beside it, and returns
/// the reason of its failure.
fn disturbed(topology: Topology, disturb: fn()) -> String {
    let outcome = std::thread::scope(|scope| {
        // The workers die with the thread that starts them, which therefore
        // conducts the whole trial.
        let conducting = scope.spawn(|| conduct(&endless(topology)));
        disturb();
        conducting.join().unwrap()
    });
    assert_eq!(outcome.status, Status::Failed);
    outcome.reason.unwrap()
}

fn loopback_has_both_protocols() {
    for &ip in IpVersion::ALL {
        if ip == IpVersion::V6 && std::net::TcpListener::bind("[::1]:0").is_err() {
            skip::note("loopback_has_both_protocols", "this machine has no IPv6");
            continue;
        }
        let outcome = conduct(&trial(Topology::Loopback, NetworkOptions { ip, mtu_bytes: 1500 }));
        say_duration(&outcome, &format!("{ip}, loopback"));
        assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
        let facts = outcome.tx.unwrap();
        assert_eq!(facts.mtu_bytes, None, "the device is the machine's");
        assert!(facts.packet_taps.is_some());
        say(&format!("test loopback_has_both_protocols, {ip} ... ok"));
    }
}

fn a_trial_reads_back_what_was_asked() {
    // Options of every segment: time stamps take 12 bytes (RFC 7323).
    const TIMESTAMPS_BYTES: u64 = 12;
    for (ip, headers_bytes) in [(IpVersion::V4, 40), (IpVersion::V6, 60)] {
        for mtu_bytes in [1500, 9000] {
            let trial = trial(Topology::Veth, NetworkOptions { ip, mtu_bytes });
            let outcome = conduct(&trial);
            say_duration(&outcome, &format!("{ip}, MTU {mtu_bytes}"));
            assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
            for slice in &outcome.slices {
                assert_eq!(slice.tx.bytes, 8 * trial.cell.size.0);
                assert_eq!(slice.rx.unwrap().bytes, slice.tx.bytes);
            }
            assert_eq!(outcome.slices.len(), trial.arms.len());
            for facts in [outcome.tx.unwrap(), outcome.rx.unwrap()] {
                assert_eq!(facts.mtu_bytes, Some(mtu_bytes.into()));
                assert_eq!(facts.packet_taps, Some(0));
                let mss_bytes = u64::from(mtu_bytes) - headers_bytes - TIMESTAMPS_BYTES;
                assert_eq!(facts.mss_bytes, Some(mss_bytes));
            }
        }
    }
}

/// Every transport, between namespaces, as a stream and by request; what may be
/// lost is not lost when so little is under way.
fn every_transport_passes_between_namespaces() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        for mode in [Mode::Stream, Mode::Rr] {
            let network = NetworkOptions { ip, mtu_bytes: 1500 };
            // The device has one queue, and two threads want one each.
            let shares = |entry: &&Entry| !entry.makes_frames();
            let trial = trial_of(shares, Topology::Veth, network, 1400, mode);
            let transports: BTreeSet<_> = trial.arms.iter().filter_map(transport).collect();
            assert_eq!(transports.len(), Transport::ALL.len());
            let outcome = conduct(&trial);
            say_duration(&outcome, &format!("{ip}, {mode}, every transport"));
            assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
            for slice in &outcome.slices {
                let arm = &trial.arms[slice.arm];
                assert_eq!(slice.tx.bytes, 8 * 1400, "{}", arm.label);
                assert_eq!(slice.rx.unwrap().bytes, slice.tx.bytes, "{}", arm.label);
                let is_tcp = transport(arm) == Some(Transport::Tcp);
                assert!(!is_tcp || slice.tx.retransmits.is_some(), "{}", arm.label);
            }
            assert_eq!(outcome.slices.len(), trial.arms.len());
        }
    }
}

/// Frames with headers of our own reach the receiver's socket, or say why not.
fn frames_pass_between_namespaces() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        for (size, mode) in [(1, Mode::Stream), (1400, Mode::Stream), (1400, Mode::Rr)] {
            let network = NetworkOptions { ip, mtu_bytes: 1500 };
            let with = |size| {
                let mut trial =
                    trial_of(|entry| entry.makes_frames(), Topology::Veth, network, size, mode);
                trial.cell.threads = 1;
                conduct(&trial)
            };
            let outcome = with(size);
            say_duration(&outcome, &format!("{ip}, {mode}, frames of {size} B"));
            let lacks = |why: &&String| why.contains("EAFNOSUPPORT");
            if let Some(why) = outcome.reason.as_ref().filter(lacks) {
                return skip::note("frames_pass_between_namespaces", why);
            }
            assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
            for slice in &outcome.slices {
                assert_eq!(slice.tx.bytes, 8 * size);
                assert_eq!(slice.rx.unwrap().bytes, slice.tx.bytes);
            }
            assert_eq!(outcome.slices.len(), 1);
            let outcome = with(1473);
            assert_eq!(outcome.status, Status::Skipped);
            let reason = outcome.reason.unwrap();
            assert!(reason.contains("of which a page and the MTU hold 14"), "{reason}");
        }
    }
}

fn transport(arm: &Arm) -> Option<Transport> {
    Some(registry::find(&arm.primitive)?.transport)
}

fn a_segment_larger_than_the_mtu_is_refused() {
    let network = NetworkOptions { ip: IpVersion::V4, mtu_bytes: 1500 };
    let cut = |entry: &&Entry| entry.id == "udp_gso";
    let outcome = conduct(&trial_of(cut, Topology::Veth, network, 1473, Mode::Stream));
    assert_eq!(outcome.status, Status::Skipped);
    let reason = outcome.reason.unwrap();
    assert!(reason.contains("segments of 1473 B where the MTU leaves room for 1472"), "{reason}");
    let fits = conduct(&trial_of(cut, Topology::Veth, network, 1472, Mode::Stream));
    assert_eq!((fits.status, fits.reason), (Status::Ok, None));
}

fn an_impossible_mtu_is_one_failed_trial() {
    let network = NetworkOptions { ip: IpVersion::V4, mtu_bytes: 70_000 };
    let outcome = conduct(&trial(Topology::Veth, network));
    assert_eq!(outcome.status, Status::Failed);
    let reason = outcome.reason.unwrap();
    assert!(reason.contains("with an MTU of 70000 bytes: EINVAL"), "{reason}");
}

fn a_removed_device_is_one_failed_trial() {
    let reason = disturbed(Topology::Veth, || remove(stage::TX_DEVICE));
    assert!(reason.contains("was removed while the trial ran"), "{reason}");
}

/// Removes a device from under the sending worker.
fn remove(device: &str) {
    let pid = worker_at_work("tx").to_string();
    let mut command = Command::new("nsenter");
    command.args(["--target", &pid, "--net"]);
    if iolens_sys::process::effective_uid() != 0 {
        command.args(["--user", "--preserve-credentials"]);
    }
    let removed = command.args(["ip", "link", "delete", device]).status();
    assert!(removed.unwrap().success(), "nsenter and ip remove the device");
}

fn what_is_sent_into_a_sink_is_not_copied() {
    for &ip in IpVersion::ALL {
        for message_bytes in [1, 1000, 64_000] {
            let network = NetworkOptions { ip, ..Default::default() };
            let fits = |entry: &&Entry| {
                let is_held = !entry.makes_frames() || message_bytes <= 4000;
                entry.fits(Topology::Sink).is_ok() && is_held
            };
            let mut trial = trial_of(fits, Topology::Sink, network, message_bytes, Mode::Stream);
            trial.cell.net_mut().unwrap().fields = if message_bytes < 64_000 { 8 } else { 1 };
            let outcome = conduct(&trial);
            say_duration(&outcome, &format!("{ip}, {message_bytes} B into a sink"));
            assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
            assert_eq!(outcome.slices.len(), trial.arms.len());
            for (slice, arm) in outcome.slices.iter().zip(&outcome.arms) {
                let Counts { messages, bytes, calls, time_ns, zerocopy, .. } = slice.tx;
                assert_eq!((messages, bytes), (8, 8 * message_bytes), "{arm:?}");
                let entry = registry::find(&arm.arm.primitive).unwrap();
                let calls = calls.expect("a primitive counts its calls");
                match entry.calls {
                    CallsPerMessage::Shared(_) => assert!((1..=8).contains(&calls), "{arm:?}"),
                    _ => assert_eq!(calls, 8, "{arm:?}"),
                }
                assert!(time_ns > 0 && slice.rx.is_none());
                assert_eq!((slice.tx.retransmits, slice.tx.segments_out), (None, None));
                assert_eq!(arm.copies_end_to_end, arm.copies_sender, "the path ends at the device");
                if arm.arm.primitive == "sendmsg_zerocopy" {
                    let counts = zerocopy.unwrap();
                    assert_eq!((counts.sends, counts.completions, counts.copied), (8, 8, Some(0)));
                    assert_eq!(arm.copies_sender, Some(0.0));
                }
            }
            let facts = outcome.tx.unwrap();
            assert_eq!(facts.mtu_bytes, Some(NetworkOptions::SINK_MTU_BYTES.into()));
            assert!(facts.send_buffer_bytes.is_some());
            assert_eq!((facts.congestion, facts.mss_bytes), (None, None), "it is not TCP");
            assert!(facts.not_measured.iter().any(|missing| missing.metric == "segments_out"));
        }
    }
}

fn copied_sends(outcome: &TrialOutcome) -> Option<u64> {
    outcome.slices.iter().find_map(|slice| slice.tx.zerocopy).and_then(|counts| counts.copied)
}

fn a_sink_takes_one_datagram_and_no_more() {
    for &ip in IpVersion::ALL {
        let network = NetworkOptions { ip, ..Default::default() };
        let with = |message_bytes: Bytes| {
            // Those made for UDP refuse by themselves.
            let fits = |entry: &&Entry| entry.datagrams && !entry.transport.loses();
            let size = message_bytes.0;
            let mut trial = trial_of(fits, Topology::Sink, network, size, Mode::Stream);
            trial.cell.net_mut().unwrap().fields = 1;
            conduct(&trial)
        };
        let most = network.datagram_max();
        let outcome = with(most);
        assert_eq!((outcome.status, &outcome.reason), (Status::Ok, &None));
        assert_eq!(copied_sends(&outcome), Some(0));
        let outcome = with(Bytes(most.0 + 1));
        match ip {
            IpVersion::V4 => {
                let reason = outcome.reason.unwrap();
                assert!(reason.contains("EMSGSIZE"), "{reason}");
            }
            // Its datagrams may be longer, but go out in pieces, and a message
            // that is cut is copied.
            IpVersion::V6 => assert_eq!(copied_sends(&outcome), Some(8)),
        }
    }
}

/// Of 64 allocations no two lie side by side, and no kernel takes as many.
fn a_datagram_that_is_too_scattered_is_refused() {
    let fits = |entry: &&Entry| entry.fits(Topology::Sink).is_ok() && !entry.makes_frames();
    let mut trial = trial_of(fits, Topology::Sink, NetworkOptions::default(), 6400, Mode::Stream);
    trial.cell.net_mut().unwrap().fields = 64;
    let outcome = conduct(&trial);
    assert_eq!(outcome.status, Status::Skipped);
    let reason = outcome.reason.unwrap();
    assert!(reason.starts_with("while `sendmsg_zerocopy` ran: a message of"), "{reason}");
    assert!(reason.contains("in 64 fields lies on more pages"), "{reason}");
}

fn a_removed_sink_is_one_failed_trial() {
    let reason = disturbed(Topology::Sink, || remove(stage::SINK_DEVICE));
    assert!(reason.contains("was removed while the trial ran"), "{reason}");
}

/// At three points: when it is just there, while namespaces are made, and
/// in the middle of the trial.
fn a_killed_worker_is_one_failed_trial() {
    for disturb in [
        || kill(&worker_of("rx").to_string(), "KILL"),
        || kill(&worker_of("tx").to_string(), "KILL"),
        || kill(&worker_in_namespace("rx").to_string(), "KILL"),
        || kill(&worker_in_namespace("tx").to_string(), "KILL"),
        || kill(&worker_at_work("rx").to_string(), "KILL"),
        || kill(&worker_at_work("tx").to_string(), "KILL"),
    ] {
        let reason = disturbed(Topology::Veth, disturb);
        assert!(reason.contains("worker was killed by signal 9"), "{reason}");
    }
}

/// The workers are stopped before: they cannot notice that their control pipe
/// has ended, so it is `PR_SET_PDEATHSIG` that ends them, in a user namespace
/// as well.
fn a_killed_coordinator_leaves_nothing() {
    for stopped in [true, false] {
        let mut coordinator = Command::new(std::env::current_exe().unwrap())
            .arg("coordinate")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let workers = ["tx", "rx"].map(|end| at_work(coordinator.id(), end));
        if stopped {
            workers.iter().for_each(|pid| kill(&pid.to_string(), "STOP"));
        }
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();
        wait_until("the workers are gone", || !workers.iter().any(|&pid| is_alive(pid)));
    }
}

fn kill(pid: &str, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), pid]).status();
    assert!(sent.unwrap().success(), "kill -{signal} {pid}");
}

fn worker_of(end: &str) -> u32 {
    find(std::process::id(), end, |_| true)
}

fn worker_in_namespace(end: &str) -> u32 {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = namespace("self");
    find(std::process::id(), end, |pid| namespace(&pid.to_string()) != own)
}

fn worker_at_work(end: &str) -> u32 {
    at_work(std::process::id(), end)
}

/// The worker of an end whose threads of the trial have started.
fn at_work(parent: u32, end: &str) -> u32 {
    find(parent, end, |pid| {
        std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() >= 4)
    })
}

/// Waits for the worker of an end for which something is true.
fn find(parent: u32, end: &str, is: impl Fn(u32) -> bool) -> u32 {
    let said = format!("{END_VARIABLE}={end}");
    let is_end = |&pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == said.as_bytes())
    };
    let mut found = None;
    wait_until("a worker is found", || {
        found = children(parent).into_iter().filter(is_end).find(|&pid| is(pid));
        found.is_some()
    });
    found.unwrap()
}

/// Children of a process, whichever of its threads started them.
fn children(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|p| p.parse().ok()).collect()
}

fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or("Z").starts_with('Z'))
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin_ns = clock::monotonic_ns();
    while !is() {
        assert!(clock::monotonic_ns() - begin_ns < 20_000_000_000, "not within 20 s: {what}");
        std::thread::yield_now();
    }
}

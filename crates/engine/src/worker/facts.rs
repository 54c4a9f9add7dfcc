//! What an end says about itself: where its threads ran and what the kernel
//! made of its options, or of those of a program.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_harness::op::Fact;
use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::external::External;
use iolens_model::metrics::METRICS;
use iolens_model::outcome::EndFacts;
use iolens_model::reading::NotMeasured;
use iolens_model::transport::Transport;
use iolens_model::transport::{NODELAY, NODELAY_OFF, OUR_SEND_BUFFER, SEND_BUFFER};
use iolens_model::trial::Trial;
use iolens_net::lane::Lane;
use iolens_sys::errno::Errno;
use iolens_sys::kin::{self, Tree};
use iolens_sys::proc::Root;
use iolens_sys::{affinity, tcp, udp};

use super::bracket::Bracket;
use super::crew::Stop;
use super::link::Links;
use super::protocol::BUILD;

/// Binds the calling thread to its processor and reads back where it may run.
///
/// Errors: what was tried and what the system said.
pub(crate) fn pin(cpus: &[u32], thread: usize) -> Result<Vec<u32>, Stop> {
    let cpu = cpus[thread % cpus.len()];
    affinity::pin_thread(cpu)
        .map_err(|e| Stop::cause(format!("cannot pin a thread to CPU {cpu}: {e}")))?;
    affinity::thread_cpus().map_err(Stop::at("read back where a thread may run"))
}

/// A count of TCP where no message goes over it.
fn not_over_tcp(cell: &Cell) -> impl Fn(&str) -> NotMeasured {
    let why = match cell.topology().map(Topology::has_receiver) {
        Some(true) => "no message goes over TCP, which alone counts it",
        Some(false) => "messages to a device that drops them go over UDP, which does not count it",
        None => "nothing is sent over TCP, which alone counts it",
    };
    move |metric| NotMeasured { metric: metric.to_owned(), why: why.to_owned() }
}

/// Counts that threads have and programs have not, where programs are arms.
fn of_programs(trial: &Trial) -> Vec<NotMeasured> {
    let copiers = trial.copies.as_ref().map_or(&[][..], |copies| &copies.programs);
    let has_any = |programs: &[External]| {
        let names = || programs.iter().map(|program| &program.name);
        trial.arms.iter().any(|arm| names().any(|name| *name == arm.primitive))
    };
    let unknown = |why: &str, metrics: &[&str]| -> Vec<NotMeasured> {
        let of = |metric: &&str| NotMeasured { metric: (*metric).to_owned(), why: why.to_owned() };
        metrics.iter().map(of).collect()
    };
    const NOT_OF_PROGRAMS: [&str; 3] = ["calls", "migrations", "run_delay_ns"];
    const OF_CONNECTIONS: [&str; 2] = ["retransmits", "segments_out"];
    let of_rusage = METRICS.iter().filter(|metric| metric.source.starts_with("getrusage"));
    let of_rusage: Vec<&str> = of_rusage.map(|metric| metric.name).collect();
    match (has_any(copiers), has_any(&trial.programs)) {
        (true, _) => {
            unknown("of programs only CPU time, switches and faults are known", &NOT_OF_PROGRAMS)
        }
        (false, true) => unknown(
            "of programs of yours only CPU time is known, and not if their processes come and go",
            &[&NOT_OF_PROGRAMS[..], &of_rusage, &OF_CONNECTIONS].concat(),
        ),
        (false, false) => Vec::new(),
    }
}

fn min_round_trip_ns(connection: BorrowedFd<'_>) -> Option<u64> {
    let seen = tcp::info(connection).ok()?.min_round_trip?;
    u64::try_from(seen.as_nanos()).ok()
}

/// The facts of an end from its threads.
pub(crate) fn end_facts<'a>(
    trial: &Trial,
    links: &Links,
    threads: impl Iterator<Item = (&'a Bracket, Vec<u32>)>,
) -> EndFacts {
    // Connections that messages do not go over say nothing about them.
    let received = trial.cell.has_receiver();
    let connection = links.any(Transport::Tcp).filter(|_| received).map(Lane::data);
    let accepted = connection.and_then(|fd| tcp::read_back(fd).ok());
    let sent_from = || {
        let lane = links.any(Transport::Udp)?;
        udp::send_buffer_bytes(lane.data()).map(|bytes| bytes as u64)
    };
    let mut facts = EndFacts {
        build: BUILD.to_owned(),
        message_bytes: trial.cell.size.0,
        congestion: accepted.as_ref().map(|a| a.congestion.clone()),
        send_buffer_bytes: accepted.as_ref().map(|a| a.send_buffer_bytes as u64).or_else(sent_from),
        receive_buffer_bytes: accepted.as_ref().map(|a| a.receive_buffer_bytes as u64),
        nodelay: accepted.as_ref().map(|a| a.nodelay),
        mss_bytes: connection.and_then(|fd| tcp::info(fd).ok()).map(|info| info.send_mss_bytes),
        strangers: links.strangers(),
        strange_datagrams: links.strange_datagrams(),
        min_round_trip_ns: trial.hosts.and(connection).and_then(min_round_trip_ns),
        not_measured: match connection {
            Some(_) => Vec::new(),
            None => ["retransmits", "segments_out"].map(not_over_tcp(&trial.cell)).to_vec(),
        },
        ..EndFacts::default()
    };
    facts.not_measured.extend(of_programs(trial));
    for (bracket, cpus) in threads {
        facts.threads += 1;
        facts.thread_cpus.push(cpus);
        facts.bracket_ns += bracket.spent_ns();
        facts.thread_pmus.extend(bracket.pmu().map(str::to_owned));
        for missing in &bracket.missing() {
            if !facts.not_measured.contains(missing) {
                facts.not_measured.push(missing.clone());
            }
        }
    }
    facts
}

// What the socket of a program is like.

/// The options of a program's connection, which are its own. That it may not be looked at is one of
/// these facts.
pub(super) fn socket_facts(pid: u32, receiver: SocketAddr, lane: BorrowedFd<'_>) -> Vec<Fact> {
    let root = Root::real();
    let mut sockets = Vec::new();
    for pid in Tree::below(&root, pid).processes {
        match kin::sockets_of(&root, pid) {
            Ok(own) => sockets.extend(own),
            // It has ended meanwhile.
            Err(Errno::ENOENT | Errno::ESRCH) => {}
            Err(errno) => {
                return vec![("socket options", format!("cannot be read: {errno}"))];
            }
        }
    }
    let is_its = |fd: &OwnedFd| tcp::is_connected_to(fd.as_fd(), receiver);
    let own = sockets.iter().find(|fd| is_its(fd)).map(|fd| tcp::read_back(fd.as_fd()));
    let Some(Ok(own)) = own else { return Vec::new() };
    let nodelay = if own.nodelay { "on" } else { NODELAY_OFF };
    let mut facts = vec![
        (NODELAY, nodelay.to_owned()),
        (SEND_BUFFER, own.send_buffer_bytes.to_string()),
        ("congestion control", own.congestion),
    ];
    // The lane has the options of our methods' connections.
    let ours = tcp::read_back(lane).ok();
    facts.extend(ours.map(|ours| (OUR_SEND_BUFFER, ours.send_buffer_bytes.to_string())));
    facts
}

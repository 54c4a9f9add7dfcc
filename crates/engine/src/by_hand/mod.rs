//! One transfer by hand: two programs in two terminals, each in the foreground,
//! so that a person can put perf stat, strace or taskset in front of either.
//!
//! It is made of what trials are made of: the senders of the registry, the
//! receivers, their loops, the same socket options. What it has not: worker
//! processes, slices, counters, a store. One connection is served by the thread
//! that called, which a tracer of that thread alone sees; each further one has
//! a thread of its own. Nothing is pinned unless it is asked for, so that an
//! affinity from outside stays.
//!
//! There is one thread more that only waits for the user to interrupt. Trials
//! have such threads too, and with them the price of a descriptor that threads
//! share (`fdget`, fs/file.c), so calls cost the same here as there.

pub mod recv;
pub mod send;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iolens_harness::watch::{Insistence, watched};
use iolens_model::data_path::End;
use iolens_model::outcome::Status;
use iolens_model::plan::SocketOptions;
use iolens_model::transfer::{Cpu, OfConnection, Transfer, Until};
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::tcp::{Closing, SetupError};
use iolens_sys::{affinity, clock, tcp, usage};

use iolens_harness::op::{Span, Tally};
use iolens_net::lane;

/// What both ends have in common.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Options of the sockets.
    pub socket: SocketOptions,
    /// Processors for the threads, in turn; `None` leaves them where they are.
    pub cpus: Option<Vec<u32>>,
    /// How long the other end may not move before it is given up.
    pub stall_limit: Duration,
}

impl Conditions {
    fn options(&self) -> tcp::Options {
        tcp::Options {
            congestion: self.socket.congestion.clone(),
            buffer_bytes: usize::try_from(self.socket.buffer_bytes.0).unwrap_or(usize::MAX),
            nodelay: self.socket.nodelay,
            stall_limit: self.stall_limit,
            multipath: false,
        }
    }

    /// Binds the calling thread if that is wanted.
    fn pin(&self, thread: usize) -> Result<(), String> {
        let Some(cpus) = self.cpus.as_deref().filter(|cpus| !cpus.is_empty()) else {
            return Ok(());
        };
        let cpu = cpus[thread % cpus.len()];
        affinity::pin_thread(cpu).map_err(|e| format!("cannot pin a thread to CPU {cpu}: {e}"))
    }
}

/// A connection and who is at its other end.
#[derive(Debug)]
struct Connection {
    fd: OwnedFd,
    peer: SocketAddr,
}

impl Connection {
    /// Until a transfer has ended well, closing the connection is a reset: the
    /// other end of a process that was killed must not read the end of a stream.
    fn of(fd: OwnedFd, peer: SocketAddr) -> Result<Connection, SetupError> {
        tcp::set_closing(fd.as_fd(), Closing::Resets)?;
        Ok(Connection { fd, peer })
    }

    /// The transfer has ended well.
    fn ended(&self) -> Result<(), SetupError> {
        tcp::set_closing(self.fd.as_fd(), Closing::Ends)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What the thread of one connection did.
#[derive(Debug, Clone)]
struct Served {
    tally: Tally,
    mapped_bytes: Option<u64>,
    /// Bytes that came before its time began: those of its first receive.
    untimed_bytes: u64,
    /// From its first call, or its first bytes, to what ended its time; a point
    /// where nothing was called.
    span: Span,
    until: Until,
    /// Why it did not end as it should.
    failure: Option<String>,
    facts: Vec<(String, String)>,
}

impl Served {
    /// Bytes that moved within its time.
    fn timed_bytes(&self) -> u64 {
        self.tally.bytes.saturating_sub(self.untimed_bytes)
    }

    /// Nothing, for a reason.
    fn nothing(failure: String) -> Served {
        Served {
            tally: Tally::default(),
            mapped_bytes: None,
            untimed_bytes: 0,
            span: Span::none(),
            until: Until::LastCall,
            failure: Some(failure),
            facts: Vec::new(),
        }
    }
}

/// Where the threads of a transfer wait until all have what they need.
struct Start {
    barrier: Barrier,
    failed: AtomicBool,
}

impl Start {
    /// The CPU time before, where the first thread reads it, or that one of
    /// them cannot begin, and so none does.
    fn meet(&self, thread: usize, opened: bool) -> Result<Option<usage::ProcessCpu>, NotStarted> {
        if !opened {
            // Read behind the barrier, which orders it.
            self.failed.store(true, Ordering::Relaxed);
        }
        self.barrier.wait();
        if self.failed.load(Ordering::Relaxed) {
            return Err(NotStarted);
        }
        let before = if thread == 0 { usage::process_cpu().ok() } else { None };
        self.barrier.wait();
        Ok(before)
    }
}

/// Another connection cannot be served.
struct NotStarted;

/// What becomes of a thread before its transfer begins.
fn not_started(NotStarted: NotStarted, own: Option<String>) -> Served {
    Served::nothing(own.unwrap_or_else(|| ANOTHER.to_owned()))
}

const ANOTHER: &str = "not begun, because another connection cannot be served";

/// Serves all connections, the first one on the calling thread, until they are
/// done or the user has interrupted; says whether that was so.
fn serve_all(
    connections: &[Connection],
    interrupts: &mut Interrupts,
    stop: &(dyn Fn(Insistence) + Sync),
    serve: impl Fn(usize, &Connection, &Start) -> (Served, Option<usage::ProcessCpu>) + Sync,
) -> Done {
    let start = Start { barrier: Barrier::new(connections.len()), failed: AtomicBool::new(false) };
    let work = || {
        std::thread::scope(|scope| {
            let (serve, start) = (&serve, &start);
            let mut numbered = connections.iter().enumerate();
            let first = numbered.next();
            let others: Vec<_> = numbered
                .map(|(thread, connection)| scope.spawn(move || serve(thread, connection, start)))
                .collect();
            let mut all: Vec<(Served, Option<usage::ProcessCpu>)> = Vec::new();
            all.extend(first.map(|(thread, connection)| serve(thread, connection, start)));
            let panicked = || (Served::nothing("its thread panicked".to_owned()), None);
            all.extend(others.into_iter().map(|t| t.join().unwrap_or_else(|_| panicked())));
            all
        })
    };
    let (all, interrupted) = watched(interrupts, stop, work);
    let after = usage::process_cpu().ok();
    let before = all.iter().find_map(|(_, before)| *before);
    let cpu = before.zip(after).map(|(before, after)| Cpu {
        user: Nanos(after.user_ns.saturating_sub(before.user_ns)),
        system: Nanos(after.system_ns.saturating_sub(before.system_ns)),
    });
    Done { served: all.into_iter().map(|(served, _)| served).collect(), cpu, interrupted }
}

/// All connections of an end, served.
struct Done {
    served: Vec<Served>,
    cpu: Option<Cpu>,
    interrupted: bool,
}

/// What a transfer is called.
struct Name<'a> {
    end: End,
    primitive: &'a str,
    address: SocketAddr,
    message_bytes: Option<Bytes>,
}

impl Done {
    /// The sum over all connections.
    fn transfer(self, name: &Name<'_>, connections: &[Connection]) -> Transfer {
        let served = &self.served;
        let sum = |f: fn(&Served) -> u64| served.iter().map(f).sum::<u64>();
        let called = || served.iter().map(|s| s.span).filter(|span| span.first_call_ns > 0);
        let first = called().map(|span| span.first_call_ns).min().unwrap_or(0);
        let last = called().map(|span| span.last_call_ns).max().unwrap_or(first);
        let each = served.iter().zip(connections).map(|(served, connection)| OfConnection {
            peer: connection.peer.to_string(),
            bytes: served.tally.bytes,
            timed_bytes: served.timed_bytes(),
            time: Nanos(served.span.last_call_ns.saturating_sub(served.span.first_call_ns)),
        });
        let failures = failures(served, connections, name.end);
        let (status, reason) = match (self.interrupted, failures.is_empty()) {
            (true, _) => (Status::Interrupted, Some("interrupted".to_owned())),
            (false, true) => (Status::Ok, None),
            (false, false) => (Status::Failed, Some(failures.join("; "))),
        };
        let zerocopy = served.iter().filter_map(|s| s.tally.zerocopy);
        let messages = name.message_bytes.map(|size| match name.end {
            End::Sender => sum(|s| s.tally.messages),
            // Each connection carries whole messages, and perhaps a part.
            End::Receiver => served.iter().map(|s| s.tally.bytes / size.0.max(1)).sum(),
        });
        Transfer {
            end: name.end,
            primitive: name.primitive.to_owned(),
            address: name.address.to_string(),
            connections: u32::try_from(connections.len()).unwrap_or(u32::MAX),
            status,
            reason,
            message_bytes: name.message_bytes,
            bytes: sum(|s| s.tally.bytes),
            timed_bytes: sum(Served::timed_bytes),
            messages,
            calls: sum(|s| s.tally.calls),
            time: Nanos(last - first),
            until: until(served),
            zerocopy: zerocopy.reduce(|sum, next| sum.plus(&next)),
            mapped_bytes: served.iter().filter_map(|s| s.mapped_bytes).reduce(|a, b| a + b),
            cpu: self.cpu,
            each: each.collect(),
            facts: served.first().map(|s| s.facts.clone()).unwrap_or_default(),
        }
    }
}

/// The weakest of what ended the times of the connections.
fn until(served: &[Served]) -> Until {
    let any = |until| served.iter().any(|s| s.until == until);
    match served.first() {
        _ if any(Until::LastCall) => Until::LastCall,
        _ if any(Until::Acknowledgement) => Until::Acknowledgement,
        Some(first) => first.until,
        None => Until::LastCall,
    }
}

/// What went wrong, each with the connection that it went wrong on.
fn failures(served: &[Served], connections: &[Connection], end: End) -> Vec<String> {
    let several = connections.len() > 1;
    let own = |s: &&Served| s.failure.as_deref() != Some(ANOTHER);
    let all = served.iter().zip(connections).enumerate().filter(|(_, (s, _))| own(s));
    all.filter_map(|(index, (served, connection))| {
        let failure = served.failure.as_ref()?;
        Some(match (several, end) {
            (false, _) => failure.clone(),
            (true, End::Sender) => {
                format!("client {} ({}): {failure}", index + 1, connection.peer)
            }
            (true, End::Receiver) => format!("connection {}: {failure}", index + 1),
        })
    })
    .collect()
}

/// `123 MiB (128974848 bytes)`.
fn amount(bytes: u64) -> String {
    match bytes {
        Bytes::KIB.. => format!("{} ({bytes} bytes)", Bytes(bytes)),
        _ => Bytes(bytes).to_string(),
    }
}

/// Why a call on a connection failed that the other end has a part in; `None` for
/// anything else. `peer` did not move, or has gone, after `done`.
fn of_the_peer(errno: Errno, peer: &str, stall_limit: Duration, done: &str) -> Option<String> {
    let limit = Nanos(u64::try_from(stall_limit.as_nanos()).unwrap_or(u64::MAX));
    match errno {
        Errno::EAGAIN => {
            Some(format!("the {peer} did not move for {limit} (--stall-limit) after {done}"))
        }
        _ if lane::tells_of_the_peer(errno) => {
            Some(format!("the {peer} went away after {done}: {errno}"))
        }
        _ => None,
    }
}

/// What the kernel made of the options of a connection.
fn socket_facts(fd: BorrowedFd<'_>) -> Vec<(String, String)> {
    let Ok(accepted) = tcp::read_back(fd) else { return Vec::new() };
    let size = |bytes: usize| Bytes(bytes as u64).to_string();
    let facts = [
        ("congestion control", accepted.congestion),
        ("send buffer", size(accepted.send_buffer_bytes)),
        ("receive buffer", size(accepted.receive_buffer_bytes)),
        ("TCP_NODELAY", if accepted.nodelay { "on" } else { "off" }.to_owned()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Now, for the end of a span that began at `first_ns`.
fn span_from(first_ns: u64) -> Span {
    Span { first_call_ns: first_ns, last_call_ns: clock::monotonic_ns() }
}

//! Load on a server: very many connections, requests that are due by a schedule
//! or by the reply before, and the time that each of them took.
//!
//! The books ([`book`]) are functions of time alone; [`links`] are the sockets,
//! [`reply`] reads what comes over them, [`client`] is the thread that does both.
//! A [`Session`] keeps connections from one load to the next, [`run`] makes them for
//! one. Before anything is sent, [`Settings::check`] computes what this machine's
//! limits allow.
//!
//! Nothing here decides whether the server or the client was the limit: what that
//! rests on, the client's lag behind its own schedule and the share of the time it
//! was busy, is handed out with the rest.

mod book;
mod client;
mod limits;
mod links;
mod offered;
mod reply;
mod schedule;
mod session;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use iolens_model::load::{Length, Load, Pace};
use iolens_model::units::Nanos;
use iolens_sys::proc::Root;
use iolens_sys::signal::Interrupts;

use iolens_harness::watch::watched;

pub use iolens_harness::watch::Insistence;
pub use limits::{Limits as ClientLimits, ROOM};
pub use offered::Offered;
pub use offered::{network_between, network_counts};
pub use reply::{Expected, Read, record, replies};
pub use session::{Portion, Session, run};

/// As [`run`], until the user interrupts: the first time requests that were sent
/// are still waited for, up to a second.
pub fn run_by_hand(
    settings: &Settings,
    interrupts: &mut Interrupts,
    watch: Option<&Watch<'_>>,
) -> Load {
    let stop = Stop::default();
    let ask = |insistence| stop.ask(insistence);
    watched(interrupts, &ask, || run(settings, &stop, watch)).0
}

/// How often a thread that has nothing to do looks whether it is to stop.
const LOOK_NS: u64 = 50_000_000;

/// The recorder of times goes no further (`iolens_harness::stream`): what took longer would
/// stand in the figures as a minute, unmarked.
const TIMEOUT_MAX: Nanos = Nanos(60 * Nanos::SECOND.0);

/// What a request looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// A line: the request's id, and this text if there is any.
    Line {
        /// Without a newline.
        text: Vec<u8>,
    },
    /// These bytes, the same for every request; replies come in order.
    Request(Vec<u8>),
}

impl Form {
    /// An HTTP/1.1 GET of a path.
    pub fn http(path: &str, address: &SocketAddr) -> Form {
        Form::Request(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes())
    }
}

/// How many requests there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many that count, over all threads.
    Requests(u64),
    /// As many as are due in this time.
    Time(Nanos),
}

/// What is to be offered, and to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The server.
    pub address: SocketAddr,
    /// Connections at a time; at least as many as threads.
    pub connections: u32,
    /// Requests in flight on each, at most; 1 with short connections.
    pub in_flight: u32,
    /// How many requests a connection carries.
    pub length: Length,
    /// What makes a request due.
    pub pace: Pace,
    /// How many requests there are.
    pub count: Count,
    /// Time before, with requests that do not count.
    pub warmup: Nanos,
    /// Over which time connections are made, or with short ones the first requests.
    pub ramp: Nanos,
    /// After which a request is given up, from when it is due.
    pub timeout: Nanos,
    /// Threads of the client; connections are divided among them.
    pub threads: u32,
    /// Processors for them, in turn; `None` leaves them where they are.
    pub cpus: Option<Vec<u32>>,
    /// Addresses to connect from, in turn; none leaves it to the kernel.
    pub sources: Vec<IpAddr>,
    /// What random gaps come from.
    pub seed: u64,
    /// What a request looks like.
    pub form: Form,
    /// What replies are to be.
    pub expected: Expected,
}

impl Settings {
    /// One connection in a closed loop for a second: what others are variations of.
    pub fn closed_loop(address: SocketAddr) -> Settings {
        Settings {
            address,
            connections: 1,
            in_flight: 1,
            length: Length::Long,
            pace: Pace::Closed { think: Nanos(0) },
            count: Count::Time(Nanos::SECOND),
            warmup: Nanos(0),
            ramp: Nanos(0),
            timeout: Nanos(10 * Nanos::SECOND.0),
            threads: 1,
            cpus: None,
            sources: Vec::new(),
            seed: 1,
            form: Form::Line { text: Vec::new() },
            expected: Expected::Id,
        }
    }

    /// Whether this can be done here, found out before anything is sent.
    ///
    /// Errors: what cannot, with the arithmetic and what to do.
    pub fn check(&self) -> Result<(), String> {
        let one_at_a_time = match (self.length, &self.form) {
            (Length::Short, _) => Some("a short connection carries one request"),
            (_, Form::Request(_)) => Some("replies of HTTP have no ids"),
            _ => None,
        };
        if let Some(why) = one_at_a_time.filter(|_| self.in_flight > 1) {
            return Err(format!("{} requests in flight on a connection: {why}", self.in_flight));
        }
        if self.threads > self.connections {
            return Err(format!(
                "{} threads for {} connections: every thread needs one of its own",
                self.threads, self.connections
            ));
        }
        if self.timeout > TIMEOUT_MAX {
            return Err(format!(
                "cannot record times above {0} s, and --timeout is {1}: use --timeout {0}s",
                TIMEOUT_MAX.as_seconds(),
                self.timeout
            ));
        }
        let other = self.sources.iter().find(|from| from.is_ipv4() != self.address.is_ipv4());
        if let Some(other) = other {
            return Err(format!("{} cannot be reached from {other}", self.address));
        }
        limits::Limits::here(&Root::real()).allow(self)
    }
}

/// A reply that was awaited.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Number of the connection, from 1.
    pub connection: u32,
    /// Id of the request; 0 where there are none.
    pub id: u64,
    /// When it was due, sent and answered, in ns on `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// See `due_ns`.
    pub sent_ns: u64,
    /// See `due_ns`.
    pub received_ns: u64,
    /// Whether it is what was expected.
    pub is_right: bool,
    /// Its text, or the beginning of a long one.
    pub text: &'a [u8],
}

/// Who is told of every reply, by the thread that received it, while it waits.
pub type Watch<'a> = dyn Fn(&Answer<'_>) + Sync + 'a;

/// Says to a load from outside that it is to end; each thread looks every 50 ms.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// Ends it.
    pub fn ask(&self, insistence: Insistence) {
        let level = match insistence {
            Insistence::Asked => 1,
            Insistence::Insists => 2,
        };
        // It carries nothing but itself.
        self.0.fetch_max(level, Ordering::Relaxed);
    }

    fn asked(&self) -> Option<Insistence> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Insistence::Asked),
            _ => Some(Insistence::Insists),
        }
    }
}

/// What ends a load before its time: who asked for it, or a limit that one of its
/// threads has met, of which the next load need not know.
struct Ends<'a> {
    stop: &'a Stop,
    at_limit: AtomicBool,
}

impl<'a> Ends<'a> {
    fn of(stop: &'a Stop) -> Ends<'a> {
        Ends { stop, at_limit: AtomicBool::new(false) }
    }

    /// A thread cannot go on.
    fn at_limit(&self) {
        // It carries nothing but itself.
        self.at_limit.store(true, Ordering::Relaxed);
    }

    fn asked(&self) -> Option<Insistence> {
        match self.at_limit.load(Ordering::Relaxed) {
            true => Some(Insistence::Insists),
            false => self.stop.asked(),
        }
    }
}

/// System calls of a client that carry requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// epoll_pwait2(2), those that only looked among them.
    pub waits: u64,
    /// send(2).
    pub sends: u64,
    /// recv(2).
    pub receives: u64,
}

impl Calls {
    fn plus(&self, other: &Calls) -> Calls {
        Calls {
            waits: self.waits + other.waits,
            sends: self.sends + other.sends,
            receives: self.receives + other.receives,
        }
    }
}

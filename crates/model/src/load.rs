//! One load on a server: how it was offered, and what became of it.

use serde::{Deserialize, Serialize};

use crate::axes::axis;
use crate::reading::Histogram;
use crate::reading::Status;
use crate::units::Cpu;
use crate::units::Nanos;

axis! {
    /// How many requests a connection carries.
    Length {
        /// One, and then it is closed.
        Short = "short",
        /// As many as there are.
        Long = "long",
    }
}

axis! {
    /// How requests of an open loop follow each other.
    Arrivals {
        /// At random, independent of each other: gaps are exponential.
        Poisson = "poisson",
        /// At equal gaps.
        Fixed = "fixed",
    }
}

/// What makes a request due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "loop")]
pub enum Pace {
    /// The reply to the one before it, and a time to think.
    Closed {
        /// Between a reply and the next request.
        think: Nanos,
    },
    /// A schedule that was there before: it waits for nobody.
    Open {
        /// Requests per second of all threads together.
        rate: f64,
        /// How they follow each other.
        arrivals: Arrivals,
    },
}

/// How requests ended: every one in exactly one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// With a reply that is right as far as it was checked.
    pub ok: u64,
    /// Without a reply in time, sent or not.
    pub timeout: u64,
    /// With a connection that could not be made.
    pub refused: u64,
    /// With a connection that ended or failed before the reply.
    pub reset: u64,
    /// With a reply that is wrong, or says that the server failed.
    pub invalid: u64,
    /// By this client itself: interrupted, or at a limit of its own machine.
    pub abandoned: u64,
}

impl Outcomes {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.ok + self.timeout + self.refused + self.reset + self.invalid + self.abandoned
    }

    /// The sum of two.
    pub fn plus(&self, other: &Outcomes) -> Outcomes {
        Outcomes {
            ok: self.ok + other.ok,
            timeout: self.timeout + other.timeout,
            refused: self.refused + other.refused,
            reset: self.reset + other.reset,
            invalid: self.invalid + other.invalid,
            abandoned: self.abandoned + other.abandoned,
        }
    }
}

/// What one thread of the client spent while requests were offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientThread {
    /// CPU time, user and kernel.
    pub cpu: Nanos,
    /// Of it, time in which it only looked whether something was to be done.
    pub spinning: Nanos,
    /// From its first request to its last reply.
    pub wall: Nanos,
    /// Ready to run without a CPU; `None` where the kernel counts nothing.
    pub run_delay: Option<Nanos>,
    /// Times that the scheduler took the CPU from it.
    pub involuntary_switches: u64,
}

impl ClientThread {
    /// Share of the time in which it worked, 0 to 1; `None` where no time passed.
    pub fn busy(&self) -> Option<f64> {
        let worked = self.cpu.0.saturating_sub(self.spinning.0);
        (self.wall.0 > 0).then(|| (worked as f64 / self.wall.0 as f64).min(1.0))
    }

    /// CPU time in which it only looked whether something was to be done, ns. It looks by the clock
    /// on the wall: one that was kept from it spent no more than its CPU time.
    pub fn polled_ns(&self) -> u64 {
        self.spinning.0.min(self.cpu.0)
    }
}

/// Connections that were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Connects {
    /// Those that stood.
    pub made: u64,
    /// Those that did not.
    pub failed: u64,
    /// Those that took 0.9 s or more: so long takes a first request to connect
    /// that was dropped, of which the kernel makes another one after a second.
    pub slow: u64,
    /// From the first one begun to the last one made before the requests; `None`
    /// for short connections.
    pub ramp: Option<Nanos>,
}

/// What the kernel counted for all sockets of the client's network namespace;
/// the server's too where both are in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkCounts {
    /// Connections dropped because a queue of those not yet accepted was full
    /// (`TcpExt ListenOverflows`).
    pub listen_overflows: u64,
    /// Connections dropped by a listening socket for any reason (`ListenDrops`).
    pub listen_drops: u64,
    /// Segments sent again (`Tcp RetransSegs`).
    pub retransmits: u64,
}

/// A load, and what became of it, summed over the threads of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The server's address.
    pub address: String,
    /// Connections at a time.
    pub connections: u32,
    /// Requests in flight on each, at most.
    pub in_flight: u32,
    /// How many requests a connection carries.
    pub length: Length,
    /// What makes a request due.
    pub pace: Pace,
    /// What the random gaps came from; `None` where nothing is random.
    pub seed: Option<u64>,
    /// Whether it ran to its end.
    pub status: Status,
    /// Why not.
    pub reason: Option<String>,
    /// What was checked of replies.
    pub checked: String,
    /// Requests that became due and count.
    pub scheduled: u64,
    /// How they ended.
    pub outcomes: Outcomes,
    /// Requests that timed out before there was a free connection to send them on.
    pub unsent: u64,
    /// Requests before those that count, to warm up.
    pub warmup: u64,
    /// Replies to requests that had timed out.
    pub late_replies: u64,
    /// What went wrong and how often, in words.
    pub failures: Vec<(String, u64)>,
    /// Connections made.
    pub connects: Connects,
    /// From when the first request that counts could be due to when the last one
    /// could be: the time that was asked for; where a number of requests was, to the end of
    /// the last one, answered or not.
    pub window: Nanos,
    /// Right replies that came in the window.
    pub replies_in_window: u64,
    /// Time of each request with a reply or a timeout, from when it was due.
    pub from_due: Histogram,
    /// The same from when it was sent; requests never sent are not in it.
    pub from_sent: Histogram,
    /// How long after it was due the client took up a request; empty where
    /// nothing but a reply makes one due.
    pub lag: Histogram,
    /// Right replies in each second of the window, the last one perhaps a part.
    pub per_second: Vec<u64>,
    /// Bytes of requests, as send(2) took them, warm-up included.
    pub sent_bytes: u64,
    /// Bytes of replies, as recv(2) gave them, warm-up included.
    pub received_bytes: u64,
    /// What the threads of the client spent.
    pub threads: Vec<ClientThread>,
    /// CPU time of the client's process, ramp left out; `None` where it cannot be read.
    pub cpu: Option<Cpu>,
    /// What the kernel counted meanwhile; `None` where it cannot be read.
    pub network: Option<NetworkCounts>,
}

impl Load {
    /// Right replies per second of the window; `None` where no time passed.
    pub fn rate(&self) -> Option<f64> {
        (self.window.0 > 0).then(|| self.replies_in_window as f64 * 1e9 / self.window.0 as f64)
    }

    /// Requests per second that an open loop was to make; `None` for a closed one.
    pub fn offered(&self) -> Option<f64> {
        match self.pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed { .. } => None,
        }
    }

    /// Mean number of requests in flight, by Little's law: rate × mean time from
    /// sent to answered.
    pub fn mean_in_flight(&self) -> Option<f64> {
        Some(self.rate()? * self.from_sent.mean_ns()? / 1e9)
    }

    /// Time in which threads of the client were ready to run without a CPU; `None`
    /// where the kernel counts nothing.
    pub fn run_delay(&self) -> Option<Nanos> {
        let all: Option<Vec<u64>> =
            self.threads.iter().map(|thread| thread.run_delay.map(|delay| delay.0)).collect();
        all.map(|all| Nanos(all.iter().sum()))
    }

    /// The largest share of its time in which a thread of the client worked.
    pub fn busiest_thread(&self) -> Option<f64> {
        self.threads.iter().filter_map(ClientThread::busy).max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_polled_for_no_longer_than_it_ran() {
        let polled_ns = |cpu, spinning| {
            let (cpu, spinning) = (Nanos(cpu), Nanos(spinning));
            ClientThread { cpu, spinning, ..ClientThread::default() }.polled_ns()
        };
        assert_eq!((polled_ns(100, 80), polled_ns(50, 60)), (80, 50));
    }

    #[test]
    fn what_a_thread_only_spun_is_no_work() {
        let thread = ClientThread {
            cpu: Nanos(900),
            spinning: Nanos(500),
            wall: Nanos(1000),
            ..ClientThread::default()
        };
        assert_eq!(thread.busy(), Some(0.4));
        assert_eq!(ClientThread { spinning: Nanos(950), ..thread }.busy(), Some(0.0));
        assert_eq!(ClientThread { wall: Nanos(0), ..thread }.busy(), None);
    }

    #[test]
    fn outcomes_add_up() {
        let some = Outcomes { ok: 1, timeout: 2, refused: 3, reset: 4, invalid: 5, abandoned: 6 };
        assert_eq!((some.total(), some.plus(&some).total()), (21, 42));
    }
}

//! What a client offered to one server over the measured slices of a trial, and what it
//! spent on that.

use std::collections::BTreeSet;

use iolens_model::arm::ArmOutcome;
use iolens_model::load::{ClientThread, NetworkCounts, Outcomes};
use iolens_model::outcome::{EndFacts, TrialOutcome};
use iolens_model::units::Nanos;

use crate::interval::Parts;
use crate::sums::measured;

/// Sums over the measured slices of an arm.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Offered {
    /// Requests that were due.
    pub(crate) scheduled: u64,
    /// How they ended.
    pub(crate) outcomes: Outcomes,
    /// Right replies that came while requests were due.
    pub(crate) replies_in_window: u64,
    /// The time in which requests were due, ns.
    pub(crate) window_ns: u64,
    /// Replies to requests that had timed out.
    pub(crate) late_replies: u64,
    /// What each thread of the client spent, by its number.
    pub(crate) threads: Vec<ClientThread>,
    /// CPU time in which they only looked whether something was to be done, ns.
    pub(crate) polled_ns: u64,
    /// What the kernel counted where the client stands; `None` where it could not be read.
    pub(crate) client_network: Option<NetworkCounts>,
    /// The same where the servers stand; `None` where that is one place.
    pub(crate) server_network: Option<NetworkCounts>,
    /// Periods in which cgroups held back the server or the client: where both are in one,
    /// or below one that did, the more of the two.
    pub(crate) throttled_periods: u64,
    /// Processors of the servers, and of the client; 0 where they are not known.
    pub(crate) cpus: [u32; 2],
    /// Their numbers.
    pub(crate) cpu_numbers: [BTreeSet<u32>; 2],
}

impl Offered {
    /// Of an arm of a trial; `None` where it is no server, or nothing came of it.
    pub(crate) fn of(trial: &TrialOutcome, outcome: &ArmOutcome) -> Option<Offered> {
        let server = outcome.server.as_ref()?;
        let counts: BTreeSet<u32> = measured(trial).map(|slice| slice.seq).collect();
        let cpu_numbers = [cpus(&trial.tx), cpus(&trial.rx)];
        let cpus = [0, 1].map(|end| crate::interval::count(cpu_numbers[end].len()));
        let mut sum = Offered { cpus, cpu_numbers, ..Offered::default() };
        let slices = server.offered.iter().filter(|slice| counts.contains(&slice.seq));
        for (nth, slice) in slices.enumerate() {
            sum.scheduled += slice.scheduled;
            sum.outcomes = sum.outcomes.plus(&slice.outcomes);
            sum.replies_in_window += slice.replies_in_window;
            sum.window_ns += slice.window.0;
            sum.late_replies += slice.late_replies;
            sum.polled_ns += slice.polled_ns();
            let throttled = slice.throttled.iter().flatten().map(|held| held.periods).max();
            sum.throttled_periods += throttled.unwrap_or(0);
            sum.threads.resize(sum.threads.len().max(slice.threads.len()), NOTHING);
            for (sum, thread) in sum.threads.iter_mut().zip(&slice.threads) {
                *sum = together(sum, thread);
            }
            let first = nth == 0;
            sum.client_network = network(first, sum.client_network, slice.network);
            sum.server_network = network(first, sum.server_network, slice.server_network);
        }
        Some(sum)
    }

    /// What the kernel counted where the servers stand.
    pub(crate) fn at_the_server(&self) -> Option<NetworkCounts> {
        self.server_network.or(self.client_network)
    }

    /// The work of the client's busiest thread over its time; `None` without any.
    pub(crate) fn busiest(&self) -> Option<Parts> {
        let threads = self.threads.iter().filter_map(|thread| Some((thread.busy()?, thread)));
        let (_, thread) = threads.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let worked = thread.cpu.0.saturating_sub(thread.spinning.0);
        Some(Parts { over: worked as f64, under: thread.wall.0 as f64 })
    }
}

/// A thread before it began.
const NOTHING: ClientThread = ClientThread {
    cpu: Nanos(0),
    spinning: Nanos(0),
    wall: Nanos(0),
    run_delay: Some(Nanos(0)),
    involuntary_switches: 0,
};

fn together(a: &ClientThread, b: &ClientThread) -> ClientThread {
    ClientThread {
        cpu: Nanos(a.cpu.0 + b.cpu.0),
        spinning: Nanos(a.spinning.0 + b.spinning.0),
        wall: Nanos(a.wall.0 + b.wall.0),
        run_delay: a.run_delay.zip(b.run_delay).map(|(a, b)| Nanos(a.0 + b.0)),
        involuntary_switches: a.involuntary_switches + b.involuntary_switches,
    }
}

/// The sum of two slices' counts; `None` where one lacks them.
fn network(
    first: bool,
    sum: Option<NetworkCounts>,
    slice: Option<NetworkCounts>,
) -> Option<NetworkCounts> {
    if first {
        return slice;
    }
    let (a, b) = (sum?, slice?);
    Some(NetworkCounts {
        listen_overflows: a.listen_overflows + b.listen_overflows,
        listen_drops: a.listen_drops + b.listen_drops,
        retransmits: a.retransmits + b.retransmits,
    })
}

/// Processors that the threads of an end may run on.
fn cpus(end: &Option<EndFacts>) -> BTreeSet<u32> {
    end.iter().flat_map(|end| &end.thread_cpus).flatten().copied().collect()
}

//! What came of a load: the sum over its threads, whose books become one.

use iolens_model::load::{ClientThread, Connects, Load, NetworkCounts, Outcomes, Pace};
use iolens_model::outcome::Status;
use iolens_model::reading::Histogram;
use iolens_model::units::Nanos;
use iolens_sys::proc::{self, Root};

use super::book::Results;
use super::client::{Failures, Left, REST};
use super::links::{LinkCounts, nobody_there};
use super::schedule::Meeting;
use super::{Calls, Ends, Insistence, Settings};

/// What came of a portion. Times are in ns on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// Of this portion alone; but connections are those of the whole session. Its
    /// `window` is the time that was asked for, or goes to the last right reply
    /// where a number of requests was, and leaves the warm-up out.
    pub load: Load,
    /// When the first request was sent, of the warm-up if there is one; `None` where
    /// none was.
    pub first_sent_ns: Option<u64>,
    /// When the last right reply came, to whatever request and after the window too;
    /// `None` where none did.
    pub last_right_ns: Option<u64>,
    /// Calls that carried it; those that made connections before are left out.
    pub calls: Calls,
}

/// What one thread leaves behind; `None` where it did not begin.
pub(super) struct ThreadDone {
    pub(super) left: Option<Left>,
    pub(super) client: ClientThread,
    /// Over its connections.
    pub(super) counts: LinkCounts,
    /// Of connections before it began.
    pub(super) failures: Failures,
    pub(super) reason: Option<String>,
}

impl ThreadDone {
    pub(super) fn nothing(reason: Option<String>) -> ThreadDone {
        ThreadDone {
            left: None,
            client: ClientThread::default(),
            counts: LinkCounts::default(),
            failures: Failures::new(),
            reason,
        }
    }
}

/// What the kernel has counted in this network namespace.
pub fn network_counts() -> Option<NetworkCounts> {
    let read = |path| Root::real().read(path).ok();
    let (netstat, snmp) = (read("proc/self/net/netstat")?, read("proc/self/net/snmp")?);
    Some(NetworkCounts {
        listen_overflows: proc::net_counter(&netstat, "TcpExt", "ListenOverflows")?,
        listen_drops: proc::net_counter(&netstat, "TcpExt", "ListenDrops")?,
        retransmits: proc::net_counter(&snmp, "Tcp", "RetransSegs")?,
    })
}

/// What it has counted since then.
pub(super) fn network_since(before: NetworkCounts) -> Option<NetworkCounts> {
    network_counts().map(|after| network_between(before, after))
}

/// What it has counted between two readings.
pub fn network_between(before: NetworkCounts, after: NetworkCounts) -> NetworkCounts {
    NetworkCounts {
        listen_overflows: after.listen_overflows.saturating_sub(before.listen_overflows),
        listen_drops: after.listen_drops.saturating_sub(before.listen_drops),
        retransmits: after.retransmits.saturating_sub(before.retransmits),
    }
}

/// The sum over all threads; what the session knows of its connections, and the
/// process of itself, is not in it.
pub(super) fn together(
    settings: &Settings,
    meeting: &Meeting,
    ends: &Ends<'_>,
    threads: Vec<ThreadDone>,
) -> Offered {
    let limit = threads.iter().find_map(|thread| {
        let of_client = thread.left.as_ref().and_then(|left| left.limit.clone());
        of_client.or_else(|| thread.reason.clone())
    });
    let load = nothing(settings);
    let mut offered =
        Offered { load, first_sent_ns: None, last_right_ns: None, calls: Calls::default() };
    let mut failures = Failures::new();
    let mut end_ns = 0;
    for thread in threads {
        let both = [Some(thread.failures), thread.left.as_ref().map(|left| left.failures.clone())];
        for (text, count) in both.into_iter().flatten().flatten() {
            *failures.entry(text).or_default() += count;
        }
        let Some(left) = thread.left else { continue };
        let results = &left.results;
        end_ns = end_ns.max(results.end_ns());
        let sends = offered.first_sent_ns.into_iter().chain(results.first_sent_ns);
        offered.first_sent_ns = sends.min();
        offered.last_right_ns = offered.last_right_ns.max(results.last_right_ns);
        offered.calls = offered.calls.plus(&thread.counts.calls);
        let load = &mut offered.load;
        load.threads.push(thread.client);
        load.sent_bytes += thread.counts.sent_bytes;
        load.received_bytes += thread.counts.received_bytes;
        add(load, results);
    }
    let load = &mut offered.load;
    load.failures = failures.into_iter().collect();
    // What the rest were nobody knows: it stands behind those that say something.
    load.failures.sort_by_key(|(text, count)| (text == REST, std::cmp::Reverse(*count)));
    let begun_ns = meeting.begun().map(|start_ns| start_ns + settings.warmup.0);
    load.window = Nanos(begun_ns.map_or(0, |begun_ns| end_ns.saturating_sub(begun_ns)));
    // Seconds behind the last reply had none.
    let seconds = usize::try_from(load.window.0 / Nanos::SECOND.0).unwrap_or(0);
    load.per_second.resize(seconds.max(load.per_second.len()), 0);
    (load.status, load.reason) = ending(load, limit, meeting, ends);
    offered
}

/// Whether a load ran to its end, and why not.
fn ending(
    load: &Load,
    limit: Option<String>,
    meeting: &Meeting,
    ends: &Ends<'_>,
) -> (Status, Option<String>) {
    let first_failure = || load.failures.first().map(|(text, _)| text.clone());
    match (limit, ends.asked()) {
        (Some(limit), _) => (Status::Failed, Some(limit)),
        (None, Some(Insistence::Asked | Insistence::Insists)) => {
            (Status::Interrupted, Some("interrupted".to_owned()))
        }
        (None, None) if load.outcomes.ok > 0 => (Status::Ok, None),
        (None, None) if meeting.begun().is_none() => {
            let why = first_failure();
            let why = why.unwrap_or_else(|| format!("cannot connect to {}", load.address));
            (Status::Failed, Some(nobody_there(&why)))
        }
        (None, None) => {
            let why = first_failure().unwrap_or_else(|| "no request was due".to_owned());
            let none = match load.outcomes.invalid {
                0 => "no request was answered",
                _ => "no request had a right reply",
            };
            (Status::Failed, Some(format!("{none}: {why}")))
        }
    }
}

/// Adds what one thread's books say.
fn add(load: &mut Load, results: &Results) {
    load.scheduled += results.scheduled;
    load.outcomes = load.outcomes.plus(&results.outcomes);
    load.unsent += results.unsent;
    load.warmup += results.warmup;
    load.late_replies += results.late_replies;
    load.replies_in_window += results.replies_in_window;
    load.from_due.add(&results.from_due.histogram());
    load.from_sent.add(&results.from_sent.histogram());
    load.lag.add(&results.lag.histogram());
    if load.per_second.len() < results.per_second.len() {
        load.per_second.resize(results.per_second.len(), 0);
    }
    for (sum, own) in load.per_second.iter_mut().zip(&results.per_second) {
        *sum += own;
    }
}

/// A load of which nothing has come yet.
pub(super) fn nothing(settings: &Settings) -> Load {
    let is_random =
        matches!(settings.pace, Pace::Open { arrivals: iolens_model::load::Arrivals::Poisson, .. });
    Load {
        address: settings.address.to_string(),
        connections: settings.connections,
        in_flight: settings.in_flight,
        length: settings.length,
        pace: settings.pace,
        seed: is_random.then_some(settings.seed),
        status: Status::Ok,
        reason: None,
        checked: settings.expected.checked().to_owned(),
        scheduled: 0,
        outcomes: Outcomes::default(),
        unsent: 0,
        warmup: 0,
        late_replies: 0,
        failures: Vec::new(),
        connects: Connects::default(),
        window: Nanos(0),
        replies_in_window: 0,
        from_due: Histogram::default(),
        from_sent: Histogram::default(),
        lag: Histogram::default(),
        per_second: Vec::new(),
        sent_bytes: 0,
        received_bytes: 0,
        threads: Vec::new(),
        cpu: None,
        network: None,
    }
}

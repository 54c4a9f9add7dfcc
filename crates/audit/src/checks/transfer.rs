//! Of a row: bytes, calls and latencies.

use iolens_stats::physics::{self, Breach, Rounded};

use super::{Case, agree, however_rounded, impossible, one, short, suspicious, together};
use crate::finding::{Checked, Found, Severity};
use crate::quantity::Quantity as Q;

/// Bytes that a CPU copies move no faster than it can copy.
pub(super) fn copy_bandwidth(case: &Case<'_>) -> Checked {
    if case.moves_without_copy() {
        return None;
    }
    let (rate, columns) = case.byte_rate()?;
    let threads = case.threads().or_else(|| case.positive(Q::Connections));
    // More than the fastest machine needs to fill its memory bus.
    const THREADS_UNSAID: f64 = 32.0;
    let threads = threads.or(case.bounds.cpus.map(f64::from)).unwrap_or(THREADS_UNSAID);
    let breach = physics::copy_rate(rate.low, case.bounds.copy_bytes_per_s(threads));
    one(impossible(breach, |breach| {
        format!(
            "{} is {} GB/s, and {} can be copied with {threads} thread{}",
            case.shown_all(&columns),
            short(breach.value / 1e9),
            short(breach.high / 1e9),
            if threads == 1.0 { "" } else { "s" }
        )
    }))
}

/// Each call costs what an empty one costs, at least. Where calls were not
/// counted, a message or a block is taken to be one; and a context switch
/// takes no less than a call.
pub(super) fn call_cost(case: &Case<'_>) -> Checked {
    if case.enters_no_kernel() {
        return None;
    }
    let empty_ns = case.bounds.empty_call_ns();
    let cpus = case.cpus_most().unwrap_or(1.0);
    let on = if cpus == 1.0 { String::new() } else { format!(" with {cpus} CPUs") };
    let counted = [(Q::Calls, "call"), (Q::Switches, "context switch")].map(|(quantity, what)| {
        let count = case.positive(quantity)?;
        let thread_ns = case.positive(Q::Elapsed)? * case.cpus_most()?;
        one(impossible(physics::cost_of_a_call(thread_ns, count, empty_ns), |breach| {
            let shown = case.shown_all(&[quantity, Q::Elapsed]);
            format!(
                "{shown}: {} ns of CPU time per {what}{on} at most, and it takes {} ns at least",
                short(breach.value),
                short(breach.low)
            )
        }))
    });
    let by_message = || {
        if case.batches() || case.positive(Q::Calls).is_some() {
            return None;
        }
        let ((rate, columns), threads) = (case.messages_per_s()?, case.threads()?);
        let is_block = case.row.get(Q::BlockBytes).is_some();
        let what = if is_block { "block" } else { "message" };
        // Files are read through buffers, where a block is no call.
        let severity = Severity::impossible_if(!is_block);
        one(severity.of(physics::cost_of_a_call(threads * 1e9, rate.low, empty_ns), |breach| {
            format!(
                "{}: {} ns per {what} and thread, and a call takes {} at least",
                case.shown_all(&columns),
                short(breach.value),
                short(breach.low)
            )
        }))
    };
    together(counted.into_iter().chain([by_message()]))
}

/// Nothing is faster than the link that was named.
pub(super) fn link(case: &Case<'_>) -> Checked {
    let bound = case.bounds.link_bytes_per_s?;
    let (rate, columns) = case.byte_rate()?;
    one(impossible(physics::part_of(rate.low, bound, 0.0), |breach| {
        format!(
            "{} is {} Gbit/s over a link of {}",
            case.shown_all(&columns),
            short(breach.value * 8.0 / 1e9),
            short(breach.high * 8.0 / 1e9)
        )
    }))
}

/// A latency covers the copy of its message, and a median is not far below
/// what a message takes at the rate of its connection.
pub(super) fn latency(case: &Case<'_>) -> Checked {
    let (_, size) = case.unit_bytes()?;
    let columns = [Q::LatencyMin, Q::LatencyP50, Q::LatencyMean];
    let given: Vec<(Q, Rounded)> =
        columns.into_iter().filter_map(|q| Some((q, case.number(q)?))).collect();
    if given.is_empty() {
        return None;
    }
    let below_a_copy = || {
        let copy_ns = physics::copy_ns(size.low, case.bounds.copy_bytes_per_s(1.0));
        let (q, latency) = given.iter().find(|(_, latency)| latency.high < copy_ns)?;
        let breach = Breach { value: latency.value, low: copy_ns, high: f64::INFINITY };
        impossible(Some(breach), |_| {
            format!(
                "{} for {}: a copy of it alone takes {} ns",
                case.shown(*q),
                case.shown_all(&[Q::MessageBytes, Q::BlockBytes]),
                short(copy_ns)
            )
        })
    };
    // The mean of one flow with one message in flight is the inverse of its
    // rate; what is far below was a part of it, such as one call.
    let below_its_turn = || {
        let (q, typical) = given.iter().find(|(q, _)| *q != Q::LatencyMin)?;
        let flows = case.threads().or_else(|| case.positive(Q::Connections))?;
        let (rate, _) = case.messages_per_s()?;
        suspicious(physics::short_latency(typical.high, flows * 1e9 / rate.high), |breach| {
            format!(
                "{} is {} of the {} ns that a message takes on its connection: was something \
                 shorter timed, such as one call?",
                case.shown(*q),
                short(breach.value),
                short(flows * 1e9 / rate.value)
            )
        })
    };
    let copied = (!case.moves_without_copy()).then(below_a_copy).flatten();
    one(copied.or_else(|| below_its_turn().filter(|_| !is_idle(case))))
}

/// Whether the threads of a row are known to have been at work for less than
/// half of the time: then messages wait for nobody, and their rate says nothing
/// of how long one takes.
fn is_idle(case: &Case<'_>) -> bool {
    let at_work = || {
        let (cpu_ns, _) = case.cpu_ns()?;
        Some(cpu_ns.value / case.positive(Q::Elapsed)? / case.threads()?)
    };
    at_work().is_some_and(|share| share < 0.5)
}

/// What arrives was sent.
pub(super) fn received(case: &Case<'_>) -> Checked {
    let (sent, received) = (case.number(Q::SentBytes)?, case.number(Q::ReceivedBytes)?);
    let breach = physics::part_of(received.low, sent.high, 0.0);
    one(impossible(breach, |breach| {
        let shown = case.shown_all(&[Q::ReceivedBytes, Q::SentBytes]);
        format!("{shown}: {} bytes arrived that nobody sent", short(breach.value - breach.high))
    }))
}

/// Latency × rate is what is in flight. More than the connections is
/// impossible in a closed loop; in an open one it is a queue.
pub(super) fn little(case: &Case<'_>) -> Checked {
    let connections = case.positive(Q::Connections)?;
    let mean = case.above_zero(Q::LatencyMean)?;
    let (rate, columns) = case.messages_per_s()?;
    let flight = mean.times(rate).scaled(1e-9);
    let breach = however_rounded(flight, |all| physics::in_flight(all, 1e9, connections).breach);
    let is_open = case.positive(Q::OfferedRate).is_some();
    let breach = breach.filter(|breach| breach.value < breach.low || !is_open);
    one(suspicious(breach, |_| {
        let shown = case.shown_all(&[&[Q::LatencyMean][..], &columns, &[Q::Connections]].concat());
        format!("{shown}: {} requests in flight", short(flight.value))
    }))
}

/// A file is done when all of it is. Who reads at random, for a time or again and again does more
/// or less, which not every table says: it is for the reader to judge.
pub(super) fn whole_file(case: &Case<'_>) -> Checked {
    if case.row.says(&["random", "rand", "randread", "randwrite", "time_based"]) {
        return None;
    }
    let asked = (case.above_zero(Q::FileBytes)?, case.shown(Q::FileBytes));
    let threads = case.threads().unwrap_or(1.0);
    let hints = [
        (0.5, "half of the file"),
        (threads, "each thread its own"),
        (1.0 / threads, "one thread's share"),
    ];
    let done = case.moved().or_else(|| case.bytes_by_rate())?;
    one(agree(done, asked, &hints).map(|found| found.at_most(Severity::Suspicious)))
}

/// A row that is called cold read its bytes from the device.
pub(super) fn cold(case: &Case<'_>) -> Checked {
    if !case.row.says(&["cold", "uncached"]) {
        return None;
    }
    let device = case.number(Q::DeviceBytes)?;
    let done = case.bytes().map(|(_, bytes)| bytes).or_else(|| case.number(Q::FileBytes))?;
    let missing = device.high < done.low * 0.95;
    let found = missing.then(|| {
        Found::impossible(format!(
            "{} of {} bytes came from the device, and the row is called cold",
            short(device.value),
            short(done.value)
        ))
    });
    one(found)
}

/// A load generator that fell behind measured itself.
pub(super) fn offered(case: &Case<'_>) -> Checked {
    let offered = case.positive(Q::OfferedRate)?;
    let (achieved, columns) = case.messages_per_s()?;
    let shown = case.shown_all(&[&columns[..], &[Q::OfferedRate]].concat());
    let behind = suspicious(physics::accepted(achieved.high, offered), |breach| {
        format!("{shown}: {:.1}% of what was offered", breach.value * 100.0)
    });
    let more = suspicious(physics::part_of(achieved.low, offered, super::APART), |_| {
        format!("{shown}: more requests than were offered")
    });
    Some(behind.into_iter().chain(more).collect())
}

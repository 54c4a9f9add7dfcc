//! Of a row: bytes, calls and latencies.

use iolens_stats::physics::{self, Breach};

use super::{Case, agree, because, however_rounded, impossible, short};
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
    Some(impossible(breach, |breach| {
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
    let thread_ns = case.positive(Q::Elapsed).zip(case.cpus_most()).map(|(ns, cpus)| ns * cpus);
    let mut found = Vec::new();
    let mut judged = false;
    for (quantity, what) in [(Q::Calls, "call"), (Q::Switches, "context switch")] {
        let (Some(count), Some(ns)) = (case.positive(quantity), thread_ns) else { continue };
        judged = true;
        let breach = physics::cost_of_a_call(ns, count, empty_ns);
        found.extend(impossible(breach, |breach| {
            let shown = case.shown_all(&[quantity, Q::Elapsed]);
            format!(
                "{shown}: {} ns of CPU time per {what}{on} at most, and it takes {} ns at least",
                short(breach.value),
                short(breach.low)
            )
        }));
    }
    let calls_are_known = case.positive(Q::Calls).is_some();
    if let (Some((rate, columns)), Some(threads), false, false) =
        (case.messages_per_s(), case.threads(), case.batches(), calls_are_known)
    {
        judged = true;
        if let Some(breach) = physics::cost_of_a_call(threads * 1e9, rate.low, empty_ns) {
            let is_block = case.value(Q::BlockBytes).is_some();
            let what = if is_block { "block" } else { "message" };
            let text = format!(
                "{}: {} ns per {what} and thread, and a call takes {} at least",
                case.shown_all(&columns),
                short(breach.value),
                short(breach.low)
            );
            // Files are read through buffers, where a block is no call.
            let severity = if is_block { Severity::Suspicious } else { Severity::Impossible };
            found.push(Found::new(severity, text).with(breach));
        }
    }
    judged.then_some(found)
}

/// Nothing is faster than the link that was named.
pub(super) fn link(case: &Case<'_>) -> Checked {
    let bound = case.bounds.link_bytes_per_s?;
    let (rate, columns) = case.byte_rate()?;
    Some(impossible(physics::part_of(rate.low, bound, 0.0), |breach| {
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
    let shown_size = case.shown_all(&[Q::MessageBytes, Q::BlockBytes]);
    let columns = [Q::LatencyMin, Q::LatencyP50, Q::LatencyMean];
    let given: Vec<Q> = columns.into_iter().filter(|q| case.number(*q).is_some()).collect();
    if given.is_empty() {
        return None;
    }
    let mut found = Vec::new();
    if !case.moves_without_copy() {
        let copy_ns = physics::copy_ns(size.low, case.bounds.copy_bytes_per_s(1.0));
        let short_one =
            given.iter().find(|q| case.number(**q).is_some_and(|latency| latency.high < copy_ns));
        found.extend(short_one.map(|q| {
            let breach = Breach {
                value: case.number(*q).map_or(0.0, |latency| latency.value),
                low: copy_ns,
                high: f64::INFINITY,
            };
            let text = format!(
                "{} for {shown_size}: a copy of it alone takes {} ns",
                case.shown(*q),
                short(copy_ns)
            );
            Found::impossible(text).with(breach)
        }));
    }
    // The mean of one flow with one message in flight is the inverse of its
    // rate; what is far below was a part of it, such as one call.
    let typical = [Q::LatencyP50, Q::LatencyMean].into_iter().find(|q| given.contains(q));
    let flows = case.threads().or_else(|| case.positive(Q::Connections));
    if let (Some(q), Some(flows), Some((rate, _)), true) =
        (typical, flows, case.messages_per_s(), found.is_empty() && !is_idle(case))
        && let Some(breach) =
            physics::short_latency(case.number(q).map_or(0.0, |n| n.high), flows * 1e9 / rate.high)
    {
        let text = format!(
            "{} is {} of the {} ns that a message takes on its connection: was something shorter \
             timed, such as one call?",
            case.shown(q),
            short(breach.value),
            short(flows * 1e9 / rate.value)
        );
        found.push(Found::suspicious(text).with(breach));
    }
    Some(found)
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
    Some(impossible(breach, |breach| {
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
    let found = breach.filter(|breach| breach.value < breach.low || !is_open);
    let found = found.map(|breach| {
        let shown = case.shown_all(&[&[Q::LatencyMean][..], &columns, &[Q::Connections]].concat());
        let text = format!("{shown}: {} requests in flight", short(flight.value));
        Found::suspicious(text).with(breach)
    });
    Some(found.into_iter().collect())
}

/// A file is done when all of it is. Who reads at random, for a time or again and again does more
/// or less, which not every table says: it is for the reader to judge.
pub(super) fn whole_file(case: &Case<'_>) -> Checked {
    if case.row.says(&["random", "rand", "randread", "randwrite", "time_based"]) {
        return None;
    }
    let asked = case.number(Q::FileBytes).filter(|bytes| bytes.value > 0.0)?;
    let threads = case.threads().unwrap_or(1.0);
    let hints = [
        because(0.5, "half of the file"),
        because(threads, "each thread its own"),
        because(1.0 / threads, "one thread's share"),
    ];
    let done = case.bytes().map(|(name, bytes)| (bytes, case.shown(name)));
    let by_rate = || {
        let (rate, ns) = (case.number(Q::Throughput)?, case.number(Q::Elapsed)?);
        let shown = case.shown_all(&[Q::Throughput, Q::Elapsed]);
        Some((rate.times(ns).scaled(1e-9), format!("{shown} (rate × time)")))
    };
    let (done, shown) = done.or_else(by_rate)?;
    let found = agree((done, &shown), (asked, &case.shown(Q::FileBytes)), &hints);
    Some(found.into_iter().map(|found| found.at_most(Severity::Suspicious)).collect())
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
    Some(found.into_iter().collect())
}

/// A load generator that fell behind measured itself.
pub(super) fn offered(case: &Case<'_>) -> Checked {
    let offered = case.positive(Q::OfferedRate)?;
    let (achieved, columns) = case.messages_per_s()?;
    let shown = case.shown_all(&[&columns[..], &[Q::OfferedRate]].concat());
    let behind = physics::accepted(achieved.high, offered).map(|breach| {
        let text = format!("{shown}: {:.1}% of what was offered", breach.value * 100.0);
        Found::suspicious(text).with(breach)
    });
    let more = physics::part_of(achieved.low, offered, super::APART).map(|breach| {
        Found::suspicious(format!("{shown}: more requests than were offered")).with(breach)
    });
    Some(behind.into_iter().chain(more).collect())
}

//! Of a row: numbers that must add up.

use iolens_stats::physics::{self, Rounded};

use super::{Case, agree, because, impossible, short};
use crate::finding::{Checked, Found, Severity};
use crate::quantity::Quantity as Q;
use crate::unit::Dimension;

/// Rate × time is the bytes that were moved, or the messages with their size.
pub(super) fn rate_and_time(case: &Case<'_>) -> Checked {
    let (rate, ns) = (case.number(Q::Throughput)?, case.number(Q::Elapsed)?);
    let (bytes, moved) = match case.bytes() {
        Some((name, bytes)) => (bytes, case.shown(name)),
        None => by_messages(case).filter(|(bytes, _)| bytes.value > 0.0)?,
    };
    let shown = case.shown_all(&[Q::Throughput, Q::Elapsed]);
    let threads = case.threads().unwrap_or(1.0);
    let cpu_share = case.positive(Q::CpuTime).map_or(1.0, |cpu_ns| ns.value / cpu_ns);
    let hints = [
        because(threads, "threads counted twice"),
        because(1.0 / threads, "divided by the time of all threads"),
        because(cpu_share, "divided by CPU time"),
    ];
    let product = rate.times(ns).scaled(1e-9);
    Some(agree((product, &format!("{shown} (rate × time)")), (bytes, &moved), &hints))
}

/// Messages × size, and the columns that it comes from.
fn by_messages(case: &Case<'_>) -> Option<(Rounded, String)> {
    let (messages, (size_name, size)) = (case.number(Q::Messages)?, case.unit_bytes()?);
    Some((messages.times(size), case.shown_all(&[Q::Messages, size_name])))
}

/// Messages × size are the bytes that were moved.
pub(super) fn messages_and_size(case: &Case<'_>) -> Checked {
    let (product, shown) = by_messages(case)?;
    let (name, bytes) = case.bytes()?;
    let threads = case.threads().unwrap_or(1.0);
    let hints =
        [because(threads, "bytes of one thread"), because(1.0 / threads, "messages of one thread")];
    Some(agree(
        (product, &format!("{shown} (messages × size)")),
        (bytes, &case.shown(name)),
        &hints,
    ))
}

/// A message rate is messages over time, throughput over size, and the
/// inverse of the time per message.
pub(super) fn message_rate(case: &Case<'_>) -> Checked {
    let rate = case.number(Q::MessageRate).filter(|rate| rate.value > 0.0);
    let threads = case.threads().unwrap_or(1.0);
    let hints = [because(threads, "of one thread"), because(1.0 / threads, "of all threads")];
    let mut found = Vec::new();
    let mut judged = false;
    if let (Some(rate), Some(messages), Some(ns)) =
        (rate, case.number(Q::Messages), case.number(Q::Elapsed))
        && messages.value > 0.0
    {
        judged = true;
        let shown = case.shown_all(&[Q::MessageRate, Q::Elapsed]);
        let product = rate.times(ns).scaled(1e-9);
        found.extend(agree((product, &shown), (messages, &case.shown(Q::Messages)), &hints));
    }
    if let (Some(rate), Some((name, size)), Some(throughput)) =
        (rate, case.unit_bytes(), case.number(Q::Throughput))
        && throughput.value > 0.0
    {
        judged = true;
        let shown = case.shown_all(&[Q::MessageRate, name]);
        let expected = (throughput, case.shown(Q::Throughput));
        found.extend(agree((rate.times(size), &shown), (expected.0, &expected.1), &hints));
    }
    if let (Some(each), Some((rate, columns))) =
        (case.above_zero(Q::TimePerMessage), case.messages_per_s())
    {
        judged = true;
        let inverse = Rounded::exact(1e9).over(rate);
        let (each_shown, shown) = (case.shown(Q::TimePerMessage), case.shown_all(&columns));
        let apart = agree((each, &each_shown), (inverse, &shown), &hints);
        // Each thread's own time, beside the rate of all of them.
        let own = physics::agreement(each, inverse.scaled(threads), super::APART).is_none();
        let worst = if own { Severity::Remark } else { Severity::Impossible };
        found.extend(apart.into_iter().map(|found| found.at_most(worst)));
    }
    judged.then_some(found)
}

/// A printed IPC is that of the counts beside it.
pub(super) fn ipc(case: &Case<'_>) -> Checked {
    let printed = case.number(Q::Ipc)?;
    let (instructions, cycles) = (case.number(Q::Instructions)?, case.number(Q::Cycles)?);
    if cycles.value <= 0.0 {
        return None;
    }
    let shown = case.shown_all(&[Q::Instructions, Q::Cycles]);
    let inverse = printed.value.powi(2);
    let hints = [because(inverse, "cycles over instructions")];
    Some(agree((printed, &case.shown(Q::Ipc)), (instructions.over(cycles), &shown), &hints))
}

/// Printed cycles per byte are those of the counts beside them.
pub(super) fn cycles_per_byte(case: &Case<'_>) -> Checked {
    let printed = case.number(Q::CyclesPerByte).filter(|printed| printed.value > 0.0)?;
    let cycles = case.number(Q::Cycles).filter(|cycles| cycles.value > 0.0)?;
    let (name, bytes) = case.bytes().or_else(|| {
        let (rate, ns) = (case.number(Q::Throughput)?, case.number(Q::Elapsed)?);
        Some((Q::Throughput, rate.times(ns).scaled(1e-9)))
    })?;
    let per_size = case.unit_bytes().map_or(1.0, |(_, size)| bytes.value / size.value);
    let hints = [because(per_size, "all cycles over the bytes of one message")];
    let shown = case.shown_all(&[Q::Cycles, name]);
    Some(agree((printed, &case.shown(Q::CyclesPerByte)), (cycles.over(bytes), &shown), &hints))
}

/// User and kernel are the whole.
pub(super) fn user_and_kernel(case: &Case<'_>) -> Checked {
    let sums = [
        (Q::UserTime, Q::SystemTime, Q::CpuTime),
        (Q::CyclesUser, Q::CyclesKernel, Q::Cycles),
        (Q::InstructionsUser, Q::InstructionsKernel, Q::Instructions),
        (Q::VoluntarySwitches, Q::InvoluntarySwitches, Q::Switches),
        (Q::MinorFaults, Q::MajorFaults, Q::PageFaults),
    ];
    let mut judged = false;
    let mut found = Vec::new();
    for (first, second, total) in sums {
        let parts = (case.number(first), case.number(second), case.number(total));
        let (Some(a), Some(b), Some(whole)) = parts else { continue };
        judged = true;
        // Two empty parts of nothing agree.
        if a.value + b.value > 0.0 || whole.value > 0.0 {
            let shown = format!("{} + {}", case.shown(first), case.shown(second));
            found.extend(agree((a.plus(b), &shown), (whole, &case.shown(total)), &[]));
        }
    }
    judged.then_some(found)
}

/// Percentiles rise, and the mean lies between the ends.
pub(super) fn order(case: &Case<'_>) -> Checked {
    let rising = [
        Q::LatencyMin,
        Q::LatencyP50,
        Q::LatencyP90,
        Q::LatencyP95,
        Q::LatencyP99,
        Q::LatencyP999,
        Q::LatencyMax,
    ];
    let with_mean = [Q::LatencyMin, Q::LatencyMean, Q::LatencyMax];
    let mut judged = false;
    let mut found = Vec::new();
    for list in [&rising[..], &with_mean] {
        let given: Vec<(Q, Rounded)> =
            list.iter().filter_map(|q| Some((*q, case.number(*q)?))).collect();
        judged |= given.len() >= 2;
        let values: Vec<Rounded> = given.iter().map(|(_, value)| *value).collect();
        found.extend(physics::ordered(&values).map(|(low, high)| {
            let (low, high) = (case.shown(given[low].0), case.shown(given[high].0));
            Found::impossible(format!("{low} is above {high}"))
        }));
    }
    judged.then_some(found)
}

/// Misses are some of the references, faults some of the faults, and a share
/// is at most all.
pub(super) fn parts(case: &Case<'_>) -> Checked {
    let pairs = [
        (Q::CacheMisses, Q::CacheReferences),
        (Q::L1dMisses, Q::L1dLoads),
        (Q::LlcMisses, Q::LlcReferences),
        (Q::BranchMisses, Q::Branches),
        (Q::Branches, Q::Instructions),
        (Q::MajorFaults, Q::PageFaults),
    ];
    let mut judged = false;
    let mut found = Vec::new();
    for (part, whole) in pairs {
        let (Some(few), Some(all)) = (case.number(part), case.number(whole)) else { continue };
        judged = true;
        // Counters that took turns are estimates.
        let Some(breach) = physics::part_of(few.low, all.high, super::APART) else { continue };
        let text = format!("{} of {}", case.shown(part), case.shown(whole));
        let twice = few.low > all.high * 2.0;
        let severity = if twice { Severity::Impossible } else { Severity::Suspicious };
        found.push(Found::new(severity, text).with(breach));
    }
    if let Some(share) = case.number(Q::CacheMissShare) {
        judged = true;
        found.extend(impossible(physics::part_of(share.low, 1.0, 0.0), |breach| {
            let shown = case.shown(Q::CacheMissShare);
            format!("{shown}: {}% of all", short(breach.value * 100.0))
        }));
        let counts = (case.number(Q::CacheMisses), case.number(Q::CacheReferences));
        if let (Some(misses), Some(references)) = counts
            && references.value > 0.0
        {
            let shown = case.shown_all(&[Q::CacheMisses, Q::CacheReferences]);
            let printed = (share, case.shown(Q::CacheMissShare));
            found.extend(agree((printed.0, &printed.1), (misses.over(references), &shown), &[]));
        }
    }
    judged.then_some(found)
}

/// Switches a second × time are the switches.
pub(super) fn switches(case: &Case<'_>) -> Checked {
    let (rate, ns) = (case.number(Q::SwitchRate)?, case.number(Q::Elapsed)?);
    let switches = case.number(Q::Switches)?;
    let shown = case.shown_all(&[Q::SwitchRate, Q::Elapsed]);
    let product = rate.times(ns).scaled(1e-9);
    let cpu_share = case.positive(Q::CpuTime).map_or(1.0, |cpu_ns| ns.value / cpu_ns);
    let hints = [because(cpu_share, "a second of CPU time")];
    let found = agree((switches, &case.shown(Q::Switches)), (product, &shown), &hints);
    // perf counts a second of CPU time, and says so nowhere.
    let by_cpu = case.number(Q::CpuTime).map(|cpu_ns| rate.times(cpu_ns).scaled(1e-9));
    let agrees =
        by_cpu.is_some_and(|product| physics::agreement(switches, product, super::APART).is_none());
    Some(if agrees { Vec::new() } else { found })
}

/// A quantity that stands in two columns of one name is the same in both; of two names it may be
/// two things, such as requests and packets.
pub(super) fn twice(case: &Case<'_>) -> Checked {
    let mut judged = false;
    let mut found = Vec::new();
    for quantity in Q::all() {
        let mut every = case.row.every(quantity).filter(|value| value.pmu.is_none());
        let Some(first) = every.next() else { continue };
        for other in every.filter(|other| other.name == first.name) {
            judged = true;
            if first.number.value > 0.0 && other.number.value > 0.0 {
                let pair = ((first.number, &*first.shown), (other.number, &*other.shown));
                found.extend(agree(pair.0, pair.1, &[]));
            }
        }
    }
    judged.then_some(found)
}

/// Nothing that is counted, timed or weighed is below zero, and no size and no
/// number of threads is zero.
pub(super) fn negative(case: &Case<'_>) -> Checked {
    if case.row.values.is_empty() {
        return None;
    }
    let below = case.row.values.iter().filter(|value| value.number.high < 0.0);
    let negative = below.map(|value| Found::impossible(format!("{} is negative", value.shown)));
    let least = [Q::MessageBytes, Q::BlockBytes, Q::Threads];
    let none = least.into_iter().filter(|q| {
        let dimension = q.dimension();
        let is_whole = matches!(dimension, Dimension::Count | Dimension::Bytes);
        is_whole && case.number(*q).is_some_and(|n| n.value == 0.0)
    });
    let none = none.map(|q| Found::suspicious(format!("{} moves nothing", case.shown(q))));
    Some(negative.chain(none).collect())
}

/// Every zero-copy send completed, once.
pub(super) fn zerocopy(case: &Case<'_>) -> Checked {
    let (sends, completions) =
        (case.number(Q::ZerocopySends)?, case.number(Q::ZerocopyCompletions)?);
    let copied = case.number(Q::ZerocopyCopied).map(|copied| copied.value);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let count = |value: f64| value.round() as u64;
    let holds = physics::completed(count(sends.value), count(completions.value), copied.map(count));
    let found = (!holds).then(|| {
        let shown = case.shown_all(&[Q::ZerocopySends, Q::ZerocopyCompletions, Q::ZerocopyCopied]);
        Found::impossible(format!("{shown}: each send completes once, by ranges of ids"))
    });
    Some(found.into_iter().collect())
}

/// What costs time that no primitive is to blame for.
pub(super) fn events(case: &Case<'_>) -> Checked {
    let quantities = [Q::Retransmits, Q::MajorFaults];
    let given: Vec<Q> = quantities.into_iter().filter(|q| case.number(*q).is_some()).collect();
    if given.is_empty() {
        return None;
    }
    let some = given.into_iter().filter(|q| case.positive(*q).is_some());
    Some(some.map(|q| Found::new(Severity::Remark, case.shown(q))).collect())
}

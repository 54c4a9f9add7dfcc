//! Of a row: numbers that must add up.

use iolens_stats::physics::{self, Rounded};

use super::{Case, Said, agree, impossible, one, short, together};
use crate::finding::{Checked, Found, Severity};
use crate::quantity::Quantity as Q;
use crate::unit::Dimension;

/// Rate × time is the bytes that were moved, or the messages with their size.
pub(super) fn rate_and_time(case: &Case<'_>) -> Checked {
    let product = case.bytes_by_rate()?;
    let by_messages = || by_messages(case).filter(|(bytes, _)| bytes.value > 0.0);
    let moved = case.moved().or_else(by_messages)?;
    let threads = case.threads().unwrap_or(1.0);
    let hints = [
        (threads, "threads counted twice"),
        (1.0 / threads, "divided by the time of all threads"),
        (case.elapsed_per_cpu_time(), "divided by CPU time"),
    ];
    one(agree(product, moved, &hints))
}

/// Messages × size, and the columns that it comes from.
fn by_messages(case: &Case<'_>) -> Option<Said> {
    let (messages, (size_name, size)) = (case.number(Q::Messages)?, case.unit_bytes()?);
    Some((messages.times(size), case.shown_all(&[Q::Messages, size_name])))
}

/// Messages × size are the bytes that were moved.
pub(super) fn messages_and_size(case: &Case<'_>) -> Checked {
    let (product, shown) = by_messages(case)?;
    let threads = case.threads().unwrap_or(1.0);
    let hints = [(threads, "bytes of one thread"), (1.0 / threads, "messages of one thread")];
    one(agree((product, format!("{shown} (messages × size)")), case.moved()?, &hints))
}

/// A message rate is messages over time, throughput over size, and the
/// inverse of the time per message.
pub(super) fn message_rate(case: &Case<'_>) -> Checked {
    let rate = case.above_zero(Q::MessageRate);
    let threads = case.threads().unwrap_or(1.0);
    let hints = [(threads, "of one thread"), (1.0 / threads, "of all threads")];
    let over_time = || {
        let messages = (case.above_zero(Q::Messages)?, case.shown(Q::Messages));
        let product = rate.and_then(|_| case.over_time(Q::MessageRate))?;
        one(agree(product, messages, &hints))
    };
    let of_a_size = || {
        let (name, size) = case.unit_bytes()?;
        let throughput = (case.above_zero(Q::Throughput)?, case.shown(Q::Throughput));
        let product = (rate?.times(size), case.shown_all(&[Q::MessageRate, name]));
        one(agree(product, throughput, &hints))
    };
    let inverse = || {
        let each = case.above_zero(Q::TimePerMessage)?;
        let (rate, columns) = case.messages_per_s()?;
        let inverse = Rounded::exact(1e9).over(rate);
        // Each thread's own time, beside the rate of all of them.
        let own = physics::agreement(each, inverse.scaled(threads), super::APART).is_none();
        let worst = if own { Severity::Remark } else { Severity::Impossible };
        let each = (each, case.shown(Q::TimePerMessage));
        let apart = agree(each, (inverse, case.shown_all(&columns)), &hints);
        one(apart.map(|found| found.at_most(worst)))
    };
    together([over_time(), of_a_size(), inverse()])
}

/// A printed IPC is that of the counts beside it.
pub(super) fn ipc(case: &Case<'_>) -> Checked {
    let printed = case.number(Q::Ipc)?;
    let computed = case.number(Q::Instructions)?.over(case.above_zero(Q::Cycles)?);
    let shown = case.shown_all(&[Q::Instructions, Q::Cycles]);
    let hints = [(printed.value.powi(2), "cycles over instructions")];
    one(agree((printed, case.shown(Q::Ipc)), (computed, shown), &hints))
}

/// Printed cycles per byte are those of the counts beside them.
pub(super) fn cycles_per_byte(case: &Case<'_>) -> Checked {
    let printed = (case.above_zero(Q::CyclesPerByte)?, case.shown(Q::CyclesPerByte));
    let cycles = case.above_zero(Q::Cycles)?;
    let by_rate = || Some((Q::Throughput, case.bytes_by_rate()?.0));
    let (name, bytes) = case.bytes().or_else(by_rate)?;
    let per_size = case.unit_bytes().map_or(1.0, |(_, size)| bytes.value / size.value);
    let hints = [(per_size, "all cycles over the bytes of one message")];
    let computed = (cycles.over(bytes), case.shown_all(&[Q::Cycles, name]));
    one(agree(printed, computed, &hints))
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
    together(sums.map(|(first, second, total)| {
        let (a, b, whole) = (case.number(first)?, case.number(second)?, case.number(total)?);
        let shown = format!("{} + {}", case.shown(first), case.shown(second));
        let apart = agree((a.plus(b), shown), (whole, case.shown(total)), &[]);
        // Two empty parts of nothing agree.
        one(apart.filter(|_| a.value + b.value > 0.0 || whole.value > 0.0))
    }))
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
    together([&rising[..], &with_mean].map(|list| {
        let (given, values): (Vec<Q>, Vec<Rounded>) =
            list.iter().filter_map(|q| Some((*q, case.number(*q)?))).unzip();
        let falls = physics::ordered(&values).map(|(low, high)| {
            let (low, high) = (case.shown(given[low]), case.shown(given[high]));
            Found::impossible(format!("{low} is above {high}"))
        });
        one(falls).filter(|_| given.len() >= 2)
    }))
}

/// Misses are some of the references, faults some of the faults, and a share
/// is at most all.
pub(super) fn parts(case: &Case<'_>) -> Checked {
    let of_a_whole = [
        (Q::CacheMisses, Q::CacheReferences),
        (Q::L1dMisses, Q::L1dLoads),
        (Q::LlcMisses, Q::LlcReferences),
        (Q::BranchMisses, Q::Branches),
        (Q::Branches, Q::Instructions),
        (Q::MajorFaults, Q::PageFaults),
    ]
    .map(|(part, whole)| {
        let (few, all) = (case.number(part)?, case.number(whole)?);
        let breach = physics::part_of(few.low, all.high, super::APART);
        let severity = Severity::impossible_if(few.low > all.high * 2.0);
        one(severity.of(breach, |_| format!("{} of {}", case.shown(part), case.shown(whole))))
    });
    let share = || Some((case.number(Q::CacheMissShare)?, case.shown(Q::CacheMissShare)));
    let of_all = || {
        let (share, shown) = share()?;
        one(impossible(physics::part_of(share.low, 1.0, 0.0), |breach| {
            format!("{shown}: {}% of all", short(breach.value * 100.0))
        }))
    };
    let of_references = || {
        let misses = case.number(Q::CacheMisses)?;
        let computed = misses.over(case.above_zero(Q::CacheReferences)?);
        let shown = case.shown_all(&[Q::CacheMisses, Q::CacheReferences]);
        one(agree(share()?, (computed, shown), &[]))
    };
    together(of_a_whole.into_iter().chain([of_all(), of_references()]))
}

/// Switches a second × time are the switches.
pub(super) fn switches(case: &Case<'_>) -> Checked {
    let (rate, switches) = (case.number(Q::SwitchRate)?, case.number(Q::Switches)?);
    let product = case.over_time(Q::SwitchRate)?;
    let hints = [(case.elapsed_per_cpu_time(), "a second of CPU time")];
    let found = agree((switches, case.shown(Q::Switches)), product, &hints);
    // perf counts a second of CPU time, and says so nowhere.
    let by_cpu = case.number(Q::CpuTime).map(|cpu_ns| rate.times(cpu_ns).scaled(1e-9));
    let agrees =
        by_cpu.is_some_and(|product| physics::agreement(switches, product, super::APART).is_none());
    one(found.filter(|_| !agrees))
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
                let [first, other] = [first, other].map(|v| (v.number, v.shown.clone()));
                found.extend(agree(first, other, &[]));
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
    one(found)
}

/// What costs time that no primitive is to blame for.
pub(super) fn events(case: &Case<'_>) -> Checked {
    together([Q::Retransmits, Q::MajorFaults].map(|q| {
        let happened = case.number(q)?.value > 0.0;
        one(happened.then(|| Found::new(Severity::Remark, case.shown(q))))
    }))
}

//! The words for remarks, warnings, the reasons of verdicts and checks: the only place that
//! has them, and none that reads them back.

use iolens_document::Joined;
use iolens_document::table::{Entry, Ink, Tone};
use iolens_model::outcome::Status;
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::analysis::{CellAnalysis, Interval, Verdict};
use iolens_stats::remark::{
    Circumstance, Excess, Limited, Remark, RemarkKind, Share, UnequalSlices, Unmapped, Warning,
    Whose,
};
use iolens_stats::remark::{Noise, Unusable, VerdictReason};

use crate::number::{InWords, count, percent};
use crate::words::event;

/// Everything that is remarked on a cell, each with the arm it is about.
pub(crate) fn of_cell(cell: &CellAnalysis) -> impl Iterator<Item = String> {
    cell.remarks.iter().map(said)
}

/// The colour of a verdict.
pub(crate) fn ink(verdict: Verdict) -> Option<Ink> {
    match verdict {
        Verdict::Faster => Some(Ink::Better),
        Verdict::Slower => Some(Ink::Worse),
        Verdict::Equivalent => Some(Ink::Same),
        Verdict::Inconclusive => Some(Ink::Open),
        Verdict::Invalid => Some(Ink::Fault),
        Verdict::Small | Verdict::Unranked => None,
    }
}

/// A verdict in a table, by this word.
pub(crate) fn verdict(word: &str, verdict: Verdict) -> Entry {
    Entry::toned(word, Tone::Verdict(ink(verdict)))
}

/// Why there is no verdict.
pub(crate) fn status(status: Status) -> Entry {
    let is_fault = matches!(status, Status::Failed | Status::Invalid);
    Entry::toned(status.word(), Tone::Verdict(is_fault.then_some(Ink::Fault)))
}

/// A remark with its arm.
pub(crate) fn said(remark: &Remark) -> String {
    match &remark.arm {
        Some(arm) => format!("{arm}: {}", kind(&remark.kind)),
        None => kind(&remark.kind),
    }
}

/// What a remark is about, without its numbers: alike ones have the same.
pub(crate) fn title(kind: &RemarkKind) -> &'static str {
    match kind {
        RemarkKind::SelfCheckOff { .. } => "the hidden copy of the baseline differs from it",
        RemarkKind::NotUsed { .. } => "not used in some passes",
        RemarkKind::Events { what, .. } => event(*what),
        RemarkKind::Share { what, .. } => match what {
            Share::InFlight => "connections without a request in flight",
            Share::MedianOfMean => "a median round trip far below the mean",
            Share::TakingTurns => "threads that share CPUs and take turns",
            Share::AllAtWork => "not all threads at work all the time",
            Share::Lost => "lost messages",
        },
        RemarkKind::Excess { what, .. } => match what {
            Excess::CopyBandwidth => "above the copy bandwidth measured before the run",
            Excess::EmptyCalls => "above the rate of empty calls measured before the run",
            Excess::Rings => "rings larger than the L2 cache, so not hot",
        },
        RemarkKind::Limited(limited) => match limited {
            Limited::ClientBusy { .. } => "the client ran out of CPU",
            Limited::ClientLate { .. } => "the client was late",
            Limited::RateNotKept { .. } => "the offered rate was not kept",
        },
        RemarkKind::UnequalSlices(_) => "slices of unequal length",
        RemarkKind::Copied { .. } => "zero-copy sends that the kernel copied",
        RemarkKind::Mapped { .. } => "how much was mapped",
        RemarkKind::SharingMatters { .. } => "sharing a process changes the ratio",
    }
}

/// What a remark says, without its arm.
pub(crate) fn kind(kind: &RemarkKind) -> String {
    match kind {
        RemarkKind::SelfCheckOff { interval, beside } => {
            let beside = match beside.as_slice() {
                [] => String::new(),
                arms => format!(" beside {}", arms.join(", ")),
            };
            format!(
                "self-check: the hidden copy of the baseline{beside} differs from it ({}), as one \
                 in twenty does by chance",
                range(interval)
            )
        }
        RemarkKind::NotUsed { passes, reason, .. } => {
            format!("not used in {}: {reason}", count(*passes, "pass"))
        }
        RemarkKind::Events { what, count, lasted_ns, trials, of } => {
            let time = lasted_ns.map_or_else(String::new, |ns| format!(" ({})", Nanos(ns)));
            format!("{}: {count}{time}, {}", event(*what), in_trials(*trials, *of))
        }
        RemarkKind::Share { what, share, trials, of } => {
            format!("{} ({})", share_words(*what, &percent(*share)), in_trials(*trials, *of))
        }
        RemarkKind::Excess { what, ratio, trials, of } => {
            let what = match what {
                Excess::CopyBandwidth => "the copy bandwidth measured before the run",
                Excess::EmptyCalls => "the rate of empty calls measured before the run",
                Excess::Rings => "the L2 cache in its rings, which are therefore not hot",
            };
            format!("up to {ratio:.2} times {what} ({})", in_trials(*trials, *of))
        }
        RemarkKind::Limited(limit) => limited(limit),
        RemarkKind::UnequalSlices(slices) => unequal(slices),
        RemarkKind::Copied { share, tapped } => {
            let tap = if *tapped { ": a packet tap forces it" } else { "" };
            format!(
                "the kernel copied {} of the zero-copy sends, so the row says \"copied\"{tap}",
                percent(*share)
            )
        }
        RemarkKind::Mapped { receiver, share, changed, why } => {
            let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
            let with = if changed.is_empty() { "" } else { " with " };
            let changed = changed.join(" and ");
            let mapped =
                format!("{receiver} mapped {} of the bytes{with}{changed}", percent(*share));
            match why {
                Some(why) => format!("{mapped} and copied the rest: {}", unmapped(why)),
                None => mapped,
            }
        }
        RemarkKind::SharingMatters { shared_ratio, shared, isolated_ratio, isolated } => format!(
            "sharing a process changes the ratio: {shared_ratio:.3} ({}) shared, \
             {isolated_ratio:.3} ({}) isolated",
            range(shared),
            range(isolated)
        ),
    }
}

fn in_trials(trials: u32, of: u32) -> String {
    format!("in {trials} of {}", count(of, "trial"))
}

fn share_words(what: Share, share: &str) -> String {
    match what {
        Share::InFlight => {
            format!("only {share} of the connections' time had a request in flight")
        }
        Share::MedianOfMean => {
            format!("the median round trip is only {share} of the mean time per request")
        }
        Share::TakingTurns => {
            format!("threads share CPUs and take turns: all at work for {share} of the time")
        }
        Share::AllAtWork => format!("all threads were at work for only {share} of the time"),
        Share::Lost => format!("up to {share} of the messages were lost"),
    }
}

/// What bounded a load.
pub(crate) fn limited(limited: &Limited) -> String {
    match limited {
        Limited::ClientBusy { busy_share, trials, of } => format!(
            "lower bound: the client ran out of CPU (a thread up to {} busy, {})",
            percent(*busy_share),
            in_trials(*trials, *of)
        ),
        Limited::ClientLate { late_p99_ns, trials, of } => format!(
            "the client was late: 1% of the requests by {:.2} ms or more ({}), so times from due \
             are partly its own",
            late_p99_ns / 1e6,
            in_trials(*trials, *of)
        ),
        Limited::RateNotKept { answered_share, trials, of } => format!(
            "the offered rate was not kept: {} answered in time at worst ({})",
            percent(*answered_share),
            in_trials(*trials, *of)
        ),
    }
}

pub(crate) fn unequal(slices: &UnequalSlices) -> String {
    format!(
        "slices of {:.2} ms beside the baseline's {:.2} ms: up to {:.1} µs of overhead in each may \
         shift the ratio by {}",
        slices.arm_ns / 1e6,
        slices.baseline_ns / 1e6,
        slices.overhead_ns / 1e3,
        percent(slices.bias)
    )
}

/// Where the kernel decides it: can_map_frag, net/ipv4/tcp.c.
fn unmapped(why: &Unmapped) -> String {
    match why {
        Unmapped::SmallMessages => "a message is less than a page".to_owned(),
        Unmapped::ShortSegments => {
            "the last page of each segment is partly filled, and segments are short".to_owned()
        }
        Unmapped::BlocksOfPages { high_order_alloc_disable } => format!(
            "the sender's kernel copies into blocks of several pages \
             (net.core.high_order_alloc_disable is {}), and only single pages are mapped",
            high_order_alloc_disable.as_deref().unwrap_or("not known")
        ),
        Unmapped::PartlyFilled => {
            "only full pages are mapped, and segments do not end where pages do".to_owned()
        }
        Unmapped::ForeignPages => {
            "pages of a file or of the sending process are never mapped".to_owned()
        }
    }
}

/// What a warning says, without a full stop.
pub(crate) fn warning(warning: &Warning) -> String {
    match warning {
        Warning::IncompletePass { pass, cells_missing, cells } => format!(
            "pass {pass} was cut short and is not used: {cells_missing} of {cells} settings lack arms"
        ),
        Warning::FewPasses { complete, minimum } => {
            let passes = if *complete == 1 { "pass" } else { "passes" };
            format!(
                "{complete} complete {passes} of at least {minimum} planned: with few trials, \
                 intervals cover the truth less often than they claim"
            )
        }
        Warning::OutsideThePlan { trials } => {
            format!("{} of settings outside the plan are not used", count(*trials, "trial"))
        }
        Warning::Changed { change } => format!(
            "measured with {change}, which iolens set for the run ({} before, restored after): \
             all rows hold for that setting, not for this machine's own",
            change.before
        ),
        Warning::CountersClosed => "no self-check: the hidden copy ran with its counters closed \
            (`counters = alternate`), so its ratio is what open counters cost"
            .to_owned(),
        Warning::SelfChecksExclude { excluding, counted, bound } => format!(
            "do not trust this run: {excluding} of {} differ from the baseline, chance allows \
             {bound}",
            count(*counted, "self-check")
        ),
        Warning::SelfChecksDiffer { judged, counted } => format!(
            "do not trust this run: {judged} of {} differ from the baseline by more than δ",
            count(*counted, "self-check")
        ),
        Warning::Circumstance(found) => circumstance(found),
        Warning::FlatThroughput { arm, least_bits_per_s, most_bits_per_s, curve } => format!(
            "throughput of {arm} is flat, {:.2} to {:.2} Gbit/s from under 1 KiB to over 64 KiB ({}, \
             {}): was the size not applied, or does the link bound it?",
            least_bits_per_s / 1e9,
            most_bits_per_s / 1e9,
            curve.threads_in_words(),
            curve.words().join(", ")
        ),
        Warning::SteadySwitching { arm, least_per_s, most_per_s, cells, rates_apart } => format!(
            "context switches of {arm} are {least_per_s:.0} to {most_per_s:.0} a second in all \
             {cells} settings, while its message rates differ {rates_apart:.0} times: it may run a \
             polling loop"
        ),
        Warning::Neighbours { contrasts, passes, correlation, widened } => format!(
            "trials resemble those of the pass before: over {passes} passes {contrasts} contrasts \
             have an autocorrelation of {correlation:.2} (chance: 0), so all intervals are \
             {widened:.1} times as wide"
        ),
    }
}

fn circumstance(found: &Circumstance) -> String {
    match found {
        Circumstance::PacketTap => "a packet tap (an AF_PACKET socket in the network namespace of \
            an end) forces copies of zero-copy sends"
            .to_owned(),
        Circumstance::CacheUnknown => "how much of the file was in the page cache is unknown: \
            cachestat(2) (Linux 6.5) answers only the file's owner and users who may write it"
            .to_owned(),
        Circumstance::DeviceUnknown => {
            "whether bytes came from a device is unknown: /proc/self/io cannot be read".to_owned()
        }
        Circumstance::DirtyUnknown => "how much of the file was dirty is unknown: cachestat(2) \
            (Linux 6.5) does not report it here"
            .to_owned(),
        Circumstance::Dirty { left_bytes, background_bytes } => format!(
            "a slice left {} dirty, and above {} the kernel starts writing back by itself \
             (vm.dirty_background_ratio): part of that is in its time",
            Bytes(*left_bytes),
            Bytes(*background_bytes)
        ),
        Circumstance::SocketBuffer { option, granted_bytes, asked_bytes } => format!(
            "{option} is {}, not {} as asked: net.core.wmem_max or rmem_max limits it",
            Bytes(*granted_bytes),
            Bytes(*asked_bytes)
        ),
        Circumstance::MigrationsNotMeasured { whose, reason } => {
            let whose = match whose {
                None => "",
                Some(Whose::Server) => " of the server",
                Some(Whose::Client) => " of the client",
                Some(Whose::SendingEnd) => " at the sending end",
                Some(Whose::ReceivingEnd) => " at the receiving end",
            };
            let reason = reason.as_deref().unwrap_or("no reason was stored");
            format!("migrations{whose} not measured: {reason}")
        }
        Circumstance::CountersNotUsed { still, partly } => {
            let parts = [
                (still, "stood still while the threads worked"),
                (partly, "counted in some slices only"),
            ];
            let parts = parts.iter().filter(|(names, _)| !names.is_empty());
            let parts = parts.map(|(names, what)| format!("{} {what}", names.join(", ")));
            format!("counters not used: {}", parts.joined("; "))
        }
    }
}

/// Why a verdict is what it is, in one clause.
pub(crate) fn reason(reason: &VerdictReason) -> String {
    match reason {
        VerdictReason::Unusable(unusable) => unusable.reason.clone(),
        VerdictReason::InRuns { a, b } => in_runs(a.as_deref(), b.as_deref()),
        VerdictReason::BaselineUnusable(unusable) => {
            format!("the baseline, {}", with_status(unusable))
        }
        VerdictReason::NeverTogether => "no trial has it together with the baseline".to_owned(),
        VerdictReason::NoRatio => "a run has no ratio of it".to_owned(),
        VerdictReason::Limited { limited: limit, of_baseline } => {
            let whose = if *of_baseline { "the baseline's load: " } else { "" };
            format!("{whose}{}", limited(limit))
        }
        VerdictReason::UnequalSlices { slices, delta } => {
            format!("{}, more than half of δ = {}", unequal(slices), percent(*delta))
        }
        VerdictReason::NoSpread { trials: 1 } => "one trial has no interval".to_owned(),
        VerdictReason::NoSpread { trials } => {
            format!("{} without a spread", count(*trials, "trial"))
        }
        VerdictReason::Within { pointwise90, delta, self_check_half_width } => {
            let floor = match self_check_half_width {
                Some(half) => format!("self-check ±{}", percent(*half)),
                None => "no self-check in this setting".to_owned(),
            };
            let (interval, delta) = (range(pointwise90), percent(*delta));
            format!("pointwise 90% interval {interval} is inside ±{delta}; {floor}")
        }
        VerdictReason::Beyond { interval, bound, is_above } => beyond(interval, *bound, *is_above),
        VerdictReason::CopyDiffers { interval, bound, is_above } => {
            let rule = beyond(interval, *bound, *is_above);
            format!("the hidden copy of the baseline differs from it: {rule}")
        }
        VerdictReason::MayBeSmall { interval, delta, noise } => {
            let rule = format!(
                "simultaneous 95% interval {} excludes 1 and reaches inside ±{}",
                ends(interval, interval.low > 1.0),
                percent(*delta)
            );
            with_noise(rule, *noise, *delta)
        }
        VerdictReason::Open { interval, delta, trials, trials_needed, in_each_run, noise } => {
            let mut rule = match interval {
                Some(interval) if !interval.is_usable() => {
                    format!("no usable interval from {}", count(*trials, "trial"))
                }
                interval => format!(
                    "simultaneous 95% interval {} neither excludes 1 nor settles ±{}",
                    interval.as_ref().or_empty(range),
                    percent(*delta)
                ),
            };
            if let Some(needed) = trials_needed {
                let each = if *in_each_run { " in each run" } else { "" };
                rule.push_str(&format!("; about {}{each} would", count(*needed, "trial")));
            }
            with_noise(rule, *noise, *delta)
        }
    }
}

/// A reason with the run that it is of.
fn in_runs(a: Option<&VerdictReason>, b: Option<&VerdictReason>) -> String {
    let one = |why: &VerdictReason| match why {
        VerdictReason::Unusable(unusable) => with_status(unusable),
        other => reason(other),
    };
    match (a, b) {
        (Some(a), Some(b)) if a == b => format!("in both runs: {}", one(a)),
        (Some(a), Some(b)) => format!("in A: {}; in B: {}", one(a), one(b)),
        (Some(a), None) => format!("in A: {}", one(a)),
        (None, Some(b)) => format!("in B: {}", one(b)),
        (None, None) => String::new(),
    }
}

fn with_status(unusable: &Unusable) -> String {
    format!("{}: {}", unusable.status.word(), unusable.reason)
}

fn beyond(interval: &Interval, bound: f64, is_above: bool) -> String {
    let side = if is_above { "above" } else { "below" };
    format!("simultaneous 95% interval {} is {side} {bound:.3}", ends(interval, is_above))
}

/// Both ends, or of an interval that says nothing the one on the near side.
fn ends(interval: &Interval, is_above: bool) -> String {
    match interval.is_usable() {
        true => range(interval),
        false if is_above => format!("from {:.3} up", interval.low),
        false => format!("up to {:.3}", interval.high),
    }
}

fn with_noise(rule: String, noise: Option<Noise>, delta: f64) -> String {
    let Some(noise) = noise else { return rule };
    let width = match noise.half_width {
        Some(half) => format!("the self-check has ±{}", percent_above(half, delta)),
        None => "the interval of the self-check is not usable".to_owned(),
    };
    format!("{rule}; too noisy for δ = {}: {width}", percent(delta))
}

/// A fraction above a bound, both as percentages, with as many decimals as
/// keep them apart: `4.1 %`, `3.004 %` where the bound is 3 %.
fn percent_above(fraction: f64, bound: f64) -> String {
    let short = percent(fraction);
    if short != percent(bound) {
        return short;
    }
    let with = |value: f64, decimals: usize| format!("{:.decimals$}%", value * 100.0);
    let longer = (2..=6).find(|&d| with(fraction, d) != with(bound, d));
    longer.map_or(short, |decimals| with(fraction, decimals))
}

/// `0.981 to 1.024`.
fn range(interval: &Interval) -> String {
    format!("{:.3} to {:.3}", interval.low, interval.high)
}

#[cfg(test)]
pub(crate) mod tests;

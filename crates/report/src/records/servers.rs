//! Rows of the study `server`: what is counted is requests, and the ends are a server and
//! its client, whose counts are never added up.

use std::borrow::Cow;

use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::search::SearchPhase;
use iolens_model::server::{OfferedSlice, ServerArm};
use iolens_model::trial::SliceKind;
use iolens_stats::analysis::{
    ArmAnalysis, CpuOf, CpuShares, EndFigures, EndMetric, LatencyFigures, Limits, ServerFigures,
};
use iolens_stats::remark::Limited;
use serde_json::{Value, json};

use super::cells::{cost, estimate, latency};
use super::{Record, arms, axes, slices};
use crate::arm_facts;
use crate::named::{Named, fields, named, prefixed, renamed};
use crate::remarks;
use crate::servers::{CPU_KINDS, by_end};
use crate::totals::{Counted, totals};

/// Counts of the two ends under their own names, without those that no server has or
/// that nobody counts: its calls and its bytes.
pub(super) fn counts(counts: Option<&Counted>) -> Named {
    const FOREIGN: [&str; 8] = [
        "zerocopy",
        "mapped",
        "rearms",
        "ring_enobufs",
        "segments_out",
        "skb_",
        "tcp_retransmit",
        "rx_time_ns",
    ];
    const UNCOUNTED: [&str; 2] = ["tx_bytes", "tx_calls"];
    let mut columns = slices::ends(counts);
    columns.retain(|(name, _)| {
        !FOREIGN.iter().any(|word| name.contains(word)) && !UNCOUNTED.contains(&&**name)
    });
    renamed(columns, |name| match name {
        "tx_messages" => "server_requests".to_owned(),
        "rx_messages" => "client_replies".to_owned(),
        "rx_calls" => "client_system_calls".to_owned(),
        name => name.replacen("tx_", "server_", 1).replacen("rx_", "client_", 1),
    })
}

/// What the client saw of one slice.
pub(super) fn offered(trial: &TrialOutcome, slice: &SliceOutcome) -> Named {
    let arm = trial.arms.get(slice.arm).and_then(|arm| arm.server.as_deref());
    let own = |offered: &&OfferedSlice| offered.seq == slice.seq;
    let found = arm.and_then(|arm| arm.offered.iter().find(own));
    [named! { rate_per_s: arm.and_then(|arm| arm.rate) }, of_client(found)].concat()
}

fn of_client(offered: Option<&OfferedSlice>) -> Named {
    let network = offered.and_then(|o| o.server_network.as_ref().or(o.network.as_ref()));
    let throttled = |end: usize, whose: &str| {
        let held = offered.and_then(|o| o.throttled[end]);
        let columns =
            named! { periods: held.map(|held| held.periods), ns: held.map(|held| held.time.0) };
        prefixed(&format!("{whose}_throttled_"), columns)
    };
    [
        named! {
            requests_due: offered.map(|o| o.scheduled),
            window_ns: offered.map(|o| o.window.0),
        },
        fields!(offered; replies_in_window),
        ended(offered.map(|o| &o.outcomes)),
        fields!(offered; late_replies),
        fields!(network; listen_overflows listen_drops),
        named! { processes: offered.and_then(|o| o.processes) },
        throttled(0, "server"),
        throttled(1, "client"),
    ]
    .concat()
}

fn ended(outcomes: Option<&iolens_model::load::Outcomes>) -> Named {
    prefixed("requests_", fields!(outcomes; ok timeout refused reset invalid abandoned))
}

/// What the client saw of several slices: sums, null as soon as one part is; of processes the
/// most there were.
fn of_clients(slices: &[&OfferedSlice]) -> Named {
    let add = |(name, a): (Cow<'static, str>, Value), b: &Value| {
        let (x, y) = (a.as_u64(), b.as_u64());
        let sum = match &*name {
            "processes" => x.max(y),
            _ => x.zip(y).map(|(x, y)| x + y),
        };
        (name, json!(sum))
    };
    let sum =
        |sum: Named, row: Named| sum.into_iter().zip(&row).map(|(a, (_, b))| add(a, b)).collect();
    let rows = slices.iter().map(|offered| of_client(Some(offered)));
    rows.reduce(sum).unwrap_or_else(|| of_client(None))
}

/// One arm of one trial: sums over its measured slices.
pub(super) fn arm_row(run: &Run, trial: &TrialOutcome, index: usize) -> Record {
    let outcome = &trial.arms[index];
    let sums = totals(trial, index);
    let sums = sums.as_ref();
    let server = outcome.server.as_deref();
    let is_measured = |offered: &&OfferedSlice| {
        let own = |slice: &SliceOutcome| {
            (slice.arm, slice.kind, slice.seq) == (index, SliceKind::Measured, offered.seq)
        };
        trial.slices.iter().any(own)
    };
    let clients: Vec<&OfferedSlice> =
        server.iter().flat_map(|server| &server.offered).filter(is_measured).collect();
    let columns = [
        arms::head(run, trial, index, sums),
        named! { rate_per_s: server.and_then(|server| server.rate) },
        of_clients(&clients),
        counts(sums),
        times("latency", outcome.latency.as_ref()),
        of_server(server),
    ];
    let whole = named! {
        latency_histogram: outcome.latency,
        from_sent_histogram: server.map(|server| &server.from_sent),
        cpu_ticks: server.map(|server| &server.cpus),
        facts: arm_facts::object(trial, index),
    };
    Record::new(run, columns.concat(), whole)
}

/// One phase of a search.
pub(super) fn phase_row(run: &Run, phase: &SearchPhase) -> Record {
    let server = phase.server.as_deref();
    let columns = [
        named! { run: run.header.id, phase: phase.number, arm: phase.arm.label },
        fields!(Some(&phase.arm); primitive),
        axes(&phase.cell),
        named! {
            step: phase.step,
            rate_per_s: phase.rate,
            achieved_per_s: phase.achieved(),
            phase_ns: phase.phase.0,
            dropped_ns: phase.dropped.0,
            duration_ns: phase.duration_ns,
            status: phase.status.word(),
            reason: phase.reason,
        },
        of_client(phase.offered()),
        counts(phase.slice.as_ref().map(Counted::of).as_ref()),
        times("latency", phase.latency.as_ref()),
        of_server(server),
        named! { steal_ticks: phase.environment.steal_ticks.value() },
    ];
    let whole = named! {
        latency_histogram: phase.latency,
        from_sent_histogram: server.map(|server| &server.from_sent),
    };
    Record::new(run, columns.concat(), whole)
}

fn of_server(server: Option<&ServerArm>) -> Named {
    let failures = server.map(|server| {
        let said = server.failures.iter().map(|(what, times)| format!("{times} × {what}"));
        said.collect::<Vec<_>>().join("; ")
    });
    let connects = server.map(|server| &server.connects);
    [
        times("from_sent", server.map(|server| &server.from_sent)),
        times("lag", server.map(|server| &server.lag)),
        prefixed("connections_", fields!(connects; made failed slow)),
        named! { ramp_ns: connects.and_then(|connects| connects.ramp).map(|ramp| ramp.0) },
        fields!(server; tasks_max),
        named! { failures: failures },
    ]
    .concat()
}

fn times(what: &str, times: Option<&iolens_model::latency::Histogram>) -> Named {
    super::times(what, times.filter(|times| times.total() > 0))
}

/// Figures of one arm in one cell.
pub(super) fn figures(arm: &ArmAnalysis) -> Named {
    let server = arm.server.as_ref();
    let limit = |of: fn(&Limits) -> Option<Limited>| {
        let found = server.and_then(|server| of(&server.limits));
        found.map(|found| remarks::limited(&found))
    };
    [
        cost(arm),
        named! { rates_asked_per_s: server.map(|server| &server.rates_asked) },
        estimate("requests_per_s", "", server.map(|server| server.requests_per_s)),
        estimate("offered_per_s", "", server.and_then(|server| server.offered_per_s)),
        estimate("server_busy", "", server.and_then(|server| server.server_busy)),
        estimate("client_busy", "", server.and_then(|server| server.client_busy)),
        named! {
            saturated: server.and_then(|server| server.saturated),
            client_was_the_limit: limit(|limits| limits.client_busy),
            client_was_late: limit(|limits| limits.client_late),
            rate_not_kept: limit(|limits| limits.rate_not_kept),
        },
        fields!(server; tasks_max),
        cpus("server", CpuOf::Server, server),
        cpus("client", CpuOf::Client, server),
        ended(server.map(|server| &server.outcomes)),
        latency(arm),
        percentiles("from_sent_", server.and_then(|server| server.from_sent.as_ref())),
        percentiles("lag_", server.and_then(|server| server.lag.as_ref())),
        end("server_", server.map(|server| &server.server)),
        end("client_", server.map(|server| &server.client)),
    ]
    .concat()
}

/// What the processors of an end did in the slices, and how much of their time before
/// the servers stood and when nobody asked.
fn cpus(whose: &str, end: CpuOf, server: Option<&ServerFigures>) -> Named {
    // Where there is one processor, both are on it.
    let own = |of: fn(&ServerFigures) -> &[CpuShares]| {
        let mut ends = by_end(of(server?)).into_iter();
        let own = ends.find(|(of, _)| *of == end || *of == CpuOf::Both);
        own.map(|(_, shares)| shares)
    };
    let slices = own(|server| &server.cpus_in_slices);
    let kinds =
        CPU_KINDS.map(|(word, _, of)| (Cow::Borrowed(word), json!(slices.as_ref().map(of))));
    let columns = [
        named! {
            busy_before: own(|server| &server.cpus_before).map(|shares| 1.0 - shares.idle),
            busy_idle: own(|server| &server.cpus_idle).map(|shares| 1.0 - shares.idle),
        },
        kinds.to_vec(),
        fields!(slices.as_ref(); idle),
    ];
    renamed(columns.concat(), |name| format!("{whose}_cpus_{name}_share"))
}

fn percentiles(prefix: &str, times: Option<&LatencyFigures>) -> Named {
    let columns = named! {
        p50_ns: times.and_then(|times| times.p50_ns).map(|e| e.value),
        p99_ns: times.and_then(|times| times.p99_ns).map(|e| e.value),
        p999_ns: times.and_then(|times| times.p999_ns).map(|e| e.value),
    };
    prefixed(prefix, columns)
}

/// What one end spent: totals, and per request with intervals.
fn end(whose: &str, end: Option<&EndFigures>) -> Named {
    let mut columns = Named::new();
    for &metric in EndMetric::ALL {
        let (name, found) = (metric.name(), end.and_then(|end| end.get(metric)));
        if metric.is_per_request() {
            columns.push((name.into(), json!(found.and_then(|found| found.total))));
            let per_request = found.map(|found| found.value);
            columns.extend(estimate(&format!("{name}_per_request"), "", per_request));
        } else {
            columns.push((name.into(), json!(found.map(|found| found.value.value))));
        }
    }
    prefixed(whose, columns)
}

//! Rows of the study `server`: what is counted is requests, and the ends are a server and
//! its client, whose counts are never added up.

use std::borrow::Cow;

use iolens_model::cell::Cell;
use iolens_model::latency::Histogram;
use iolens_model::load::{NetworkCounts, Outcomes};
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::search::SearchPhase;
use iolens_model::server::{OfferedSlice, ServerArm, ServerSetting};
use iolens_model::trial::SliceKind;
use iolens_stats::analysis::{
    ArmAnalysis, CpuOf, CpuShares, EndFigures, Estimate, LatencyFigures, Limits, ServerFigures,
    Spent,
};
use iolens_stats::remark::Limited;
use serde_json::{Value, json};

use super::{
    Named, Record, ends, fixed, head_of_one_end, high, later_of_ends, low, pmu_of_ends, quantile_ns,
};
use crate::arm_facts;
use crate::remarks;
use crate::servers::{CPU_KINDS, by_end};
use crate::totals::totals;

/// The axes of a cell.
pub(super) fn axes(cell: &Cell, setting: &ServerSetting) -> Named {
    fixed([
        ("service", json!(setting.service)),
        ("length", json!(setting.length)),
        ("topology", json!(setting.topology)),
        ("load", json!(setting.load)),
        ("connections", json!(setting.connections)),
        ("workers", json!(cell.threads)),
    ])
}

/// Counts of the two ends under their own names, without those that no server has or
/// that nobody counts: its calls and its bytes.
fn of_two_ends(columns: Named) -> Named {
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
    let own =
        |name: &str| !FOREIGN.iter().any(|word| name.contains(word)) && !UNCOUNTED.contains(&name);
    let named = |(name, value): (Cow<'static, str>, Value)| -> (Cow<'static, str>, Value) {
        let name = match (name.strip_prefix("tx_"), name.strip_prefix("rx_")) {
            (Some("messages"), _) => "server_requests".to_owned(),
            (_, Some("messages")) => "client_replies".to_owned(),
            (_, Some("calls")) => "client_system_calls".to_owned(),
            (Some(rest), _) => format!("server_{rest}"),
            (_, Some(rest)) => format!("client_{rest}"),
            _ => name.into_owned(),
        };
        (Cow::Owned(name), value)
    };
    columns.into_iter().filter(|(name, _)| own(name)).map(named).collect()
}

/// The counts of one slice.
pub(super) fn counts(slice: &SliceOutcome) -> Named {
    of_two_ends([ends(slice), pmu_of_ends(slice), later_of_ends(slice)].concat())
}

/// What the client saw of one slice.
pub(super) fn offered(trial: &TrialOutcome, slice: &SliceOutcome) -> Named {
    let arm = trial.arms.get(slice.arm).and_then(|arm| arm.server.as_deref());
    let own = |offered: &&OfferedSlice| offered.seq == slice.seq;
    let found = arm.and_then(|arm| arm.offered.iter().find(own));
    let mut row = fixed([("rate_per_s", json!(arm.and_then(|arm| arm.rate)))]);
    row.extend(of_client(found));
    row
}

fn of_client(offered: Option<&OfferedSlice>) -> Named {
    let network = |of: fn(&NetworkCounts) -> u64| {
        let counts = offered.and_then(|o| o.server_network.or(o.network));
        json!(counts.as_ref().map(of))
    };
    let mut row = fixed([
        ("requests_due", json!(offered.map(|o| o.scheduled))),
        ("window_ns", json!(offered.map(|o| o.window.0))),
        ("replies_in_window", json!(offered.map(|o| o.replies_in_window))),
    ]);
    row.extend(ended(offered.map(|o| &o.outcomes)));
    row.extend(fixed([
        ("late_replies", json!(offered.map(|o| o.late_replies))),
        ("listen_overflows", network(|n| n.listen_overflows)),
        ("listen_drops", network(|n| n.listen_drops)),
        ("processes", json!(offered.and_then(|o| o.processes))),
    ]));
    for (end, whose) in ["server", "client"].into_iter().enumerate() {
        let held = offered.and_then(|o| o.throttled[end]);
        let name = |what: &str| Cow::Owned(format!("{whose}_throttled_{what}"));
        row.push((name("periods"), json!(held.map(|held| held.periods))));
        row.push((name("ns"), json!(held.map(|held| held.time.0))));
    }
    row
}

fn ended(outcomes: Option<&Outcomes>) -> Named {
    let get = |of: fn(&Outcomes) -> u64| json!(outcomes.map(of));
    fixed([
        ("requests_ok", get(|o| o.ok)),
        ("requests_timeout", get(|o| o.timeout)),
        ("requests_refused", get(|o| o.refused)),
        ("requests_reset", get(|o| o.reset)),
        ("requests_invalid", get(|o| o.invalid)),
        ("requests_abandoned", get(|o| o.abandoned)),
    ])
}

/// Sums of rows of equal columns; null as soon as one part is, or is no count.
fn summed(rows: impl Iterator<Item = Named>) -> Named {
    let add = |a: &Value, b: &Value| json!(a.as_u64().zip(b.as_u64()).map(|(a, b)| a + b));
    let sum = |sum: Named, row: Named| {
        let columns = sum.into_iter().zip(row);
        columns.map(|((name, a), (_, b))| (name, add(&a, &b))).collect()
    };
    rows.reduce(sum).unwrap_or_default()
}

/// One arm of one trial: sums over its measured slices.
pub(super) fn arm_row(
    run: &Run,
    trial: &TrialOutcome,
    setting: &ServerSetting,
    index: usize,
) -> Record {
    let outcome = &trial.arms[index];
    let totals = totals(trial, index);
    let mut row = head_of_one_end(run, trial, index, totals.as_ref(), axes(&trial.cell, setting));
    let own = |slice: &&SliceOutcome| slice.arm == index && slice.kind == SliceKind::Measured;
    let slices: Vec<&SliceOutcome> = trial.slices.iter().filter(own).collect();
    let server = outcome.server.as_deref();
    row.extend(fixed([("rate_per_s", json!(server.and_then(|server| server.rate)))]));
    let clients: Vec<&OfferedSlice> = server
        .iter()
        .flat_map(|server| &server.offered)
        .filter(|offered| slices.iter().any(|slice| slice.seq == offered.seq))
        .collect();
    let seen = summed(clients.iter().map(|offered| of_client(Some(offered))));
    row.extend(if seen.is_empty() { of_client(None) } else { without_processes(seen, &clients) });
    let sums = summed(slices.iter().map(|slice| counts(slice)));
    row.extend(if sums.is_empty() { nothing_counted() } else { sums });
    row.extend(times("latency", outcome.latency.as_ref()));
    row.extend(times("from_sent", server.map(|server| &server.from_sent)));
    row.extend(times("lag", server.map(|server| &server.lag)));
    row.extend(of_server(server));
    let whole = fixed([
        ("latency_histogram", json!(outcome.latency)),
        ("from_sent_histogram", json!(server.map(|server| &server.from_sent))),
        ("cpu_ticks", json!(server.map(|server| &server.cpus))),
        ("facts", arm_facts::object(trial, index)),
    ]);
    Record { columns: row, whole }
}

/// One phase of a search.
pub(super) fn phase_row(run: &Run, phase: &SearchPhase) -> Record {
    let mut row = fixed([
        ("run", json!(run.header.id)),
        ("phase", json!(phase.number)),
        ("arm", json!(phase.arm.label)),
        ("primitive", json!(phase.arm.primitive)),
    ]);
    row.extend(phase.cell.server().map(|setting| axes(&phase.cell, setting)).unwrap_or_default());
    row.extend(fixed([
        ("step", json!(phase.step)),
        ("rate_per_s", json!(phase.rate)),
        ("achieved_per_s", json!(phase.achieved())),
        ("phase_ns", json!(phase.phase.0)),
        ("dropped_ns", json!(phase.dropped.0)),
        ("duration_ns", json!(phase.duration_ns)),
        ("status", json!(phase.status.word())),
        ("reason", json!(phase.reason)),
    ]));
    row.extend(of_client(phase.offered()));
    row.extend(phase.slice.as_ref().map_or_else(nothing_counted, counts));
    row.extend(times("latency", phase.latency.as_ref()));
    row.extend(times("from_sent", phase.server.as_ref().map(|server| &server.from_sent)));
    row.extend(times("lag", phase.server.as_ref().map(|server| &server.lag)));
    row.extend(of_server(phase.server.as_deref()));
    let steal = phase.environment.steal_ticks.value();
    row.extend(fixed([("steal_ticks", json!(steal))]));
    let whole = fixed([
        ("latency_histogram", json!(phase.latency)),
        ("from_sent_histogram", json!(phase.server.as_ref().map(|server| &server.from_sent))),
    ]);
    Record { columns: row, whole }
}

/// Processes are no sum: the most there were.
fn without_processes(mut row: Named, clients: &[&OfferedSlice]) -> Named {
    let most = clients.iter().filter_map(|offered| offered.processes).max();
    for (_, value) in row.iter_mut().filter(|(name, _)| name == "processes") {
        *value = json!(most);
    }
    row
}

/// The columns of an arm that has no slice.
fn nothing_counted() -> Named {
    let empty = SliceOutcome {
        seq: 0,
        round: 0,
        kind: SliceKind::Measured,
        arm: 0,
        all_active_ns: 0,
        tx: iolens_model::outcome::Counts::default(),
        rx: None,
    };
    counts(&empty).into_iter().map(|(name, _)| (name, Value::Null)).collect()
}

fn of_server(server: Option<&ServerArm>) -> Named {
    let list = |pairs: &dyn Fn(&ServerArm) -> String| json!(server.map(pairs));
    fixed([
        ("connections_made", json!(server.map(|s| s.connects.made))),
        ("connections_failed", json!(server.map(|s| s.connects.failed))),
        ("connections_slow", json!(server.map(|s| s.connects.slow))),
        ("ramp_ns", json!(server.and_then(|s| s.connects.ramp).map(|ramp| ramp.0))),
        ("tasks_max", json!(server.map(|s| s.tasks_max))),
        (
            "failures",
            list(&|s| {
                let said = s.failures.iter().map(|(what, times)| format!("{times} × {what}"));
                said.collect::<Vec<_>>().join("; ")
            }),
        ),
    ])
}

fn times(what: &'static str, times: Option<&Histogram>) -> Named {
    let times = times.filter(|times| times.total() > 0);
    let quantile = |q| json!(times.and_then(|times| quantile_ns(times, q)));
    let columns = [
        ("samples", json!(times.map(Histogram::total))),
        ("mean_ns", json!(times.and_then(Histogram::mean_ns))),
        ("p50_ns", quantile(0.5)),
        ("p99_ns", quantile(0.99)),
        ("p999_ns", quantile(0.999)),
    ];
    columns.into_iter().map(|(name, value)| (Cow::Owned(format!("{what}_{name}")), value)).collect()
}

/// Figures of one arm in one cell.
pub(super) fn figures(arm: &ArmAnalysis) -> Named {
    let server = arm.server.as_ref();
    let limit = |of: fn(&Limits) -> Option<Limited>| {
        json!(server.and_then(|s| of(&s.limits)).map(|found| remarks::limited(&found)))
    };
    let mut row = super::compared::cost(arm);
    row.extend(fixed([("rates_asked_per_s", json!(server.map(|s| &s.rates_asked)))]));
    row.extend(estimate("requests_per_s", server.map(|s| s.requests_per_s)));
    row.extend(estimate("offered_per_s", server.and_then(|s| s.offered_per_s)));
    row.extend(estimate("server_busy", server.and_then(|s| s.server_busy)));
    row.extend(estimate("client_busy", server.and_then(|s| s.client_busy)));
    row.extend(fixed([
        ("saturated", json!(server.and_then(|s| s.saturated))),
        ("client_was_the_limit", limit(|limits| limits.client_busy)),
        ("client_was_late", limit(|limits| limits.client_late)),
        ("rate_not_kept", limit(|limits| limits.rate_not_kept)),
        ("tasks_max", json!(server.map(|s| s.tasks_max))),
    ]));
    row.extend(cpus(server));
    row.extend(ended(server.map(|s| &s.outcomes)));
    row.extend(super::figures::latency(arm));
    row.extend(percentiles("from_sent", server.and_then(|s| s.from_sent.as_ref())));
    row.extend(percentiles("lag", server.and_then(|s| s.lag.as_ref())));
    row.extend(end("server", server.map(|s| &s.server)));
    row.extend(end("client", server.map(|s| &s.client)));
    row
}

/// What the processors of each end did in the slices, and how much of their time before
/// the servers stood and when nobody asked.
fn cpus(server: Option<&ServerFigures>) -> Named {
    let mut row = Named::new();
    let ends = [("server", CpuOf::Server), ("client", CpuOf::Client)];
    for (whose, end) in ends {
        // Where there is one processor, both are on it.
        let own = |cpus: &[CpuShares]| {
            let ends = by_end(cpus).into_iter();
            let mut own = ends.filter(|(of, _)| *of == end || *of == CpuOf::Both);
            own.next().map(|(_, shares)| shares)
        };
        let name = |what: &str| Cow::Owned(format!("{whose}_cpus_{what}_share"));
        let busy = |cpus: &[CpuShares]| own(cpus).map(|shares| 1.0 - shares.idle);
        row.push((name("busy_before"), json!(server.and_then(|s| busy(&s.cpus_before)))));
        row.push((name("busy_idle"), json!(server.and_then(|s| busy(&s.cpus_idle)))));
        let slices = server.and_then(|s| own(&s.cpus_in_slices));
        for (word, _, of) in CPU_KINDS {
            row.push((name(word), json!(slices.as_ref().map(of))));
        }
        row.push((name("idle"), json!(slices.as_ref().map(|shares| shares.idle))));
    }
    row
}

fn percentiles(what: &'static str, times: Option<&LatencyFigures>) -> Named {
    let value = |of: fn(&LatencyFigures) -> Option<Estimate>| {
        json!(times.and_then(of).map(|estimate| estimate.value))
    };
    let columns = [
        ("p50_ns", value(|t| t.p50_ns)),
        ("p99_ns", value(|t| t.p99_ns)),
        ("p999_ns", value(|t| t.p999_ns)),
    ];
    columns.into_iter().map(|(name, value)| (Cow::Owned(format!("{what}_{name}")), value)).collect()
}

/// A figure and its interval.
fn estimate(name: &str, estimate: Option<Estimate>) -> Named {
    let interval = estimate.and_then(|estimate| estimate.interval);
    vec![
        (Cow::Owned(name.to_owned()), json!(estimate.map(|estimate| estimate.value))),
        (Cow::Owned(format!("{name}_low")), low(interval)),
        (Cow::Owned(format!("{name}_high")), high(interval)),
    ]
}

/// A count of what an end spent: its name and where it stands.
type Count = (&'static str, fn(&EndFigures) -> Option<Spent>);

const COUNTS: [Count; 20] = [
    ("cpu_ns", |end| end.task_clock_ns),
    ("context_switches", |end| end.context_switches),
    ("voluntary_switches", |end| end.voluntary_switches),
    ("involuntary_switches", |end| end.involuntary_switches),
    ("migrations", |end| end.migrations),
    ("minor_faults", |end| end.minor_faults),
    ("major_faults", |end| end.major_faults),
    ("run_delay_ns", |end| end.run_delay_ns),
    ("cycles", |end| end.cycles),
    ("instructions", |end| end.instructions),
    ("branches", |end| end.branches),
    ("branch_misses", |end| end.branch_misses),
    ("stalled_cycles_frontend", |end| end.stalled_cycles_frontend),
    ("stalled_cycles_backend", |end| end.stalled_cycles_backend),
    ("l1d_loads", |end| end.l1d_loads),
    ("l1d_misses", |end| end.l1d_misses),
    ("llc_references", |end| end.llc_references),
    ("llc_misses", |end| end.llc_misses),
    ("dtlb_loads", |end| end.dtlb_loads),
    ("dtlb_misses", |end| end.dtlb_misses),
];

/// What one end spent: totals, and per request with intervals.
fn end(whose: &str, end: Option<&EndFigures>) -> Named {
    let mut row = Named::new();
    for (name, of) in COUNTS {
        let spent = end.and_then(of);
        row.push((Cow::Owned(format!("{whose}_{name}")), json!(spent.map(|spent| spent.total))));
        let each = format!("{whose}_{name}_per_request");
        row.extend(estimate(&each, spent.map(|spent| spent.per_request)));
    }
    let value = |of: fn(&EndFigures) -> Option<Estimate>| {
        json!(end.and_then(of).map(|estimate| estimate.value))
    };
    row.extend([
        (Cow::Owned(format!("{whose}_cpus_utilized")), value(|end| end.cpus_utilized)),
        (Cow::Owned(format!("{whose}_clock_ghz")), value(|end| end.clock_ghz)),
        (
            Cow::Owned(format!("{whose}_instructions_per_cycle")),
            value(|end| end.instructions_per_cycle),
        ),
        (Cow::Owned(format!("{whose}_branch_miss_rate")), value(|end| end.branch_miss_rate)),
    ]);
    row
}

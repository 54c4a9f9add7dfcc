//! What was measured: an arm of a trial with sums over its measured slices, a slice, and a phase of
//! a search.

use iolens_document::Joined;
use std::borrow::Cow;

use iolens_model::arm::ArmOutcome;
use iolens_model::file::FileCounts;
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::reading::Histogram;
use iolens_model::run::Run;
use iolens_model::run::SearchPhase;
use iolens_model::server::{OfferedSlice, ServerArm};
use iolens_model::trial::SliceKind;
use iolens_stats::analysis::LatencyFigures;
use serde_json::{Value, json};

use super::columns::{self, Columns, Kind};
use super::{Record, Source};
use crate::arms;
use crate::groups::{Named, fields, named, object, prefixed};
use crate::totals::{Counted, totals};

/// One row per arm and trial.
pub(crate) fn arms(run: &Run) -> impl Iterator<Item = Record> {
    let columns = columns::of(Kind::Arms, run.header.plan.study());
    run.trials
        .iter()
        .flat_map(|trial| (0..trial.arms.len()).map(move |index| (trial, index)))
        .map(move |(trial, index)| arm(run, trial, index, &columns))
}

/// One row per slice.
pub(crate) fn slices(run: &Run) -> impl Iterator<Item = Record> {
    let columns = columns::of(Kind::Slices, run.header.plan.study());
    let trials = run.trials.iter().zip(iolens_stats::unused(run));
    let all = trials.flat_map(|(trial, unused)| {
        trial.slices.iter().map(move |slice| (trial, slice, unused.get(slice.arm).cloned()))
    });
    all.map(move |(trial, slice, unused)| slice_row(run, trial, slice, unused.flatten(), &columns))
}

/// One row per phase of a search.
pub(crate) fn phases(run: &Run) -> impl Iterator<Item = Record> {
    let columns = columns::of(Kind::Phases, run.header.plan.study());
    run.searches.iter().map(move |phase| phase_row(run, phase, &columns))
}

fn arm(run: &Run, trial: &TrialOutcome, index: usize, columns: &Columns) -> Record {
    let outcome = &trial.arms[index];
    let sums = totals(trial, index);
    let of = |figure: fn(&Counted) -> Option<f64>| sums.as_ref().and_then(figure);
    let share = |part, whole| sums.as_ref().and_then(|sums| sums.share(part, whole));
    let ns_per_message = of(Counted::ns_per_message);
    let measured = || {
        let slices = trial.slices.iter();
        slices.filter(|slice| slice.arm == index && slice.kind == SliceKind::Measured)
    };
    let found = measured().map(|slice| slice.tx.file);
    let found = found.reduce(|sum, next: Option<FileCounts>| Some(sum?.and_later(&next?)));
    let start = trial.tx.iter().flat_map(|end| &end.starts).find(|start| start.arm == index);
    let server = outcome.server.as_deref();
    let clients = server.iter().flat_map(|server| &server.offered);
    let clients: Vec<&OfferedSlice> =
        clients.filter(|offered| measured().any(|slice| slice.seq == offered.seq)).collect();
    let own = named! {
        pass: trial.pass,
        position: trial.position,
        isolated: trial.isolated,
        status: outcome.status.word(),
        reason: outcome.reason.as_ref().or(trial.reason.as_ref()),
        slices: sums.as_ref().map(|sums| sums.slices),
        unit: trial.cell.study().unit(),
        goodput_bits_per_s: of(Counted::goodput_bits_per_s),
        read_bytes_per_s: share("tx_bytes", "time_ns").map(|rate| rate * 1e9),
        calls_per_s: ns_per_message.map(|ns| 1e9 / ns),
        ns_per_message: ns_per_message,
        cycles_per_byte: of(Counted::cycles_per_byte),
        copies_sender: outcome.copies_sender,
        copies_end_to_end: outcome.copies_end_to_end,
        zerocopy_copied_share: share("zerocopy_copied", "zerocopy_completions"),
        zerocopy_notifications_per_send: share("zerocopy_notifications", "zerocopy_sends"),
        rate_per_s: server.and_then(|server| server.rate),
        starts: start.map(|start| start.runs),
        link: link(run, outcome),
        latency_histogram: outcome.latency,
        cpu_ticks: server.map(|server| &server.cpus),
        facts: arms::facts_of_trial(trial, index),
    };
    let objects = [
        ("", json!(outcome.arm)),
        ("start_", json!(start)),
        ("", json!(found.flatten())),
        ("", object(of_clients(&clients))),
        ("latency_", times(outcome.latency.as_ref())),
    ];
    let source = Source::new(&trial.cell, own).with(objects).with(of_server(server));
    Source { counts: sums, ..source }.record(run, columns)
}

/// The file that a program ran, where it is several links of one source.
fn link<'a>(run: &'a Run, outcome: &ArmOutcome) -> Option<&'a str> {
    let number = usize::try_from(outcome.ab.as_ref()?.link?).ok()?;
    let name = &outcome.arm.primitive;
    let program = run.header.plan.primitives.iter().position(|own| own == name)?;
    Some(&run.header.programs.get(program)?.links.get(number)?.path)
}

/// A slice, with why an analysis does not rest on it.
fn slice_row(
    run: &Run,
    trial: &TrialOutcome,
    slice: &SliceOutcome,
    unused: Option<String>,
    columns: &Columns,
) -> Record {
    let outcome = trial.arms.get(slice.arm);
    let server = outcome.and_then(|outcome| outcome.server.as_deref());
    let mut offered = server.iter().flat_map(|server| &server.offered);
    let own = named! {
        pass: trial.pass,
        position: trial.position,
        seq: slice.seq,
        round: slice.round,
        kind: slice.kind,
        isolated: trial.isolated,
        all_active_ns: slice.all_active_ns,
        unused: unused,
        rate_per_s: server.and_then(|server| server.rate),
        at_others_rate: server.map(|server| server.at_others_rate),
    };
    let client = of_client(offered.find(|offered| offered.seq == slice.seq));
    let arm = json!(outcome.map(|outcome| &outcome.arm));
    let objects = [("", arm), ("", json!(slice.tx.file)), ("", object(client))];
    let source = Source::new(&trial.cell, own).with(objects);
    Source { counts: Some(Counted::of(slice)), ..source }.record(run, columns)
}

fn phase_row(run: &Run, phase: &SearchPhase, columns: &Columns) -> Record {
    let server = phase.server.as_deref();
    let own = named! {
        phase: phase.number,
        step: phase.step,
        rate_per_s: phase.rate,
        achieved_per_s: phase.achieved(),
        phase_ns: phase.phase.0,
        dropped_ns: phase.dropped.0,
        duration_ns: phase.duration_ns,
        status: phase.status.word(),
        reason: phase.reason,
        steal_ticks: phase.environment.steal_ticks.value(),
        latency_histogram: phase.latency,
    };
    let objects = [
        ("", json!(phase.arm)),
        ("", object(of_client(phase.offered()))),
        ("latency_", times(phase.latency.as_ref())),
    ];
    let source = Source::new(&phase.cell, own).with(objects).with(of_server(server));
    let counts = phase.slice.as_ref().map(Counted::of);
    Source { counts, ..source }.record(run, columns)
}

/// What the client saw of one slice.
fn of_client(offered: Option<&OfferedSlice>) -> Named {
    let network = offered.and_then(|o| o.server_network.as_ref().or(o.network.as_ref()));
    let [server, client] = offered.map(|o| o.throttled).unwrap_or_default();
    [
        named! {
            requests_due: offered.map(|o| o.scheduled),
            window_ns: offered.map(|o| o.window.0),
            processes: offered.and_then(|o| o.processes),
            server_throttled_periods: server.map(|held| held.periods),
            server_throttled_ns: server.map(|held| held.time.0),
            client_throttled_periods: client.map(|held| held.periods),
            client_throttled_ns: client.map(|held| held.time.0),
            client_polling_ns: offered.map(OfferedSlice::polled_ns),
        },
        fields!(offered; replies_in_window late_replies),
        fields!(network; listen_overflows listen_drops),
        prefixed(
            "requests_",
            fields!(
                offered.map(|o| &o.outcomes);
                ok timeout refused reset invalid abandoned
            ),
        ),
    ]
    .concat()
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

/// What came of a server besides.
fn of_server(server: Option<&ServerArm>) -> [(&'static str, Value); 4] {
    let connects = server.map(|server| &server.connects);
    let failures = server.map(|server| {
        let said = server.failures.iter().map(|(what, times)| format!("{times} × {what}"));
        said.joined("; ")
    });
    let own = named! {
        ramp_ns: connects.and_then(|connects| connects.ramp).map(|ramp| ramp.0),
        tasks_max: server.map(|server| server.tasks_max),
        failures: failures,
        from_sent_histogram: server.map(|server| &server.from_sent),
    };
    [
        ("from_sent_", times(server.map(|server| &server.from_sent))),
        ("lag_", times(server.map(|server| &server.lag))),
        ("connections_", object(fields!(connects; made failed slow))),
        ("", object(own)),
    ]
}

/// How many times there are, and their percentiles: null where there are too few, as in a cell.
fn times(times: Option<&Histogram>) -> Value {
    let times = times.filter(|times| times.total() > 0);
    let quantile = |q| times.and_then(|times| quantile_ns(times, q));
    object(named! {
        samples: times.map(Histogram::total),
        mean_ns: times.and_then(Histogram::mean_ns),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
    })
}

fn quantile_ns(times: &Histogram, q: f64) -> Option<u64> {
    times.quantile_ns(q).filter(|_| LatencyFigures::enough(times.total(), q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_as_many_times_in_a_trial_as_in_a_cell() {
        let times = |n| Histogram { buckets: vec![(100, n)] };
        assert_eq!(quantile_ns(&times(369), 0.99), None);
        assert_eq!(quantile_ns(&times(370), 0.99), Some(100));
    }
}

//! An arm in a cell: its figures, and what was found against the baseline.

use iolens_model::run::Run;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, CpuOf, CpuShares, EndFigures, EndMetric,
    Interval, Limits, PairContrast, Quantity, ServerFigures,
};
use iolens_stats::remark::Limited;
use serde_json::{Map, Value, json};

use super::columns::{self, Columns, Kind};
use super::{Record, Source};
use crate::arms;
use crate::groups::{Named, fields, named, object};
use crate::remarks;
use crate::studies::files::facts::start_of;
use crate::studies::server::processors::{CPU_KINDS, by_end};
use crate::studies::syscall::calls::bytes_of;

/// One row per arm and cell.
pub(crate) fn cells<'a>(run: &'a Run, analysis: &'a Analysis) -> impl Iterator<Item = Record> {
    let columns = columns::of(Kind::Cells, run.header.plan.study());
    arms::in_cells(analysis).map(move |(cell, arm)| row(run, analysis, cell, arm, &columns))
}

fn row(
    run: &Run,
    analysis: &Analysis,
    cell: &CellAnalysis,
    arm: &ArmAnalysis,
    columns: &Columns,
) -> Record {
    let rate = arm.time().map(|call| 1e9 / call.value);
    let bytes = bytes_of(run, &cell.cell, &arm.arm.primitive).filter(|&bytes| bytes > 0);
    let own = named! {
        calls_per_s: rate,
        mib_per_s: rate.zip(bytes).map(|(rate, bytes)| rate * bytes as f64 / f64::from(1 << 20)),
        rx_mapped_share: arm.mapped_share,
        rx_rearms: arm.multishot.map(|m| m.rearms),
        rx_ring_enobufs: arm.multishot.map(|m| m.enobufs),
    };
    let copies = fields!(Some(arm); copies_sender copies_end_to_end);
    let objects = [
        ("", json!(arm.arm)),
        ("", object(judgement(run, cell, arm))),
        ("", object(copies)),
        ("", ratio(arm.contrast.as_ref())),
        ("cpu_", ratio(arm.cpu_contrast.as_ref())),
        ("start_", json!(start_of(&run.header, &analysis.told, &arm.arm.primitive))),
        ("zerocopy_", json!(arm.zerocopy)),
        ("latency_", json!(arm.latency)),
        ("", json!(arm.figures)),
    ];
    let source = Source::new(&cell.cell, own).with(objects);
    let source = source.with(arm.server.iter().flat_map(of_server));
    source.record(run, columns)
}

/// What was found against the baseline.
fn judgement(run: &Run, cell: &CellAnalysis, arm: &ArmAnalysis) -> Named {
    let plan = &run.header.plan;
    let contrast = arm.contrast.as_ref();
    // A quick run has no verdicts, in an export either.
    let judged = contrast.filter(|_| !plan.quick);
    named! {
        status: arm.status.word(),
        reason: arm.reason,
        baseline: plan.baseline,
        trials_started: cell.trials_started,
        trials_used: cell.trials_used,
        n: contrast.map(|c| c.n).or(arm.time().map(|time| time.n)),
        ratio_sd_ln: contrast.and_then(|c| c.sd_ln),
        total_ratio: contrast.map(|c| c.total_ratio.value),
        tail: contrast.map(|c| c.tail),
        delta: plan.delta,
        indicative: plan.quick,
        verdict: judged.map(|c| c.verdict.word()),
        verdict_reason: judged.map(|c| remarks::reason(&c.reason)),
        trials_needed: contrast.and_then(|c| c.trials_needed),
        isolated_ratio: arm.isolated.as_ref().map(|c| c.ratio),
    }
}

/// A ratio with the interval by itself, and the one that holds for all together.
fn ratio(contrast: Option<&Contrast>) -> Value {
    let own = named! {
        value: contrast.map(|c| c.ratio),
        interval: contrast.and_then(|c| c.pointwise),
    };
    let simultaneous = simultaneous(contrast.and_then(|c| c.simultaneous));
    object([named! { ratio: object(own) }, simultaneous].concat())
}

fn simultaneous(interval: Option<Interval>) -> Named {
    named! { ratio_simultaneous: object(named! { interval: interval }) }
}

/// What was asked of a server and its client, and what both spent.
fn of_server(server: &ServerFigures) -> [(&'static str, Value); 9] {
    let limit = |of: fn(&Limits) -> Option<Limited>| {
        of(&server.limits).map(|found| remarks::limited(&found))
    };
    let own = named! {
        rates_asked_per_s: server.rates_asked,
        client_was_the_limit: limit(|limits| limits.client_busy),
        client_was_late: limit(|limits| limits.client_late),
        rate_not_kept: limit(|limits| limits.rate_not_kept),
    };
    [
        ("", object(own)),
        ("", json!(server)),
        ("requests_", json!(server.outcomes)),
        ("from_sent_", json!(server.from_sent)),
        ("lag_", json!(server.lag)),
        ("server_cpus_", cpus(CpuOf::Server, server)),
        ("client_cpus_", cpus(CpuOf::Client, server)),
        ("server_", spent(&server.server)),
        ("client_", spent(&server.client)),
    ]
}

/// What the processors of an end did in the slices, and how much of their time before
/// the servers stood and when nobody asked.
fn cpus(end: CpuOf, server: &ServerFigures) -> Value {
    // Where there is one processor, both are on it.
    let own = |of: &[CpuShares]| {
        let mut ends = by_end(of).into_iter();
        let own = ends.find(|(of, _)| *of == end || *of == CpuOf::Both);
        own.map(|(_, shares)| shares)
    };
    let slices = own(&server.cpus_in_slices);
    let busy = |of: &[CpuShares]| own(of).map(|shares| 1.0 - shares.idle);
    let mut shares = named! {
        busy_before_share: busy(&server.cpus_before),
        busy_idle_share: busy(&server.cpus_idle),
        idle_share: slices.map(|shares| shares.idle),
    };
    let kinds = CPU_KINDS.iter();
    shares.extend(
        kinds.map(|(word, _, of)| (format!("{word}_share").into(), json!(slices.as_ref().map(of)))),
    );
    object(shares)
}

/// What one end spent: totals, and per request with intervals.
fn spent(end: &EndFigures) -> Value {
    let mut all = Map::new();
    for &metric in EndMetric::ALL {
        let (name, found) = (metric.name(), end.get(metric));
        let value = json!(found.map(|found| found.value));
        if metric.is_per_request() {
            all.insert(name.to_owned(), json!(found.and_then(|found| found.total)));
            all.insert(format!("{name}_per_request"), value);
        } else {
            all.insert(name.to_owned(), value);
        }
    }
    Value::Object(all)
}

/// Every two compared arms of each cell against each other, by what decides there and by CPU
/// time where that is compared too.
pub(crate) fn pairs(analysis: &Analysis) -> Vec<Value> {
    let of_cell = |cell: &CellAnalysis| -> Vec<Value> {
        let decides = cell.compared;
        let besides = Quantity::cpu_of(&cell.cell).filter(|cpu| *cpu != decides);
        let row = |by: Quantity| move |pair| pair_row(cell, by, pair);
        let by_cpu = besides.into_iter().flat_map(|cpu| cell.cpu_pairs.iter().map(row(cpu)));
        cell.pairs.iter().map(row(decides)).chain(by_cpu).collect()
    };
    analysis.cells.iter().flat_map(of_cell).collect()
}

fn pair_row(cell: &CellAnalysis, by: Quantity, pair: &PairContrast) -> Value {
    let own = [
        named! { by: by },
        fields!(Some(pair); first second n ratio),
        simultaneous(pair.simultaneous),
    ];
    let source = Source::new(&cell.cell, own.concat());
    object(source.named(&columns::of(Kind::Pairs, cell.cell.study()).named))
}

//! An arm in a cell: its figures, and what was found against the baseline.

use std::borrow::Cow;

use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Interval, PairContrast, Quantity,
};
use serde_json::{Value, json};

use super::{Record, axes, in_units, rate_of, servers, tuning};
use crate::calls::bytes_of;
use crate::copying::start_of;
use crate::named::{Named, fields, named, object, prefixed};

/// One row per arm and cell.
pub(crate) fn cells<'a>(run: &'a Run, analysis: &'a Analysis) -> impl Iterator<Item = Record> {
    analysis
        .cells
        .iter()
        .flat_map(move |cell| cell.arms.iter().map(move |arm| row(run, analysis, cell, arm)))
}

fn row(run: &Run, analysis: &Analysis, cell: &CellAnalysis, arm: &ArmAnalysis) -> Record {
    let mut whole = Vec::new();
    let figures = match cell.cell.study() {
        Study::Syscall => of_calls(run, &cell.cell, arm),
        Study::Server => servers::figures(arm),
        study @ (Study::File | Study::Write) => of_files(arm, study),
        Study::Copy => {
            let start = start_of(&run.header, &analysis.told, &arm.arm.primitive);
            let start = fields!(start.as_ref(); median_ns min_ns max_ns);
            [of_files(arm, Study::Copy), prefixed("start_", start)].concat()
        }
        Study::Net => {
            let histogram = arm.latency.as_ref().map(|latency| &latency.histogram);
            whole = named! { latency_histogram: histogram };
            [of_messages(arm), tuning(&cell.cell), multishot_and_cost(arm)].concat()
        }
    };
    Record::new(run, [judgement(run, cell, arm), figures].concat(), whole)
}

/// A value and the ends of its interval; the unit ends the names.
pub(super) fn estimate(name: &str, unit: &str, estimate: Option<Estimate>) -> Named {
    let value = (Cow::Owned(format!("{name}{unit}")), json!(estimate.map(|e| e.value)));
    let interval = ends(name, unit, estimate.and_then(|e| e.interval));
    std::iter::once(value).chain(interval).collect()
}

fn ends(name: &str, unit: &str, interval: Option<Interval>) -> Named {
    let end =
        |which, value: Option<f64>| (Cow::Owned(format!("{name}_{which}{unit}")), json!(value));
    vec![end("low", interval.map(|i| i.low)), end("high", interval.map(|i| i.high))]
}

/// A ratio with the interval by itself, and the one that holds for all together.
fn ratio(prefix: &str, contrast: Option<&Contrast>) -> Named {
    let columns: [Named; 3] = [
        named! { ratio: contrast.map(|c| c.ratio) },
        ends("ratio", "", contrast.and_then(|c| c.pointwise)),
        ends("ratio_simultaneous", "", contrast.and_then(|c| c.simultaneous)),
    ];
    prefixed(prefix, columns.concat())
}

/// CPU time against the baseline's.
pub(super) fn cost(arm: &ArmAnalysis) -> Named {
    ratio("cpu_", arm.cpu_contrast.as_ref())
}

/// Which arm in which cell, and what was found against the baseline.
fn judgement(run: &Run, cell: &CellAnalysis, arm: &ArmAnalysis) -> Named {
    let plan = &run.header.plan;
    let contrast = arm.contrast.as_ref();
    // A quick run has no verdicts, in an export either.
    let judged = contrast.filter(|_| !plan.quick);
    let n = contrast.map(|c| c.n).or(arm.time().map(|time| time.n));
    [
        named! { run: run.header.id, study: plan.study().word(), arm: arm.arm.label },
        fields!(Some(&arm.arm); primitive role),
        axes(&cell.cell),
        named! { status: arm.status.word(), reason: arm.reason, baseline: plan.baseline },
        fields!(Some(cell); trials_started trials_used),
        named! { n: n },
        ratio("", contrast),
        named! {
            ratio_sd_ln: contrast.and_then(|c| c.sd_ln),
            total_ratio: contrast.map(|c| c.total_ratio.value),
            tail: contrast.map(|c| c.tail),
            delta: plan.delta,
            indicative: plan.quick,
            verdict: judged.map(|c| c.verdict.word()),
            verdict_reason: judged.map(|c| crate::remarks::reason(&c.reason)),
            trials_needed: contrast.and_then(|c| c.trials_needed),
            isolated_ratio: arm.isolated.as_ref().map(|c| c.ratio),
        },
    ]
    .concat()
}

/// Columns that are called as the figures are.
macro_rules! values {
    ($arm:expr; $($name:ident)+) => {{
        let arm: &ArmAnalysis = $arm;
        named! { $($name: arm.figure(|f| f.$name).map(|e| e.value)),+ }
    }};
}

fn of_calls(run: &Run, cell: &Cell, arm: &ArmAnalysis) -> Named {
    let call = arm.time();
    let rate = call.map(|call| 1e9 / call.value);
    let bytes = bytes_of(run, cell, &arm.arm.primitive).filter(|&bytes| bytes > 0);
    let mib = rate.zip(bytes).map(|(rate, bytes)| rate * bytes as f64 / f64::from(1 << 20));
    let further: Named = values!(arm;
        tx_calls_per_message tx_cpu_ns_per_message cycles_per_message instructions_per_message
        context_switches_per_message run_delay_ns_per_message
    );
    [
        in_units(estimate("ns_per_message", "", call), Study::Syscall),
        named! { calls_per_s: rate, mib_per_s: mib },
        in_units(further, Study::Syscall),
    ]
    .concat()
}

fn of_files(arm: &ArmAnalysis, study: Study) -> Named {
    let rate = arm.figure(|f| f.read_bytes_per_s);
    let columns: [Named; 3] = [
        estimate(rate_of(study), "_bytes_per_s", rate),
        estimate("ns_per_message", "", arm.time()),
        values!(arm;
            device_share ns_per_byte tx_cpu_ns_per_byte tx_calls_per_message
            context_switches_per_message run_delay_ns_per_message cycles_per_byte
            l1d_misses_per_kib llc_references_per_kib llc_misses_per_kib softirq_ns_per_byte
        ),
    ];
    in_units(columns.concat(), study)
}

fn of_messages(arm: &ArmAnalysis) -> Named {
    let goodput = arm.figure(|f| f.goodput_bits_per_s);
    let zerocopy = arm.zerocopy.as_ref();
    [
        estimate("goodput", "_bits_per_s", goodput),
        estimate("ns_per_message", "", arm.time()),
        values!(arm;
            ns_per_byte tx_cpu_ns_per_byte rx_cpu_ns_per_byte tx_calls_per_message
            context_switches_per_message cycles_per_byte tx_cycles_per_byte rx_cycles_per_byte
            l1d_misses_per_kib llc_references_per_kib llc_misses_per_kib softirq_ns_per_byte
        ),
        fields!(Some(arm); copies_sender copies_end_to_end),
        prefixed("zerocopy_", fields!(zerocopy; sends completions copied_share enobufs)),
        latency(arm),
        values!(arm;
            branch_misses_per_kib dtlb_misses_per_kib stalled_frontend_per_cycle
            stalled_backend_per_cycle run_delay_ns_per_message tx_messages_per_call
            tx_segments_per_message voluntary_switches_per_message involuntary_switches_per_message
        ),
        named! { rx_mapped_share: arm.mapped_share },
        prefixed("zerocopy_", fields!(zerocopy; notifications_per_send)),
    ]
    .concat()
}

fn multishot_and_cost(arm: &ArmAnalysis) -> Named {
    let multishot = arm.multishot;
    let counts = named! {
        rx_rearms: multishot.map(|m| m.rearms),
        rx_ring_enobufs: multishot.map(|m| m.enobufs),
    };
    [counts, cost(arm)].concat()
}

/// Times of an arm's requests.
pub(super) fn latency(arm: &ArmAnalysis) -> Named {
    let latency = arm.latency.as_ref();
    [
        named! {
            latency_samples: latency.map(|l| l.samples),
            latency_mean_ns: latency.map(|l| l.mean_ns.value),
        },
        estimate("latency_p50", "_ns", latency.and_then(|l| l.p50_ns)),
        estimate("latency_p99", "_ns", latency.and_then(|l| l.p99_ns)),
        named! { latency_p999_ns: latency.and_then(|l| l.p999_ns).map(|e| e.value) },
    ]
    .concat()
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
    let columns = [
        axes(&cell.cell),
        tuning(&cell.cell),
        named! { by: by },
        fields!(Some(pair); first second n ratio),
        ends("ratio_simultaneous", "", pair.simultaneous),
    ];
    object(columns.concat())
}

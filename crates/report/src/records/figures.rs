//! What was found of an arm of `net` in a cell: columns of figures and times.

use iolens_stats::analysis::{ArmAnalysis, Estimate, Figures};
use serde_json::json;

use super::{Named, fixed, high, low};

pub(super) fn latency(arm: &ArmAnalysis) -> Named {
    let latency = arm.latency.as_ref();
    let (p50, p99) = (latency.and_then(|l| l.p50_ns), latency.and_then(|l| l.p99_ns));
    let value = |estimate: Option<Estimate>| json!(estimate.map(|e| e.value));
    let interval = |estimate: Option<Estimate>| estimate.and_then(|e| e.interval);
    fixed([
        ("latency_samples", json!(latency.map(|l| l.samples))),
        ("latency_mean_ns", value(latency.map(|l| l.mean_ns))),
        ("latency_p50_ns", value(p50)),
        ("latency_p50_low_ns", low(interval(p50))),
        ("latency_p50_high_ns", high(interval(p50))),
        ("latency_p99_ns", value(p99)),
        ("latency_p99_low_ns", low(interval(p99))),
        ("latency_p99_high_ns", high(interval(p99))),
        ("latency_p999_ns", value(latency.and_then(|l| l.p999_ns))),
    ])
}

/// Columns that are called as the figures are.
macro_rules! values {
    ($figures:expr; $($name:ident)+) => {{
        let figures: Option<&Figures> = $figures;
        fixed([$((stringify!($name), json!(figures.and_then(|f| f.$name).map(|e| e.value)))),+])
    }};
}

pub(super) fn figures(arm: &ArmAnalysis) -> Named {
    let figures = arm.figures.as_ref();
    let goodput = figures.and_then(|f| f.goodput_bits_per_s);
    let message = figures.map(|f| f.ns_per_message);
    let interval = |estimate: Option<Estimate>| estimate.and_then(|e| e.interval);
    let value = |estimate: Option<Estimate>| json!(estimate.map(|e| e.value));
    let mut columns = fixed([
        ("goodput_bits_per_s", value(goodput)),
        ("goodput_low_bits_per_s", low(interval(goodput))),
        ("goodput_high_bits_per_s", high(interval(goodput))),
        ("ns_per_message", value(message)),
        ("ns_per_message_low", low(interval(message))),
        ("ns_per_message_high", high(interval(message))),
    ]);
    columns.extend(values!(figures;
        ns_per_byte tx_cpu_ns_per_byte rx_cpu_ns_per_byte tx_calls_per_message
        context_switches_per_message cycles_per_byte tx_cycles_per_byte rx_cycles_per_byte
        l1d_misses_per_kib llc_references_per_kib llc_misses_per_kib softirq_ns_per_byte
    ));
    columns
}

pub(super) fn later(arm: &ArmAnalysis) -> Named {
    values!(arm.figures.as_ref();
        branch_misses_per_kib dtlb_misses_per_kib stalled_frontend_per_cycle
        stalled_backend_per_cycle run_delay_ns_per_message tx_messages_per_call
        tx_segments_per_message voluntary_switches_per_message involuntary_switches_per_message
    )
}

//! The figures of a run of `net`, besides those that every study with sizes has.

use iolens_model::axes::WorkingSet;
use iolens_model::run::Run;
use iolens_stats::analysis::Estimate;

use crate::bounds::{of_memory, threads_at_most};
use crate::figure::chart::{self, Chart, MESSAGES, PAIRS, Panel};
use crate::figure::metric::{BySize, Metric, plain};
use crate::figure::sweep::Sweep;
use crate::figure::{Group, Plate};
use crate::words;

/// Received payload.
const GOODPUT: Metric = Metric {
    divisor: 1e9,
    judged: true,
    ..plain("Goodput", "Gbit/s", |arm| arm.figures.as_ref()?.goodput_bits_per_s)
};
/// Time over messages.
const TIME: Metric = Metric {
    judged: true,
    ..plain("Time per message", "ns", |arm| Some(arm.figures.as_ref()?.ns_per_message))
};
/// Speed relative to the baseline.
const RATIO: Metric = Metric {
    judged: true,
    ..plain("Speed relative to the baseline", "×", |arm| {
        let contrast = arm.contrast.as_ref()?;
        Some(Estimate { value: contrast.ratio, interval: contrast.pointwise, n: contrast.n })
    })
};
/// CPU time of the sending threads.
const TX_CPU: Metric = plain("Sender CPU", "ns/B", |arm| arm.figures.as_ref()?.tx_cpu_ns_per_byte);
/// CPU time of the receiving threads.
const RX_CPU: Metric =
    plain("Receiver CPU", "ns/B", |arm| arm.figures.as_ref()?.rx_cpu_ns_per_byte);
/// Time in softirq.
const SOFTIRQ: Metric = plain("Softirq", "ns/B", |arm| arm.figures.as_ref()?.softirq_ns_per_byte);
/// Cycles of the sending end.
const TX_CYCLES: Metric =
    plain("Sender", "cycles/B", |arm| arm.figures.as_ref()?.tx_cycles_per_byte);
/// Cycles of the receiving end.
const RX_CYCLES: Metric =
    plain("Receiver", "cycles/B", |arm| arm.figures.as_ref()?.rx_cycles_per_byte);
/// Cycles of both ends.
const CYCLES: Metric =
    plain("Cycles of both ends", "cycles/B", |arm| arm.figures.as_ref()?.cycles_per_byte);
/// First-level misses.
const L1D_MISSES: Metric =
    plain("L1d misses", "per KiB", |arm| arm.figures.as_ref()?.l1d_misses_per_kib);
/// Last-level misses.
const LLC_MISSES: Metric =
    plain("LLC misses", "per KiB", |arm| arm.figures.as_ref()?.llc_misses_per_kib);
/// Last-level references.
const LLC_REFERENCES: Metric =
    plain("LLC references", "per KiB", |arm| arm.figures.as_ref()?.llc_references_per_kib);
/// Context switches of both ends.
const SWITCHES: Metric = plain("Context switches", "per message", |arm| {
    arm.figures.as_ref()?.context_switches_per_message
});
/// Median round trip.
const P50: Metric = Metric {
    divisor: 1e3,
    ..plain("Round trip, median", "µs", |arm| arm.latency.as_ref()?.p50_ns)
};
/// 99th percentile of the round trip.
const P99: Metric = Metric {
    divisor: 1e3,
    ..plain("Round trip, 99th percentile", "µs", |arm| arm.latency.as_ref()?.p99_ns)
};

/// The bandwidths of a plain copy and of mere reading are its bounds.
const THROUGHPUT: BySize = BySize {
    group: Group::Main,
    stem: "goodput",
    what: "Throughput",
    unit: "Gbit/s",
    how: "; dashed: the same bytes copied once, and only read, without a kernel",
    metrics: &[GOODPUT],
};
const TIMES: BySize = BySize::one(Group::Main, "ns-per-message", &[TIME], "");
const CYCLES_PER_BYTE: BySize = BySize {
    group: Group::Time,
    stem: "cycles",
    what: "Cycles per byte",
    unit: "cycles/B",
    how: "; the sender's CPU also does receive work: compare sums; softirq is part of the other \
          panels too",
    metrics: &[TX_CYCLES, RX_CYCLES, SOFTIRQ],
};
/// Where no cycles were counted.
const CPU_TIME: BySize = BySize {
    stem: "cpu",
    what: "CPU time per byte",
    unit: "ns/B",
    metrics: &[TX_CPU, RX_CPU, SOFTIRQ],
    ..CYCLES_PER_BYTE
};
const OTHERS: [BySize; 3] = [
    BySize {
        group: Group::Time,
        stem: "cache-misses",
        what: "Cache misses and references",
        unit: "per KiB of payload, both ends",
        how: "",
        metrics: &[L1D_MISSES, LLC_REFERENCES, LLC_MISSES],
    },
    BySize {
        group: Group::Time,
        stem: "context-switches",
        what: "Context switches",
        unit: "per message, both ends",
        how: "; voluntary and involuntary together",
        metrics: &[SWITCHES],
    },
    BySize {
        group: Group::Latency,
        stem: "latency",
        what: "Round trip",
        unit: "µs, median and 99th percentile",
        how: "; closed loop: one request in flight per connection",
        metrics: &[P50, P99],
    },
];

/// One panel per size of each.
const BY_THREADS: [(Metric, &str, &str); 5] = [
    (GOODPUT, "goodput", "Goodput by thread count (Gbit/s of received payload)"),
    (TIME, TIMES.stem, "Time per message by thread count (ns, of all threads together)"),
    (P50, "latency-p50", "Median round trip by thread count (µs)"),
    (P99, "latency-p99", "99th percentile of the round trip by thread count (µs)"),
    (SWITCHES, "context-switches", "Context switches by thread count (per message, both ends)"),
];

/// On one page; LLC references have a figure of their own.
const SUMMARY: [Metric; 12] = [
    GOODPUT, TIME, RATIO, TX_CPU, RX_CPU, SOFTIRQ, CYCLES, L1D_MISSES, LLC_MISSES, SWITCHES, P50,
    P99,
];

const OWN_SCALES: &str = "; each panel has a scale of its own";

/// Every figure of a sweep.
pub(crate) fn all(sweep: &Sweep<'_>) -> Vec<Plate> {
    let mut plates: Vec<Plate> =
        [throughput(sweep), TIMES.with_fits(sweep), cpu(sweep)].into_iter().flatten().collect();
    plates.extend(OTHERS.iter().filter_map(|shown| shown.figure(sweep)));
    plates.extend(by_threads(sweep));
    plates.extend(summary(sweep));
    plates
}

fn throughput(sweep: &Sweep<'_>) -> Option<Plate> {
    let mut chart = THROUGHPUT.chart(sweep);
    for (panel, curve) in chart.panels.iter_mut().zip(&sweep.curves) {
        let is_hot = sweep.setting.working_set() == Some(WorkingSet::Hot);
        panel.bounds = bounds(sweep.run, is_hot, curve.threads);
    }
    chart::share_scales(&mut chart.panels);
    THROUGHPUT.of(sweep, chart)
}

/// What one copy of the bytes allows, and what reading them once does, Gbit/s.
fn bounds(run: &Run, is_hot: bool, threads: u32) -> Vec<(f64, String)> {
    let by = words::threads(if threads == 1 { 1 } else { threads_at_most(run) });
    let bounds = of_memory(run, threads, is_hot).into_iter().rev();
    let bounds = bounds.map(|bound| {
        let bits = bound.bytes_per_s * 8e-9;
        let name = bound.name.replace("memory copy", "memcpy").replace("memory scan", "read only");
        (bits, format!("{name}, {by}: {bits:.0} Gbit/s"))
    });
    bounds.collect()
}

/// CPU time per byte, in cycles where they were counted.
fn cpu(sweep: &Sweep<'_>) -> Option<Plate> {
    let cells = sweep.cells();
    let is_counted = TX_CYCLES.is_in(&cells) || RX_CYCLES.is_in(&cells);
    let shown = if is_counted { CYCLES_PER_BYTE } else { CPU_TIME };
    let how = if SOFTIRQ.is_in(&cells) { shown.how } else { "" };
    BySize { how, ..shown }.figure(sweep)
}

/// Against the thread count, one panel per size; none with a single count.
fn by_threads(sweep: &Sweep<'_>) -> Vec<Plate> {
    if sweep.curves.len() < 2 {
        return Vec::new();
    }
    // A round trip has its time by itself.
    let is_rr = sweep.cells().iter().any(|cell| cell.cell.is_rr());
    let drawn = BY_THREADS.iter().filter(|(metric, stem, _)| {
        metric.is_in(&sweep.cells()) && !(is_rr && *stem == TIMES.stem)
    });
    let figures = drawn.filter_map(|(metric, stem, title)| {
        let sizes = sweep.by_size().into_iter();
        let panels = sizes
            .map(|(size, cells)| metric.panel(sweep.run, PAIRS, &cells, size.to_string()))
            .filter(Panel::has_values);
        let chart = Chart { columns: 4, ..Chart::new(sweep.run, PAIRS, panels.collect()) };
        let stem = format!("{stem}-by-threads");
        sweep.figure(Group::Threads, &stem, [title, OWN_SCALES], chart)
    });
    figures.collect()
}

/// All metrics of the middle size against the thread count where there are several, else of
/// the thread count against the size.
fn summary(sweep: &Sweep<'_>) -> Option<Plate> {
    let (along, by, fixed, cells) = match sweep.curves.as_slice() {
        [only] => (MESSAGES, "message size", only.title.clone(), only.cells.clone()),
        _ => {
            let mut sizes = sweep.by_size();
            let (size, cells) = sizes.swap_remove(sizes.len() / 2);
            (PAIRS, "thread count", size.to_string(), cells)
        }
    };
    let measured = SUMMARY.iter().filter(|metric| metric.is_in(&cells));
    let panels: Vec<Panel> = measured
        .map(|metric| metric.panel(sweep.run, along, &cells, metric.name.to_owned()))
        .collect();
    let title = format!("Summary at {fixed} by {by} (units above each panel)");
    let stem = format!("summary-{}", fixed.to_lowercase().replace(' ', ""));
    let chart = Chart::new(sweep.run, along, panels);
    let chart = Chart { panels_by: "metric", columns: 3, ..chart };
    sweep.figure(Group::Summary, &stem, [&title, OWN_SCALES], chart)
}

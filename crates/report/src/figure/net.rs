//! The figures of a run of `net`, besides those that every study with sizes has.

use iolens_model::axes::WorkingSet;

use super::chart::{MESSAGES, PAIRS};
use super::metric::*;
use super::*;
use crate::bounds::of_memory;

/// The bandwidths of a plain copy and of mere reading are its bounds.
const THROUGHPUT: BySize = BySize {
    group: Group::Main,
    stem: "goodput",
    what: "Throughput",
    unit: "Gbit/s",
    how: "; dashed: the same bytes copied once, and only read, without a kernel",
    metrics: &[GOODPUT],
};
const TIMES: BySize = BySize {
    group: Group::Main,
    stem: "ns-per-message",
    what: "Time per message",
    unit: "ns",
    how: "",
    metrics: &[TIME],
};
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
const BY_THREADS: [(Metric, &str, &str); 4] = [
    (GOODPUT, "goodput", "Goodput by thread count (Gbit/s of received payload)"),
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
pub(super) fn all(sweep: &Sweep<'_>) -> Vec<Figure> {
    let mut figures: Vec<Figure> =
        [throughput(sweep), TIMES.with_fits(sweep), cpu(sweep)].into_iter().flatten().collect();
    figures.extend(OTHERS.iter().filter_map(|shown| shown.figure(sweep)));
    figures.extend(by_threads(sweep));
    figures.extend(summary(sweep));
    figures
}

fn throughput(sweep: &Sweep<'_>) -> Option<Figure> {
    let mut chart = THROUGHPUT.chart(sweep)?;
    let set = sweep.setting.working_set()?;
    for (panel, curve) in chart.panels.iter_mut().zip(&sweep.curves) {
        panel.bounds = bounds(sweep.run, set, curve.threads);
    }
    chart::share_scales(&mut chart.panels);
    THROUGHPUT.of(sweep, chart)
}

/// What one copy of the bytes allows, and what reading them once does, Gbit/s.
fn bounds(run: &Run, set: WorkingSet, threads: u32) -> Vec<(f64, String)> {
    let by = words::threads(if threads == 1 { 1 } else { run.header.calibration.threads });
    let bounds = of_memory(run, threads, set == WorkingSet::Hot).into_iter().rev();
    let bounds = bounds.map(|bound| {
        let bits = bound.bytes_per_s * 8e-9;
        let name = bound.name.replace("memory copy", "memcpy").replace("memory scan", "read only");
        (bits, format!("{name}, {by}: {bits:.0} Gbit/s"))
    });
    bounds.collect()
}

/// CPU time per byte, in cycles where they were counted.
fn cpu(sweep: &Sweep<'_>) -> Option<Figure> {
    let cells = sweep.cells();
    let is_counted = TX_CYCLES.is_in(&cells) || RX_CYCLES.is_in(&cells);
    let shown = if is_counted { CYCLES_PER_BYTE } else { CPU_TIME };
    let how = if SOFTIRQ.is_in(&cells) { shown.how } else { "" };
    BySize { how, ..shown }.figure(sweep)
}

/// Against the thread count, one panel per size; none with a single count.
fn by_threads(sweep: &Sweep<'_>) -> Vec<Figure> {
    if sweep.curves.len() < 2 {
        return Vec::new();
    }
    let drawn = BY_THREADS.iter().filter(|(metric, ..)| metric.is_in(&sweep.cells()));
    let figures = drawn.filter_map(|(metric, stem, title)| {
        let sizes = sweep.by_size().into_iter();
        let panels = sizes
            .map(|(size, cells)| metric.panel(sweep.run, PAIRS, &cells, size.to_string()))
            .filter(Panel::has_values);
        let chart = sweep.chart(PAIRS, title, OWN_SCALES, panels.collect());
        let chart = Chart { panels_by: "size", columns: 4, ..chart };
        sweep.figure(Group::Threads, &format!("{stem}-by-threads"), chart)
    });
    figures.collect()
}

/// All metrics of the middle size against the thread count where there are several, else of
/// the thread count against the size.
fn summary(sweep: &Sweep<'_>) -> Option<Figure> {
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
    let chart = sweep.chart(along, &title, OWN_SCALES, panels);
    sweep.figure(Group::Summary, &stem, Chart { panels_by: "metric", columns: 3, ..chart })
}

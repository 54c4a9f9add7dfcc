//! Metrics that are drawn: how each is read from an arm, and the curves it
//! gives along sizes or along thread counts.

use super::*;
use crate::results::interval_text;

/// A metric of one arm.
#[derive(Clone, Copy)]
pub(crate) struct Metric {
    /// Name, as titles have it.
    pub(crate) name: &'static str,
    /// Unit of the drawn values.
    pub(crate) unit: &'static str,
    /// The stored unit over the drawn one.
    pub(crate) divisor: f64,
    /// The metric of an arm; null where it was not measured.
    pub(crate) read: fn(&ArmAnalysis) -> Option<Estimate>,
    /// Whether the arm's verdict is about this metric.
    pub(crate) judged: bool,
}

/// Declares a metric that no verdict is about.
pub(crate) const fn plain(
    name: &'static str,
    unit: &'static str,
    read: fn(&ArmAnalysis) -> Option<Estimate>,
) -> Metric {
    Metric { name, unit, divisor: 1.0, read, judged: false }
}

/// Received payload.
pub(crate) const GOODPUT: Metric = Metric {
    divisor: 1e9,
    judged: true,
    ..plain("Goodput", "Gbit/s", |arm| arm.figures.as_ref()?.goodput_bits_per_s)
};
/// Bytes of a file.
pub(crate) const READ_GIB: Metric = Metric {
    divisor: Bytes::GIB as f64,
    judged: true,
    ..plain("Rate", "GiB/s", |arm| arm.figures.as_ref()?.read_bytes_per_s)
};
/// The same where the typical one is below one GiB/s.
pub(crate) const READ_MIB: Metric =
    Metric { divisor: Bytes::MIB as f64, unit: "MiB/s", ..READ_GIB };
/// Time over blocks.
pub(crate) const BLOCK_TIME: Metric = Metric { name: "Time per block", ..TIME };
/// Time over whole files.
pub(crate) const COPY_TIME: Metric =
    Metric { name: "Duration of a copy", unit: "ms", divisor: 1e6, ..TIME };
/// CPU time of the threads that read.
pub(crate) const READ_CPU: Metric = Metric { name: "CPU", ..TX_CPU };
/// Time over messages.
pub(crate) const TIME: Metric = Metric {
    judged: true,
    ..plain("Time per message", "ns", |arm| Some(arm.figures.as_ref()?.ns_per_message))
};
/// Speed relative to the baseline.
pub(crate) const RATIO: Metric = Metric {
    judged: true,
    ..plain("Speed relative to the baseline", "×", |arm| {
        let contrast = arm.contrast.as_ref()?;
        Some(Estimate { value: contrast.ratio, interval: contrast.pointwise, n: contrast.n })
    })
};
/// CPU time of the sending threads.
pub(crate) const TX_CPU: Metric =
    plain("Sender CPU", "ns/B", |arm| arm.figures.as_ref()?.tx_cpu_ns_per_byte);
/// CPU time of the receiving threads.
pub(crate) const RX_CPU: Metric =
    plain("Receiver CPU", "ns/B", |arm| arm.figures.as_ref()?.rx_cpu_ns_per_byte);
/// Time in softirq.
pub(crate) const SOFTIRQ: Metric =
    plain("Softirq", "ns/B", |arm| arm.figures.as_ref()?.softirq_ns_per_byte);
/// Cycles of the sending end.
pub(crate) const TX_CYCLES: Metric =
    plain("Sender", "cycles/B", |arm| arm.figures.as_ref()?.tx_cycles_per_byte);
/// Cycles of the receiving end.
pub(crate) const RX_CYCLES: Metric =
    plain("Receiver", "cycles/B", |arm| arm.figures.as_ref()?.rx_cycles_per_byte);
/// Cycles of both ends.
pub(crate) const CYCLES: Metric =
    plain("Cycles of both ends", "cycles/B", |arm| arm.figures.as_ref()?.cycles_per_byte);
/// First-level misses.
pub(crate) const L1D_MISSES: Metric =
    plain("L1d misses", "per KiB", |arm| arm.figures.as_ref()?.l1d_misses_per_kib);
/// Last-level misses.
pub(crate) const LLC_MISSES: Metric =
    plain("LLC misses", "per KiB", |arm| arm.figures.as_ref()?.llc_misses_per_kib);
/// Last-level references.
pub(crate) const LLC_REFERENCES: Metric =
    plain("LLC references", "per KiB", |arm| arm.figures.as_ref()?.llc_references_per_kib);
/// Context switches of both ends.
pub(crate) const SWITCHES: Metric = plain("Context switches", "per message", |arm| {
    arm.figures.as_ref()?.context_switches_per_message
});
/// Median round trip.
pub(crate) const P50: Metric = Metric {
    divisor: 1e3,
    ..plain("Round trip, median", "µs", |arm| arm.latency.as_ref()?.p50_ns)
};
/// 99th percentile of the round trip.
pub(crate) const P99: Metric = Metric {
    divisor: 1e3,
    ..plain("Round trip, 99th percentile", "µs", |arm| arm.latency.as_ref()?.p99_ns)
};

impl Metric {
    /// Whether any compared arm of the cells has it.
    pub(crate) fn is_in(&self, cells: &[&CellAnalysis]) -> bool {
        let mut arms = cells.iter().flat_map(|cell| &cell.arms);
        arms.any(|arm| chart::is_compared(&arm.arm) && self.of(arm).is_some())
    }

    /// A number of a usable arm, in the drawn unit.
    pub(crate) fn of(&self, arm: &ArmAnalysis) -> Option<Estimate> {
        let found = (self.read)(arm).filter(|_| arm.status == Status::Ok);
        let Estimate { value, interval, n } = found.filter(|found| found.value.is_finite())?;
        let scaled = |value: f64| value / self.divisor;
        let interval = interval.map(|i| Interval { low: scaled(i.low), high: scaled(i.high) });
        Some(Estimate { value: scaled(value), interval, n })
    }

    /// A plot of it over cells that differ along one axis.
    pub(crate) fn panel(
        &self,
        run: &Run,
        along: Along,
        cells: &[&CellAnalysis],
        title: String,
    ) -> Panel {
        let point = |cell: &CellAnalysis, arm: &ArmAnalysis| {
            let found = self.of(arm)?;
            let text = interval_text(Some(found), 1.0);
            let said = format!("{text} {}", self.unit);
            let contrast = arm.contrast.as_ref().filter(|_| self.judged);
            let hover = hover(run, cell, arm, &said, found.n, contrast);
            let Estimate { value, interval, .. } = found;
            Some(Point { value, interval, text, hover, ..Point::default() })
        };
        let arms = chart::arms(cells).into_iter().filter(|arm| chart::is_compared(arm));
        let curves = arms.map(|arm| Series::of(arm, Kind::Curve, along, cells, point));
        // The baseline has no ratio, and a metric may belong to some arms.
        let curves = curves.filter(|series| !series.points.is_empty()).collect();
        Panel::new(title, format!("{}, log scale", self.unit), self.unit, curves)
    }
}

/// What a point says: arm, cell, value, trials, and the verdict where it is about this.
pub(crate) fn hover(
    run: &Run,
    cell: &CellAnalysis,
    arm: &ArmAnalysis,
    value: &str,
    n: u32,
    contrast: Option<&Contrast>,
) -> String {
    let (label, cell) = (arm.shown_label(), words::subject(&run.header, &cell.cell));
    let judged = contrast.filter(|_| !run.header.plan.quick);
    let verdict = judged.map(|contrast| format!(", {}", contrast.verdict.word()));
    format!("{label}, {cell}: {value}, n = {n}{}", verdict.unwrap_or_default())
}

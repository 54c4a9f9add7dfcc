//! CPU time per byte by size, split into sender, receiver and softirq; cycles
//! per byte instead where they were counted.

use iolens_model::run::Run;

use super::metric::{Metric, RX_CPU, RX_CYCLES, SOFTIRQ, TX_CPU, TX_CYCLES};
use super::{Figure, Group, Sweep, by_size};

/// The figure of one sweep.
pub(super) fn figure(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    let cells = sweep.cells();
    let counted = TX_CYCLES.is_in(&cells) || RX_CYCLES.is_in(&cells);
    let parts = if counted { [TX_CYCLES, RX_CYCLES, SOFTIRQ] } else { [TX_CPU, RX_CPU, SOFTIRQ] };
    let parts: Vec<Metric> = parts.into_iter().filter(|part| part.is_in(&cells)).collect();
    if parts.is_empty() {
        return None;
    }
    let (title, stem) = match counted {
        true => ("Cycles per byte by message size (cycles/B)", "cycles-by-size"),
        false => ("CPU time per byte by message size (ns/B)", "cpu-by-size"),
    };
    let charged = "; the sender's CPU also does receive work: compare sums; softirq is part of \
                   the other panels too";
    let charged = if parts.iter().any(|part| part.name == SOFTIRQ.name) { charged } else { "" };
    let panels = by_size::split(run, sweep, &parts);
    let mut chart = by_size::chart(run, sweep, title, charged, panels);
    chart.columns = parts.len();
    Some(sweep.figure(run, Group::Time, stem, chart))
}

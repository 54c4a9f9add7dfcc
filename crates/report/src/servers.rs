//! The study `server`: its models by what a request costs.

use iolens_model::arm::Role;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{CellAnalysis, Estimate};

use crate::number::{NONE, ratio};
use crate::results::interval_text;
use crate::table::{Column, Entry, Table};
use crate::words;

/// The models of a cell in the order of the plan.
pub(crate) fn by_cost(run: &Run, cell: &CellAnalysis) -> Table {
    let against = format!("× {} [95 %]", run.header.plan.baseline);
    let columns = vec![
        Column::left("model", ""),
        Column::left("time", "µs per request [95 %]"),
        Column::left("rate", &against),
        Column::left("server CPU", "µs per request"),
        Column::right("switches", "per request"),
    ];
    let subject = words::subject(&run.header, &cell.cell);
    let mut table = Table::new(format!("Models: {subject}"), columns);
    for arm in cell.arms.iter().filter(|arm| arm.arm.role != Role::SelfCheck) {
        let Some(figures) = &arm.figures else { continue };
        let contrast = arm.contrast.as_ref().map(|contrast| {
            let interval = contrast
                .pointwise
                .map_or_else(String::new, |i| format!(" [{}, {}]", ratio(i.low), ratio(i.high)));
            format!("{}{interval}", ratio(contrast.ratio))
        });
        let value = |estimate: Option<Estimate>, scale: f64| {
            estimate.map_or_else(|| NONE.to_owned(), |e| three_digits(e.value * scale))
        };
        let entries: Vec<Entry> = vec![
            arm.shown_label().into(),
            interval_text(Some(figures.ns_per_message), 1e-3).into(),
            contrast.unwrap_or_else(|| NONE.to_owned()).into(),
            value(figures.tx_cpu_ns_per_message, 1e-3).into(),
            value(figures.context_switches_per_message, 1.0).into(),
        ];
        table.push(entries);
    }
    table
}

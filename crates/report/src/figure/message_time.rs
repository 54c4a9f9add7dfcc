//! Time per message by size, with the fit a + b·n where a curve is affine.

use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, CellAnalysis, CostModel};

use super::chart::{self, Kind, Point, Series};
use super::metric::{BLOCK_TIME, Metric, TIME};
use super::{Figure, Group, Sweep, by_size, style};
use crate::{number, words};

/// The figure of one sweep.
pub(super) fn figure(run: &Run, analysis: &Analysis, sweep: &Sweep<'_>) -> Option<Figure> {
    let title = "Time per message by message size (ns)";
    of_metric(run, analysis, sweep, (&TIME, title, "ns-per-message-by-size"))
}

/// The same of the blocks of a file.
pub(super) fn of_blocks(run: &Run, analysis: &Analysis, sweep: &Sweep<'_>) -> Option<Figure> {
    let title = "Time per block by block size (ns)";
    of_metric(run, analysis, sweep, (&BLOCK_TIME, title, "ns-per-block-by-size"))
}

fn of_metric(
    run: &Run,
    analysis: &Analysis,
    sweep: &Sweep<'_>,
    (metric, title, stem): (&Metric, &str, &str),
) -> Option<Figure> {
    if !metric.is_in(&sweep.cells()) {
        return None;
    }
    let mut panels = by_size::panels(run, sweep, metric);
    let mut notes = Vec::new();
    for (panel, (_, cells)) in panels.iter_mut().zip(&sweep.curves) {
        let Some(first) = cells.first() else { continue };
        let curve = first.cell.curve();
        let of_curve = |model: &&CostModel| model.curve == curve;
        for model in analysis.cost_models.iter().filter(of_curve) {
            notes.push(note(model, &chart::shown(cells, &model.label)));
            panel.series.extend(line(model, cells).filter(|_| model.is_affine()));
        }
    }
    let dotted = match panels.iter().any(|p| p.series.iter().any(|s| s.kind == Kind::Model)) {
        true => "; dotted: the fit a + b·n, where no size is more than 10% off it",
        false => "",
    };
    let chart = by_size::chart(run, sweep, title, dotted, panels);
    let mut figure = sweep.figure(run, Group::Main, stem, chart);
    figure.table.notes = notes;
    Some(figure)
}

/// The fit between the smallest and the largest size of the arm.
fn line(model: &CostModel, cells: &[&CellAnalysis]) -> Option<Series> {
    const STEPS: u32 = 24;
    let has = |cell: &&&CellAnalysis| {
        chart::find(cell, &model.label).is_some_and(|arm| arm.status == Status::Ok)
    };
    let fits = |cell: &&&CellAnalysis| model.breaks_at.is_none_or(|end| cell.cell.size < end);
    let mut sizes = cells.iter().filter(has).filter(fits).map(|cell| cell.cell.size.0 as f64);
    let first = sizes.next()?;
    let last = sizes.next_back()?;
    let arm = chart::find(cells.first()?, &model.label)?;
    let point = |step: u32| {
        let x = first * (last / first).powf(f64::from(step) / f64::from(STEPS));
        Point {
            x,
            value: model.fixed_ns.value + model.per_byte_ns.value * x,
            interval: None,
            open: false,
            text: String::new(),
            hover: String::new(),
        }
    };
    Some(Series {
        label: model.label.clone(),
        look: style::of(&arm.arm.primitive),
        kind: Kind::Model,
        points: (0..=STEPS).map(point).collect(),
        missing: Vec::new(),
    })
}

/// The fit in words, below the table.
fn note(model: &CostModel, label: &str) -> String {
    let lead = format!("{label}, {}", words::threads(model.curve.threads));
    let residual = format!("{:+.0}% at {}", 100.0 * model.worst_residual, model.worst_at);
    if !model.is_affine() {
        return format!("{lead}: not affine, {residual} off the fit");
    }
    let at_most = if model.fixed_is_upper_bound { "at most " } else { "" };
    let half = number::bytes(model.half_size_bytes.value);
    let below = match model.breaks_at {
        Some(size) => format!(" below {size}"),
        None => String::new(),
    };
    format!(
        "{lead}: {at_most}{} ns + {} ns/B{below}, half of it fixed at {half}, {residual} at most",
        three_digits(model.fixed_ns.value),
        three_digits(model.per_byte_ns.value)
    )
}

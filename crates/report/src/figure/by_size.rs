//! Metrics by size, one panel or row of panels per thread count: what most figures of a
//! sweep are. Among them time, with the fit a + b·n where a curve is affine.

use super::*;

/// What a figure by size shows.
pub(super) struct BySize<'a> {
    pub(super) group: Group,
    /// The beginning of the middle of its file name.
    pub(super) stem: &'a str,
    /// What the title says, and the unit there.
    pub(super) what: &'a str,
    pub(super) unit: &'a str,
    /// How to read it, besides the intervals.
    pub(super) how: &'a str,
    /// A panel each, of those that were measured.
    pub(super) metrics: &'a [Metric],
}

impl BySize<'_> {
    /// The chart, without a panel where nothing of it was measured.
    pub(super) fn chart(&self, sweep: &Sweep<'_>) -> Chart {
        let plan = &sweep.run.header.plan;
        let along = Along::sizes(plan);
        let panels = sweep.panels(along, self.metrics);
        let columns = match self.metrics {
            [_] => 2,
            _ => panels.len() / sweep.curves.len(),
        };
        let title = format!("{} by {} ({})", self.what, words::size_of(plan), self.unit);
        Chart { columns, ..sweep.chart(along, &title, self.how, panels) }
    }

    /// The figure; null for a single size too, of which the ratio and the summary say it all.
    pub(super) fn figure(&self, sweep: &Sweep<'_>) -> Option<Figure> {
        (sweep.by_size().len() > 1).then(|| self.of(sweep, self.chart(sweep)))?
    }

    /// A figure of what its chart has become.
    pub(super) fn of(&self, sweep: &Sweep<'_>, chart: Chart) -> Option<Figure> {
        sweep.figure(self.group, &format!("{}-by-size", self.stem), chart)
    }

    /// Times, with their fits.
    pub(super) fn with_fits(&self, sweep: &Sweep<'_>) -> Option<Figure> {
        if sweep.by_size().len() < 2 {
            return None;
        }
        let mut chart = self.chart(sweep);
        let mut notes = Vec::new();
        for (panel, Curve { cells, .. }) in chart.panels.iter_mut().zip(&sweep.curves) {
            for model in sweep.models(cells) {
                notes.push(note(model, &chart::shown(cells, &model.label)));
                panel.series.extend(line(model, cells).filter(|_| model.is_affine()));
            }
        }
        let mut series = chart.panels.iter().flat_map(|panel| &panel.series);
        if series.any(|series| series.kind == Kind::Model) {
            chart.subtitle += "; dotted: the fit a + b·n, where no size is more than 10% off it";
        }
        let mut figure = self.of(sweep, chart)?;
        figure.table.notes = notes;
        Some(figure)
    }
}

impl<'a> Sweep<'a> {
    /// The fits of the arms of a curve.
    pub(super) fn models(&self, cells: &[&CellAnalysis]) -> impl Iterator<Item = &'a CostModel> {
        let curve = cells.first().map(|cell| cell.cell.curve());
        self.analysis.cost_models.iter().filter(move |model| Some(&model.curve) == curve.as_ref())
    }
}

/// The fit between the smallest and the largest size of the arm.
fn line(model: &CostModel, cells: &[&CellAnalysis]) -> Option<Series> {
    const STEPS: u32 = 24;
    let fitted = cells.iter().filter(|cell| {
        chart::find(cell, &model.label).is_some_and(|arm| arm.status == Status::Ok)
            && model.breaks_at.is_none_or(|end| cell.cell.size < end)
    });
    let mut sizes = fitted.map(|cell| cell.cell.size.0 as f64);
    let (first, last) = (sizes.next()?, sizes.next_back()?);
    let arm = chart::find(cells.first()?, &model.label)?;
    let points = (0..=STEPS).map(|step| {
        let x = first * (last / first).powf(f64::from(step) / f64::from(STEPS));
        let value = model.fixed_ns.value + model.per_byte_ns.value * x;
        Point { x, value, ..Point::default() }
    });
    Some(Series::new(&model.label, &arm.arm.primitive, Kind::Model, points.collect()))
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
    let below = model.breaks_at.map(|size| format!(" below {size}")).unwrap_or_default();
    format!(
        "{lead}: {at_most}{} ns + {} ns/B{below}, half of it fixed at {half}, {residual} at most",
        three_digits(model.fixed_ns.value),
        three_digits(model.per_byte_ns.value)
    )
}

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

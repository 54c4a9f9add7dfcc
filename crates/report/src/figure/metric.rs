//! Metrics that are drawn: how each is read from an arm, the curves it gives along an axis, and
//! its figure by size, what most figures of a sweep are. Among them time, with the fit a + b·n
//! where a curve is affine, and the ratio to the baseline, the main figure.

use std::borrow::Cow;

use iolens_model::arm::{Arm, Role};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, CostModel, Estimate, Interval, Verdict,
};

use super::chart::{self, Along, Chart, Kind, Panel, Point, Series};
use super::scale::Scale;
use super::sweep::{Curve, Sweep, sweeps};
use super::{Group, Plate, cheapest, crossover, style};
use crate::number::{self, InWords, interval_text};
use crate::parts::{self, Part};
use crate::{arms, words};

/// A metric of one arm.
#[derive(Clone, Copy)]
pub(crate) struct Metric {
    /// Name, as titles have it.
    pub(crate) name: &'static str,
    /// Unit of the drawn values.
    pub(crate) unit: &'static str,
    /// The stored unit over the drawn one.
    pub(crate) divisor: f64,
    /// The metric of an arm; `None` where it was not measured.
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
        let mut arms = arms::of_cells(cells);
        arms.any(|arm| arms::is_method(&arm.arm) && self.of(arm).is_some())
    }

    /// A number of a usable arm, in the drawn unit.
    pub(crate) fn of(&self, arm: &ArmAnalysis) -> Option<Estimate> {
        let found = (self.read)(arm).filter(|_| arm.status == Status::Ok);
        Some(found.filter(|found| found.value.is_finite())?.map(|value| value / self.divisor))
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
        let arms = chart::arms(cells).into_iter().filter(|arm| arms::is_method(arm));
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
    let verdict = judged.or_empty(|contrast| format!(", {}", contrast.verdict.word()));
    format!("{label}, {cell}: {value}, n = {n}{verdict}")
}

/// What a figure by size shows.
pub(crate) struct BySize<'a> {
    pub(crate) group: Group,
    /// The beginning of the middle of its file name.
    pub(crate) stem: &'a str,
    /// What the title says, and the unit there.
    pub(crate) what: &'a str,
    pub(crate) unit: &'a str,
    /// How to read it, besides the intervals.
    pub(crate) how: &'a str,
    /// A panel each, of those that were measured.
    pub(crate) metrics: &'a [Metric],
}

impl<'a> BySize<'a> {
    /// A figure of one metric, whose name and unit it has.
    pub(crate) const fn one(
        group: Group,
        stem: &'a str,
        metrics: &'a [Metric; 1],
        how: &'a str,
    ) -> BySize<'a> {
        BySize { group, stem, what: metrics[0].name, unit: metrics[0].unit, how, metrics }
    }

    /// The chart, without a panel where nothing of it was measured.
    pub(crate) fn chart(&self, sweep: &Sweep<'_>) -> Chart {
        let panels = sweep.panels(sweep.sizes, self.metrics);
        let columns = match self.metrics {
            [_] => 2,
            _ => panels.len() / sweep.curves.len(),
        };
        Chart { columns, ..Chart::new(sweep.run, sweep.sizes, panels) }
    }

    /// The figure; `None` for a single size too, of which the ratio and the summary say it all.
    pub(crate) fn figure(&self, sweep: &Sweep<'_>) -> Option<Plate> {
        (sweep.by_size().len() > 1).then(|| self.of(sweep, self.chart(sweep)))?
    }

    /// A figure of what its chart has become.
    pub(crate) fn of(&self, sweep: &Sweep<'_>, chart: Chart) -> Option<Plate> {
        let size = words::size_of(&sweep.run.header.plan);
        let title = format!("{} by {size} ({})", self.what, self.unit);
        sweep.figure(self.group, &format!("{}-by-size", self.stem), [&title, self.how], chart)
    }

    /// Times, with their fits.
    pub(crate) fn with_fits(&self, sweep: &Sweep<'_>) -> Option<Plate> {
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
        let how = match series.any(|series| series.kind == Kind::Model) {
            true => "; dotted: the fit a + b·n, where no size is more than 10% off it",
            false => "",
        };
        let mut plate = BySize { how, ..*self }.of(sweep, chart)?;
        plate.table.notes = notes;
        Some(plate)
    }
}

impl<'a> Sweep<'a> {
    /// One row per curve, one panel in it per metric that was measured; equal units share a
    /// scale.
    pub(crate) fn panels(&self, along: Along, metrics: &[Metric]) -> Vec<Panel> {
        let cells = self.cells();
        let measured = || metrics.iter().filter(|metric| metric.is_in(&cells));
        let panels = self.curves.iter().flat_map(|Curve { title, cells, .. }| {
            measured().map(move |metric| {
                let title = match metrics {
                    [_] => title.clone(),
                    _ => format!("{}, {title}", metric.name),
                };
                metric.panel(self.run, along, cells, title)
            })
        });
        let mut panels: Vec<Panel> = panels.collect();
        chart::share_scales(&mut panels);
        panels
    }

    /// The fits of the arms of a curve.
    pub(crate) fn models(&self, cells: &[&CellAnalysis]) -> impl Iterator<Item = &'a CostModel> {
        let curve = cells.first().map(|cell| cell.cell.curve());
        self.analysis.cost_models.iter().filter(move |model| Some(&model.curve) == curve.as_ref())
    }
}

/// The fit between the smallest and the largest size of the arm.
fn line(model: &CostModel, cells: &[&CellAnalysis]) -> Option<Series> {
    const STEPS: u32 = 24;
    let fitted = cells.iter().filter(|cell| {
        arms::labelled(cell, &model.label).is_some_and(|arm| arm.status == Status::Ok)
            && model.breaks_at.is_none_or(|end| cell.cell.size < end)
    });
    let mut sizes = fitted.map(|cell| cell.cell.size.0 as f64);
    let (first, last) = (sizes.next()?, sizes.next_back()?);
    let arm = arms::labelled(cells.first()?, &model.label)?;
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
    let below = model.breaks_at.or_empty(|size| format!(" below {size}"));
    format!(
        "{lead}: {at_most}{} ns + {} ns/B{below}, half of it fixed at {half}, {residual} at most",
        three_digits(model.fixed_ns.value),
        three_digits(model.per_byte_ns.value)
    )
}

/// Ratio to the baseline by message size: the main figure; `None` where nothing is compared.
pub(crate) fn ratios(sweep: &Sweep<'_>) -> Option<Plate> {
    if arms::is_alone(sweep.cells()) {
        return None;
    }
    let plan = &sweep.run.header.plan;
    let title = format!("Speed vs {} by {} (ratio)", plan.baseline, words::size_of(plan));
    let words = ["faster", "slower"];
    let (chart, how) = chart_of_ratios(sweep, sweep.sizes, |arm| arm.contrast.as_ref(), words);
    sweep.figure(Group::Main, "ratio-by-size", [&title, &how], chart)
}

/// The contrast of an arm that is drawn.
type Of = fn(&ArmAnalysis) -> Option<&Contrast>;

/// A plot for each curve, all with one scale, and how to read it: what is above the band and
/// what below.
pub(crate) fn chart_of_ratios(
    sweep: &Sweep<'_>,
    along: Along,
    of: Of,
    [above, below]: [&str; 2],
) -> (Chart, String) {
    let (run, delta) = (sweep.run, sweep.analysis.delta);
    let band = Interval { low: 1.0 / (1.0 + delta), high: 1.0 + delta };
    let panels = sweep.curves.iter().map(|Curve { title, cells, .. }| Panel {
        band: Some((band, format!("±δ = {}", number::percent(delta)))),
        ..Panel::new(
            title.clone(),
            "ratio, log scale".to_owned(),
            "ratio",
            ratios_of_arms(run, along, of, cells),
        )
    });
    let mut panels: Vec<Panel> = panels.collect();
    let extent = chart::extent(&panels).unwrap_or(band);
    let wide = Interval { low: extent.low.min(band.low), high: extent.high.max(band.high) };
    let scale = Scale::ratios(focus(wide, &panels));
    panels.iter_mut().for_each(|panel| panel.y = scale.clone());
    let is_outside =
        panels.iter().flat_map(Panel::points).any(|point| !scale.contains(point.value));
    let edge = if is_outside { "; numbers at an edge: off the scale" } else { "" };
    let open = if run.header.plan.quick { "" } else { "; hollow: undecided" };
    let how = format!("; above the grey band: {above}; below it: {below}{open}{edge}");
    (Chart { apart: 3.5, ..Chart::new(run, along, panels) }, how)
}

/// The range that is drawn: one arm at a tenth of the baseline must not press
/// all others into a line. Unless half of all points are there, what is below
/// ½ or above 4 leaves the plot, its value at the edge.
fn focus(extent: Interval, panels: &[Panel]) -> Interval {
    const SIDES: Interval = Interval { low: 0.5, high: 4.0 };
    let points = || panels.iter().flat_map(Panel::points);
    let few = |outside: &dyn Fn(f64) -> bool| {
        2 * points().filter(|point| outside(point.value)).count() < points().count()
    };
    let inside = points().filter(|point| SIDES.contains(point.value)).map(Point::drawn);
    let ends = inside.flat_map(|own| [own.low, own.high]).chain([1.0]);
    let Interval { low, high } = chart::hull(ends).unwrap_or(extent);
    Interval {
        low: if few(&|value| value < SIDES.low) { low.max(extent.low) } else { extent.low },
        high: if few(&|value| value > SIDES.high) { high.min(extent.high) } else { extent.high },
    }
}

fn ratios_of_arms(run: &Run, along: Along, of: Of, cells: &[&CellAnalysis]) -> Vec<Series> {
    let plan = &run.header.plan;
    let point = |cell: &CellAnalysis, arm: &ArmAnalysis| {
        let contrast = usable(arm, of)?;
        let text = number::contrast(contrast);
        Some(Point {
            value: contrast.ratio,
            interval: contrast.pointwise,
            open: !plan.quick && contrast.verdict == Verdict::Inconclusive,
            hover: hover(run, cell, arm, &text, contrast.n, Some(contrast)),
            text,
            ..Point::default()
        })
    };
    let curve = |arm: &Arm| match arm.role {
        Role::Compared => Some(Series::of(arm, Kind::Curve, along, cells, point)),
        Role::SelfCheck => {
            let curve = Series::of(arm, Kind::Noise, along, cells, point);
            Some(Series { label: "A/A".to_owned(), look: style::of("memcpy"), ..curve })
        }
        Role::Baseline | Role::Control => None,
    };
    let places = cells.iter().map(|cell| along.of(cell));
    let ones = places.map(|x| Point { x, value: 1.0, ..Point::default() }).collect();
    let baseline = Series::new(&plan.baseline, &plan.baseline, Kind::Baseline, ones);
    std::iter::once(baseline).chain(chart::arms(cells).into_iter().filter_map(curve)).collect()
}

/// What a usable arm is drawn by.
pub(crate) fn usable(arm: &ArmAnalysis, of: Of) -> Option<&Contrast> {
    of(arm).filter(|contrast| arm.status == Status::Ok && contrast.verdict.is_ranked())
}

/// The figures of a study with sizes: those beside each other, and of each sweep those that all
/// studies have and its own.
pub(crate) fn by_size(
    run: &Run,
    analysis: &Analysis,
    sizes: Along,
    own: fn(&Sweep<'_>) -> Vec<Plate>,
    beside: fn(&[Sweep<'_>]) -> Vec<Plate>,
) -> Vec<Plate> {
    let of = |sweeps: &[Sweep<'_>]| {
        let mut plates = beside(sweeps);
        for sweep in sweeps {
            let common = [crossover::figure, cheapest::figure, ratios];
            plates.extend(common.iter().filter_map(|plate| plate(sweep)));
            plates.extend(own(sweep));
        }
        plates
    };
    let parts = shown(analysis);
    parts.iter().flat_map(|(part, own)| of(&sweeps(run, own, sizes, part.as_ref()))).collect()
}

/// The parts of a run that have figures of their own, each with its analysis;
/// the whole run where one figure can show all arms.
fn shown(analysis: &Analysis) -> Vec<(Option<Part>, Cow<'_, Analysis>)> {
    let parts = parts::parts(analysis);
    if parts.is_empty() {
        return vec![(None, Cow::Borrowed(analysis))];
    }
    let own = parts.iter().map(|part| Cow::Owned(part.of(analysis))).collect::<Vec<_>>();
    parts.into_iter().map(Some).zip(own).collect()
}

//! Ratio to the baseline by message size: the main figure.

use iolens_model::arm::{Arm, Role};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};

use super::chart::{self, Along, Kind, Panel, Point, Series};
use super::metric::hover_lead;
use super::scale::Scale;
use super::{Figure, Group, Sweep, by_size, style};
use crate::{alone, number, words};

/// The figure of one sweep; null where nothing is compared.
pub(super) fn figure(run: &Run, analysis: &Analysis, sweep: &Sweep<'_>) -> Option<Figure> {
    if alone::is_alone(sweep.cells()) {
        return None;
    }
    let baseline = run.header.plan.baseline.as_str();
    let titled = sweep.curves.iter().map(|(n, cells)| (sweep.panel(run, *n), cells.as_slice()));
    let panels = panels(run, analysis.delta, Along::Sizes, titled);
    let size = words::size_of(&run.header.plan);
    let title = format!("Speed vs {baseline} by {size} (ratio)");
    let how = how_to_read(run, &panels, ["faster", "slower"]);
    let mut chart = by_size::chart(run, sweep, &title, &how, panels);
    chart.apart = 3.5;
    Some(sweep.figure(run, Group::Main, "ratio-by-size", chart))
}

/// A plot for each of these lists of cells with its title, all with one scale.
pub(super) fn panels<'a>(
    run: &Run,
    delta: f64,
    along: Along,
    titled: impl Iterator<Item = (String, &'a [&'a CellAnalysis])>,
) -> Vec<Panel> {
    let band = Interval { low: 1.0 / (1.0 + delta), high: 1.0 + delta };
    let one = |(title, cells): (String, &[&CellAnalysis])| Panel {
        title,
        y_name: "ratio, log scale".to_owned(),
        unit: "ratio",
        y: Scale::ratios(band),
        series: series(run, along, cells),
        bounds: Vec::new(),
        band: Some((band, format!("±δ = {}", number::percent(delta)))),
    };
    let mut panels: Vec<Panel> = titled.map(one).collect();
    let extent = chart::extent(&panels).unwrap_or(band);
    let wide = Interval { low: extent.low.min(band.low), high: extent.high.max(band.high) };
    let scale = Scale::ratios(focus(wide, &panels));
    panels.iter_mut().for_each(|panel| panel.y = scale.clone());
    panels
}

/// The range that is drawn: one arm at a tenth of the baseline must not press
/// all others into a line. Unless half of all points are there, what is below
/// ½ or above 4 leaves the plot, its value at the edge.
fn focus(extent: Interval, panels: &[Panel]) -> Interval {
    const SIDES: Interval = Interval { low: 0.5, high: 4.0 };
    let points = || panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
    let few = |outside: &dyn Fn(f64) -> bool| {
        2 * points().filter(|point| outside(point.value)).count() < points().count()
    };
    let inside = points().filter(|point| SIDES.contains(point.value));
    let own = |point: &Point| Interval { low: point.value, high: point.value };
    let usable = |point: &Point| point.interval.filter(Interval::is_usable);
    let ends = inside.map(|point| usable(point).unwrap_or(own(point)));
    let (lows, highs): (Vec<f64>, Vec<f64>) = ends.map(|end| (end.low, end.high)).unzip();
    let (low, high) = (lows.into_iter().fold(1.0, f64::min), highs.into_iter().fold(1.0, f64::max));
    Interval {
        low: if few(&|value| value < SIDES.low) { low.max(extent.low) } else { extent.low },
        high: if few(&|value| value > SIDES.high) { high.min(extent.high) } else { extent.high },
    }
}

pub(super) fn how_to_read(run: &Run, panels: &[Panel], [above, below]: [&str; 2]) -> String {
    let mut outside = panels.iter().flat_map(|panel| {
        panel.series.iter().flat_map(|s| &s.points).filter(|point| !panel.y.contains(point.value))
    });
    let edge = match outside.next() {
        Some(_) => "; numbers at an edge: off the scale",
        None => "",
    };
    let open = if run.header.plan.quick { "" } else { "; hollow: undecided" };
    format!("; above the grey band: {above}; below it: {below}{open}{edge}")
}

fn series(run: &Run, along: Along, cells: &[&CellAnalysis]) -> Vec<Series> {
    let baseline = run.header.plan.baseline.as_str();
    let one = |cell: &&CellAnalysis| Point {
        x: along.of(cell),
        value: 1.0,
        interval: None,
        open: false,
        text: String::new(),
        hover: String::new(),
    };
    let mut series = vec![Series {
        label: baseline.to_owned(),
        look: style::of(baseline),
        kind: Kind::Baseline,
        points: cells.iter().map(one).collect(),
        missing: Vec::new(),
    }];
    series.extend(chart::arms(cells).iter().filter_map(|arm| curve(run, along, cells, arm)));
    series
}

fn curve(run: &Run, along: Along, cells: &[&CellAnalysis], arm: &Arm) -> Option<Series> {
    let kind = match arm.role {
        Role::SelfCheck => Kind::Noise,
        Role::Compared => Kind::Curve,
        Role::Baseline | Role::Control => return None,
    };
    let points: Vec<Point> =
        cells.iter().filter_map(|cell| point(run, along, cell, &arm.label)).collect();
    let (label, look) = match kind {
        Kind::Noise => ("A/A".to_owned(), style::of("memcpy")),
        _ => (chart::shown(cells, &arm.label), style::of(&arm.primitive)),
    };
    let missing = chart::missing(along, cells, &arm.label, &points);
    Some(Series { label, look, kind, points, missing })
}

fn point(run: &Run, along: Along, cell: &CellAnalysis, label: &str) -> Option<Point> {
    let contrast = usable(chart::find(cell, label)?)?;
    let quick = run.header.plan.quick;
    let verdict = if quick { String::new() } else { format!(", {}", contrast.verdict.word()) };
    let text = number::contrast(contrast);
    Some(Point {
        x: along.of(cell),
        value: contrast.ratio,
        interval: contrast.pointwise,
        open: !quick && contrast.verdict == Verdict::Inconclusive,
        hover: format!("{}: {text}, n = {}{verdict}", hover_lead(run, cell, label), contrast.n),
        text,
    })
}

fn usable(arm: &ArmAnalysis) -> Option<&Contrast> {
    let usable = |c: &&Contrast| arm.status == Status::Ok && c.verdict.is_ranked();
    arm.contrast.as_ref().filter(usable)
}

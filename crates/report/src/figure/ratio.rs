//! Ratio to the baseline by message size: the main figure.

use iolens_stats::analysis::Verdict;

use super::metric::hover;
use super::*;

/// The figure of one sweep; null where nothing is compared.
pub(super) fn figure(sweep: &Sweep<'_>) -> Option<Figure> {
    if alone::is_alone(sweep.cells()) {
        return None;
    }
    let plan = &sweep.run.header.plan;
    let title = format!("Speed vs {} by {} (ratio)", plan.baseline, words::size_of(plan));
    let words = ["faster", "slower"];
    let chart = chart(sweep, Along::sizes(plan), |arm| arm.contrast.as_ref(), &title, words);
    sweep.figure(Group::Main, "ratio-by-size", chart)
}

/// The contrast of an arm that is drawn.
type Of = fn(&ArmAnalysis) -> Option<&Contrast>;

/// A plot for each curve, all with one scale; how it reads above the band and below.
pub(super) fn chart(
    sweep: &Sweep<'_>,
    along: Along,
    of: Of,
    title: &str,
    [above, below]: [&str; 2],
) -> Chart {
    let (run, delta) = (sweep.run, sweep.analysis.delta);
    let band = Interval { low: 1.0 / (1.0 + delta), high: 1.0 + delta };
    let panels = sweep.curves.iter().map(|Curve { title, cells, .. }| Panel {
        band: Some((band, format!("±δ = {}", number::percent(delta)))),
        ..Panel::new(
            title.clone(),
            "ratio, log scale".to_owned(),
            "ratio",
            series(run, along, of, cells),
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
    Chart { apart: 3.5, ..sweep.chart(along, title, &how, panels) }
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

fn series(run: &Run, along: Along, of: Of, cells: &[&CellAnalysis]) -> Vec<Series> {
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
pub(super) fn usable(arm: &ArmAnalysis, of: Of) -> Option<&Contrast> {
    of(arm).filter(|contrast| arm.status == Status::Ok && contrast.verdict.is_ranked())
}

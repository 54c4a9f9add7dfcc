//! Ratio to the baseline by message size: the main figure.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};

use super::chart::{CURVES_MAX, Chart, Kind, Panel, Point, Series};
use super::scale::Scale;
use super::{Family, Figure, file_stem, finish, hover_lead, style};
use crate::number::{self, NONE};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// The figure of one family of curves.
pub(super) fn figure(run: &Run, analysis: &Analysis, family: &Family<'_>) -> Figure {
    let baseline = run.header.plan.baseline.as_str();
    let delta = Interval { low: 1.0 / (1.0 + analysis.delta), high: 1.0 + analysis.delta };
    let panels: Vec<Panel> =
        family.curves.iter().map(|(threads, cells)| panel(run, *threads, cells)).collect();
    let extent = Chart::extent(&panels).unwrap_or(delta);
    let wide = Interval { low: extent.low.min(delta.low), high: extent.high.max(delta.high) };
    let y = Scale::ratios(focus(wide, &panels));
    let chart = Chart {
        title: format!("Speed relative to {baseline} by message size (ratio of ns per message)"),
        subtitle: subtitle(run, family, &y, &panels),
        y_name: "ratio, log scale".to_owned(),
        x: Scale::sizes(&super::chart::sizes(&panels)),
        y,
        caches: super::chart::caches(&run.header.host),
        band: Some((delta, format!("±δ = {}", number::percent(analysis.delta)))),
        panels,
        footer: words::footer(&run.header, &family.setting),
    };
    finish(file_stem(run, &family.setting, "ratio-by-size"), &chart, table(run, family))
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
    let ends = inside.map(|point| point.interval.unwrap_or(own(point)));
    let (lows, highs): (Vec<f64>, Vec<f64>) = ends.map(|end| (end.low, end.high)).unzip();
    let (low, high) = (lows.into_iter().fold(1.0, f64::min), highs.into_iter().fold(1.0, f64::max));
    Interval {
        low: if few(&|value| value < SIDES.low) { low.max(extent.low) } else { extent.low },
        high: if few(&|value| value > SIDES.high) { high.min(extent.high) } else { extent.high },
    }
}

fn subtitle(run: &Run, family: &Family<'_>, y: &Scale, panels: &[Panel]) -> String {
    let mut points = panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
    let edge = match points.any(|point| !y.contains(point.value)) {
        true => "; numbers at an edge: off the scale",
        false => "",
    };
    let open = if run.header.plan.quick { "" } else { "; hollow: inconclusive" };
    let omitted = super::chart::omitted(&family.cells(), CURVES_MAX - 1);
    format!(
        "above 1 is faster; whiskers and bands: pointwise 95 % intervals over trials{open}\
         {edge}{omitted}"
    )
}

fn panel(run: &Run, threads: u32, cells: &[&CellAnalysis]) -> Panel {
    let baseline = run.header.plan.baseline.as_str();
    let one = |cell: &&CellAnalysis| Point {
        bytes: cell.cell.message_bytes.0 as f64,
        value: 1.0,
        interval: None,
        open: false,
        hover: String::new(),
    };
    let mut series = vec![Series {
        label: baseline.to_owned(),
        look: style::of(baseline),
        kind: Kind::Baseline,
        points: cells.iter().map(one).collect(),
        missing: Vec::new(),
    }];
    let mut curves = 0;
    for arm in super::chart::arms(cells) {
        let kind = match arm.role {
            Role::SelfCheck => Kind::Noise,
            Role::Compared if curves < CURVES_MAX - 1 => {
                curves += 1;
                Kind::Curve
            }
            _ => continue,
        };
        let points: Vec<Point> =
            cells.iter().filter_map(|cell| point(run, cell, &arm.label)).collect();
        let missing = super::chart::missing(cells, &arm.label, &points);
        let (label, look) = match kind {
            Kind::Noise => ("A/A".to_owned(), style::of("memcpy")),
            _ => (arm.label.clone(), style::of(&arm.primitive)),
        };
        series.push(Series { label, look, kind, points, missing });
    }
    Panel { title: words::threads(threads), series, bound: None }
}

fn point(run: &Run, cell: &CellAnalysis, label: &str) -> Option<Point> {
    let contrast = usable(cell.arms.iter().find(|arm| arm.arm.label == label)?)?;
    let quick = run.header.plan.quick;
    let verdict = if quick { String::new() } else { format!(", {}", contrast.verdict.word()) };
    Some(Point {
        bytes: cell.cell.message_bytes.0 as f64,
        value: contrast.ratio,
        interval: contrast.pointwise,
        open: !quick && contrast.verdict == Verdict::Inconclusive,
        hover: format!(
            "{}: {}, n = {}{verdict}",
            hover_lead(run, &cell.cell, label),
            number::contrast(contrast),
            contrast.n
        ),
    })
}

fn usable(arm: &ArmAnalysis) -> Option<&Contrast> {
    let usable = |c: &&Contrast| arm.status == Status::Ok && c.verdict != Verdict::Invalid;
    arm.contrast.as_ref().filter(usable)
}

/// One row per size and thread count, one column per arm.
fn table(run: &Run, family: &Family<'_>) -> Table {
    let mut columns = vec![Column::right("size", ""), Column::right("threads", "")];
    let all = family.cells();
    let arms: Vec<_> = super::chart::arms(&all)
        .into_iter()
        .filter(|arm| matches!(arm.role, Role::Compared | Role::SelfCheck))
        .collect();
    columns.extend(arms.iter().map(|arm| Column::left(&arm.label, "ratio [95 %]")));
    let mut table = Table::new(
        format!("Ratio of ns per message to {}, above 1 faster", run.header.plan.baseline),
        columns,
    );
    for (i, cell) in all.iter().enumerate() {
        let mut row: Vec<Entry> =
            vec![cell.cell.message_bytes.to_string().into(), cell.cell.threads.to_string().into()];
        for arm in &arms {
            let found = cell.arms.iter().find(|other| other.arm.label == arm.label);
            row.push(match found.and_then(usable) {
                Some(contrast) => number::contrast(contrast).into(),
                None => Entry::toned(NONE, Tone::Faint),
            });
        }
        let first = i > 0 && cell.cell.threads != all[i - 1].cell.threads;
        if first { table.push_group(row) } else { table.push(row) }
    }
    table
}

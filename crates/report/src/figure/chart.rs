//! What a chart of curves says, before anything is drawn.

use iolens_document::table::{Column, Entry, Table, Tone};
use iolens_model::arm::Arm;
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::server::LoadLevel;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Interval};

use super::scale::Scale;
use super::style::{self, Look};
use crate::arms::{labelled, of_cells};
use crate::groups::first_of_each;
use crate::number::{self, NONE};

/// Small multiples that share their horizontal axis.
pub(crate) struct Chart {
    /// What the horizontal axis is.
    pub(crate) along: Along,
    /// Its scale.
    pub(crate) x: Scale,
    /// Cache sizes to mark on an axis of sizes: name and bytes.
    pub(crate) caches: Vec<(&'static str, f64)>,
    /// What tells the panels apart, as the table's column has it.
    pub(crate) panels_by: &'static str,
    /// The plots, row by row.
    pub(crate) panels: Vec<Panel>,
    /// How far apart points of one place stand.
    pub(crate) apart: f64,
    /// Panels in a row on a page.
    pub(crate) columns: usize,
}

/// The horizontal axis of a chart.
#[derive(Clone, Copy)]
pub(crate) struct Along {
    /// Name of the axis, which is logarithmic.
    pub(crate) name: &'static str,
    /// Name of the table's column.
    column: &'static str,
    /// What stands behind a place in words; where nothing does, the column's name is before it.
    unit: &'static str,
    /// Whether places are sizes in bytes.
    is_of_bytes: bool,
    /// How far apart points of one place stand, so that their whiskers can be
    /// read. Nothing on steep curves, where it would look like a difference.
    apart: f64,
    scale: fn(&[f64]) -> Scale,
    /// What tells the panels of most of its charts apart.
    panels_by: &'static str,
    /// Where a cell stands on it; `None` where a cell has many places.
    of: fn(&Cell) -> Option<f64>,
}

pub(crate) const MESSAGES: Along = Along {
    name: "message size, log scale",
    column: "size",
    unit: "",
    is_of_bytes: true,
    apart: 0.0,
    scale: Scale::sizes,
    panels_by: "panel",
    of: |cell| Some(cell.size.0 as f64),
};
/// Of a chart whose rows are all there is: none of its numbers belongs to a place.
pub(crate) const NOWHERE: Along =
    Along { name: "", column: "", unit: "", is_of_bytes: false, of: |_| None, ..MESSAGES };
pub(crate) const BLOCKS: Along =
    Along { name: "block size, log scale", column: "block size", ..MESSAGES };
pub(crate) const FILES: Along =
    Along { name: "file size, log scale", column: "file size", ..MESSAGES };
pub(crate) const THREADS: Along = Along {
    name: "threads, log scale",
    column: "threads",
    is_of_bytes: false,
    apart: 2.5,
    scale: Scale::counts,
    of: |cell| Some(cell.threads.into()),
    ..MESSAGES
};
/// Of threads at both ends.
pub(crate) const PAIRS: Along =
    Along { name: "thread pairs, log scale", panels_by: "size", ..THREADS };
/// In studies of calls.
pub(crate) const CALLS: Along = Along {
    name: "calls in a row, log scale",
    column: "calls in a row",
    apart: 0.0,
    of: |cell| Some(cell.syscall()?.in_a_row? as f64),
    ..THREADS
};
/// At a time.
pub(crate) const CONNECTIONS: Along = Along {
    name: "connections, log scale",
    column: "connections",
    panels_by: "load",
    of: |cell| Some(cell.server()?.connections.into()),
    ..CALLS
};
/// Share of what the slowest model takes, in percent.
pub(crate) const OFFERED: Along = Along {
    name: "offered, % of what the slowest takes, log scale",
    column: "offered (%)",
    unit: "% offered",
    panels_by: "load",
    of: |cell| match cell.server()?.load {
        LoadLevel::Percent(share) => Some(share.into()),
        LoadLevel::Closed | LoadLevel::Searched => None,
    },
    ..CALLS
};
/// Requests per second in a search.
pub(crate) const RATE: Along = Along {
    name: "requests per second offered, log scale",
    column: "offered (requests/s)",
    unit: " requests/s offered",
    panels_by: "connections",
    of: |_| None,
    scale: |places| Scale::values(hull(places.iter().copied()).unwrap_or(Scale::DECADE)),
    ..CALLS
};

impl Along {
    /// Where a cell stands on it.
    pub(crate) fn of(self, cell: &CellAnalysis) -> f64 {
        (self.of)(&cell.cell).unwrap_or(f64::NAN)
    }

    /// A place in words, such as `block size 4 KiB`.
    pub(crate) fn at(self, place: f64) -> String {
        match (self.unit, self.text(place)) {
            _ if self.column.is_empty() => String::new(),
            ("", text) => format!("{} {text}", self.column),
            (unit, text) => format!("{text}{unit}"),
        }
    }

    fn text(self, x: f64) -> String {
        if self.is_of_bytes { number::bytes(x).to_string() } else { x.to_string() }
    }
}

/// One plot.
pub(crate) struct Panel {
    /// What it shows that the others do not.
    pub(crate) title: String,
    /// Name of the value axis, with the unit.
    pub(crate) y_name: String,
    /// The unit alone, for the table.
    pub(crate) unit: &'static str,
    /// Values.
    pub(crate) y: Scale,
    /// Every curve.
    pub(crate) series: Vec<Series>,
    /// Bounds: value and label.
    pub(crate) bounds: Vec<(f64, String)>,
    /// Shaded range of values with its label.
    pub(crate) band: Option<(Interval, String)>,
}

/// A bound is drawn to scale up to so many times the highest value.
const BOUND_NEAR: f64 = 3.0;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With markers, whiskers and a band.
    Curve,
    /// A line without markers: what the others are compared with.
    Baseline,
    /// Thin: the noise floor.
    Noise,
    /// Dotted: a fitted line of the arm of that look.
    Model,
}

/// One curve.
pub(crate) struct Series {
    /// Direct label.
    pub(crate) label: String,
    /// Colour, marker, dash.
    pub(crate) look: Look,
    /// How it is drawn.
    pub(crate) kind: Kind,
    /// Points in the order of their places.
    pub(crate) points: Vec<Point>,
    /// Places at which the arm has no usable value, where the curve breaks, and why, in a word
    /// such as `failed`.
    pub(crate) missing: Vec<(f64, &'static str)>,
}

impl Series {
    /// A curve without gaps.
    pub(crate) fn new(label: &str, primitive: &str, kind: Kind, points: Vec<Point>) -> Series {
        let (label, look) = (label.to_owned(), style::of(primitive));
        Series { label, look, kind, points, missing: Vec::new() }
    }

    /// The curve of an arm over cells, in which it has such a point or none.
    pub(crate) fn of(
        arm: &Arm,
        kind: Kind,
        along: Along,
        cells: &[&CellAnalysis],
        point: impl Fn(&CellAnalysis, &ArmAnalysis) -> Option<Point>,
    ) -> Series {
        let (mut points, mut missing) = (Vec::new(), Vec::new());
        for cell in cells {
            let (x, own) = (along.of(cell), labelled(cell, &arm.label));
            match (own.and_then(|arm| point(cell, arm)), own.map(|arm| arm.status)) {
                (Some(point), _) => points.push(Point { x, ..point }),
                (None, Some(Status::Ok)) => missing.push((x, "n/a")),
                (None, status) => missing.push((x, status.map_or("", Status::word))),
            }
        }
        let label = shown(cells, &arm.label);
        Series { missing, ..Series::new(&label, &arm.primitive, kind, points) }
    }

    /// The points, cut where a value is missing.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = &[Point]> {
        self.points.chunk_by(|a, b| !self.missing.iter().any(|(gap, _)| a.x < *gap && *gap < b.x))
    }
}

/// One value.
#[derive(Default)]
pub(crate) struct Point {
    /// Where, on the horizontal axis.
    pub(crate) x: f64,
    /// Value.
    pub(crate) value: f64,
    /// Its interval.
    pub(crate) interval: Option<Interval>,
    /// Drawn hollow: nothing is concluded from it.
    pub(crate) open: bool,
    /// Value and interval as the table has them.
    pub(crate) text: String,
    /// What a hover says.
    pub(crate) hover: String,
}

impl Point {
    /// What a scale must have room for. An interval that says nothing is drawn to the edges,
    /// and makes no others small.
    pub(crate) fn drawn(&self) -> Interval {
        let usable = self.interval.filter(Interval::is_usable);
        usable.unwrap_or(Interval { low: self.value, high: self.value })
    }
}

impl Chart {
    pub(crate) fn new(run: &Run, along: Along, panels: Vec<Panel>) -> Chart {
        Chart {
            along,
            x: (along.scale)(&places(&panels)),
            caches: if along.is_of_bytes { caches(&run.header.host) } else { Vec::new() },
            panels_by: along.panels_by,
            panels,
            apart: along.apart,
            columns: 2,
        }
    }

    /// The place to which all its numbers belong, if that is one.
    pub(crate) fn only_place(&self) -> Option<f64> {
        let [place] = places(&self.panels)[..] else { return None };
        let mut gaps = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.missing);
        gaps.all(|(gap, _)| *gap == place).then_some(place)
    }

    /// The same numbers as a table: one row per panel and place, one column
    /// per curve. A panel is named in its first row.
    pub(crate) fn table(&self, caption: String) -> Table {
        let mut curves = self.named();
        curves.retain(|series| series.kind != Kind::Baseline);
        let mut units: Vec<&str> = self.panels.iter().map(|panel| panel.unit).collect();
        units.dedup();
        let unit = match units.as_slice() {
            [unit] => format!("{unit} [95%]"),
            _ => "[95%]".to_owned(),
        };
        let mut columns =
            vec![Column::left(self.panels_by, ""), Column::right(self.along.column, "")];
        columns.extend(curves.iter().map(|curve| Column::left(&curve.label, &unit)));
        let mut table = Table::new(caption, columns);
        for panel in &self.panels {
            let rows = places(std::slice::from_ref(panel)).into_iter().enumerate().map(|(i, x)| {
                let name = if i == 0 { panel.title.clone() } else { String::new() };
                let keys = [name.into(), self.along.text(x).into()].into_iter();
                keys.chain(curves.iter().map(|curve| panel.entry(&curve.label, x))).collect()
            });
            for (i, row) in rows.enumerate() {
                table.push_row(i == 0, row);
            }
        }
        table
    }

    /// The first of the series of each arm.
    pub(crate) fn named(&self) -> Vec<&Series> {
        let named = self.panels.iter().flat_map(Panel::named);
        first_of_each(named.map(|series| (&series.label, series)))
    }
}

impl Panel {
    /// A panel on a scale of its own.
    pub(crate) fn new(
        title: String,
        y_name: String,
        unit: &'static str,
        series: Vec<Series>,
    ) -> Panel {
        let (y, bounds, band) = (Scale::default(), Vec::new(), None);
        let mut panel = Panel { title, y_name, unit, y, series, bounds, band };
        panel.y = Scale::values(panel.extent().unwrap_or(Scale::DECADE));
        panel
    }

    /// The lines of arms; a fit belongs to the line of its arm.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| series.kind != Kind::Model)
    }

    /// Whether it has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.points().next().is_some()
    }

    /// Every value of an arm.
    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.named().flat_map(|series| &series.points)
    }

    fn entry(&self, label: &str, x: f64) -> Entry {
        let series = self.named().find(|series| series.label == label);
        let point = series.and_then(|series| series.points.iter().find(|point| point.x == x));
        match point {
            Some(point) => point.text.clone().into(),
            None => Entry::toned(NONE, Tone::Faint),
        }
    }

    /// The range of all values, usable intervals and bounds; `None` without any.
    pub(crate) fn extent(&self) -> Option<Interval> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let ends = points.flat_map(|point| [point.value, point.drawn().low, point.drawn().high]);
        let all = hull(ends.filter(|value| value.is_finite() && *value > 0.0))?;
        // A bound far above what is compared is named at the edge.
        let bounds = self.bounds.iter().map(|bound| bound.0);
        let near = bounds.filter(|bound| 0.0 < *bound && *bound <= BOUND_NEAR * all.high);
        hull(near.chain([all.low, all.high]))
    }
}

/// The range of some values; `None` without any.
pub(crate) fn hull(values: impl Iterator<Item = f64>) -> Option<Interval> {
    let of_one = values.map(|value| Interval { low: value, high: value });
    of_one.reduce(|a, b| Interval { low: a.low.min(b.low), high: a.high.max(b.high) })
}

/// The range of several panels; `None` without a value.
pub(crate) fn extent<'a>(panels: impl IntoIterator<Item = &'a Panel>) -> Option<Interval> {
    hull(panels.into_iter().filter_map(Panel::extent).flat_map(|of| [of.low, of.high]))
}

/// Gives panels whose value axis has the same name the same scale.
pub(crate) fn share_scales(panels: &mut [Panel]) {
    for i in 0..panels.len() {
        let same = panels.iter().filter(|panel| panel.y_name == panels[i].y_name);
        if let Some(range) = extent(same) {
            panels[i].y = Scale::values(range);
        }
    }
}

/// The arms of cells, each once, in the order of their first cell.
pub(crate) fn arms<'a>(cells: &[&'a CellAnalysis]) -> Vec<&'a Arm> {
    let arms = of_cells(cells).map(|of| &of.arm);
    first_of_each(arms.map(|arm| (&arm.label, arm)))
}

/// An arm's label over several cells: copied in one of them is copied.
pub(crate) fn shown(cells: &[&CellAnalysis], label: &str) -> String {
    let labels =
        cells.iter().filter_map(|cell| labelled(cell, label)).map(ArmAnalysis::shown_label);
    labels.max_by_key(String::len).unwrap_or_else(|| label.to_owned())
}

/// The places of panels, rising, each once.
fn places(panels: &[Panel]) -> Vec<f64> {
    let mut places: Vec<f64> = panels.iter().flat_map(Panel::points).map(|p| p.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// The caches of a machine whose sizes are known, as message sizes: the memory
/// in use is larger, since rings and socket buffers belong to it.
pub(crate) fn caches(host: &HostFacts) -> Vec<(&'static str, f64)> {
    let caches = [("L1d", &host.l1d), ("L2", &host.l2), ("LLC", &host.llc)].into_iter();
    caches.filter_map(|(name, size)| Some((name, size.value()?.0 as f64))).collect()
}

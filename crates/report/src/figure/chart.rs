//! What a chart of curves says, before anything is drawn.

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::reading::Reading;
use iolens_model::run::Run;
use iolens_model::server::LoadLevel;
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Interval};

use super::scale::Scale;
use super::style::Look;
use crate::table::{Column, Entry, Table, Tone};
use crate::{number, words};

/// Small multiples that share their horizontal axis.
pub(crate) struct Chart {
    /// Title with the unit.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) subtitle: String,
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
    /// How far apart points of one place stand, so that their whiskers can be
    /// read. Nothing on steep curves, where it would look like a difference.
    pub(crate) apart: f64,
    /// Panels in a row on a page.
    pub(crate) columns: usize,
    /// Machine, software and run.
    pub(crate) footer: [String; 2],
}

/// The horizontal axis of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    /// Sizes of this.
    Sizes(&'static str),
    /// Thread counts, of pairs or of one end that has no other.
    Threads(&'static str),
    /// Calls in a row, in studies of calls.
    Calls,
    /// Connections at a time.
    Connections,
    /// Share of what the slowest model takes that is offered, in percent.
    Offered,
    /// Requests per second that are offered in a search.
    Rate,
}

impl Along {
    /// The axis of sizes in a study.
    pub(crate) fn sizes(plan: &Plan) -> Along {
        Along::Sizes(if plan.copy().is_some() { "file" } else { plan.study().unit() })
    }

    /// Name of the axis.
    pub(crate) fn name(self) -> String {
        let what = match self {
            Along::Sizes(of) => format!("{of} size"),
            Along::Threads(of) => of.to_owned(),
            Along::Offered => "offered, % of what the slowest takes".to_owned(),
            Along::Rate => "requests per second offered".to_owned(),
            Along::Calls | Along::Connections => self.column(),
        };
        format!("{what}, log scale")
    }

    /// Where a cell stands on it.
    pub(crate) fn of(self, cell: &CellAnalysis) -> f64 {
        let (cell, server) = (&cell.cell, cell.cell.server());
        match (self, server.map(|server| server.load)) {
            (Along::Sizes(_), _) => cell.size.0 as f64,
            (Along::Threads(_), _) => f64::from(cell.threads),
            (Along::Connections, _) => server.map_or(f64::NAN, |of| f64::from(of.connections)),
            (Along::Offered, Some(LoadLevel::Percent(share))) => f64::from(share),
            // In these a cell has many places.
            (Along::Offered | Along::Calls | Along::Rate, _) => f64::NAN,
        }
    }

    fn column(self) -> String {
        match self {
            Along::Sizes("message") => "size".to_owned(),
            Along::Sizes(of) => format!("{of} size"),
            Along::Threads(_) => "threads".to_owned(),
            Along::Calls => "calls in a row".to_owned(),
            Along::Connections => "connections".to_owned(),
            Along::Offered => "offered (%)".to_owned(),
            Along::Rate => "offered (requests/s)".to_owned(),
        }
    }

    /// A place in words, such as `block size 4 KiB`.
    pub(crate) fn at(self, place: f64) -> String {
        let text = self.text(place);
        match self {
            Along::Offered => format!("{text}% offered"),
            Along::Rate => format!("{text} requests/s offered"),
            _ => format!("{} {text}", self.column()),
        }
    }

    fn scale(self, places: &[f64]) -> Scale {
        match self {
            Along::Sizes(_) => Scale::sizes(places),
            Along::Rate => Scale::values(hull(places.iter().copied()).unwrap_or(Scale::DECADE)),
            _ => Scale::counts(places),
        }
    }

    fn text(self, x: f64) -> String {
        match self {
            Along::Sizes(_) => number::bytes(x).to_string(),
            _ => x.to_string(),
        }
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
    /// Places at which the arm has no usable value: the curve breaks there.
    pub(crate) missing: Vec<Missing>,
}

/// A place without a value.
pub(crate) struct Missing {
    /// Where, on the horizontal axis.
    pub(crate) x: f64,
    /// Why, in a word, such as `failed`.
    pub(crate) word: &'static str,
}

impl Series {
    /// The points, cut where a value is missing.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = &[Point]> {
        let between =
            |a: &Point, b: &Point| self.missing.iter().any(|gap| a.x < gap.x && gap.x < b.x);
        self.points.chunk_by(move |a, b| !between(a, b))
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
    /// The value alone, where it has no place on the scale.
    pub(crate) fn digits(&self) -> String {
        if self.value == 0.0 { "0".to_owned() } else { three_digits(self.value) }
    }

    /// What a scale must have room for. An interval that says nothing is drawn to the edges,
    /// and makes no others small.
    pub(crate) fn drawn(&self) -> Interval {
        let usable = self.interval.filter(Interval::is_usable);
        usable.unwrap_or(Interval { low: self.value, high: self.value })
    }
}

impl Chart {
    /// A chart of panels below what they have in common.
    pub(crate) fn new(
        run: &Run,
        cell: &Cell,
        along: Along,
        title: String,
        subtitle: String,
        panels: Vec<Panel>,
    ) -> Chart {
        let is_of_sizes = matches!(along, Along::Sizes(_));
        Chart {
            title,
            subtitle,
            along,
            x: along.scale(&places(&panels)),
            caches: if is_of_sizes { caches(&run.header.host) } else { Vec::new() },
            panels_by: "panel",
            panels,
            apart: if matches!(along, Along::Threads(_)) { 2.5 } else { 0.0 },
            columns: 2,
            footer: words::footer(&run.header, cell),
        }
    }

    /// The place to which all its numbers belong, if that is one.
    pub(crate) fn only_place(&self) -> Option<f64> {
        let [place] = places(&self.panels)[..] else { return None };
        let mut gaps = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.missing);
        gaps.all(|gap| gap.x == place).then_some(place)
    }

    /// The same numbers as a table: one row per panel and place, one column
    /// per curve. A panel is named in its first row.
    pub(crate) fn table(&self) -> Table {
        let own = self.named().into_iter().filter(|series| series.kind != Kind::Baseline);
        let labels: Vec<&str> = own.map(|series| series.label.as_str()).collect();
        let mut units: Vec<&str> = self.panels.iter().map(|panel| panel.unit).collect();
        units.dedup();
        let unit = match units.as_slice() {
            [unit] => format!("{unit} [95%]"),
            _ => "[95%]".to_owned(),
        };
        let mut columns =
            vec![Column::left(self.panels_by, ""), Column::right(&self.along.column(), "")];
        columns.extend(labels.iter().map(|label| Column::left(label, &unit)));
        let mut table = Table::new(self.title.clone(), columns);
        for panel in &self.panels {
            let rows = places(std::slice::from_ref(panel)).into_iter().enumerate().map(|(i, x)| {
                let name = if i == 0 { panel.title.clone() } else { String::new() };
                let keys = [name.into(), self.along.text(x).into()].into_iter();
                keys.chain(labels.iter().map(|label| panel.entry(label, x))).collect()
            });
            push_group(&mut table, rows);
        }
        table
    }

    /// The first of the series of each arm.
    pub(crate) fn named(&self) -> Vec<&Series> {
        let mut named: Vec<&Series> = Vec::new();
        for series in self.panels.iter().flat_map(Panel::named) {
            if !named.iter().any(|known| known.label == series.label) {
                named.push(series);
            }
        }
        named
    }
}

/// Adds rows that belong together.
pub(crate) fn push_group(table: &mut Table, rows: impl Iterator<Item = Vec<Entry>>) {
    for (i, row) in rows.enumerate() {
        if i == 0 { table.push_group(row) } else { table.push(row) }
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
            None => Entry::toned(number::NONE, Tone::Faint),
        }
    }

    /// The range of all values, usable intervals and bounds; null without any.
    pub(crate) fn extent(&self) -> Option<Interval> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        let ends = points.flat_map(|point| [point.value, point.drawn().low, point.drawn().high]);
        let all = hull(ends.filter(positive))?;
        // A bound far above what is compared is named at the edge.
        let near = |bound: &f64| positive(bound) && *bound <= BOUND_NEAR * all.high;
        let bounds = self.bounds.iter().map(|bound| bound.0).filter(near);
        hull(bounds.chain([all.low, all.high]))
    }
}

/// The range of some values; null without any.
pub(crate) fn hull(values: impl Iterator<Item = f64>) -> Option<Interval> {
    let of_one = values.map(|value| Interval { low: value, high: value });
    of_one.reduce(|a, b| Interval { low: a.low.min(b.low), high: a.high.max(b.high) })
}

/// The range of several panels; null without a value.
pub(crate) fn extent<'a>(panels: impl IntoIterator<Item = &'a Panel>) -> Option<Interval> {
    hull(panels.into_iter().filter_map(Panel::extent).flat_map(|of| [of.low, of.high]))
}

/// Gives panels whose value axis has the same name the same scale.
pub(crate) fn share_scales(panels: &mut [Panel]) {
    let names: Vec<String> = panels.iter().map(|panel| panel.y_name.clone()).collect();
    for name in names {
        let same = panels.iter().filter(|panel| panel.y_name == name);
        if let Some(range) = extent(same) {
            let scale = Scale::values(range);
            for panel in panels.iter_mut().filter(|panel| panel.y_name == name) {
                panel.y = scale.clone();
            }
        }
    }
}

/// The arms of cells, each once, in the order of their first cell.
pub(crate) fn arms(cells: &[&CellAnalysis]) -> Vec<Arm> {
    let mut arms: Vec<Arm> = Vec::new();
    for arm in cells.iter().flat_map(|cell| &cell.arms) {
        if !arms.iter().any(|known| known.label == arm.arm.label) {
            arms.push(arm.arm.clone());
        }
    }
    arms
}

/// The arms that are compared with each other.
pub(crate) fn compared(cells: &[&CellAnalysis]) -> Vec<Arm> {
    let mut arms = arms(cells);
    arms.retain(|arm| matches!(arm.role, Role::Baseline | Role::Compared));
    arms
}

/// An arm of a cell.
pub(crate) fn find<'a>(cell: &'a CellAnalysis, label: &str) -> Option<&'a ArmAnalysis> {
    cell.arms.iter().find(|arm| arm.arm.label == label)
}

/// An arm's label over several cells: copied in one of them is copied.
pub(crate) fn shown(cells: &[&CellAnalysis], label: &str) -> String {
    let labels = cells.iter().filter_map(|cell| find(cell, label)).map(ArmAnalysis::shown_label);
    labels.max_by_key(String::len).unwrap_or_else(|| label.to_owned())
}

/// The places at which an arm has no point.
pub(crate) fn missing(
    along: Along,
    cells: &[&CellAnalysis],
    label: &str,
    points: &[Point],
) -> Vec<Missing> {
    let gap = |cell: &&CellAnalysis| {
        let x = along.of(cell);
        if points.iter().any(|point| point.x == x) {
            return None;
        }
        let word = match find(cell, label).map(|arm| arm.status) {
            Some(Status::Ok) => "n/a",
            Some(status) => status.word(),
            None => "",
        };
        Some(Missing { x, word })
    };
    cells.iter().filter_map(gap).collect()
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
    let caches = [("L1d", &host.l1d), ("L2", &host.l2), ("LLC", &host.llc)];
    let known =
        |(name, size): (&'static str, &Reading<Bytes>)| Some((name, size.value()?.0 as f64));
    caches.into_iter().filter_map(known).collect()
}

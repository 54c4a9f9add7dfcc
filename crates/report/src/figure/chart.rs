//! What a chart of curves says, before anything is drawn.

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::Study;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::reading::Reading;
use iolens_model::server::LoadLevel;
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Interval};

use super::scale::Scale;
use super::style::Look;
use crate::number;
use crate::table::{Column, Entry, Table, Tone};

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
    /// Message sizes.
    Sizes,
    /// Block sizes of a file.
    Blocks,
    /// Sizes of whole files.
    Files,
    /// Thread counts, of pairs.
    Threads,
    /// Thread counts of one end that has no other.
    Workers,
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
        match plan.study() {
            Study::File | Study::Write => Along::Blocks,
            Study::Copy => Along::Files,
            Study::Net | Study::Syscall | Study::Server => Along::Sizes,
        }
    }

    /// Name of the axis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Along::Sizes => "message size, log scale",
            Along::Blocks => "block size, log scale",
            Along::Files => "file size, log scale",
            Along::Threads => "thread pairs, log scale",
            Along::Workers => "threads, log scale",
            Along::Calls => "calls in a row, log scale",
            Along::Connections => "connections, log scale",
            Along::Offered => "offered, % of what the slowest takes, log scale",
            Along::Rate => "requests per second offered, log scale",
        }
    }

    /// Where a cell stands on it.
    pub(crate) fn of(self, cell: &CellAnalysis) -> f64 {
        match self {
            Along::Sizes | Along::Blocks | Along::Files => cell.cell.size.0 as f64,
            Along::Threads | Along::Workers => f64::from(cell.cell.threads),
            Along::Calls => {
                let calls = cell.cell.syscall().and_then(|setting| setting.in_a_row);
                calls.map_or(f64::NAN, |calls| calls as f64)
            }
            Along::Connections => {
                cell.cell.server().map_or(f64::NAN, |server| f64::from(server.connections))
            }
            Along::Offered => match cell.cell.server().map(|server| server.load) {
                Some(LoadLevel::Percent(share)) => f64::from(share),
                Some(LoadLevel::Closed | LoadLevel::Searched) | None => f64::NAN,
            },
            // A search offers many rates in a cell.
            Along::Rate => f64::NAN,
        }
    }

    /// The cache sizes to mark on it.
    pub(crate) fn marks(self, host: &HostFacts) -> Vec<(&'static str, f64)> {
        match self {
            Along::Sizes | Along::Blocks | Along::Files => caches(host),
            _ => Vec::new(),
        }
    }

    fn column(self) -> &'static str {
        match self {
            Along::Sizes => "size",
            Along::Blocks => "block size",
            Along::Files => "file size",
            Along::Threads | Along::Workers => "threads",
            Along::Calls => "calls in a row",
            Along::Connections => "connections",
            Along::Offered => "offered (%)",
            Along::Rate => "offered (requests/s)",
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

    fn scale(self, values: &[u64]) -> Scale {
        match self {
            Along::Sizes | Along::Blocks | Along::Files => Scale::sizes(values),
            Along::Rate => {
                let [first, last] = [values.first(), values.last()]
                    .map(|value| value.map_or(1.0, |&value| value.max(1) as f64));
                Scale::values(Interval { low: first, high: last })
            }
            _ => Scale::counts(values),
        }
    }

    fn text(self, x: f64) -> String {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "was a u64")]
        let x = x as u64;
        match self {
            Along::Sizes | Along::Blocks | Along::Files => Bytes(x).to_string(),
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
}

impl Panel {
    /// Whether it has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.series.iter().any(|series| !series.points.is_empty())
    }
}

impl Panel {
    /// Whether it has a value of an arm that is compared.
    pub(crate) fn has_compared(&self) -> bool {
        self.series.iter().any(|s| s.kind == Kind::Curve && !s.points.is_empty())
    }
}

impl Chart {
    /// The place to which all its numbers belong, if that is one.
    pub(crate) fn only_place(&self) -> Option<f64> {
        let [place] = places(&self.panels)[..] else { return None };
        let mut gaps = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.missing);
        gaps.all(|gap| gap.x == place).then_some(place)
    }

    /// The same numbers as a table: one row per panel and place, one column
    /// per curve. A panel is named in its first row.
    pub(crate) fn table(&self) -> Table {
        let labels = self.labels();
        let (along, by) = (self.along.column(), self.panels_by);
        let mut columns = vec![Column::left(by, ""), Column::right(along, "")];
        let mut units: Vec<&str> = self.panels.iter().map(|panel| panel.unit).collect();
        units.dedup();
        let unit = match units.as_slice() {
            [unit] => format!("{unit} [95%]"),
            _ => "[95%]".to_owned(),
        };
        columns.extend(labels.iter().map(|label| Column::left(label, &unit)));
        let mut table = Table::new(self.title.clone(), columns);
        for panel in &self.panels {
            for (i, x) in places(std::slice::from_ref(panel)).into_iter().enumerate() {
                let name = if i == 0 { panel.title.clone() } else { String::new() };
                let mut row: Vec<Entry> = vec![name.into(), self.along.text(x).into()];
                row.extend(labels.iter().map(|label| panel.entry(label, x)));
                if i == 0 { table.push_group(row) } else { table.push(row) }
            }
        }
        table
    }

    /// Labels of all series with values of their own, each once.
    fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            let own = matches!(series.kind, Kind::Curve | Kind::Noise);
            if own && !labels.contains(&series.label) {
                labels.push(series.label.clone());
            }
        }
        labels
    }

    /// Lines of different arms; a fit belongs to the line of its arm.
    pub(crate) fn lines(&self) -> usize {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        let own = series.filter(|series| series.kind != Kind::Model);
        let mut labels: Vec<&str> = own.map(|series| series.label.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        labels.len()
    }
}

impl Panel {
    fn entry(&self, label: &str, x: f64) -> Entry {
        let series = self.series.iter().find(|s| s.label == label && s.kind != Kind::Model);
        let point = series.and_then(|series| series.points.iter().find(|point| point.x == x));
        match point {
            Some(point) => point.text.clone().into(),
            None => Entry::toned(number::NONE, Tone::Faint),
        }
    }

    /// The range of all values, usable intervals and bounds; null without any.
    pub(crate) fn extent(&self) -> Option<Interval> {
        let points = self.series.iter().flat_map(|series| &series.points);
        // One that says nothing is drawn to the edges, and makes no others small.
        let usable = |point: &Point| point.interval.filter(Interval::is_usable);
        let ends = points.flat_map(|point| match usable(point) {
            Some(interval) => [point.value, interval.low, interval.high],
            None => [point.value; 3],
        });
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        let all: Vec<f64> = ends.filter(positive).collect();
        // A bound far above what is compared is named at the edge.
        let highest = all.iter().copied().fold(0.0, f64::max);
        let near = |bound: &f64| positive(bound) && *bound <= BOUND_NEAR * highest;
        let bounds: Vec<f64> = self.bounds.iter().map(|bound| bound.0).filter(near).collect();
        all.into_iter().chain(bounds).fold(None, |all: Option<Interval>, v| {
            let all = all.unwrap_or(Interval { low: v, high: v });
            Some(Interval { low: all.low.min(v), high: all.high.max(v) })
        })
    }
}

/// The range of several panels; null without a value.
pub(crate) fn extent<'a>(panels: impl IntoIterator<Item = &'a Panel>) -> Option<Interval> {
    panels
        .into_iter()
        .filter_map(Panel::extent)
        .reduce(|a, b| Interval { low: a.low.min(b.low), high: a.high.max(b.high) })
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
pub(crate) fn places(panels: &[Panel]) -> Vec<f64> {
    let series = || panels.iter().flat_map(|panel| &panel.series);
    let own = series().filter(|s| s.kind != Kind::Model).flat_map(|s| &s.points);
    let mut places: Vec<f64> = own.map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// The horizontal scale of panels.
pub(crate) fn scale(along: Along, panels: &[Panel]) -> Scale {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they were u64")]
    let places: Vec<u64> = places(panels).into_iter().map(|x| x as u64).collect();
    along.scale(&places)
}

/// The caches of a machine whose sizes are known, as message sizes: the memory
/// in use is larger, since rings and socket buffers belong to it.
pub(crate) fn caches(host: &HostFacts) -> Vec<(&'static str, f64)> {
    let caches = [("L1d", &host.l1d), ("L2", &host.l2), ("LLC", &host.llc)];
    let known =
        |(name, size): (&'static str, &Reading<Bytes>)| Some((name, size.value()?.0 as f64));
    caches.into_iter().filter_map(known).collect()
}

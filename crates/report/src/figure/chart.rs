//! What a chart of curves by message size says, before anything is drawn.

use iolens_model::arm::{Arm, Role};
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::reading::Reading;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{CellAnalysis, Interval};

use super::scale::Scale;
use super::style::Look;

/// Small multiples that share their axes.
pub(crate) struct Chart {
    /// Title with the unit.
    pub(crate) title: String,
    /// How to read it, one line.
    pub(crate) subtitle: String,
    /// Name of the value axis, with the unit.
    pub(crate) y_name: String,
    /// Message sizes.
    pub(crate) x: Scale,
    /// Values.
    pub(crate) y: Scale,
    /// Cache sizes to mark: name and bytes.
    pub(crate) caches: Vec<(&'static str, f64)>,
    /// Shaded range of values with its label.
    pub(crate) band: Option<(Interval, String)>,
    /// One per thread count.
    pub(crate) panels: Vec<Panel>,
    /// Machine, software and run.
    pub(crate) footer: [String; 2],
}

/// One plot.
pub(crate) struct Panel {
    /// What it shows that the others do not.
    pub(crate) title: String,
    /// Curves; at most [`CURVES_MAX`] of kind [`Kind::Curve`].
    pub(crate) series: Vec<Series>,
    /// A bound: value and label.
    pub(crate) bound: Option<(f64, String)>,
}

/// More curves than this cannot be told apart; the table has them all.
pub(crate) const CURVES_MAX: usize = 7;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With markers, whiskers and a band.
    Curve,
    /// A line without markers: what the others are compared with.
    Baseline,
    /// Thin: the noise floor.
    Noise,
}

/// One curve.
pub(crate) struct Series {
    /// Direct label.
    pub(crate) label: String,
    /// Colour, marker, dash.
    pub(crate) look: Look,
    /// How it is drawn.
    pub(crate) kind: Kind,
    /// Points in the order of their sizes.
    pub(crate) points: Vec<Point>,
    /// Sizes at which the arm has no usable value: the curve breaks there.
    pub(crate) missing: Vec<Missing>,
}

/// A size without a value.
pub(crate) struct Missing {
    /// Message bytes.
    pub(crate) bytes: f64,
    /// Why, in a word, such as `failed`.
    pub(crate) word: &'static str,
}

impl Series {
    /// The points, cut where a value is missing.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = &[Point]> {
        let between = |a: &Point, b: &Point| {
            self.missing.iter().any(|gap| a.bytes < gap.bytes && gap.bytes < b.bytes)
        };
        self.points.chunk_by(move |a, b| !between(a, b))
    }
}

/// One value.
pub(crate) struct Point {
    /// Message bytes.
    pub(crate) bytes: f64,
    /// Value.
    pub(crate) value: f64,
    /// Its interval.
    pub(crate) interval: Option<Interval>,
    /// Drawn hollow: nothing is concluded from it.
    pub(crate) open: bool,
    /// What a hover says.
    pub(crate) hover: String,
}

impl Chart {
    /// The range of all values and intervals of the panels; null without any.
    pub(crate) fn extent(panels: &[Panel]) -> Option<Interval> {
        let points = panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
        let ends = points.flat_map(|point| match point.interval {
            Some(interval) => [interval.low, interval.high],
            None => [point.value, point.value],
        });
        let bounds = panels.iter().filter_map(|panel| panel.bound.as_ref()).map(|bound| bound.0);
        ends.chain(bounds).filter(|value| value.is_finite() && *value > 0.0).fold(None, |all, v| {
            let all = all.unwrap_or(Interval { low: v, high: v });
            Some(Interval { low: all.low.min(v), high: all.high.max(v) })
        })
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

/// What a subtitle says of arms that are not drawn.
pub(crate) fn omitted(cells: &[&CellAnalysis], curves: usize) -> String {
    let compared = arms(cells).into_iter().filter(|arm| arm.role == Role::Compared);
    match compared.count().saturating_sub(curves) {
        0 => String::new(),
        1 => "; one more arm is in the table only".to_owned(),
        more => format!("; {more} more arms are in the table only"),
    }
}

/// The sizes at which an arm has no point.
pub(crate) fn missing(cells: &[&CellAnalysis], label: &str, points: &[Point]) -> Vec<Missing> {
    let gap = |cell: &&CellAnalysis| {
        let bytes = cell.cell.message_bytes.0 as f64;
        if points.iter().any(|point| point.bytes == bytes) {
            return None;
        }
        let arm = cell.arms.iter().find(|arm| arm.arm.label == label);
        let word = match arm.map(|arm| arm.status) {
            Some(Status::Ok) => Status::Invalid.word(),
            Some(status) => status.word(),
            None => "",
        };
        Some(Missing { bytes, word })
    };
    cells.iter().filter_map(gap).collect()
}

/// The message sizes of panels, rising.
pub(crate) fn sizes(panels: &[Panel]) -> Vec<u64> {
    let points = panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they were u64")]
    let mut sizes: Vec<u64> = points.map(|point| point.bytes as u64).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The caches of a machine whose sizes are known.
pub(crate) fn caches(host: &HostFacts) -> Vec<(&'static str, f64)> {
    let caches = [("L1d", &host.l1d), ("L2", &host.l2), ("LLC", &host.llc)];
    let known =
        |(name, size): (&'static str, &Reading<Bytes>)| Some((name, size.value()?.0 as f64));
    caches.into_iter().filter_map(known).collect()
}

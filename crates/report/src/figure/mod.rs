//! Figures: each is one file that turns a run and its analysis into a
//! `chart::Chart` and a table with the same numbers; `draw` makes SVG of
//! a chart. The writer is ours because a figure has to follow the page's
//! light and dark through classes, label its curves directly, answer a hover
//! with n, interval and verdict, and mark sizes at powers of two.

use iolens_model::axes::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use crate::table::Table;
use crate::words;

pub(crate) mod chart;
mod clip;
pub(crate) mod draw;
mod goodput;
mod labels;
mod ratio;
pub(crate) mod scale;
pub(crate) mod style;
mod svg;

/// A figure with its table twin.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// File name without extension: study, topology, metric, fixed parameters.
    pub file_stem: String,
    /// Title, with the unit.
    pub title: String,
    /// A standalone SVG: light, with its own styles.
    pub svg: String,
    /// The same SVG without styles, which come from the page around it.
    pub inline: String,
    /// The same numbers as a table.
    pub table: Table,
}

/// Every figure of a run: the ratio first, which is the main one.
#[must_use]
pub fn all(run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let mut figures = Vec::new();
    for family in families(analysis) {
        figures.push(ratio::figure(run, analysis, &family));
        figures.push(goodput::figure(run, &family));
    }
    figures
}

/// Curves that differ in their thread count only: the panels of one figure.
pub(crate) struct Family<'a> {
    /// What they have in common; its threads and size mean nothing.
    pub(crate) setting: Cell,
    /// Thread count and cells of each curve.
    pub(crate) curves: Vec<(u32, Vec<&'a CellAnalysis>)>,
}

impl<'a> Family<'a> {
    /// The cells of all curves.
    fn cells(&self) -> Vec<&'a CellAnalysis> {
        self.curves.iter().flat_map(|(_, cells)| cells).copied().collect()
    }
}

fn families(analysis: &Analysis) -> Vec<Family<'_>> {
    let mut families: Vec<Family> = Vec::new();
    for (curve, cells) in crate::results::curves(analysis) {
        let setting = Cell { threads: 0, ..curve.clone() };
        match families.iter_mut().find(|family| family.setting == setting) {
            Some(family) => family.curves.push((curve.threads, cells)),
            None => families.push(Family { setting, curves: vec![(curve.threads, cells)] }),
        }
    }
    families
}

/// `net-loopback-ratio-by-size-stream-hot`.
fn file_stem(run: &Run, setting: &Cell, metric: &str) -> String {
    let plan = &run.header.plan;
    format!("{}-{}-{metric}-{}-{}", plan.study, setting.topology, setting.mode, setting.working_set)
}

/// Builds a figure from its parts.
fn finish(file_stem: String, chart: &chart::Chart, table: Table) -> Figure {
    let drawing = draw::draw(chart);
    Figure {
        file_stem,
        title: chart.title.clone(),
        svg: drawing.standalone(),
        inline: drawing.inline(),
        table,
    }
}

/// The cell and arm of a point, for its hover.
fn hover_lead(run: &Run, cell: &Cell, label: &str) -> String {
    format!("{label}, {}", words::subject(&run.header.plan, cell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_figure_has_a_title_with_a_unit_a_twin_and_a_telling_name() {
        let (run, analysis) = fixture::large();
        let figures = all(&run, &analysis);
        let stems: Vec<&str> = figures.iter().map(|figure| figure.file_stem.as_str()).collect();
        assert_eq!(
            stems,
            ["net-loopback-ratio-by-size-stream-hot", "net-loopback-goodput-by-size-stream-hot"]
        );
        for figure in &figures {
            assert!(figure.title.contains('('), "{} has no unit", figure.title);
            assert!(!figure.table.rows.is_empty());
            assert!(figure.svg.contains("run 4f1c09ab") && figure.svg.contains("message size"));
            assert!(!figure.inline.contains("<style"));
        }
    }

    #[test]
    fn one_size_one_trial_and_no_numbers_are_drawn_too() {
        let (run, mut analysis) = fixture::classic();
        analysis.cells.truncate(1);
        assert_eq!(all(&run, &analysis).len(), 2);
        for arm in &mut analysis.cells[0].arms {
            (arm.figures, arm.contrast) = (None, None);
        }
        for figure in all(&run, &analysis) {
            assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"));
        }
    }

    #[test]
    fn four_thread_counts_stand_in_two_rows() {
        let (run, mut analysis) = fixture::run();
        for threads in [2, 8] {
            let mut more = fixture::run().1.cells;
            more.truncate(3);
            more.iter_mut().for_each(|cell| cell.cell.threads = threads);
            analysis.cells.extend(more);
        }
        let height = |analysis: &Analysis| {
            let svg = all(&run, analysis)[0].inline.clone();
            let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next());
            height.and_then(|height| height.parse::<f64>().ok()).expect("a height")
        };
        assert!(height(&analysis) > 1.7 * height(&fixture::run().1));
    }

    #[test]
    fn a_curve_breaks_where_its_arm_failed_and_says_so() {
        let (run, analysis) = fixture::large();
        for figure in all(&run, &analysis) {
            assert!(figure.svg.contains(">failed</text>"), "{}", figure.file_stem);
        }
        let (_, cells) = crate::results::curves(&analysis).swap_remove(1);
        let points: Vec<chart::Point> = [131_072.0, 1_048_576.0].map(plain).into();
        let missing = chart::missing(&cells[6..7], "send_per_field", &points);
        let look = style::of("send_per_field");
        let label = String::new();
        let series = chart::Series { label, look, kind: chart::Kind::Curve, points, missing };
        assert_eq!(series.stretches().count(), 2);
    }

    fn plain(bytes: f64) -> chart::Point {
        chart::Point { bytes, value: 1.0, interval: None, open: false, hover: String::new() }
    }

    #[test]
    fn a_point_tells_its_interval_n_and_verdict() {
        let (run, analysis) = fixture::run();
        let svg = &all(&run, &analysis)[0].svg;
        assert!(
            svg.contains("<title>send, 64 B, 1 thread: 1.06 [1.05, 1.07], n = 12, FASTER</title>")
        );
    }
}

//! A chart as SVG: small multiples in rows, curves named at their ends where
//! there is room for that, in a legend above where there is none.

use super::chart::{Chart, Kind};
use super::plot::{
    self, AXIS_HEIGHT, AXIS_NAME_HEIGHT, AXIS_WIDTH, Frame, LABEL_INDENT, TITLE_HEIGHT,
};
use super::sheet::{Drawing, Medium, Sheet};
use super::style::Look;
use super::svg;

/// How the panels of a chart are laid out.
struct Layout {
    columns: usize,
    plot_width: f64,
    plot_height: f64,
    /// Room for names at the ends of curves; none where a legend has them.
    names: Option<f64>,
}

impl Layout {
    /// Names stand at the curves as long as the plots stay this wide.
    const NAMED_MIN: f64 = 300.0;
    const PLOT_MAX: f64 = 640.0;
    const GAP: f64 = 14.0;

    fn of(chart: &Chart, medium: Medium) -> Layout {
        let wished = match (medium, chart.columns) {
            (Medium::Narrow, _) => 1,
            (Medium::Paper, 4..) => 2,
            (_, columns) => columns,
        };
        let columns = wished.min(chart.panels.len()).max(1);
        let each = medium.width() / columns as f64;
        let names = names_width(chart);
        let beside = each - AXIS_WIDTH - names;
        if beside >= Layout::NAMED_MIN {
            let plot_width = beside.min(Layout::PLOT_MAX);
            let plot_height = (0.86 * plot_width).clamp(290.0, 380.0);
            return Layout { columns, plot_width, plot_height, names: Some(names) };
        }
        let plot_width = (each - AXIS_WIDTH - Layout::GAP).min(Layout::PLOT_MAX);
        let plot_height = (0.74 * plot_width).clamp(104.0, 300.0);
        Layout { columns, plot_width, plot_height, names: None }
    }

    fn panel_width(&self) -> f64 {
        AXIS_WIDTH + self.plot_width + self.names.unwrap_or(Layout::GAP)
    }

    fn panel_height(&self) -> f64 {
        TITLE_HEIGHT + self.plot_height + AXIS_HEIGHT
    }
}

/// Width of the longest name at the end of a curve.
fn names_width(chart: &Chart) -> f64 {
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    let bands = chart.panels.iter().filter_map(|panel| Some(panel.band.as_ref()?.1.as_str()));
    let names = series.map(|series| series.label.as_str()).chain(bands);
    let widest = names.map(|name| svg::width(name, 12.0)).fold(0.0, f64::max);
    LABEL_INDENT + widest + 8.0
}

/// Draws a chart.
pub(crate) fn draw(chart: &Chart, medium: Medium) -> Drawing {
    let layout = Layout::of(chart, medium);
    let width = layout.panel_width() * layout.columns as f64;
    let mut sheet = Sheet::new(medium, width, &chart.title, &chart.subtitle);
    if layout.names.is_none() {
        sheet.legend(&legend(chart));
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        let (row, column) = (i / layout.columns, i % layout.columns);
        let frame = Frame {
            left: layout.panel_width() * column as f64 + AXIS_WIDTH,
            top: sheet.y + layout.panel_height() * row as f64 + TITLE_HEIGHT,
            width: layout.plot_width,
            height: layout.plot_height,
            named: layout.names.is_some(),
            lowest: i + layout.columns >= chart.panels.len(),
        };
        plot::draw(&mut sheet.svg, chart, panel, &frame);
    }
    let rows = chart.panels.len().div_ceil(layout.columns);
    sheet.y += layout.panel_height() * rows as f64 + AXIS_NAME_HEIGHT;
    sheet.finish(&chart.footer)
}

/// Every curve that is drawn, once, with what stands for the others.
fn legend(chart: &Chart) -> Vec<(Look, String)> {
    let mut items: Vec<(Look, String)> = Vec::new();
    for series in chart.panels.iter().flat_map(|panel| &panel.series) {
        let named = series.kind != Kind::Model;
        if named && !items.iter().any(|(_, label)| *label == series.label) {
            items.push((series.look, series.label.clone()));
        }
    }
    items
}

//! A chart as SVG: small multiples in rows, curves named at their ends where
//! there is room for that, in a legend above where there is none.

use super::chart::{Chart, Panel};
use super::paper::Medium;
use super::plot::{
    self, AXIS_HEIGHT, AXIS_NAME_HEIGHT, AXIS_WIDTH, Frame, LABEL_INDENT, TITLE_HEIGHT, TITLE_LINE,
};
use super::sheet::{Drawing, Sheet};
use super::{rows, svg};

/// How the panels of a chart are laid out.
struct Layout {
    columns: usize,
    plot_width: f64,
    plot_height: f64,
    /// Room for names at the ends of curves; none where a legend has them.
    names: Option<f64>,
    /// Lines of the longest title of a plot.
    title_lines: usize,
}

impl Layout {
    /// Names stand at the curves as long as the plots stay this wide.
    const NAMED_MIN: f64 = 300.0;
    const PLOT_MAX: f64 = 640.0;
    const GAP: f64 = 14.0;

    fn of(chart: &Chart, medium: Medium) -> Layout {
        let panels = chart.panels.len();
        if matches!(medium, Medium::Slide(_)) {
            let layouts =
                (1..=panels).filter_map(|columns| Layout::on_slide(chart, medium, columns));
            if let Some(best) = layouts.min_by(|a, b| a.oddness(chart).total_cmp(&b.oddness(chart)))
            {
                return best;
            }
        }
        let columns = match (medium, panels) {
            (Medium::Narrow, _) | (Medium::Column, ..=4) => 1,
            (Medium::Column, _) => 2,
            (Medium::Columns, 4..) if chart.columns > 3 => 2,
            _ => chart.columns,
        };
        let layout = Layout::of_columns(chart, medium, columns.clamp(1, panels.max(1)));
        let (share, least, most) = match (medium, layout.names) {
            (_, Some(_)) => (0.86, 290.0, 380.0),
            // Four below each other fit a page.
            (Medium::Column, None) if columns == 1 && panels > 2 => (0.4, 104.0, 300.0),
            (Medium::Column, None) => (0.6, 104.0, 300.0),
            (_, None) => (0.74, 104.0, 300.0),
        };
        Layout { plot_height: (share * layout.plot_width).clamp(least, most), ..layout }
    }

    /// So many plots beside each other, whose height is open.
    fn of_columns(chart: &Chart, medium: Medium, columns: usize) -> Layout {
        let each = medium.width() / columns as f64;
        let names = names_width(chart);
        let beside = each - AXIS_WIDTH - names;
        let (room, names) = match beside >= Layout::NAMED_MIN {
            true => (beside, Some(names)),
            false => (each - AXIS_WIDTH - Layout::GAP, None),
        };
        let lines = |panel: &Panel| plot::title(panel, each).len();
        let title_lines = chart.panels.iter().map(lines).max().unwrap_or(1).max(1);
        let plot_width = room.min(Layout::PLOT_MAX);
        Layout { columns, plot_width, plot_height: 0.0, names, title_lines }
    }

    /// The same with plots that fill a slide; nothing where they would be too small.
    fn on_slide(chart: &Chart, medium: Medium, columns: usize) -> Option<Layout> {
        // Names of bounds stand in the plot, each at its line.
        let bounds = chart.panels.iter().flat_map(|panel| &panel.bounds);
        let widest = bounds.map(|(_, name)| svg::width(name, 11.0) + 10.0).fold(0.0, f64::max);
        let least_height = if widest > 0.0 { 135.0 } else { 100.0 };
        let least = Layout::of_columns(chart, medium, columns);
        if least.plot_width < f64::max(150.0, widest) {
            return None;
        }
        let least = Layout { plot_height: least_height, ..least };
        let free = medium.height() - draw_in(chart, medium, &least).height();
        let plot_height = least_height + free / least.rows(chart) as f64;
        (free >= 0.0).then_some(Layout { plot_height, ..least })
    }

    /// How far plots are from the shape that is easy to read, and how many places are empty.
    fn oddness(&self, chart: &Chart) -> f64 {
        const ASPECT: f64 = 1.5;
        let places = self.rows(chart) * self.columns;
        let empty = 1.0 - chart.panels.len() as f64 / places as f64;
        (self.plot_width / self.plot_height / ASPECT).ln().abs() + 2.0 * empty
    }

    fn rows(&self, chart: &Chart) -> usize {
        chart.panels.len().div_ceil(self.columns)
    }

    fn panel_width(&self) -> f64 {
        AXIS_WIDTH + self.plot_width + self.names.unwrap_or(Layout::GAP)
    }

    /// Room for the title of a plot and the name of its value axis.
    fn title_height(&self) -> f64 {
        TITLE_HEIGHT + TITLE_LINE * (self.title_lines as f64 - 1.0)
    }

    fn panel_height(&self) -> f64 {
        self.title_height() + self.plot_height + AXIS_HEIGHT
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
    match chart.only_place() {
        Some(place) => rows::draw(chart, place, medium),
        None => draw_in(chart, medium, &Layout::of(chart, medium)),
    }
}

fn draw_in(chart: &Chart, medium: Medium, layout: &Layout) -> Drawing {
    let width = layout.panel_width() * layout.columns as f64;
    let mut sheet = Sheet::new(medium, width, &chart.title, &chart.subtitle);
    if layout.names.is_none() {
        let named = chart.named().into_iter();
        sheet.legend(&named.map(|series| (series.look, series.label.clone())).collect::<Vec<_>>());
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        let (row, column) = (i / layout.columns, i % layout.columns);
        let frame = Frame {
            left: layout.panel_width() * column as f64 + AXIS_WIDTH,
            top: sheet.y + layout.panel_height() * row as f64 + layout.title_height(),
            width: layout.plot_width,
            height: layout.plot_height,
            titled: layout.panel_width(),
            named: layout.names.is_some(),
            lowest: i + layout.columns >= chart.panels.len(),
        };
        plot::draw(&mut sheet.svg, chart, panel, &frame);
    }
    sheet.y += layout.panel_height() * layout.rows(chart) as f64 + AXIS_NAME_HEIGHT;
    sheet.finish(&chart.footer)
}

//! A chart as SVG: small multiples in rows, curves named at their ends where
//! there is room for that, in a legend above where there is none.

use super::chart::Chart;
use super::paper::Medium;
use super::plot::{
    self, AXIS_HEIGHT, AXIS_NAME_HEIGHT, AXIS_WIDTH, LABEL_INDENT, Plot, TITLE_HEIGHT, TITLE_LINE,
};
use super::sheet::{Drawing, Sheet};
use super::style::Look;
use super::{rows, svg};

/// How the panels of a chart are laid out.
#[derive(Clone, Copy)]
struct Layout {
    columns: usize,
    rows: usize,
    plot_width: f64,
    plot_height: f64,
    /// Room beside a plot: for names at the ends of curves, or where a legend has them none.
    beside: f64,
    is_named: bool,
    /// Room for the title of a plot and the name of its value axis.
    title_height: f64,
}

/// Draws a chart.
pub(crate) fn draw(chart: &Chart, medium: Medium) -> Drawing {
    let of_one_place = chart.only_place().and_then(|place| rows::draw(chart, place, medium));
    of_one_place.unwrap_or_else(|| draw_in(chart, medium, &Layout::of(chart, medium)))
}

fn draw_in(chart: &Chart, medium: Medium, layout: &Layout) -> Drawing {
    let Layout { columns, plot_width: width, plot_height: height, is_named, .. } = *layout;
    let [panel_width, panel_height] = layout.panel();
    let total = panel_width * columns as f64;
    let mut sheet = Sheet::new(medium, total, &chart.title, &chart.subtitle);
    if !is_named {
        let items = chart.named().into_iter().map(|series| (series.look, &*series.label));
        sheet.legend(&items.collect::<Vec<(Look, &str)>>());
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        let left = panel_width * (i % columns) as f64 + AXIS_WIDTH;
        let top = sheet.y + panel_height * (i / columns) as f64 + layout.title_height;
        let is_lowest = i + columns >= chart.panels.len();
        let titled = panel_width;
        Plot { chart, panel, left, top, width, height, titled, is_named, is_lowest }
            .draw(&mut sheet.svg);
    }
    sheet.y += panel_height * layout.rows as f64 + AXIS_NAME_HEIGHT;
    sheet.finish(&chart.footer)
}

impl Layout {
    /// Names stand at the curves as long as the plots stay this wide.
    const NAMED_MIN: f64 = 300.0;
    const PLOT_MAX: f64 = 640.0;
    const GAP: f64 = 14.0;

    fn of(chart: &Chart, medium: Medium) -> Layout {
        let panels = chart.panels.len().max(1);
        if matches!(medium, Medium::Slide(_)) {
            let layouts = (1..=panels).filter_map(|n| Layout::on_slide(chart, medium, n));
            if let Some(best) = layouts.min_by(|a, b| a.oddness(chart).total_cmp(&b.oddness(chart)))
            {
                return best;
            }
        }
        let columns = match (medium, panels) {
            (Medium::Narrow, _) | (Medium::Column, ..=4) => 1,
            (Medium::Column, _) => 2,
            (Medium::Columns, 4..) if chart.columns > 3 => 2,
            _ => chart.columns.min(panels),
        };
        let layout = Layout::of_columns(chart, medium, columns);
        let (share, least, most) = match (medium, layout.is_named) {
            (_, true) => (0.86, 290.0, 380.0),
            // Four below each other fit a page.
            (Medium::Column, _) if columns == 1 && panels > 2 => (0.4, 104.0, 300.0),
            (Medium::Column, _) => (0.6, 104.0, 300.0),
            _ => (0.74, 104.0, 300.0),
        };
        Layout { plot_height: (share * layout.plot_width).clamp(least, most), ..layout }
    }

    /// So many plots beside each other, whose height is open.
    fn of_columns(chart: &Chart, medium: Medium, columns: usize) -> Layout {
        let each = medium.width() / columns as f64;
        let series = chart.named().into_iter().map(|series| &*series.label);
        let bands = chart.panels.iter().filter_map(|panel| Some(&*panel.band.as_ref()?.1));
        let names = LABEL_INDENT + svg::widest(series.chain(bands), 12.0) + 8.0;
        let is_named = each - AXIS_WIDTH - names >= Layout::NAMED_MIN;
        let beside = if is_named { names } else { Layout::GAP };
        let lines = chart.panels.iter().map(|panel| plot::title(panel, each).len());
        let title_lines = lines.max().unwrap_or(1).max(1) as f64;
        Layout {
            columns,
            rows: chart.panels.len().div_ceil(columns),
            plot_width: (each - AXIS_WIDTH - beside).min(Layout::PLOT_MAX),
            plot_height: 0.0,
            beside,
            is_named,
            title_height: TITLE_HEIGHT + TITLE_LINE * (title_lines - 1.0),
        }
    }

    /// The same with plots that fill a slide; nothing where they would be too small.
    fn on_slide(chart: &Chart, medium: Medium, columns: usize) -> Option<Layout> {
        // Names of bounds stand in the plot, each at its line.
        let bounds = || chart.panels.iter().flat_map(|panel| &panel.bounds);
        let is_bounded = bounds().next().is_some();
        let widest = svg::widest(bounds().map(|(_, name)| &**name), 11.0) + 10.0;
        let (least_width, least_height) =
            if is_bounded { (widest.max(150.0), 135.0) } else { (150.0, 100.0) };
        let open = Layout::of_columns(chart, medium, columns);
        let least = Layout { plot_height: least_height, ..open };
        if least.plot_width < least_width {
            return None;
        }
        let free = medium.height() - draw_in(chart, medium, &least).height();
        let plot_height = least_height + free / least.rows as f64;
        (free >= 0.0).then_some(Layout { plot_height, ..least })
    }

    /// How far plots are from the shape that is easy to read, and how many places are empty.
    fn oddness(&self, chart: &Chart) -> f64 {
        const ASPECT: f64 = 1.5;
        let empty = 1.0 - chart.panels.len() as f64 / (self.rows * self.columns) as f64;
        (self.plot_width / self.plot_height / ASPECT).ln().abs() + 2.0 * empty
    }

    /// Width and height of a plot with what is around it.
    fn panel(&self) -> [f64; 2] {
        let width = AXIS_WIDTH + self.plot_width + self.beside;
        [width, self.title_height + self.plot_height + AXIS_HEIGHT]
    }
}

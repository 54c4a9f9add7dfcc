//! A chart whose numbers all belong to one place of its horizontal axis, such as the only
//! size of a run: a curve of one point is none, so each arm has a row, and its value and
//! interval lie along the scale.

use super::chart::{Chart, Kind, Panel, Point, Series};
use super::paper::Medium;
use super::plot::{self, TITLE_LINE};
use super::sheet::{Drawing, Sheet};
use super::svg::{self, Anchor, Svg};

/// Height of a row.
const ROW: f64 = 22.0;
/// Room above the rows for the name of a bound or a band.
const NOTE: f64 = 14.0;
/// Room below the rows for ticks, the name of the scale, and what separates panels.
const FOOT: f64 = 56.0;
/// Between the parts of a row.
const GAP: f64 = 14.0;
/// Width of a panel's scale.
const PLOT_LEAST: f64 = 180.0;
const PLOT_MOST: f64 = 480.0;

/// Draws a chart of one place.
pub(super) fn draw(chart: &Chart, place: f64, medium: Medium) -> Drawing {
    // The first that fits is the best to read; where none does, the lowest.
    let mut lowest: Option<Drawing> = None;
    for layout in Layout::all(chart, medium) {
        let drawing = draw_in(chart, place, medium, &layout);
        if drawing.height() <= medium.height() {
            return drawing;
        }
        lowest = match lowest {
            Some(other) if other.height() <= drawing.height() => Some(other),
            _ => Some(drawing),
        };
    }
    let empty = || Sheet::new(medium, 0.0, &chart.title, &chart.subtitle).finish(&chart.footer);
    lowest.unwrap_or_else(empty)
}

fn draw_in(chart: &Chart, place: f64, medium: Medium, layout: &Layout) -> Drawing {
    let width = layout.panel() * layout.columns as f64;
    let mut sheet = Sheet::new(medium, width, &chart.title, &chart.subtitle);
    sheet.y += 6.0;
    let at = chart.along.at(place);
    for panels in chart.panels.chunks(layout.columns) {
        let heights = panels.iter().map(|panel| height(panel, layout));
        let lowest = heights.fold(0.0, f64::max);
        for (column, panel) in panels.iter().enumerate() {
            let left = layout.panel() * column as f64;
            Rows::below(panel, layout, (left, sheet.y)).draw(&mut sheet.svg, &at);
        }
        sheet.y += lowest;
    }
    sheet.finish(&chart.footer)
}

/// How wide the parts of every panel are.
struct Layout {
    columns: usize,
    names: f64,
    plot: f64,
    /// Room for values in digits, where there is some.
    values: Option<f64>,
}

impl Layout {
    /// Those that have room, first with values, and of these the ones with most beside each
    /// other. One below the other has room always.
    fn all(chart: &Chart, medium: Medium) -> Vec<Layout> {
        let series = || chart.panels.iter().flat_map(drawn);
        let widest = |widths: &mut dyn Iterator<Item = f64>| widths.fold(0.0, f64::max) + GAP;
        let names = widest(&mut series().map(|one| svg::width(&one.label, 12.0)));
        let points = series().flat_map(|one| &one.points);
        let digits = widest(&mut points.map(|point| svg::width(&point.text, 11.0)));
        let of = |values: Option<f64>, columns: usize| {
            let each = medium.width() / columns as f64;
            let plot = each - names - 2.0 * GAP - values.unwrap_or(0.0);
            let is_last = columns == 1 && values.is_none();
            let plot_room = plot.clamp(0.0, PLOT_MOST);
            (plot >= PLOT_LEAST || is_last).then_some(Layout {
                columns,
                names,
                plot: plot_room,
                values,
            })
        };
        let columns = || (1..=chart.panels.len().max(1)).rev();
        let with = columns().filter_map(|n| of(Some(digits), n));
        with.chain(columns().filter_map(|n| of(None, n))).collect()
    }

    fn panel(&self) -> f64 {
        self.names + self.plot + self.values.unwrap_or(0.0) + 2.0 * GAP
    }
}

/// What has a row.
fn drawn(panel: &Panel) -> impl Iterator<Item = &Series> {
    panel.series.iter().filter(|series| series.kind != Kind::Model)
}

/// What stands above the rows: values or ranges and their names.
fn notes(panel: &Panel) -> Vec<(f64, &str)> {
    let band = panel.band.as_ref().map(|(range, name)| (range.high, name.as_str()));
    panel.bounds.iter().map(|(value, name)| (*value, name.as_str())).chain(band).collect()
}

fn head(panel: &Panel, layout: &Layout) -> f64 {
    let lines = plot::title(panel, layout.panel()).len() as f64;
    TITLE_LINE * lines + NOTE * notes(panel).len() as f64 + 8.0
}

fn height(panel: &Panel, layout: &Layout) -> f64 {
    head(panel, layout) + ROW * drawn(panel).count() as f64 + FOOT
}

/// A panel on its place.
struct Rows<'a> {
    panel: &'a Panel,
    layout: &'a Layout,
    /// Upper left corner.
    corner: (f64, f64),
    /// Of the rows.
    top: f64,
    bottom: f64,
}

impl<'a> Rows<'a> {
    fn below(panel: &'a Panel, layout: &'a Layout, corner: (f64, f64)) -> Rows<'a> {
        let top = corner.1 + head(panel, layout);
        let bottom = top + ROW * drawn(panel).count() as f64;
        Rows { panel, layout, corner, top, bottom }
    }

    fn draw(&self, svg: &mut Svg, at: &str) {
        for (i, line) in plot::title(self.panel, self.layout.panel()).iter().enumerate() {
            let y = self.corner.1 + TITLE_LINE * (i as f64 + 1.0);
            svg.text(self.corner.0, y, Anchor::Start, "tp", line);
        }
        if let Some((range, _)) = &self.panel.band {
            let (low, high) = (self.inside(range.low), self.inside(range.high));
            let (top, bottom) = (self.top, self.bottom);
            svg.area(&[(low, top), (high, top), (high, bottom), (low, bottom)], "delta");
        }
        self.axis(svg, at);
        self.notes(svg);
        for (i, series) in drawn(self.panel).enumerate() {
            self.row(svg, series, self.top + ROW * (i as f64 + 0.5));
        }
    }

    fn left(&self) -> f64 {
        self.corner.0 + self.layout.names
    }

    fn x(&self, value: f64) -> f64 {
        self.left() + self.layout.plot * self.panel.y.position(value)
    }

    /// As [`Self::x`], and on the scale.
    fn inside(&self, value: f64) -> f64 {
        self.x(value).clamp(self.left(), self.left() + self.layout.plot)
    }

    fn axis(&self, svg: &mut Svg, at: &str) {
        let scale = &self.panel.y;
        let widest = scale.ticks.iter().map(|(_, label)| svg::width(label, 11.5));
        let apart = widest.fold(0.0, f64::max) + 8.0;
        for (value, label) in scale.spaced(self.layout.plot, apart) {
            let x = self.x(*value);
            svg.line((x, self.top), (x, self.bottom), "grid");
            svg.text(x, self.bottom + 16.0, Anchor::Middle, "tk", label);
        }
        let right = self.left() + self.layout.plot;
        svg.line((self.left(), self.bottom), (right, self.bottom), "axis");
        let name = format!("{}; {at}", self.panel.y_name);
        let middle = (self.left() + right) / 2.0;
        // A long name is centred below the whole panel, where it has more room.
        let middle = match svg::width(&name, 12.0) > self.layout.plot {
            true => self.corner.0 + self.layout.panel() / 2.0,
            false => middle,
        };
        svg.text(middle, self.bottom + 33.0, Anchor::Middle, "tn", &name);
    }

    /// Bounds as lines, and names above them and above the band, a line each.
    fn notes(&self, svg: &mut Svg) {
        for (value, _) in &self.panel.bounds {
            let x = self.inside(*value);
            svg.line((x, self.top), (x, self.bottom), "bound");
        }
        let notes = notes(self.panel);
        for (i, (value, name)) in notes.iter().enumerate() {
            let (x, y) = (self.inside(*value), self.top - 5.0 - NOTE * i as f64);
            let anchor = match x - self.left() > self.layout.plot / 2.0 {
                true => Anchor::End,
                false => Anchor::Start,
            };
            svg.text(x, y, anchor, "td", name);
        }
    }

    fn row(&self, svg: &mut Svg, series: &Series, middle: f64) {
        let hue = series.look.hue;
        let name = format!("tl f c-{hue}");
        svg.text(self.corner.0, middle + 4.0, Anchor::Start, &name, &series.label);
        let word = series.missing.first().map(|gap| gap.word);
        match (series.points.first(), word) {
            (Some(point), _) => self.value(svg, series, point, middle),
            (None, Some(word)) => {
                svg.text(self.left() + 4.0, middle + 4.0, Anchor::Start, "td", word);
            }
            (None, None) => {}
        }
    }

    /// A value with its interval; one that lies outside the scale stands at its edge in digits.
    fn value(&self, svg: &mut Svg, series: &Series, point: &Point, middle: f64) {
        let (hue, right) = (series.look.hue, self.left() + self.layout.plot);
        if let Some(interval) = point.interval {
            let (low, high) = (self.inside(interval.low), self.inside(interval.high));
            if low < high {
                svg.line((low, middle), (high, middle), &format!("s c-{hue} whisker"));
            }
        }
        if self.panel.y.contains(point.value) {
            self.mark(svg, series, point, middle);
        } else {
            let text = point.digits();
            let half = svg::width(&text, 11.0) / 2.0 + 2.0;
            let x = self.inside(point.value).clamp(self.left() + half, right - half);
            svg.edge((x, middle + 4.0), &format!("to f c-{hue}"), &text, &point.hover);
        }
        if self.layout.values.is_some() {
            svg.text(right + GAP, middle + 4.0, Anchor::Start, "td", &point.text);
        }
    }

    fn mark(&self, svg: &mut Svg, series: &Series, point: &Point, middle: f64) {
        let (x, hue) = (self.x(point.value), series.look.hue);
        if series.kind == Kind::Baseline {
            let line = [(x, self.top), (x, self.bottom)];
            svg.polyline(&line, &format!("s c-{hue} base"), series.look.dash);
        }
        let fill = if point.open { "open" } else { "f" };
        let class = format!("{fill} s c-{hue} mark");
        match point.hover.is_empty() {
            // What the others are compared with says nothing of itself.
            true => svg.marker((x, middle), series.look.marker, &class),
            false => svg.point((x, middle), Some(series.look.marker), &class, &point.hover),
        }
    }
}

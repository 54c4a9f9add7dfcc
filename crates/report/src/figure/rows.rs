//! A chart whose numbers all belong to one place of its horizontal axis, such as the only
//! size of a run: a curve of one point is none, so each arm has a row, and its value and
//! interval lie along the scale.

use iolens_model::units::three_digits;

use super::chart::{Chart, Kind, Panel, Point, Series};
use super::draw::{self, TITLE_LINE};
use super::sheet::{Drawing, Medium, Said, Sheet};
use super::svg::{self, Spot, Svg};

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
pub(crate) fn draw(said: &Said, chart: &Chart, place: f64, medium: Medium) -> Option<Drawing> {
    // The first that fits is the best to read.
    let layouts = Layout::all(chart, medium).into_iter();
    medium.fitting(layouts.map(|layout| draw_in(said, chart, place, medium, &layout)))
}

fn draw_in(said: &Said, chart: &Chart, place: f64, medium: Medium, layout: &Layout) -> Drawing {
    let mut sheet = Sheet::new(said, medium, layout.panel() * layout.columns as f64);
    sheet.y += 6.0;
    let at = chart.along.at(place);
    for panels in chart.panels.chunks(layout.columns) {
        let mut below = sheet.y;
        for (column, panel) in panels.iter().enumerate() {
            let rows = Rows::of(panel, layout, (layout.panel() * column as f64, sheet.y));
            rows.draw(&mut sheet.svg, &at);
            below = below.max(rows.bottom + FOOT);
        }
        sheet.y = below;
    }
    sheet.finish()
}

/// How wide the parts of every panel are.
struct Layout {
    columns: usize,
    names: f64,
    plot: f64,
    /// Room for values in digits, where there is some.
    values: f64,
}

impl Layout {
    /// Those that have room, first with values, and of these the ones with most beside each
    /// other. One below the other has room always.
    fn all(chart: &Chart, medium: Medium) -> Vec<Layout> {
        let labels = chart.named().into_iter().map(|series| &*series.label);
        let texts = chart.panels.iter().flat_map(Panel::points).map(|point| &*point.text);
        let (names, digits) = (svg::widest(labels, 12.0) + GAP, svg::widest(texts, 11.0) + GAP);
        let mut all = Vec::new();
        for values in [digits, 0.0] {
            for columns in (1..=chart.panels.len()).rev() {
                let room = medium.width() / columns as f64 - names - 2.0 * GAP - values;
                let plot = room.clamp(0.0, PLOT_MOST);
                if room >= PLOT_LEAST || (columns == 1 && values == 0.0) {
                    all.push(Layout { columns, names, plot, values });
                }
            }
        }
        all
    }

    fn panel(&self) -> f64 {
        self.names + self.plot + self.values + 2.0 * GAP
    }
}

/// A panel on its place.
struct Rows<'a> {
    panel: &'a Panel,
    layout: &'a Layout,
    /// What stands above the rows: values or ranges and their names.
    notes: Vec<(f64, &'a str)>,
    title: Vec<String>,
    /// Upper left corner.
    corner: Spot,
    /// Edges of the scale.
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl<'a> Rows<'a> {
    fn of(panel: &'a Panel, layout: &'a Layout, corner: Spot) -> Rows<'a> {
        let band = panel.band.as_ref().map(|(range, name)| (range.high, &**name));
        let notes: Vec<_> =
            panel.bounds.iter().map(|(value, name)| (*value, &**name)).chain(band).collect();
        let title = draw::title(panel, layout.panel());
        let head = TITLE_LINE * title.len() as f64 + NOTE * notes.len() as f64 + 8.0;
        let (left, top) = (corner.0 + layout.names, corner.1 + head);
        let (right, bottom) = (left + layout.plot, top + ROW * panel.named().count() as f64);
        Rows { panel, layout, notes, title, corner, left, right, top, bottom }
    }

    fn draw(&self, svg: &mut Svg, at: &str) {
        for (i, line) in self.title.iter().enumerate() {
            svg.text(self.corner.0, self.corner.1 + TITLE_LINE * (i as f64 + 1.0), "tp", line);
        }
        let (top, bottom) = (self.top, self.bottom);
        if let Some((range, _)) = &self.panel.band {
            let (low, high) = (self.inside(range.low), self.inside(range.high));
            svg.block((low, top), (high, bottom), "delta");
        }
        self.axis(svg, at);
        // Bounds as lines, and names above them and above the band, a line each.
        for (value, _) in &self.panel.bounds {
            let x = self.inside(*value);
            svg.line((x, top), (x, bottom), "bound");
        }
        for (i, (value, name)) in self.notes.iter().enumerate() {
            let (x, y) = (self.inside(*value), top - 5.0 - NOTE * i as f64);
            let is_right = x - self.left > self.layout.plot / 2.0;
            svg.text(x, y, if is_right { "td ae" } else { "td" }, name);
        }
        for (i, series) in self.panel.named().enumerate() {
            self.row(svg, series, top + ROW * (i as f64 + 0.5));
        }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.layout.plot * self.panel.y.position(value)
    }

    /// As [`Self::x`], and on the scale.
    fn inside(&self, value: f64) -> f64 {
        self.x(value).clamp(self.left, self.right)
    }

    fn axis(&self, svg: &mut Svg, at: &str) {
        let (scale, bottom) = (&self.panel.y, self.bottom);
        let apart = svg::widest(scale.ticks.iter().map(|(_, label)| &**label), 11.5) + 8.0;
        for (value, label) in scale.spaced(self.layout.plot, apart) {
            let x = self.x(*value);
            svg.line((x, self.top), (x, bottom), "grid");
            svg.text(x, bottom + 16.0, "tk am", label);
        }
        svg.line((self.left, bottom), (self.right, bottom), "axis");
        let name = match at {
            "" => self.panel.y_name.clone(),
            at => format!("{}; {at}", self.panel.y_name),
        };
        // A long name is centred below the whole panel, where it has more room.
        let middle = match svg::width(&name, 12.0) > self.layout.plot {
            true => self.corner.0 + self.layout.panel() / 2.0,
            false => (self.left + self.right) / 2.0,
        };
        svg.text(middle, bottom + 33.0, "tn am", &name);
    }

    fn row(&self, svg: &mut Svg, series: &Series, middle: f64) {
        let (name, y) = (format!("tl f c-{}", series.look.hue), middle + 4.0);
        svg.text(self.corner.0, y, &name, &series.label);
        if let Some(point) = series.points.first() {
            self.value(svg, series, point, middle);
        } else if let Some((_, word)) = series.missing.first() {
            svg.text(self.left + 4.0, y, "td", word);
        }
    }

    /// A value with its interval; one that lies outside the scale stands at its edge in digits.
    fn value(&self, svg: &mut Svg, series: &Series, point: &Point, middle: f64) {
        let look = series.look;
        if let Some(interval) = point.interval {
            let [low, high] = [interval.low, interval.high].map(|end| self.inside(end));
            if low < high {
                svg.line((low, middle), (high, middle), &look.stroke("whisker"));
            }
        }
        let x = self.x(point.value);
        if !self.panel.y.contains(point.value) {
            let text = three_digits(point.value);
            let half = svg::width(&text, 11.0) / 2.0 + 2.0;
            let x = x.clamp(self.left + half, self.right - half);
            svg.edge((x, middle + 4.0), look, &text, &point.hover);
        } else if series.kind == Kind::Baseline {
            // What the others are compared with says nothing of itself.
            svg.polyline(&[(x, self.top), (x, self.bottom)], &look.stroke("base"), look.dash);
            svg.marker((x, middle), look, point.open);
        } else {
            svg.point((x, middle), Some((look, point.open)), &point.hover);
        }
        if self.layout.values > 0.0 {
            svg.text(self.right + GAP, middle + 4.0, "td", &point.text);
        }
    }
}

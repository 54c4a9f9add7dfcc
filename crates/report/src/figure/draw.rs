//! A chart as SVG: small multiples in rows, curves named at their ends where
//! there is room for that, in a legend above where there is none. A plot has axes, curves with
//! their intervals, and what has no place on the scale.

use iolens_model::units::three_digits;

use super::chart::{Chart, Kind, Panel, Point, Series};
use super::sheet::{Drawing, Medium, Said, Sheet};
use super::svg::{self, Spot, Svg};

/// Room for the value axis.
const AXIS_WIDTH: f64 = 62.0;
/// Room for the plot's title and the name of its value axis.
const TITLE_HEIGHT: f64 = 44.0;
/// Distance of the lines of a title.
pub(super) const TITLE_LINE: f64 = 15.0;
/// Room for the ticks of the horizontal axis.
const AXIS_HEIGHT: f64 = 36.0;
/// Room for its name.
const AXIS_NAME_HEIGHT: f64 = 16.0;
/// Between a plot and the names of its curves.
const LABEL_INDENT: f64 = 14.0;
/// Distance of two labels at 12 px.
const LABEL_GAP: f64 = 15.0;
/// Height of a line of texts at an edge, and of the names of caches above the curves.
const EDGE_LINE: f64 = 12.0;
/// Room that a point's mark takes to each side.
const MARK_RADIUS: f64 = 5.0;
/// Height of the name of a bound that is far above the plot.
const FAR_LINE: f64 = 14.0;
/// Room that the name of a bound takes above its line.
const BOUND_NAME: f64 = 18.0;

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
pub(super) fn draw(said: &Said, chart: &Chart, medium: Medium) -> Drawing {
    draw_in(said, chart, medium, &Layout::of(said, chart, medium))
}

fn draw_in(said: &Said, chart: &Chart, medium: Medium, layout: &Layout) -> Drawing {
    let Layout { columns, is_named, .. } = *layout;
    let [panel_width, panel_height] = layout.panel();
    let total = panel_width * columns as f64;
    let mut sheet = Sheet::new(said, medium, total);
    if !is_named {
        let named = chart.named().into_iter();
        sheet.legend(named.map(|series| (series.look, &*series.label)));
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        let left = panel_width * (i % columns) as f64 + AXIS_WIDTH;
        let top = sheet.y + panel_height * (i / columns) as f64 + layout.title_height;
        let (right, bottom) = (left + layout.plot_width, top + layout.plot_height);
        let highest = top + room_above(chart);
        let is_lowest = i + columns >= chart.panels.len();
        Plot { chart, panel, left, right, top, bottom, highest, is_named, is_lowest }
            .draw(&mut sheet.svg, panel_width);
    }
    sheet.y += panel_height * layout.rows as f64 + AXIS_NAME_HEIGHT;
    sheet.finish()
}

impl Layout {
    /// Names stand at the curves as long as the plots stay this wide.
    const NAMED_MIN: f64 = 300.0;
    const PLOT_MAX: f64 = 640.0;
    const GAP: f64 = 14.0;

    fn of(said: &Said, chart: &Chart, medium: Medium) -> Layout {
        let panels = chart.panels.len().max(1);
        if matches!(medium, Medium::Slide(_)) {
            let layouts = (1..=panels).filter_map(|n| Layout::on_slide(said, chart, medium, n));
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
        let lines = chart.panels.iter().map(|panel| title(panel, each).len());
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
    fn on_slide(said: &Said, chart: &Chart, medium: Medium, columns: usize) -> Option<Layout> {
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
        let free = medium.height() - draw_in(said, chart, medium, &least).height;
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

/// A plot and its edges, in user units, without its axes and labels.
struct Plot<'a> {
    chart: &'a Chart,
    panel: &'a Panel,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// The height of its highest value.
    highest: f64,
    /// Whether the curves are named at their ends; else a legend does it.
    is_named: bool,
    /// Whether nothing stands below it, so that it names the horizontal axis
    /// for its whole column.
    is_lowest: bool,
}

/// The title of a plot in lines of a width.
pub(super) fn title(panel: &Panel, width: f64) -> Vec<String> {
    // Bold letters are wider than those whose widths are known, and titles need a distance.
    svg::fold(&panel.title, 13.0 * 1.1, width - 8.0)
}

/// Room for the names of caches and bounds, where no curve runs through them. The same in all
/// panels, which may share a scale.
fn room_above(chart: &Chart) -> f64 {
    let is_marked = chart.caches.iter().any(|(_, bytes)| chart.x.contains(*bytes));
    let is_bounded = chart.panels.iter().any(|panel| !panel.bounds.is_empty());
    let far = chart
        .panels
        .iter()
        .map(|panel| panel.bounds.iter().filter(|(value, _)| !panel.y.contains(*value)).count());
    let marks = if is_marked { EDGE_LINE + 2.0 } else { 0.0 };
    let bounds = if is_bounded { 16.0 } else { 0.0 };
    marks + bounds + FAR_LINE * far.max().unwrap_or(0) as f64
}

impl Plot<'_> {
    /// Draws it.
    fn draw(&self, svg: &mut Svg, width: f64) {
        let panel = self.panel;
        for (i, line) in title(panel, width).iter().rev().enumerate() {
            let y = self.top - 26.0 - TITLE_LINE * i as f64;
            svg.text(self.left - AXIS_WIDTH, y, "tp", line);
        }
        if let Some((range, _)) = &panel.band {
            let (top, bottom) = (self.y_inside(range.high), self.y_inside(range.low));
            svg.block((self.left, top), (self.right, bottom), "delta");
        }
        self.axes(svg);
        self.bounds(svg);
        for (series, shift) in self.shifted() {
            self.series(svg, series, shift);
        }
        self.edges(svg);
        if self.is_named {
            self.names(svg);
        }
    }

    /// Every series, with what its points stand aside of their place.
    fn shifted(&self) -> impl Iterator<Item = (&Series, f64)> {
        let is_curve = |series: &Series| series.kind == Kind::Curve;
        let curves = self.panel.series.iter().filter(|series| is_curve(series)).count();
        let mut steps = (1.0 - curves as f64) / 2.0;
        self.panel.series.iter().map(move |series| {
            if !is_curve(series) {
                return (series, 0.0);
            }
            steps += 1.0;
            (series, self.chart.apart * (steps - 1.0))
        })
    }

    fn x(&self, place: f64) -> f64 {
        self.left + (self.right - self.left) * self.chart.x.position(place)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.highest) * self.panel.y.position(value)
    }

    /// As [`Self::y`], and inside the frame.
    fn y_inside(&self, value: f64) -> f64 {
        self.y(value).clamp(self.top, self.bottom)
    }

    /// Lines that may lie close to each other: their names stand at both ends
    /// in turn, and below a line where another one runs through the room above it.
    fn bounds(&self, svg: &mut Svg) {
        let (near, far): (Vec<_>, Vec<_>) =
            self.panel.bounds.iter().partition(|(value, _)| self.panel.y.contains(*value));
        for (nth, (_, label)) in far.into_iter().enumerate() {
            let y = self.highest - 18.0 - FAR_LINE * nth as f64;
            svg.text(self.left + 5.0, y, "td", &format!("↑ {label}"));
        }
        for (nth, (value, label)) in near.iter().enumerate() {
            let y = self.y(*value);
            svg.line((self.left, y), (self.right, y), "bound");
            let mut above = near.iter().map(|other| y - self.y(other.0));
            let is_taken = above.any(|room| room > 0.0 && room < BOUND_NAME);
            let name_y = if is_taken { y + 13.0 } else { y - 5.0 };
            match nth % 2 {
                0 => svg.text(self.left + 5.0, name_y, "td", label),
                _ => svg.text(self.right - 5.0, name_y, "td ae", label),
            }
        }
    }

    fn axes(&self, svg: &mut Svg) {
        let (left, bottom) = (self.left, self.bottom);
        for (value, label) in self.panel.y.spaced(self.bottom - self.highest, 15.0) {
            let y = self.y(*value);
            svg.line((left, y), (self.right, y), "grid");
            svg.text(left - 8.0, y + 4.0, "tk ae", label);
        }
        let step = self.chart.x.step(self.right - left);
        for (i, (place, label)) in self.chart.x.ticks.iter().enumerate() {
            let x = self.x(*place);
            svg.line((x, bottom), (x, bottom + 5.0), "axis");
            if i.is_multiple_of(step) {
                svg.text(x, bottom + 19.0, "tk am", label);
            }
        }
        self.caches(svg);
        svg.line((left, bottom), (self.right, bottom), "axis");
        if self.is_lowest {
            svg.text((left + self.right) / 2.0, bottom + 37.0, "tn am", self.chart.along.name);
        }
        svg.text(left - AXIS_WIDTH, self.top - 10.0, "tn", &self.panel.y_name);
    }

    fn caches(&self, svg: &mut Svg) {
        let mut free_from = [f64::MIN; 3];
        for (name, bytes) in self.chart.caches.iter().filter(|(_, b)| self.chart.x.contains(*b)) {
            let (x, width) = (self.x(*bytes), svg::width(name, 11.0));
            svg.line((x, self.top), (x, self.bottom), "cache");
            let line = free_from.iter().position(|free| *free <= x).unwrap_or(0);
            free_from[line] = x + width + 8.0;
            let y = self.top + 9.0 + EDGE_LINE * line as f64;
            match x + 3.0 + width > self.right {
                true => svg.text(x - 3.0, y, "td ae", name),
                false => svg.text(x + 3.0, y, "td", name),
            }
        }
    }

    fn series(&self, svg: &mut Svg, series: &Series, shift: f64) {
        for points in series.stretches() {
            self.stretch(svg, series, points, shift);
        }
        if !matches!(series.kind, Kind::Curve | Kind::Noise) {
            return;
        }
        let inside = || series.points.iter().filter(|point| self.panel.y.contains(point.value));
        let ends = inside().filter_map(|point| {
            let interval = point.interval?;
            let x = self.x(point.x) + shift;
            Some((x, self.y_inside(interval.high), self.y_inside(interval.low)))
        });
        svg.verticals(ends, &series.look.stroke("whisker"));
        for point in inside() {
            let at = (self.x(point.x) + shift, self.y(point.value));
            let marker = (series.kind == Kind::Curve).then_some((series.look, point.open));
            svg.point(at, marker, &point.hover);
        }
    }

    /// The line and the band of points between which none is missing.
    fn stretch(&self, svg: &mut Svg, series: &Series, points: &[Point], shift: f64) {
        let look = series.look;
        // What leaves the scale goes to its edge, where its value stands.
        let at = |point: &Point, value: f64| (self.x(point.x) + shift, self.y_inside(value));
        let intervals = || points.iter().filter_map(|point| Some((point, point.interval?)));
        let upper = intervals().map(|(point, i)| at(point, i.high));
        let lower = intervals().rev().map(|(point, i)| at(point, i.low));
        let outline: Vec<Spot> = upper.chain(lower).collect();
        if outline.len() > 2 {
            svg.area(&outline, &format!("f c-{} band", look.hue));
        }
        let (weight, dash) = match series.kind {
            Kind::Curve => ("curve", look.dash),
            Kind::Baseline => ("base", look.dash),
            Kind::Noise => ("noise", look.dash),
            Kind::Model => ("model", ""),
        };
        let line: Vec<Spot> = points.iter().map(|point| at(point, point.value)).collect();
        let is_seen = points.iter().any(|point| self.panel.y.contains(point.value));
        if line.len() > 1 && is_seen {
            svg.polyline(&line, &look.stroke(weight), dash);
        }
    }

    /// What has no place on the scale stands at its edge, one above the other:
    /// the values of points outside, and why a value is missing.
    fn edges(&self, svg: &mut Svg) {
        // Above the names of the caches there is no room.
        let (lowest, highest) = (self.bottom - 5.0, self.top + 2.0 * EDGE_LINE);
        let marks = self.shifted().filter(|(series, _)| series.kind == Kind::Curve);
        let marks = marks.flat_map(|(series, shift)| {
            let inside = series.points.iter().filter(|point| self.panel.y.contains(point.value));
            inside.map(move |point| {
                (self.x(point.x) + shift, self.y(point.value) + MARK_RADIUS, MARK_RADIUS)
            })
        });
        // Middle, line and half a width of each.
        let mut taken: Vec<(f64, f64, f64)> = marks.collect();
        for series in self.panel.series.iter().filter(|series| series.kind == Kind::Curve) {
            let outside = series.points.iter().filter(|point| !self.panel.y.contains(point.value));
            let outside = outside.map(|point| {
                let is_below = self.y(point.value) > self.bottom;
                (point.x, is_below, three_digits(point.value), point.hover.as_str())
            });
            let missing = series.missing.iter().map(|(x, word)| (*x, true, (*word).to_owned(), ""));
            for (place, is_below, text, hover) in outside.chain(missing) {
                let half = svg::width(&text, 11.0) / 2.0;
                let x = self.x(place).clamp(self.left + half, self.right - half);
                let (mut y, step) =
                    if is_below { (lowest, -EDGE_LINE) } else { (highest, EDGE_LINE) };
                while taken.iter().any(|other| {
                    (other.0 - x).abs() < half + other.2 + 2.0
                        && (other.1 - y).abs() < EDGE_LINE - 1.0
                }) && (self.top..self.bottom).contains(&(y + step))
                {
                    y += step;
                }
                taken.push((x, y, half));
                svg.edge((x, y), series.look, &text, hover);
            }
        }
    }

    /// Names of the curves in the margin, each with a leader to its end.
    fn names(&self, svg: &mut Svg) {
        let ends = self.panel.named().filter_map(|series| {
            let last = series.points.last()?;
            let end = (self.x(last.x) + 9.0, self.y_inside(last.value));
            Some((Some(end), end.1, series.look.hue, &series.label))
        });
        // Its lower edge, so that it stands below the baseline's own label.
        let band = self.panel.band.iter();
        let band = band.map(|(range, name)| (None, self.y(range.low), "grey", name));
        let names: Vec<_> = ends.chain(band).collect();
        let wanted: Vec<f64> = names.iter().map(|name| name.1).collect();
        let placed = spread(&wanted, LABEL_GAP, self.top + 4.0, self.bottom - 4.0);
        let x = self.right + LABEL_INDENT;
        for ((end, _, hue, name), y) in names.into_iter().zip(placed) {
            if let Some(end) = end {
                svg.line(end, (x - 4.0, y), &format!("s c-{hue} leader"));
            }
            svg.text(x, y + 4.0, &format!("tl f c-{hue}"), name);
        }
    }
}

/// Moves positions apart until neighbours are `gap` apart, inside `low..high`
/// as far as there is room. Positions keep their order and their index.
fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Neighbours too close form a block that stands around its own middle; blocks that meet
    // become one. Of each how many it has, and the sum of where they would stand.
    let mut blocks: Vec<(usize, f64)> = Vec::new();
    let first = |&(n, sum): &(usize, f64)| {
        let half = gap * (n as f64 - 1.0) / 2.0;
        (sum / n as f64).min(high - half).max(low + half) - half
    };
    for &index in &order {
        let mut block = (1, wanted[index]);
        while let Some((n, sum)) =
            blocks.pop_if(|above| first(above) + gap * above.0 as f64 > first(&block))
        {
            block = (n + block.0, sum + block.1);
        }
        blocks.push(block);
    }
    let places =
        blocks.iter().flat_map(|block| (0..block.0).map(move |i| first(block) + gap * i as f64));
    let mut placed = wanted.to_vec();
    order.into_iter().zip(places).for_each(|(index, place)| placed[index] = place);
    placed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::spread;

    #[test]
    fn labels_with_room_stay() {
        assert_eq!(spread(&[80.0, 10.0, 40.0], 15.0, 0.0, 100.0), [80.0, 10.0, 40.0]);
    }

    #[test]
    fn labels_that_touch_move_apart_around_their_middle() {
        assert_eq!(spread(&[50.0, 52.0], 14.0, 0.0, 100.0), [44.0, 58.0]);
    }

    proptest! {
        #[test]
        fn neighbours_keep_their_distance(wanted in prop::collection::vec(0.0..300.0f64, 1..9)) {
            let mut placed = spread(&wanted, 15.0, 0.0, 300.0);
            placed.sort_by(f64::total_cmp);
            prop_assert!(placed.windows(2).all(|pair| pair[1] - pair[0] > 14.999));
            prop_assert!(placed.iter().all(|y| (-1e-9..=300.000_001).contains(y)));
        }
    }
}

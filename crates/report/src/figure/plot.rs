//! One plot: axes, curves with their intervals, and what has no place on the
//! scale.

use super::chart::{Chart, Kind, Panel, Point, Series};
use super::svg::{self, Anchor, Svg};
use super::{clip, labels};

/// Space of one plot, in user units, without its axes and labels.
pub(super) struct Frame {
    /// Left edge.
    pub(super) left: f64,
    /// Top edge.
    pub(super) top: f64,
    /// Width.
    pub(super) width: f64,
    /// Height.
    pub(super) height: f64,
    /// Width that its title may have.
    pub(super) titled: f64,
    /// Whether the curves are named at their ends; else a legend does it.
    pub(super) named: bool,
    /// Whether nothing stands below it, so that it names the horizontal axis
    /// for its whole column.
    pub(super) lowest: bool,
}

/// Room for the value axis.
pub(super) const AXIS_WIDTH: f64 = 62.0;
/// Room for the plot's title and the name of its value axis.
pub(super) const TITLE_HEIGHT: f64 = 44.0;
/// Distance of the lines of a title.
pub(super) const TITLE_LINE: f64 = 15.0;
/// Room for the ticks of the horizontal axis.
pub(super) const AXIS_HEIGHT: f64 = 36.0;
/// Room for its name.
pub(super) const AXIS_NAME_HEIGHT: f64 = 16.0;
/// Distance of two labels at 12 px.
const LABEL_GAP: f64 = 15.0;
/// Height of the names of caches, above the curves.
const CACHE_LINE: f64 = 12.0;
/// Height of the name of a bound that is far above the plot.
const FAR_LINE: f64 = 14.0;

/// How many bounds of a panel are.
fn far_bounds(panel: &Panel) -> usize {
    panel.bounds.iter().filter(|(value, _)| !panel.y.contains(*value)).count()
}

/// Room that the name of a bound takes above its line.
const BOUND_NAME: f64 = 18.0;

/// A plot and where it stands.
struct Plot<'a> {
    chart: &'a Chart,
    panel: &'a Panel,
    frame: &'a Frame,
}

/// The title of a plot in lines of a width.
pub(super) fn title(panel: &Panel, width: f64) -> Vec<String> {
    // Bold letters are wider than those whose widths are known, and titles need a distance.
    svg::fold(&panel.title, 13.0 * 1.1, width - 8.0)
}

/// Draws one plot.
pub(super) fn draw(svg: &mut Svg, chart: &Chart, panel: &Panel, frame: &Frame) {
    let plot = Plot { chart, panel, frame };
    for (i, line) in title(panel, frame.titled).iter().rev().enumerate() {
        let y = frame.top - 26.0 - TITLE_LINE * i as f64;
        svg.text(frame.left - AXIS_WIDTH, y, Anchor::Start, "tp", line);
    }
    plot.band(svg);
    plot.axes(svg);
    plot.bounds(svg);
    let curves = panel.series.iter().filter(|series| series.kind == Kind::Curve).count();
    let mut drawn = 0;
    for series in &panel.series {
        let shift = match series.kind {
            Kind::Curve => {
                drawn += 1;
                chart.apart * (f64::from(drawn) - (curves as f64 + 1.0) / 2.0)
            }
            Kind::Baseline | Kind::Noise | Kind::Model => 0.0,
        };
        plot.series(svg, series, shift);
    }
    plot.edges(svg);
    if frame.named {
        plot.names(svg);
    }
}

impl Plot<'_> {
    fn right(&self) -> f64 {
        self.frame.left + self.frame.width
    }

    fn bottom(&self) -> f64 {
        self.frame.top + self.frame.height
    }

    fn x(&self, place: f64) -> f64 {
        self.frame.left + self.frame.width * self.chart.x.position(place)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - self.scale_height() * self.panel.y.position(value)
    }

    /// Height of the scale: above it stand the names of the caches and of the
    /// bound, where no curve runs through them. The same in all panels, which
    /// may share a scale.
    fn scale_height(&self) -> f64 {
        let marked = self.chart.caches.iter().any(|(_, bytes)| self.chart.x.contains(*bytes));
        let marks = if marked { CACHE_LINE + 2.0 } else { 0.0 };
        let bounded = self.chart.panels.iter().any(|panel| !panel.bounds.is_empty());
        let bound = if bounded { 16.0 } else { 0.0 };
        let far = self.chart.panels.iter().map(far_bounds).max().unwrap_or(0);
        self.frame.height - marks - bound - FAR_LINE * far as f64
    }

    /// As [`Self::y`], and inside the frame.
    fn y_inside(&self, value: f64) -> f64 {
        self.y(value).clamp(self.frame.top, self.bottom())
    }

    fn band(&self, svg: &mut Svg) {
        let Some((range, _)) = &self.panel.band else { return };
        let (top, bottom) = (self.y_inside(range.high), self.y_inside(range.low));
        let (left, right) = (self.frame.left, self.right());
        svg.area(&[(left, top), (right, top), (right, bottom), (left, bottom)], "delta");
    }

    /// Lines that may lie close to each other: their names stand at both ends
    /// in turn, and below a line where another one runs through the room above it.
    fn bounds(&self, svg: &mut Svg) {
        let (near, far): (Vec<_>, Vec<_>) =
            self.panel.bounds.iter().partition(|(value, _)| self.panel.y.contains(*value));
        let top = self.bottom() - self.scale_height() - 18.0;
        for (nth, (_, label)) in far.into_iter().enumerate() {
            let y = top - FAR_LINE * nth as f64;
            svg.text(self.frame.left + 5.0, y, Anchor::Start, "td", &format!("↑ {label}"));
        }
        for (index, (value, label)) in near.iter().enumerate() {
            let y = self.y(*value);
            svg.line((self.frame.left, y), (self.right(), y), "bound");
            let (x, anchor) = match index % 2 {
                0 => (self.frame.left + 5.0, Anchor::Start),
                _ => (self.right() - 5.0, Anchor::End),
            };
            let mut above = near.iter().map(|other| y - self.y(other.0));
            let is_taken = above.any(|room| room > 0.0 && room < BOUND_NAME);
            let name_y = if is_taken { y + 13.0 } else { y - 5.0 };
            svg.text(x, name_y, anchor, "td", label);
        }
    }

    fn axes(&self, svg: &mut Svg) {
        let (frame, bottom) = (self.frame, self.bottom());
        for (value, label) in self.panel.y.spaced(self.scale_height(), 15.0) {
            let y = self.y(*value);
            svg.line((frame.left, y), (self.right(), y), "grid");
            svg.text(frame.left - 8.0, y + 4.0, Anchor::End, "tk", label);
        }
        let step = labels::step(&self.chart.x, frame.width);
        for (i, (place, label)) in self.chart.x.ticks.iter().enumerate() {
            let x = self.x(*place);
            svg.line((x, bottom), (x, bottom + 5.0), "axis");
            if i.is_multiple_of(step) {
                svg.text(x, bottom + 19.0, Anchor::Middle, "tk", label);
            }
        }
        self.caches(svg);
        svg.line((frame.left, bottom), (self.right(), bottom), "axis");
        let middle = frame.left + frame.width / 2.0;
        if frame.lowest {
            svg.text(middle, bottom + 37.0, Anchor::Middle, "tn", &self.chart.along.name());
        }
        let name_x = frame.left - AXIS_WIDTH;
        svg.text(name_x, frame.top - 10.0, Anchor::Start, "tn", &self.panel.y_name);
    }

    fn caches(&self, svg: &mut Svg) {
        let mut free_from = [f64::MIN; 3];
        for (name, bytes) in self.chart.caches.iter().filter(|(_, b)| self.chart.x.contains(*b)) {
            let x = self.x(*bytes);
            svg.line((x, self.frame.top), (x, self.bottom()), "cache");
            let line = free_from.iter().position(|free| *free <= x).unwrap_or(0);
            free_from[line] = x + svg::width(name, 11.0) + 8.0;
            let y = self.frame.top + 9.0 + CACHE_LINE * line as f64;
            match x + 3.0 + svg::width(name, 11.0) > self.right() {
                true => svg.text(x - 3.0, y, Anchor::End, "td", name),
                false => svg.text(x + 3.0, y, Anchor::Start, "td", name),
            }
        }
    }

    fn series(&self, svg: &mut Svg, series: &Series, shift: f64) {
        for stretch in series.stretches() {
            self.stretch(svg, series, stretch, shift);
        }
        if matches!(series.kind, Kind::Curve | Kind::Noise) {
            self.whiskers(svg, series, shift);
            for point in &series.points {
                self.point(svg, series, point, shift);
            }
        }
    }

    /// The line and the band of points between which none is missing.
    fn stretch(&self, svg: &mut Svg, series: &Series, points: &[Point], shift: f64) {
        let hue = series.look.hue;
        let (top, bottom) = (self.frame.top, self.bottom());
        let at = |place: f64, value: f64| (self.x(place) + shift, self.y(value));
        let intervals = || points.iter().filter_map(|point| Some((point.x, point.interval?)));
        if intervals().count() > 1 {
            let mut outline: Vec<(f64, f64)> = intervals().map(|(x, i)| at(x, i.high)).collect();
            let mut lower: Vec<(f64, f64)> = intervals().map(|(x, i)| at(x, i.low)).collect();
            lower.reverse();
            outline.extend(lower);
            svg.area(&clip::area(&outline, top, bottom), &format!("f c-{hue} band"));
        }
        let (weight, dash) = match series.kind {
            Kind::Curve => ("curve", series.look.dash),
            Kind::Baseline => ("base", series.look.dash),
            Kind::Noise => ("noise", series.look.dash),
            Kind::Model => ("model", ""),
        };
        let line: Vec<(f64, f64)> = points.iter().map(|point| at(point.x, point.value)).collect();
        for part in clip::line(&line, top, bottom) {
            svg.polyline(&part, &format!("s c-{hue} {weight}"), dash);
        }
    }

    /// The intervals of a curve's points, one mark for all.
    fn whiskers(&self, svg: &mut Svg, series: &Series, shift: f64) {
        let inside = series.points.iter().filter(|point| self.panel.y.contains(point.value));
        let ends = inside.filter_map(|point| {
            let (x, interval) = (self.x(point.x) + shift, point.interval?);
            Some((x, self.y_inside(interval.high), self.y_inside(interval.low)))
        });
        svg.verticals(ends, &format!("s c-{} whisker", series.look.hue));
    }

    fn point(&self, svg: &mut Svg, series: &Series, point: &Point, shift: f64) {
        let hue = series.look.hue;
        let x = self.x(point.x) + shift;
        if !self.panel.y.contains(point.value) {
            return;
        }
        let at = (x, self.y(point.value));
        let marker = (series.kind == Kind::Curve).then_some(series.look.marker);
        let fill = if point.open { "open" } else { "f" };
        svg.point(at, marker, &format!("{fill} s c-{hue} mark"), &point.hover);
    }

    /// What has no place on the scale stands at its edge, one above the other:
    /// the values of points outside, and why a value is missing.
    fn edges(&self, svg: &mut Svg) {
        // Above the names of the caches there is no room.
        let (lowest, highest) = (self.bottom() - 5.0, self.frame.top + 2.0 * EDGE_LINE);
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        for series in self.panel.series.iter().filter(|series| series.kind == Kind::Curve) {
            let outside = series.points.iter().filter(|point| !self.panel.y.contains(point.value));
            let outside = outside.map(|point| {
                let below = self.y(point.value) > self.bottom();
                let edge = if below { lowest } else { highest };
                (point.x, edge, point.digits(), point.hover.as_str())
            });
            let missing = series.missing.iter().map(|gap| (gap.x, lowest, gap.word.to_owned(), ""));
            for (place, first, text, hover) in outside.chain(missing) {
                let half = svg::width(&text, 11.0) / 2.0;
                let x = self.x(place).clamp(self.frame.left + half, self.right() - half);
                let step = if first == lowest { -EDGE_LINE } else { EDGE_LINE };
                let y = free_line(&taken, (x, first, half), step);
                taken.push((x, y, half));
                svg.edge((x, y), &format!("to f c-{}", series.look.hue), &text, hover);
            }
        }
    }

    /// Names of the curves in the margin, each with a leader to its end.
    fn names(&self, svg: &mut Svg) {
        let mut labels: Vec<Label> = Vec::new();
        for series in self.panel.series.iter().filter(|series| series.kind != Kind::Model) {
            let Some(last) = series.points.last() else { continue };
            let (y, from_x) = (self.y_inside(last.value), Some(self.x(last.x)));
            labels.push(Label { y, from_x, hue: series.look.hue, text: &series.label });
        }
        if let Some((range, text)) = &self.panel.band {
            // Its lower edge, so that it stands below the baseline's own label.
            labels.push(Label { y: self.y(range.low), from_x: None, hue: "grey", text });
        }
        let wanted: Vec<f64> = labels.iter().map(|label| label.y).collect();
        let (low, high) = (self.frame.top + 4.0, self.bottom() - 4.0);
        let placed = labels::spread(&wanted, LABEL_GAP, low, high);
        let x = self.right() + LABEL_INDENT;
        for (label, y) in labels.into_iter().zip(placed) {
            let hue = label.hue;
            if let Some(from_x) = label.from_x {
                svg.line((from_x + 9.0, label.y), (x - 4.0, y), &format!("s c-{hue} leader"));
            }
            svg.text(x, y + 4.0, Anchor::Start, &format!("tl f c-{hue}"), label.text);
        }
    }
}

/// Between a plot and the names of its curves.
pub(super) const LABEL_INDENT: f64 = 14.0;

/// Height of a line of texts at an edge.
const EDGE_LINE: f64 = 12.0;

/// The first line, from that of a text's place on in steps, where it covers
/// none of the texts that stand there: middle, line and half a width each.
fn free_line(taken: &[(f64, f64, f64)], (x, first, half): (f64, f64, f64), step: f64) -> f64 {
    let covers = |y: f64| {
        let near = |&(other_x, other_y, other_half): &(f64, f64, f64)| {
            (other_x - x).abs() < half + other_half + 2.0 && (other_y - y).abs() < EDGE_LINE - 1.0
        };
        taken.iter().any(near)
    };
    let lines = taken.len() + 1;
    let mut candidates = (0..lines).map(|i| first + step * i as f64);
    candidates.find(|y| !covers(*y)).unwrap_or(first)
}

/// A label in the margin: where it belongs, where its leader begins, how it
/// looks, what it says.
struct Label<'a> {
    y: f64,
    from_x: Option<f64>,
    hue: &'static str,
    text: &'a str,
}

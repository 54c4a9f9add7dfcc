//! A chart as SVG: small multiples side by side, two in a row, curves labelled
//! at their ends.

use super::chart::{Chart, Kind, Panel, Point, Series};
use super::style::HUES;
use super::svg::{Anchor, Svg, escape};
use super::{clip, labels};
use crate::number;

/// Space of one panel, in user units (pixels at 1:1).
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

const AXIS_WIDTH: f64 = 62.0;
const LABEL_WIDTH: f64 = 130.0;
const HEADER_HEIGHT: f64 = 54.0;
const TITLE_HEIGHT: f64 = 46.0;
const AXIS_HEIGHT: f64 = 56.0;
const FOOTER_HEIGHT: f64 = 40.0;
/// Distance of two labels at 12 px.
const LABEL_GAP: f64 = 15.0;

/// A drawn chart.
pub(crate) struct Drawing {
    title: String,
    width: f64,
    height: f64,
    body: String,
}

/// Draws a chart.
pub(crate) fn draw(chart: &Chart) -> Drawing {
    let columns = chart.panels.len().clamp(1, 2);
    let rows = chart.panels.len().div_ceil(columns);
    let (plot_width, plot_height) = if columns == 1 { (640.0, 380.0) } else { (396.0, 340.0) };
    let panel_width = AXIS_WIDTH + plot_width + LABEL_WIDTH;
    let panel_height = TITLE_HEIGHT + plot_height + AXIS_HEIGHT;
    let width = panel_width * columns as f64;
    let height = HEADER_HEIGHT + panel_height * rows as f64 + FOOTER_HEIGHT;
    let mut svg = Svg::default();
    svg.text(0.0, 18.0, Anchor::Start, "t1", &chart.title);
    svg.text(0.0, 38.0, Anchor::Start, "t2", &chart.subtitle);
    for (i, panel) in chart.panels.iter().enumerate() {
        let frame = Frame {
            left: panel_width * (i % columns) as f64 + AXIS_WIDTH,
            top: HEADER_HEIGHT + panel_height * (i / columns) as f64 + TITLE_HEIGHT,
            width: plot_width,
            height: plot_height,
        };
        draw_panel(&mut svg, chart, panel, &frame);
    }
    let [machine, software] = &chart.footer;
    svg.text(0.0, height - 20.0, Anchor::Start, "t3", machine);
    svg.text(0.0, height - 5.0, Anchor::Start, "t3", software);
    Drawing { title: chart.title.clone(), width, height, body: svg.finish() }
}

impl Frame {
    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn x(&self, chart: &Chart, bytes: f64) -> f64 {
        self.left + self.width * chart.x.position(bytes)
    }

    fn y(&self, chart: &Chart, value: f64) -> f64 {
        self.bottom() - self.height * chart.y.position(value)
    }
}

fn draw_panel(svg: &mut Svg, chart: &Chart, panel: &Panel, frame: &Frame) {
    svg.text(frame.left - AXIS_WIDTH, frame.top - 28.0, Anchor::Start, "tp", &panel.title);
    draw_axes(svg, chart, frame);
    if let Some((range, _)) = &chart.band {
        let (top, bottom) = (frame.y(chart, range.high), frame.y(chart, range.low));
        let corners = [
            (frame.left, top),
            (frame.right(), top),
            (frame.right(), bottom),
            (frame.left, bottom),
        ];
        svg.area(&corners, "delta");
    }
    if let Some((value, label)) = &panel.bound {
        let y = frame.y(chart, *value);
        svg.line((frame.left, y), (frame.right(), y), "bound");
        svg.text(frame.left + 5.0, y - 5.0, Anchor::Start, "td", label);
    }
    let curves = panel.series.iter().filter(|series| series.kind == Kind::Curve).count();
    let mut drawn = 0;
    for series in &panel.series {
        // Points of one size stand side by side, so that whiskers can be read.
        let shift = match series.kind {
            Kind::Curve => {
                drawn += 1;
                3.5 * (drawn as f64 - (curves as f64 + 1.0) / 2.0)
            }
            Kind::Baseline | Kind::Noise => 0.0,
        };
        draw_series(svg, chart, series, frame, shift);
    }
    draw_edges(svg, chart, panel, frame);
    draw_labels(svg, chart, panel, frame);
}

fn draw_axes(svg: &mut Svg, chart: &Chart, frame: &Frame) {
    for (value, label) in &chart.y.ticks {
        let y = frame.y(chart, *value);
        svg.line((frame.left, y), (frame.right(), y), "grid");
        svg.text(frame.left - 8.0, y + 4.0, Anchor::End, "tk", label);
    }
    for (bytes, label) in &chart.x.ticks {
        let x = frame.x(chart, *bytes);
        svg.line((x, frame.bottom()), (x, frame.bottom() + 5.0), "axis");
        svg.text(x, frame.bottom() + 19.0, Anchor::Middle, "tk", label);
    }
    for (name, bytes) in chart.caches.iter().filter(|(_, bytes)| chart.x.contains(*bytes)) {
        let x = frame.x(chart, *bytes);
        svg.line((x, frame.top), (x, frame.bottom()), "cache");
        svg.text(x + 3.0, frame.top + 9.0, Anchor::Start, "td", name);
    }
    svg.line((frame.left, frame.bottom()), (frame.right(), frame.bottom()), "axis");
    let middle = frame.left + frame.width / 2.0;
    svg.text(middle, frame.bottom() + 38.0, Anchor::Middle, "tn", "message size, log scale");
    svg.text(frame.left - AXIS_WIDTH, frame.top - 10.0, Anchor::Start, "tn", &chart.y_name);
}

fn draw_series(svg: &mut Svg, chart: &Chart, series: &Series, frame: &Frame, shift: f64) {
    for stretch in series.stretches() {
        draw_stretch(svg, chart, series, stretch, frame, shift);
    }
    if series.kind != Kind::Baseline {
        for point in &series.points {
            draw_point(svg, chart, series, frame, point, shift);
        }
    }
}

/// The line and the band of points between which none is missing.
fn draw_stretch(
    svg: &mut Svg,
    chart: &Chart,
    series: &Series,
    points: &[Point],
    frame: &Frame,
    shift: f64,
) {
    let hue = series.look.hue;
    let at = |bytes: f64, value: f64| (frame.x(chart, bytes) + shift, frame.y(chart, value));
    let intervals = || points.iter().filter_map(|point| Some((point.bytes, point.interval?)));
    if series.kind != Kind::Baseline && intervals().count() > 1 {
        let mut outline: Vec<(f64, f64)> = intervals().map(|(b, i)| at(b, i.high)).collect();
        let mut lower: Vec<(f64, f64)> = intervals().map(|(b, i)| at(b, i.low)).collect();
        lower.reverse();
        outline.extend(lower);
        let inside = clip::area(&outline, frame.top, frame.bottom());
        svg.area(&inside, &format!("f c-{hue} band"));
    }
    let weight = match series.kind {
        Kind::Curve => "curve",
        Kind::Baseline => "base",
        Kind::Noise => "noise",
    };
    let line: Vec<(f64, f64)> = points.iter().map(|point| at(point.bytes, point.value)).collect();
    for part in clip::line(&line, frame.top, frame.bottom()) {
        svg.polyline(&part, &format!("s c-{hue} {weight}"), series.look.dash);
    }
}

fn draw_point(
    svg: &mut Svg,
    chart: &Chart,
    series: &Series,
    frame: &Frame,
    point: &Point,
    shift: f64,
) {
    let hue = series.look.hue;
    let x = frame.x(chart, point.bytes) + shift;
    if !chart.y.contains(point.value) {
        return;
    }
    if let Some(interval) = point.interval {
        let y = |value: f64| frame.y(chart, value).clamp(frame.top, frame.bottom());
        let ends = ((x, y(interval.high)), (x, y(interval.low)));
        svg.line(ends.0, ends.1, &format!("s c-{hue} whisker"));
    }
    if series.kind == Kind::Curve {
        let fill = if point.open { "open" } else { "f" };
        let class = format!("{fill} s c-{hue} mark");
        svg.point((x, frame.y(chart, point.value)), series.look.marker, &class, &point.hover);
    }
}

/// What has no place on the scale stands at its edge, one above the other: the
/// values of points outside, and why a value is missing.
fn draw_edges(svg: &mut Svg, chart: &Chart, panel: &Panel, frame: &Frame) {
    const LINE: f64 = 12.0;
    let (lowest, highest) = (frame.bottom() - 5.0, frame.top + LINE);
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for series in panel.series.iter().filter(|series| series.kind == Kind::Curve) {
        let outside = series.points.iter().filter(|point| !chart.y.contains(point.value));
        let outside = outside.map(|point| {
            let below = frame.y(chart, point.value) > frame.bottom();
            (point.bytes, if below { lowest } else { highest }, number::ratio(point.value))
        });
        let missing = series.missing.iter().map(|gap| (gap.bytes, lowest, gap.word.to_owned()));
        for (bytes, first, text) in outside.chain(missing) {
            let x = frame.x(chart, bytes);
            let before = taken.iter().filter(|spot| **spot == (x, first)).count() as f64;
            taken.push((x, first));
            let y = if first == lowest { first - LINE * before } else { first + LINE * before };
            let class = format!("to f c-{}", series.look.hue);
            svg.text(x, y, Anchor::Middle, &class, &text);
        }
    }
}

/// A label in the margin: where it belongs, where its leader begins, how it
/// looks, what it says.
struct Label<'a> {
    y: f64,
    from_x: Option<f64>,
    hue: &'static str,
    text: &'a str,
}

fn draw_labels(svg: &mut Svg, chart: &Chart, panel: &Panel, frame: &Frame) {
    let mut labels: Vec<Label> = Vec::new();
    for series in &panel.series {
        let Some(last) = series.points.last() else { continue };
        let y = frame.y(chart, last.value).clamp(frame.top, frame.bottom());
        let from_x = Some(frame.x(chart, last.bytes));
        labels.push(Label { y, from_x, hue: series.look.hue, text: &series.label });
    }
    if let Some((range, text)) = &chart.band {
        // Its lower edge, so that it stands below the baseline's own label.
        labels.push(Label { y: frame.y(chart, range.low), from_x: None, hue: "grey", text });
    }
    let wanted: Vec<f64> = labels.iter().map(|label| label.y).collect();
    let placed = labels::spread(&wanted, LABEL_GAP, frame.top + 4.0, frame.bottom() - 4.0);
    let x = frame.right() + 14.0;
    for (label, y) in labels.into_iter().zip(placed) {
        let hue = label.hue;
        if let Some(from_x) = label.from_x {
            svg.line((from_x + 9.0, label.y), (x - 4.0, y), &format!("s c-{hue} leader"));
        }
        svg.text(x, y + 4.0, Anchor::Start, &format!("tl f c-{hue}"), label.text);
    }
}

/// What both forms share. Hollow markers show the paper through.
const SHAPES: &str = "\
.grid{stroke-width:1}.axis{stroke-width:1}.cache{stroke-width:1;stroke-dasharray:1 3}\
.bound{stroke-width:1.2;stroke-dasharray:6 3}.s{fill:none}.curve{stroke-width:1.8}\
.base{stroke-width:1.4}.noise{stroke-width:1}.whisker{stroke-width:1.4}\
.leader{stroke-width:.7;opacity:.7}.f{stroke:none}.band{opacity:.13}.mark{stroke-width:1.5}\
.hit{fill:transparent}\
.t1{font-size:15px;font-weight:600}.t2,.tn{font-size:12px}.t3{font-size:10.5px}\
.tp{font-size:13px;font-weight:600}.tk{font-size:11.5px}.td{font-size:10.5px}.tl{font-size:12px}.to{font-size:10.5px}";

impl Drawing {
    /// With its own styles: for files and papers.
    pub(crate) fn standalone(&self) -> String {
        let mut style = String::from(
            "text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1b1f24}\
             .grid{stroke:#e3e6ea}.axis{stroke:#5b636d}.cache,.bound{stroke:#7a828c}\
             .t2,.t3,.tn,.td,.tk{fill:#555d66}.delta{fill:#eceff2}",
        );
        style.push_str(SHAPES);
        for (hue, paper, _) in HUES {
            style.push_str(&format!(".s.c-{hue}{{stroke:{paper}}}.f.c-{hue}{{fill:{paper}}}"));
        }
        style.push_str(".open{fill:#fff}");
        let paper = r##"<rect width="100%" height="100%" fill="#fff"/>"##;
        // A margin, so that text does not touch the edge of a file.
        self.element(20.0, &format!("<style>{style}</style>\n{paper}\n"))
    }

    /// Without styles and background: they come from the page.
    pub(crate) fn inline(&self) -> String {
        self.element(0.0, "")
    }

    fn element(&self, margin: f64, lead: &str) -> String {
        let (width, height) = (self.width + 2.0 * margin, self.height + 2.0 * margin);
        let title = escape(&self.title);
        let body = &self.body;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{title}" class="chart">
{lead}<g transform="translate({margin} {margin})">
{body}</g>
</svg>
"#
        )
    }
}

/// The styles of inline figures for a page that defines `--c` per hue and the
/// colours of its paper.
pub(crate) fn page_style() -> String {
    let mut style = String::from(SHAPES);
    style.push_str(
        ".chart text{fill:var(--text)}.grid{stroke:var(--rule)}.axis{stroke:var(--faint)}\
         .cache,.bound{stroke:var(--faint)}.chart .t2,.chart .t3,.chart .tn,.chart .td,\
         .chart .tk{fill:var(--faint)}.delta{fill:var(--shade)}.s{stroke:var(--c)}\
         .chart .f{fill:var(--c)}.chart .open{fill:var(--paper)}.pt:hover .mark{stroke-width:4}",
    );
    let colours =
        |pick: fn(&(&str, &str, &str)) -> String| HUES.iter().map(pick).collect::<String>();
    style.push_str(&colours(|(hue, paper, _)| format!(".c-{hue}{{--c:{paper}}}")));
    let dark = colours(|(hue, _, screen)| format!(".c-{hue}{{--c:{screen}}}"));
    style.push_str(&format!("@media screen and (prefers-color-scheme:dark){{{dark}}}"));
    style
}

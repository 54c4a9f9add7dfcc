//! What a figure is drawn on. A medium is a page on a screen, or a file for a paper or a slide,
//! which has a size in millimetres and letters that can be read at that size. A sheet has the
//! title and the reading line above, machine and run below, both folded to its width; a drawing
//! is written in two forms.

use super::style::{HUES, Look};
use super::svg::{self, Spot, Svg, escape};

/// What a file of a figure is printed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// One of two columns of a paper, 89 mm (3.5 in).
    Column,
    /// Both columns, 183 mm (7.2 in).
    Page,
    /// A slide of 16:9, 13.33 in wide.
    Slide,
}

/// Points of a unit on paper: labels, 12 units, are set in 7 pt, and the smallest text,
/// 11 units, in 6.4 pt. Publishers ask for 5 to 8 (Nature: 5 to 7; IEEE: 8 or a little less).
const POINTS: f64 = 7.0 / 12.0;
const MM_PER_POINT: f64 = 25.4 / 72.0;
/// White at the edges of a paper's figure, in units: text must not touch them.
const MARGIN: f64 = 4.0;
/// Widths of a slide in units, the largest letters first: 11 pt to 6.6 pt for the smallest.
const SLIDES: [u16; 5] = [960, 1120, 1280, 1440, 1600];
const SLIDE_ASPECT: f64 = 16.0 / 9.0;

impl Paper {
    /// Every one.
    pub const ALL: [Paper; 3] = [Paper::Column, Paper::Page, Paper::Slide];

    /// Width of the file in millimetres.
    pub fn width_mm(self) -> f64 {
        match self {
            Paper::Column => 89.0,
            Paper::Page => 183.0,
            Paper::Slide => 25.4 * 40.0 / 3.0,
        }
    }

    /// Width in user units, margins and all, of what is no slide.
    fn width(self) -> f64 {
        self.width_mm() / MM_PER_POINT / POINTS
    }

    /// A figure as a file of this size: standalone SVG with its own light styles.
    pub(super) fn print(self, draw: impl Fn(Medium) -> Drawing) -> String {
        let medium = match self {
            Paper::Column => Medium::Column,
            Paper::Page => Medium::Columns,
            Paper::Slide => return print_slide(draw),
        };
        let drawing = draw(medium);
        let canvas = (self.width(), drawing.height + 2.0 * MARGIN);
        drawing.standalone(canvas, self.width_mm())
    }
}

/// With the largest letters with which it fits; what fits with none is shrunk.
fn print_slide(draw: impl Fn(Medium) -> Drawing) -> String {
    let drawn = |width| {
        let medium = Medium::Slide(width);
        let drawing = draw(medium);
        let is_last = Some(&width) == SLIDES.last();
        (is_last || drawing.height <= medium.height()).then_some((width, drawing))
    };
    let Some((width, drawing)) = SLIDES.into_iter().find_map(drawn) else { return String::new() };
    let margin = f64::from(width) - Medium::Slide(width).width();
    let width = f64::from(width).max((drawing.height + margin) * SLIDE_ASPECT);
    drawing.standalone((width, width / SLIDE_ASPECT), Paper::Slide.width_mm())
}

/// What a figure is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// Inside the HTML page, as wide as its column of text.
    Page,
    /// The same on the screen of a telephone.
    Narrow,
    /// A column of a paper.
    Column,
    /// All columns of a paper.
    Columns,
    /// A slide that is so many units wide, margins and all.
    Slide(u16),
}

impl Medium {
    /// Width of a drawing in user units (pixels at 1:1, three quarters of a point each).
    pub(super) fn width(self) -> f64 {
        match self {
            Medium::Page => 1176.0,
            Medium::Narrow => 358.0,
            Medium::Column => Paper::Column.width() - 2.0 * MARGIN,
            Medium::Columns => Paper::Page.width() - 2.0 * MARGIN,
            Medium::Slide(width) => 0.95 * f64::from(width),
        }
    }

    /// Height that a drawing may have; no end to it but on a slide.
    pub(super) fn height(self) -> f64 {
        match self {
            Medium::Slide(width) => f64::from(width) / SLIDE_ASPECT - 0.05 * f64::from(width),
            _ => f64::INFINITY,
        }
    }

    /// The first drawing that has the height; where none has, the lowest.
    pub(super) fn fitting(self, drawings: impl Iterator<Item = Drawing>) -> Option<Drawing> {
        let mut lowest: Option<Drawing> = None;
        for drawing in drawings {
            if drawing.height <= self.height() {
                return Some(drawing);
            }
            if lowest.as_ref().is_none_or(|other| drawing.height < other.height) {
                lowest = Some(drawing);
            }
        }
        lowest
    }

    /// Whether there is room for one thing beside its name and no more.
    pub(super) fn is_narrow(self) -> bool {
        matches!(self, Medium::Narrow | Medium::Column)
    }
}

/// What is written above and below a figure.
pub(crate) struct Said {
    pub(crate) title: String,
    /// How to read it.
    pub(crate) how: String,
    /// Machine, software and run.
    pub(crate) footer: [String; 2],
}

/// A figure in the making: what is below `y` is empty.
pub(super) struct Sheet<'a> {
    /// What is drawn so far.
    pub(super) svg: Svg,
    pub(super) width: f64,
    /// Where the next thing goes.
    pub(super) y: f64,
    said: &'a Said,
    medium: Medium,
}

/// A finished figure.
pub(crate) struct Drawing {
    title: String,
    width: f64,
    /// In user units.
    pub(super) height: f64,
    body: String,
}

impl<'a> Sheet<'a> {
    /// A sheet with its title and how to read it.
    pub(super) fn new(said: &'a Said, medium: Medium, width: f64) -> Sheet<'a> {
        // The title of a small figure may be wider than what it shows.
        let width = width.max(480.0).min(medium.width());
        let mut sheet = Sheet { svg: Svg::default(), width, y: 0.0, said, medium };
        // Bold letters are wider than those of the widths that are known.
        const BOLD: f64 = 1.1;
        sheet.lines("t1", 15.0 * BOLD, 19.0, &said.title);
        sheet.lines("t2", 12.0, 16.0, &said.how);
        sheet.y += 6.0;
        sheet
    }

    /// Text folded to the width.
    fn lines(&mut self, class: &str, size: f64, line: f64, text: &str) {
        for part in svg::fold(text, size, self.width) {
            self.y += line;
            self.svg.text(0.0, self.y, class, &part);
        }
    }

    /// A row of markers with their labels, folded to the width.
    pub(super) fn legend<'b>(&mut self, items: impl Iterator<Item = (Look, &'b str)>) {
        let mut right = 0.0;
        self.y += LINE;
        for (look, label) in items {
            let (x, y) = self.beside(&mut right, 50.0, label);
            let middle = y - 4.0;
            let line = [(x + 1.0, middle), (x + 29.0, middle)];
            self.svg.polyline(&line, &look.stroke("curve"), look.dash);
            self.svg.marker((x + 15.0, middle), look, false);
            self.svg.text(x + 36.0, y, "tl", label);
        }
        self.y += 8.0;
    }

    /// A row of squares of a class with their words, folded to the width.
    pub(super) fn tiles<'b>(&mut self, items: impl Iterator<Item = (String, &'b str)>) {
        let mut right = 0.0;
        self.y += LINE;
        for (class, word) in items {
            let (x, y) = self.beside(&mut right, 32.0, word);
            self.svg.tile((x, y - 11.0), (12.0, 12.0), &class, word);
            self.svg.text(x + 18.0, y, "tl", word);
        }
        self.y += 14.0;
    }

    /// Where a text and what belongs to it has room, behind the last or a line below.
    fn beside(&mut self, right: &mut f64, room: f64, text: &str) -> Spot {
        let width = room + svg::width(text, 12.0);
        if *right > 0.0 && *right + width > self.width {
            (*right, self.y) = (0.0, self.y + LINE);
        }
        *right += width;
        (*right - width, self.y)
    }

    /// The figure with the machine and the run below it.
    pub(super) fn finish(mut self) -> Drawing {
        self.y += 8.0;
        // A page says it once, at its top.
        let is_on_page = matches!(self.medium, Medium::Page | Medium::Narrow);
        for text in self.said.footer.iter().filter(|_| !is_on_page) {
            for part in svg::fold_at(text, " · ", 11.0, self.width) {
                self.y += 15.0;
                self.svg.text(0.0, self.y, "t3", &part);
            }
        }
        let (width, height, title) = (self.width, self.y + 6.0, self.said.title.clone());
        Drawing { title, width, height, body: self.svg.finish() }
    }
}

/// Height of a line of a legend.
const LINE: f64 = 19.0;

/// What both forms share. Hollow markers show the paper through.
const SHAPES: &str = "\
.grid{stroke-width:1}.axis{stroke-width:1}.cache{stroke-width:1;stroke-dasharray:1 3}\
.bound{stroke-width:1.2;stroke-dasharray:6 3}.s{fill:none}.curve{stroke-width:1.8}\
.base{stroke-width:1.4}.noise{stroke-width:1}.whisker{stroke-width:1.4}\
.model{stroke-width:1.3;stroke-dasharray:1.5 3}.bar{stroke-width:5;stroke-linecap:round}\
.rule{stroke-width:1}.tile{opacity:.3}.part{opacity:.8}.flame{opacity:.5}.tile.flame{opacity:.22}.mixed{stroke-width:1}.none{stroke-width:1;stroke-dasharray:3 3}\
.leader{stroke-width:.7;opacity:.7}.f{stroke:none}.band{opacity:.13}.mark{stroke-width:1.5}\
.hit{stroke:transparent;stroke-width:20;stroke-linecap:round}\
.am{text-anchor:middle}.ae{text-anchor:end}\
.t1{font-size:15px;font-weight:600}.t2,.tn{font-size:12px}.t3{font-size:11px}\
.tp{font-size:13px;font-weight:600}.tk{font-size:11.5px}.td{font-size:11px}\
.tl{font-size:12px}.to{font-size:11px}\
.to,.td{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}";

impl Drawing {
    /// With its own styles, for files: in the middle of a canvas of so many units, which is
    /// so many millimetres wide.
    fn standalone(&self, canvas: (f64, f64), width_mm: f64) -> String {
        let mut style = String::from(
            "text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1b1f24}\
             .grid,.rule,.mixed{stroke:#e3e6ea}.axis{stroke:#5b636d}.cache,.bound,.none{stroke:#7a828c}\
             .t2,.t3,.tn,.td,.tk{fill:#555d66}.delta{fill:#eceff2}.none,.mixed{fill:none}",
        );
        style.push_str(SHAPES);
        for (hue, paper, _) in HUES {
            style.push_str(&format!(".s.c-{hue}{{stroke:{paper}}}.f.c-{hue}{{fill:{paper}}}"));
        }
        style.push_str(".open{fill:#fff}.to,.td{stroke:#fff}");
        let (width, height) = canvas;
        let height_mm = width_mm * height / width;
        let (left, top) = ((width - self.width) / 2.0, (height - self.height) / 2.0);
        let (title, body) = (escape(&self.title), &self.body);
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.2} {height:.2}" width="{width_mm:.2}mm" height="{height_mm:.2}mm" role="img" aria-label="{title}">
<style>{style}</style>
<rect width="100%" height="100%" fill="#fff"/>
<g transform="translate({left:.2} {top:.2})">
{body}</g>
</svg>
"##
        )
    }

    /// Without styles and background: they come from the page.
    pub(super) fn inline(&self) -> String {
        let Drawing { width, height, body, .. } = self;
        let title = escape(&self.title);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{title}" class="chart" style="--w:{width:.0}">
{body}</svg>
"#
        )
    }
}

/// The styles of inline figures for a page that defines `--c` per hue and the
/// colours of its paper.
pub(crate) fn page_style() -> String {
    let mut style = String::from(SHAPES);
    style.push_str(
        ".chart text{fill:var(--text)}.grid,.rule{stroke:var(--rule)}.axis{stroke:var(--faint)}\
         .cache,.bound,.none{stroke:var(--faint)}.none,.mixed{fill:none}\
         .chart .t2,.chart .t3,.chart .tn,.chart .td,\
         .chart .tk{fill:var(--faint)}.delta{fill:var(--shade)}.s{stroke:var(--c)}\
         .chart .f{fill:var(--c)}.chart .open{fill:var(--paper)}.chart .to,.chart .td{stroke:var(--paper)}.pt:hover .mark{stroke-width:4}",
    );
    let colours =
        |pick: fn(&(&str, &str, &str)) -> String| HUES.iter().map(pick).collect::<String>();
    style.push_str(&colours(|(hue, paper, _)| format!(".c-{hue}{{--c:{paper}}}")));
    let dark = colours(|(hue, _, screen)| format!(".c-{hue}{{--c:{screen}}}"));
    style.push_str(&format!("@media screen and (prefers-color-scheme:dark){{{dark}}}"));
    style
}

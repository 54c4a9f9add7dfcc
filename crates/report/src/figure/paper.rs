//! What a figure is drawn for: a page on a screen, or a file for a paper or a slide, which
//! has a size in millimetres and letters that can be read at that size.

use super::*;

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
    #[must_use]
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
    pub(crate) fn print(self, draw: impl Fn(Medium) -> Drawing) -> String {
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
    pub(crate) fn width(self) -> f64 {
        match self {
            Medium::Page => 1176.0,
            Medium::Narrow => 358.0,
            Medium::Column => Paper::Column.width() - 2.0 * MARGIN,
            Medium::Columns => Paper::Page.width() - 2.0 * MARGIN,
            Medium::Slide(width) => 0.95 * f64::from(width),
        }
    }

    /// Height that a drawing may have; no end to it but on a slide.
    pub(crate) fn height(self) -> f64 {
        match self {
            Medium::Slide(width) => f64::from(width) / SLIDE_ASPECT - 0.05 * f64::from(width),
            _ => f64::INFINITY,
        }
    }

    /// The first drawing that has the height; where none has, the lowest.
    pub(crate) fn fitting(self, drawings: impl Iterator<Item = Drawing>) -> Option<Drawing> {
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
    pub(crate) fn is_narrow(self) -> bool {
        matches!(self, Medium::Narrow | Medium::Column)
    }
}

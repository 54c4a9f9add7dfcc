//! SVG elements as text.

use iolens_document::Joined;
use iolens_document::plain;

use super::style::{Look, Marker};
use crate::number::InWords;

/// A place, in user units from the upper left corner.
pub(crate) type Spot = (f64, f64);

/// Markup under construction, an element a line. Classes are those of a page's style.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    /// The markup so far.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A text, whose content is escaped. It begins at its place, is centred there with the
    /// class `am`, and ends there with `ae`.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        self.write(text_at((x, y), class, text));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: Spot, to: Spot, class: &str) {
        self.polyline(&[from, to], class, "");
    }

    /// Vertical lines, each from its place and two heights, as one element;
    /// nothing without any.
    pub(super) fn verticals(&mut self, lines: impl Iterator<Item = (f64, f64, f64)>, class: &str) {
        let vertical = |(x, from, to)| format!("M{} {}V{}", units(x), units(from), units(to));
        let outline: String = lines.map(vertical).collect();
        if !outline.is_empty() {
            self.write(path(outline, class, ""));
        }
    }

    /// A line through places, with a pattern of dashes.
    pub(super) fn polyline(&mut self, spots: &[Spot], class: &str, dash: &str) {
        self.write(path(through(spots), class, dash));
    }

    /// A filled area; nothing without a place.
    pub(super) fn area(&mut self, spots: &[Spot], class: &str) {
        if !spots.is_empty() {
            self.write(path(through(spots) + "Z", class, ""));
        }
    }

    /// A filled rectangle between two corners.
    pub(super) fn block(&mut self, from: Spot, to: Spot, class: &str) {
        self.area(&[from, (to.0, from.1), to, (from.0, to.1)], class);
    }

    /// A marker alone.
    pub(super) fn marker(&mut self, at: Spot, look: Look, is_open: bool) {
        self.write(marker(at, look, is_open));
    }

    /// A place with a title for the hover, and an invisible disc around it
    /// that is easy to hit; a marker, where there is one, hollow or not.
    pub(super) fn point(&mut self, at: Spot, shown: Option<(Look, bool)>, hover: &str) {
        let shape = shown.or_empty(|(look, is_open)| marker(at, look, is_open));
        // A line without length and with round ends is a disc, in fewer bytes.
        let disc = path(format!("M{} {}h.01", units(at.0), units(at.1)), "hit", "");
        self.titled(hover, disc + &shape);
    }

    /// A centred text at the edge of a plot; with a title where it stands for
    /// a point.
    pub(super) fn edge(&mut self, at: Spot, look: Look, text: &str, hover: &str) {
        let text = text_at(at, &format!("to f c-{} am", look.hue), text);
        match hover {
            "" => self.write(text),
            _ => self.titled(hover, format!("\n{text}\n")),
        }
    }

    /// A rectangle with a title for the hover.
    pub(super) fn tile(&mut self, corner: Spot, size: Spot, class: &str, hover: &str) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(units);
        let tile = format!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" class="{class}"/>"#
        );
        self.titled(hover, tile);
    }

    /// Stretches one behind the other, each of a width and a class, as thick lines with one
    /// title for the hover of all: a page has thousands of them.
    pub(super) fn bar<'a>(
        &mut self,
        (mut x, middle): Spot,
        height: f64,
        stretches: impl Iterator<Item = (f64, &'a str)>,
        hover: &str,
    ) {
        let (thick, middle, hover) = (units(height), units(middle), escape(hover));
        let paths = stretches.map(|(width, class)| {
            let outline = format!("M{} {middle}h{}", units(x), units(width));
            x += width;
            path(outline, &format!("s {class}"), "")
        });
        let paths: String = paths.collect();
        self.write(format!(
            r#"<g class="pt" stroke-width="{thick}"><title>{hover}</title>{paths}</g>"#
        ));
    }

    fn titled(&mut self, hover: &str, inside: String) {
        let hover = escape(hover);
        self.write(format!(r#"<g class="pt"><title>{hover}</title>{inside}</g>"#));
    }

    fn write(&mut self, element: String) {
        self.out += &element;
        self.out.push('\n');
    }
}

fn text_at((x, y): Spot, class: &str, text: &str) -> String {
    let (x, y, text) = (units(x), units(y), escape(text));
    format!(r#"<text x="{x}" y="{y}" class="{class}">{text}</text>"#)
}

fn path(outline: String, class: &str, dash: &str) -> String {
    let dash = match dash {
        "" => String::new(),
        _ => format!(r#" stroke-dasharray="{dash}""#),
    };
    format!(r#"<path d="{outline}" class="{class}"{dash}/>"#)
}

fn through(spots: &[Spot]) -> String {
    let spots = spots.iter().map(|(x, y)| format!("{} {}", units(*x), units(*y)));
    format!("M{}", spots.joined("L"))
}

/// A marker; all have about the same area.
fn marker((x, y): Spot, look: Look, is_open: bool) -> String {
    let (dx, dy, outline) = match look.marker {
        Marker::Circle => (-3.8, 0.0, "a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z"),
        Marker::Square => (-3.4, -3.4, "h6.8v6.8h-6.8Z"),
        Marker::Up => (0.0, -4.9, "l4.6 7.8h-9.2Z"),
        Marker::Down => (0.0, 4.9, "l4.6-7.8h-9.2Z"),
        Marker::Diamond => (0.0, -4.8, "l4.8 4.8-4.8 4.8-4.8-4.8Z"),
    };
    let fill = if is_open { "open" } else { "f" };
    let class = format!("{fill} s c-{} mark", look.hue);
    path(format!("M{} {}{outline}", units(x + dx), units(y + dy)), &class, "")
}

/// A coordinate or a length in user units, to a tenth.
fn units(value: f64) -> String {
    let text = format!("{value:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// About how wide a text is at a size, both in user units: a little more than
/// in most fonts that are used, and as wide as in DejaVu Sans, which is the widest of them.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let of = |character| match character {
        c if "mwMW%@".contains(c) => 0.98,
        c if " \u{a0}.,:;'|!()[]/fijlrtI".contains(c) => 0.36,
        _ => 0.6,
    };
    text.chars().map(of).sum::<f64>() * size
}

/// Width of the widest text.
pub(super) fn widest<'a>(texts: impl Iterator<Item = &'a str>, size: f64) -> f64 {
    texts.map(|text| width(text, size)).fold(0.0, f64::max)
}

/// A text in lines that are no wider than `room`, cut at blanks.
pub(super) fn fold(text: &str, size: f64, room: f64) -> Vec<String> {
    fold_at(text, " ", size, room)
}

/// As [`fold`], cut at a mark between parts, which then falls away; a part
/// that is wider than a line is cut at blanks.
pub(super) fn fold_at(text: &str, mark: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(mark).filter(|part| !part.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(&format!("{line}{mark}{part}"), size) <= room => {
                line.extend([mark, part]);
            }
            _ if mark != " " => lines.extend(fold(part, size, room)),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Text that is safe in XML content and attributes. Characters that XML 1.0
/// cannot carry become blanks.
pub(super) fn escape(text: &str) -> String {
    let safe = plain::shown(text).replace('&', "&amp;");
    safe.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_folds_at_marks_and_a_long_part_at_blanks() {
        let room = width("0123456789", 10.0);
        let fold = |text| fold_at(text, " · ", 10.0, room);
        assert_eq!(fold("ab · cd · efgh"), ["ab · cd", "efgh"]);
        assert_eq!(fold("ab cdefghi jklm · n"), ["ab cdefghi", "jklm · n"]);
        assert!(fold("").is_empty());
    }
}

//! SVG elements as text.

use std::fmt::{self, Write as _};

use super::style::Marker;

/// Markup under construction.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
}

/// Where a text hangs at its point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    /// Begins there.
    Start,
    /// Is centred there.
    Middle,
    /// Ends there.
    End,
}

impl Svg {
    /// The markup so far.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// A text; its content is escaped.
    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " am",
            Anchor::End => " ae",
        };
        let (x, y, text) = (Units(x), Units(y), escape(text));
        self.write(format_args!(r#"<text x="{x}" y="{y}" class="{class}{anchor}">{text}</text>"#));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let path = path(&[from, to]);
        self.write(format_args!(r#"<path d="{path}" class="{class}"/>"#));
    }

    /// Vertical lines, each from its place and two heights, as one element;
    /// nothing without any.
    pub(crate) fn verticals(&mut self, lines: impl Iterator<Item = (f64, f64, f64)>, class: &str) {
        let mut path = String::new();
        for (x, from, to) in lines {
            // Writing to a String cannot fail.
            let _ = write!(path, "M{} {}V{}", Units(x), Units(from), Units(to));
        }
        if !path.is_empty() {
            self.write(format_args!(r#"<path d="{path}" class="{class}"/>"#));
        }
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str, dash: &str) {
        let dash =
            if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        let path = path(points);
        self.write(format_args!(r#"<path d="{path}" class="{class}"{dash}/>"#));
    }

    /// A filled area.
    pub(crate) fn area(&mut self, points: &[(f64, f64)], class: &str) {
        let path = path(points);
        self.write(format_args!(r#"<path d="{path}Z" class="{class}"/>"#));
    }

    /// A marker alone.
    pub(crate) fn marker(&mut self, at: (f64, f64), marker: Marker, class: &str) {
        let shape = shape(marker, at.0, at.1);
        self.write(format_args!(r#"<path d="{shape}" class="{class}"/>"#));
    }

    /// A place with a title for the hover, and an invisible disc around it
    /// that is easy to hit; a marker, where there is one.
    pub(crate) fn point(
        &mut self,
        at: (f64, f64),
        marker: Option<Marker>,
        class: &str,
        hover: &str,
    ) {
        let (x, y) = at;
        let hover = escape(hover);
        let shape = marker.map_or_else(String::new, |marker| {
            format!(r#"<path d="{}" class="{class}"/>"#, shape(marker, x, y))
        });
        let (x, y) = (Units(x), Units(y));
        // A line without length and with round ends is a disc, in fewer bytes.
        self.write(format_args!(
            r#"<g class="pt"><title>{hover}</title><path d="M{x} {y}h.01" class="hit"/>{shape}</g>"#
        ));
    }

    /// A centred text at the edge of a plot; with a title where it stands for
    /// a point.
    pub(crate) fn edge(&mut self, at: (f64, f64), class: &str, text: &str, hover: &str) {
        if hover.is_empty() {
            return self.text(at.0, at.1, Anchor::Middle, class, text);
        }
        let hover = escape(hover);
        self.write(format_args!(r#"<g class="pt"><title>{hover}</title>"#));
        self.text(at.0, at.1, Anchor::Middle, class, text);
        self.write(format_args!("</g>"));
    }

    /// A rectangle with a title for the hover.
    pub(crate) fn tile(&mut self, corner: (f64, f64), size: (f64, f64), class: &str, hover: &str) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(Units);
        let hover = escape(hover);
        self.write(format_args!(
            r#"<g class="pt"><title>{hover}</title><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" class="{class}"/></g>"#
        ));
    }

    /// Stretches one behind the other, each of a width and a hue, as thick lines and with one
    /// title for the hover of all: a page has thousands of them.
    pub(crate) fn bar(
        &mut self,
        corner: (f64, f64),
        height: f64,
        stretches: &[(f64, &str)],
        hover: &str,
    ) {
        let ((mut x, top), hover) = (corner, escape(hover));
        let (middle, thick) = (Units(top + height / 2.0), Units(height));
        let mut paths = String::new();
        for (width, hue) in stretches {
            let (from, long) = (Units(x), Units(*width));
            let _ = write!(paths, r#"<path d="M{from} {middle}h{long}" class="s c-{hue}"/>"#);
            x += width;
        }
        self.write(format_args!(
            r#"<g class="pt part" stroke-width="{thick}"><title>{hover}</title>{paths}</g>"#
        ));
    }

    fn write(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.out.write_fmt(element);
        self.out.push('\n');
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let command = if i == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{} {}", Units(*x), Units(*y));
    }
    path
}

/// The outline of a marker; all have about the same area.
fn shape(marker: Marker, x: f64, y: f64) -> String {
    let (dx, dy, outline) = match marker {
        Marker::Circle => (-3.8, 0.0, "a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z"),
        Marker::Square => (-3.4, -3.4, "h6.8v6.8h-6.8Z"),
        Marker::Up => (0.0, -4.9, "l4.6 7.8h-9.2Z"),
        Marker::Down => (0.0, 4.9, "l4.6-7.8h-9.2Z"),
        Marker::Diamond => (0.0, -4.8, "l4.8 4.8-4.8 4.8-4.8-4.8Z"),
    };
    format!("M{} {}{outline}", Units(x + dx), Units(y + dy))
}

/// A coordinate or a length in user units, to a tenth.
struct Units(f64);

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        match text.strip_suffix(".0") {
            Some("-0") => f.write_str("0"),
            Some(whole) => f.write_str(whole),
            None => f.write_str(&text),
        }
    }
}

/// About how wide a text is at a size, both in user units: a little more than
/// in most fonts that are used, and as wide as in DejaVu Sans, which is the widest of them.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let of = |character: char| match character {
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.98,
        ' ' | '\u{a0}' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '(' | ')' | '[' | ']' | '/'
        | 'f' | 'i' | 'j' | 'l' | 'r' | 't' | 'I' => 0.36,
        _ => 0.6,
    };
    text.chars().map(of).sum::<f64>() * size
}

/// A text in lines that are no wider than `room`, cut at blanks.
pub(crate) fn fold(text: &str, size: f64, room: f64) -> Vec<String> {
    fold_at(text, " ", size, room)
}

/// As [`fold`], cut at a mark between parts, which then falls away; a part
/// that is wider than a line is cut at blanks.
pub(crate) fn fold_at(text: &str, mark: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(mark).filter(|part| !part.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(&format!("{line}{mark}{part}"), size) <= room => {
                line.push_str(mark);
                line.push_str(part);
            }
            _ if mark != " " && width(part, size) > room => lines.extend(fold(part, size, room)),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Text that is safe in XML content and attributes. Characters that XML 1.0
/// cannot carry become blanks.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
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

//! SVG elements as text.

use std::fmt::Write as _;

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
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.write(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{text}</text>"#
        ));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.write(format_args!(r#"<path d="M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}" class="{class}"/>"#));
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

    /// A marker with a title for the hover, and an invisible disc around it
    /// that is easy to hit.
    pub(crate) fn point(&mut self, at: (f64, f64), marker: Marker, class: &str, hover: &str) {
        let (x, y) = at;
        let hover = escape(hover);
        let shape = shape(marker, x, y);
        self.write(format_args!(
            r#"<g class="pt"><title>{hover}</title><circle cx="{x:.1}" cy="{y:.1}" r="10" class="hit"/><path d="{shape}" class="{class}"/></g>"#
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
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

/// The outline of a marker; all have about the same area.
fn shape(marker: Marker, x: f64, y: f64) -> String {
    match marker {
        Marker::Circle => {
            format!("M{:.1} {y:.1}a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0 -7.6 0Z", x - 3.8)
        }
        Marker::Square => format!("M{:.1} {:.1}h6.8v6.8h-6.8Z", x - 3.4, y - 3.4),
        Marker::Up => format!("M{x:.1} {:.1}l4.6 7.8h-9.2Z", y - 4.9),
        Marker::Down => format!("M{x:.1} {:.1}l4.6 -7.8h-9.2Z", y + 4.9),
        Marker::Diamond => format!("M{x:.1} {:.1}l4.8 4.8l-4.8 4.8l-4.8 -4.8Z", y - 4.8),
    }
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

//! The markup that this crate writes, read back: figures, and the elements of their SVG, each
//! of which stands on a line of its own.

/// A figure of a page.
pub(super) struct PageFigure<'a> {
    pub(super) id: &'a str,
    /// The drawing for a wide screen.
    pub(super) svg: &'a str,
    /// What follows it: the table with the same numbers.
    pub(super) twin: &'a str,
}

/// The figures of a page that show what was measured.
pub(super) fn figures(page: &str) -> Vec<PageFigure<'_>> {
    let all = page.split("<figure").skip(1);
    let own = all.filter_map(|rest| rest.split("</figure>").next());
    own.filter(|figure| figure.starts_with(" id="))
        .map(|figure| {
            let svg = between(figure, "<svg", "</svg>").unwrap_or_default();
            let twin = figure.find("<details").map_or("", |at| &figure[at..]);
            PageFigure { id: attribute(figure, "id").unwrap_or_default(), svg, twin }
        })
        .collect()
}

/// The text between the first of one mark and the next of another.
pub(super) fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    text.split_once(from)?.1.split_once(to).map(|(inside, _)| inside)
}

/// An attribute of the first element that has it.
pub(super) fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    between(element, &format!(" {name}=\""), "\"")
}

/// The words of an element's class.
pub(super) fn classes(element: &str) -> Vec<&str> {
    attribute(element, "class").map_or_else(Vec::new, |class| class.split(' ').collect())
}

/// The hue among the classes of an element.
pub(super) fn hue(element: &str) -> Option<&str> {
    classes(element).into_iter().find_map(|class| class.strip_prefix("c-"))
}

/// What an element says.
pub(super) fn said(element: &str) -> &str {
    between(element, ">", "<").unwrap_or_default()
}

/// How a curve is told from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Looks {
    pub(super) hue: String,
    pub(super) dash: String,
    /// The outline of its markers, from their first point on; nothing where it has none.
    pub(super) marker: String,
}

/// What is drawn in a figure of curves.
#[derive(Debug, Default)]
pub(super) struct Curves {
    /// Each look once.
    pub(super) looks: Vec<Looks>,
    /// Names at the ends of curves or in a legend, with their hue, each once.
    pub(super) names: Vec<(String, String)>,
}

/// Classes of lines that stand for an arm.
const LINES: [&str; 3] = ["curve", "base", "noise"];

/// The curves and names of an SVG.
pub(super) fn curves(svg: &str) -> Curves {
    let mut found = Curves::default();
    let mut open: Option<Looks> = None;
    let lines: Vec<&str> = svg.lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let is_line = classes(line).iter().any(|class| LINES.contains(class));
        let legend = lines.get(at..at + 2).filter(|next| is_line && is_named(next));
        if let Some([_, name]) = legend {
            found.name(said(name), hue(line));
            at += 2;
        } else if is_line {
            found.close(open.take());
            let dash = attribute(line, "stroke-dasharray").unwrap_or_default();
            let [hue, dash] = [hue(line).unwrap_or_default(), dash].map(str::to_owned);
            open = Some(Looks { hue, dash, marker: String::new() });
        } else if line.starts_with("<g class=\"pt\">") {
            if let (Some(open), Some(marker)) = (&mut open, marker(line)) {
                open.marker = marker;
            }
        } else if classes(line).first() == Some(&"tl") {
            // Beside a marker, where a figure has no curves.
            let marker = lines.get(at.wrapping_sub(2)).filter(|before| is_marker(before));
            found.name(said(line), hue(line).or_else(|| hue(marker?)));
        }
    }
    found.close(open);
    found
}

/// Whether a marker and a name follow: an entry of a legend.
fn is_named(next: &[&str]) -> bool {
    let [marker, name] = next else { return false };
    is_marker(marker) && classes(name) == ["tl"]
}

fn is_marker(line: &str) -> bool {
    line.starts_with("<path") && classes(line).contains(&"mark")
}

/// The outline of a point's marker without its place.
fn marker(point: &str) -> Option<String> {
    let mut paths = point.split("<path").skip(1);
    let path = attribute(paths.find(|path| classes(path).contains(&"mark"))?, "d")?;
    let begins = path.find(|c: char| c.is_ascii_lowercase())?;
    Some(path[begins..].to_owned())
}

impl Curves {
    fn close(&mut self, looks: Option<Looks>) {
        let Some(looks) = looks else { return };
        // A stretch whose points have no place on the scale has no markers.
        let is_part = |known: &&mut Looks| {
            let same = known.hue == looks.hue && known.dash == looks.dash;
            same && (known.marker.is_empty() || looks.marker.is_empty())
        };
        if self.looks.contains(&looks) {
            return;
        }
        match self.looks.iter_mut().find(is_part) {
            Some(known) if known.marker.is_empty() => *known = looks,
            Some(_) => {}
            None => self.looks.push(looks),
        }
    }

    fn name(&mut self, name: &str, hue: Option<&str>) {
        let Some(hue) = hue else { return };
        let named = (arm(name).to_owned(), hue.to_owned());
        // A range of values that is shaded has a name too, and is no arm.
        if !named.0.starts_with('±') && !self.names.contains(&named) {
            self.names.push(named);
        }
    }
}

/// The arm of a label, which may go on with what became of it: `(copied)`.
pub(super) fn arm(label: &str) -> &str {
    label.split(" (").next().unwrap_or(label)
}

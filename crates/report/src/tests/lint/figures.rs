//! The rules that each figure of a page must keep to.

use super::markup::{Looks, PageFigure, arm, attribute, between, classes, curves, figures, said};

/// Curves that a reader can tell apart in one figure.
const LINES_MAX: usize = 7;

/// What is wrong with the figures of a page.
pub(super) fn faults(page: &str) -> Vec<String> {
    let figures = figures(page);
    let is_judged = !page.contains("quick look: ") && !page.contains("<b>Indicative.</b>");
    let mut faults: Vec<String> =
        figures.iter().flat_map(|figure| of_figure(figure, is_judged)).collect();
    faults.extend(one_hue_each(page, &figures));
    faults
}

fn of_figure(figure: &PageFigure<'_>, is_judged: bool) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(twin(figure));
    found.extend(title(figure));
    found.extend(labels(figure));
    found.extend(ticks(figure));
    found.extend(hovers(figure, is_judged));
    let id = figure.id;
    found.into_iter().map(|fault| format!("{fault} ({id})")).collect()
}

fn twin(figure: &PageFigure<'_>) -> Option<String> {
    let rows = figure.twin.matches("<tr").count();
    (!figure.twin.contains("<table") || rows < 2).then(|| "twin: no table with numbers".to_owned())
}

fn title(figure: &PageFigure<'_>) -> Option<String> {
    let label = attribute(figure.svg, "aria-label").unwrap_or_default();
    let unit = between(label, "(", ")").is_some_and(|unit| !unit.trim().is_empty());
    (!unit).then(|| format!("title: no unit in {label:?}"))
}

/// Every curve has a name in the drawing, no two have the same looks, each has a marker, and
/// there are not too many.
fn labels(figure: &PageFigure<'_>) -> Vec<String> {
    let drawn = curves(figure.svg);
    let mut faults = Vec::new();
    if drawn.looks.len() > LINES_MAX {
        faults.push(format!("curves: {} of them", drawn.looks.len()));
    }
    for looks in &drawn.looks {
        if drawn.names.iter().all(|(_, hue)| *hue != looks.hue) {
            faults.push(format!("labels: nothing names the curve in {}", looks.hue));
        }
    }
    let plain = drawn.looks.iter().filter(|looks| looks.marker.is_empty()).count();
    // The baseline and the noise of a figure of ratios are lines without points.
    if plain > 2 {
        faults.push(format!("looks: {plain} curves without markers"));
    }
    for Looks { hue, .. } in &drawn.looks {
        let looks = drawn.looks.iter().filter(|looks| looks.hue == *hue).count();
        let names = drawn.names.iter().filter(|(_, own)| own == hue).count();
        if names > looks {
            faults.push(format!("looks: {names} names in {hue} and {looks} kinds of curves"));
        }
    }
    faults
}

/// Ticks of sizes: bytes in powers of two with IEC units, or sizes that were measured; as far
/// apart as their logarithms.
fn ticks(figure: &PageFigure<'_>) -> Vec<String> {
    let texts: Vec<&str> = figure.svg.lines().filter(|line| line.starts_with("<text")).collect();
    let names =
        texts.iter().filter(|text| classes(text).first() == Some(&"tn")).map(|text| said(text));
    let Some(name) = names.into_iter().find(|name| name.contains(" size")) else {
        return Vec::new();
    };
    let is_tick = |text: &&&str| classes(text) == ["tk", "am"];
    // Tiles stand at even distances.
    let is_scale = name.contains("log scale");
    let mut faults = Vec::new();
    let mut before: Option<(f64, f64, f64)> = None;
    for tick in texts.iter().filter(is_tick) {
        let Some(bytes) = bytes(said(tick)) else {
            // What stands in a tile, and counts of threads, are no sizes.
            if is_scale || said(tick).ends_with('B') {
                faults.push(format!("ticks: {:?} is no size in IEC units", said(tick)));
            }
            continue;
        };
        // In a row of the table, or above a column, where a unit follows.
        let mut measured = ["<", " <"].into_iter().map(|end| format!(">{}{end}", said(tick)));
        let is_measured = measured.any(|entry| figure.twin.contains(&entry));
        if !bytes.is_power_of_two() && !is_measured {
            faults.push(format!("ticks: {} is neither a power of two nor measured", said(tick)));
        }
        let number = |name| attribute(tick, name).and_then(|n| n.parse::<f64>().ok());
        let place = number("x").unwrap_or_default();
        let log = (bytes as f64).log2();
        if let Some((x, old, slope)) = before.filter(|(_, old, _)| *old < log) {
            let own = (place - x) / (log - old);
            if is_scale && slope > 0.0 && (own / slope - 1.0).abs() > 0.03 {
                faults.push(format!("ticks: {} is not where its logarithm is", said(tick)));
            }
            before = Some((place, log, own));
        } else {
            before = Some((place, log, 0.0));
        }
    }
    faults
}

/// `64 KiB` in bytes; nothing where it is no such size.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let shift = ["B", "KiB", "MiB", "GiB", "TiB"].iter().position(|known| *known == unit)?;
    number.parse::<u64>().ok()?.checked_shl(u32::try_from(10 * shift).ok()?)
}

/// Figures of parts of a whole, whose marks are shares of samples or of time.
const OF_PARTS: [&str; 3] = ["-attribution-", "-stacks-", "-processors-"];
/// What is concluded, in words.
const VERDICTS: [&str; 7] =
    ["INVALID", "UNRANKED", "EQUIVALENT", "FASTER", "SLOWER", "SMALL", "INCONCLUSIVE"];

/// What a pointer is told: n, the interval where there can be one, and in figures that judge
/// the verdict.
fn hovers(figure: &PageFigure<'_>, is_judged: bool) -> Vec<String> {
    if OF_PARTS.iter().any(|part| figure.id.contains(part)) {
        return Vec::new();
    }
    let judges = is_judged && figure.id.contains("ratio-by");
    let points = figure.svg.split("<g class=\"pt\"><title>").skip(1);
    let points = points.filter_map(|rest| rest.split("</g>").next()?.split_once("</title>"));
    // The squares of a legend say what stands beside them.
    let points = points.filter(|(_, mark)| !mark.contains(r#"width="12" height="12""#));
    let mut faults = Vec::new();
    for (hover, _) in points {
        let n = count(hover);
        let lacks = match n {
            None => Some("n"),
            Some(2..) if !hover.contains('[') && !is_bare(hover, figure) => Some("an interval"),
            Some(_) if judges && !VERDICTS.iter().any(|word| hover.contains(word)) => {
                Some("a verdict")
            }
            Some(_) => None,
        };
        faults.extend(lacks.map(|what| format!("hover: {what} is not in {hover:?}")));
    }
    faults.truncate(2);
    faults
}

/// Whether the table has the value of a point without an interval too: there is none.
fn is_bare(hover: &str, figure: &PageFigure<'_>) -> bool {
    let value = hover.rsplit_once(": ").and_then(|(_, rest)| rest.split(' ').next());
    value.is_some_and(|value| figure.twin.contains(&format!(">{value}<")))
}

/// Trials, or phases of a search, behind a point.
fn count(hover: &str) -> Option<u32> {
    let number = |rest: &str| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    hover.split_once("n = ").and_then(|(_, rest)| number(rest))
}

/// The same hue for an arm wherever it is named.
fn one_hue_each(page: &str, figures: &[PageFigure<'_>]) -> Vec<String> {
    let mut known: Vec<(String, String)> = Vec::new();
    for figure in figures {
        known.extend(curves(figure.svg).names);
    }
    for rest in page.split("<b class=\"c-").skip(1) {
        let Some((hue, rest)) = rest.split_once("\">") else { continue };
        let name = rest.split('<').next().unwrap_or_default();
        known.push((arm(name).to_owned(), hue.to_owned()));
    }
    known.sort();
    known.dedup();
    let twice = known.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    twice
        .map(|pair| format!("hue: {} is drawn in {} and {}", pair[0].0, pair[0].1, pair[1].1))
        .collect()
}

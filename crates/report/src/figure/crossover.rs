//! Crossover strip: one row per curve and pair of arms, with which of the two
//! is ahead by more than δ at which sizes, and where nobody can tell.

use iolens_stats::analysis::{Crossover, CrossoverPoint, CrossoverShape};

use super::style::Marker;
use super::*;
use crate::crossing::{self, Ahead};
use crate::files;

/// One row: a pair of arms on one curve.
struct Row<'a> {
    crossover: &'a Crossover,
    /// What fresh trials inside its band have shown.
    at: Option<Estimate>,
    /// Labels and looks of the first and the second arm.
    arms: [(String, Look); 2],
    /// The cells of the curve.
    cells: &'a [&'a CellAnalysis],
    delta: f64,
}

/// Of what belongs to no arm.
const NOBODY: Look = Look { hue: "grey", marker: Marker::Circle, dash: "" };

/// The figure of one sweep; none without a pair.
pub(super) fn figure(sweep: &Sweep<'_>) -> Option<Figure> {
    let rows: Vec<Row> = sweep.curves.iter().flat_map(|curve| rows(sweep, curve)).collect();
    let draw = |medium| draw(sweep, medium, &rows);
    (!rows.is_empty()).then(|| sweep.drawn(Group::Crossover, "crossovers", draw, table(&rows)))
}

fn rows<'a>(sweep: &'a Sweep<'_>, Curve { cells, .. }: &'a Curve<'_>) -> Vec<Row<'a>> {
    let analysis = sweep.analysis;
    let curve = cells[0].cell.curve();
    let own = analysis.crossovers.iter().filter(|c| c.curve == curve && !c.points.is_empty());
    let rows = own.map(|crossover| Row {
        crossover,
        at: crossing::crossing(analysis, crossover).and_then(|found| found.at_bytes),
        arms: [&crossover.first, &crossover.second].map(|label| {
            (chart::shown(cells, label), style::of(&files::primitive(analysis, label)))
        }),
        cells,
        delta: analysis.delta,
    });
    rows.collect()
}

impl Row<'_> {
    /// The band between the two, as short as it can be said, with what the two
    /// are called.
    fn band(&self, [first, second]: [&str; 2]) -> String {
        let c = self.crossover;
        let size = |bytes: Option<Bytes>, open: &str, last: Bytes| {
            bytes.map_or_else(|| format!("{open} {last}"), |bytes| bytes.to_string())
        };
        match c.shape {
            CrossoverShape::FirstThroughout => format!("none: {first} ahead"),
            CrossoverShape::SecondThroughout => format!("none: {second} ahead"),
            CrossoverShape::NeitherAnywhere => "every size".to_owned(),
            CrossoverShape::Mixed => "no single band".to_owned(),
            CrossoverShape::Crosses
            | CrossoverShape::FirstThenUnknown
            | CrossoverShape::UnknownThenSecond => format!(
                "{} to {}",
                size(c.first_ahead_to, "<", c.smallest),
                size(c.second_ahead_from, ">", c.largest)
            ),
        }
    }

    /// The look of who is ahead, and its height: on the line of its name.
    fn place(&self, ahead: Ahead, middle: f64) -> (Look, f64) {
        match ahead {
            Ahead::First => (self.arms[0].1, middle - 7.5),
            Ahead::Second => (self.arms[1].1, middle + 8.5),
            Ahead::Nobody => (NOBODY, middle),
        }
    }

    fn hover(&self, point: &CrossoverPoint, ahead: Ahead) -> String {
        let [(first, _), (second, _)] = &self.arms;
        let verdict = match ahead {
            Ahead::First => format!("{first} is ahead"),
            Ahead::Second => format!("{second} is ahead"),
            Ahead::Nobody => "tie or unknown".to_owned(),
        };
        // Trials that both arms have.
        let cell = self.cells.iter().find(|cell| cell.cell.size == point.size);
        let contrast = |label: &String| chart::find(cell?, label)?.contrast.as_ref();
        let arms = [&self.crossover.first, &self.crossover.second];
        let n = arms.into_iter().filter_map(contrast).map(|contrast| contrast.n).min();
        format!(
            "{}: time of {first} over that of {second}: {} (simultaneous), n = {}, {verdict}",
            point.size,
            ratio(point),
            n.unwrap_or(0)
        )
    }
}

/// `1.34 [1.29, 1.39]`.
fn ratio(point: &CrossoverPoint) -> String {
    let interval = point.simultaneous.map(number::bracket).unwrap_or_default();
    format!("{} {interval}", number::ratio(point.ratio))
}

const ROW: f64 = 37.0;
const HEADING: f64 = 30.0;
const RULE: f64 = 8.0;
const GAP: f64 = 36.0;
/// Room for the names of the arms.
const NAMES: f64 = 182.0;
/// Room for the band in words.
const WORDS: f64 = 128.0;
/// Width below which there is none: the band stands below the names instead.
const WORDS_BESIDE_MIN: f64 = 560.0;
/// Height of a line of text.
const LINE: f64 = 16.0;

/// The rows of each thread count beside each other: as few as fit the height.
fn draw(sweep: &Sweep<'_>, medium: Medium, rows: &[Row<'_>]) -> Drawing {
    const STRIP_MIN: f64 = 120.0;
    let blocks: Vec<&[Row]> =
        rows.chunk_by(|a, b| a.crossover.curve == b.crossover.curve).collect();
    let width = |beside: usize| (medium.width() + GAP) / beside as f64 - GAP;
    let (least, most) = match medium {
        Medium::Page => (blocks.len().min(2), blocks.len().min(2)),
        Medium::Narrow | Medium::Column | Medium::Columns => (1, 1),
        Medium::Slide(_) => (1, blocks.len()),
    };
    let draw = |beside| draw_in(sweep, medium, (beside, width(beside).min(800.0)), &blocks);
    let wide = (least..=most).filter(|n| *n == 1 || width(*n) - NAMES >= STRIP_MIN);
    medium.fitting(wide.map(draw)).unwrap_or_else(|| draw(1))
}

/// So many blocks of a width beside each other.
fn draw_in(
    sweep: &Sweep<'_>,
    medium: Medium,
    (beside, width): (usize, f64),
    blocks: &[&[Row<'_>]],
) -> Drawing {
    let Sweep { run, analysis, setting, .. } = sweep;
    let plan = &run.header.plan;
    let (arm, size) = (words::arm_of(plan), words::size_of(plan));
    let title = sweep.title(&format!("Crossovers (which {arm} is ahead at which {size})"));
    let has_words_beside = width >= WORDS_BESIDE_MIN;
    let rows = || blocks.iter().copied().flatten();
    let is_looked_for = rows().any(|row| row.at.is_some());
    let how = format!(
        "each row compares two; filled: that one is ahead by more than {}; hollow: a tie, or too \
         close to call; {} the band between{}",
        number::percent(analysis.delta).replace(' ', ""),
        if has_words_beside { "at the right" } else { "below the names" },
        if is_looked_for { "; diamond: both take the same time, from fresh trials" } else { "" }
    );
    let x = Scale::sizes(&Vec::from_iter(sizes(rows()).iter().map(|size| size.0 as f64)));
    let mut sheet = Sheet::new(medium, (width + GAP) * beside as f64 - GAP, &title, &how);
    for line in blocks.chunks(beside) {
        let top = sheet.y;
        let mut bottom = top;
        for (i, rows) in line.iter().enumerate() {
            sheet.y = top;
            let left = (width + GAP) * i as f64;
            let right = left + width;
            // The last size stands in the middle of its label.
            let (behind, words) = match has_words_beside {
                true => (WORDS, Some(right - WORDS + 10.0)),
                false => (16.0, None),
            };
            let length = width - NAMES - behind;
            Block { x: &x, left, right, length, words }.draw(&mut sheet, run, rows);
            bottom = bottom.max(sheet.y);
        }
        // Below it the names of the caches.
        sheet.y = bottom + 24.0;
    }
    sheet.finish(&words::footer(&run.header, setting))
}

/// Every size of some rows, rising.
fn sizes<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Vec<Bytes> {
    let points = rows.flat_map(|row| &row.crossover.points);
    let mut sizes: Vec<Bytes> = points.map(|point| point.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The rows of one thread count, beside or below those of the others.
struct Block<'a> {
    x: &'a Scale,
    left: f64,
    right: f64,
    /// Of the strip.
    length: f64,
    /// Where the words begin; null where they stand below the names.
    words: Option<f64>,
}

impl Block<'_> {
    /// Where a share of the strip is.
    fn x(&self, share: f64) -> f64 {
        self.left + NAMES + self.length * share
    }

    /// Where a size stands.
    fn at(&self, bytes: f64) -> f64 {
        self.x(self.x.position(bytes))
    }

    fn rule(&self, sheet: &mut Sheet) {
        sheet.svg.line((self.left, sheet.y), (self.right, sheet.y), "rule");
    }

    /// The thread count, the sizes, and marks at those of the caches; then the rows.
    fn draw(&self, sheet: &mut Sheet, run: &Run, rows: &[Row<'_>]) {
        let y = sheet.y + HEADING;
        let name = words::panel(&run.header, &rows[0].crossover.curve);
        sheet.svg.text(self.left, y, "tp", &name);
        let step = self.x.step(self.length);
        for (bytes, label) in self.x.ticks.iter().step_by(step) {
            sheet.svg.text(self.at(*bytes), y, "tk am", label);
        }
        if let Some(x) = self.words {
            sheet.svg.text(x, y, "tn", "tie or unknown");
        }
        sheet.y = y + RULE;
        self.rule(sheet);
        let row_height = if self.words.is_some() { ROW } else { ROW + LINE };
        let (top, bottom) = (sheet.y, sheet.y + row_height * rows.len() as f64);
        let mut before = f64::MIN;
        for (name, bytes) in chart::caches(&run.header.host) {
            let x = self.at(bytes);
            if self.x.contains(bytes) {
                sheet.svg.line((x, top), (x, bottom), "cache");
                let down = if x - before < 26.0 { 24.0 } else { 12.0 };
                sheet.svg.text(x, bottom + down, "td am", name);
                before = x;
            }
        }
        for row in rows {
            self.row(sheet, row);
            sheet.y += row_height;
            self.rule(sheet);
        }
    }

    fn row(&self, sheet: &mut Sheet, row: &Row<'_>) {
        let (y, middle, svg) = (sheet.y, sheet.y + ROW / 2.0, &mut sheet.svg);
        for ((label, look), line) in row.arms.iter().zip([y + 15.0, y + 31.0]) {
            svg.marker((self.left + 6.0, line - 4.0), *look, false);
            svg.text(self.left + 18.0, line, "tl", label);
        }
        // A dotted line over all sizes, and bars between sizes with one arm ahead.
        let points = &row.crossover.points;
        let places: Vec<_> = points
            .iter()
            .map(|point| (self.at(point.size.0 as f64), crossing::ahead(point, row.delta)))
            .collect();
        if let ([(first, _), ..], [.., (last, _)]) = (&*places, &*places) {
            svg.polyline(&[(*first, middle), (*last, middle)], "axis", "1.5 4");
        }
        for pair in places.windows(2) {
            let [(from, ahead), (to, next)] = [pair[0], pair[1]];
            if ahead == next && ahead != Ahead::Nobody {
                let (look, y) = row.place(ahead, middle);
                svg.line((from, y), (to, y), &look.stroke("bar"));
            }
        }
        for (point, (x, ahead)) in points.iter().zip(places) {
            let (look, y) = row.place(ahead, middle);
            svg.point((x, y), Some((look, ahead == Ahead::Nobody)), &row.hover(point, ahead));
        }
        if let Some(at) = row.at {
            self.crossing(svg, row, at, middle);
        }
        let beside = self.words.map(|x| (x, middle + 4.0));
        let (x, y) = beside.unwrap_or((self.left + 18.0, y + 31.0 + LINE));
        svg.text(x, y, "tk", &row.band(["upper", "lower"]));
    }

    /// Where both take the same time, with its interval.
    fn crossing(&self, svg: &mut Svg, row: &Row<'_>, at: Estimate, middle: f64) {
        if let Some(Interval { low, high }) = at.interval {
            // One that says nothing is drawn to the edges.
            let [from, to] = [low, high].map(|end| self.x(self.x.position(end).clamp(0.0, 1.0)));
            svg.line((from, middle), (to, middle), "s c-grey whisker");
        }
        let [(first, _), (second, _)] = &row.arms;
        let hover = format!(
            "{first} and {second} take the same time at {} (pointwise 95%, {} passes of fresh \
             trials)",
            crossing::size(at),
            at.n
        );
        let look = Look { marker: Marker::Diamond, ..NOBODY };
        svg.point((self.at(at.value), middle), Some((look, false)), &hover);
    }
}

fn table(rows: &[Row<'_>]) -> Table {
    let sizes = sizes(rows.iter());
    let mut columns =
        vec![Column::right("threads", ""), Column::left("first", ""), Column::left("second", "")];
    columns.extend(sizes.iter().map(|size| Column::left(&size.to_string(), "ratio [sim. 95%]")));
    columns.push(Column::left("tie or unknown", ""));
    let is_looked_for = rows.iter().any(|row| row.at.is_some());
    columns.extend(is_looked_for.then(|| Column::left("same time at", "[95%]")));
    let caption = "Time of the first arm over that of the second: above 1 the second is ahead";
    let mut table = Table::new(caption, columns);
    let or_none = |text: Option<String>| Entry::from(text.unwrap_or(NONE.to_owned()));
    for row in rows {
        let threads = row.crossover.curve.threads.to_string();
        let mut entries: Vec<Entry> = vec![threads.into()];
        entries.extend(row.arms.iter().map(|(label, _)| label.into()));
        entries.extend(sizes.iter().map(|size| {
            let point = row.crossover.points.iter().find(|point| point.size == *size);
            or_none(point.map(ratio))
        }));
        entries.push(row.band(["first", "second"]).into());
        entries.extend(is_looked_for.then(|| or_none(row.at.map(crossing::size))));
        table.push(entries);
    }
    table
}

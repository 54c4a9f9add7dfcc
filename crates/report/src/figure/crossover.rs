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
    let row = |crossover: &'a Crossover| {
        let arm = |label: &String| {
            (chart::shown(cells, label), style::of(&files::primitive(analysis, label)))
        };
        let at = crossing::crossing(analysis, crossover).and_then(|found| found.at_bytes);
        let arms = [&crossover.first, &crossover.second].map(arm);
        Row { crossover, at, arms, cells, delta: analysis.delta }
    };
    own.map(row).collect()
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

    fn ahead(&self, point: &CrossoverPoint) -> Ahead {
        crossing::ahead(point, self.delta)
    }

    /// The look of who is ahead, and its height: on the line of its name.
    fn place(&self, ahead: Ahead, middle: f64) -> (Look, f64) {
        match ahead {
            Ahead::First => (self.arms[0].1, middle - 7.5),
            Ahead::Second => (self.arms[1].1, middle + 8.5),
            Ahead::Nobody => (NOBODY, middle),
        }
    }

    fn hover(&self, point: &CrossoverPoint) -> String {
        let [(first, _), (second, _)] = &self.arms;
        let verdict = match self.ahead(point) {
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

/// Blocks of rows beside each other: as few as fit the height.
fn draw(sweep: &Sweep<'_>, medium: Medium, rows: &[Row<'_>]) -> Drawing {
    let blocks: Vec<&[Row]> =
        rows.chunk_by(|a, b| a.crossover.curve == b.crossover.curve).collect();
    let width = |beside: usize| (medium.width() + GAP) / beside as f64 - GAP;
    let beside = match medium {
        Medium::Page => blocks.len().min(2)..=blocks.len().min(2),
        Medium::Narrow | Medium::Column | Medium::Columns => 1..=1,
        Medium::Slide(_) => 1..=blocks.len(),
    };
    const STRIP_MIN: f64 = 120.0;
    let wide = beside.filter(|n| *n == 1 || width(*n) - NAMES >= STRIP_MIN);
    let draw = |beside: usize| draw_in(sweep, medium, (beside, width(beside).min(800.0)), &blocks);
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
    let rows = || blocks.iter().flat_map(|rows| rows.iter());
    let plan = &run.header.plan;
    let (arm, size) = (words::arm_of(plan), words::size_of(plan));
    let title = sweep.title(&format!("Crossovers (which {arm} is ahead at which {size})"));
    let is_looked_for = rows().any(|row| row.at.is_some());
    let how = format!(
        "each row compares two; filled: that one is ahead by more than {}; hollow: a tie, or too \
         close to call; {} the band between{}",
        number::percent(analysis.delta).replace(' ', ""),
        if width >= WORDS_BESIDE_MIN { "at the right" } else { "below the names" },
        if is_looked_for { "; diamond: both take the same time, from fresh trials" } else { "" }
    );
    let x = Scale::sizes(&Vec::from_iter(sizes(rows()).iter().map(|size| size.0 as f64)));
    let total = (width + GAP) * beside as f64 - GAP;
    let mut sheet = Sheet::new(medium, total, &title, &how);
    for line in blocks.chunks(beside) {
        let top = sheet.y;
        let mut bottom = top;
        for (i, rows) in line.iter().enumerate() {
            sheet.y = top;
            Block { left: (width + GAP) * i as f64, width, x: &x }.draw(&mut sheet, run, rows);
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

/// The rows of one thread count, beside or below those of the others: where
/// its names, sizes and words stand.
struct Block<'a> {
    left: f64,
    width: f64,
    x: &'a Scale,
}

impl Block<'_> {
    fn x(&self, share: f64) -> f64 {
        self.left + NAMES + self.length() * share
    }

    /// Where a size stands.
    fn at(&self, bytes: f64) -> f64 {
        self.x(self.x.position(bytes))
    }

    fn has_words_beside(&self) -> bool {
        self.width >= WORDS_BESIDE_MIN
    }

    /// Of the strip.
    fn length(&self) -> f64 {
        // The last size stands in the middle of its label.
        const HALF_LABEL: f64 = 16.0;
        self.width - NAMES - if self.has_words_beside() { WORDS } else { HALF_LABEL }
    }

    fn rule(&self, sheet: &mut Sheet) {
        sheet.svg.line((self.left, sheet.y), (self.left + self.width, sheet.y), "rule");
    }

    /// The thread count, the sizes, and marks at those of the caches; then the rows.
    fn draw(&self, sheet: &mut Sheet, run: &Run, rows: &[Row<'_>]) {
        let y = sheet.y + HEADING;
        let name = rows.first().map(|row| words::panel(&run.header, &row.crossover.curve));
        sheet.svg.text(self.left, y, "tp", &name.unwrap_or_default());
        let step = labels::step(self.x, self.length());
        for (bytes, label) in self.x.ticks.iter().step_by(step) {
            sheet.svg.text(self.at(*bytes), y, "tk am", label);
        }
        let row_height = if self.has_words_beside() { ROW } else { ROW + LINE };
        if self.has_words_beside() {
            let x = self.left + self.width - WORDS + 10.0;
            sheet.svg.text(x, y, "tn", "tie or unknown");
        }
        sheet.y = y + RULE;
        self.rule(sheet);
        let (top, bottom) = (sheet.y, sheet.y + row_height * rows.len() as f64);
        let mut before = f64::MIN;
        let caches = chart::caches(&run.header.host).into_iter();
        for (name, bytes) in caches.filter(|(_, bytes)| self.x.contains(*bytes)) {
            let x = self.at(bytes);
            sheet.svg.line((x, top), (x, bottom), "cache");
            let line = if x - before < 26.0 { 24.0 } else { 12.0 };
            sheet.svg.text(x, bottom + line, "td am", name);
            before = x;
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
        let x = |point: &CrossoverPoint| self.at(point.size.0 as f64);
        let points = &row.crossover.points;
        if let (Some(first), Some(last)) = (points.first(), points.last()) {
            svg.polyline(&[(x(first), middle), (x(last), middle)], "axis", "1.5 4");
        }
        for pair in points.windows(2) {
            let ahead = row.ahead(&pair[0]);
            if ahead == row.ahead(&pair[1]) && ahead != Ahead::Nobody {
                let (look, y) = row.place(ahead, middle);
                svg.line((x(&pair[0]), y), (x(&pair[1]), y), &look.stroke("bar"));
            }
        }
        for point in points {
            let ahead = row.ahead(point);
            let (look, y) = row.place(ahead, middle);
            svg.point((x(point), y), Some((look, ahead == Ahead::Nobody)), &row.hover(point));
        }
        if let Some(at) = row.at {
            self.crossing(sheet, row, at, middle);
        }
        let (x, y) = match self.has_words_beside() {
            true => (self.left + self.width - WORDS + 10.0, middle + 4.0),
            false => (self.left + 18.0, y + 31.0 + LINE),
        };
        sheet.svg.text(x, y, "tk", &row.band(["upper", "lower"]));
    }

    /// Where both take the same time, with its interval.
    fn crossing(&self, sheet: &mut Sheet, row: &Row<'_>, at: Estimate, middle: f64) {
        if let Some(interval) = at.interval {
            // One that says nothing is drawn to the edges.
            let inside = |end| (self.x(self.x.position(end).clamp(0.0, 1.0)), middle);
            sheet.svg.line(inside(interval.low), inside(interval.high), "s c-grey whisker");
        }
        let [(first, _), (second, _)] = &row.arms;
        let hover = format!(
            "{first} and {second} take the same time at {} (pointwise 95%, {} passes of fresh \
             trials)",
            crossing::size(at),
            at.n
        );
        let look = Look { marker: Marker::Diamond, ..NOBODY };
        sheet.svg.point((self.at(at.value), middle), Some((look, false)), &hover);
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
    let or_none =
        |text: Option<String>| -> Entry { text.unwrap_or(number::NONE.to_owned()).into() };
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

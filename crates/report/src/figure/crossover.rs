//! Crossover strip: one row per curve and pair of arms, with which of the two
//! is ahead by more than δ at which sizes, and where nobody can tell.

use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{CellAnalysis, Crossover, CrossoverPoint, CrossoverShape, Estimate};

use super::paper::Medium;
use super::scale::Scale;
use super::sheet::{Drawing, Sheet};
use super::style::{self, Look, Marker};
use super::svg::Anchor;
use super::{Curve, Figure, Group, Sweep, chart, labels};
use crate::table::{Column, Entry, Table};
use crate::{crossing, files};
use crate::{number, words};

/// The title, in the words of the study.
fn title(run: &Run) -> String {
    let plan = &run.header.plan;
    let (arm, size) = (words::arm_of(plan), words::size_of(plan));
    format!("Crossovers (which {arm} is ahead at which {size})")
}

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

/// Who is ahead at a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    First,
    Second,
    Nobody,
}

/// The figure of one sweep; none without a pair.
pub(super) fn figure(sweep: &Sweep<'_>) -> Option<Figure> {
    let analysis = sweep.analysis;
    let rows = sweep.curves.iter().flat_map(|Curve { cells, .. }| {
        let curve = cells.first().map(|cell| cell.cell.curve());
        let own = analysis.crossovers.iter().filter(move |c| Some(&c.curve) == curve.as_ref());
        own.filter(|crossover| !crossover.points.is_empty()).map(|crossover| {
            let arm = |label: &str| {
                let look = style::of(&files::primitive(analysis, label));
                (chart::shown(cells, label), look)
            };
            let arms = [arm(&crossover.first), arm(&crossover.second)];
            let at = crossing::crossing(analysis, crossover).and_then(|found| found.at_bytes);
            Row { crossover, at, arms, cells, delta: analysis.delta }
        })
    });
    let rows: Vec<Row> = rows.collect();
    let draw = |medium| draw(sweep.run, sweep, analysis.delta, medium, &rows);
    (!rows.is_empty()).then(|| sweep.drawn(Group::Crossover, "crossovers", draw, table(&rows)))
}

impl Row<'_> {
    fn ahead(&self, point: &CrossoverPoint) -> Ahead {
        match point.simultaneous {
            Some(i) if i.low > 1.0 + self.delta => Ahead::Second,
            Some(i) if i.high < 1.0 / (1.0 + self.delta) => Ahead::First,
            _ => Ahead::Nobody,
        }
    }

    /// The band between the two, as short as it can be said, with what the two
    /// are called.
    fn band(&self, names: [&str; 2]) -> String {
        let crossover = self.crossover;
        let size = |bytes: Option<Bytes>, open: &str| {
            bytes.map_or_else(|| open.to_owned(), |bytes| bytes.to_string())
        };
        let below = format!("< {}", crossover.smallest);
        let above = format!("> {}", crossover.largest);
        match crossover.shape {
            CrossoverShape::FirstThroughout => format!("none: {} ahead", names[0]),
            CrossoverShape::SecondThroughout => format!("none: {} ahead", names[1]),
            CrossoverShape::NeitherAnywhere => "every size".to_owned(),
            CrossoverShape::Mixed => "no single band".to_owned(),
            CrossoverShape::Crosses
            | CrossoverShape::FirstThenUnknown
            | CrossoverShape::UnknownThenSecond => format!(
                "{} to {}",
                size(crossover.first_ahead_to, &below),
                size(crossover.second_ahead_from, &above)
            ),
        }
    }
}

/// The rows of one thread count, beside or below those of the others: where
/// its names, sizes and words stand.
struct Block<'a> {
    left: f64,
    width: f64,
    x: &'a Scale,
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

fn draw(run: &Run, sweep: &Sweep<'_>, delta: f64, medium: Medium, rows: &[Row<'_>]) -> Drawing {
    let curves: Vec<&[Row]> =
        rows.chunk_by(|a, b| a.crossover.curve == b.crossover.curve).collect();
    let beside = beside(medium, &curves);
    let width = width_of(medium, beside);
    let total = width.min(800.0) * beside as f64 + GAP * (beside as f64 - 1.0);
    let width = width.min(800.0);
    let place = if width >= WORDS_BESIDE_MIN { "at the right" } else { "below the names" };
    let how = format!(
        "each row compares two; filled: that one is ahead by more than {}; hollow: a tie, or too \
         close to call; {place} the band between{}",
        number::percent(delta).replace(' ', ""),
        if rows.iter().any(|row| row.at.is_some()) {
            "; diamond: both take the same time, from fresh trials"
        } else {
            ""
        }
    );
    let x = Scale::sizes(&sizes(rows).into_iter().map(|size| size.0 as f64).collect::<Vec<_>>());
    let mut sheet = Sheet::new(medium, total, &sweep.title(&title(run)), &how);
    for line in curves.chunks(beside) {
        let top = sheet.y;
        let mut bottom = top;
        for (i, rows) in line.iter().enumerate() {
            let block = Block { left: (width + GAP) * i as f64, width, x: &x };
            sheet.y = top;
            block.heading(&mut sheet, run, rows);
            rows.iter().for_each(|row| block.row(&mut sheet, row));
            bottom = bottom.max(sheet.y);
        }
        // Below it the names of the caches.
        sheet.y = bottom + 24.0;
    }
    sheet.finish(&words::footer(&run.header, &sweep.setting))
}

/// Blocks beside each other: as few as fit the height.
fn beside(medium: Medium, curves: &[&[Row<'_>]]) -> usize {
    match medium {
        Medium::Page => curves.len().min(2),
        Medium::Narrow | Medium::Column | Medium::Columns => 1,
        Medium::Slide(_) => {
            const STRIP_MIN: f64 = 120.0;
            const AROUND: f64 = 130.0;
            let rows = curves.iter().map(|rows| rows.len()).max().unwrap_or(0) as f64;
            let fits = |beside: &usize| {
                let lines = curves.len().div_ceil(*beside) as f64;
                let tight = width_of(medium, *beside) < WORDS_BESIDE_MIN;
                let row = if tight { ROW + LINE } else { ROW };
                AROUND + lines * (HEADING + RULE + 24.0 + rows * row) <= medium.height()
            };
            let wide = |beside: &usize| width_of(medium, *beside) - NAMES >= STRIP_MIN;
            let possible: Vec<usize> = (1..=curves.len()).filter(wide).collect();
            let most = possible.last().copied().unwrap_or(1);
            possible.into_iter().find(fits).unwrap_or(most)
        }
    }
}

/// Width of a block with so many beside each other.
fn width_of(medium: Medium, beside: usize) -> f64 {
    (medium.width() - GAP * (beside as f64 - 1.0)) / beside as f64
}

/// Every size of the rows, rising.
fn sizes(rows: &[Row<'_>]) -> Vec<Bytes> {
    let points = rows.iter().flat_map(|row| &row.crossover.points);
    let mut sizes: Vec<Bytes> = points.map(|point| point.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl Block<'_> {
    fn x(&self, bytes: f64) -> f64 {
        self.left + NAMES + self.length() * self.x.position(bytes)
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

    fn row_height(&self) -> f64 {
        ROW + if self.has_words_beside() { 0.0 } else { LINE }
    }

    fn rule(&self, sheet: &mut Sheet, y: f64) {
        sheet.svg.line((self.left, y), (self.left + self.width, y), "rule");
    }

    /// Where the words begin, beside the strip or below the names.
    fn words(&self) -> f64 {
        match self.has_words_beside() {
            true => self.left + self.width - WORDS + 10.0,
            false => self.left + 18.0,
        }
    }

    /// The thread count, the sizes, and marks at those of the caches.
    fn heading(&self, sheet: &mut Sheet, run: &Run, rows: &[Row<'_>]) {
        sheet.y += HEADING;
        let y = sheet.y;
        let name = rows.first().map(|row| words::panel(&run.header, &row.crossover.curve));
        sheet.svg.text(self.left, y, Anchor::Start, "tp", &name.unwrap_or_default());
        let step = labels::step(self.x, self.length());
        for (bytes, label) in self.x.ticks.iter().step_by(step) {
            sheet.svg.text(self.x(*bytes), y, Anchor::Middle, "tk", label);
        }
        if self.has_words_beside() {
            sheet.svg.text(self.words(), y, Anchor::Start, "tn", "tie or unknown");
        }
        self.rule(sheet, y + RULE);
        let bottom = y + RULE + self.row_height() * rows.len() as f64;
        let caches = chart::caches(&run.header.host).into_iter();
        let mut before = f64::MIN;
        for (name, bytes) in caches.filter(|(_, bytes)| self.x.contains(*bytes)) {
            let x = self.x(bytes);
            sheet.svg.line((x, y + RULE), (x, bottom), "cache");
            let line = if x - before < 26.0 { 24.0 } else { 12.0 };
            sheet.svg.text(x, bottom + line, Anchor::Middle, "td", name);
            before = x;
        }
        sheet.y += RULE;
    }

    fn row(&self, sheet: &mut Sheet, row: &Row<'_>) {
        let (y, middle) = (sheet.y, sheet.y + ROW / 2.0);
        for ((label, look), line) in row.arms.iter().zip([y + 15.0, y + 31.0]) {
            let class = format!("f s c-{} mark", look.hue);
            sheet.svg.marker((self.left + 6.0, line - 4.0), look.marker, &class);
            sheet.svg.text(self.left + 18.0, line, Anchor::Start, "tl", label);
        }
        self.line(sheet, row, middle);
        for point in &row.crossover.points {
            let ahead = row.ahead(point);
            let (look, at) = row.place(ahead, middle);
            let fill = if ahead == Ahead::Nobody { "open" } else { "f" };
            let class = format!("{fill} s c-{} mark", look.hue);
            let at = (self.x(point.size.0 as f64), at);
            sheet.svg.point(at, Some(look.marker), &class, &row.hover(point));
        }
        self.crossing(sheet, row, middle);
        let band = row.band(["upper", "lower"]);
        let words_y = if self.has_words_beside() { middle + 4.0 } else { y + 31.0 + LINE };
        sheet.svg.text(self.words(), words_y, Anchor::Start, "tk", &band);
        sheet.y += self.row_height();
        self.rule(sheet, sheet.y);
    }

    /// Where both take the same time, with its interval, where that was looked for.
    fn crossing(&self, sheet: &mut Sheet, row: &Row<'_>, middle: f64) {
        let Some(at) = row.at else { return };
        if let Some(interval) = at.interval {
            // One that says nothing is drawn to the edges.
            let inside =
                |end| self.left + NAMES + self.length() * self.x.position(end).clamp(0.0, 1.0);
            let ends = [interval.low, interval.high].map(|end| (inside(end), middle));
            sheet.svg.line(ends[0], ends[1], "s c-grey whisker");
        }
        let [(first, _), (second, _)] = &row.arms;
        let hover = format!(
            "{first} and {second} take the same time at {} (pointwise 95%, {} passes of fresh \
             trials)",
            crossing::size(at),
            at.n
        );
        let marker = Some(Marker::Diamond);
        sheet.svg.point((self.x(at.value), middle), marker, "f s c-grey mark", &hover);
    }

    /// A dotted line over all sizes, and bars between sizes with one arm
    /// ahead.
    fn line(&self, sheet: &mut Sheet, row: &Row<'_>, middle: f64) {
        let x = |point: &CrossoverPoint| self.x(point.size.0 as f64);
        let points = &row.crossover.points;
        if let (Some(first), Some(last)) = (points.first(), points.last()) {
            sheet.svg.polyline(&[(x(first), middle), (x(last), middle)], "axis", "1.5 4");
        }
        for pair in points.windows(2) {
            let ahead = row.ahead(&pair[0]);
            if ahead == row.ahead(&pair[1]) && ahead != Ahead::Nobody {
                let (look, at) = row.place(ahead, middle);
                let ends = ((x(&pair[0]), at), (x(&pair[1]), at));
                sheet.svg.line(ends.0, ends.1, &format!("s c-{} bar", look.hue));
            }
        }
    }
}

impl Row<'_> {
    /// The look of who is ahead, and its height: on the line of its name.
    fn place(&self, ahead: Ahead, middle: f64) -> (Look, f64) {
        match ahead {
            Ahead::First => (self.arms[0].1, middle - 7.5),
            Ahead::Second => (self.arms[1].1, middle + 8.5),
            Ahead::Nobody => (Look { hue: "grey", marker: Marker::Circle, dash: "" }, middle),
        }
    }

    fn hover(&self, point: &CrossoverPoint) -> String {
        let [(first, _), (second, _)] = &self.arms;
        let interval = point.simultaneous.map(number::bracket).unwrap_or_default();
        let verdict = match self.ahead(point) {
            Ahead::First => format!("{first} is ahead"),
            Ahead::Second => format!("{second} is ahead"),
            Ahead::Nobody => "tie or unknown".to_owned(),
        };
        format!(
            "{}: time of {first} over that of {second}: {} {interval} (simultaneous), n = {}, \
             {verdict}",
            point.size,
            number::ratio(point.ratio),
            self.trials(point.size)
        )
    }

    /// Trials that both arms have at a size.
    fn trials(&self, size: Bytes) -> u32 {
        let cell = self.cells.iter().find(|cell| cell.cell.size == size);
        let contrast = |label: &String| chart::find(cell?, label)?.contrast.as_ref();
        let arms = [&self.crossover.first, &self.crossover.second];
        arms.into_iter().filter_map(contrast).map(|contrast| contrast.n).min().unwrap_or(0)
    }
}

fn table(rows: &[Row<'_>]) -> Table {
    let sizes = sizes(rows);
    let mut columns =
        vec![Column::right("threads", ""), Column::left("first", ""), Column::left("second", "")];
    columns.extend(sizes.iter().map(|size| Column::left(&size.to_string(), "ratio [sim. 95%]")));
    columns.push(Column::left("tie or unknown", ""));
    let is_looked_for = rows.iter().any(|row| row.at.is_some());
    if is_looked_for {
        columns.push(Column::left("same time at", "[95%]"));
    }
    let mut table = Table::new(
        "Time of the first arm over that of the second: above 1 the second is ahead",
        columns,
    );
    for row in rows {
        let [(first, _), (second, _)] = &row.arms;
        let threads = row.crossover.curve.threads.to_string();
        let mut entries: Vec<Entry> = vec![threads.into(), first.into(), second.into()];
        entries.extend(sizes.iter().map(|size| {
            let point = row.crossover.points.iter().find(|point| point.size == *size);
            let text = point.map(|point| {
                let interval = point.simultaneous.map(number::bracket).unwrap_or_default();
                format!("{} {interval}", number::ratio(point.ratio))
            });
            Entry::from(text.unwrap_or_else(|| number::NONE.to_owned()))
        }));
        entries.push(row.band(["first", "second"]).into());
        if is_looked_for {
            entries.push(row.at.map_or_else(|| number::NONE.to_owned(), crossing::size).into());
        }
        table.push(entries);
    }
    table
}

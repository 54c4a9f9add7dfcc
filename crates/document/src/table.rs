//! One table model for every place a table stands: a header with units, rows
//! of cells with footnotes; drawn as text, HTML or Markdown.

use maud::{Markup, html};

use crate::plain;
use crate::plain::escaped;

/// How the cells of a column line up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Sentences: may fold on a page.
    Prose,
    /// Whole numbers.
    Right,
    /// Numbers whose decimal points stand under each other.
    Decimal,
}

/// A column: its name, its unit below, and how it lines up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Unit or scope; empty where the name says it all.
    pub unit: String,
    /// Alignment.
    pub align: Align,
}

impl Column {
    fn new(name: &str, unit: &str, align: Align) -> Column {
        Column { name: name.into(), unit: unit.into(), align }
    }

    /// A column of words.
    pub fn left(name: &str, unit: &str) -> Column {
        Column::new(name, unit, Align::Left)
    }

    /// A column of sentences.
    pub fn prose(name: &str) -> Column {
        Column::new(name, "", Align::Prose)
    }

    /// A column of whole numbers.
    pub fn right(name: &str, unit: &str) -> Column {
        Column::new(name, unit, Align::Right)
    }

    /// A column of numbers lined up on their decimal points.
    pub fn decimal(name: &str, unit: &str) -> Column {
        Column::new(name, unit, Align::Decimal)
    }
}

/// What a cell is, for a page that may draw it in its own way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// A name that has this hue wherever it stands; what follows two blanks is no name.
    Hue(&'static str),
    /// The heading of a group of rows.
    Group,
    /// A verdict, or the word that stands for one.
    Verdict(Option<Ink>),
    /// Less important than its neighbours.
    Faint,
}

/// What a verdict is, for the colour that repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Better.
    Better,
    /// Worse.
    Worse,
    /// The same.
    Same,
    /// Not decided.
    Open,
    /// Not to be used.
    Fault,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// The text, without a footnote's mark.
    pub text: String,
    /// Index into the table's footnotes.
    pub note: Option<usize>,
    /// What it is.
    pub tone: Tone,
}

impl Entry {
    /// A cell with a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Entry {
        Entry { text: text.into(), note: None, tone }
    }
}

impl<T: Into<String>> From<T> for Entry {
    fn from(text: T) -> Entry {
        Entry { text: text.into(), ..Entry::default() }
    }
}

/// A cell with the column that it stands in.
pub type Filled = (Column, Entry);

/// Words, with their column.
pub fn left(name: &str, unit: &str, entry: impl Into<Entry>) -> Filled {
    (Column::left(name, unit), entry.into())
}

/// Sentences, with their column.
pub fn prose(name: &str, entry: impl Into<Entry>) -> Filled {
    (Column::prose(name), entry.into())
}

/// A whole number, with its column.
pub fn right(name: &str, unit: &str, entry: impl Into<Entry>) -> Filled {
    (Column::right(name, unit), entry.into())
}

/// A number with decimals, with its column.
pub fn decimal(name: &str, unit: &str, entry: impl Into<Entry>) -> Filled {
    (Column::decimal(name, unit), entry.into())
}

/// A row; groups are set apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// One cell per column.
    pub entries: Vec<Entry>,
    /// Whether a new group of rows begins here.
    pub starts_group: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// What it shows, one line.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Footnotes, marked 1, 2, … in order of first use.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, columns: Vec<Column>) -> Table {
        Table { caption: caption.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// A table of rows that have the same columns.
    pub fn of(caption: impl Into<String>, rows: impl IntoIterator<Item = Vec<Filled>>) -> Table {
        let mut table = Table::new(caption, Vec::new());
        rows.into_iter().for_each(|row| table.fill(false, row));
        table
    }

    /// Adds a row, with its columns, that begins a group or goes on with one.
    pub fn fill(&mut self, starts_group: bool, row: Vec<Filled>) {
        let (columns, entries) = row.into_iter().unzip();
        self.columns = columns;
        self.push_row(starts_group, entries);
    }

    /// Adds rows, with their columns, that are a group.
    pub fn fill_group(&mut self, rows: impl IntoIterator<Item = Vec<Filled>>) {
        for (nth, row) in rows.into_iter().enumerate() {
            self.fill(nth == 0, row);
        }
    }

    /// Adds a row to the current group.
    pub fn push(&mut self, entries: Vec<Entry>) {
        self.push_row(false, entries);
    }

    /// Adds a row that begins a group, or goes on with one.
    pub fn push_row(&mut self, starts_group: bool, entries: Vec<Entry>) {
        self.rows.push(Row { entries, starts_group });
    }

    /// The table without the columns of these names, as many groups of them as `width` asks for.
    #[must_use]
    pub fn fitting(mut self, width: usize, dropped: &[&[&str]]) -> Table {
        for names in dropped {
            if self.width() <= width {
                break;
            }
            let goes = |column: &Column| names.contains(&column.name.as_str());
            let kept: Vec<bool> = self.columns.iter().map(|column| !goes(column)).collect();
            let mut of = kept.iter();
            self.columns.retain(|_| of.next() == Some(&true));
            for row in &mut self.rows {
                let mut of = kept.iter();
                row.entries.retain(|_| of.next() == Some(&true));
            }
        }
        self
    }

    /// The table, unless it has no rows.
    pub fn with_rows(self) -> Option<Table> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// The same where something else says what it shows.
    #[must_use]
    pub fn without_caption(self) -> Table {
        Table { caption: String::new(), ..self }
    }

    /// The index of a footnote, which is added unless it is already there.
    pub fn note(&mut self, text: &str) -> usize {
        if let Some(found) = self.notes.iter().position(|note| note == text) {
            return found;
        }
        self.notes.push(text.to_owned());
        self.notes.len() - 1
    }

    /// Characters of the widest line of rows.
    pub fn width(&self) -> usize {
        total(&self.widths(&self.padded()))
    }

    /// Plain text in lines of at most `width` columns: sentences fold, numbers never break.
    pub fn text(&self, width: usize) -> String {
        self.painted(width, &|_, text| text.to_owned())
    }

    /// The same, with verdicts painted.
    pub fn painted(&self, width: usize, paint: &dyn Fn(Ink, &str) -> String) -> String {
        let cells = self.padded();
        let widths = self.fitted(self.widths(&cells), width);
        let mut out = String::new();
        let keys = self.keys(&cells, &widths, width);
        for (nth, columns) in apart(&widths, width, keys).iter().enumerate() {
            if nth > 0 {
                out.push('\n');
            }
            self.text_of(&mut out, &cells, &widths, columns, paint);
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for (i, note) in self.notes.iter().enumerate() {
            let mark = superscript(i);
            out.push_str(&crate::sentence::hanging(&format!("{mark} {note}"), width, 2));
            out.push('\n');
        }
        out
    }

    /// The widths of columns, where sentences have given way to the others, and words to numbers
    /// that would not even have room beside them.
    fn fitted(&self, mut widths: Vec<usize>, width: usize) -> Vec<usize> {
        let is_prose = |c: &usize| self.columns[*c].align == Align::Prose;
        if let Some(prose) = (0..widths.len()).rev().find(is_prose) {
            let over = total(&widths).saturating_sub(width);
            let least = self.columns[prose].name.chars().count().max(PROSE_MIN).min(widths[prose]);
            widths[prose] = widths[prose].saturating_sub(over).max(least);
        }
        for other in 1..widths.len() {
            let over = total(&[widths[0], widths[other]]).saturating_sub(width);
            let is_words = |c: &usize| matches!(self.columns[*c].align, Align::Left | Align::Prose);
            let words = [0, other].into_iter().filter(is_words).max_by_key(|&c| widths[c]);
            if let (1.., Some(words)) = (over, words) {
                widths[words] = widths[words].saturating_sub(over).max(PROSE_MIN / 2);
            }
        }
        widths
    }

    /// Columns of words at the beginning that tell rows apart, as many as have room beside numbers.
    fn keys(&self, cells: &[Vec<String>], widths: &[usize], width: usize) -> usize {
        let words = self.columns.iter().take_while(|column| column.align == Align::Left).count();
        let tells_apart = |&keys: &usize| {
            let mut rows: Vec<&[String]> = cells.iter().map(|row| &row[..keys]).collect();
            rows.sort_unstable();
            rows.windows(2).all(|two| two[0] != two[1])
        };
        let keys = (1..=words).find(tells_apart).unwrap_or(1);
        if total(&widths[..keys.min(widths.len())]) <= width / 2 { keys } else { 1 }
    }

    /// Some of the columns.
    fn text_of(
        &self,
        out: &mut String,
        cells: &[Vec<String>],
        all: &[usize],
        some: &[usize],
        paint: &dyn Fn(Ink, &str) -> String,
    ) {
        let plain = |_: usize, text: &str| text.to_owned();
        let columns: Vec<&Column> = some.iter().map(|&c| &self.columns[c]).collect();
        let widths: Vec<usize> = some.iter().map(|&c| all[c]).collect();
        let heads = |of: fn(&Column) -> &str| columns.iter().map(|c| of(c)).collect::<Vec<_>>();
        push_line(out, &heads(|c| &c.name), &widths, &columns, &plain);
        if columns.iter().any(|column| !column.unit.is_empty()) {
            push_line(out, &heads(|c| &c.unit), &widths, &columns, &plain);
        }
        for (nth, (row, texts)) in self.rows.iter().zip(cells).enumerate() {
            if row.starts_group && nth > 0 {
                out.push('\n');
            }
            let texts: Vec<&str> = some.iter().map(|&c| texts[c].as_str()).collect();
            let ink = |nth: usize, text: &str| match row.entries[some[nth]].tone {
                Tone::Verdict(Some(ink)) if !text.is_empty() => paint(ink, text),
                _ => text.to_owned(),
            };
            push_folded(out, &texts, &widths, &columns, &ink);
        }
    }

    /// The cells with footnote marks, decimal columns padded behind the point.
    fn padded(&self) -> Vec<Vec<String>> {
        let behind: Vec<usize> = (0..self.columns.len())
            .map(|c| self.rows.iter().map(|r| behind_point(&r.entries[c].text)).max().unwrap_or(0))
            .collect();
        let cell = |c: usize, entry: &Entry| {
            let mut text = plain::shown(&entry.text);
            if let Some(note) = entry.note {
                text.push_str(&superscript(note));
            }
            if self.columns[c].align == Align::Decimal {
                text.push_str(&" ".repeat(behind[c] - behind_point(&entry.text)));
            }
            text
        };
        let row = |row: &Row| row.entries.iter().enumerate().map(|(c, e)| cell(c, e)).collect();
        self.rows.iter().map(row).collect()
    }

    fn widths(&self, cells: &[Vec<String>]) -> Vec<usize> {
        let width = |(c, column): (usize, &Column)| {
            let body = cells.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
            body.max(column.name.chars().count()).max(column.unit.chars().count())
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    /// An HTML table in a box of its own, which scrolls where it is too wide.
    pub fn html(&self) -> Markup {
        let cells = self.padded();
        html! {
            @if !self.caption.is_empty() { p.caption { (self.caption) } }
            div.table {
                table aria-label=[Some(&self.caption).filter(|caption| !caption.is_empty())] {
                    thead { tr { @for column in &self.columns {
                        th.(class(column.align)) {
                            (column.name)
                            @if !column.unit.is_empty() { " " small { (column.unit) } }
                        }
                    } } }
                    tbody { @for (row, texts) in self.rows.iter().zip(&cells) {
                        tr class=[row.starts_group.then_some("group")] {
                            @for ((entry, text), column) in
                                row.entries.iter().zip(texts).zip(&self.columns)
                            {
                                (cell_html(column.align, &entry_html(entry, text)))
                            }
                        }
                    } }
                }
                @if !self.notes.is_empty() {
                    ol.notes { @for note in &self.notes { li { (note) } } }
                }
            }
        }
    }

    /// A table in the Markdown of GitHub, footnotes below.
    pub fn markdown(&self) -> String {
        let name = |column: &Column| match column.unit.as_str() {
            "" => escaped(&column.name),
            unit => format!("{} ({})", escaped(&column.name), escaped(unit)),
        };
        let rule = |column: &Column| match column.align {
            Align::Left | Align::Prose => "---".to_owned(),
            Align::Right | Align::Decimal => "---:".to_owned(),
        };
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(self.columns.iter().map(name).collect());
        out.push_str(&line(self.columns.iter().map(rule).collect()));
        for row in &self.rows {
            let cell = |entry: &Entry| {
                let mark = entry.note.map(superscript).unwrap_or_default();
                escaped(&entry.text) + &mark
            };
            out.push_str(&line(row.entries.iter().map(cell).collect()));
        }
        for (i, note) in self.notes.iter().enumerate() {
            out.push_str(&format!("\n{} {}\n", superscript(i), escaped(note)));
        }
        out
    }
}

/// Words are the rule, so they need no class; a large page has many cells.
fn cell_html(align: Align, content: &Markup) -> Markup {
    let class = (align != Align::Left).then(|| class(align));
    html! { td class=[class] { (content) } }
}

fn entry_html(entry: &Entry, padded: &str) -> Markup {
    let text = entry.text.clone();
    let pad = padded.chars().rev().take_while(|c| *c == ' ').count();
    html! {
        @match &entry.tone {
            Tone::Hue(hue) => { (hued(hue, &text)) }
            Tone::Group => { @if !text.is_empty() { strong { (text) } } }
            Tone::Verdict(ink) => { i class=[ink.map(class_of)] { (text) } }
            Tone::Faint => { span.faint { (text) } }
            Tone::Plain => { (text) }
        }
        @if let Some(note) = entry.note { sup { (note + 1) } }
        (crate::number::pad(&entry.text, pad))
    }
}

fn class_of(ink: Ink) -> &'static str {
    match ink {
        Ink::Better => "v-faster",
        Ink::Worse => "v-slower",
        Ink::Same => "v-same",
        Ink::Open => "v-inconclusive",
        Ink::Fault => "v-invalid",
    }
}

/// A name with its colour.
fn hued(hue: &str, text: &str) -> Markup {
    let text = text.trim_start();
    let (name, rest) = text.split_once("  ").unwrap_or((text, ""));
    html! {
        b class={ "c-" (hue) } { (name) }
        @if !rest.is_empty() { span.beside { (rest) } }
    }
}

/// Characters from the decimal point on: what has to line up.
fn behind_point(text: &str) -> usize {
    let number = text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    match text.find('.') {
        Some(at) if number => text.len() - at,
        _ => 0,
    }
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "l",
        Align::Prose => "w",
        Align::Right | Align::Decimal => "r",
    }
}

fn superscript(index: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| c.to_digit(10).and_then(|d| DIGITS.get(d as usize)).copied();
    (index + 1).to_string().chars().filter_map(digit).collect()
}

/// Characters that a sentence has at least, before columns go below.
const PROSE_MIN: usize = 30;

/// Characters of a line of columns.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

/// Which columns stand beside each other: all, or as many as have room, each time behind the
/// first, the `keys`.
fn apart(widths: &[usize], width: usize, keys: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    let wide = |columns: &[usize]| total(&columns.iter().map(|&c| widths[c]).collect::<Vec<_>>());
    for column in 0..widths.len() {
        let Some(last) = all.last_mut() else { continue };
        last.push(column);
        if wide(last) > width && last.len() > keys + 1 {
            last.pop();
            all.push((0..keys).chain([column]).collect());
        }
    }
    all
}

/// A row of which a sentence may take several lines.
fn push_folded(
    out: &mut String,
    texts: &[&str],
    widths: &[usize],
    columns: &[&Column],
    ink: &dyn Fn(usize, &str) -> String,
) {
    let fold = |((text, &width), column): ((&&str, &usize), &&Column)| match column.align {
        Align::Prose | Align::Left if text.chars().count() > width => {
            crate::sentence::hanging(text, width, 0)
        }
        _ => (*text).to_owned(),
    };
    let folded: Vec<String> = texts.iter().zip(widths).zip(columns).map(fold).collect();
    let lines = folded.iter().map(|text| text.lines().count()).max().unwrap_or(0).max(1);
    for line in 0..lines {
        let parts = folded.iter().map(|text| text.lines().nth(line).unwrap_or_default());
        push_line(out, &parts.collect::<Vec<_>>(), widths, columns, ink);
    }
}

fn push_line(
    out: &mut String,
    texts: &[&str],
    widths: &[usize],
    columns: &[&Column],
    ink: &dyn Fn(usize, &str) -> String,
) {
    let mut line = String::new();
    for (nth, ((text, &width), column)) in texts.iter().zip(widths).zip(columns).enumerate() {
        line.push_str(if nth == 0 { "" } else { "  " });
        let pad = " ".repeat(width.saturating_sub(text.chars().count()));
        let text = ink(nth, text);
        match column.align {
            Align::Left | Align::Prose => line.extend([text, pad]),
            Align::Right | Align::Decimal => line.extend([pad, text]),
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let columns = vec![
            Column::left("arm", ""),
            Column::decimal("goodput", "Gbit/s"),
            Column::right("n", ""),
        ];
        let mut table = Table::new("", columns);
        table.push_row(true, vec!["send".into(), "1.25".into(), "12".into()]);
        let note = table.note("ECONNRESET, twice");
        let failed = Entry { note: Some(note), ..Entry::from("failed") };
        table.push(vec!["a, \"b\"".into(), failed, "–".into()]);
        table.push_row(true, vec!["send".into(), "31.0".into(), "12".into()]);
        table
    }

    #[test]
    fn text_lines_up_points_and_keeps_footnotes() {
        insta::assert_snapshot!(sample().text(60));
    }

    #[test]
    fn every_part_of_a_table_tells_its_rows_apart() {
        let columns = ["cell", "arm"].map(|name| Column::left(name, "")).to_vec();
        let numbers = ["one", "two"].map(|name| Column::right(name, "")).to_vec();
        let mut table = Table::new("", [columns, numbers].concat());
        for arm in ["send", "write"] {
            table.push(["1 KiB", arm, "1234567890", "9876543210"].map(Entry::from).to_vec());
        }
        let parts = table.text(28);
        assert_eq!((parts.matches("send").count(), parts.matches("1 KiB").count()), (2, 4));
    }

    #[test]
    fn what_has_no_room_folds_or_goes_below() {
        let columns = ["arm", "time", "CPU"].map(|name| Column::left(name, "")).to_vec();
        let mut table = Table::new("", [columns, vec![Column::prose("why")]].concat());
        let why = "the kernel said that there is no such thing";
        table
            .push(["sendmsg_iov", "1.25 [1.2, 1.3]", "12 [11, 13]", why].map(Entry::from).to_vec());
        for width in [200, 80, 50] {
            let text = table.text(width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            insta::assert_snapshot!(format!("text_at_{width}"), text);
        }
    }
}

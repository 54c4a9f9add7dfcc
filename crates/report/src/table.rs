//! One table model for every place a table stands: a header with units, rows
//! of cells with footnotes; drawn as text, HTML or CSV.

use iolens_model::outcome::Status;
use iolens_stats::analysis::Verdict;
use maud::{Markup, html};

use crate::csv;
use crate::markdown::escaped;

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
    /// A column of words.
    pub(crate) fn left(name: &str, unit: &str) -> Column {
        Column { name: name.into(), unit: unit.into(), align: Align::Left }
    }

    /// A column of sentences.
    pub(crate) fn prose(name: &str) -> Column {
        Column { name: name.into(), unit: String::new(), align: Align::Prose }
    }

    /// A column of whole numbers.
    pub(crate) fn right(name: &str, unit: &str) -> Column {
        Column { name: name.into(), unit: unit.into(), align: Align::Right }
    }

    /// A column of numbers lined up on their decimal points.
    pub(crate) fn decimal(name: &str, unit: &str) -> Column {
        Column { name: name.into(), unit: unit.into(), align: Align::Decimal }
    }
}

/// What a cell is, for a page that may draw it in its own way. The text alone
/// says everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// An arm of this primitive.
    Arm(String),
    /// A family, by the word that selects it.
    Family(&'static str),
    /// A verdict, or the status that stands for one; `None` where nothing is judged.
    Verdict(Option<Verdict>),
    /// Less important than its neighbours.
    Faint,
}

/// What a terminal may paint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The line under the heading.
    Rule,
    /// A verdict's word.
    Verdict(Verdict),
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
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Entry {
        Entry { text: text.into(), note: None, tone }
    }

    /// Why there is no verdict.
    pub(crate) fn status(status: Status) -> Entry {
        let is_fault = matches!(status, Status::Failed | Status::Invalid);
        Entry::toned(status.word(), Tone::Verdict(is_fault.then_some(Verdict::Invalid)))
    }
}

impl<T: Into<String>> From<T> for Entry {
    fn from(text: T) -> Entry {
        Entry { text: text.into(), ..Entry::default() }
    }
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
    pub(crate) fn new(caption: impl Into<String>, columns: Vec<Column>) -> Table {
        Table { caption: caption.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row to the current group.
    pub(crate) fn push(&mut self, entries: Vec<Entry>) {
        self.rows.push(Row { entries, starts_group: false });
    }

    /// Adds a row that begins a group.
    pub(crate) fn push_group(&mut self, entries: Vec<Entry>) {
        self.rows.push(Row { entries, starts_group: true });
    }

    /// The index of a footnote, which is added unless it is already there.
    pub(crate) fn note(&mut self, text: &str) -> usize {
        if let Some(found) = self.notes.iter().position(|note| note == text) {
            return found;
        }
        self.notes.push(text.to_owned());
        self.notes.len() - 1
    }

    /// Characters of the widest line of rows.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths(&self.padded());
        widths.iter().sum::<usize>() + (2 * widths.len()).saturating_sub(1)
    }

    /// Plain text. Footnotes are wrapped to `width` columns; rows never are.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        self.painted(width, &|_, text| text.to_owned())
    }

    /// The same, with what is painted.
    pub(crate) fn painted(&self, width: usize, paint: &dyn Fn(Ink, &str) -> String) -> String {
        let cells = self.padded();
        let widths = self.widths(&cells);
        let mut out = String::new();
        self.text_header(&mut out, &widths, paint);
        for (i, (row, texts)) in self.rows.iter().zip(&cells).enumerate() {
            if row.starts_group && i > 0 {
                out.push('\n');
            }
            let ink = |c: usize, text: &str| match row.entries[c].tone {
                Tone::Verdict(Some(verdict)) => paint(Ink::Verdict(verdict), text),
                _ => text.to_owned(),
            };
            push_line(&mut out, texts.iter().map(String::as_str), &widths, &self.columns, &ink);
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for (i, note) in self.notes.iter().enumerate() {
            let mark = superscript(i);
            out.push_str(&crate::wrap::hanging(&format!(" {mark} {note}"), width, 3));
            out.push('\n');
        }
        out
    }

    fn text_header(&self, out: &mut String, widths: &[usize], paint: &dyn Fn(Ink, &str) -> String) {
        let plain = |_: usize, text: &str| text.to_owned();
        let mut line = |of: fn(&Column) -> &str| {
            push_line(out, self.columns.iter().map(of), widths, &self.columns, &plain);
        };
        line(|column| &column.name);
        if self.columns.iter().any(|column| !column.unit.is_empty()) {
            line(|column| &column.unit);
        }
        let rules: Vec<String> = widths.iter().map(|&w| "─".repeat(w)).collect();
        out.push_str(&paint(Ink::Rule, &format!(" {}", rules.join("──"))));
        out.push('\n');
    }

    /// The cells with footnote marks, decimal columns padded behind the point.
    fn padded(&self) -> Vec<Vec<String>> {
        let behind: Vec<usize> = (0..self.columns.len())
            .map(|c| self.rows.iter().map(|r| behind_point(&r.entries[c].text)).max().unwrap_or(0))
            .collect();
        let cell = |c: usize, entry: &Entry| {
            let mut text = entry.text.replace(char::is_control, " ");
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
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(c, column)| {
                let body = cells.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
                body.max(column.name.chars().count()).max(column.unit.chars().count())
            })
            .collect()
    }

    /// An HTML table in a box of its own, which scrolls where it is too wide.
    #[must_use]
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
                        @match row.starts_group {
                            true => { tr.group { (self.row_html(row, texts)) } }
                            false => { tr { (self.row_html(row, texts)) } }
                        }
                    } }
                }
                @if !self.notes.is_empty() {
                    ol.notes { @for note in &self.notes { li { (note) } } }
                }
            }
        }
    }

    /// The cells of a row.
    fn row_html(&self, row: &Row, texts: &[String]) -> Markup {
        let filled = row.entries.iter().zip(texts).zip(&self.columns);
        html! {
            @for ((entry, text), column) in filled {
                (cell_html(column.align, &entry_html(entry, text)))
            }
        }
    }

    /// A table in the Markdown of GitHub, footnotes below.
    #[must_use]
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

    /// CSV with one header line; footnotes become a last column.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = String::new();
        let name = |c: &Column| match c.unit.as_str() {
            "" => c.name.clone(),
            unit => format!("{} ({unit})", c.name),
        };
        let noted = !self.notes.is_empty();
        let last = |text: &str| noted.then(|| text.to_owned());
        csv::push_row(&mut out, self.columns.iter().map(name).chain(last("note")));
        for row in &self.rows {
            let notes: Vec<&str> =
                row.entries.iter().filter_map(|e| Some(self.notes[e.note?].as_str())).collect();
            let texts = row.entries.iter().map(|entry| entry.text.clone());
            csv::push_row(&mut out, texts.chain(last(&notes.join("; "))));
        }
        out
    }
}

/// Words are the rule, so they need no class; a large page has many cells.
fn cell_html(align: Align, content: &Markup) -> Markup {
    html! {
        @match align {
            Align::Left => { td { (content) } }
            other => { td.(class(other)) { (content) } }
        }
    }
}

fn entry_html(entry: &Entry, padded: &str) -> Markup {
    let text = entry.text.clone();
    let pad = padded.chars().rev().take_while(|c| *c == ' ').count();
    html! {
        @match &entry.tone {
            Tone::Arm(primitive) => {
                (arm_html(primitive, &text))
            }
            Tone::Family(id) => {
                @if !text.is_empty() { strong data-family=(id) { (text) } }
            }
            Tone::Verdict(_) => { i class={ "v-" (text.to_lowercase()) } { (text) } }
            Tone::Faint => { span.faint { (text) } }
            Tone::Plain => { (text) }
        }
        @if let Some(note) = entry.note { sup { (note + 1) } }
        (padding(&entry.text, pad))
    }
}

/// Figure and punctuation spaces are as wide as a digit and a point, so the
/// decimal points line up without a table trick.
fn padding(text: &str, width: usize) -> String {
    let points = usize::from(width > 0 && !text.contains('.'));
    "\u{2008}".repeat(points) + &"\u{2007}".repeat(width - points)
}

/// An arm's name with its colour; what stands behind two blanks is no name.
fn arm_html(primitive: &str, text: &str) -> Markup {
    let text = text.trim_start();
    let (name, rest) = text.split_once("  ").unwrap_or((text, ""));
    let hue = crate::figure::style::of(primitive).hue;
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

fn push_line<'a>(
    out: &mut String,
    texts: impl Iterator<Item = &'a str>,
    widths: &[usize],
    columns: &[Column],
    ink: &dyn Fn(usize, &str) -> String,
) {
    let mut line = String::new();
    for (c, ((text, &width), column)) in texts.zip(widths).zip(columns).enumerate() {
        line.push_str(if line.is_empty() { " " } else { "  " });
        let pad = " ".repeat(width.saturating_sub(text.chars().count()));
        match column.align {
            Align::Left | Align::Prose => line.extend([ink(c, text), pad]),
            Align::Right | Align::Decimal => line.extend([pad, ink(c, text)]),
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
        table.push_group(vec!["send".into(), "1.25".into(), "12".into()]);
        let note = table.note("ECONNRESET, twice");
        let failed = Entry { note: Some(note), ..Entry::from("failed") };
        table.push(vec!["a, \"b\"".into(), failed, "–".into()]);
        table.push_group(vec!["send".into(), "31.0".into(), "12".into()]);
        table
    }

    #[test]
    fn text_lines_up_points_and_keeps_footnotes() {
        insta::assert_snapshot!(sample().text(60), @r#"
        arm        goodput   n
                    Gbit/s
        ──────────────────────
        send          1.25  12
        a, "b"  failed¹      –

        send         31.0   12

        ¹ ECONNRESET, twice
        "#);
    }

    #[test]
    fn csv_quotes_and_carries_the_note() {
        insta::assert_snapshot!(sample().csv(), @r#"
        arm,goodput (Gbit/s),n,note
        send,1.25,12,
        "a, ""b""",failed,–,"ECONNRESET, twice"
        send,31.0,12,
        "#);
    }
}

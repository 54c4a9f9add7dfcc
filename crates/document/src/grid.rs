//! A table whose columns have parts that line up: a value, its change, both ends of its
//! interval, a mark.

use crate::plain::shown;
use crate::sentence::Joined;

/// How the parts of a column stand below each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers without a point, ends of intervals.
    Right,
    /// Numbers by their points.
    Decimal,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What stands above it; a line for each.
    pub head: Vec<String>,
    /// Its parts, at least one.
    pub parts: Vec<Align>,
}

impl Column {
    /// A column of words.
    pub fn left(head: impl Into<String>) -> Column {
        Column::of(head, &[Align::Left])
    }

    /// A column of numbers without a point.
    pub fn right(head: impl Into<String>) -> Column {
        Column::of(head, &[Align::Right])
    }

    /// A column of numbers.
    pub fn decimal(head: impl Into<String>) -> Column {
        Column::of(head, &[Align::Decimal])
    }

    /// A column with these parts.
    pub fn of(head: impl Into<String>, parts: &[Align]) -> Column {
        Column { head: vec![head.into()], parts: parts.to_vec() }
    }

    /// Characters of its widest head.
    fn width(&self) -> usize {
        self.head.iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// One of so many lines of heads; those of fewer lines stand at the bottom.
    pub(crate) fn line(&self, nth: usize, heads: usize) -> &str {
        let at = nth.checked_sub(heads - self.head.len());
        at.and_then(|at| self.head.get(at)).map_or("", String::as_str)
    }

    /// Whether it has numbers and nothing beside them.
    pub(crate) fn is_of_numbers(&self) -> bool {
        matches!(self.parts.as_slice(), [Align::Right | Align::Decimal])
    }

    /// Whether a cell has one part, in a column of several.
    pub(crate) fn is_across(&self, cell: &[String]) -> bool {
        cell.len() == 1 && self.parts.len() > 1
    }

    /// The same below another line.
    #[must_use]
    pub fn below(mut self, line: impl Into<String>) -> Column {
        self.head.insert(0, line.into());
        self
    }
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// For each column its parts; a single one in a column of several stands across all of them.
    Cells(Vec<Vec<String>>),
    /// A line over all columns.
    Heading(String),
    /// An empty line.
    Gap,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grid {
    /// What it shows; none for a table that goes on from the one above it.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its lines.
    pub rows: Vec<Row>,
}

/// Between two columns.
const BETWEEN: &str = "  ";

impl Grid {
    /// A table of rows of which each says what columns its cells are in; all have the same. What
    /// a column has in it is a list of its parts.
    pub fn filled(
        title: impl Into<String>,
        rows: impl IntoIterator<Item = Vec<(Column, Vec<String>)>>,
    ) -> Grid {
        let mut grid = Grid { title: title.into(), ..Grid::default() };
        for row in rows {
            let (columns, cells) = row.into_iter().unzip();
            grid.columns = columns;
            grid.rows.push(Row::Cells(cells));
        }
        grid
    }

    /// Tables of the same columns below each other, each below its heading; `between` them an
    /// empty line or nothing.
    pub fn headed(
        title: impl Into<String>,
        parts: impl IntoIterator<Item = (String, Grid)>,
        between: Option<Row>,
    ) -> Grid {
        let mut grid = Grid { title: title.into(), ..Grid::default() };
        for (heading, part) in parts {
            if !grid.rows.is_empty() {
                grid.rows.extend(between.clone());
            }
            if !part.columns.is_empty() {
                grid.columns = part.columns;
            }
            grid.rows.push(Row::Heading(heading));
            grid.rows.extend(part.rows);
        }
        grid
    }

    /// The same with more lines below a heading, and an empty line between.
    #[must_use]
    pub fn and(mut self, heading: impl Into<String>, rows: Vec<Row>) -> Grid {
        self.rows.extend([Row::Gap, Row::Heading(heading.into())]);
        self.rows.extend(rows);
        self
    }

    /// The same without the columns that no row has anything in.
    #[must_use]
    pub fn without_empty(mut self) -> Grid {
        let has = |row: &Row, nth: usize| match row {
            Row::Cells(cells) => cells[nth].iter().any(|part| !part.is_empty()),
            Row::Heading(_) | Row::Gap => false,
        };
        for nth in (0..self.columns.len()).rev() {
            if !self.rows.iter().any(|row| has(row, nth)) {
                self.columns.remove(nth);
                for row in &mut self.rows {
                    if let Row::Cells(cells) = row {
                        cells.remove(nth);
                    }
                }
            }
        }
        self
    }

    /// The same in as many tables as have room, each with the columns without a head that name
    /// its rows.
    pub(crate) fn within(&self, width: usize) -> Vec<Grid> {
        let mut parts: Vec<Grid> = Vec::new();
        let mut at = self.names();
        while at < self.columns.len() {
            let fits = |end: &usize| self.with_columns(at, *end).width() <= width;
            let end = (at + 1..=self.columns.len()).rev().find(fits).unwrap_or(at + 1);
            let mut part = self.with_columns(at, end);
            if !parts.is_empty() {
                part.title.clear();
            }
            parts.push(part);
            at = end;
        }
        if parts.is_empty() { vec![self.clone()] } else { parts }
    }

    /// Columns that name a row: the first, and a second one without a head.
    fn names(&self) -> usize {
        let has_no_head = |column: &Column| column.head.iter().all(String::is_empty);
        self.columns.iter().take(2).take_while(|column| has_no_head(column)).count().max(1)
    }

    /// The columns that name rows and those from `begin` to `end`.
    pub(crate) fn with_columns(&self, begin: usize, end: usize) -> Grid {
        let names = self.names().min(begin);
        let kept = |nth: &usize| *nth < names || (begin..end).contains(nth);
        let pick = |(nth, _): &(usize, _)| kept(nth);
        let columns = self.columns.iter().cloned().enumerate().filter(|(nth, _)| kept(nth));
        let row = |row: &Row| match row {
            Row::Cells(cells) => {
                let kept = cells.iter().cloned().enumerate().filter(pick);
                let kept: Vec<Vec<String>> = kept.map(|(_, cell)| cell).collect();
                let is_empty = |cell: &Vec<String>| cell.iter().all(String::is_empty);
                // A row with nothing in these columns has it in others.
                (!kept.iter().skip(names).all(is_empty)).then_some(Row::Cells(kept))
            }
            other => Some(other.clone()),
        };
        Grid {
            title: self.title.clone(),
            columns: columns.map(|(_, column)| column).collect(),
            rows: self.rows.iter().filter_map(row).collect(),
        }
    }

    /// The widest line without the title.
    pub(crate) fn width(&self) -> usize {
        // Headings are folded by themselves.
        let is_cells = |row: &&Row| matches!(row, Row::Cells(_));
        let rows = self.rows.iter().filter(is_cells).cloned().collect();
        let cells = Grid { rows, ..self.clone() };
        cells.lines().iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The lines, without the title.
    pub(crate) fn lines(&self) -> Vec<String> {
        let widths = self.widths();
        let heads = self.columns.iter().map(|column| column.head.len()).max().unwrap_or(0);
        let mut lines: Vec<String> = (0..heads).map(|nth| self.head(nth, heads, &widths)).collect();
        lines.retain(|line| !line.is_empty());
        for row in &self.rows {
            lines.push(match row {
                Row::Cells(cells) => self.cells(cells, &widths),
                Row::Heading(words) => words.clone(),
                Row::Gap => String::new(),
            });
        }
        lines.iter().map(|line| shown(line)).collect()
    }

    /// For each column the width of each part.
    fn widths(&self) -> Vec<Vec<Width>> {
        let mut all: Vec<Vec<Width>> =
            self.columns.iter().map(|column| vec![Width::default(); column.parts.len()]).collect();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            for ((cell, column), widths) in cells.iter().zip(&self.columns).zip(&mut all) {
                if column.is_across(cell) {
                    continue;
                }
                for ((part, align), width) in cell.iter().zip(&column.parts).zip(widths) {
                    width.add(part, *align);
                }
            }
        }
        // A head that is wider than what stands below it makes room before the first part of
        // numbers, and behind that of words.
        for (column, widths) in self.columns.iter().zip(&mut all) {
            let missing = column.width().saturating_sub(total(widths));
            if let (true, Some(first)) = (column.parts.len() == 1, widths.first_mut()) {
                first.before += missing;
            }
        }
        all
    }

    fn head(&self, nth: usize, heads: usize, widths: &[Vec<Width>]) -> String {
        let cell = |(column, widths): (&Column, &Vec<Width>)| {
            let words = column.line(nth, heads);
            let width = total(widths).max(column.width());
            match column.is_of_numbers() {
                true => format!("{words:>width$}"),
                false => format!("{words:<width$}"),
            }
        };
        let cells: Vec<String> = self.columns.iter().zip(widths).map(cell).collect();
        cells.join(BETWEEN).trim_end().to_owned()
    }

    fn cells(&self, cells: &[Vec<String>], widths: &[Vec<Width>]) -> String {
        let mut out: Vec<String> = Vec::new();
        for ((column, widths), cell) in self.columns.iter().zip(widths).zip(cells) {
            if let ([words], true) = (cell.as_slice(), column.is_across(cell)) {
                let width = total(widths).max(column.width());
                out.push(format!("{words:<width$}"));
                continue;
            }
            let part = |(nth, (align, width)): (usize, (&Align, &Width))| {
                width.padded(cell.get(nth).map(String::as_str).unwrap_or_default(), *align)
            };
            let parts = column.parts.iter().zip(widths).enumerate().map(part);
            let parts = parts.filter(|part| !part.is_empty());
            let longest = column.width();
            out.push(format!("{:<longest$}", parts.joined(" ")));
        }
        out.join(BETWEEN).trim_end().to_owned()
    }
}

/// Characters that a part takes, before its point and from it on.
#[derive(Debug, Clone, Copy, Default)]
struct Width {
    before: usize,
    behind: usize,
}

impl Width {
    fn add(&mut self, part: &str, align: Align) {
        let [before, behind] = halves(part, align);
        self.before = self.before.max(before);
        self.behind = self.behind.max(behind);
    }

    fn total(self) -> usize {
        self.before + self.behind
    }

    fn padded(self, part: &str, align: Align) -> String {
        let width = self.total();
        let [_, behind] = halves(part, align);
        match align {
            Align::Left => format!("{part:<width$}"),
            Align::Right => format!("{part:>width$}"),
            Align::Decimal if part.is_empty() => " ".repeat(width),
            Align::Decimal => {
                let pad = self.behind - behind;
                let width = width - pad;
                format!("{part:>width$}{}", " ".repeat(pad))
            }
        }
    }
}

/// Characters before the point and from it on; of words all before it.
fn halves(part: &str, align: Align) -> [usize; 2] {
    let all = part.chars().count();
    match part.find('.').filter(|_| align == Align::Decimal) {
        Some(at) => {
            let before = part[..at].chars().count();
            [before, all - before]
        }
        None => [all, 0],
    }
}

fn total(widths: &[Width]) -> usize {
    let wide: Vec<usize> = widths.iter().map(|w| w.total()).filter(|&width| width > 0).collect();
    wide.iter().sum::<usize>() + wide.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_below_each_other() {
        let cell = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
        let compared = [Align::Decimal, Align::Right, Align::Right, Align::Left];
        let grid = Grid {
            title: String::new(),
            columns: vec![
                Column::right(""),
                Column::decimal("send_staged"),
                Column::of("sendmsg_iov", &compared),
            ],
            rows: vec![
                Row::Cells(vec![
                    cell(&["1 KiB"]),
                    cell(&["1.26"]),
                    cell(&["1.15", "−9%", "[−12, −6]", ""]),
                ]),
                Row::Cells(vec![
                    cell(&["16 KiB"]),
                    cell(&["11.5"]),
                    cell(&["11.5", "0%", "[−4, +4]", "?"]),
                ]),
                Row::Gap,
                Row::Heading("CPU, ns per byte".to_owned()),
                Row::Cells(vec![cell(&["1 KiB"]), cell(&["8.62"]), cell(&["9.33", ""])]),
            ],
        };
        insta::assert_snapshot!(grid.lines().join("\n"));
    }

    #[test]
    fn a_part_without_rows_takes_no_column_from_the_others() {
        let row = vec![(Column::left("call"), vec!["stat".to_owned()])];
        let parts = [Grid::filled("", [row]), Grid::filled("", [])];
        let parts = ["warm", "cold"].map(str::to_owned).into_iter().zip(parts);
        let grid = Grid::headed("ns", parts, Some(Row::Gap));
        assert_eq!(grid.lines(), ["call", "warm", "stat", "", "cold"]);
    }
}

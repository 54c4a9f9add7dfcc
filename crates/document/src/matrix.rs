//! What methods took in each setting, and against a reference: one table, laid out so that it
//! fits.

use crate::sentence::Joined;
use iolens_model::units::three_digits;

use crate::grid::{Align, Column, Grid, Row};
use crate::number::{Factor, ends, unusable};

/// A table of values by settings and methods.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// What is compared, one for each column; all sections have the same.
    pub heads: Vec<Head>,
    /// What each value is compared with, as it is called in titles: `send_staged`.
    pub reference: Option<String>,
    /// What the intervals are: `95%, all comparisons together, within this run`.
    pub intervals: String,
    /// Where the intervals are of a table that has no room for them: `iolens show 4f1c09ab`.
    pub elsewhere: String,
    /// Quantities below each other.
    pub sections: Vec<Section>,
}

/// A method at the head of its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its name.
    pub name: String,
    /// What it is restricted by: one character, which a legend explains; empty for nothing.
    pub mark: &'static str,
}

impl Head {
    fn shown(&self) -> String {
        format!("{}{}", self.name, self.mark)
    }
}

/// One quantity of all methods in all settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// What it is, with its unit: `throughput, Gbit/s`.
    pub title: String,
    /// Its settings.
    pub rows: Vec<MatrixRow>,
    /// Whether changes and intervals are shown beside values.
    pub is_compared: bool,
}

/// The values of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixRow {
    /// What it has in common with the rows below it: `4 threads`; empty in a table without
    /// groups.
    pub group: String,
    /// What it is: `16 KiB`.
    pub label: String,
    /// One for each head.
    pub cells: Vec<Cell>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing is known.
    Empty,
    /// Why there is none, in a word: `not run`, `invalid`.
    Word(String),
    /// A value that others are compared with, or that is compared with none.
    Plain(f64),
    /// A value with its own interval, compared with none.
    Alone(f64, Option<(f64, f64)>),
    /// The reference's value times a factor.
    Compared {
        /// In the unit of the section.
        value: f64,
        /// Over the reference's.
        factor: Factor,
        /// One character, which a legend explains; empty for none.
        mark: &'static str,
    },
}

impl Cell {
    fn value(&self) -> Option<f64> {
        match self {
            Cell::Empty | Cell::Word(_) => None,
            Cell::Plain(value) | Cell::Alone(value, _) => Some(*value),
            Cell::Compared { value, .. } => Some(*value),
        }
    }
}

/// How a compared cell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// `1.15  −9% [−12, −6]`.
    Changes,
    /// `74.0 [62.1–86.3]`.
    Values,
    /// `74.0`, with its mark.
    Bare,
}

/// A table of more values than this leaves their intervals out before it becomes a list.
const LISTED_MAX: usize = 15;

/// A table whose values are farther apart than this shows no changes: multiples and percents
/// beside each other are read wrong.
const SPREAD_MAX: f64 = 3.0;

impl Matrix {
    /// The table in the first form that fits `width`: settings as rows, methods as rows, a
    /// row for each method in each setting. Numbers are never broken.
    pub fn grid(&self, width: usize) -> Grid {
        let preferred = match (self.has_intervals(), self.spread() > SPREAD_MAX) {
            (false, _) => [Shown::Bare].as_slice(),
            (true, true) => &[Shown::Values],
            (true, false) => &[Shown::Changes, Shown::Values],
        };
        let first = preferred[0];
        let wide = preferred.iter().map(|&shown| self.by_setting(shown));
        let turned = preferred.iter().map(|&shown| self.by_method(shown));
        let values = self.sections.iter().map(|section| section.rows.len()).max().unwrap_or(0);
        let is_large = values * self.heads.len() > LISTED_MAX;
        let bare = [Self::by_setting, Self::by_method].into_iter().filter(|_| is_large);
        let bare = bare.map(|form| form(self, Shown::Bare));
        let fits = |grid: &Grid| grid.width() <= width;
        if let Some(found) = wide.chain(turned).chain(bare).find(fits) {
            return found;
        }
        if is_large {
            // Whoever draws it lays what has no room below the rest.
            return self.by_setting(Shown::Bare);
        }
        let mut narrow = preferred.iter().map(|&shown| self.listed(shown));
        narrow.find(fits).unwrap_or_else(|| self.stacked(first, width))
    }

    /// One quantity after the other, for who has no room for two.
    fn stacked(&self, shown: Shown, width: usize) -> Grid {
        let alone = |section: &Section, shown| {
            Matrix { sections: vec![section.clone()], ..self.clone() }.listed(shown)
        };
        let Some(first) = self.sections.first() else { return Grid::default() };
        let fits = |shown: &Shown| alone(first, *shown).width() <= width;
        let shown = [shown, Shown::Values].into_iter().find(fits).unwrap_or(Shown::Bare);
        self.sectioned(shown, alone(first, shown).columns, |section| alone(section, shown).rows)
    }

    /// The rows of every section below its title.
    fn sectioned(
        &self,
        shown: Shown,
        columns: Vec<Column>,
        rows: impl Fn(&Section) -> Vec<Row>,
    ) -> Grid {
        let Some((first, others)) = self.sections.split_first() else { return Grid::default() };
        let grid = Grid { title: self.title(first, shown), columns, rows: rows(first) };
        others.iter().fold(grid, |grid, one| grid.and(self.title(one, shown), rows(one)))
    }

    /// Whether any value has one; a table of single trials has none.
    fn has_intervals(&self) -> bool {
        let has = |cell: &Cell| match cell {
            Cell::Compared { factor, .. } => factor.interval.is_some(),
            Cell::Alone(_, interval) => interval.is_some(),
            _ => false,
        };
        self.rows().flat_map(|row| &row.cells).any(has)
    }

    /// The largest over the smallest value of any setting, in sections that compare.
    fn spread(&self) -> f64 {
        let rows = self.sections.iter().filter(|section| section.is_compared);
        let rows = rows.flat_map(|section| &section.rows);
        rows.map(|row| spread(row.cells.iter().filter_map(Cell::value))).fold(1.0, f64::max)
    }

    fn title(&self, section: &Section, shown: Shown) -> String {
        if !section.is_compared {
            return section.title.clone();
        }
        match (shown, &self.reference) {
            (Shown::Changes, Some(reference)) => {
                format!("{}, and change against {reference} [{}]", section.title, self.intervals)
            }
            (Shown::Bare, _) if !self.has_intervals() => {
                format!("{} (no intervals)", section.title)
            }
            (Shown::Bare, _) => {
                format!("{} (intervals: {})", section.title, self.elsewhere)
            }
            (Shown::Values, Some(reference)) => {
                format!("{} ({reference}'s × ratio) [{}]", section.title, self.intervals)
            }
            _ => format!("{} [{}]", section.title, self.intervals),
        }
    }

    /// Settings as rows.
    fn by_setting(&self, shown: Shown) -> Grid {
        let is_grouped = self.rows().any(|row| !row.group.is_empty());
        let mut columns = vec![Column::right("")];
        if is_grouped {
            columns.insert(0, Column::left(""));
        }
        columns.extend(self.heads.iter().enumerate().map(|(nth, head)| {
            let all = self.rows().filter_map(|row| row.cells.get(nth));
            column(head.shown(), all)
        }));
        self.sectioned(shown, columns, |section| {
            let mut rows: Vec<Row> = Vec::new();
            let mut above = "";
            for row in &section.rows {
                if !rows.is_empty() && is_grouped && row.group != above {
                    rows.push(Row::Gap);
                }
                let group = if row.group == above { "" } else { &row.group };
                let mut cells = Vec::from_iter(is_grouped.then(|| vec![group.to_owned()]));
                cells.push(vec![row.label.clone()]);
                cells.extend(row.cells.iter().map(|cell| parts(cell, shown, section.is_compared)));
                rows.push(Row::Cells(cells));
                above = &row.group;
            }
            rows
        })
    }

    fn rows(&self) -> impl Iterator<Item = &MatrixRow> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// Methods as rows, settings as columns.
    fn by_method(&self, shown: Shown) -> Grid {
        let first = self.sections.first().map(|section| section.rows.as_slice());
        let setting = |(nth, row): (usize, &MatrixRow)| {
            let all = self.sections.iter().filter_map(|section| section.rows.get(nth));
            let column = column(row.label.clone(), all.flat_map(|row| &row.cells));
            if row.group.is_empty() { column } else { column.below(row.group.clone()) }
        };
        let settings = first.unwrap_or_default().iter().enumerate().map(setting);
        let columns = std::iter::once(Column::left("")).chain(settings).collect();
        self.sectioned(shown, columns, |section| {
            let row = |(nth, head): (usize, &Head)| {
                let own = section.rows.iter().map(|row| row.cells.get(nth).unwrap_or(&Cell::Empty));
                let own = own.map(|cell| parts(cell, shown, section.is_compared));
                Row::Cells(std::iter::once(vec![head.shown()]).chain(own).collect())
            };
            self.heads.iter().enumerate().map(row).collect()
        })
    }

    /// A row for each method in each setting, one quantity beside the other.
    fn listed(&self, shown: Shown) -> Grid {
        let mut grid = Grid { columns: vec![Column::left(""); 1], ..Grid::default() };
        for section in &self.sections {
            let all = section.rows.iter().flat_map(|row| &row.cells);
            grid.columns.push(column(String::new(), all));
        }
        let titles = self.sections.iter().map(|section| self.title(section, shown));
        grid.title = titles.joined("; ");
        let Some(first) = self.sections.first() else { return grid };
        for (at, row) in first.rows.iter().enumerate() {
            let words = [row.label.as_str(), row.group.as_str()];
            let words = words.into_iter().filter(|words| !words.is_empty());
            grid.rows.push(Row::Heading(words.joined(", ")));
            for (nth, head) in self.heads.iter().enumerate() {
                let cell = |section: &Section| {
                    let cell = section.rows.get(at).and_then(|row| row.cells.get(nth));
                    parts(cell.unwrap_or(&Cell::Empty), shown, section.is_compared)
                };
                let name = vec![format!("  {}", head.shown())];
                let cells = std::iter::once(name).chain(self.sections.iter().map(cell));
                grid.rows.push(Row::Cells(cells.collect()));
            }
        }
        grid
    }
}

/// The largest over the smallest of these; 1 of none.
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    let low = values.iter().copied().fold(f64::MAX, f64::min);
    if values.is_empty() { 1.0 } else { high / low }
}

/// A column for these cells: of values alone, or with what stands beside them.
fn column<'a>(head: String, mut cells: impl Iterator<Item = &'a Cell>) -> Column {
    let is_wide = |cell: &Cell| matches!(cell, Cell::Compared { .. } | Cell::Alone(..));
    match cells.any(is_wide) {
        true => Column::of(
            head,
            &[Align::Decimal, Align::Right, Align::Right, Align::Right, Align::Left],
        ),
        false => Column::decimal(head),
    }
}

/// A cell as its column has it: value, change, both ends of the interval, mark.
fn parts(cell: &Cell, shown: Shown, is_compared: bool) -> Vec<String> {
    let only = |text: String| vec![text];
    match cell {
        Cell::Empty => only(String::new()),
        Cell::Word(word) => only(word.clone()),
        Cell::Plain(value) => values(*value, String::new()),
        Cell::Alone(value, _) if shown == Shown::Bare => values(*value, String::new()),
        Cell::Alone(value, interval) => {
            let interval = interval.map_or_else(|| unusable().to_owned(), ends);
            values(*value, format!("[{interval}]"))
        }
        Cell::Compared { value, .. } if !is_compared => values(*value, String::new()),
        Cell::Compared { value, factor, mark } => match shown {
            Shown::Bare => values(*value, (*mark).to_owned()),
            Shown::Values => {
                let interval = factor.ends_of(*value).unwrap_or_else(|| unusable().to_owned());
                values(*value, format!("[{interval}] {mark}").trim_end().to_owned())
            }
            Shown::Changes => {
                let change = factor.parts().into_iter().chain([(*mark).to_owned()]);
                std::iter::once(three_digits(*value)).chain(change).collect()
            }
        },
    }
}

/// The parts of a cell without a change.
fn values(value: f64, interval: String) -> Vec<String> {
    vec![three_digits(value), String::new(), String::new(), String::new(), interval]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(base: f64, typical: f64, half: f64) -> Cell {
        let factor = Factor { typical, interval: Some((typical - half, typical + half)) };
        let mark = if factor.is_open() { "?" } else { "" };
        Cell::Compared { value: base * typical, factor, mark }
    }

    fn row(label: &str, base: f64, factors: &[(f64, f64)]) -> MatrixRow {
        let others = factors.iter().map(|&(typical, half)| compared(base, typical, half));
        let cells = std::iter::once(Cell::Plain(base)).chain(others).collect();
        MatrixRow { group: String::new(), label: label.to_owned(), cells }
    }

    fn heads(names: &[&str]) -> Vec<Head> {
        let head = |name: &&str| Head {
            name: name.trim_end_matches('*').to_owned(),
            mark: if name.ends_with('*') { "*" } else { "" },
        };
        names.iter().map(head).collect()
    }

    fn sample() -> Matrix {
        let section =
            |title: &str, rows, is_compared| Section { title: title.to_owned(), rows, is_compared };
        let rows = vec![
            row("1 KiB", 1.26, &[(0.91, 0.03), (0.68, 0.02), (1.0, 0.02)]),
            row("16 KiB", 11.5, &[(1.0, 0.04), (0.81, 0.05), (1.04, 0.06)]),
            row("256 KiB", 29.7, &[(1.16, 0.03), (0.80, 0.03), (1.17, 0.004)]),
        ];
        let cpu = vec![
            row("1 KiB", 8.62, &[(1.08, 0.03), (1.43, 0.02), (1.0, 0.02)]),
            row("16 KiB", 0.934, &[(0.98, 0.04), (1.21, 0.05), (0.94, 0.06)]),
            row("256 KiB", 0.388, &[(0.88, 0.03), (1.25, 0.03), (0.87, 0.03)]),
        ];
        Matrix {
            heads: heads(&["send_staged", "sendmsg_iov", "sendmsg_zerocopy", "send*"]),
            reference: Some("send_staged".to_owned()),
            intervals: "95%, within this run".to_owned(),
            elsewhere: "iolens show last".to_owned(),
            sections: vec![
                section("throughput, Gbit/s", rows, true),
                section("CPU, ns per byte", cpu, false),
            ],
        }
    }

    fn drawn(matrix: &Matrix, width: usize) -> String {
        let grid = matrix.grid(width);
        let lines = grid.lines().iter().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
        format!("{}\n{}", grid.title, lines.join("\n"))
    }

    #[test]
    fn a_table_turns_where_it_does_not_fit_and_never_breaks() {
        insta::assert_snapshot!(drawn(&sample(), 100));
        insta::assert_snapshot!(drawn(&sample(), 80));
        insta::assert_snapshot!(drawn(&sample(), 60));
        insta::assert_snapshot!(drawn(&sample(), 42));
    }

    #[test]
    fn values_that_are_far_apart_have_no_changes() {
        let mut matrix = sample();
        matrix.sections[0].rows[0].cells[2] = compared(1.26, 0.05, 0.01);
        let text = drawn(&matrix, 100);
        assert!(!text.contains('%') || text.lines().skip(1).all(|line| !line.contains('%')));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_large_table_leaves_its_intervals_to_another_place() {
        let mut matrix = sample();
        let rows = matrix.sections[0].rows.clone();
        matrix.sections[0].rows.extend(rows.iter().cloned().chain(rows.clone()));
        matrix.sections.truncate(1);
        let text = drawn(&matrix, 60);
        assert!(text.starts_with("throughput, Gbit/s (intervals: iolens show last)"), "{text}");
        assert_eq!(text.lines().count(), 11, "{text}");
    }

    #[test]
    fn an_interval_that_says_nothing_has_no_ends() {
        let factor = Factor { typical: 1.2, interval: None };
        let cell = Cell::Compared { value: 2.0, factor, mark: "?" };
        let words = parts(&cell, Shown::Changes, true).join(" ");
        assert_eq!(words, "2.00 +20%  [no interval] ?");
        assert_eq!(parts(&cell, Shown::Values, true).join(""), "2.00[no interval] ?");
    }
}

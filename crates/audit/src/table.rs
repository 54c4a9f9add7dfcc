//! Tables: records to rows of quantities, whichever way the table is turned.

use iolens_stats::physics::Rounded;

use crate::csv::{self, Record};
use crate::finding::{ColumnUse, Format};
use crate::header::{self, Meaning, Unknown};
use crate::number::{self, DecimalMark, MarkEvidence};
use crate::quantity::Quantity;
use crate::unit::{self, Dimension, Unit};
use crate::{AuditError, Mapping};

/// A table as rows of quantities.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) format: Format,
    pub(crate) rows: Vec<Row>,
    pub(crate) columns: Vec<ColumnUse>,
    pub(crate) notes: Vec<String>,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Line in the file, or column where a metric is a row, from 1.
    pub(crate) line: usize,
    /// What it is called: the columns that hold words.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) values: Vec<Value>,
}

/// One number of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) quantity: Quantity,
    /// Which of its names the column has.
    pub(crate) name: &'static str,
    /// In the base unit of its dimension.
    pub(crate) number: Rounded,
    /// As it stands in the file, with its column.
    pub(crate) shown: String,
    pub(crate) pmu: Option<String>,
}

impl Row {
    /// The number of a quantity; the first, where there are several.
    pub(crate) fn get(&self, quantity: Quantity) -> Option<&Value> {
        self.values.iter().find(|value| value.quantity == quantity)
    }

    /// All numbers of a quantity.
    pub(crate) fn every(&self, quantity: Quantity) -> impl Iterator<Item = &Value> {
        self.values.iter().filter(move |value| value.quantity == quantity)
    }

    /// The number of a quantity, that of all kinds of core together.
    pub(crate) fn number(&self, quantity: Quantity) -> Option<Rounded> {
        let first = self.get(quantity)?;
        if first.pmu.is_none() {
            return Some(first.number);
        }
        self.every(quantity).map(|value| value.number).reduce(Rounded::plus)
    }

    /// The number of a quantity above zero.
    pub(crate) fn above_zero(&self, quantity: Quantity) -> Option<Rounded> {
        self.number(quantity).filter(|number| number.value > 0.0)
    }

    /// The same as printed.
    pub(crate) fn positive(&self, quantity: Quantity) -> Option<f64> {
        self.above_zero(quantity).map(|number| number.value)
    }

    /// Whether a label says one of these words, or holds one of five letters
    /// or more.
    pub(crate) fn says(&self, words: &[&str]) -> bool {
        let holds = |label: &str, word: &str| {
            let mut parts = label.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| part == word) || word.len() >= 5 && label.contains(word)
        };
        let labels: Vec<String> = self.labels.iter().map(|(_, l)| l.to_lowercase()).collect();
        labels.iter().any(|label| words.iter().any(|word| holds(label, word)))
    }
}

/// A header and what stands below it.
struct Grid {
    format: Format,
    header: Vec<String>,
    records: Vec<Record>,
}

/// Reads a table.
pub(crate) fn read(text: &str, mappings: &[Mapping]) -> Result<Table, AuditError> {
    let separator = csv::separator(text);
    let mut records = csv::records(text, separator, usize::MAX);
    if records.len() < 2 {
        return Err(AuditError::NoTable);
    }
    let first = records.remove(0);
    let width = first.fields.len();
    let ragged: Vec<usize> =
        records.iter().filter(|record| record.fields.len() != width).map(|r| r.line).collect();
    records.retain(|record| record.fields.len() == width);
    let grid = upright(first, records);
    let usual = if separator == ';' { DecimalMark::Comma } else { DecimalMark::Point };
    let cells = grid.records.iter().flat_map(|record| record.fields.iter().map(String::as_str));
    let mark = number::decimal_mark_of(cells, usual);
    let mut table = rows(&grid, mark, mappings);
    if !ragged.is_empty() {
        let lines: Vec<String> = ragged.iter().map(usize::to_string).collect();
        table.notes.push(format!(
            "not read: {} with another number of fields than the header ({width}), on line {}; \
             numbers with digit groups have to be quoted where the group is the separator",
            if ragged.len() == 1 { "a row".to_owned() } else { format!("{} rows", ragged.len()) },
            lines.join(", ")
        ));
    }
    Ok(table)
}

/// The table with a measurement in each row: as it is, or turned where its
/// rows are metrics.
fn upright(first: Record, records: Vec<Record>) -> Grid {
    let is_known = |name: &str| {
        matches!(header::meaning(name), Ok(_) | Err(Unknown::NoUnit(_) | Unknown::WrongUnit(_)))
    };
    let across = first.fields.iter().skip(1).filter(|name| is_known(name)).count();
    let names: Vec<&str> =
        records.iter().filter_map(|record| record.fields.first()).map(String::as_str).collect();
    let down = names.iter().filter(|name| is_known(name)).count();
    if down < 2 || down * 2 < names.len() || down <= across {
        return Grid { format: Format::Table, header: first.fields, records };
    }
    let units = first
        .fields
        .iter()
        .position(|name| matches!(name.to_lowercase().as_str(), "unit" | "units"));
    let cell = |record: &Record, column: usize| record.fields.get(column).cloned();
    let name = |record: &Record| {
        let name = cell(record, 0).unwrap_or_default();
        let unit = units.and_then(|column| cell(record, column)).filter(|unit| !unit.is_empty());
        unit.map_or(name.clone(), |unit| format!("{name} ({unit})"))
    };
    let mut header = vec![first.fields.first().cloned().unwrap_or_default()];
    header.extend(records.iter().map(name));
    let turned = (1..first.fields.len()).filter(|column| Some(*column) != units).map(|column| {
        let mut fields = vec![first.fields[column].clone()];
        fields.extend(records.iter().map(|record| cell(record, column).unwrap_or_default()));
        Record { line: column + 1, fields }
    });
    Grid { format: Format::TableByColumn, header, records: turned.collect() }
}

/// What a column is taken for.
enum Role {
    Numbers(Meaning),
    Label,
    Unused,
}

fn rows(grid: &Grid, mark: DecimalMark, mappings: &[Mapping]) -> Table {
    let has_block = grid.header.iter().any(|name| {
        header::meaning(name).is_ok_and(|meaning| meaning.quantity == Quantity::BlockBytes)
    });
    let mut columns = Vec::new();
    let mut roles = Vec::new();
    for (index, name) in grid.header.iter().enumerate() {
        let cells = || grid.records.iter().filter_map(move |record| record.fields.get(index));
        let mapped = mappings.iter().find(|mapping| mapping.theirs == *name);
        let mut meaning = match mapped {
            Some(mapping) => Ok(mapping.meaning.clone()),
            None => header::meaning(name),
        };
        // Beside the bytes of a block, `size` is that of the file.
        if let (Ok(found), true, None) = (&mut meaning, has_block, mapped)
            && found.quantity == Quantity::MessageBytes
        {
            found.quantity = Quantity::FileBytes;
        }
        let (role, column) = role(name, meaning, cells(), mark);
        roles.push(role);
        columns.push(column);
    }
    let rows = grid.records.iter().map(|record| row(record, &grid.header, &roles, mark)).collect();
    let mut notes = Vec::new();
    if let Some(note) = ambiguous(grid, &roles, mark) {
        notes.push(note);
    }
    Table { format: grid.format, rows, columns, notes }
}

/// What a column holds, from its name and its cells.
fn role<'a>(
    name: &str,
    meaning: Result<Meaning, Unknown>,
    cells: impl Iterator<Item = &'a String>,
    mark: DecimalMark,
) -> (Role, ColumnUse) {
    let (mut numbers, mut words, mut with_unit) = (0usize, 0usize, 0usize);
    for cell in cells {
        match (is_missing(cell), number::leading(cell, mark)) {
            (true, _) => {}
            (false, Some(number)) => {
                numbers += 1;
                with_unit += usize::from(matches!(unit::named(bare(number.rest)), Ok(Some(_))));
            }
            (false, None) => words += 1,
        }
    }
    let used = |quantity: Option<Quantity>, remark: Option<String>| ColumnUse {
        column: name.to_owned(),
        quantity: quantity.map(Quantity::name),
        unit: quantity.map(|quantity| quantity.dimension().base()),
        remark,
    };
    let unused = |why: String| (Role::Unused, used(None, Some(why)));
    match meaning {
        Ok(_) | Err(Unknown::NoUnit(_)) if numbers == 0 && words == 0 => {
            unused("no numbers in it".to_owned())
        }
        _ if words > numbers => (Role::Label, used(None, None)),
        Ok(meaning) => {
            let unread = (words > 0).then(|| match words {
                1 => "1 cell is not a number".to_owned(),
                all => format!("{all} cells are not numbers"),
            });
            let assumed = meaning
                .unit_assumed
                .then(|| format!("taken to be in {}", meaning.unit.dimension.base()));
            let remark: Vec<String> = assumed.into_iter().chain(unread).collect();
            let remark = (!remark.is_empty()).then(|| remark.join("; "));
            let column = used(Some(meaning.quantity), remark);
            (Role::Numbers(meaning), column)
        }
        // Its cells name the unit, one by one.
        Err(Unknown::NoUnit(quantity)) if with_unit == numbers => {
            let unit = Unit::base(quantity.dimension());
            let name = quantity.name();
            let meaning = Meaning { quantity, name, unit, unit_assumed: false, pmu: None };
            (Role::Numbers(meaning), used(Some(quantity), None))
        }
        Err(Unknown::NoUnit(quantity)) => unused(format!(
            "{} without a unit: say which with --map {}:{}={name:?}",
            quantity.name(),
            quantity.name(),
            example_unit(quantity.dimension()),
        )),
        Err(Unknown::BitsOrBytes) => unused(
            "its unit may mean bits or bytes: say which with --map, as in throughput:MB/s=…"
                .to_owned(),
        ),
        Err(Unknown::WrongUnit(quantity)) => {
            unused(format!("{} is not measured in that unit", quantity.name()))
        }
        Err(Unknown::Name) => unused("name not known".to_owned()),
    }
}

fn example_unit(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Time => "us",
        Dimension::ByteRate => "Gbit/s",
        Dimension::Frequency => "GHz",
        Dimension::Share => "%",
        other => other.base(),
    }
}

/// Words for a number that is not there.
fn is_missing(cell: &str) -> bool {
    const WORDS: [&str; 12] = [
        "",
        "-",
        "–",
        "—",
        "n/a",
        "na",
        "nan",
        "null",
        "none",
        "<not supported>",
        "<not counted>",
        "inf",
    ];
    WORDS.contains(&cell.trim().to_lowercase().as_str())
}

/// What follows a number, without the spread that may follow it.
fn bare(rest: &str) -> &str {
    let end = rest.find(['±', '(']).or_else(|| rest.find("+-")).unwrap_or(rest.len());
    rest[..end].trim()
}

fn row(record: &Record, header: &[String], roles: &[Role], mark: DecimalMark) -> Row {
    let mut row = Row { line: record.line, labels: Vec::new(), values: Vec::new() };
    for ((cell, name), role) in record.fields.iter().zip(header).zip(roles) {
        match role {
            Role::Numbers(meaning) => row.values.extend(value(cell, name, meaning, mark)),
            Role::Label => row.labels.push((name.clone(), cell.clone())),
            Role::Unused => {}
        }
    }
    row
}

/// The number of a cell in base units; `None` where it is missing, or in a unit
/// that is not one of the column's.
fn value(cell: &str, name: &str, meaning: &Meaning, mark: DecimalMark) -> Option<Value> {
    if is_missing(cell) {
        return None;
    }
    let number = number::leading(cell, mark)?;
    let dimension = meaning.unit.dimension;
    let unit = match bare(number.rest) {
        "" => meaning.unit,
        text => {
            let unit = unit::named(text).ok().flatten()?;
            match (unit.dimension == dimension, unit.dimension) {
                (true, _) => unit,
                // `64K` in a column of bytes, `1.2M` in one of anything.
                (false, Dimension::Count) => multiple(unit, meaning.unit),
                (false, _) => return None,
            }
        }
    };
    let is_number = matches!(dimension, Dimension::Count | Dimension::Bytes);
    let is_exact = number.is_whole && unit.scale == 1.0 && is_number;
    let printed = if is_exact { Rounded::exact(number.value) } else { number.rounded() };
    let mut number = printed.scaled(unit.scale);
    number.high = number.high.max(printed.high * unit.scale_high);
    Some(Value {
        quantity: meaning.quantity,
        name: meaning.name,
        number,
        shown: format!("{name} {cell}"),
        pmu: meaning.pmu.clone(),
    })
}

/// A unit a thousand times as large, or 1024 times where it is of bytes.
fn multiple(prefix: Unit, of: Unit) -> Unit {
    let binary = prefix.scale.log10() / 3.0;
    let high = if of.dimension == Dimension::Bytes { 1024f64.powf(binary) } else { prefix.scale };
    Unit { scale: prefix.scale * of.scale, scale_high: high * of.scale_high, ..of }
}

/// What to say where numbers can be read in two ways.
fn ambiguous(grid: &Grid, roles: &[Role], mark: DecimalMark) -> Option<String> {
    let columns = roles.iter().enumerate().filter(|(_, role)| matches!(role, Role::Numbers(_)));
    let mut cells =
        columns.flat_map(|(at, _)| grid.records.iter().filter_map(move |r| r.fields.get(at)));
    let cell = cells.find(|cell| {
        let number = number::leading(cell, mark);
        // With a point for decimals, most numbers with one point are plain.
        let plain = mark == DecimalMark::Point && !cell.contains(',');
        number.is_some_and(|number| number.mark == MarkEvidence::Ambiguous) && !plain
    })?;
    let read = number::leading(cell, mark)?.value;
    Some(format!("`{cell}` is read as {read}, and other numbers of that form likewise"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(text: &str) -> Table {
        read(text, &[]).unwrap()
    }

    fn numbers(row: &Row) -> Vec<(Quantity, f64)> {
        row.values.iter().map(|value| (value.quantity, value.number.value)).collect()
    }

    #[test]
    fn a_row_is_a_measurement() {
        let table =
            table("mode,msg_size,threads,throughput_gbps\nsend,64,1,0.31\nsend,64K,2,48.1\n");
        assert_eq!(table.rows[0].labels, [("mode".to_owned(), "send".to_owned())]);
        let second = numbers(&table.rows[1]);
        assert_eq!(second[..2], [(Quantity::MessageBytes, 64e3), (Quantity::Threads, 2.0)]);
        assert!((second[2].1 - 48.1e9 / 8.0).abs() < 1.0);
        // 64K may be 64000 or 65536 bytes.
        assert!(table.rows[1].values[0].number.high >= 65536.0);
        assert_eq!(table.rows[1].line, 3);
    }

    #[test]
    fn a_metric_may_be_a_row() {
        let text = "metric;unit;fork;epoll\ncycles;;2,18,88,635;12\ninstructions;;1.234.567;7\n\
                    elapsed;s;1,5;2,5\n";
        let table = table(text);
        assert_eq!(table.format, Format::TableByColumn);
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0].labels, [("metric".to_owned(), "fork".to_owned())]);
        assert_eq!(
            numbers(&table.rows[0]),
            [
                (Quantity::Cycles, 21_888_635.0),
                (Quantity::Instructions, 1_234_567.0),
                (Quantity::Elapsed, 1.5e9)
            ]
        );
    }

    #[test]
    fn a_file_table_has_blocks_and_a_size() {
        let text = "block,size,rate (MB/s),time (s)\n4096,1e9,2000,0.5\n";
        let quantities: Vec<_> = numbers(&table(text).rows[0]).iter().map(|n| n.0).collect();
        use Quantity as Q;
        assert_eq!(quantities, [Q::BlockBytes, Q::FileBytes, Q::Throughput, Q::Elapsed]);
    }

    #[test]
    fn columns_that_are_not_used_are_named_with_the_reason() {
        let text = "size,flavour,latency,rate_mb_s,name\n64,3,5,1,a\n128,4,6,2,b\n";
        let columns = table(text).columns;
        let remark = |at: usize| columns[at].remark.clone().unwrap_or_default();
        assert_eq!(columns[0].quantity, Some("message_bytes"));
        assert_eq!(remark(0), "taken to be in B");
        assert_eq!(remark(1), "name not known");
        assert!(remark(2).contains("--map latency_mean:us=\"latency\""), "{}", remark(2));
        assert!(remark(3).contains("bits or bytes"));
        assert_eq!(columns[4].remark, None);
    }

    #[test]
    fn cells_may_be_missing_or_carry_their_unit() {
        let text = "size,latency,cycles\n64 B,3.5 us,<not supported>\n1 KiB,0.1 ms ± 0.01,5\n";
        let table = table(text);
        assert_eq!(table.rows[0].get(Quantity::Cycles), None);
        assert_eq!(table.rows[0].positive(Quantity::LatencyMean), Some(3500.0));
        assert_eq!(table.rows[1].positive(Quantity::LatencyMean), Some(1e5));
        assert_eq!(table.rows[1].positive(Quantity::MessageBytes), Some(1024.0));
    }

    #[test]
    fn rows_of_another_width_are_not_read_and_said() {
        let table = table("size,cycles\n64,1,234\n64,5\n");
        assert_eq!(table.rows.len(), 1);
        assert!(table.notes[0].contains("on line 2"), "{:?}", table.notes);
    }

    #[test]
    fn cores_of_two_kinds_add_up() {
        let row = &table("size,cpu_core/cycles/,cpu_atom/cycles/\n64,5,7\n").rows[0];
        assert_eq!(row.number(Quantity::Cycles).map(|n| n.value), Some(12.0));
    }

    #[test]
    fn a_mapping_comes_before_the_name() {
        let mapping: Mapping = "throughput:MB/s=rate_mb_s".parse().unwrap();
        let table = read("size,rate_mb_s\n64,5\n", &[mapping]).unwrap();
        assert_eq!(table.rows[0].positive(Quantity::Throughput), Some(5e6));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\PC\n\t\"]{0,120}") {
            let _ = read(&text, &[]);
        }

        #[test]
        fn table_like_texts_do_not_panic(
            header in proptest::collection::vec("(size|threads|cycles|time_s|Gbps|unit|metric|x)", 1..5),
            cells in proptest::collection::vec("[-0-9.,eKM %±us<>]{0,10}", 0..40),
        ) {
            let mut text = header.join(";");
            for row in cells.chunks(header.len()) {
                text.push('\n');
                text.push_str(&row.join(";"));
            }
            let _ = read(&text, &[]);
        }
    }
}

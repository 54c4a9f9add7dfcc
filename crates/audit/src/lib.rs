//! Audits: somebody else's table, or what `perf stat` printed, against the
//! gates of METHOD.md. Text in, findings out; nothing is read but the
//! arguments.
//!
//! A file becomes rows of quantities (`table`), or sections
//! of counters (`perf`); the checks of a row or a section ask
//! [`iolens_stats::physics`], which our own trials have to pass too. What
//! could not be mapped is named, so that nobody takes it for checked.

#![forbid(unsafe_code)]

pub mod bounds;
mod checks;
mod csv;
mod finding;
mod header;
mod number;
mod perf;
mod quantity;
mod series;
mod table;
pub mod text;
mod unit;

use std::fmt;
use std::str::FromStr;

use crate::bounds::Bounds;
use crate::checks::{CHECKS, Case};
use crate::finding::Ledger;
use crate::header::{Meaning, Unknown};
use crate::quantity::Quantity;
use crate::table::{Row, Table};

pub use finding::{Audit, Audits, ColumnUse, Finding, Format, GateUse, Severity};

/// A column that the user named: `throughput:Gbit/s=Speed`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    pub(crate) meaning: Meaning,
    pub(crate) theirs: String,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Mapping, String> {
        let (ours, theirs) = text.split_once('=').ok_or_else(|| {
            format!("`{text}` is not OURS=THEIRS, such as throughput:Gbit/s=Speed")
        })?;
        let meaning = header::ours(ours).map_err(|unknown| match unknown {
            Unknown::WrongUnit(quantity) => {
                let base = quantity.dimension().base();
                format!("`{ours}` is not measured in that: its base unit is {base}")
            }
            Unknown::BitsOrBytes => {
                format!("the unit of `{ours}` may mean bits or bytes: write Mbit/s or MB/s")
            }
            Unknown::Name | Unknown::NoUnit(_) => {
                let names: Vec<&str> = Quantity::all().map(Quantity::name).collect();
                let near = iolens_model::parse::nearest(ours, names.iter().copied());
                let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
                format!("unknown quantity `{ours}`{near}\n  choose from: {}", names.join(", "))
            }
        })?;
        let assumed_time = meaning.unit_assumed && !meaning.quantity.has_usual_unit();
        if assumed_time {
            return Err(format!("`{ours}` needs its unit, as in {ours}:us or {ours}:Gbit/s"));
        }
        Ok(Mapping { meaning, theirs: theirs.trim().to_owned() })
    }
}

/// Why a file could not be audited.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditError {
    /// It holds neither a header with a row below it nor counters.
    NoTable,
    /// `--map` names a column that is not there.
    NoSuchColumn {
        /// What was looked for.
        wanted: String,
        /// What there is.
        there_are: Vec<String>,
    },
    /// None of its columns is known.
    NothingMapped {
        /// What there is.
        there_are: Vec<String>,
    },
    /// It is what perf stat prints with an option that spreads the counts out.
    PerfOption {
        /// The option.
        option: &'static str,
    },
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::NoTable => {
                write!(f, "it holds neither a table with a header nor what perf stat prints")
            }
            AuditError::NoSuchColumn { wanted, there_are } => {
                write!(f, "it has no column `{wanted}`; there are: {}", there_are.join(", "))
            }
            AuditError::NothingMapped { there_are } => write!(
                f,
                "none of its columns is known: {}\n  name them, as in --map \
                 throughput:Gbit/s=THEIRS",
                there_are.join(", ")
            ),
            AuditError::PerfOption { option } => write!(
                f,
                "it is what perf stat prints with {option}, which is read as fields only\n  run \
                 perf stat with -x, (and without -j), or without {option}"
            ),
        }
    }
}

impl std::error::Error for AuditError {}

/// A file that could not be audited.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Its name.
    pub file: String,
    /// Why.
    pub error: AuditError,
}

/// Audits files, each by its name and its text. `mappings` are for the tables
/// among them, each for those that have its column.
///
/// # Errors
/// [`Refused`], if there is nothing in one of them that can be looked at, or a
/// mapping names a column that none has.
pub fn audit_all(
    files: &[(String, String)],
    mappings: &[Mapping],
    bounds: &Bounds,
) -> Result<Audits, Refused> {
    let one = |(file, text): &(String, String)| {
        let refused = |error| Refused { file: file.clone(), error };
        audit(file, text, mappings, bounds).map_err(refused)
    };
    let files: Vec<Audit> = files.iter().map(one).collect::<Result<_, _>>()?;
    let columns = || files.iter().flat_map(|audit| &audit.columns).map(|column| &column.column);
    if let Some(lost) = mappings.iter().find(|mapping| !columns().any(|c| *c == mapping.theirs)) {
        let file = files.iter().map(|audit| audit.file.as_str()).collect::<Vec<_>>().join(", ");
        let (wanted, there_are) = (lost.theirs.clone(), columns().cloned().collect());
        return Err(Refused { file, error: AuditError::NoSuchColumn { wanted, there_are } });
    }
    Ok(Audits { files, bounds: bounds.stated() })
}

/// Audits the text of one file.
///
/// # Errors
/// [`AuditError`], if there is nothing that can be looked at.
pub fn audit(
    file: &str,
    text: &str,
    mappings: &[Mapping],
    bounds: &Bounds,
) -> Result<Audit, AuditError> {
    if let Some(audit) = perf::audit(file, text, bounds) {
        return Ok(audit);
    }
    if let Some(option) = perf::spread_by(text) {
        return Err(AuditError::PerfOption { option });
    }
    let table = table::read(text, mappings)?;
    if table.columns.iter().all(|column| column.quantity.is_none()) {
        let there_are = table.columns.into_iter().map(|column| column.column).collect();
        return Err(AuditError::NothingMapped { there_are });
    }
    Ok(audit_table(file, table, bounds))
}

fn audit_table(file: &str, table: Table, bounds: &Bounds) -> Audit {
    let mut ledger = Ledger::default();
    for (gate, check) in CHECKS {
        let mut judged = 0;
        for row in &table.rows {
            let Some(found) = check(&Case { row, bounds }) else { continue };
            judged += 1;
            // That nothing is negative can be said of anything.
            if gate.1 != checks::NEGATIVE {
                ledger.looked_at.insert(row.line);
            }
            for found in found {
                ledger.find(*gate, found, place(row, &table), vec![row.line]);
            }
        }
        ledger.judged(*gate, judged);
    }
    series::judge(&table.rows, bounds, &mut ledger);
    let lines = table.rows.iter().map(|row| row.line);
    Audit { columns: table.columns, notes: table.notes, ..ledger.audit(file, table.format, lines) }
}

/// What a row is called: its line, its labels, its size and its threads.
fn place(row: &Row, table: &Table) -> String {
    let labels = row.labels.iter().map(|(_, label)| label.clone());
    let setting =
        [Quantity::MessageBytes, Quantity::BlockBytes, Quantity::Threads, Quantity::Connections];
    let setting = setting.into_iter().filter_map(|q| row.get(q)).map(|value| value.shown.clone());
    let parts: Vec<String> = labels.chain(setting).filter(|part| !part.is_empty()).collect();
    match (table.format, parts.is_empty()) {
        (Format::TableByColumn, _) => format!("column {} ({})", row.line, parts.join(", ")),
        (_, true) => format!("line {}", row.line),
        (_, false) => format!("line {} ({})", row.line, parts.join(", ")),
    }
}

#[cfg(test)]
mod tests;

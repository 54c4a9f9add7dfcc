//! `iolens export`: the numbers of stored runs, or all that is stored of them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use iolens_model::run::Run;
use iolens_report::export::{Columns, Rows, UnknownColumn};
use iolens_report::{csv, json};
use iolens_stats::analysis::Analysis;

use crate::args::{self, RowFormat, RowKind, written_choice};
use crate::commands::report::same_study;
use crate::failure::Failure;
use crate::output;
use crate::stored::{load, open};
use crate::values::unknown;
use crate::writing::{exists, write_new};

/// Writes rows.
pub(crate) fn export(args: &args::Export) -> Result<ExitCode, Failure> {
    let (text, reasons) = match args.rows {
        RowKind::All => (all(args)?, String::new()),
        kind => rows(args, kind)?,
    };
    if text.is_empty() {
        output::note(&format!(
            "note: no rows: what is stored has no {}",
            written_choice(&args.rows)
        ));
    }
    let Some(path) = &args.output else {
        output::rows(&text);
        return Ok(ExitCode::SUCCESS);
    };
    let is_table = args.rows != RowKind::All && format(args) == RowFormat::Csv;
    // Reasons of an older table would be wrong beside this one; what is no table has none, and
    // those that lie there are of another file.
    let is_wanted = |beside: &PathBuf| !reasons.is_empty() || args.overwrite && beside.is_file();
    let beside = companion(path).filter(|beside| is_table && is_wanted(beside));
    // Both or none.
    for file in std::iter::once(path).chain(&beside) {
        if !args.overwrite && file.symlink_metadata().is_ok() {
            return Err(exists(file));
        }
    }
    write_new(path, text.as_bytes(), args.overwrite)?;
    if let Some(beside) = beside {
        write_new(&beside, reasons.as_bytes(), args.overwrite)?;
        output::note(&format!("{} says why fields are empty", beside.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the reasons of empty fields go: beside a file, and nowhere beside a pipe.
fn companion(path: &Path) -> Option<PathBuf> {
    let is_pipe = path.metadata().is_ok_and(|found| !found.is_file());
    (!is_pipe).then(|| path.with_extension("reasons.csv"))
}

const ALL_AS_CSV: &str = "--rows all does not apply to CSV: a whole run is not a table\n  use \
                          --format json, or other --rows";

const OF_PROGRAMS: &str = "a run of `ab` has rows of arms and of slices\n  `iolens show RUN --json` has \
                           its verdicts";

const ALL_HAS_NO_COLUMNS: &str = "--columns does not apply to --rows all\n  drop --columns";

/// The format that is asked for, or that the file is named for.
fn named_format(args: &args::Export) -> Option<RowFormat> {
    let extension = args.output.as_deref().and_then(Path::extension);
    args.format.or_else(|| RowFormat::from_str(extension?.to_str()?, true).ok())
}

/// The format of rows.
fn format(args: &args::Export) -> RowFormat {
    named_format(args).unwrap_or(RowFormat::Csv)
}

/// Rows of the analysed or the raw numbers, and why fields of them are empty, where that has
/// a file of its own.
fn rows(args: &args::Export, kind: RowKind) -> Result<(String, String), Failure> {
    let runs = loaded(args)?;
    let is_of_programs = runs.iter().any(|run| run.header.plan.ab().is_some());
    if is_of_programs && matches!(kind, RowKind::Cells | RowKind::Phases) {
        return Err(Failure::usage(OF_PROGRAMS));
    }
    let analyses: Vec<Analysis> = match kind {
        RowKind::Cells => runs.iter().map(iolens_stats::analyse).collect(),
        _ => Vec::new(),
    };
    let rows = match kind {
        RowKind::Arms | RowKind::All => Rows::Arms(&runs),
        RowKind::Slices => Rows::Slices(&runs),
        RowKind::Phases => Rows::Phases(&runs),
        RowKind::Cells => Rows::Cells(&runs, &analyses),
    };
    let format = format(args);
    let short = match &args.columns[..] {
        [] if format == RowFormat::Csv => rows.short(),
        _ => Vec::new(),
    };
    let columns = match &args.columns[..] {
        [] if format == RowFormat::Csv => Columns::Named(&short),
        [] => Columns::All,
        [all] if all == "all" => Columns::All,
        named => Columns::Named(named),
    };
    let written = match format {
        RowFormat::Csv => {
            let reasons = match args.output {
                Some(_) => csv::reasons(rows, columns),
                None => Ok(String::new()),
            };
            csv::of(rows, columns).and_then(|table| Ok((table, reasons?)))
        }
        RowFormat::Json => json::of(rows, columns).map(|objects| (objects, String::new())),
    };
    written.map_err(|UnknownColumn { name, known }| {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        Failure::usage(unknown("column", &name, &known, "docs/export.md has all of them"))
    })
}

/// Whole runs, one behind another.
fn all(args: &args::Export) -> Result<String, Failure> {
    if !args.columns.is_empty() {
        return Err(Failure::usage(ALL_HAS_NO_COLUMNS));
    }
    if named_format(args) == Some(RowFormat::Csv) {
        return Err(Failure::usage(ALL_AS_CSV));
    }
    let (store, _) = open(args.db.as_deref())?;
    let mut text = String::new();
    for wanted in &args.runs {
        let id = store.find(wanted).map_err(Failure::usage)?;
        store.lines(&id, |line| text.push_str(line))?;
    }
    Ok(text)
}

/// Runs of one study.
fn loaded(args: &args::Export) -> Result<Vec<Run>, Failure> {
    let load = |wanted: &String| Ok(load(args.db.as_deref(), wanted)?.0);
    let runs: Vec<Run> = args.runs.iter().map(load).collect::<Result<_, Failure>>()?;
    same_study(runs.iter().map(|run| &run.header))?;
    Ok(runs)
}

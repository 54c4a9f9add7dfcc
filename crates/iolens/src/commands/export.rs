//! `iolens export`: the numbers of stored runs, or all that is stored of them.

use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use iolens_model::run::Run;
use iolens_report::export::{Rows, UnknownColumn};
use iolens_report::{csv, json};
use iolens_stats::analysis::Analysis;

use crate::args::{self, RowFormat, RowKind};
use crate::commands::report::{same_study, write_new};
use crate::commands::stored::{load, open};
use crate::failure::Failure;
use crate::output;
use crate::values::unknown;

/// Writes rows.
pub(crate) fn export(args: &args::Export) -> Result<ExitCode, Failure> {
    let text = match args.rows {
        RowKind::All => all(args)?,
        kind => rows(args, kind)?,
    };
    match &args.output {
        Some(path) => write_new(path, text.as_bytes(), args.overwrite)?,
        None => output::rows(&text),
    }
    Ok(ExitCode::SUCCESS)
}

const ALL_AS_CSV: &str =
    "--rows all: a whole run is no table\n  write --format json, or other --rows";

const ALL_HAS_NO_COLUMNS: &str = "--rows all: a whole run has no columns\n  drop --columns";

/// The format that is asked for, or that the file is named for.
fn named_format(args: &args::Export) -> Option<RowFormat> {
    let extension = args.output.as_deref().and_then(Path::extension);
    args.format.or_else(|| RowFormat::from_str(extension?.to_str()?, true).ok())
}

/// Rows of the analysed or the raw numbers.
fn rows(args: &args::Export, kind: RowKind) -> Result<String, Failure> {
    let runs = loaded(args)?;
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
    let written = match named_format(args).unwrap_or(RowFormat::Csv) {
        RowFormat::Csv => csv::of(rows, &args.columns),
        RowFormat::Json => json::of(rows, &args.columns),
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

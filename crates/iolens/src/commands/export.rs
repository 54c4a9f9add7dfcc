//! `iolens export`: the numbers of stored runs, or all that is stored of them.

use std::process::ExitCode;

use iolens_model::run::Run;
use iolens_report::{csv, json};
use iolens_stats::analysis::Analysis;

use crate::args::{self, RowFormat, Rows};
use crate::commands::report::{same_study, write_new};
use crate::commands::stored::{load, open};
use crate::failure::Failure;
use crate::output;

/// Writes rows.
pub(crate) fn export(args: &args::Export) -> Result<ExitCode, Failure> {
    let runs = || loaded(args);
    let analysed =
        |runs: &[Run]| -> Vec<Analysis> { runs.iter().map(iolens_stats::analyse).collect() };
    let text = match (args.format, args.rows) {
        (RowFormat::Csv, Rows::All) => return Err(Failure::usage(ALL_AS_CSV)),
        (RowFormat::Csv, Rows::Arms) => csv::arms(&runs()?),
        (RowFormat::Csv, Rows::Slices) => csv::slices(&runs()?),
        (RowFormat::Csv, Rows::Phases) => csv::phases(&runs()?),
        (RowFormat::Csv, Rows::Cells) => {
            let runs = runs()?;
            csv::cells(&runs, &analysed(&runs))
        }
        (RowFormat::Json, Rows::All) => all(args)?,
        (RowFormat::Json, Rows::Arms) => json::arms(&runs()?),
        (RowFormat::Json, Rows::Slices) => json::slices(&runs()?),
        (RowFormat::Json, Rows::Phases) => json::phases(&runs()?),
        (RowFormat::Json, Rows::Cells) => {
            let runs = runs()?;
            json::cells(&runs, &analysed(&runs))
        }
    };
    match &args.output {
        Some(path) => write_new(path, text.as_bytes(), args.overwrite)?,
        None => output::rows(&text),
    }
    Ok(ExitCode::SUCCESS)
}

const ALL_AS_CSV: &str =
    "--rows all: a whole run is no table\n  write --format json, or other --rows";

/// Whole runs, one behind another.
fn all(args: &args::Export) -> Result<String, Failure> {
    let (store, _) = open(args.db.as_deref())?;
    let mut text = String::new();
    for wanted in &args.runs {
        let id = store.find(wanted).map_err(Failure::usage)?;
        store.lines(&id, |line| text.push_str(line)).map_err(Failure::unusable)?;
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

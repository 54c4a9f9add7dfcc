//! `iolens compare`: two runs in, what changed between them out.

use std::process::ExitCode;

use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader};
use iolens_report::ab::compare as ab;
use iolens_report::compare::{Compared, json, markdown, text};
use iolens_stats::ab::AbSide;
use iolens_stats::analysis::Analysis;
use iolens_stats::compare::{Absolute, Comparison, Side};

use crate::commands::ab::analysed;
use crate::commands::again;
use crate::failure::{FOUND, Failure, NOTHING_USABLE};
use crate::output::style;
use crate::stored::{header, load, summed};
use crate::{args, output, request};

/// A run and what it says.
type Analysed = (Run, Analysis);

/// Compares two stored runs, or has two builds measure a plan and compares their runs.
pub(crate) fn compare(args: &args::Compare, typed: &[String]) -> Result<ExitCode, Failure> {
    if let (None, Some(run_b)) = (&args.rerun.program, &args.run_b)
        && let Some(code) = of_ab(args, run_b)?
    {
        return Ok(code);
    }
    let [(a, of_a), (b, of_b)] = match (&args.rerun.program, &args.run_b) {
        (Some(program), _) => again::rerun(args, program, typed)?,
        (None, run_b) => stored(args, run_b.as_deref().unwrap_or("last"))?,
    };
    let absolute = if args.absolute { Absolute::Judged } else { Absolute::Shown };
    let analyses = [of_a, of_b];
    let asked = [&a, &b].map(|run| asked(&run.header.plan));
    let side = |i: usize, header| Side { header, analysis: &analyses[i], asked: &asked[i] };
    let sides: [Side<'_>; 2] = [side(0, &a.header), side(1, &b.header)];
    let comparison =
        iolens_stats::compare::compare(&sides[0], &sides[1], absolute).map_err(Failure::usage)?;
    output::result(&shown(args, &a.header, &b.header, &comparison));
    Ok(coded(comparison.is_usable(), comparison.slower() > 0))
}

/// Compares two runs of `ab`; `None` where one of them is of another study.
fn of_ab(args: &args::Compare, run_b: &str) -> Result<Option<ExitCode>, Failure> {
    let db = args.result.db.as_deref();
    let db_b = args.db_b.as_deref().or(db);
    let is_ab = |header: &RunHeader| header.plan.ab().is_some();
    if !is_ab(&header(db, &args.run_a)?) || !is_ab(&header(db_b, run_b)?) {
        return Ok(None);
    }
    if args.absolute {
        return Err(Failure::usage(
            "--absolute: runs of `ab` are compared by their ratios to one baseline\n  leave it out",
        ));
    }
    let [a, b] = [load(db, &args.run_a)?.0, load(db_b, run_b)?.0];
    let analyses = [analysed(&a)?, analysed(&b)?];
    let side = |header, analysis| AbSide { header, analysis };
    let [of_a, of_b] = [side(&a.header, &analyses[0]), side(&b.header, &analyses[1])];
    let comparison = iolens_stats::ab::compare(&of_a, &of_b).map_err(Failure::usage)?;
    let shown = ab::Compared { a: &a.header, b: &b.header, comparison: &comparison };
    output::result(&match (args.result.json, args.markdown) {
        (true, _) => ab::json(&shown),
        (false, true) => ab::markdown(&shown),
        (false, false) => ab::text(&shown, args.verbose, &style()),
    });
    Ok(Some(coded(comparison.is_usable(), comparison.has_slower())))
}

/// Both runs as they are stored, of one database or two.
fn stored(args: &args::Compare, run_b: &str) -> Result<[Analysed; 2], Failure> {
    let db = args.result.db.as_deref();
    let (a, of_a, _) = summed(db, &args.run_a)?;
    let (b, of_b, _) = summed(args.db_b.as_deref().or(db), run_b)?;
    Ok([(a, of_a), (b, of_b)])
}

/// What the plan of a run asks for, as `--print-plan` would print it.
fn asked(plan: &Plan) -> Vec<(String, String)> {
    let word = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    let stated = request::wishes_of(plan, None).stated().into_iter();
    stated.map(|(key, value)| (key, word(value))).collect()
}

fn shown(args: &args::Compare, a: &RunHeader, b: &RunHeader, comparison: &Comparison) -> String {
    let compared = Compared { a, b, comparison };
    match (args.result.json, args.markdown) {
        (true, _) => json(&compared),
        (false, true) => markdown(&compared),
        (false, false) => text(&compared, args.verbose, &style()),
    }
}

fn coded(is_usable: bool, has_slower: bool) -> ExitCode {
    match (is_usable, has_slower) {
        (false, _) => ExitCode::from(NOTHING_USABLE),
        (true, false) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(FOUND),
    }
}

//! `iolens compare`: two runs in, what changed between them out.

use std::process::ExitCode;

use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader};
use iolens_report::compare::{Compared, json, markdown, text};
use iolens_stats::analysis::Analysis;
use iolens_stats::compare::{Absolute, Comparison, Side};

use crate::commands::{again, stored::summed};
use crate::failure::{FOUND, Failure, NOTHING_USABLE, usage};
use crate::output::style;
use crate::{args, output, request};

/// A run and what it says.
type Analysed = (Run, Analysis);

/// Compares two stored runs, or has two builds measure a plan and compares their runs.
pub(crate) fn compare(args: &args::Compare, typed: &[String]) -> Result<ExitCode, Failure> {
    let [(a, of_a), (b, of_b)] = match (&args.rerun.program, &args.run_b) {
        (Some(program), _) => again::rerun(args, program, typed)?,
        (None, run_b) => stored(args, run_b.as_deref().unwrap_or("last"))?,
    };
    let absolute = if args.absolute { Absolute::Judged } else { Absolute::Shown };
    if let Some(run) = [&a, &b].into_iter().find(|run| run.header.plan.ab().is_some()) {
        return Err(usage!(
            "run {} is of `ab`, which compares programs within a run\n  measure all of them in one: \
             iolens ab 'COMMAND A' 'COMMAND B'",
            run.header.id
        ));
    }
    let analyses = [of_a, of_b];
    let asked = [&a, &b].map(|run| asked(&run.header.plan));
    let side = |i: usize, header| Side { header, analysis: &analyses[i], asked: &asked[i] };
    let sides: [Side<'_>; 2] = [side(0, &a.header), side(1, &b.header)];
    let comparison =
        iolens_stats::compare::compare(&sides[0], &sides[1], absolute).map_err(Failure::usage)?;
    output::result(&shown(args, &a.header, &b.header, &comparison));
    Ok(code(&comparison))
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

fn code(comparison: &Comparison) -> ExitCode {
    match (comparison.is_usable(), comparison.slower()) {
        (false, _) => ExitCode::from(NOTHING_USABLE),
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => ExitCode::from(FOUND),
    }
}

//! `iolens history`: the runs of `ab` beside one baseline file, as a series.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use iolens_model::axes::Study;
use iolens_model::run::RunHeader;
use iolens_report::ab::history as report;
use iolens_stats::ab::{
    AbAnalysis, AbJoined, AbLeftOut, AbLeftOutWhy, AbWanted, AbWantedBaseline, history as judged,
    join,
};
use iolens_store::{Store, StoreError};

use crate::args::History;
use crate::commands::ab::{analysed, formed, refuse_forms};
use crate::commands::keep;
use crate::failure::{Failure, unusable, usage};
use crate::output;
use crate::stored::open;

/// Digits of a SHA-256 that tell a file.
const DIGITS_MIN: usize = 6;

/// Shows what changed from run to run.
pub(crate) fn history(args: &History) -> Result<ExitCode, Failure> {
    refuse_forms(&args.result)?;
    let (store, database) = open(args.result.db.as_deref())?;
    let (headers, mut damaged) = headers(&store)?;
    let wanted = wanted(args, &database, &headers)?;
    let mut joined = join(&headers, &wanted);
    let analyses = analyses(&store, &headers, &joined, &mut damaged)?;
    if !damaged.is_empty() {
        joined.left_out.push(AbLeftOut { why: AbLeftOutWhy::Damaged, runs: damaged });
    }
    if joined.series.is_empty() {
        return Err(nothing_joined(&joined, args));
    }
    let history = judged(&joined, &headers, &analyses);
    let (json, markdown) = (|| report::json(&history), || report::markdown(&history));
    if !formed(&args.result, &json, &markdown)? {
        output::result(&report::text(&history, args.verbose, &output::style()));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is known of the runs of `ab` before their trials are read, and the ids of those of which
/// nothing is.
fn headers(store: &Store) -> Result<(Vec<RunHeader>, Vec<String>), Failure> {
    let (mut headers, mut damaged) = (Vec::new(), Vec::new());
    let runs = store.runs()?.into_iter().filter(|run| run.study == Study::Ab.to_string());
    for run in runs {
        match store.header(&run.id) {
            Ok(header) => headers.push(RunHeader { end: run.end, ..header }),
            Err(StoreError::Damaged { .. }) => damaged.push(run.id),
            Err(other) => return Err(other.into()),
        }
    }
    Ok((headers, damaged))
}

/// Each run is let go as soon as it is judged: a database may have hundreds.
fn analyses(
    store: &Store,
    headers: &[RunHeader],
    joined: &AbJoined,
    damaged: &mut Vec<String>,
) -> Result<BTreeMap<usize, AbAnalysis>, Failure> {
    let mut analyses = BTreeMap::new();
    for at in joined.runs() {
        let id = &headers[at].id;
        match store.load(id) {
            Ok(run) => analyses.insert(at, analysed(&run)?),
            Err(StoreError::Damaged { .. }) => {
                damaged.push(id.clone());
                None
            }
            Err(other) => return Err(other.into()),
        };
    }
    Ok(analyses)
}

fn wanted(args: &History, database: &Path, headers: &[RunHeader]) -> Result<AbWanted, Failure> {
    let baseline = args.baseline.as_deref().map(|name| baseline(name, database, headers));
    let arm = args.arm.as_ref();
    let arms: BTreeSet<&str> = headers.iter().flat_map(arm_names).collect();
    if let Some(arm) = arm.filter(|arm| !arms.contains(arm.as_str())) {
        let arms = arms.into_iter().collect::<Vec<_>>().join(", ");
        return Err(match arms.is_empty() {
            true => usage!("--arm {arm}: there is no run of `ab` yet"),
            false => {
                usage!("--arm {arm}: no run has a program of that name\n  choose from: {arms}")
            }
        });
    }
    Ok(AbWanted {
        baseline: baseline.transpose()?,
        arm: arm.cloned(),
        last: usize::try_from(args.last).ok(),
        quantity: args.quantity,
        is_chain: args.chain,
    })
}

/// Names of all programs of a run but the baseline.
fn arm_names(header: &RunHeader) -> impl Iterator<Item = &str> {
    let programs = header.plan.ab().map_or(&[][..], |axes| &axes.programs);
    programs.iter().skip(1).map(|program| program.name.as_str())
}

/// The file that is kept by a name, or that some run has measured.
fn baseline(
    name: &str,
    database: &Path,
    headers: &[RunHeader],
) -> Result<AbWantedBaseline, Failure> {
    let unknown = match keep::sha256(database, name) {
        Ok(sha256) => return Ok(AbWantedBaseline { name: name.to_owned(), sha256 }),
        Err(unknown) => unknown,
    };
    let files = headers.iter().flat_map(|header| &header.programs);
    let is_known = files.clone().any(|file| file.sha256.starts_with(name));
    match is_known && name.len() >= DIGITS_MIN {
        true => Ok(AbWantedBaseline { name: name.to_owned(), sha256: name.to_owned() }),
        false => Err(unknown),
    }
}

fn nothing_joined(joined: &AbJoined, args: &History) -> Failure {
    let left: Vec<String> = joined
        .left_out
        .iter()
        .map(|left| format!("\n  left out: {}", report::left_words(left)))
        .collect();
    let left = left.concat();
    match &args.baseline {
        _ if args.chain => unusable!(
            "no run has the program of an earlier one as its baseline, with the same arguments and \
             settings{left}\n  iolens ab OLD NEW, and after the next change: iolens ab NEW NEWER"
        ),
        Some(name) => unusable!(
            "no two runs are beside {name} with the same arguments and settings{left}\n  \
             iolens ab --against {name} COMMAND, today and after each change"
        ),
        None => unusable!(
            "no two runs are beside one baseline file with the same arguments and settings{left}\n  \
             iolens keep PROGRAM --as NAME, then iolens ab --against NAME COMMAND, today and after \
             each change"
        ),
    }
}

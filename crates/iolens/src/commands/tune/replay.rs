//! `--replay`: an earlier result, checked again by a final alone.

use std::path::Path;
use std::process::ExitCode;

use iolens_model::tune::{Record, Work};
use iolens_report::tune::{self as report, Replay};
use iolens_stats::tune::{DELTA, Verdict, rematch, verdict};

use super::{Asked, prepare};
use crate::failure::{FOUND, Failure, usage};

/// Checks an earlier result again; ends with 1 if it is so no more.
pub(super) fn replay(asked: &Asked<'_>, path: &Path) -> Result<ExitCode, Failure> {
    let then = read(path)?;
    if then.wishes.task != asked.task {
        return Err(usage!(
            "{} is the result of `tune {}`, not of `tune {}`",
            path.display(),
            then.wishes.task,
            asked.task
        ));
    }
    if then.wishes.cache != asked.how.cache {
        return Err(usage!(
            "{} is a result of --cache {}: check it with that",
            path.display(),
            then.wishes.cache
        ));
    }
    let before = verdict(&then)
        .ok_or_else(|| usage!("{} has no winner that could be checked", path.display()))?;
    let mut begun = super::begin(asked, asked.how.budget, Some(&then))?;
    let plan = prepare::plan(asked, &mut begun)?;
    let found = rematch(&plan, &before.winner, &mut begun.ground)?;
    let record = super::finish(asked, begun, found)?;
    let now = verdict(&record).ok_or_else(|| super::nothing(&record))?;
    let drift = report::drift(&then.facts, &record.facts);
    let is_so = is_so(&before, &now);
    let replay = Replay { words: words(&before, is_so, drift.len()), drift, is_so };
    let json = format!("{:#}", report::replay_json(&replay, &record, &before, &now));
    super::conclude(asked.how, &json, || report::replay_text(&replay, &record, &before, &now))?;
    Ok(if is_so { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

fn read(path: &Path) -> Result<Record, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        usage!(
            "cannot check {}: {why}\n  name what `iolens tune ... -o FILE` has written",
            path.display()
        )
    };
    let text = std::fs::read_to_string(path).map_err(|e| cannot(&e))?;
    report::record_of(&text).map_err(|why| cannot(&why))
}

/// Whether the earlier winner is there again, and beats whom it has beaten.
fn is_so(then: &Verdict, now: &Verdict) -> bool {
    let is_there = now.winner == then.winner || now.tied.contains(&then.winner);
    let beats = |verdict: &Verdict, work: &Work| {
        verdict.against.iter().any(|other| other.work == *work && other.ratio.is_above(DELTA))
    };
    let engines = then.against.iter().filter(|other| other.work.configuration().is_some());
    let plain = engines.filter(|other| now.against.iter().any(|now| now.work == other.work));
    let still = |work: &Work| !beats(then, work) || now.winner != then.winner || beats(now, work);
    is_there && plain.map(|other| &other.work).all(still)
}

fn words(then: &Verdict, is_so: bool, drift: usize) -> String {
    let winner = then.winner.words();
    let so = match is_so {
        true => format!("Still so: {winner} wins as it did."),
        false => format!("No longer so: {winner} does not win as it did."),
    };
    match drift {
        0 => so,
        1 => format!("{so} One thing is another than it was:"),
        n => format!("{so} {n} things are other than they were:"),
    }
}

//! `iolens tune`: the search of [`iolens_stats::tune`] over trials of worker
//! processes; nothing is stored but where `-o` says.

mod prepare;
mod trials;

use std::path::Path;
use std::process::ExitCode;

use iolens_file::job::FilePath;
use iolens_file::tune::Watch;
use iolens_model::file::Consumer;
use iolens_model::tune::{CacheWish, Record, Stop, Task};
use iolens_model::units::Bytes;
use iolens_report::tune::{self as report, Replay};
use iolens_stats::tune::{DELTA, Found, Plan, Verdict, rematch, search, verdict};

use self::trials::Trials;
use crate::args::{self, TuneHow, TuneTask};
use crate::failure::{FOUND, Failure, unusable, usage};
use crate::output;
use crate::output::style;
use crate::writing::{exists, write_new};

/// What is asked for.
struct Asked<'a> {
    task: Task,
    source: FilePath,
    folder: Option<FilePath>,
    consumer: Consumer,
    bytes_max: Option<Bytes>,
    how: &'a TuneHow,
}

impl<'a> Asked<'a> {
    fn of(task: Task, source: &Path, how: &'a TuneHow, consumer: Consumer) -> Asked<'a> {
        let source = FilePath::new(source);
        Asked { task, source, folder: None, consumer, bytes_max: None, how }
    }
}

/// Tunes, or checks again.
pub(crate) fn tune(args: &args::Tune) -> Result<ExitCode, Failure> {
    let asked = match &args.task {
        TuneTask::Read(read) => Asked::of(Task::Read, &read.path, &read.how, read.consumer),
        TuneTask::Copy(copy) => Asked {
            folder: Some(FilePath::new(&copy.folder)),
            bytes_max: copy.max_bytes,
            ..Asked::of(Task::Copy, &copy.source, &copy.how, Consumer::None)
        },
    };
    check(&asked)?;
    match &asked.how.replay {
        Some(path) => replay(&asked, path),
        None => anew(&asked),
    }
}

/// Refuses what can be known to be wrong before anything is touched.
fn check(asked: &Asked<'_>) -> Result<(), Failure> {
    let how = asked.how;
    if how.cache == CacheWish::Cold && !how.evict {
        return Err(Failure::usage(
            "--cache cold evicts the file from the page cache before each trial, slowing other \
             programs that use it\n  add --allow-evict, or use --cache as-is",
        ));
    }
    if how.evict && how.cache != CacheWish::Cold && asked.task == Task::Copy {
        return Err(Failure::usage(
            "--allow-evict does not apply to `tune copy` without --cache cold\n  leave it out, or \
             add --cache cold",
        ));
    }
    if let Some(path) = how.output.as_ref().filter(|path| !how.overwrite && path.exists()) {
        return Err(exists(path));
    }
    Ok(())
}

/// The whole search.
fn anew(asked: &Asked<'_>) -> Result<ExitCode, Failure> {
    let (record, verdict) = measured(asked, None, search)?;
    let json = format!("{:#}", report::json(&record, &verdict));
    let text = || report::text(&record, &verdict, &style(), asked.how.verbose);
    conclude(asked.how, &json, text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes and prints a result.
fn conclude(how: &TuneHow, json: &str, text: impl Fn() -> String) -> Result<(), Failure> {
    if let Some(path) = &how.output {
        write_new(path, format!("{json}\n").as_bytes(), how.overwrite)?;
    }
    output::result(&if how.json { json.to_owned() } else { text() });
    Ok(())
}

/// What a search found, with its proof, and what happened meanwhile.
fn measured<'a>(
    asked: &'a Asked<'a>,
    then: Option<&Record>,
    search: impl FnOnce(&Plan, &mut Trials<'a>) -> Result<Found, Failure>,
) -> Result<(Record, Verdict), Failure> {
    let watch = Watch::begin();
    let mut trials = Trials::begin(asked, then)?;
    let plan = prepare::plan(&mut trials)?;
    let found = search(&plan, &mut trials)?;
    if found.left_out > 0 {
        trials.note(format!(
            "{} configurations were left out for lack of time: a longer --budget tries more",
            found.left_out
        ));
    }
    let (seen, record) = (watch.end(), &mut trials.record);
    record.stop = if found.finalists.is_empty() { Stop::Budget } else { found.stop };
    (record.stolen, record.was_throttled) = (seen.stolen, seen.was_throttled);
    trials.complete();
    if let Some(verdict) = verdict(&trials.record) {
        prepare::cured(&mut trials, &verdict.winner)?;
        trials.record.proof = prepare::proof(&trials, &verdict.winner)?;
    }
    let record = trials.record;
    if let Some(proof) = record.proof.as_ref().filter(|proof| proof.winner != proof.plain) {
        return Err(unusable!(
            "the winner read other bytes of {} than a plain read: checksums {} and {}; the file \
             was written to meanwhile, or something on the way is broken",
            asked.source.path().display(),
            proof.winner,
            proof.plain
        ));
    }
    match verdict(&record) {
        Some(verdict) => Ok((record, verdict)),
        None => Err(nothing(&record)),
    }
}

/// Why there is no verdict.
fn nothing(record: &Record) -> Failure {
    let why = record.trials.iter().rev().find_map(|trial| trial.failure.clone());
    let why = why.unwrap_or_else(|| "no trial was done".to_owned());
    unusable!("no engine got through the final: {why}")
}

/// Checks an earlier result again; ends with 1 if it is so no more.
fn replay(asked: &Asked<'_>, path: &Path) -> Result<ExitCode, Failure> {
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
            "{} is a result of --cache {}: check it with the same",
            path.display(),
            then.wishes.cache
        ));
    }
    let before = verdict(&then)
        .ok_or_else(|| usage!("{} has no winner that could be checked", path.display()))?;
    let finals = |plan: &Plan, trials: &mut Trials<'_>| rematch(plan, &before.winner, trials);
    let (record, now) = measured(asked, Some(&then), finals)?;
    let drift = report::drift(&then.facts, &record.facts);
    let is_so = is_so(&before, &now);
    let replay = Replay { words: words(&before, is_so, drift.len()), drift, is_so };
    let json = format!("{:#}", report::replay_json(&replay, &record, &before, &now));
    conclude(asked.how, &json, || report::replay_text(&replay, &record, &before, &now))?;
    Ok(if is_so == Some(false) { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
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

/// Whether the earlier winner is there again, and beats whom it has beaten; `None` where it is not
/// shown to beat one of them again, nor that it does not.
fn is_so(then: &Verdict, now: &Verdict) -> Option<bool> {
    if now.winner != then.winner {
        return Some(now.tied.contains(&then.winner));
    }
    let engines = then.against.iter().filter(|other| other.work.configuration().is_some());
    let beaten = engines.filter(|other| other.ratio.is_above(DELTA));
    let again = beaten.filter_map(|other| now.against.iter().find(|now| now.work == other.work));
    let mut is_so = Some(true);
    for ratio in again.map(|now| &now.ratio) {
        match ratio.interval {
            _ if ratio.is_above(DELTA) => {}
            Some(interval) if interval.high < 1.0 + DELTA => return Some(false),
            _ => is_so = None,
        }
    }
    is_so
}

fn words(then: &Verdict, is_so: Option<bool>, drift: usize) -> String {
    let winner = then.winner.words();
    let so = match is_so {
        Some(true) => format!("Confirmed: {winner} still wins."),
        Some(false) => format!("Not confirmed: {winner} no longer wins."),
        None => {
            format!("Undecided: {winner} does not clearly lead; a longer --budget may decide.")
        }
    };
    match drift {
        0 => so,
        1 => format!("{so} One thing has changed:"),
        n => format!("{so} {n} things have changed:"),
    }
}

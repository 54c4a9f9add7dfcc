//! `iolens tune`: the search of [`iolens_stats::tune`] over trials of worker
//! processes; nothing is stored but where `-o` says.

mod cure;
mod ground;
mod prepare;
mod replay;

use std::path::Path;
use std::process::ExitCode;

use iolens_engine::clock;
use iolens_engine::files::job::{FilePath, Job};
use iolens_engine::files::tune::{facts, watch::Watch};
use iolens_engine::worker::protocol::BUILD;
use iolens_model::file::Consumer;
use iolens_model::tune::{CacheWish, Facts, Record, SCHEMA, Stop, Task, Wishes};
use iolens_model::units::{Bytes, Nanos};
use iolens_report::tune as report;
use iolens_stats::tune::{Found, search, verdict};

use self::ground::{Ground, Place};
use crate::args::{self, TuneHow, TuneTask};
use crate::commands::file::answer;
use crate::commands::report::{exists, write_new};
use crate::failure::{Failure, catch, unusable};
use crate::output;
use crate::output::style;

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
        Some(path) => replay::replay(&asked, path),
        None => anew(&asked),
    }
}

/// Refuses what can be known to be wrong before anything is touched.
fn check(asked: &Asked<'_>) -> Result<(), Failure> {
    let how = asked.how;
    if how.cache == CacheWish::Cold && !how.evict {
        return Err(Failure::usage(
            "--cache cold evicts the file from the page cache before each trial, which other \
             programs that use it pay for too\n  say so with --allow-evict, or take --cache as-is",
        ));
    }
    if how.evict && how.cache != CacheWish::Cold && asked.task == Task::Copy {
        return Err(Failure::usage(
            "--allow-evict is for --cache cold, which needs it, and for `tune read`, which reads a file \
             that is cached in small pieces anew",
        ));
    }
    if let Some(path) = how.output.as_ref().filter(|path| !how.overwrite && path.exists()) {
        return Err(exists(path));
    }
    Ok(())
}

/// The whole search.
fn anew(asked: &Asked<'_>) -> Result<ExitCode, Failure> {
    let mut begun = begin(asked, asked.how.budget, None)?;
    let plan = prepare::plan(asked, &mut begun)?;
    let found = search(&plan, &mut begun.ground)?;
    let record = finish(asked, begun, found)?;
    let verdict = verdict(&record).ok_or_else(|| nothing(&record))?;
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

/// A search under way.
struct Begun {
    ground: Ground,
    wishes: Wishes,
    facts: Facts,
    free_bytes: Option<u64>,
    watch: Watch,
    began_ns: u64,
}

/// Finds out what there is.
fn begin(asked: &Asked<'_>, budget: Nanos, then: Option<&Record>) -> Result<Begun, Failure> {
    let interrupts = catch()?;
    let (watch, began_ns) = (Watch::begin(), clock::unix_ns());
    let how = asked.how;
    let place = Place { source: asked.source.clone(), folder: asked.folder.clone() };
    let mut ground = Ground::new(place, interrupts, how.seed)?;
    let wish = facts::Wish {
        source: asked.source.clone(),
        folder: asked.folder.clone(),
        consumer: asked.consumer,
        is_cold: how.cache == CacheWish::Cold,
    };
    let done = answer!(Facts, ground.job(&Job::Facts(wish))?.map_err(Failure::unusable)?)?;
    let facts::Done { facts, candidates, pruned, free_bytes } = *done;
    output::note(&report::facts_text(&facts, &pruned, candidates.len()));
    let threads_max = how.threads.unwrap_or(facts.cpus).max(1);
    let wishes = Wishes {
        task: asked.task,
        cache: then.map_or(how.cache, |then| then.wishes.cache),
        consumer: then.map_or(asked.consumer, |then| then.wishes.consumer),
        threads_max,
        budget,
        seed: how.seed,
        bytes_max: asked.bytes_max,
    };
    ground.know(&wishes, facts.file_bytes, candidates, pruned);
    Ok(Begun { ground, wishes, facts, free_bytes, watch, began_ns })
}

/// What the end adds: the proof, and what happened meanwhile.
fn finish(asked: &Asked<'_>, begun: Begun, found: Found) -> Result<Record, Failure> {
    let Begun { mut ground, wishes, facts, watch, began_ns, .. } = begun;
    if found.left_out > 0 {
        ground.note(format!(
            "{} configurations were left out for want of time: --budget gives more",
            found.left_out
        ));
    }
    let stop = if found.finalists.is_empty() { Stop::Budget } else { found.stop };
    let seen = watch.end();
    let duration = ground.duration();
    let mut record = Record {
        schema: SCHEMA,
        build: BUILD.to_owned(),
        began_ns,
        wishes,
        facts,
        candidates: Vec::new(),
        pruned: Vec::new(),
        programs: Vec::new(),
        trials: Vec::new(),
        device_bytes_per_s: None,
        stop,
        proof: None,
        cure: None,
        duration,
        stolen: seen.stolen,
        was_throttled: seen.was_throttled,
        notes: Vec::new(),
    };
    ground.tell(&mut record);
    if let Some(verdict) = verdict(&record) {
        cure::tried(asked, &mut ground, &mut record, &verdict.winner)?;
        record.proof = prepare::proof(&mut ground, &record, &verdict.winner)?;
    }
    if let Some(proof) = record.proof.as_ref().filter(|proof| proof.winner != proof.plain) {
        return Err(unusable!(
            "the winner brought other bytes of {} than a plain reading: checksums {} and {}; it \
             was written to meanwhile, or something on the way is broken",
            asked.source.path().display(),
            proof.winner,
            proof.plain
        ));
    }
    Ok(record)
}

/// Why there is no verdict.
fn nothing(record: &Record) -> Failure {
    let why = record.trials.iter().rev().find_map(|trial| trial.failure.clone());
    let why = why.unwrap_or_else(|| "no trial was done".to_owned());
    unusable!("nothing got through the final: {why}")
}

//! `iolens import`: runs of other files come into the database, with the machine that
//! measured them. It holds the machine's lock while it reads and writes: a run that measures
//! would measure that too.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolens_engine::clock;
use iolens_model::host::HostFacts;
use iolens_report::json::SCHEMA;
use iolens_report::upkeep;
use iolens_store::{Fate, Imported, Importing, Source, Store, StoreError};
use serde_json::{Value, json};

use crate::commands::run::take_lock;
use crate::failure::{Failure, NOTHING_USABLE, this_host, usage};
use crate::{args, output, places};

/// Why an import waits for a run.
const BUSY: &str = "it would measure the reading and writing";

/// A file, and what became of its runs.
struct Done<'a> {
    file: &'a Path,
    runs: Result<Vec<Imported>, StoreError>,
}

impl Done<'_> {
    /// Runs of this fate.
    fn count(&self, is: impl Fn(&Fate) -> bool) -> usize {
        self.runs.iter().flatten().filter(|run| is(&run.fate)).count()
    }
}

/// Imports.
pub(crate) fn import(args: &args::Import) -> Result<ExitCode, Failure> {
    let database = places::database(args.result.db.as_deref())?;
    refuse_itself(&args.files, &database)?;
    let here = this_host()?;
    let done = if args.dry_run {
        taken(args, &mut untouched(&database)?, &here)
    } else {
        let _lock = take_lock(args.wait, BUSY)?;
        taken(args, &mut Store::open(&database)?, &here)
    };
    show(args, &database, &done);
    let refused = |fate: &Fate| matches!(fate, Fate::Refused(_));
    let all_in = done.iter().all(|done| done.runs.is_ok() && done.count(refused) == 0);
    Ok(if all_in { ExitCode::SUCCESS } else { ExitCode::from(NOTHING_USABLE) })
}

/// Each file after the other: one that is refused keeps no other out.
fn taken<'a>(args: &'a args::Import, store: &mut Store, here: &HostFacts) -> Vec<Done<'a>> {
    let how = Importing { host: args.host.as_deref(), here, now_unix_ns: clock::unix_ns() };
    let one = |file: &'a PathBuf| {
        let runs = Source::open(file).and_then(|source| store.import(&source, &how));
        Done { file, runs }
    };
    args.files.iter().map(one).collect()
}

/// A private copy of the database, which takes what the database would.
fn untouched(database: &Path) -> Result<Store, StoreError> {
    match database.exists() {
        true => Source::open(database).map(Source::into_store),
        false => Store::nowhere(database),
    }
}

/// A database has its own runs already.
fn refuse_itself(files: &[PathBuf], database: &Path) -> Result<(), Failure> {
    let Ok(own) = database.canonicalize() else { return Ok(()) };
    match files.iter().find(|file| file.canonicalize().is_ok_and(|file| file == own)) {
        None => Ok(()),
        Some(file) => Err(usage!(
            "cannot import {}: it is the database itself\n  name another one to import into with \
             --db FILE",
            file.display()
        )),
    }
}

fn show(args: &args::Import, database: &Path, done: &[Done<'_>]) {
    let counts = [
        count(done, |fate| *fate == Fate::Imported),
        count(done, |fate| *fate == Fate::AlreadyThere),
        count(done, |fate| matches!(fate, Fate::Refused(_))),
    ];
    if args.result.json {
        let [imported, already_there, refused] = counts;
        let files: Vec<Value> = done.iter().map(object).collect();
        let object = json!({
            "schema": SCHEMA,
            "database": database,
            "dry_run": args.dry_run,
            "imported": imported,
            "already_there": already_there,
            "refused": refused,
            "files": files,
        });
        return output::result(&format!("{object:#}"));
    }
    for done in done {
        match &done.runs {
            Ok(runs) => output::result(&text(done.file, runs)),
            Err(error) => output::error(&error.to_string()),
        }
    }
    output::result(&upkeep::imported(&database.display().to_string(), counts, args.dry_run));
}

fn count(done: &[Done<'_>], is: impl Fn(&Fate) -> bool) -> usize {
    done.iter().map(|done| done.count(&is)).sum()
}

fn object(done: &Done<'_>) -> Value {
    match &done.runs {
        Ok(runs) => json!({ "file": done.file, "runs": runs, "error": null }),
        Err(error) => json!({ "file": done.file, "runs": [], "error": error.to_string() }),
    }
}

/// A file and its runs, a line each.
fn text(file: &Path, runs: &[Imported]) -> String {
    let lines: Vec<upkeep::Taken<'_>> = runs.iter().map(line).collect();
    upkeep::taken(&file.display().to_string(), &lines)
}

fn line(run: &Imported) -> upkeep::Taken<'_> {
    let (fate, why) = match &run.fate {
        Fate::Imported => ("imported", ""),
        Fate::AlreadyThere => ("already there", ""),
        Fate::Refused(why) => ("refused", why.as_str()),
    };
    upkeep::Taken {
        id: &run.id,
        name: run.name.as_deref(),
        study: &run.study,
        host: &run.host,
        counts: [run.trials, run.phases, run.profiles],
        fate,
        why,
    }
}

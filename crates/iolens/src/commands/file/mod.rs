//! `iolens file`: one file, one thing done to it by a worker process; nothing is
//! stored.

mod copy;
mod page;
mod read;
mod size;
mod write;

use std::process::ExitCode;

use iolens_engine::files::job::{self, Done, Job, Trouble};
use iolens_engine::files::leftover::Leftovers;
use iolens_engine::trial::Launch;

use crate::args::{self, FileTask};
use crate::failure::{Failure, catch, this_program};
use crate::{output, values};

/// Does what is asked for.
pub(crate) fn file(args: &args::File) -> Result<ExitCode, Failure> {
    match &args.task {
        FileTask::Read(read) => self::read::read(read),
        FileTask::Size(size) => self::size::size(size),
        FileTask::Write(write) => self::write::write(write),
        FileTask::Copy(copy) => self::copy::copy(copy),
    }
}

/// The engine of an id, or which there are.
fn engine<T>(
    id: &str,
    find: fn(&str) -> Option<T>,
    ids: impl Iterator<Item = &'static str>,
) -> Result<T, Failure> {
    find(id).ok_or_else(|| {
        let ids: Vec<&str> = ids.collect();
        let advice = format!("there is: {}", ids.join(", "));
        Failure::usage(values::unknown("engine", id, &ids, &advice))
    })
}

/// Has a worker do a job.
fn done(job: &Job) -> Result<Done, Failure> {
    let interrupts = catch()?;
    let launch = launch()?;
    output::notes(Leftovers::here().sweep());
    job::run(job, &launch, &interrupts, output::note).map_err(|trouble| {
        // A worker that was killed could not remove what it had made.
        output::notes(Leftovers::here().sweep());
        match trouble {
            Trouble::Failed(why) => Failure::unusable(why),
            Trouble::Interrupted => Failure::interrupted(interrupted(job)),
        }
    })
}

/// The answer to a job of this kind.
macro_rules! answer {
    ($kind:ident, $done:expr) => {
        match $done {
            iolens_engine::files::job::Done::$kind(done) => Ok(done),
            _ => Err($crate::commands::file::another_answer()),
        }
    };
}

pub(crate) use answer;

/// How a worker for a job is started.
pub(crate) fn launch() -> Result<Launch, Failure> {
    let program = this_program()?;
    Ok(Launch { program, arguments: vec!["worker".to_owned(), "--file".to_owned()] })
}

/// What an interrupt leaves.
fn interrupted(job: &Job) -> &'static str {
    let overwrites = match job {
        Job::Write(wish) => wish.overwrite,
        Job::Copy(wish) => wish.overwrite,
        _ => return "interrupted, with nothing to show",
    };
    match overwrites {
        false => "interrupted: nothing was left behind",
        true => {
            "interrupted: a new file was not left behind; an existing one (--overwrite) is partly \
             new now, partly as it was"
        }
    }
}

/// Prints what was done, whole or not.
fn conclude(text: &str, failure: Option<&str>) -> Result<ExitCode, Failure> {
    // Nothing was done at all: why not is all that there is to say.
    if !text.is_empty() {
        output::result(text);
    }
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => Err(Failure::unusable(why)),
    }
}

/// A worker that answers what it was not asked.
pub(crate) fn another_answer() -> Failure {
    Failure::unusable("the worker did another job than it was given: use one build at both ends")
}

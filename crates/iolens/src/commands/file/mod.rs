//! `iolens file`: one file, one thing done to it by a worker process; nothing is
//! stored.

mod copy;
mod page;
mod read;
mod size;
mod write;

use std::process::ExitCode;

use iolens_engine::Interrupts;
use iolens_file::job::{self, Done, Job, Trouble};
use iolens_file::leftover::Leftovers;
use iolens_programs::spawn::Launch;

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
        let advice = format!("choose from: {}", ids.join(", "));
        Failure::usage(values::unknown("engine", id, &ids, &advice))
    })
}

/// Has a worker do a job.
fn done(job: &Job) -> Result<Done, Failure> {
    let workers = Workers::ready()?;
    output::notes(Leftovers::here().sweep());
    workers.job(job).map_err(|trouble| match trouble {
        Trouble::Failed(why) => Failure::unusable(why),
        Trouble::Interrupted => Failure::interrupted(interrupted(job)),
    })
}

/// How workers for jobs are started, and ended before their time.
pub(crate) struct Workers {
    launch: Launch,
    interrupts: Interrupts,
}

impl Workers {
    pub(crate) fn ready() -> Result<Workers, Failure> {
        let interrupts = catch()?;
        let arguments = vec!["worker".to_owned(), "--file".to_owned()];
        Ok(Workers { launch: Launch { program: this_program()?, arguments }, interrupts })
    }

    pub(crate) fn job(&self, job: &Job) -> Result<Done, Trouble> {
        let done = job::run(job, &self.launch, &self.interrupts, output::note);
        if done.is_err() {
            // A worker that was killed could not remove what it had made.
            output::notes(Leftovers::here().sweep());
        }
        done
    }
}

/// The answer to a job of this kind.
macro_rules! answer {
    ($kind:ident, $done:expr) => {
        match $done {
            iolens_file::job::Done::$kind(done) => Ok(done),
            _ => Err($crate::failure::Failure::unusable($crate::commands::file::ANOTHER_ANSWER)),
        }
    };
}

pub(crate) use answer;

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

pub(crate) const ANOTHER_ANSWER: &str =
    "the worker answered something other than it was asked: this is a bug in iolens";

//! `iolens file`: one file, one thing done to it by a worker process; nothing is
//! stored.

mod page;
mod read;
mod size;

use std::process::ExitCode;

use iolens_engine::Interrupts;
use iolens_engine::files::job::{self, Done, Job, Trouble};
use iolens_engine::trial::Launch;

use crate::args::{self, FileTask};
use crate::failure::{Failure, INTERRUPTED};
use crate::output;

/// Does what is asked for.
pub(crate) fn file(args: &args::File) -> Result<ExitCode, Failure> {
    match &args.task {
        FileTask::Read(read) => self::read::read(read),
        FileTask::Size(size) => self::size::size(size),
    }
}

/// Has a worker do a job.
fn done(job: &Job) -> Result<Done, Failure> {
    let interrupts =
        Interrupts::catch().map_err(|e| Failure::unusable(format!("cannot catch signals: {e}")))?;
    let program = std::env::current_exe()
        .map_err(|e| Failure::unusable(format!("cannot find the program that runs: {e}")))?;
    let arguments = vec!["worker".to_owned(), "--file".to_owned()];
    let launch = Launch { program, arguments };
    job::run(job, &launch, &interrupts, output::note).map_err(|trouble| match trouble {
        Trouble::Failed(why) => Failure::unusable(why),
        Trouble::Interrupted => {
            Failure { code: INTERRUPTED, message: "interrupted, with nothing to show".to_owned() }
        }
    })
}

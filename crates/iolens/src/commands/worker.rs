//! `iolens worker`: one end of a trial, one job of `iolens file`, or the keeper of workers for a
//! run on another machine. Not for people.

use std::os::fd::AsFd;
use std::process::ExitCode;

use iolens_engine::files::job;
use iolens_engine::{far, worker};

use crate::args;
use crate::failure::{Failure, unusable};

/// Serves until the control pipe closes.
pub(crate) fn worker(args: &args::Worker) -> Result<ExitCode, Failure> {
    let failed = |what: String| unusable!("worker: {what}");
    worker::become_worker().map_err(failed)?;
    if args.keep {
        // Unbuffered: it is waited for.
        let control = std::io::stdin().as_fd().try_clone_to_owned();
        let control = control.map_err(|e| failed(e.to_string()))?;
        let kept = far::keep(control.into(), std::io::stdout(), args.remove.as_deref());
        return kept.map(|()| ExitCode::SUCCESS).map_err(|e| failed(e.to_string()));
    }
    if args.file {
        job::serve(std::io::stdin(), std::io::stdout()).map_err(|e| failed(e.to_string()))?;
        return Ok(ExitCode::SUCCESS);
    }
    // Unlocked handles: the thread that runs the trial answers too.
    let perf = args.perf_control.clone();
    worker::serve(std::io::stdin(), std::io::stdout(), perf).map_err(|e| failed(e.to_string()))?;
    // Threads of an unfinished trial end with the process.
    Ok(ExitCode::SUCCESS)
}

//! `iolens worker`: one end of a trial, or one job of `iolens file`. Not for people.

use std::process::ExitCode;

use iolens_engine::files::job;
use iolens_engine::worker;

use crate::args;
use crate::failure::Failure;

/// Serves until the control pipe closes.
pub(crate) fn worker(args: &args::Worker) -> Result<ExitCode, Failure> {
    let failed = |what: String| Failure::unusable(format!("worker: {what}"));
    worker::become_worker().map_err(failed)?;
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

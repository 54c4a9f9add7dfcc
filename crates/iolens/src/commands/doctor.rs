//! `iolens doctor`: what can be measured on this machine, and what not.

use std::path::Path;
use std::process::ExitCode;

use iolens_engine::doctor::{Storage, Tried, diagnose};
use iolens_engine::host::Root;
use iolens_report::doctor;
use iolens_store::Store;

use crate::args;
use crate::failure::Failure;
use crate::output::style;
use crate::{output, places};

/// Looks at the machine and changes nothing.
pub(crate) fn doctor(args: &args::Doctor) -> Result<ExitCode, Failure> {
    let root = Root::real();
    let database = places::database(args.result.db.as_deref());
    // The first line of a failure is what was tried, the next what to do.
    let first_line = |message: &str| message.lines().next().unwrap_or_default().to_owned();
    let stored = |path: &Path| Store::look(path).map_err(|e| first_line(&e.to_string()));
    let storage = database
        .map(|path| Storage::look(&path, stored(&path)))
        .map_err(|failure| first_line(&failure.message));
    let program = std::env::current_exe();
    let program = program.as_deref().unwrap_or(Path::new("iolens"));
    let diagnosis = diagnose(&root, &Tried::on(&root, program, storage));
    output::result(&match args.result.json {
        true => doctor::json(&diagnosis),
        false => doctor::text(&diagnosis, &style()),
    });
    Ok(ExitCode::SUCCESS)
}

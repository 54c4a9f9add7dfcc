//! One file per family of commands; the smallest are here.

pub(crate) mod ab;
pub(crate) mod again;
pub(crate) mod ask;
pub(crate) mod by_hand;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod keep;
pub(crate) mod list;
mod outlook;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod tune;
pub(crate) mod upkeep;

use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use iolens_audit::bounds::Bounds;
use iolens_audit::{Audit, Refused, audit_all, text};
use iolens_engine::doctor::{Storage, Tried, diagnose};
use iolens_engine::{far, worker};
use iolens_file::job;
use iolens_harness::host::Root;
use iolens_model::units::Bytes;
use iolens_report::doctor;
use iolens_store::Store;

use crate::failure::{FOUND, Failure, unusable, usage};
use crate::output::{self, style};
use crate::{args, places};

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

/// Audits every file, or says which cannot be.
pub(crate) fn audit(args: &args::Audit) -> Result<ExitCode, Failure> {
    let files = args.files.iter().map(|path| Ok((path.display().to_string(), read(path)?)));
    let files: Vec<(String, String)> = files.collect::<Result<_, Failure>>()?;
    let bounds = Bounds {
        clock_min_hz: args.clock_min,
        clock_max_hz: args.clock_max,
        memory_bytes_per_s: args.memory_bandwidth,
        link_bytes_per_s: args.link,
        empty_call_ns: args.call_cost,
        cpus: args.cpus,
    };
    let refused = |Refused { file, error }| usage!("cannot audit {file}: {error}");
    let audits = audit_all(&files, &args.map, &bounds).map_err(refused)?;
    let shown = if args.json {
        serde_json::to_string_pretty(&audits).map_err(Failure::unusable)?
    } else {
        text::render(&audits, style().width)
    };
    output::result(&shown);
    let is_impossible = audits.files.iter().any(Audit::is_impossible);
    Ok(if is_impossible { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// The most of a table that is read, bytes: a device has no end.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// The text of a file; bytes that are not UTF-8 are of some older encoding, and
/// its numbers are read all the same.
fn read(path: &Path) -> Result<String, Failure> {
    let refused = |e| usage!("cannot read {}: {e}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(refused)?;
    file.take(TABLE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > TABLE_BYTES_MAX {
        return Err(usage!(
            "cannot read {}: it has more than {}, which no table of results has\n  audit it in parts",
            path.display(),
            Bytes(TABLE_BYTES_MAX)
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

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

//! `iolens audit`: files in, what is impossible in them out.

use std::path::Path;
use std::process::ExitCode;

use iolens_audit::bounds::Bounds;
use iolens_audit::{Audit, Refused, audit_all, text};

use crate::failure::{FOUND, Failure, usage};
use crate::output::style;
use crate::{args, output};

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

/// The text of a file; bytes that are not UTF-8 are of some older encoding, and
/// its numbers are read all the same.
fn read(path: &Path) -> Result<String, Failure> {
    let refused = |e| usage!("cannot read {}: {e}", path.display());
    let bytes = std::fs::read(path).map_err(refused)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

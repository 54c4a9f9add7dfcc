//! Other programs: whether they are there, and what they print.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// Whether a program is in the path.
pub(crate) fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// What a program printed that ended well.
///
/// Errors: it could not be started, or ended badly, and what it said then.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let args: Vec<&OsStr> = command.get_args().collect();
    let words = format!("{name} {}", args.join(OsStr::new(" ")).to_string_lossy());
    let output = command.output().map_err(|e| format!("cannot run `{words}`: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{words}` failed ({}):\n{said}", output.status));
    }
    Ok(output)
}

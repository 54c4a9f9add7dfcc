//! Other programs: whether they are there, how they end, and what they print.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// The cargo that started us, else the one in the path, for the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    command
}

/// Where cargo builds.
pub(crate) fn build_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether a program is in the path.
pub(crate) fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Runs a program that prints where we do, and has to end well.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("cannot run `{}`: {e}", words(command)))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{}` failed ({status})", words(command))),
    }
}

/// What a program printed that ended well.
///
/// Errors: it could not be started, or ended badly, and what it said then.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|e| format!("cannot run `{}`: {e}", words(command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("`{}` failed ({}):\n{said}", words(command), output.status)),
    }
}

fn words(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.collect::<Vec<_>>().join(OsStr::new(" ")).to_string_lossy().into_owned()
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(path, content).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

//! Which file a program's name means, and how one ended, in words.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use iolens_sys::errno::Errno;
use iolens_sys::{signal, storage};

/// Whether this process may start the program of a file: a file system may be mounted `noexec`.
///
/// Errors: see [`storage::may_execute`].
pub fn may_start(program: &Path) -> Result<(), Errno> {
    storage::may_execute(program)
}

/// The file of a program.
///
/// Errors: there is none in `PATH`.
pub fn find_program(name: impl AsRef<OsStr>) -> Result<PathBuf, String> {
    let name = Path::new(name.as_ref());
    found(name).ok_or_else(|| format!("there is no program `{}` in PATH", name.display()))
}

/// The file of a program's name.
fn found(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return Some(name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(name));
    places.find(|place| may_start(place).is_ok() && place.is_file())
}

/// How a process ended, in words.
#[must_use]
pub fn describe_end(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal::BUS), _) => {
            "was killed by SIGBUS: a mapped file had lost a page or had no room for one, or its device \
             failed"
                .to_owned()
        }
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

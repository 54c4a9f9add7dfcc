//! Named pipes; see fifo(7).

use std::fs::File;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::errno::Errno;

/// Opens one to be written, without waiting for a reader.
///
/// Errors: of open(2); `ENXIO` where nobody has it open to read it.
pub fn writer(path: &Path) -> Result<File, Errno> {
    open(path, OFlags::WRONLY)
}

/// Opens one to be read, without waiting for a writer.
///
/// Errors: of open(2).
pub fn reader(path: &Path) -> Result<File, Errno> {
    open(path, OFlags::RDONLY)
}

fn open(path: &Path, direction: OFlags) -> Result<File, Errno> {
    let flags = direction | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Makes one, for its owner.
///
/// Errors: of mknod(2); `EEXIST` where something has that name.
pub fn make(path: &Path) -> Result<(), Errno> {
    Ok(rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

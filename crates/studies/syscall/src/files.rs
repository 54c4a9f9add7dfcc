//! Questions about a file, and its way to the device.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use iolens_model::call::CallKind;
use iolens_model::host::KernelVersion;
use iolens_sys::calls;
use iolens_sys::errno::Errno;

use super::entry::{Entry, OfFile, Setup, at, call, moving, repeated};
use super::transfers::{Block, file_to_read, small_file};
use iolens_sys::tcp::SetupError;

/// The registry entry.
pub(super) static STAT: Entry = Entry {
    descriptors: 1,
    of_file: OfFile::Reads,
    ..call(
        "stat",
        CallKind::Files,
        "fstatat(2), as stat(3) calls it, relative to an open directory",
        700.0,
        |setup| {
            let Named { directory, name } = Named::open(setup)?;
            Ok(repeated(&STAT, move || calls::stat(directory.as_fd(), &name)))
        },
    )
};

/// The registry entry.
pub(super) static STATX: Entry = Entry {
    descriptors: 1,
    of_file: OfFile::Reads,
    since: Some(KernelVersion::new(4, 11, 0)),
    ..call(
        "statx",
        CallKind::Files,
        "statx(2) of the basic fields, relative to an open directory",
        700.0,
        |setup| {
            let Named { directory, name } = Named::open(setup)?;
            Ok(repeated(&STATX, move || calls::statx(directory.as_fd(), &name)))
        },
    )
};

/// The registry entry.
pub(super) static FSTAT: Entry = Entry {
    descriptors: 1,
    of_file: OfFile::Reads,
    ..call("fstat", CallKind::Files, "fstat(2) of an open file", 400.0, |setup| {
        let file = file_to_read(setup, 1)?;
        Ok(repeated(&FSTAT, move || calls::fstat(file.as_fd())))
    })
};

/// The registry entry. A file that has nothing new would make fsync a question.
pub(super) static FSYNC: Entry = Entry {
    calls: 2,
    bytes: 1,
    of_file: OfFile::Writes,
    most: Some(1),
    descriptors: 1,
    ..call(
        "fsync",
        CallKind::Files,
        "pwrite(2) of a block and fsync(2), on our own file in the temporary folder",
        2_000_000.0,
        |setup| {
            let (file, block) = (small_file(setup.block)?, Block::of(setup)?);
            let both = move || {
                calls::pwrite(file.as_fd(), block.bytes())?;
                calls::fsync(file.as_fd())
            };
            Ok(moving(&FSYNC, setup, both))
        },
    )
};

/// A name in an open directory: that of the user's file, or of the program that runs, which is
/// there and can be read, and which nobody has to remove.
pub(super) struct Named {
    pub(super) directory: File,
    pub(super) name: CString,
}

impl Named {
    pub(super) fn open(setup: &Setup<'_>) -> Result<Named, SetupError> {
        let find = || at("find the folder and the name of a file to open")(Errno::ENOENT);
        let path = match setup.file {
            Some(theirs) => theirs.path().to_owned(),
            None => std::env::current_exe().map_err(|_| find())?,
        };
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(find());
        };
        let tried = format!("open the directory {}", folder.display());
        let directory = File::open(folder).map_err(|e| at(&tried)(e.into()))?;
        let name = CString::new(name.as_bytes()).map_err(|_| find())?;
        Ok(Named { directory, name })
    }
}

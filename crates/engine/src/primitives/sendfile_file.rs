//! `sendfile_file`: sendfile(2) from a regular file of ours in the folder for
//! temporary files (`TMPDIR`), which has no name and is in the page cache.
//!
//! Path through the kernel: as `sendfile`, but the file system gives out the
//! references (`filemap_splice_read` of ext4, xfs, btrfs), whose page cache may
//! hold larger folios than memory files do.
//! Needs: a folder for temporary files that can be written. Which file system
//! it is on is stored with the trial; on tmpfs this is `sendfile`.
//! Compared with: `sendfile`; the difference is the file system's.
//! The file is written and synced before the first slice, so no slice waits for
//! the device or meets the writing back; it is never written again.
//! Does not show: a file that has to be read from its device first.

use std::borrow::Cow;
use std::fs::File;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::file;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::sendfile::{FILE_PAGES, Sendfile};
use crate::primitives::{COPY_OUT, HAND_OVER, SPLICE_PAGES};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "sendfile_file",
    family: Family::PageMoving,
    condition: Some(Condition::InFile),
    summary: "sendfile(2) of a message that lies in a regular file, page cache warm",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 1,
    since: Some(KernelVersion::new(2, 6, 23)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[FILE_PAGES, SPLICE_PAGES, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(Sendfile::open(&setup, in_folder()?)?))
}

/// An empty file without a name in the folder for temporary files.
///
/// Errors: nothing can be written there.
pub(crate) fn in_folder() -> Result<File, SetupError> {
    let folder = std::env::temp_dir();
    file::in_folder(&folder).map_err(|errno| SetupError {
        tried: format!("make a file in {} (TMPDIR names another folder)", folder.display()),
        errno,
    })
}

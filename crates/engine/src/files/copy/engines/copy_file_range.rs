//! `copy_file_range`: one copy_file_range(2) for each block.
//!
//! Path through the kernel: `vfs_copy_file_range` → the file system's
//! `copy_file_range` or `remap_file_range`, which may share blocks (btrfs, xfs) or
//! have a server copy (NFS, SMB), else `splice_copy_file_range`: pages of the source
//! go through a pipe of the kernel's own and are copied into the page cache of the
//! destination.
//! Needs: Linux 5.3, and 5.19 for a count that is true; both files on file systems
//! of one kind.
//! Compared with: `read_write`, whose bytes pass this program; `reflink`, which shares
//! or fails.
//! Does not show: which of these it did; whether the blocks are shared afterwards does.

use std::os::fd::AsFd;

use iolens_model::kernel::KernelVersion;
use iolens_sys::file::copy::{Between, copy_file_range};

use crate::files::copy::drive::{Blocks, Copier, OneCall};
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::Call;
use crate::files::part::Place;

const CALL: Call = Call::both("copy_file_range");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "copy_file_range",
    summary: "copy_file_range(2) of each block: the kernel copies, or shares blocks",
    needs: "both files on file systems of one kind",
    since: Some(KernelVersion::new(5, 3, 0)),
    path: "page cache → page cache within the kernel, or shared blocks where the file system has them",
    class: Class::MayShare,
    is_direct: false,
    one_thread: None,
    instead: Some("read_write"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    let Setup { source, destination, part } = setup;
    let copy = move |piece: Place| {
        let between = Between { from: source.as_fd(), to: destination.as_fd() };
        copy_file_range(between, piece.offset, piece.bytes)
    };
    Ok(Box::new(Blocks::of(part, OneCall { call: CALL, copy }, CALL)))
}

//! The engines that write: one file each, named after its id, and one line in
//! [`ENGINES`]. The file's own documentation says which path the bytes take through
//! the kernel, what it needs, what it is compared with, and what it does not show.

mod direct;
pub(crate) mod entry;
mod mmap;
mod pwrite;
mod uring_fixed;
mod write;
mod write_dsync;
mod write_fdatasync;
mod write_fsync;
mod writev;

pub use self::entry::{Entry, Setup, Writer};

/// Every engine, sorted by id.
pub const ENGINES: &[&Entry] = &[
    &direct::ENTRY,
    &mmap::ENTRY,
    &pwrite::ENTRY,
    &uring_fixed::ENTRY,
    &write::ENTRY,
    &write_dsync::ENTRY,
    &write_fdatasync::ENTRY,
    &write_fsync::ENTRY,
    &writev::ENTRY,
];

/// The engine of an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    ENGINES.iter().copied().find(|entry| entry.id == id)
}

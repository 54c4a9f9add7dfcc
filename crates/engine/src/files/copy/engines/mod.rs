//! The engines that copy: one file each, named after its id, and one line in
//! [`ENGINES`]. The file's own documentation says which path the bytes take through
//! the kernel, what it needs, what it is compared with, and what it does not show.

mod copy_file_range;
mod direct;
mod entry;
mod mmap_write;
mod read_write;
mod reflink;
mod sendfile;
mod splice;
mod uring_copy;

pub use self::entry::{Class, Entry, Setup};

/// Every engine, sorted by id.
pub const ENGINES: &[&Entry] = &[
    &copy_file_range::ENTRY,
    &direct::ENTRY,
    &mmap_write::ENTRY,
    &read_write::ENTRY,
    &reflink::ENTRY,
    &sendfile::ENTRY,
    &splice::ENTRY,
    &uring_copy::ENTRY,
];

/// The engine of an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    ENGINES.iter().copied().find(|entry| entry.id == id)
}

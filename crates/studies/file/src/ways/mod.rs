//! The ways to read, write and copy a file, a file for each mechanism: its engines, which
//! often differ in a call, beside what they share. An engine is an [`Entry`] there and a line
//! in [`engines`](super::engines). Its own documentation says which path the bytes take, what it
//! needs, what it is compared with and what it does not show.

pub(crate) mod called;
pub(crate) mod direct;
pub(crate) mod kernel;
pub(crate) mod mapped;
pub(crate) mod read_ring;
pub(crate) mod ring;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use iolens_model::file::EngineFacts;
use iolens_model::host::KernelVersion;
use iolens_model::tune::Way;
use iolens_model::units::Bytes;
use iolens_sys::file;
use iolens_sys::file::create::{self, How};
use iolens_sys::pages::{PageKind, Pages};

use super::moved::Broken;
use iolens_harness::host::with_version;

/// The way of bytes that a call reads through the page cache.
pub(crate) const COPIED_OUT: &str =
    "page cache → buffer: copied by the kernel (copy_folio_to_iter)";

/// Bytes of a block that the engines are tried with: whatever alignment a file
/// system asks for, this is a multiple of it.
pub(crate) const TRIED_BYTES: u64 = 64 << 10;

/// One engine; `O` is what only those have that do the same.
#[derive(Debug)]
pub struct Entry<O: 'static> {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it needs, in words.
    pub needs: &'static str,
    /// The first kernel that has what it needs; `None` where every one does.
    pub since: Option<KernelVersion>,
    /// The way of the bytes.
    pub path: &'static str,
    /// Its class: engines of one differ in details.
    pub way: Way,
    /// Whether it goes past the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Whether a plan says how many blocks of a thread are under way at once.
    pub has_depth: bool,
    /// Whether it registers buffers for these, which locks them: see `RLIMIT_MEMLOCK`.
    pub locks_memory: bool,
    /// Whether each block is on the device, as far as that says, before the next one.
    pub is_durable: bool,
    /// Why it is one thread's work; `None` where threads can share it.
    pub one_thread: Option<&'static str>,
    /// The rest, and how it is opened.
    pub own: O,
}

/// An engine that asks for nothing, goes through the page cache, and has no other word to
/// say of itself.
pub(crate) const fn engine<O>(
    way: Way,
    id: &'static str,
    summary: &'static str,
    path: &'static str,
    own: O,
) -> Entry<O> {
    Entry {
        id,
        summary,
        needs: "nothing",
        since: None,
        path,
        way,
        is_direct: false,
        has_depth: false,
        locks_memory: false,
        is_durable: false,
        one_thread: None,
        own,
    }
}

impl<O> Entry<O> {
    /// What a run keeps of it.
    pub fn facts(&self) -> EngineFacts {
        EngineFacts {
            id: self.id.to_owned(),
            summary: self.summary.to_owned(),
            path: self.path.to_owned(),
            is_direct: self.is_direct,
            has_depth: self.has_depth,
            is_durable: self.is_durable,
            program: None,
        }
    }

    /// Why it does not work, with the kernel that it needs where this one is older.
    pub(crate) fn refused(&self, why: String) -> String {
        with_version(why, self.since)
    }

    /// The same of a call.
    pub(crate) fn broken(&self, Broken { call, errno }: Broken) -> String {
        self.refused(format!("{} failed: {errno}", call.name))
    }
}

/// A file of ours without a name, opened as an engine wants to write to it.
///
/// Errors: what the system said.
pub(crate) fn file_in(folder: &Path, how: How) -> Result<File, String> {
    let place = folder.display();
    let file = file::in_folder(folder)
        .map_err(|errno| format!("cannot create a file in {place}: {errno}"))?;
    create::reopen(file.as_fd(), how)
        .map_err(|errno| format!("cannot open a file in {place} for it: {errno}"))
}

/// Memory for a block, every page of which is there.
///
/// Errors: how much there is not.
pub(crate) fn memory(bytes: u64) -> Result<Pages, String> {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    Pages::new(wanted, PageKind::Plain)
        .map_err(|errno| format!("cannot allocate {} for a block: {errno}", Bytes(bytes)))
}

//! The engines that read: one file each, named after its id, and one line in
//! [`ENGINES`]. The file's own documentation says which path the bytes take, what
//! it needs and what it does not show.

mod direct;
pub(crate) mod entry;
mod mmap;
mod mmap_populate;
mod pread;
mod preadv2_dontcache;
mod preadv2_nowait;
mod read;
mod readv;
mod uring;
mod uring_direct;
mod uring_fixed;
mod uring_sqpoll;

use super::bare;

pub use self::entry::Entry;

/// Every engine, sorted by id.
pub const ENGINES: &[&Entry] = &[
    &direct::ENTRY,
    &mmap::ENTRY,
    &mmap_populate::ENTRY,
    &pread::ENTRY,
    &preadv2_dontcache::ENTRY,
    &preadv2_nowait::ENTRY,
    &read::ENTRY,
    &readv::ENTRY,
    &uring::ENTRY,
    &uring_direct::ENTRY,
    &uring_fixed::ENTRY,
    &uring_sqpoll::ENTRY,
];

/// The engine of an id; the bare loop that checks the harness has one too, and stands
/// in no list.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    ENGINES.iter().copied().find(|entry| entry.id == id).or_else(|| bare::find(id))
}

#[cfg(test)]
mod tests {
    use iolens_model::arm::Role;
    use iolens_model::file;

    use super::*;

    #[test]
    fn a_mapping_that_nobody_looks_at_is_a_control() {
        let part = |id, consumer| find(id).expect("an engine").role("read", consumer);
        for id in ["mmap", "mmap_populate"] {
            assert_eq!(part(id, file::Consumer::None), Role::Control, "{id}");
            assert_eq!(part(id, file::Consumer::Scan), Role::Compared, "{id}");
        }
        assert_eq!(part("read", file::Consumer::None), Role::Baseline);
        assert_eq!(part("direct", file::Consumer::None), Role::Compared);
    }
}

//! Which engines there are. Help, lists and the conformance tests follow from these tables; an
//! engine is an entry in the file of its mechanism, in [`ways`](crate::ways), and a line here.

use crate::copy::engine::Copies;
use crate::read::bare;
use crate::read::engine::Reads;
use crate::ways::{Entry, called, direct, kernel, mapped, read_ring, ring};
use crate::write::engine::Writes;

/// Every engine that reads, sorted by id.
pub const READING: &[&Entry<Reads>] = &[
    &direct::READ,
    &mapped::READ,
    &mapped::READ_POPULATED,
    &called::PREAD,
    &called::PREADV2_DONTCACHE,
    &called::PREADV2_NOWAIT,
    &called::READ,
    &called::READV,
    &read_ring::READ,
    &read_ring::READ_DIRECT,
    &read_ring::READ_FIXED,
    &read_ring::READ_SQPOLL,
];

/// Every engine that writes, sorted by id.
pub const WRITING: &[&Entry<Writes>] = &[
    &direct::WRITE,
    &mapped::WRITE,
    &called::PWRITE,
    &ring::WRITE_FIXED,
    &called::WRITE,
    &called::WRITE_DSYNC,
    &called::WRITE_FDATASYNC,
    &called::WRITE_FSYNC,
    &called::WRITEV,
];

/// Every engine that copies, sorted by id.
pub const COPYING: &[&Entry<Copies>] = &[
    &kernel::COPY_FILE_RANGE,
    &direct::COPY,
    &mapped::COPY,
    &called::READ_WRITE,
    &kernel::REFLINK,
    &kernel::SENDFILE,
    &kernel::SPLICE,
    &ring::COPY,
];

/// The engine of an id that reads; the bare loop that checks the harness has one too, and stands in
/// no list.
pub fn that_reads(id: &str) -> Option<&'static Entry<Reads>> {
    find(READING, id).or_else(|| bare::find(id))
}

/// The engine of an id that writes.
pub fn that_writes(id: &str) -> Option<&'static Entry<Writes>> {
    find(WRITING, id)
}

/// The engine of an id that copies.
pub fn that_copies(id: &str) -> Option<&'static Entry<Copies>> {
    find(COPYING, id)
}

fn find<O>(engines: &[&'static Entry<O>], id: &str) -> Option<&'static Entry<O>> {
    engines.iter().copied().find(|entry| entry.id == id)
}

#[cfg(test)]
mod tests {
    use iolens_model::arm::Role;
    use iolens_model::file::Consumer;

    use super::*;

    #[test]
    fn engines_are_sorted_and_found_by_their_ids() {
        fn check<O>(engines: &[&'static Entry<O>]) {
            assert!(engines.is_sorted_by(|a, b| a.id < b.id));
            for &entry in engines {
                assert!(std::ptr::eq(find(engines, entry.id).unwrap(), entry));
                let told = [entry.summary, entry.needs, entry.path];
                assert!(told.iter().all(|told| !told.is_empty()), "{}", entry.id);
            }
            assert!(find(engines, "reed").is_none());
        }
        check(READING);
        check(WRITING);
        check(COPYING);
    }

    #[test]
    fn a_mapping_that_nobody_looks_at_is_a_control() {
        let part = |id, consumer| that_reads(id).expect("an engine").role("read", consumer);
        for id in ["mmap", "mmap_populate"] {
            assert_eq!(part(id, Consumer::None), Role::Control, "{id}");
            assert_eq!(part(id, Consumer::Scan), Role::Compared, "{id}");
        }
        assert_eq!(part("read", Consumer::None), Role::Baseline);
        assert_eq!(part("direct", Consumer::None), Role::Compared);
    }
}

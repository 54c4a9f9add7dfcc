//! Every call of the study `syscall` through the same checks: the account is true,
//! nothing is allocated in a slice, and no descriptor or mapping is left; files have no name.
//!
//! One test function, because it counts what the whole process has.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../../tests/support/skip.rs"]
mod skip;

use iolens_harness::op::{Budget, Tally};
use iolens_model::units::Bytes;
use iolens_sys::usage;
use iolens_syscall::{Asked, CALLS, Entry};

const CALLS_OF_A_SLICE: u64 = 7;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

const NAME: &str = "every_call_is_what_its_entry_says_and_leaves_nothing";

fn check(entry: &Entry) {
    check_blocks(entry, 1);
    if entry.bytes > 0 {
        check_blocks(entry, 16 << 10);
    }
}

fn check_blocks(entry: &Entry, block: u64) {
    let asked = Asked { block: Bytes(block), ..Asked::LEAST };
    let mut call = match (entry.open)(&entry.setup(asked)) {
        Ok(call) => call,
        Err(error) if entry.id.starts_with("io_uring") => {
            return skip::note(NAME, &error.to_string());
        }
        Err(error) => panic!("{}: {error}", entry.id),
    };
    for slice in 1..=2 {
        call.touch();
        let before = usage::thread_usage().unwrap();
        let budget = Budget::messages(CALLS_OF_A_SLICE, 1);
        let mut span = None;
        let allocated = allocation_counter::measure(|| span = Some(call.run(&budget)));
        assert_eq!(allocated.count_total, 0, "{} allocates inside a slice", entry.id);
        let span = span.unwrap().unwrap_or_else(|errno| panic!("{}: {errno}", entry.id));
        let faults = usage::thread_usage().unwrap().minor_faults - before.minor_faults;
        assert!(span.last_call_ns >= span.first_call_ns && span.first_call_ns > 0);
        if entry.id.starts_with("fault_") {
            assert!(faults >= CALLS_OF_A_SLICE, "{}: {faults} faults", entry.id);
        }
        let done = slice * CALLS_OF_A_SLICE;
        let expected = Tally {
            messages: done,
            calls: done * u64::from(entry.calls),
            bytes: done * u64::from(entry.bytes) * block,
            ..Tally::default()
        };
        assert_eq!(call.tally(), expected, "{}", entry.id);
    }
}

#[test]
fn every_call_is_what_its_entry_says_and_leaves_nothing() {
    // Once before: what the process makes for itself is made now.
    CALLS.iter().for_each(|entry| check(entry));
    let (fds, maps) = (descriptors(), mappings());
    for entry in CALLS {
        check(entry);
        assert_eq!(descriptors(), fds, "{}: descriptors", entry.id);
        // An allocator may keep a mapping or two, and never one for each call.
        assert!(mappings() <= maps + 3, "{}: mappings", entry.id);
    }
}

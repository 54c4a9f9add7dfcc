//! Rings that read, on the real kernel.

use std::os::unix::fs::FileExt;

use super::*;
use crate::io_uring::try_ring;
use crate::ring::content;
use crate::skip;

/// A ring over a file of `bytes` bytes; nothing where there are no rings.
fn ring(name: &str, bytes: usize, wishes: ReadWishes) -> Option<ReadRing> {
    if let Err(errno) = try_ring() {
        skip::note(&format!("io_uring::reads::tests::{name}"), &format!("no io_uring: {errno}"));
        return None;
    }
    let file = crate::file::in_folder(&std::env::temp_dir()).unwrap();
    let all: Vec<u8> = (0..bytes).map(|at| content(1, at)).collect();
    file.write_all_at(&all, 0).unwrap();
    Some(ReadRing::open(file.into(), wishes).unwrap())
}

const WISHES: ReadWishes =
    ReadWishes { depth: 4, buffer_bytes: 5000, registered: false, poll_thread: false };

#[test]
fn every_slot_gets_its_bytes() {
    for (registered, poll_thread) in [(false, false), (true, false), (false, true)] {
        let wishes = ReadWishes { registered, poll_thread, ..WISHES };
        let Some(mut ring) = ring("every_slot_gets_its_bytes", 100_000, wishes) else { return };
        assert_eq!(ring.depth(), 4);
        for slot in 0..4 {
            ring.push(slot, 0, 5000, slot as u64 * 20_000).unwrap();
        }
        assert_eq!((ring.under_way(), ring.push(2, 0, 1, 0)), (4, Err(Errno::EBUSY)));
        while ring.under_way() > 0 {
            assert!(ring.enter().unwrap() <= 2);
            while let Some((slot, result)) = ring.completed() {
                assert_eq!(result, Ok(5000));
                let at = slot * 20_000;
                let expect: Vec<u8> = (at..at + 5000).map(|at| content(1, at)).collect();
                assert_eq!(ring.bytes(slot, 5000), expect);
            }
        }
    }
}

#[test]
fn slots_are_used_again_as_soon_as_they_are_free() {
    let name = "slots_are_used_again_as_soon_as_they_are_free";
    for poll_thread in [false, true] {
        let Some(mut ring) = ring(name, 5000, ReadWishes { poll_thread, ..WISHES }) else { return };
        let mut free = vec![0, 1, 2, 3];
        for _ in 0..20_000 {
            if free.is_empty() {
                ring.enter().unwrap();
                while let Some((slot, result)) = ring.completed() {
                    assert_eq!(result, Ok(1));
                    free.push(slot);
                }
            }
            if let Some(slot) = free.pop() {
                ring.push(slot, 0, 1, 4999).unwrap();
            }
        }
    }
}

#[test]
fn a_read_can_go_on_behind_what_is_there() {
    let Some(mut ring) = ring("a_read_can_go_on_behind_what_is_there", 100, WISHES) else { return };
    let mut read = |from, bytes, offset| {
        ring.push(0, from, bytes, offset).unwrap();
        ring.enter().unwrap();
        let (slot, result) = ring.completed().unwrap();
        let expect: Vec<u8> = (0..100).map(|at| content(1, at)).collect();
        (result, ring.bytes(slot, 100) == expect)
    };
    assert_eq!(read(0, 40, 0).0, Ok(40));
    assert_eq!(read(40, 70, 40), (Ok(60), true), "the file ends");
    assert_eq!(read(0, 10, 100).0, Ok(0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(mut ring) = ring("what_does_not_fit_is_refused", 100, WISHES) else { return };
    assert_eq!(ring.push(0, 8000, 193, 0), Err(Errno::EINVAL));
    assert_eq!(ring.push(0, usize::MAX, 2, 0), Err(Errno::EINVAL));
    assert_eq!(ring.push(4, 0, 1, 0), Err(Errno::EBUSY));
    assert_eq!(ring.push(0, 8000, 192, 0), Ok(()));
    // Dropped with a request that was never handed over.
}

#[test]
#[should_panic(expected = "the kernel may write there")]
fn bytes_under_way_are_shown_to_nobody() {
    let Some(mut ring) = ring("bytes_under_way_are_shown_to_nobody", 100, WISHES) else {
        panic!("the kernel may write there: skipped")
    };
    ring.push(0, 0, 100, 0).unwrap();
    let _ = ring.bytes(0, 100);
}

//! Every call through the same checks: its result is the right one each time, its
//! account is true, and what it uses up is made anew before each slice.

use iolens_model::call::CallKind;
use iolens_sys::errno::Errno;

use super::entry::{Call, repeated};
use super::*;
use crate::op::Budget;

#[test]
fn ids_are_sorted_and_each_is_itself() {
    let ids: Vec<&str> = CALLS.iter().map(|entry| entry.id).collect();
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    for entry in CALLS {
        assert!(std::ptr::eq(find(entry.id).unwrap(), *entry));
        assert!(!entry.summary.is_empty() && entry.guess_ns > 0.0, "{}", entry.id);
        // What does not enter the kernel is no way to enter it.
        let faults = entry.kind == CallKind::Memory;
        assert_eq!(entry.control, entry.calls == 0 && !faults, "{}", entry.id);
    }
}

#[test]
fn what_is_used_up_is_refused_and_made_again() {
    for entry in CALLS.iter().filter(|entry| entry.most.is_some()) {
        // Of these no call fails, however many come: a slow one, and files that go on.
        if ["fsync", "read_file", "write_file"].contains(&entry.id) {
            continue;
        }
        let most = 3;
        let mut call = (entry.open)(&Setup { most }).unwrap();
        for _ in 0..2 {
            call.touch();
            let whole = call.run(&Budget::messages(most as u64, 1));
            assert!(whole.is_ok(), "{}: {whole:?}", entry.id);
            let more = call.run(&Budget::messages(1, 1));
            assert_eq!(more.unwrap_err(), Errno::ENOBUFS, "{}", entry.id);
        }
        assert_eq!(call.tally().messages, 2 * most as u64, "{}", entry.id);
    }
}

#[test]
fn a_pipe_that_is_never_emptied_stays_open_for_more() {
    let most = 2000;
    let mut call = (find("read_pipe").unwrap().open)(&Setup { most }).unwrap();
    // Many more bytes than a page, a few at a time.
    for _ in 0..30 {
        call.touch();
        call.run(&Budget::messages(999, 1)).unwrap();
    }
    assert_eq!(call.tally().bytes, 30 * 999);
}

#[test]
fn a_slice_that_could_not_be_prepared_says_so() {
    struct Hopeless;
    impl Call for Hopeless {
        fn call(&mut self) -> Result<(), Errno> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<(), Errno> {
            Err(Errno::ENOSPC)
        }
    }
    let mut call = repeated(find("getppid").unwrap(), Hopeless);
    call.touch();
    assert_eq!(call.run(&Budget::messages(1, 1)).unwrap_err(), Errno::ENOSPC);
}

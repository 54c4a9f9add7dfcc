//! What sends of each size need, under limits of any kind.

use iolens_model::units::Nanos;

use super::*;
use crate::small;

pub(crate) fn cell(bytes: u64, threads: u32) -> Cell {
    Cell { threads, size: Bytes(bytes), ..small::trial("send", Nanos::SECOND).cell }
}

#[test]
fn what_cannot_fit_is_refused_with_its_arithmetic() {
    let limits = Limits { locked: Some(Bytes(8 << 20)), optmem: Some(Bytes(131_072)) };
    assert_eq!(limits.allow(&cell(4 << 20, 1)), Ok(()));
    assert_eq!(
        limits.allow(&cell(4 << 20, 2)).unwrap_err(),
        "one message of each of 2 threads needs 8.02 MiB of locked memory, RLIMIT_MEMLOCK \
         is 8 MiB, optmem_max is 128 KiB"
    );
    assert!(limits.allow(&cell(16 << 20, 1)).unwrap_err().starts_with("message needs 16"));
}

#[test]
fn the_largest_message_is_allowed_and_the_next_page_is_not() {
    let limits = Limits { locked: Some(Bytes(1 << 20)), optmem: None };
    let largest = limits.largest_message().unwrap().0;
    assert_eq!(limits.allow(&cell(largest, 1)), Ok(()));
    assert!(limits.allow(&cell(largest + page_bytes() as u64, 1)).is_err());
    let none = Limits { locked: Some(Bytes(4096)), optmem: None };
    assert_eq!(none.largest_message(), Some(Bytes(0)));
}

#[test]
fn without_a_limit_everything_fits() {
    let limits = Limits { locked: None, optmem: None };
    assert_eq!(limits.allow(&cell(1 << 30, 8)), Ok(()));
    assert!(limits.refusal(&cell(1, 1)).contains("does not apply"));
}

//! What lies under every other call: a function, the clock without and with the
//! kernel, and the empty call.

use iolens_model::call::CallKind;
use iolens_sys::calls;
use iolens_sys::null_call;

use super::{Entry, repeated};

/// The registry entry.
pub(super) static FUNCTION: Entry = Entry {
    id: "function",
    kind: CallKind::Floors,
    summary: "a function of the program that does nothing: the measuring loop, and no kernel",
    calls: 0,
    bytes: 0,
    control: true,
    most: None,
    descriptors: 0,
    since: None,
    guess_ns: 2.0,
    open: |_| Ok(repeated(&FUNCTION, || calls::function(1).map(drop))),
};

/// The registry entry.
pub(super) static CLOCK_GETTIME_VDSO: Entry = Entry {
    id: "clock_gettime_vdso",
    kind: CallKind::Floors,
    summary: "CLOCK_MONOTONIC through the vDSO: the kernel's code and data, and no crossing \
              where the clock source allows that",
    calls: 0,
    bytes: 0,
    control: true,
    most: None,
    descriptors: 0,
    since: None,
    guess_ns: 40.0,
    open: |_| Ok(repeated(&CLOCK_GETTIME_VDSO, calls::clock_gettime_vdso)),
};

/// The registry entry.
pub(super) static CLOCK_GETTIME: Entry = Entry {
    id: "clock_gettime",
    kind: CallKind::Floors,
    summary: "the same clock by system call",
    calls: 1,
    bytes: 0,
    control: false,
    most: None,
    descriptors: 0,
    since: None,
    guess_ns: 200.0,
    open: |_| Ok(repeated(&CLOCK_GETTIME, calls::clock_gettime)),
};

/// The registry entry.
pub(super) static GETPPID: Entry = Entry {
    id: "getppid",
    kind: CallKind::Floors,
    summary: "the empty call: into the kernel, one pointer read, and back",
    calls: 1,
    bytes: 0,
    control: false,
    most: None,
    descriptors: 0,
    since: None,
    guess_ns: 150.0,
    open: |_| {
        let parent = null_call::getppid();
        Ok(repeated(&GETPPID, move || calls::getppid(parent)))
    },
};

//! What lies under every other call: a function, the clock without and with the
//! kernel, and the empty call.

use iolens_model::call::CallKind;
use iolens_sys::calls;
use iolens_sys::null_call;

use super::entry::{Entry, call, repeated};

/// The registry entry.
pub(super) static FUNCTION: Entry = Entry {
    calls: 0,
    control: true,
    ..call(
        "function",
        CallKind::Floors,
        "a function of the program that does nothing: the measuring loop, and no kernel",
        2.0,
        |_| Ok(repeated(&FUNCTION, || calls::function(1).map(drop))),
    )
};

/// The registry entry.
pub(super) static CLOCK_GETTIME_VDSO: Entry = Entry {
    calls: 0,
    control: true,
    ..call(
        "clock_gettime_vdso",
        CallKind::Floors,
        "CLOCK_MONOTONIC through the vDSO: the kernel's code and data, and no crossing \
              where the clock source allows that",
        40.0,
        |_| Ok(repeated(&CLOCK_GETTIME_VDSO, calls::clock_gettime_vdso)),
    )
};

/// The registry entry.
pub(super) static CLOCK_GETTIME: Entry =
    call("clock_gettime", CallKind::Floors, "the same clock by system call", 200.0, |_| {
        Ok(repeated(&CLOCK_GETTIME, calls::clock_gettime))
    });

/// The registry entry.
pub(super) static GETPPID: Entry = call(
    "getppid",
    CallKind::Floors,
    "the empty call: into the kernel, one pointer read, and back",
    150.0,
    |_| {
        let parent = null_call::getppid();
        Ok(repeated(&GETPPID, move || calls::getppid(parent)))
    },
);

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
        "an empty function of the program: the loop without the kernel",
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
        "CLOCK_MONOTONIC through the vDSO: no system call, if the clock source allows it",
        40.0,
        |_| Ok(repeated(&CLOCK_GETTIME_VDSO, calls::clock_gettime_vdso)),
    )
};

/// The registry entry.
pub(super) static CLOCK_GETTIME: Entry =
    call("clock_gettime", CallKind::Floors, "CLOCK_MONOTONIC by system call", 200.0, |_| {
        Ok(repeated(&CLOCK_GETTIME, calls::clock_gettime))
    });

/// The registry entry.
pub(super) static GETPPID: Entry = call(
    "getppid",
    CallKind::Floors,
    "the cheapest call: enter the kernel, read one pointer, return",
    150.0,
    |_| {
        let parent = null_call::getppid();
        Ok(repeated(&GETPPID, move || calls::getppid(parent)))
    },
);

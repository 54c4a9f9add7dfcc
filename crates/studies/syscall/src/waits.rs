//! What costs least: waiting and waking where there is nothing to wait for and nobody to wake, the
//! call that enters io_uring, a request that does nothing, and what lies under every other call.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;

use iolens_model::call::CallKind;
use iolens_model::host::KernelVersion;
use iolens_sys::io_uring::NopRing;
use iolens_sys::{calls, pipe};

use super::entry::{Entry, at, call, repeated};

/// The registry entry.
pub(super) static EPOLL_WAIT: Entry = Entry {
    descriptors: 3,
    ..call(
        "epoll_wait",
        CallKind::Waits,
        "epoll_wait(2) with timeout 0 on one empty pipe",
        400.0,
        |_| {
            let (out, into) = pipe::open(4096).map_err(at("make a pipe"))?;
            let epoll = calls::epoll().map_err(at("make an epoll instance"))?;
            calls::epoll_watch(epoll.as_fd(), out.as_fd()).map_err(at("watch a pipe by epoll"))?;
            let wait = move || {
                // A pipe whose other end is gone would be ready.
                let _open = (&out, &into);
                calls::epoll_wait(epoll.as_fd())
            };
            Ok(repeated(&EPOLL_WAIT, wait))
        },
    )
};

/// The registry entry.
pub(super) static FUTEX_WAKE: Entry =
    call("futex_wake", CallKind::Waits, "FUTEX_WAKE (private) with no waiter", 250.0, |_| {
        let word = Box::new(AtomicU32::new(0));
        Ok(repeated(&FUTEX_WAKE, move || calls::futex_wake(&word)))
    });

/// The registry entry.
pub(super) static IO_URING_ENTER: Entry = Entry {
    descriptors: 1,
    since: Some(KernelVersion::new(5, 1, 0)),
    ..call(
        "io_uring_enter",
        CallKind::Waits,
        "io_uring_enter(2) that submits nothing and waits for nothing",
        300.0,
        |_| {
            let ring = NopRing::open().map_err(at("make a ring of io_uring"))?;
            Ok(repeated(&IO_URING_ENTER, move || calls::io_uring_enter(ring.as_fd())))
        },
    )
};

/// The registry entry.
pub(super) static IO_URING_NOP: Entry = Entry {
    descriptors: 1,
    since: Some(KernelVersion::new(5, 1, 0)),
    ..call(
        "io_uring_nop",
        CallKind::Waits,
        "submit an IORING_OP_NOP and reap its completion in one io_uring_enter(2)",
        500.0,
        |_| {
            let mut ring = NopRing::open().map_err(at("make a ring of io_uring"))?;
            Ok(repeated(&IO_URING_NOP, move || ring.nop()))
        },
    )
};

// What lies under every other call: a function, the clock without and with the
// kernel, and the empty call.

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
        let parent = calls::parent_id();
        Ok(repeated(&GETPPID, move || calls::getppid(parent)))
    },
);

//! Waiting and waking where there is nothing to wait for and nobody to wake.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;

use iolens_model::call::CallKind;
use iolens_sys::{calls, pipe};

use super::{Entry, at, repeated};

/// The registry entry.
pub(super) static EPOLL_WAIT: Entry = Entry {
    id: "epoll_wait",
    kind: CallKind::Waits,
    summary: "epoll_wait(2) with a time-out of 0 on one pipe that is empty",
    calls: 1,
    bytes: 0,
    control: false,
    most: None,
    descriptors: 3,
    since: None,
    guess_ns: 400.0,
    open: |_| {
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
};

/// The registry entry.
pub(super) static FUTEX_WAKE: Entry = Entry {
    id: "futex_wake",
    kind: CallKind::Waits,
    summary: "FUTEX_WAKE, private, of a word for which nobody waits",
    calls: 1,
    bytes: 0,
    control: false,
    most: None,
    descriptors: 0,
    since: None,
    guess_ns: 250.0,
    open: |_| {
        let word = Box::new(AtomicU32::new(0));
        Ok(repeated(&FUTEX_WAKE, move || calls::futex_wake(&word)))
    },
};

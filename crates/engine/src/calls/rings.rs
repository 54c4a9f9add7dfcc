//! io_uring: the call that enters, and a request that does nothing.

use std::os::fd::AsFd;

use iolens_model::call::CallKind;
use iolens_model::kernel::KernelVersion;
use iolens_sys::calls;
use iolens_sys::io_uring::NopRing;

use super::{Entry, at, repeated};

/// The registry entry.
pub(super) static IO_URING_ENTER: Entry = Entry {
    id: "io_uring_enter",
    kind: CallKind::Waits,
    summary: "io_uring_enter(2) that hands over nothing and waits for nothing",
    calls: 1,
    bytes: 0,
    control: false,
    most: None,
    descriptors: 1,
    since: Some(KernelVersion::new(5, 1, 0)),
    guess_ns: 300.0,
    open: |_| {
        let ring = NopRing::open().map_err(at("make a ring of io_uring"))?;
        Ok(repeated(&IO_URING_ENTER, move || calls::io_uring_enter(ring.as_fd())))
    },
};

/// The registry entry.
pub(super) static IO_URING_NOP: Entry = Entry {
    id: "io_uring_nop",
    kind: CallKind::Waits,
    summary: "IORING_OP_NOP handed over, and its completion taken, in one io_uring_enter(2)",
    calls: 1,
    bytes: 0,
    control: false,
    most: None,
    descriptors: 1,
    since: Some(KernelVersion::new(5, 1, 0)),
    guess_ns: 500.0,
    open: |_| {
        let mut ring = NopRing::open().map_err(at("make a ring of io_uring"))?;
        Ok(repeated(&IO_URING_NOP, move || ring.nop()))
    },
};

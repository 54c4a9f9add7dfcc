//! io_uring: the call that enters, and a request that does nothing.

use std::os::fd::AsFd;

use iolens_model::call::CallKind;
use iolens_model::kernel::KernelVersion;
use iolens_sys::calls;
use iolens_sys::io_uring::NopRing;

use super::entry::{Entry, at, call, repeated};

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

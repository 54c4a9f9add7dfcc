//! Waiting for the first of several descriptors; see poll(2).

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::errno::Errno;

/// Waits until one descriptor can be read, has ended or failed; `false` is a
/// time-out. Allocates nothing.
///
/// Errors: `EINTR` when a handled signal arrived.
#[inline]
pub fn is_readable(fd: BorrowedFd<'_>, timeout_ns: u64) -> Result<bool, Errno> {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let ready = rustix::event::poll(&mut polled, Some(&timespec(timeout_ns)))?;
    Ok(ready > 0)
}

/// Waits until a descriptor can be read, has ended or failed, or the time is
/// over; returns which of them are ready, in order. All `false` is a time-out.
///
/// Errors: `EINTR` when a handled signal arrived.
pub fn readable(fds: &[BorrowedFd<'_>], timeout_ns: u64) -> Result<Vec<bool>, Errno> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    rustix::event::poll(&mut polled, Some(&timespec(timeout_ns)))?;
    Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

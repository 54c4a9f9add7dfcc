//! Waiting for the first of several descriptors; see poll(2).

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::errno::Errno;

/// Waits until a descriptor can be read, has ended or failed, or the time is
/// over; returns which of them are ready, in order. All `false` is a time-out.
///
/// Errors: `EINTR` when a handled signal arrived.
pub fn readable(fds: &[BorrowedFd<'_>], timeout_ns: u64) -> Result<Vec<bool>, Errno> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = Timespec {
        tv_sec: (timeout_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (timeout_ns % 1_000_000_000).cast_signed(),
    };
    rustix::event::poll(&mut polled, Some(&timeout))?;
    Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
}

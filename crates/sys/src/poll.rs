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

/// As [`readable`], and allocates nothing.
///
/// Errors: `EINTR` when a handled signal arrived.
#[inline]
pub fn some_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout_ns: u64,
) -> Result<[bool; N], Errno> {
    let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    rustix::event::poll(&mut polled, Some(&timespec(timeout_ns)))?;
    Ok(polled.map(|fd| !fd.revents().is_empty()))
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

/// Whether what is written to a pipe can still be read by somebody. What is no pipe
/// always can.
///
/// Errors: see poll(2); `EINTR`.
pub fn has_reader(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    rustix::event::poll(&mut fds, Some(&timespec(0)))?;
    Ok(!fds[0].revents().contains(PollFlags::ERR))
}

/// Whether nobody writes to a pipe any more, and all of it has been read.
///
/// Errors: see poll(2); `EINTR`.
pub fn has_ended(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&timespec(0)))?;
    let told = fds[0].revents();
    Ok(told.contains(PollFlags::HUP) && !told.contains(PollFlags::IN))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_pipe_has_a_reader_and_a_writer_until_the_last_one_has_gone() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert_eq!(has_reader(write.as_fd()), Ok(true));
        drop(read);
        assert_eq!(has_reader(write.as_fd()), Ok(false));
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&write, b"x").unwrap();
        assert_eq!(has_ended(read.as_fd()), Ok(false));
        drop(write);
        assert_eq!(has_ended(read.as_fd()), Ok(false), "a byte is left");
        rustix::io::read(&read, &mut [0; 1]).unwrap();
        assert_eq!(has_ended(read.as_fd()), Ok(true));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(has_reader(file.as_fd()), Ok(true));
    }
}

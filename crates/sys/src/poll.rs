//! Waiting for descriptors: for the first of several, and for many as servers do; see poll(2).
//!
//! # Safety
//! Pointer and length are those of the array, which the kernel writes within.
//! Descriptors are only numbers here: one that was closed is reported as such
//! (`POLLNVAL`).

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

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

// Waiting for many descriptors with poll(2) as servers do: an array that is kept
// from one call to the next.

/// What a descriptor is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Something to read, or its end.
    Bytes,
    /// Room to write.
    Room,
}

impl For {
    fn events(self) -> libc::c_short {
        match self {
            For::Bytes => libc::POLLIN,
            For::Room => libc::POLLOUT,
        }
    }
}

/// Descriptors to wait for, by their place in the array.
#[derive(Default)]
pub struct PollSet(Vec<libc::pollfd>);

impl std::fmt::Debug for PollSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PollSet").field(&self.0.len()).finish()
    }
}

impl PollSet {
    /// Adds a descriptor at the end of the array.
    pub fn push(&mut self, fd: BorrowedFd<'_>, wait_for: For) {
        self.0.push(libc::pollfd { fd: fd.as_raw_fd(), events: wait_for.events(), revents: 0 });
    }

    /// What the descriptor at a place is waited for from now on.
    #[inline]
    pub fn set(&mut self, place: usize, wait_for: For) {
        self.0[place].events = wait_for.events();
    }

    /// Takes a descriptor out; the last one gets its place.
    pub fn swap_remove(&mut self, place: usize) {
        self.0.swap_remove(place);
    }

    /// Waits until one is ready, has ended or failed; returns how many.
    ///
    /// Errors: see poll(2); `EINTR`, `EINVAL` above `RLIMIT_NOFILE` descriptors.
    #[inline]
    pub fn wait(&mut self) -> Result<usize, Errno> {
        // SAFETY: pointer and length are those of the array.
        let n = unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, -1) };
        usize::try_from(n).map_err(|_| Errno::last())
    }

    /// Whether the last wait reported the descriptor at a place.
    #[inline]
    pub fn is_ready(&self, place: usize) -> bool {
        self.0[place].revents != 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::socket;

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

    #[test]
    fn who_is_ready_is_reported_at_his_place() {
        let (a, far) = UnixStream::pair().unwrap();
        let (b, _other) = UnixStream::pair().unwrap();
        let mut set = PollSet::default();
        set.push(b.as_fd(), For::Bytes);
        set.push(a.as_fd(), For::Bytes);
        socket::send(far.as_fd(), b"x").unwrap();
        assert_eq!(set.wait(), Ok(1));
        assert_eq!([0, 1].map(|place| set.is_ready(place)), [false, true]);
        set.set(0, For::Room);
        assert_eq!(set.wait(), Ok(2));
        set.swap_remove(0);
        assert_eq!((set.wait(), set.is_ready(0)), (Ok(1), true));
    }
}

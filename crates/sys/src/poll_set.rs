//! Waiting for many descriptors with poll(2) as servers do: an array that is kept
//! from one call to the next.
//!
//! # Safety
//! Pointer and length are those of the array, which the kernel writes within.
//! Descriptors are only numbers here: one that was closed is reported as such
//! (`POLLNVAL`).

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

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
    #[must_use]
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

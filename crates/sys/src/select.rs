//! Sets of descriptors of any length for select(2). The C library's `fd_set` ends
//! at 1024 (`FD_SETSIZE`), and its macros write beyond it without a word; the
//! kernel has no such limit.
//!
//! # Safety
//! Each set is as long as its words; the kernel reads and writes bits below the
//! number it is told, rounded up to whole words (`FDS_BYTES`, fs/select.c), and
//! no set is shorter than that.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

/// Descriptors that the C library's own sets can hold: those below this number.
pub const FD_SETSIZE: usize = libc::FD_SETSIZE;

const WORD_BITS: usize = u64::BITS as usize;

/// Descriptors waited for, and which of them are ready.
#[derive(Debug, Default)]
pub struct SelectSet {
    readers: Vec<u64>,
    writers: Vec<u64>,
    ready_readers: Vec<u64>,
    ready_writers: Vec<u64>,
    /// The largest descriptor and one, or a little more.
    end: usize,
}

/// What a descriptor is waited for.
pub use crate::poll::For;

impl SelectSet {
    /// Waits for a descriptor from now on, for one thing.
    pub fn insert(&mut self, fd: BorrowedFd<'_>, wait_for: For) {
        let number = number(fd);
        let words = number / WORD_BITS + 1;
        for set in self.all() {
            if set.len() < words {
                set.resize(words, 0);
            }
        }
        self.end = self.end.max(number + 1);
        let bit = 1 << (number % WORD_BITS);
        let (set, clear) = match wait_for {
            For::Bytes => (&mut self.readers, &mut self.writers),
            For::Room => (&mut self.writers, &mut self.readers),
        };
        set[number / WORD_BITS] |= bit;
        clear[number / WORD_BITS] &= !bit;
    }

    /// Waits for a descriptor no longer, and forgets whether it is ready.
    pub fn remove(&mut self, fd: BorrowedFd<'_>) {
        let number = number(fd);
        for set in self.all() {
            if let Some(word) = set.get_mut(number / WORD_BITS) {
                *word &= !(1 << (number % WORD_BITS));
            }
        }
        while self.end > 0 && !self.holds(self.end - 1) {
            self.end -= 1;
        }
    }

    /// Waits until one is ready, has ended or failed; returns how many.
    ///
    /// Errors: see select(2); `EINTR`, `EBADF`.
    #[inline]
    pub fn wait(&mut self) -> Result<usize, Errno> {
        self.ready_readers.copy_from_slice(&self.readers);
        self.ready_writers.copy_from_slice(&self.writers);
        let Ok(end) = libc::c_int::try_from(self.end) else { return Err(Errno::EINVAL) };
        let none = std::ptr::null_mut();
        // SAFETY: both sets have whole words beyond `end`; no others, no time.
        let n = unsafe {
            libc::select(
                end,
                self.ready_readers.as_mut_ptr().cast(),
                self.ready_writers.as_mut_ptr().cast(),
                none,
                none.cast(),
            )
        };
        usize::try_from(n).map_err(|_| Errno::last())
    }

    /// Whether the last wait reported a descriptor.
    #[inline]
    pub fn is_ready(&self, fd: BorrowedFd<'_>) -> bool {
        let number = number(fd);
        let has = |set: &[u64]| set[number / WORD_BITS] >> (number % WORD_BITS) & 1 == 1;
        has(&self.ready_readers) || has(&self.ready_writers)
    }

    /// The numbers that the last wait reported, in rising order.
    pub fn ready(&self) -> impl Iterator<Item = usize> {
        let words = self.ready_readers.iter().zip(&self.ready_writers);
        words.enumerate().flat_map(|(index, (readers, writers))| {
            let mut word = readers | writers;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (bit < u64::BITS).then(|| index * WORD_BITS + bit as usize)
            })
        })
    }

    fn holds(&self, number: usize) -> bool {
        let word = self.readers[number / WORD_BITS] | self.writers[number / WORD_BITS];
        word >> (number % WORD_BITS) & 1 == 1
    }

    fn all(&mut self) -> [&mut Vec<u64>; 4] {
        [&mut self.readers, &mut self.writers, &mut self.ready_readers, &mut self.ready_writers]
    }
}

/// A descriptor's number, which is never negative.
#[inline]
fn number(fd: BorrowedFd<'_>) -> usize {
    fd.as_raw_fd().unsigned_abs() as usize
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::socket;

    fn check(near: OwnedFd, far: &UnixStream) {
        let mut set = SelectSet::default();
        set.insert(near.as_fd(), For::Bytes);
        socket::send(far.as_fd(), b"x").unwrap();
        assert_eq!(set.wait(), Ok(1));
        assert!(set.is_ready(near.as_fd()));
        assert_eq!(set.ready().collect::<Vec<_>>(), [number(near.as_fd())]);
        set.insert(far.as_fd(), For::Room);
        set.remove(near.as_fd());
        assert_eq!(set.wait(), Ok(1));
        assert_eq!(set.ready().collect::<Vec<_>>(), [number(far.as_fd())]);
    }

    #[test]
    fn a_descriptor_of_any_number_is_reported() {
        let (near, far) = UnixStream::pair().unwrap();
        let high = rustix::io::fcntl_dupfd_cloexec(&near, 3000);
        check(near.into(), &far);
        // Below a hard limit of 3000 there is none so high.
        if let Ok(high) = high {
            let (_, byte) = (far.as_fd(), &mut [0; 4]);
            socket::recv(high.as_fd(), byte).unwrap();
            check(high, &far);
        }
    }
}

//! A ring for requests that do nothing: what handing one over and taking its
//! completion costs.
//!
//! # Safety
//! Requests refer to no memory; the descriptor that is lent is the ring's own.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use io_uring::IoUring;
use io_uring::opcode::Nop;

use crate::errno::Errno;

/// A ring of the smallest size, without wishes; see io_uring_setup(2).
pub struct NopRing(IoUring);

impl NopRing {
    /// Makes the ring.
    ///
    /// Errors: as [`super::try_ring`].
    pub fn open() -> Result<NopRing, Errno> {
        Ok(NopRing(IoUring::new(super::setup::SUBMISSIONS_MIN)?))
    }

    /// Hands over one `IORING_OP_NOP` and takes its completion: one
    /// io_uring_enter(2).
    ///
    /// Errors: of io_uring_enter(2); `ENODATA` where no completion came, else
    /// what the completion says.
    #[inline]
    pub fn nop(&mut self) -> Result<(), Errno> {
        const MARK: u64 = 0x6e6f70;
        let entry = Nop::new().build().user_data(MARK);
        // SAFETY: a request that does nothing refers to no memory.
        let pushed = unsafe { self.0.submission().push(&entry) };
        pushed.map_err(|_| Errno::EBUSY)?;
        self.0.submit_and_wait(1)?;
        let completed = self.0.completion().next().ok_or(Errno::ENODATA)?;
        match completed.result() {
            0 if completed.user_data() == MARK => Ok(()),
            0 => Err(Errno::EBADMSG),
            result => Err(Errno::from_raw(-result)),
        }
    }
}

impl AsFd for NopRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

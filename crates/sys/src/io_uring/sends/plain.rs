//! The same ring in the hands of a program that fills each entry and reads each
//! completion itself: what a benchmark written by hand does, to compare the
//! calls of [`SendRing`] with.
//!
//! # Safety
//! As [`super`]: everything that an entry points at is the ring's memory.

use super::{
    BorrowedFd, Errno, Fd, IORING_NOTIF_USAGE_ZC_COPIED, MSG_FLAGS, MessageRing, Opcode, OpenError,
    SendRing, Sending, Wishes, cqueue, opcode, squeue,
};

/// A ring without anything around it.
#[derive(Debug)]
pub struct PlainRing<'fd>(SendRing<'fd, Opcode>);

/// `struct io_uring_cqe`, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cqe {
    /// What the entry was given.
    pub user_data: u64,
    /// The result, or for a notification what it reports.
    pub result: i32,
    /// Whether a notification follows (`IORING_CQE_F_MORE`).
    pub more: bool,
    /// Whether it is one (`IORING_CQE_F_NOTIF`).
    pub notification: bool,
}

impl Cqe {
    /// Whether a notification says that the bytes were copied after all.
    pub fn copied(&self) -> bool {
        self.result.cast_unsigned() & IORING_NOTIF_USAGE_ZC_COPIED != 0
    }
}

impl<'fd> PlainRing<'fd> {
    /// As [`SendRing::open`].
    ///
    /// Errors: as there.
    pub fn open(
        socket: BorrowedFd<'fd>,
        messages: MessageRing,
        wishes: Wishes,
    ) -> Result<PlainRing<'fd>, OpenError> {
        SendRing::open(socket, messages, wishes).map(PlainRing)
    }

    /// As [`SendRing::register`].
    ///
    /// Errors: as there.
    pub fn register(&mut self) -> Result<(), OpenError> {
        self.0.register()
    }

    /// Whether notifications report copies.
    pub fn reports_copies(&self) -> bool {
        self.0.report != 0
    }

    /// `IORING_OP_SEND` of what message `index` has behind its first `from`
    /// bytes, handed over and waited for in one call. Its `user_data` is `index`,
    /// here and below.
    ///
    /// Errors: see io_uring_enter(2), here and below.
    #[inline]
    pub fn send(&mut self, index: usize, from: usize) -> Result<(), Errno> {
        let rest = self.rest(index, from);
        let entry = opcode::Send::new(self.socket(), rest.as_ptr(), length(rest)?);
        self.submit_and_wait(entry.flags(MSG_FLAGS).build(), index)
    }

    /// `IORING_OP_SEND_ZC`.
    ///
    /// Errors: as [`Self::send`].
    #[inline]
    pub fn send_zc(&mut self, index: usize, from: usize) -> Result<(), Errno> {
        let rest = self.rest(index, from);
        let entry = opcode::SendZc::new(self.socket(), rest.as_ptr(), length(rest)?);
        self.submit_and_wait(entry.flags(MSG_FLAGS).zc_flags(self.0.report).build(), index)
    }

    /// `IORING_OP_SEND_ZC` from a registered buffer.
    ///
    /// Errors: as [`Self::send`].
    #[inline]
    pub fn send_zc_fixed(&mut self, index: usize, from: usize) -> Result<(), Errno> {
        let rest = self.rest(index, from);
        let buffer = u16::try_from(index).map_err(|_| Errno::EINVAL)?;
        let entry = opcode::SendZc::new(self.socket(), rest.as_ptr(), length(rest)?);
        let entry = entry.buf_index(Some(buffer)).flags(MSG_FLAGS).zc_flags(self.0.report);
        self.submit_and_wait(entry.build(), index)
    }

    /// `IORING_OP_SENDMSG` from an iovec that is built here.
    ///
    /// Errors: as [`Self::send`].
    #[inline]
    pub fn sendmsg(&mut self, index: usize, from: usize) -> Result<(), Errno> {
        self.build_iovec(index, from);
        let entry = opcode::SendMsg::new(self.socket(), &raw const self.0.ring.memory.headers[0]);
        self.submit_and_wait(entry.flags(MSG_FLAGS.cast_unsigned()).build(), index)
    }

    /// `IORING_OP_SENDMSG_ZC` from an iovec that is built here.
    ///
    /// Errors: as [`Self::send`].
    #[inline]
    pub fn sendmsg_zc(&mut self, index: usize, from: usize) -> Result<(), Errno> {
        self.build_iovec(index, from);
        let entry = opcode::SendMsgZc::new(self.socket(), &raw const self.0.ring.memory.headers[0]);
        let entry = entry.ioprio(self.0.report).flags(MSG_FLAGS.cast_unsigned());
        self.submit_and_wait(entry.build(), index)
    }

    /// Waits until there is a completion, no longer than the stall limit;
    /// `false` when that is over.
    ///
    /// Errors: see io_uring_enter(2); `EINTR` when a handled signal arrived.
    #[inline]
    pub fn wait(&mut self) -> Result<bool, Errno> {
        match self.0.enter(0) {
            Ok(()) => Ok(true),
            Err(errno) if errno.raw() == libc::ETIME => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// As [`SendRing::idle`].
    ///
    /// Errors: as there.
    pub fn idle(&mut self) -> Result<bool, Errno> {
        self.0.idle()
    }

    /// The next completion that has come; never waits.
    #[inline]
    pub fn cqe(&mut self) -> Option<Cqe> {
        let entry = self.0.ring.completion()?;
        let (result, flags) = (entry.result(), entry.flags());
        let (more, notification) = (cqueue::more(flags), cqueue::notif(flags));
        Some(Cqe { user_data: entry.user_data(), result, more, notification })
    }

    #[inline]
    fn socket(&self) -> Fd {
        self.0.file
    }

    #[inline]
    fn rest(&self, index: usize, from: usize) -> &[u8] {
        &self.0.ring.memory.messages.fields(index)[0][from..]
    }

    #[inline]
    fn build_iovec(&mut self, index: usize, from: usize) {
        let Sending { messages, headers, pieces } = &mut *self.0.ring.memory;
        let (mut skip, mut count) = (from, 0);
        for field in messages.fields(index) {
            if skip >= field.len() {
                skip -= field.len();
                continue;
            }
            let rest = &field[skip..];
            let iov_base = rest.as_ptr().cast_mut().cast();
            pieces[count] = libc::iovec { iov_base, iov_len: rest.len() };
            (skip, count) = (0, count + 1);
        }
        headers[0].msg_iov = pieces.as_mut_ptr();
        headers[0].msg_iovlen = count;
    }

    #[inline]
    fn submit_and_wait(&mut self, entry: squeue::Entry, index: usize) -> Result<(), Errno> {
        let entry = entry.user_data(index as u64).flags(self.0.file_flags);
        // SAFETY: what the entry points at is part of the ring: see the note of
        // the module.
        unsafe { self.0.ring.push(&entry) }?;
        self.0.enter(1)
    }
}

#[inline]
fn length(bytes: &[u8]) -> Result<u32, Errno> {
    u32::try_from(bytes.len()).map_err(|_| Errno::EMSGSIZE)
}

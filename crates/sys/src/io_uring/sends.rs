//! A ring that sends the messages of a [`MessageRing`] over one socket.
//!
//! # Safety
//! The kernel reads what an entry points at until the entry has completed, and
//! the payload of a zero-copy send until its notification has come. So the ring
//! owns a share of the messages, the msghdrs and the iovecs, all of which lie on
//! the heap, and reads the payload only at places that it has checked against
//! the messages. A place that two sends at once made use of would hold the
//! msghdr of the later one, which is as valid. All of that is the memory of the
//! [`Ring`]. The kernel only ever reads.

#![expect(unsafe_code, reason = "see the safety note above")]

mod plain;

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::types::{Fd, Timespec};
use io_uring::{Probe, cqueue, opcode, squeue};

pub use plain::{Cqe, PlainRing};

use super::ring::Ring;
use super::setup::{SetupFlags, refused, setup};
use super::{Opcode, OpenError, Operation, REGISTERED_MAX};
use crate::errno::Errno;
use crate::ring::MessageRing;

/// include/uapi/linux/io_uring.h: ask whether the bytes were copied after all,
/// and the answer in a notification's result. Linux 6.2.
const IORING_SEND_ZC_REPORT_USAGE: u16 = 1 << 3;
const IORING_NOTIF_USAGE_ZC_COPIED: u32 = 1 << 31;

/// Flags of every send, zero-copy or not. With `MSG_WAITALL` the kernel goes on
/// with a send that was cut short, as send(2) does on a blocking socket.
const MSG_FLAGS: libc::c_int = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// How a ring is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes<O = Opcode> {
    /// The operation that it sends with.
    pub operation: O,
    /// How it is set up.
    pub flags: SetupFlags,
    /// Whether iovecs are taken as the messages have them, not built each time.
    pub prepared: bool,
    /// Sends that may be under way at once; at least 1.
    pub depth: u32,
    /// Zero-copy sends whose notification may be awaited at once.
    pub notifications_max: u32,
    /// How long [`SendRing::send`] waits for a completion.
    pub stall_limit: Duration,
}

/// What has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// A send has its result.
    Sent {
        /// The id that it was handed over with.
        id: u32,
        /// Bytes that the kernel accepted, or why not.
        result: Result<usize, Errno>,
        /// Whether a notification follows (`IORING_CQE_F_MORE`, or a zero-copy
        /// send that its chain never began).
        notifies: bool,
    },
    /// The kernel has released the bytes of a send (`IORING_CQE_F_NOTIF`).
    Released {
        /// The id that it was handed over with.
        id: u32,
        /// Whether the kernel copied them after all; `None` where it does not
        /// report that (before Linux 6.2).
        copied: Option<bool>,
    },
}

/// A ring. With [`SetupFlags::SINGLE_ISSUER`] only the thread that opened it
/// can send with it.
pub struct SendRing<'fd, O: Operation = Opcode> {
    ring: Ring<Sending>,
    /// Entries that were queued and not handed over.
    queued: u32,
    /// These, where a thread of the kernel's would take each as soon as it is in the ring: a
    /// chain that it finds the beginning of ends there.
    waiting: Vec<squeue::Entry>,
    /// The socket, or its number among the ring's files.
    file: Fd,
    /// Flags of every send that say which of the two that is.
    file_flags: squeue::Flags,
    socket: PhantomData<BorrowedFd<'fd>>,
    wishes: Wishes<O>,
    timeout: Timespec,
    /// Flags of zero-copy sends in `ioprio`; 0 where usage is not reported.
    report: u16,
}

/// What sends under way point at.
struct Sending {
    messages: MessageRing,
    /// Of iovec sends, by place: where their `pieces` are, and they.
    headers: Box<[libc::msghdr]>,
    pieces: Box<[libc::iovec]>,
}

// SAFETY: the raw pointers in `headers` and `pieces` lead to memory that the
// ring owns or shares immutably; nothing is tied to a thread but the kernel's
// side, which refuses others with an error.
unsafe impl<O: Operation> Send for SendRing<'_, O> {}

impl<O: Operation> std::fmt::Debug for SendRing<'_, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendRing").field("opcode", &self.opcode()).finish_non_exhaustive()
    }
}

impl<'fd, O: Operation> SendRing<'fd, O> {
    /// Makes a ring that sends `messages` over `socket`. One that sends from
    /// registered buffers needs [`Self::register`] before.
    ///
    /// Errors: the first thing that the kernel lacks or refuses.
    pub fn open(
        socket: BorrowedFd<'fd>,
        messages: MessageRing,
        wishes: Wishes<O>,
    ) -> Result<SendRing<'fd, O>, OpenError> {
        let opcode = wishes.operation.opcode();
        let uring = setup(wishes.depth, wishes.notifications_max, wishes.flags)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe).map_err(|e| OpenError::Probe(e.into()))?;
        if !probe.is_supported(code(opcode)) {
            return Err(OpenError::Opcode(opcode));
        }
        let places = wishes.depth.max(1) as usize;
        // SAFETY: an all-zero msghdr is valid: no name, no iovec, no control data.
        let headers = (0..places).map(|_| unsafe { std::mem::zeroed() }).collect();
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let pieces = vec![none; places * messages.fields_per_message()].into_boxed_slice();
        let memory = Sending { messages, headers, pieces };
        let mut ring = SendRing {
            ring: Ring::new(uring, wishes.flags, memory),
            queued: 0,
            waiting: Vec::with_capacity(places),
            file: Fd(socket.as_raw_fd()),
            file_flags: squeue::Flags::empty(),
            socket: PhantomData,
            wishes,
            timeout: Timespec::from(wishes.stall_limit),
            report: 0,
        };
        ring.register_what_flags_ask_for(socket)?;
        if opcode.is_zerocopy() {
            ring.report = ring.ask_for_reports()?;
        }
        Ok(ring)
    }

    fn register_what_flags_ask_for(&mut self, socket: BorrowedFd<'fd>) -> Result<(), OpenError> {
        let flags = self.wishes.flags;
        if flags.contains(SetupFlags::FIXED_FILE) {
            self.ring.register_file(socket).map_err(|errno| refused(flags, errno))?;
            (self.file, self.file_flags) = (Fd(0), squeue::Flags::FIXED_FILE);
        }
        if flags.contains(SetupFlags::REGISTERED_RING) {
            self.ring.register_itself().map_err(|errno| refused(flags, errno))?;
        }
        Ok(())
    }

    /// What it sends with.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        self.wishes.operation.opcode()
    }

    /// Hands over what message `message` has behind its first `from` bytes, as
    /// one send, and waits until something has completed, no longer than the
    /// stall limit. The same call does both.
    ///
    /// Errors: see io_uring_enter(2): nothing was handed over.
    #[inline]
    pub fn send(&mut self, message: usize, from: usize, id: u32) -> Result<(), Errno> {
        self.push(0, message, from, id, squeue::Flags::empty())?;
        self.enter(1)
    }

    /// Queues a send of the whole of `message`, which is handed over with the
    /// next [`Self::submit`]. `place` is below the depth and not that of another
    /// send under way. A send that is `linked` has to be done, whole, before the
    /// one that is queued after it begins; if it is not, that one is cancelled
    /// (`IOSQE_IO_LINK`).
    ///
    /// Errors: `EBUSY` for more sends than the depth; `EMSGSIZE`, `EINVAL` for a
    /// message that no entry can name.
    #[inline]
    pub fn queue(
        &mut self,
        place: usize,
        message: usize,
        id: u32,
        linked: bool,
    ) -> Result<(), Errno> {
        let flags = if linked { squeue::Flags::IO_LINK } else { squeue::Flags::empty() };
        self.push(place, message, 0, id, flags)?;
        self.queued += 1;
        Ok(())
    }

    /// Hands over what is queued, and waits until `want` more have completed, no
    /// longer than the stall limit. The same call does both.
    ///
    /// Errors: see io_uring_enter(2): nothing was handed over; `EAGAIN` when not
    /// all of it was.
    #[inline]
    pub fn submit(&mut self, want: u32) -> Result<(), Errno> {
        self.publish()?;
        let entered = self.ring.submit_within(want as usize, &self.timeout);
        if self.ring.is_polled() {
            // The kernel's thread takes what is there, however the wait for it ends.
            self.count(self.queued as usize);
            return match entered.map_err(Errno::from) {
                Err(errno) if ![Errno::EINTR, Errno::from_raw(libc::ETIME)].contains(&errno) => {
                    Err(errno)
                }
                _ => Ok(()),
            };
        }
        self.count(entered?);
        if self.queued > 0 { Err(Errno::EAGAIN) } else { Ok(()) }
    }

    /// The kernel has taken so many of the entries that were queued.
    #[inline]
    fn count(&mut self, taken: usize) {
        self.queued -= u32::try_from(taken).unwrap_or(u32::MAX).min(self.queued);
    }

    /// Puts the entry of a send of what a message has behind its first `from`
    /// bytes into the queue. Each kind of entry goes there from where it is
    /// built: 64 bytes that are handed on by value are copied each time.
    #[inline]
    fn push(
        &mut self,
        place: usize,
        message: usize,
        from: usize,
        id: u32,
        flags: squeue::Flags,
    ) -> Result<(), Errno> {
        let (report, flags) = (self.report, flags | self.file_flags);
        let whole = |entry: squeue::Entry| entry.user_data(u64::from(id)).flags(flags);
        match self.opcode() {
            Opcode::Send => {
                let (fd, start, length) = self.one_buffer(message, from)?;
                let entry = opcode::Send::new(fd, start, length).flags(MSG_FLAGS);
                self.put(&whole(entry.build()))
            }
            Opcode::SendZc => {
                let (fd, start, length) = self.one_buffer(message, from)?;
                let entry = opcode::SendZc::new(fd, start, length).flags(MSG_FLAGS);
                self.put(&whole(entry.zc_flags(report).build()))
            }
            Opcode::SendZcFixed => {
                let (fd, start, length) = self.one_buffer(message, from)?;
                let buffer = u16::try_from(message).map_err(|_| Errno::EINVAL)?;
                let entry = opcode::SendZc::new(fd, start, length).flags(MSG_FLAGS);
                self.put(&whole(entry.zc_flags(report).buf_index(Some(buffer)).build()))
            }
            Opcode::Sendmsg => {
                let (fd, header) = self.header(place, message, from);
                let entry = opcode::SendMsg::new(fd, header).flags(MSG_FLAGS.cast_unsigned());
                self.put(&whole(entry.build()))
            }
            Opcode::SendmsgZc => {
                let (fd, header) = self.header(place, message, from);
                let entry = opcode::SendMsgZc::new(fd, header).flags(MSG_FLAGS.cast_unsigned());
                self.put(&whole(entry.ioprio(report).build()))
            }
        }
    }

    /// The next completion that has come; never waits.
    #[inline]
    pub fn completion(&mut self) -> Option<Completed> {
        let entry = self.ring.completion()?;
        let (raw, flags) = (entry.result(), entry.flags());
        #[expect(clippy::cast_possible_truncation, reason = "ids are handed over as u32")]
        let id = entry.user_data() as u32;
        if cqueue::notif(flags) {
            let copied = raw.cast_unsigned() & IORING_NOTIF_USAGE_ZC_COPIED != 0;
            return Some(Completed::Released { id, copied: (self.report != 0).then_some(copied) });
        }
        let result = usize::try_from(raw).map_err(|_| Errno::from_raw(-raw));
        // One that a chain never began has its notification all the same, which
        // it was given when it was queued (`io_send_zc_cleanup`, io_uring/net.c),
        // and not the flag that says so (`io_fail_links`, io_uring/timeout.c).
        let cancelled = result == Err(Errno::ECANCELED) && self.opcode().is_zerocopy();
        let notifies = cqueue::more(flags) || cancelled;
        if cancelled && !cqueue::more(flags) {
            self.ring.expect_another();
        }
        Some(Completed::Sent { id, result, notifies })
    }

    /// Waits until something has completed; `false` when the time is over.
    ///
    /// Errors: see io_uring_enter(2); `EINTR` when a handled signal arrived.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Errno> {
        match self.ring.submit_within(1, &Timespec::from(timeout)) {
            Ok(taken) => {
                self.count(taken);
                Ok(true)
            }
            Err(e) if e.raw_os_error() == Some(libc::ETIME) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// As [`ReadRing::idle`](super::ReadRing::idle).
    pub fn idle(&mut self) -> Result<bool, Errno> {
        self.ring.idle()
    }

    /// Completions that the kernel had no room for and lost.
    pub fn lost(&mut self) -> u32 {
        self.ring.lost()
    }

    /// Where a send from one piece of memory reads.
    #[inline]
    fn one_buffer(&self, message: usize, from: usize) -> Result<(Fd, *const u8, u32), Errno> {
        let rest = &self.ring.memory.messages.fields(message)[0][from..];
        let length = u32::try_from(rest.len()).map_err(|_| Errno::EMSGSIZE)?;
        Ok((self.file, rest.as_ptr(), length))
    }

    /// The msghdr of a send from an iovec over the fields of a message.
    #[inline]
    fn header(&mut self, place: usize, message: usize, from: usize) -> (Fd, *const libc::msghdr) {
        let Sending { messages, headers, pieces } = &mut *self.ring.memory;
        let header = &mut headers[place];
        if self.wishes.prepared && from == 0 {
            let iovec = messages.prepared(message);
            // IoSlice is guaranteed to have the layout of iovec; the kernel only
            // reads it.
            header.msg_iov = iovec.as_ptr().cast::<libc::iovec>().cast_mut();
            header.msg_iovlen = iovec.len();
        } else {
            let fields = messages.fields_per_message();
            let pieces = &mut pieces[place * fields..(place + 1) * fields];
            let mut skip = from;
            let mut count = 0;
            for field in messages.fields(message) {
                let rest = &field[skip.min(field.len())..];
                skip -= field.len() - rest.len();
                if !rest.is_empty() {
                    let iov_base = rest.as_ptr().cast_mut().cast();
                    pieces[count] = libc::iovec { iov_base, iov_len: rest.len() };
                    count += 1;
                }
            }
            header.msg_iov = pieces.as_mut_ptr();
            header.msg_iovlen = count;
        }
        (self.file, &raw const *header)
    }

    #[inline]
    fn put(&mut self, entry: &squeue::Entry) -> Result<(), Errno> {
        if self.ring.is_polled() {
            self.waiting.push(entry.clone());
            return Ok(());
        }
        // SAFETY: what the entry points at is part of `messages`, `headers` or
        // `pieces`, the ring's memory.
        unsafe { self.ring.push(entry) }
    }

    /// Lets the kernel's thread see what waits for it, all of it at once.
    #[inline]
    fn publish(&mut self) -> Result<(), Errno> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // SAFETY: as in `put`.
        let pushed = unsafe { self.ring.push_all(&self.waiting) };
        self.waiting.clear();
        pushed
    }

    /// Hands so many entries over and waits until something has completed, no
    /// longer than the stall limit, in one call. Once an entry is handed over the
    /// call succeeds, even if nothing completes in time or a signal ends the
    /// waiting.
    #[inline]
    fn enter(&mut self, entries: u32) -> Result<(), Errno> {
        self.publish()?;
        self.ring.enter(entries, &self.timeout)
    }

    /// The flag that asks whether bytes were copied, if the kernel knows it. It
    /// looks at flags before it looks at the descriptor (`io_send_zc_prep`,
    /// io_uring/net.c): a send to none is `EINVAL` where it does not know them.
    fn ask_for_reports(&mut self) -> Result<u16, OpenError> {
        static BYTE: u8 = 0;
        let entry = opcode::SendZc::new(Fd(-1), &raw const BYTE, 1)
            .flags(MSG_FLAGS)
            .zc_flags(IORING_SEND_ZC_REPORT_USAGE)
            .build();
        self.put(&entry).and_then(|()| self.enter(1)).map_err(OpenError::Probe)?;
        let mut answer = None;
        while self.ring.under_way() > 0 {
            match self.completion() {
                Some(Completed::Sent { result, .. }) => answer = result.err(),
                Some(Completed::Released { .. }) => {}
                None => match self.wait(self.wishes.stall_limit) {
                    Ok(true) | Err(Errno::EINTR) => {}
                    Ok(false) => return Err(OpenError::Probe(Errno::ETIMEDOUT)),
                    Err(errno) => return Err(OpenError::Probe(errno)),
                },
            }
        }
        Ok(if answer == Some(Errno::EBADF) { IORING_SEND_ZC_REPORT_USAGE } else { 0 })
    }

    /// Registers every message as a buffer of its own, for
    /// [`Opcode::SendZcFixed`].
    ///
    /// Errors: [`OpenError::TooMany`], [`OpenError::Register`]; after `ENOMEM` it
    /// may be tried again.
    pub fn register(&mut self) -> Result<(), OpenError> {
        let messages = &self.ring.memory.messages;
        if messages.messages() > REGISTERED_MAX {
            return Err(OpenError::TooMany(messages.messages()));
        }
        let buffer = |message: usize| {
            let bytes = &messages.fields(message)[0];
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
        };
        let buffers: Vec<libc::iovec> = (0..messages.messages()).map(buffer).collect();
        let (count, buffer_bytes) = (buffers.len(), messages.message_bytes());
        // SAFETY: the buffers are the ring's share of the messages; the kernel pins
        // them and only reads.
        let registered = unsafe { self.ring.register(&buffers) };
        registered.map_err(|errno| OpenError::Register { buffers: count, buffer_bytes, errno })
    }
}

fn code(opcode: Opcode) -> u8 {
    match opcode {
        Opcode::Send => opcode::Send::CODE,
        Opcode::Sendmsg => opcode::SendMsg::CODE,
        Opcode::SendZc | Opcode::SendZcFixed => opcode::SendZc::CODE,
        Opcode::SendmsgZc => opcode::SendMsgZc::CODE,
    }
}

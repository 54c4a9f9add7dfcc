//! Rings that receive: one for each connection of a thread, with one request
//! that stays (`IORING_RECV_MULTISHOT`) and puts what arrives into buffers that
//! were provided to the ring (`IORING_REGISTER_PBUF_RING`); see
//! io_uring_prep_recv_multishot(3), io_uring_register_buf_ring(3).
//!
//! The flags of the rings are those of rings that send. Work that a ring with
//! `IORING_SETUP_DEFER_TASKRUN` has put off is done by io_uring_enter(2) on that
//! ring alone. So bytes leave a connection's queue while [`ReceiveRings::wait`]
//! waits on it and at no other time: in between, poll(2) sees them and recv(2)
//! may take them, and the connections whose turn it is not keep theirs.
//!
//! # Safety
//! The kernel writes to a buffer from when it was provided until the completion
//! that names it, and only within a call to `wait` of the ring that it belongs
//! to: no slice of the buffers is alive then, since that call borrows all rings
//! mutably. The buffers, and the rings of entries that lead to them, are freed
//! when the requests have ended, or never.

#![expect(unsafe_code, reason = "see the safety note above")]

#[cfg(test)]
mod tests;

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::buffers::{Buffers, GROUP, Memory, Provided};
use super::setup::{SetupFlags, setup};
use super::{LAST_WAIT, OpenError};
use crate::errno::Errno;

/// What a completion says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// So many bytes, which [`ReceiveRings::bytes`] shows until the next wait.
    Bytes(usize),
    /// The stream has ended.
    End,
    /// More had come than the buffers hold, and stays in the queue (`ENOBUFS`).
    /// The request has ended.
    BuffersUsedUp,
    /// What else the kernel says. The request has ended.
    Failed(Errno),
}

/// The rings of a thread's connections, which take turns; only the thread that
/// opened them can receive with them. All share their buffers' memory.
#[derive(Debug)]
pub struct ReceiveRings<'fd> {
    rings: Vec<Ring<'fd>>,
    turn: usize,
    buffers: Buffers,
    memory: ManuallyDrop<Memory>,
    /// Buffers with bytes since the last wait, in order, and how many bytes.
    filled: Vec<(u16, usize)>,
    timeout: Timespec,
    rearms: u64,
}

/// The ring of one connection.
struct Ring<'fd> {
    uring: ManuallyDrop<IoUring>,
    socket: BorrowedFd<'fd>,
    entries: ManuallyDrop<Provided>,
    /// Whether its request was handed over, or is about to be, and has not
    /// ended.
    is_armed: bool,
    /// Whether it ever was.
    was_armed: bool,
}

impl std::fmt::Debug for Ring<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ring { socket, is_armed, .. } = self;
        f.debug_struct("Ring").field("socket", socket).field("is_armed", is_armed).finish()
    }
}

// SAFETY: the raw pointers lead to memory that the rings own; nothing is tied to
// a thread but the kernel's side, which refuses others with an error.
unsafe impl Send for ReceiveRings<'_> {}

impl<'fd> ReceiveRings<'fd> {
    /// Makes a ring for each of `sockets`, of which there is one at least; the
    /// first has its turn. Nothing is received before the first wait.
    ///
    /// Errors: the first thing that the kernel lacks or refuses.
    pub fn open(
        sockets: &[BorrowedFd<'fd>],
        buffers: Buffers,
        stall_limit: Duration,
    ) -> Result<ReceiveRings<'fd>, OpenError> {
        let memory = Memory::new(usize::from(buffers.count) * buffers.bytes as usize);
        let mut opened = ReceiveRings {
            rings: Vec::with_capacity(sockets.len()),
            turn: 0,
            buffers,
            memory: ManuallyDrop::new(memory),
            filled: Vec::with_capacity(usize::from(buffers.count)),
            timeout: Timespec::from(stall_limit),
            rearms: 0,
        };
        for &socket in sockets {
            let mut ring = Ring::open(socket, buffers)?;
            for id in 0..buffers.count {
                ring.entries.provide(id, &opened.memory);
            }
            ring.entries.publish();
            opened.rings.push(ring);
        }
        Ok(opened)
    }

    /// Gives the turn to another connection, by its index among the sockets.
    pub fn turn_to(&mut self, index: usize) {
        self.give_back();
        self.turn = index;
    }

    /// The connection whose turn it is.
    #[inline]
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'fd> {
        self.rings[self.turn].socket
    }

    /// Gives back the buffers that the last wait filled, hands a request over
    /// where there is none, and waits until something has arrived, no longer
    /// than the stall limit: one call. `false` when the time is over. A request
    /// that was handed over makes the call succeed, even if nothing arrived in
    /// time or a signal ended the waiting.
    ///
    /// Errors: see io_uring_enter(2); `EINTR` when a handled signal arrived.
    #[inline]
    pub fn wait(&mut self) -> Result<bool, Errno> {
        self.give_back();
        let ring = &mut self.rings[self.turn];
        if !ring.is_armed {
            let entry = opcode::RecvMulti::new(Fd(ring.socket.as_raw_fd()), GROUP).build();
            // SAFETY: the entry points at nothing; what it leads to are the
            // buffers: see the note of the module.
            unsafe { ring.uring.submission().push(&entry) }.map_err(|_| Errno::EBUSY)?;
            self.rearms += u64::from(ring.was_armed);
            (ring.is_armed, ring.was_armed) = (true, true);
        }
        ring.enter(&self.timeout)
    }

    /// What the next completion that has come says; never waits.
    #[inline]
    pub fn arrived(&mut self) -> Option<Arrived> {
        let ring = &mut self.rings[self.turn];
        let entry = ring.uring.completion().next()?;
        let (raw, flags) = (entry.result(), entry.flags());
        ring.is_armed = cqueue::more(flags);
        Some(match (usize::try_from(raw), cqueue::buffer_select(flags)) {
            (Ok(bytes), Some(id)) => {
                let is_ours = id < self.buffers.count
                    && bytes <= self.buffers.bytes as usize
                    && self.filled.len() < self.filled.capacity();
                if !is_ours {
                    return Some(Arrived::Failed(Errno::EBADMSG));
                }
                self.filled.push((id, bytes));
                if bytes == 0 { Arrived::End } else { Arrived::Bytes(bytes) }
            }
            (Ok(0), None) => Arrived::End,
            (Ok(_), None) => Arrived::Failed(Errno::EBADMSG),
            (Err(_), _) => match Errno::from_raw(-raw) {
                Errno::ENOBUFS => Arrived::BuffersUsedUp,
                errno => Arrived::Failed(errno),
            },
        })
    }

    /// What arrived since the last wait, in order and buffer by buffer.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        let size = self.buffers.bytes as usize;
        self.filled.iter().map(move |&(id, bytes)| {
            // SAFETY: a buffer of this memory, of which the kernel filled no
            // fewer bytes; it stays away from it until it is given back, for
            // which `self` must be borrowed mutably.
            unsafe { std::slice::from_raw_parts(self.memory.at(usize::from(id) * size), bytes) }
        })
    }

    /// Requests that were handed over because the one before had ended.
    #[must_use]
    pub fn rearms(&self) -> u64 {
        self.rearms
    }

    /// Completions that the kernel had no room for and lost.
    #[inline]
    pub fn lost(&mut self) -> u32 {
        self.rings[self.turn].uring.completion().overflow()
    }

    /// Provides the filled buffers again.
    #[inline]
    fn give_back(&mut self) {
        if self.filled.is_empty() {
            return;
        }
        let ring = &mut self.rings[self.turn];
        for (id, _) in self.filled.drain(..) {
            ring.entries.provide(id, &self.memory);
        }
        ring.entries.publish();
    }
}

impl Drop for ReceiveRings<'_> {
    fn drop(&mut self) {
        let mut is_over = true;
        for ring in &mut self.rings {
            is_over &= ring.end();
        }
        if is_over {
            // SAFETY: dropped here and nowhere else, and no request is left that
            // writes there.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl<'fd> Ring<'fd> {
    fn open(socket: BorrowedFd<'fd>, buffers: Buffers) -> Result<Ring<'fd>, OpenError> {
        // One completion for each buffer, and one that ends the request.
        let uring = setup(1, u32::from(buffers.count) + 1, SetupFlags::ONE_THREAD)?;
        let entries = Provided::register(&uring, buffers)?;
        Ok(Ring {
            uring: ManuallyDrop::new(uring),
            socket,
            entries: ManuallyDrop::new(entries),
            is_armed: false,
            was_armed: false,
        })
    }

    #[inline]
    fn enter(&mut self, timeout: &Timespec) -> Result<bool, Errno> {
        let args = SubmitArgs::new().timespec(timeout);
        match self.uring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ETIME) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Ends the request and the ring; whether the kernel writes no more. Else
    /// the entries stay for ever.
    fn end(&mut self) -> bool {
        let limit = Timespec::from(LAST_WAIT);
        // What still waits to be handed over never was a request.
        self.is_armed &= self.uring.submission().is_empty();
        if self.is_armed {
            // Whether there was anything left to cancel shows in the completions.
            let any = CancelBuilder::any();
            let _ = self.uring.submitter().register_sync_cancel(Some(limit), any);
        }
        while self.is_armed {
            let next = self.uring.completion().next();
            match next {
                Some(entry) => self.is_armed = cqueue::more(entry.flags()),
                None if self.enter(&limit) == Ok(true) => {}
                None => break,
            }
        }
        // SAFETY: dropped here and nowhere else: a ring is ended once.
        unsafe { ManuallyDrop::drop(&mut self.uring) };
        if !self.is_armed {
            // SAFETY: dropped here and nowhere else, and no request is left that
            // takes buffers from there.
            unsafe { ManuallyDrop::drop(&mut self.entries) };
        }
        !self.is_armed
    }
}

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
//! mutably. The buffers, and the entries that lead to them, are the memory of each
//! [`Ring`].

#![expect(unsafe_code, reason = "see the safety note above")]

#[cfg(test)]
mod tests;

use std::os::fd::{AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::types::{Fd, Timespec};
use io_uring::{cqueue, opcode};

use super::OpenError;
use super::buffers::{Buffers, GROUP, Memory, Provided};
use super::ring::Ring;
use super::setup::{SetupFlags, setup};
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
    connections: Vec<Connection<'fd>>,
    turn: usize,
    buffers: Buffers,
    memory: Rc<Memory>,
    /// Buffers with bytes since the last wait, in order, and how many bytes.
    filled: Vec<(u16, usize)>,
    timeout: Timespec,
    rearms: u64,
}

/// One connection.
struct Connection<'fd> {
    ring: Ring<Receiving>,
    socket: BorrowedFd<'fd>,
    /// Whether it ever had a request.
    was_armed: bool,
}

/// What its request uses.
struct Receiving {
    entries: Provided,
    buffers: Rc<Memory>,
}

impl std::fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("socket", &self.socket).finish_non_exhaustive()
    }
}

// SAFETY: the raw pointers and the shares lead to memory that these rings alone own;
// nothing is tied to a thread but the kernel's side, which refuses others with an error.
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
            connections: Vec::with_capacity(sockets.len()),
            turn: 0,
            buffers,
            memory: Rc::new(memory),
            filled: Vec::with_capacity(usize::from(buffers.count)),
            timeout: Timespec::from(stall_limit),
            rearms: 0,
        };
        for &socket in sockets {
            let mut connection = Connection::open(socket, buffers, Rc::clone(&opened.memory))?;
            connection.provide(0..buffers.count);
            opened.connections.push(connection);
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
    pub fn socket(&self) -> BorrowedFd<'fd> {
        self.connections[self.turn].socket
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
        let connection = &mut self.connections[self.turn];
        if connection.ring.under_way() == 0 {
            let entry = opcode::RecvMulti::new(Fd(connection.socket.as_raw_fd()), GROUP).build();
            // SAFETY: the entry points at nothing; what it leads to are the
            // buffers: see the note of the module.
            unsafe { connection.ring.push(&entry) }?;
            self.rearms += u64::from(connection.was_armed);
            connection.was_armed = true;
        }
        match connection.ring.submit_within(1, &self.timeout) {
            Ok(_) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ETIME) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// What the next completion that has come says; never waits.
    #[inline]
    pub fn arrived(&mut self) -> Option<Arrived> {
        let entry = self.connections[self.turn].ring.completion()?;
        let (raw, flags) = (entry.result(), entry.flags());
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
    pub fn rearms(&self) -> u64 {
        self.rearms
    }

    /// Completions that the kernel had no room for and lost.
    #[inline]
    pub fn lost(&mut self) -> u32 {
        self.connections[self.turn].ring.lost()
    }

    /// Provides the filled buffers again.
    #[inline]
    fn give_back(&mut self) {
        if self.filled.is_empty() {
            return;
        }
        let connection = &mut self.connections[self.turn];
        connection.provide(self.filled.drain(..).map(|(id, _)| id));
    }
}

impl<'fd> Connection<'fd> {
    fn open(
        socket: BorrowedFd<'fd>,
        buffers: Buffers,
        memory: Rc<Memory>,
    ) -> Result<Connection<'fd>, OpenError> {
        let flags = SetupFlags::ONE_THREAD;
        // One completion for each buffer, and one that ends the request.
        let uring = setup(1, u32::from(buffers.count) + 1, flags)?;
        let entries = Provided::register(&uring, buffers)?;
        let ring = Ring::new(uring, flags, Receiving { entries, buffers: memory });
        Ok(Connection { ring, socket, was_armed: false })
    }

    #[inline]
    fn provide(&mut self, ids: impl Iterator<Item = u16>) {
        let Receiving { entries, buffers } = &mut *self.ring.memory;
        ids.for_each(|id| entries.provide(id, buffers));
        entries.publish();
    }
}

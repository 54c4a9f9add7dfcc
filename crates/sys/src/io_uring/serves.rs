//! A ring that serves connections: one request that takes them
//! (`IORING_ACCEPT_MULTISHOT`), one for each of them that receives into provided
//! buffers (`IORING_RECV_MULTISHOT`), and one send at a time for each; see
//! io_uring_prep_multishot_accept(3), io_uring_prep_recv_multishot(3).
//!
//! # Safety
//! The kernel writes to a provided buffer from when it was provided until the
//! completion that names it; a [`Filled`] stands for one that it has not. It reads
//! what is sent until the send's completion, and the ring owns it for so long. A
//! slot, and the descriptor in it, is given up when no request of it is under way.
//! Buffers and slots are the memory of the [`Ring`].

#![expect(unsafe_code, reason = "see the safety note above")]

#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};

use super::OpenError;
use super::buffers::{Buffers, GROUP, Memory, Provided};
use super::ring::Ring;
use super::setup::{SetupFlags, setup};
use crate::errno::Errno;
use crate::tcp;

/// Requests that are handed over at once; more take another call.
const BATCH: u32 = 256;

/// What a request is, in the upper half of its `user_data`; the slot is in the
/// lower one.
const ACCEPT: u32 = 1;
const RECEIVE: u32 = 2;
const SEND: u32 = 3;
const STOP: u32 = 4;
const CANCEL: u32 = 5;
const WATCH: u32 = 6;

/// A provided buffer with bytes, to be given back with [`ServerRing::give_back`].
#[derive(Debug)]
pub struct Filled {
    id: u16,
    bytes: usize,
}

/// What has come.
#[derive(Debug)]
pub enum Completion {
    /// A connection, in this slot.
    Accepted(u32),
    /// The request that takes connections has ended: see [`ServerRing::accept`].
    AcceptEnded(Errno),
    /// There is a connection to take, as [`ServerRing::watch`] was to tell.
    Waits,
    /// Bytes of a connection.
    Received {
        /// The connection's slot.
        slot: u32,
        /// Where they are.
        filled: Filled,
    },
    /// A connection's request that receives has ended: with its stream, or for
    /// another reason, of which `ENOBUFS` says that every buffer was filled.
    ReceiveEnded {
        /// The connection's slot.
        slot: u32,
        /// Whether the stream has ended, or why it was something else.
        result: Result<(), Errno>,
    },
    /// A send is done; its buffer comes back.
    Sent {
        /// The connection's slot.
        slot: u32,
        /// What was to be sent.
        bytes: Vec<u8>,
        /// Bytes the kernel accepted, which are all unless the connection failed.
        result: Result<usize, Errno>,
    },
    /// The descriptor that says when to stop is readable.
    Stop,
}

/// A connection.
#[derive(Debug, Default)]
struct Slot {
    socket: Option<OwnedFd>,
    /// What a send that is under way reads.
    sends: Option<Vec<u8>>,
    receives: bool,
    /// Whether it is given up when nothing is under way.
    closes: bool,
}

/// What requests use.
struct Serving {
    entries: Provided,
    buffers: Memory,
    slots: Vec<Slot>,
}

/// The ring; only the thread that opened it can use it.
pub struct ServerRing {
    ring: Ring<Serving>,
    buffers: Buffers,
    free: Vec<u32>,
    listener: OwnedFd,
    rearms: u64,
    /// What is told next: a request that could not be made again.
    later: Option<Completion>,
}

impl std::fmt::Debug for ServerRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ServerRing { listener, ring, .. } = self;
        let shown =
            f.debug_struct("ServerRing").field("listener", listener).finish_non_exhaustive();
        shown.and_then(|()| write!(f, " with {} requests", ring.under_way()))
    }
}

impl ServerRing {
    /// Makes a ring that takes connections from `listener` until `stop` is
    /// readable.
    ///
    /// Errors: the first thing that the kernel lacks or refuses.
    pub fn open(
        listener: OwnedFd,
        stop: BorrowedFd<'_>,
        buffers: Buffers,
    ) -> Result<ServerRing, OpenError> {
        let flags = SetupFlags::ONE_THREAD;
        let uring = setup(BATCH, u32::from(buffers.count), flags)?;
        let entries = Provided::register(&uring, buffers)?;
        let memory = Memory::new(usize::from(buffers.count) * buffers.bytes as usize);
        let memory = Serving { entries, buffers: memory, slots: Vec::new() };
        let mut ring = ServerRing {
            ring: Ring::new(uring, flags, memory),
            buffers,
            free: Vec::new(),
            listener,
            rearms: 0,
            later: None,
        };
        ring.provide(0..buffers.count);
        // A request holds the file itself: the descriptor may be closed meanwhile.
        ring.push(readable(stop), STOP, 0).map_err(OpenError::Setup)?;
        ring.accept().map_err(OpenError::Setup)?;
        ring.ring.submit(0).map_err(OpenError::Setup)?;
        Ok(ring)
    }

    /// Asks for connections, where the request that does so has ended.
    ///
    /// Errors: of io_uring_enter(2).
    pub fn accept(&mut self) -> Result<(), Errno> {
        let fd = Fd(self.listener.as_raw_fd());
        let entry = opcode::AcceptMulti::new(fd).flags(libc::SOCK_CLOEXEC).build();
        self.push(entry, ACCEPT, 0)
    }

    /// Asks to be told when there is a connection to take, without taking it: for
    /// who has no descriptor for one, which [`Self::accept`] would say at once.
    ///
    /// Errors: of io_uring_enter(2).
    pub fn watch(&mut self) -> Result<(), Errno> {
        let entry = readable(self.listener.as_fd());
        self.push(entry, WATCH, 0)
    }

    /// Asks for what a connection sends, where the request that does so has
    /// ended, or never was.
    ///
    /// Errors: of io_uring_enter(2); `ENOTCONN` for a slot without connection.
    pub fn receive(&mut self, slot: u32) -> Result<(), Errno> {
        let of = self.ring.memory.slots.get(slot as usize).filter(|of| !of.receives && !of.closes);
        let of = of.ok_or(Errno::ENOTCONN)?;
        let socket = of.socket.as_ref().ok_or(Errno::ENOTCONN)?;
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        self.push(entry, RECEIVE, slot)?;
        self.ring.memory.slots[slot as usize].receives = true;
        Ok(())
    }

    /// Asks for nothing more of a connection: [`Completion::ReceiveEnded`] with
    /// `ECANCELED` follows, behind what has come already.
    ///
    /// Errors: of io_uring_enter(2).
    pub fn stop_receiving(&mut self, slot: u32) -> Result<(), Errno> {
        let entry = opcode::AsyncCancel::new(user_data(RECEIVE, slot)).build();
        self.push(entry, CANCEL, slot)
    }

    /// Sends what `bytes` has, all of it (`MSG_WAITALL`).
    ///
    /// Errors: of io_uring_enter(2); `EBUSY` for a connection with a send under
    /// way, `ENOTCONN` for a slot without one.
    pub fn send(&mut self, slot: u32, bytes: Vec<u8>) -> Result<(), Errno> {
        let of = self.ring.memory.slots.get(slot as usize).ok_or(Errno::ENOTCONN)?;
        let socket = of.socket.as_ref().ok_or(Errno::ENOTCONN)?;
        if of.sends.is_some() {
            return Err(Errno::EBUSY);
        }
        let length = u32::try_from(bytes.len()).map_err(|_| Errno::EMSGSIZE)?;
        let (fd, flags) = (Fd(socket.as_raw_fd()), libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        let entry = opcode::Send::new(fd, bytes.as_ptr(), length).flags(flags).build();
        self.push(entry, SEND, slot)?;
        // They stay where they are on the heap, which is where the entry points to.
        self.ring.memory.slots[slot as usize].sends = Some(bytes);
        Ok(())
    }

    /// Ends a connection, when what is under way on it has ended too.
    pub fn close(&mut self, slot: u32) {
        let Some(of) = self.ring.memory.slots.get_mut(slot as usize) else { return };
        of.closes = true;
        if of.receives || of.sends.is_some() {
            // Ends both requests. That the peer has gone is as good.
            let _ = of.socket.as_ref().map(|socket| tcp::hang_up(socket.as_fd()));
        }
        self.give_up(slot);
    }

    /// The socket of a connection.
    pub fn socket(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        Some(self.ring.memory.slots.get(slot as usize)?.socket.as_ref()?.as_fd())
    }

    /// The socket that connections come from.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Hands over what was asked for and waits until something has come: one
    /// io_uring_enter(2).
    ///
    /// Errors: see io_uring_enter(2); `EINTR` when a handled signal arrived.
    #[inline]
    pub fn wait(&mut self) -> Result<(), Errno> {
        self.ring.submit(1)
    }

    /// The next thing that has come; never waits.
    #[inline]
    pub fn completed(&mut self) -> Option<Completion> {
        if self.later.is_some()
            && let Some(completion) = self.told_later()
        {
            return Some(completion);
        }
        loop {
            let entry = self.ring.completion()?;
            let ends = !cqueue::more(entry.flags());
            let (kind, slot) = split(entry.user_data());
            let result = usize::try_from(entry.result());
            let result = result.map_err(|_| Errno::from_raw(-entry.result()));
            let completion = match kind {
                ACCEPT => self.accepted(entry.result(), ends),
                RECEIVE => self.received(slot, result, cqueue::buffer_select(entry.flags()), ends),
                SEND => self.sent(slot, result),
                STOP => Some(Completion::Stop),
                WATCH => Some(Completion::Waits),
                _ => None,
            };
            if completion.is_some() {
                return completion;
            }
        }
    }

    /// What a filled buffer holds.
    #[inline]
    pub fn bytes(&self, filled: &Filled) -> &[u8] {
        let start =
            self.ring.memory.buffers.at(usize::from(filled.id) * self.buffers.bytes as usize);
        // SAFETY: a buffer of this memory, of which the kernel filled no fewer
        // bytes; it stays away from it until it is given back, for which `self`
        // must be borrowed mutably.
        unsafe { std::slice::from_raw_parts(start, filled.bytes) }
    }

    /// Provides a filled buffer again.
    #[inline]
    pub fn give_back(&mut self, filled: Filled) {
        self.provide(std::iter::once(filled.id));
    }

    #[inline]
    fn provide(&mut self, ids: impl Iterator<Item = u16>) {
        let Serving { entries, buffers, .. } = &mut *self.ring.memory;
        ids.for_each(|id| entries.provide(id, buffers));
        entries.publish();
    }

    /// Requests that were handed over because the one before had ended without
    /// need.
    pub fn rearms(&self) -> u64 {
        self.rearms
    }

    /// Takes a connection that was accepted in another way.
    pub fn adopt(&mut self, socket: OwnedFd) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.ring.memory.slots.push(Slot::default());
            // There are no more descriptors than that.
            u32::try_from(self.ring.memory.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.ring.memory.slots[slot as usize].socket = Some(socket);
        slot
    }

    /// What is left to tell, unless its connection was closed meanwhile.
    #[cold]
    fn told_later(&mut self) -> Option<Completion> {
        let completion = self.later.take()?;
        match completion {
            Completion::ReceiveEnded { slot, .. }
                if self.ring.memory.slots[slot as usize].closes || self.socket(slot).is_none() =>
            {
                None
            }
            completion => Some(completion),
        }
    }

    fn accepted(&mut self, result: i32, ends: bool) -> Option<Completion> {
        if result < 0 {
            return Some(Completion::AcceptEnded(Errno::from_raw(-result)));
        }
        if ends {
            self.rearms += 1;
            self.later = self.accept().err().map(Completion::AcceptEnded);
        }
        // SAFETY: the kernel has just made this descriptor, for this completion.
        let socket = unsafe { OwnedFd::from_raw_fd(result) };
        Some(Completion::Accepted(self.adopt(socket)))
    }

    fn received(
        &mut self,
        slot: u32,
        result: Result<usize, Errno>,
        id: Option<u16>,
        ends: bool,
    ) -> Option<Completion> {
        if ends {
            self.ring.memory.slots[slot as usize].receives = false;
        }
        let filled = match (result, id) {
            (Ok(bytes), Some(id)) if id < self.buffers.count => {
                Some(Filled { id, bytes: bytes.min(self.buffers.bytes as usize) })
            }
            _ => None,
        };
        if self.ring.memory.slots[slot as usize].closes {
            filled.into_iter().for_each(|filled| self.give_back(filled));
            self.give_up(slot);
            return None;
        }
        match (result, filled) {
            (Ok(1..), Some(filled)) => {
                if ends {
                    self.rearms += 1;
                    self.later = self
                        .receive(slot)
                        .err()
                        .map(|errno| Completion::ReceiveEnded { slot, result: Err(errno) });
                }
                Some(Completion::Received { slot, filled })
            }
            (result, filled) => {
                filled.into_iter().for_each(|filled| self.give_back(filled));
                Some(Completion::ReceiveEnded { slot, result: result.map(drop) })
            }
        }
    }

    fn sent(&mut self, slot: u32, result: Result<usize, Errno>) -> Option<Completion> {
        let of = &mut self.ring.memory.slots[slot as usize];
        let bytes = of.sends.take().unwrap_or_default();
        if of.closes {
            self.give_up(slot);
            return None;
        }
        Some(Completion::Sent { slot, bytes, result })
    }

    /// Closes a socket that is to be closed, if nothing is under way on it.
    fn give_up(&mut self, slot: u32) {
        let of = &mut self.ring.memory.slots[slot as usize];
        if of.closes && !of.receives && of.sends.is_none() && of.socket.is_some() {
            *of = Slot::default();
            self.free.push(slot);
        }
    }

    fn push(&mut self, entry: squeue::Entry, kind: u32, slot: u32) -> Result<(), Errno> {
        let entry = entry.user_data(user_data(kind, slot));
        if self.ring.is_full() {
            self.ring.submit(0)?;
        }
        // SAFETY: descriptors are the ring's or those of its slots; what is sent
        // belongs to a slot until the completion; see the note of the module.
        unsafe { self.ring.push(&entry) }
    }
}

/// A request that completes when a descriptor is readable.
fn readable(fd: BorrowedFd<'_>) -> squeue::Entry {
    let events = u32::from(libc::POLLIN.unsigned_abs());
    opcode::PollAdd::new(Fd(fd.as_raw_fd()), events).build()
}

#[inline]
fn user_data(kind: u32, slot: u32) -> u64 {
    u64::from(kind) << 32 | u64::from(slot)
}

#[inline]
fn split(user_data: u64) -> (u32, u32) {
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    (half(user_data >> 32), half(user_data))
}

impl Drop for ServerRing {
    fn drop(&mut self) {
        self.ring.end(|entry| {
            let (kind, _) = split(entry.user_data());
            if kind == ACCEPT && entry.result() >= 0 {
                // SAFETY: as in `accepted`: nobody else has it.
                drop(unsafe { OwnedFd::from_raw_fd(entry.result()) });
            }
        });
    }
}

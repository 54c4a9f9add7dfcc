//! The bare loop around the rings of an AF_XDP socket: descriptors, the producer's
//! number, sendto(2), and the number of completions. Devices free what they sent in
//! its order, so that how many have completed is all that is read; were one to do
//! otherwise, a frame would be read twice at once, and has the same bytes for both.

use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::xdp::{BATCH_MAX, PlainFrameSocket};

use super::several::drive;
use super::{answer_each, may_try_again};
use crate::entry::{Setup, SetupError};
use crate::primitives::xdp_tx::{FOR_NOW, prepare};
use iolens_harness::op::{Budget, Sender, Span, Tally};

struct Frames {
    socket: PlainFrameSocket,
    frames: usize,
    frame_bytes: u32,
    stride_bytes: u64,
    message_bytes: u64,
    next: usize,
    /// Descriptors written and completions read; both wrap.
    posted: u32,
    completed: u32,
    messages: u64,
    calls: u64,
}

/// Up to [`BATCH_MAX`] messages as frames with each call.
///
/// Errors: as `xdp_tx`.
pub(super) fn open<'a>(setup: &Setup<'a>) -> Result<Box<dyn Sender + 'a>, SetupError> {
    let (socket, _) = prepare(setup)?;
    let socket = PlainFrameSocket::from(socket);
    Ok(Box::new(Frames {
        frames: socket.frames(),
        frame_bytes: socket.frame_bytes(),
        stride_bytes: socket.stride_bytes(),
        message_bytes: setup.shape.message_bytes as u64,
        socket,
        next: 0,
        posted: 0,
        completed: 0,
        messages: 0,
        calls: 0,
    }))
}

impl Frames {
    /// Hands over as many frames, of which at most [`BATCH_MAX`] may be.
    #[inline]
    fn send(&mut self, messages: usize) -> Result<usize, Errno> {
        self.await_under_way(self.frames - messages)?;
        for _ in 0..messages {
            let address = self.next as u64 * self.stride_bytes;
            self.socket.fill(self.posted, address, self.frame_bytes);
            self.posted = self.posted.wrapping_add(1);
            self.next += 1;
            if self.next == self.frames {
                self.next = 0;
            }
        }
        self.socket.submit(self.posted);
        let mut refused_ns = None;
        loop {
            if self.socket.needs_wakeup() {
                self.calls += 1;
                match self.socket.kick() {
                    Err(errno) if !FOR_NOW.contains(&errno) => return Err(errno),
                    _ => {}
                }
            }
            self.reap();
            if self.socket.taken() == self.posted {
                break;
            }
            if !may_try_again(&mut refused_ns) {
                return Err(Errno::EAGAIN);
            }
        }
        self.messages += messages as u64;
        Ok(messages)
    }

    #[inline]
    fn reap(&mut self) {
        self.completed = self.socket.completions();
        self.socket.release(self.completed);
    }

    /// Waits until no more frames than these are under way.
    #[inline]
    fn await_under_way(&mut self, most: usize) -> Result<(), Errno> {
        let mut refused_ns = None;
        while self.posted.wrapping_sub(self.completed) as usize > most {
            if !may_try_again(&mut refused_ns) {
                return Err(Errno::ETIMEDOUT);
            }
            self.reap();
        }
        Ok(())
    }
}

impl Sender for Frames {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        drive(BATCH_MAX, budget, |messages| self.send(messages))
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        answer_each(requests, || self.send(1).map(|_| ()))
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.await_under_way(0)
    }

    fn touch(&mut self) {
        let _ = self.socket.touch();
    }

    fn tally(&self) -> Tally {
        let bytes = self.messages * self.message_bytes;
        Tally { messages: self.messages, bytes, calls: self.calls, ..Tally::default() }
    }
}

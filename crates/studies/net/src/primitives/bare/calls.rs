//! Bare loops around calls that return when the kernel has taken the bytes, or
//! references to them.

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use arrayvec::ArrayVec;
use iolens_sys::errno::Errno;
use iolens_sys::ring::{Field, Layout, MessageRing};
use iolens_sys::splice::Pipe;
use iolens_sys::{clock, memory, socket, splice, tcp, zerocopy};

use super::{Bare, Loop};
use crate::entry::{Setup, SetupError};
use crate::primitives::pages::{self, pipe_for};
use crate::transmit::FIELDS_MAX;
use iolens_harness::op::Sender;

/// How long an acknowledgement is asked for again and again, and how long the
/// sleeps are after that.
const ASKING_NS: u64 = 50_000;
const SLEEP_NS: u64 = 50_000;

/// The messages that are sent.
pub(super) fn ring_of(setup: &Setup<'_>, layout: Layout) -> MessageRing {
    let shape = setup.shape;
    MessageRing::new(shape.messages, shape.message_bytes, shape.fields, layout)
}

/// Makes a call for what is left of `bytes` until nothing is.
#[inline]
fn all(
    bytes: usize,
    calls: &mut u64,
    call: impl Fn(usize) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes {
        *calls += 1;
        match call(done) {
            Ok(0) => return Err(Errno::EIO),
            Ok(n) => done += n,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

struct Contiguous<'a, C> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
    call: C,
}

/// `call` for each message that lies in one piece.
pub(super) fn contiguous<'a>(
    setup: &Setup<'a>,
    call: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<usize, Errno> + Send + 'a,
) -> Box<dyn Sender + 'a> {
    let ring = ring_of(setup, Layout::Contiguous);
    Loop::boxed(&ring.clone(), Contiguous { fd: setup.link.socket(), ring, call })
}

impl<C: Fn(BorrowedFd<'_>, &[u8]) -> Result<usize, Errno> + Send> Bare for Contiguous<'_, C> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        let message = &self.ring.fields(index)[0];
        all(message.len(), calls, |done| (self.call)(self.fd, &message[done..]))
    }

    fn touch(&self) {
        let _ = self.ring.touch();
    }
}

struct PerField<'a> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
}

/// send(2) for each field.
pub(super) fn per_field<'a>(setup: &Setup<'a>) -> Box<dyn Sender + 'a> {
    let ring = ring_of(setup, Layout::Separate);
    Loop::boxed(&ring.clone(), PerField { fd: setup.link.socket(), ring })
}

impl Bare for PerField<'_> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        for field in self.ring.fields(index) {
            all(field.len(), calls, |done| socket::send(self.fd, &field[done..]))?;
        }
        Ok(())
    }

    fn touch(&self) {
        let _ = self.ring.touch();
    }
}

struct Staged<'a> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
    staging: Field,
}

/// memcpy of each field behind the one before, and send(2).
pub(super) fn staged<'a>(setup: &Setup<'a>) -> Box<dyn Sender + 'a> {
    let ring = ring_of(setup, Layout::Separate);
    let staging = Field::filled(ring.message_bytes(), 1);
    Loop::boxed(&ring.clone(), Staged { fd: setup.link.socket(), ring, staging })
}

impl Bare for Staged<'_> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        let (staging, mut at): (&mut [u8], usize) = (&mut self.staging, 0);
        for field in self.ring.fields(index) {
            staging[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        all(at, calls, |done| socket::send(self.fd, &staging[done..]))
    }

    fn touch(&self) {
        let _ = self.ring.touch().wrapping_add(memory::touch(&self.staging));
    }
}

/// An iovec over the fields of a message.
pub(super) type Pieces<'a> = ArrayVec<IoSlice<'a>, FIELDS_MAX>;

#[inline]
pub(super) fn pieces(ring: &MessageRing, index: usize) -> Pieces<'_> {
    let mut pieces = Pieces::new();
    for field in ring.fields(index) {
        pieces.push(IoSlice::new(field));
    }
    pieces
}

struct Fields<'a, C> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
    call: C,
}

/// `call`, which takes an iovec, for each message that lies in fields.
pub(super) fn fields<'a>(
    setup: &Setup<'a>,
    call: impl Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send + 'a,
) -> Box<dyn Sender + 'a> {
    let ring = ring_of(setup, Layout::Separate);
    Loop::boxed(&ring.clone(), Fields { fd: setup.link.socket(), ring, call })
}

impl<C: Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send> Bare for Fields<'_, C> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        let mut pieces = pieces(&self.ring, index);
        let mut left = &mut pieces[..];
        loop {
            *calls += 1;
            match (self.call)(self.fd, left) {
                Ok(n) if n == self.ring.message_bytes() => return Ok(()),
                Ok(n) => IoSlice::advance_slices(&mut left, n),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            if left.is_empty() {
                return Ok(());
            }
        }
    }

    fn touch(&self) {
        let _ = self.ring.touch();
    }
}

struct OfFile<'a> {
    fd: BorrowedFd<'a>,
    file: File,
    bytes: usize,
}

/// sendfile(2) of each message from an empty file that is filled with them.
///
/// Errors: the file cannot be written.
pub(super) fn file<'a>(setup: &Setup<'a>, file: File) -> Result<Box<dyn Sender + 'a>, SetupError> {
    let (messages, bytes) = (setup.shape.messages, setup.shape.message_bytes);
    pages::fill(&file, &setup.shape)?;
    let of_file = OfFile { fd: setup.link.socket(), file, bytes };
    Ok(Box::new(Loop::over(messages, bytes, of_file)))
}

impl Bare for OfFile<'_> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        let begin = index * self.bytes;
        all(self.bytes, calls, |done| {
            let offset = (begin + done) as u64;
            splice::sendfile(self.fd, self.file.as_fd(), offset, self.bytes - done)
        })
    }

    fn touch(&self) {
        pages::touch(&self.file);
    }
}

struct Splice<'a> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
    pipe: Pipe,
    /// All bytes that were sent, and how many had been sent with each message.
    sent: u64,
    sent_with: Box<[u64]>,
    acknowledged: u64,
    stall_limit: Duration,
}

/// vmsplice(2) and splice(2) of each message, whose bytes of the last time were
/// acknowledged.
///
/// Errors: there is no pipe.
pub(super) fn splice<'a>(setup: &Setup<'a>) -> Result<Box<dyn Sender + 'a>, SetupError> {
    let ring = ring_of(setup, Layout::Separate);
    let splice = Splice {
        fd: setup.link.socket(),
        pipe: pipe_for(&ring)?,
        sent: 0,
        sent_with: vec![0; ring.messages()].into_boxed_slice(),
        acknowledged: 0,
        stall_limit: setup.stall_limit,
        ring,
    };
    Ok(Loop::boxed(&splice.ring.clone(), splice))
}

impl Splice<'_> {
    fn await_acknowledged(&mut self, sent: u64) -> Result<(), Errno> {
        let mut begin_ns = 0;
        loop {
            self.acknowledged = self.sent.saturating_sub(tcp::unacknowledged_bytes(self.fd)?);
            if self.acknowledged >= sent {
                return Ok(());
            }
            let now_ns = clock::monotonic_ns();
            if begin_ns == 0 {
                begin_ns = now_ns;
            }
            if now_ns - begin_ns < ASKING_NS {
                std::thread::yield_now();
            } else if u128::from(now_ns - begin_ns) < self.stall_limit.as_nanos() {
                match zerocopy::wait(self.fd, SLEEP_NS) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno),
                }
            } else {
                return Err(Errno::ETIMEDOUT);
            }
        }
    }
}

impl Bare for Splice<'_> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        if self.acknowledged < self.sent_with[index] {
            self.await_acknowledged(self.sent_with[index])?;
        }
        let mut pieces = pieces(&self.ring, index);
        let mut left = &mut pieces[..];
        let mut to_come = self.ring.message_bytes();
        while to_come > 0 {
            *calls += 1;
            let taken = match self.pipe.vmsplice(left) {
                Ok(taken) => taken,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            };
            to_come -= taken;
            if to_come > 0 {
                IoSlice::advance_slices(&mut left, taken);
            }
            all(taken, calls, |done| self.pipe.splice_to(self.fd, taken - done, to_come > 0))?;
        }
        self.sent += self.ring.message_bytes() as u64;
        self.sent_with[index] = self.sent;
        Ok(())
    }

    fn touch(&self) {
        let _ = self.ring.touch();
    }

    fn finish(&mut self) -> Result<(), Errno> {
        self.await_acknowledged(self.sent)
    }
}

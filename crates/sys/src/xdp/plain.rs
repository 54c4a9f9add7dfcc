//! The same socket in the hands of a program that writes each descriptor and moves
//! the numbers of both rings itself: what a benchmark written by hand does, to
//! compare the calls of [`FrameSocket`] with.
//!
//! # Safety
//! As [`super`]. A descriptor may hold anything: the kernel refuses what does not lie
//! in a chunk of the UMEM (`xskq_cons_is_valid_desc`, net/xdp/xsk_queue.h), and reads
//! nothing else. Its numbers are the caller's to keep; wrong ones are frames that
//! are sent twice or never.

use std::sync::atomic::Ordering;

use super::{Errno, FrameSocket};

/// A socket without anything around it.
#[derive(Debug)]
pub struct PlainFrameSocket(FrameSocket);

impl From<FrameSocket> for PlainFrameSocket {
    fn from(socket: FrameSocket) -> PlainFrameSocket {
        PlainFrameSocket(socket)
    }
}

impl PlainFrameSocket {
    /// As [`FrameSocket::frames`].
    #[must_use]
    pub fn frames(&self) -> usize {
        self.0.frames
    }

    /// Bytes of each frame.
    #[must_use]
    pub fn frame_bytes(&self) -> u32 {
        self.0.frame_bytes
    }

    /// Bytes from the begin of a frame to that of the next in the UMEM.
    #[must_use]
    pub fn stride_bytes(&self) -> u64 {
        1 << self.0.shift
    }

    /// Writes descriptor `number` of the TX ring, counted from 0 and wrapping; at most
    /// 64 may be in the ring.
    #[inline]
    pub fn fill(&mut self, number: u32, address: u64, bytes: u32) {
        self.0.tx.write(number, libc::xdp_desc { addr: address, len: bytes, options: 0 });
    }

    /// Shows the kernel the descriptors before number `end`.
    #[inline]
    pub fn submit(&mut self, end: u32) {
        // Whoever sees the number sees the descriptors before it.
        self.0.tx.producer().store(end, Ordering::Release);
    }

    /// The number of the first descriptor that the kernel has not taken.
    #[inline]
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.0.tx.consumer().load(Ordering::Acquire)
    }

    /// As [`FrameSocket::needs_wakeup`].
    #[inline]
    #[must_use]
    pub fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }

    /// As [`FrameSocket::kick`].
    ///
    /// Errors: as there.
    #[inline]
    pub fn kick(&self) -> Result<(), Errno> {
        self.0.kick()
    }

    /// Completions that there have been, wrapping.
    #[inline]
    #[must_use]
    pub fn completions(&self) -> u32 {
        self.0.completion.producer().load(Ordering::Acquire)
    }

    /// Gives the places of the completions before number `end` back to the kernel.
    #[inline]
    pub fn release(&mut self, end: u32) {
        self.0.completion.consumer().store(end, Ordering::Release);
    }

    /// As [`FrameSocket::touch`].
    pub fn touch(&self) -> u64 {
        self.0.touch()
    }
}

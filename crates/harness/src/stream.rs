//! What one thread of an arm sends: its ring of messages, whose turn it is,
//! and how much was sent so far.

use iolens_model::axes::Iovec;
use iolens_sys::ring::{Layout, MessageRing};

use crate::tally::Tally;

/// The messages of one arm and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Messages in the ring.
    pub messages: usize,
    /// Bytes of each.
    pub message_bytes: usize,
    /// Fields of each.
    pub fields: usize,
    /// When the iovec is built.
    pub iovec: Iovec,
}

/// A ring that is walked round and round.
#[derive(Debug)]
pub struct Stream {
    /// Its messages.
    pub ring: MessageRing,
    /// What was sent so far.
    pub tally: Tally,
    /// Index of the message whose turn it is.
    pub next: usize,
}

impl Stream {
    /// A fresh ring of these messages.
    pub fn new(shape: &Shape, layout: Layout) -> Stream {
        let ring = MessageRing::new(shape.messages, shape.message_bytes, shape.fields, layout);
        Stream { ring, tally: Tally::default(), next: 0 }
    }

    /// The message whose turn comes after so many others, fewer than there are.
    #[inline]
    pub fn ahead(&self, others: usize) -> usize {
        let place = self.next + others;
        if place < self.ring.messages() { place } else { place - self.ring.messages() }
    }

    /// The message whose turn it is; the next call has the next one.
    #[inline]
    pub fn turn(&mut self) -> usize {
        let now = self.next;
        self.next = if now + 1 == self.ring.messages() { 0 } else { now + 1 };
        now
    }
}

//! Programs of the user's as arms. One that sends, in `net`, is any that connects to where it is
//! told to and sends messages of the size that it is told. It runs once in each slice, from its
//! start to its end, and is counted where its bytes arrive; nothing of ours is in between.
//!
//! The receiving end ([`gather`]) lets the first eighth pass, says when the rest begins and when
//! all of it has come: neither the program's start nor its connections' are within the clock. The
//! sending end ([`program`]) starts it, reads what it was charged at these two moments, and ends
//! it.
//!
//! A program that speaks the loop protocol ([`looped`]) stays for the trial, in any study, and all
//! of a slice counts.

mod gather;
mod looped;
mod program;

use iolens_model::transport::Transport;

use super::tx::Way;
use iolens_net::entry::Ends;

pub(crate) use self::gather::{Gathered, Gathering};
pub(crate) use self::looped::{LoopedProgram, Looping};
pub(crate) use self::program::{Bystander, SendingProgram};

/// How it sends, as far as that is known.
pub(crate) const WAY: Way =
    Way { ends: Ends::Pair, transport: Transport::Tcp, locks_memory: false };

/// What the sending end says when the program has ended: nothing more will come than is on its
/// way. Every other byte sets the receiver free.
const ENDED: u8 = 2;

/// What comes in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portion {
    /// Messages that count.
    messages: u64,
    /// Messages before them.
    lead: u64,
    message_bytes: u64,
}

impl Portion {
    /// Of a slice of so many messages.
    pub(crate) fn of(messages: u64, message_bytes: u64) -> Portion {
        Portion { messages, lead: messages.div_ceil(8), message_bytes }
    }

    /// Of a slice of so many messages, all of which count.
    pub(crate) fn without_lead(messages: u64, message_bytes: u64) -> Portion {
        Portion { messages, lead: 0, message_bytes }
    }

    /// All messages.
    fn all(&self) -> u64 {
        self.messages.saturating_add(self.lead)
    }

    /// Bytes before those that count.
    fn lead_bytes(&self) -> u64 {
        self.lead.saturating_mul(self.message_bytes)
    }

    /// Bytes that count.
    fn counted_bytes(&self) -> u64 {
        self.messages.saturating_mul(self.message_bytes)
    }

    /// All bytes.
    fn all_bytes(&self) -> u64 {
        self.lead_bytes().saturating_add(self.counted_bytes())
    }
}

#[cfg(test)]
mod tests;

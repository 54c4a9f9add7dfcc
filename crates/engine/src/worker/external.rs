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

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_harness::op::Fact;
use iolens_model::sender::{NODELAY, NODELAY_OFF, OUR_SEND_BUFFER, SEND_BUFFER};
use iolens_model::transport::Transport;
use iolens_net::registry::Ends;
use iolens_sys::errno::Errno;
use iolens_sys::kin::{self, Tree};
use iolens_sys::proc::Root;
use iolens_sys::tcp;

pub(crate) use self::gather::{Gathered, Gathering};
pub(crate) use self::looped::{LoopedProgram, Looping};
pub(crate) use self::program::{Bystander, SendingProgram};
use super::way::Way;

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

// What the socket of a program is like.

/// The options of a program's connection, which are its own. That it may not be looked at is one of
/// these facts.
fn socket_facts(pid: u32, receiver: SocketAddr, lane: BorrowedFd<'_>) -> Vec<Fact> {
    let root = Root::real();
    let mut sockets = Vec::new();
    for pid in Tree::below(&root, pid).processes {
        match kin::sockets_of(&root, pid) {
            Ok(own) => sockets.extend(own),
            // It has ended meanwhile.
            Err(Errno::ENOENT | Errno::ESRCH) => {}
            Err(errno) => {
                return vec![("socket options", format!("cannot be read: {errno}"))];
            }
        }
    }
    let is_its = |fd: &OwnedFd| tcp::is_connected_to(fd.as_fd(), receiver);
    let own = sockets.iter().find(|fd| is_its(fd)).map(|fd| tcp::read_back(fd.as_fd()));
    let Some(Ok(own)) = own else { return Vec::new() };
    let nodelay = if own.nodelay { "on" } else { NODELAY_OFF };
    let mut facts = vec![
        (NODELAY, nodelay.to_owned()),
        (SEND_BUFFER, own.send_buffer_bytes.to_string()),
        ("congestion control", own.congestion),
    ];
    // The lane has the options of our methods' connections.
    let ours = tcp::read_back(lane).ok();
    facts.extend(ours.map(|ours| (OUR_SEND_BUFFER, ours.send_buffer_bytes.to_string())));
    facts
}

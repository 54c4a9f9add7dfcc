//! Connections whose calls never wait, for models in which one thread looks after
//! many: what is done when one is said to be ready.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use iolens_sys::errno::Errno;
use iolens_sys::{socket, tcp};

use super::Hands;
use super::conversation::{Conversation, Wants, Wire};

/// A connection.
#[derive(Debug)]
pub(super) struct Peer<S = OwnedFd> {
    pub(super) socket: S,
    conversation: Conversation,
    /// What it waited for when it was served last.
    pub(super) wants: Wants,
}

/// How much is received of one that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// What one call brings: it will be said again that there is more.
    OneCall,
    /// Until there is no more: it is said once (`EPOLLET`).
    Nothing {
        /// Whether the client has said that it sends no more, so that a call that
        /// brought less than it could is not the last one.
        ended: bool,
    },
}

impl<S: AsFd> Peer<S> {
    pub(super) fn new(socket: S) -> Peer<S> {
        Peer { socket, conversation: Conversation::default(), wants: Wants::Bytes }
    }

    /// Does what it waited for; returns what it waits for now.
    #[inline]
    pub(super) fn serve(&mut self, hands: &mut Hands, until: Until) -> Wants {
        if self.wants == Wants::Room {
            let mut wire = ReadyWire(self.socket.as_fd());
            let wants = self.conversation.resume(&mut hands.answers, &mut wire);
            self.wants = wants.unwrap_or(Wants::Nothing);
            // Where it is said once, bytes may have come before there was room.
            if self.wants != Wants::Bytes || until == Until::OneCall {
                return self.wants;
            }
        }
        self.wants = self.receive(hands, until);
        self.wants
    }

    #[inline]
    fn receive(&mut self, hands: &mut Hands, until: Until) -> Wants {
        let Hands { received, answers } = hands;
        let mut wire = ReadyWire(self.socket.as_fd());
        loop {
            let bytes = match socket::recv(self.socket.as_fd(), received) {
                Ok(0) => {
                    self.conversation.end(answers);
                    return Wants::Nothing;
                }
                Ok(bytes) => bytes,
                Err(Errno::EAGAIN) => return Wants::Bytes,
                Err(Errno::EINTR) => continue,
                Err(errno) => {
                    self.conversation.fail(answers, errno);
                    return Wants::Nothing;
                }
            };
            let wants = self.conversation.feed(answers, &received[..bytes], &mut wire);
            let is_last = match until {
                Until::OneCall => true,
                Until::Nothing { ended } => bytes < received.len() && !ended,
            };
            match wants {
                Ok(Wants::Bytes) if !is_last => {}
                wants => return wants.unwrap_or(Wants::Nothing),
            }
        }
    }
}

impl<S: AsFd> AsFd for Peer<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connections by the number of their descriptor.
#[derive(Debug)]
pub(super) struct Peers<S = OwnedFd>(Vec<Option<Box<Peer<S>>>>);

impl<S> Default for Peers<S> {
    fn default() -> Peers<S> {
        Peers(Vec::new())
    }
}

impl<S: AsFd> Peers<S> {
    /// Enters a connection.
    pub(super) fn insert(&mut self, peer: Box<Peer<S>>) {
        let number = number(peer.as_fd());
        if number >= self.0.len() {
            self.0.resize_with(number + 1, || None);
        }
        self.0[number] = Some(peer);
    }

    /// The connection of a number.
    #[inline]
    pub(super) fn get(&mut self, number: usize) -> Option<&mut Peer<S>> {
        self.0.get_mut(number)?.as_deref_mut()
    }

    /// Takes a connection out; dropping it closes it.
    pub(super) fn take(&mut self, number: usize) -> Option<Box<Peer<S>>> {
        self.0.get_mut(number)?.take()
    }
}

/// A descriptor's number, which is never negative.
#[inline]
pub(super) fn number(fd: BorrowedFd<'_>) -> usize {
    fd.as_raw_fd().unsigned_abs() as usize
}

/// Sends what there is room for.
struct ReadyWire<'a>(BorrowedFd<'a>);

impl Wire for ReadyWire<'_> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut sent = 0;
        // A call that takes a part has found no more room.
        loop {
            match socket::send(self.0, &bytes[sent..]) {
                Ok(more) if sent + more == bytes.len() => return Ok(bytes.len()),
                Ok(more) => sent += more,
                Err(Errno::EAGAIN) => return Ok(sent),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn finish(&mut self) {
        // The client may have gone.
        let _ = tcp::finish_sending(self.0);
    }
}

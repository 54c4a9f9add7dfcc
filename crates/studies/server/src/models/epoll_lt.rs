//! `epoll_lt`: one thread waits with epoll_wait(2) for every connection, each of
//! which is entered once and reported as long as there is something to read
//! (level-triggered). One recv(2) and one send(2) for what is reported.
//!
//! Needs: a descriptor for each connection.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_sys::epoll::{Epoll, Events, Ready, Trigger};
use iolens_sys::errno::Errno;

use super::entry::{Docs, Entry, never_waits, only};
use crate::acceptor::{Acceptor, BURST, Taken};
use crate::conversation::Wants;
use crate::ready::{Peer, Peers, Until, number};
use crate::{Context, Hands, NEVER, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry =
    never_waits("epoll_lt", "one thread, epoll(7), level-triggered", run, DOCS);

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "registered once: epoll_ctl(2), `ep_insert`",
        "epoll_wait(2) for up to 256 connections: `ep_poll`; `ep_poll_callback` puts ready ones \
         on a list, where they stay until `tcp_poll` finds nothing to read (`ep_send_events`)",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "poll and select: what it saves that the kernel remembers the descriptors. \
        uring: what two or three calls per request cost. It is the baseline.",
    not_shown: "More than one CPU: it can do no more than one thread can.",
};

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    EpollLoop::open(context, only(listeners)?, How::Levels)?.run(|| context.begun())
}

/// When connections are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// As long as there is something to read.
    Levels,
    /// When something came.
    Edges,
}

/// Descriptors that are reported by one call at most.
const EVENTS: usize = 256;

/// A thread that waits for its listener and its connections.
pub(super) struct EpollLoop<'a> {
    context: &'a Context,
    epoll: Epoll,
    acceptor: Acceptor,
    hands: Hands,
    peers: Peers,
    how: How,
}

impl<'a> EpollLoop<'a> {
    /// Errors: what it needs was refused.
    pub(super) fn open(
        context: &'a Context,
        listener: OwnedFd,
        how: How,
    ) -> Result<EpollLoop<'a>, String> {
        let epoll = Epoll::new().map_err(cannot("make an epoll instance"))?;
        let watch = |fd| epoll.add(fd, number(fd) as u64, Trigger::Readable);
        watch(listener.as_fd()).map_err(cannot("watch the listening socket"))?;
        watch(context.stop.as_fd()).map_err(cannot("watch an eventfd"))?;
        let acceptor = Acceptor::new(context, listener, NEVER);
        let (hands, peers) = (context.hands()?, Peers::default());
        Ok(EpollLoop { context, epoll, acceptor, hands, peers, how })
    }

    /// Serves until the server is to end; `begun` is called before.
    ///
    /// Errors: it cannot wait or take connections any more.
    pub(super) fn run(mut self, begun: impl FnOnce()) -> Result<(), String> {
        let mut events = Events::with_room(EVENTS);
        let listener = number(self.acceptor.as_fd()) as u64;
        begun();
        while !self.context.is_stopping() {
            match self.epoll.wait_long(&mut events) {
                Ok(()) => {}
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(cannot("wait for connections")(errno)),
            }
            for index in 0..events.len() {
                match events.get(index) {
                    Some(ready) if ready.key == listener => self.accept()?,
                    Some(ready) => self.serve(ready),
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), String> {
        for _ in 0..BURST {
            let tally = &self.hands.answers.tally;
            match self.acceptor.take(tally).map_err(cannot("take a connection"))? {
                Taken::Connection(socket) => self.enter(socket)?,
                Taken::None | Taken::Over => return Ok(()),
            }
        }
        Ok(())
    }

    fn enter(&mut self, socket: OwnedFd) -> Result<(), String> {
        let trigger = match self.how {
            How::Levels => Trigger::Readable,
            How::Edges => Trigger::Edges,
        };
        let added = self.epoll.add(socket.as_fd(), number(socket.as_fd()) as u64, trigger);
        added.map_err(cannot("watch a connection"))?;
        self.peers.insert(Box::new(Peer::new(socket)));
        Ok(())
    }

    #[inline]
    fn serve(&mut self, ready: Ready) {
        let key = usize::try_from(ready.key).unwrap_or(usize::MAX);
        // The eventfd is nobody's; neither is one that was closed in this turn.
        let Some(peer) = self.peers.get(key) else { return };
        let before = peer.wants;
        let wants = match self.how {
            How::Levels => peer.serve(&mut self.hands, Until::OneCall),
            // Room is told of as it comes, also where nobody waits for it.
            How::Edges if before == Wants::Bytes && !ready.readable => return,
            How::Edges => peer.serve(&mut self.hands, Until::Nothing { ended: ready.ended }),
        };
        let failed = match (self.how, before, wants) {
            (_, _, Wants::Nothing) => true,
            (How::Levels, Wants::Bytes, Wants::Room) => self.change(key, Trigger::Writable),
            (How::Levels, Wants::Room, Wants::Bytes) => self.change(key, Trigger::Readable),
            _ => false,
        };
        if failed {
            drop(self.peers.take(key));
        }
    }

    /// Has a connection reported for something else; whether that failed.
    #[cold]
    fn change(&mut self, key: usize, trigger: Trigger) -> bool {
        let Some(peer) = self.peers.get(key) else { return true };
        self.epoll.change(peer.as_fd(), key as u64, trigger).is_err()
    }
}

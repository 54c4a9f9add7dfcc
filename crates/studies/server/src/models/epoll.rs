//! Models that wait with epoll(7).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_sys::epoll::{Epoll, Events, Ready, Trigger};
use iolens_sys::errno::Errno;

use super::entry::{Docs, Entry, Workers, never_waits, only};
use crate::acceptor::{Acceptor, BURST, Taken};
use crate::conversation::Wants;
use crate::ready::{Peer, Peers, Until, number};
use crate::{Context, Hands, NEVER, cannot};

/// `epoll_lt`: one thread waits with epoll_wait(2) for every connection, each of
/// which is entered once and reported as long as there is something to read
/// (level-triggered). One recv(2) and one send(2) for what is reported.
///
/// Needs: a descriptor for each connection.
pub(super) static EPOLL_LT: Entry =
    never_waits("epoll_lt", "one thread, epoll(7), level-triggered", level_triggered, LT_DOCS);

/// Its page in docs/models.md.
const LT_DOCS: Docs = Docs {
    path: &[
        "registered once: epoll_ctl(2), `ep_insert`",
        "epoll_wait(2) for up to 256 connections: `ep_poll`; `ep_poll_callback` puts ready ones \
         on a list, where they stay until `tcp_poll` finds nothing to read (`ep_send_events`)",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "poll and select: what is saved because the kernel remembers the descriptors. \
        uring: what two or three calls per request cost. It is the baseline.",
    not_shown: "More than one CPU: it can do no more than one thread can.",
};

fn level_triggered(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    EpollLoop::open(context, only(listeners)?, How::Levels)?.run(|| context.begun())
}

/// When connections are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// As long as there is something to read.
    Levels,
    /// When something came.
    Edges,
}

/// Descriptors that are reported by one call at most.
const EVENTS: usize = 256;

/// A thread that waits for its listener and its connections.
struct EpollLoop<'a> {
    context: &'a Context,
    epoll: Epoll,
    acceptor: Acceptor,
    hands: Hands,
    peers: Peers,
    how: How,
}

impl<'a> EpollLoop<'a> {
    /// Errors: what it needs was refused.
    fn open(context: &'a Context, listener: OwnedFd, how: How) -> Result<EpollLoop<'a>, String> {
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
    fn run(mut self, begun: impl FnOnce()) -> Result<(), String> {
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

/// `epoll_et`: as `epoll_lt`, but each connection is reported once when something
/// came (edge-triggered), so it is read until a call brings less than it could.
///
/// Needs: a descriptor for each connection.
pub(super) static EPOLL_ET: Entry =
    never_waits("epoll_et", "one thread, epoll(7), edge-triggered", edge_triggered, ET_DOCS);

/// Its page in docs/models.md.
const ET_DOCS: Docs = Docs {
    path: &[
        "registered once: epoll_ctl(2), `ep_insert`, with `EPOLLET`",
        "epoll_wait(2) for up to 256 connections: `ep_poll`; `ep_poll_callback` puts ready ones \
         on a list, `ep_send_events` reports them and takes them off",
        "recv(2) of at most 16 KiB, until a call returns less than it could: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "epoll_lt, which differs only in the trigger: what a single notification \
        saves, and what reading until the socket is empty costs.",
    not_shown: "Fewer calls for short requests: a read that does not fill the buffer is the last \
        one, so both models make the same calls.",
};

fn edge_triggered(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    EpollLoop::open(context, only(listeners)?, How::Edges)?.run(|| context.begun())
}

/// `epoll_reuseport`: threads that share nothing, each with a listening socket on
/// the same port (`SO_REUSEPORT`), among which the kernel shares connections out
/// by their hash; each does what `epoll_lt` does.
///
/// Needs: many connections: with few of them some threads have none.
pub(super) static EPOLL_REUSEPORT: Entry = Entry {
    workers: Workers::Shards,
    needs: "many connections: the kernel spreads them by hash",
    ..never_waits(
        "epoll_reuseport",
        "several threads share a port (SO_REUSEPORT), each like epoll_lt",
        shards,
        REUSEPORT_DOCS,
    )
};

/// Its page in docs/models.md.
const REUSEPORT_DOCS: Docs = Docs {
    path: &[
        "a hash of its addresses and ports assigns each new connection to a listening socket: \
         `reuseport_select_sock`",
        "then like epoll_lt, in each thread with its own epoll instance",
    ],
    compared_with: "epoll_lt: what more CPUs bring where nothing is shared. thread_pool and \
        tokio: what handing over work costs.",
    not_shown: "An even load: the hash does not know who is busy, and with few connections some \
        threads get none. `requests_by_task` shows how uneven it was.",
};

fn shards(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    std::thread::scope(|scope| {
        let mut listeners = listeners.into_iter();
        let own = listeners.next();
        let mut shards = Vec::new();
        for listener in listeners {
            let shard = move || shard(context, listener, || {});
            let started = std::thread::Builder::new().spawn_scoped(scope, shard);
            let started = started.map_err(|e| format!("cannot start a thread: {e}"));
            // The others end before this does.
            shards.push(started.inspect_err(|_| context.end())?);
        }
        let result = own.map_or(Ok(()), |listener| shard(context, listener, || context.begun()));
        let panicked = || Err("a thread panicked".to_owned());
        shards
            .into_iter()
            .fold(result, |result, shard| result.and(shard.join().unwrap_or_else(|_| panicked())))
    })
}

/// What one of them does; the others end with it.
fn shard(context: &Context, listener: OwnedFd, begun: impl FnOnce()) -> Result<(), String> {
    let opened = EpollLoop::open(context, listener, How::Levels);
    opened.and_then(|shard| shard.run(begun)).inspect_err(|_| context.end())
}

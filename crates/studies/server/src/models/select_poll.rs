//! Models that pass every connection on every call: `select` and `poll`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::poll::PollSet;
use iolens_sys::select::{FD_SETSIZE, For, SelectSet};

use super::entry::{Docs, Entry, never_waits, only};
use crate::acceptor::{Acceptor, BURST, Taken};
use crate::conversation::Wants;
use crate::ready::{Peer, Peers, Until, number};
use crate::{Context, Hands, NEVER, cannot};

/// `select`: one thread waits with select(2) for every connection. Its sets are as
/// long as the C library's `fd_set`, which ends at descriptor 1023: a connection
/// beyond that is closed and counted, where a program in C would write beyond the
/// end of the set.
///
/// Needs: descriptors below 1024.
pub(super) static SELECT: Entry = Entry {
    needs: "descriptors below 1024 (FD_SETSIZE); further connections are closed and counted",
    descriptors_end: Some(FD_SETSIZE),
    ..never_waits(
        "select",
        "one thread, select(2) over sets of all descriptors",
        |context, listeners| select(context, listeners, FD_SETSIZE),
        SELECT_DOCS,
    )
};

/// Its page in docs/models.md.
const SELECT_DOCS: Docs = Docs {
    path: &[
        "select(2) with bit sets up to the largest descriptor: `core_sys_select` copies them in \
         and out, `do_select` calls `tcp_poll` for each member",
        "the program searches the sets for ready ones",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "poll: bits against an array. epoll_lt: what it costs to pass every connection \
        on every call.",
    not_shown: "Anything beyond descriptor 1023. select_large goes further, with sets that no C \
        library has.",
};

/// A thread whose sets hold descriptors below a number.
struct SelectLoop {
    acceptor: Acceptor,
    hands: Hands,
    peers: Peers,
    set: SelectSet,
    end: usize,
}

/// Serves with sets that hold descriptors below `end`.
fn select(context: &Arc<Context>, listeners: Vec<OwnedFd>, end: usize) -> Result<(), String> {
    let mut this = SelectLoop {
        acceptor: Acceptor::new(context, only(listeners)?, NEVER),
        hands: context.hands()?,
        peers: Peers::default(),
        set: SelectSet::default(),
        end,
    };
    for fd in [this.acceptor.as_fd(), context.stop.as_fd()] {
        if number(fd) >= end {
            return Err(format!(
                "the listening socket has descriptor {}, and select(2)'s fd_set ends at {end}",
                number(fd)
            ));
        }
        this.set.insert(fd, For::Bytes);
    }
    context.begun();
    let mut ready = Vec::new();
    while !context.is_stopping() {
        match this.set.wait() {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(cannot("wait for connections")(errno)),
        }
        let accepts = this.set.is_ready(this.acceptor.as_fd());
        ready.clear();
        ready.extend(this.set.ready());
        ready.iter().for_each(|&number| this.serve(number));
        if accepts {
            this.accept()?;
        }
    }
    Ok(())
}

impl SelectLoop {
    fn accept(&mut self) -> Result<(), String> {
        for _ in 0..BURST {
            let tally = &self.hands.answers.tally;
            match self.acceptor.take(tally).map_err(cannot("take a connection"))? {
                Taken::Connection(socket) if number(socket.as_fd()) >= self.end => {
                    tally.mishap(Mishap::BeyondSelect);
                }
                Taken::Connection(socket) => {
                    self.set.insert(socket.as_fd(), For::Bytes);
                    self.peers.insert(Box::new(Peer::new(socket)));
                }
                Taken::None | Taken::Over => return Ok(()),
            }
        }
        Ok(())
    }

    #[inline]
    fn serve(&mut self, number: usize) {
        // The listener and the eventfd are not among them.
        let Some(peer) = self.peers.get(number) else { return };
        let before = peer.wants;
        match peer.serve(&mut self.hands, Until::OneCall) {
            Wants::Nothing => {
                self.set.remove(peer.as_fd());
                drop(self.peers.take(number));
            }
            wants if wants == before => {}
            Wants::Room => self.set.insert(peer.as_fd(), For::Room),
            Wants::Bytes => self.set.insert(peer.as_fd(), For::Bytes),
        }
    }
}

/// `select_large`: as `select`, with sets that grow with the descriptors. The
/// kernel takes sets of any length; the C library's type and macros do not, so a
/// program has to make them itself.
///
/// Needs: a descriptor for each connection; a call takes longer the larger the
/// largest one is.
pub(super) static SELECT_LARGE: Entry = never_waits(
    "select_large",
    "select with larger sets than the C library has",
    |context, listeners| select(context, listeners, usize::MAX),
    LARGE_DOCS,
);

/// Its page in docs/models.md.
const LARGE_DOCS: Docs = Docs {
    path: &[
        "like select, with sets as long as the largest descriptor needs",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "select below 1024 descriptors, where the two should not differ, and poll \
        above.",
    not_shown: "What a portable program can do: the kernel takes larger sets, POSIX and the C \
        library do not.",
};

/// `poll`: one thread waits with poll(2) for every connection, with one array that
/// is kept, and looks at each place of it after each call.
///
/// Needs: a descriptor for each connection; a call takes longer the more there are.
pub(super) static POLL: Entry =
    never_waits("poll", "one thread, poll(2) over an array of all connections", poll, POLL_DOCS);

/// Places of the listener and of what says when to end; connections follow.
const LISTENER: usize = 0;
const FIRST_PEER: usize = 2;

/// Its page in docs/models.md.
const POLL_DOCS: Docs = Docs {
    path: &[
        "poll(2) with an array of all connections: `do_sys_poll` copies it in, `do_poll` calls \
         `tcp_poll` for each, joins each wait queue, and leaves it again",
        "the program searches the whole array for ready ones",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "epoll_lt: what it costs to pass every connection on every call. select: the \
        same with another kind of list.",
    not_shown: "Many busy connections: then one call returns many of them, and passing all costs \
        little for each.",
};

fn poll(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let mut acceptor = Acceptor::new(context, only(listeners)?, NEVER);
    let mut hands = context.hands()?;
    let (mut set, mut peers) = (PollSet::default(), Vec::new());
    set.push(acceptor.as_fd(), For::Bytes);
    set.push(context.stop.as_fd(), For::Bytes);
    context.begun();
    while !context.is_stopping() {
        match set.wait() {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(cannot("wait for connections")(errno)),
        }
        // Those that are taken now were not waited for.
        let accepts = set.is_ready(LISTENER);
        serve_ready(&mut set, &mut peers, &mut hands);
        for _ in 0..if accepts { BURST } else { 0 } {
            match acceptor.take(&hands.answers.tally).map_err(cannot("take a connection"))? {
                Taken::Connection(socket) => {
                    set.push(socket.as_fd(), For::Bytes);
                    peers.push(Peer::new(socket));
                }
                Taken::None | Taken::Over => break,
            }
        }
    }
    Ok(())
}

/// Serves every connection that the last call reported.
fn serve_ready(set: &mut PollSet, peers: &mut Vec<Peer>, hands: &mut Hands) {
    let mut index = 0;
    while let Some(peer) = peers.get_mut(index) {
        let place = FIRST_PEER + index;
        index += 1;
        if !set.is_ready(place) {
            continue;
        }
        let before = peer.wants;
        match peer.serve(hands, Until::OneCall) {
            Wants::Nothing => {
                // The last one gets its place, with what was reported of it.
                index -= 1;
                set.swap_remove(place);
                peers.swap_remove(index);
            }
            wants if wants == before => {}
            Wants::Room => set.set(place, For::Room),
            Wants::Bytes => set.set(place, For::Bytes),
        }
    }
}

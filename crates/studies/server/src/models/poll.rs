//! `poll`: one thread waits with poll(2) for every connection, with one array that
//! is kept, and looks at each place of it after each call.
//!
//! Needs: a descriptor for each connection; a call takes longer the more there are.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_sys::errno::Errno;
use iolens_sys::poll_set::{For, PollSet};

use super::entry::{Docs, Entry, never_waits, only};
use crate::acceptor::{Acceptor, BURST, Taken};
use crate::conversation::Wants;
use crate::ready::{Peer, Until};
use crate::{Context, Hands, NEVER, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry =
    never_waits("poll", "one thread, poll(2) over an array of all connections", run, DOCS);

/// Places of the listener and of what says when to end; connections follow.
const LISTENER: usize = 0;
const FIRST_PEER: usize = 2;

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
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

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
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

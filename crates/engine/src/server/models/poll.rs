//! `poll`: one thread waits with poll(2) for every connection, with one array that
//! is kept, and looks at each place of it after each call.
//!
//! Needs: a descriptor for each connection; a call takes longer the more there are.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_sys::errno::Errno;
use iolens_sys::poll_set::{For, PollSet};

use super::{Entry, never_waits, only};
use crate::server::acceptor::{Acceptor, BURST, Taken};
use crate::server::conversation::Wants;
use crate::server::ready::{Peer, Until};
use crate::server::{Context, Hands, NEVER, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry =
    never_waits("poll", "one thread with poll(2): an array of every connection, each time", run);

/// Places of the listener and of what says when to end; connections follow.
const LISTENER: usize = 0;
const FIRST_PEER: usize = 2;

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

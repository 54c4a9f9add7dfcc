//! `select`: one thread waits with select(2) for every connection. Its sets are as
//! long as the C library's `fd_set`, which ends at descriptor 1023: a connection
//! beyond that is closed and counted, where a program in C would write beyond the
//! end of the set.
//!
//! Needs: descriptors below 1024.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_model::served::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::select::{FD_SETSIZE, For, SelectSet};

use super::entry::{Docs, Entry, never_waits, only};
use crate::acceptor::{Acceptor, BURST, Taken};
use crate::conversation::Wants;
use crate::ready::{Peer, Peers, Until, number};
use crate::{Context, Hands, NEVER, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    needs: "descriptors below 1024 (FD_SETSIZE); further connections are closed and counted",
    descriptors_end: Some(FD_SETSIZE),
    ..never_waits(
        "select",
        "one thread, select(2) over sets of all descriptors",
        |context, listeners| run(context, listeners, FD_SETSIZE),
        DOCS,
    )
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
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
pub(super) fn run(
    context: &Arc<Context>,
    listeners: Vec<OwnedFd>,
    end: usize,
) -> Result<(), String> {
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

//! `iterative`: one thread takes a connection, serves it to its end, and takes the
//! next one. accept(2), recv(2) and send(2), each of which waits.
//!
//! Needs: nothing. Everybody else waits while one is served; who does not move
//! for the stall limit is given up.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::entry::{Docs, Entry, Makes, Workers, only};
use crate::acceptor::{Acceptor, Taken};
use crate::{BLOCKING, Context, blocking, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "iterative",
    summary: "one thread, one connection at a time",
    makes: Makes::Nothing,
    workers: Workers::None,
    needs: "one request per connection, or a single connection",
    descriptors_end: None,
    since: None,
    waiting: BLOCKING,
    many_that_stay: Err("it serves one connection to its end while the others wait"),
    others_wait: true,
    docs: DOCS,
    run,
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "accept4(2), blocking: `inet_csk_accept`, `inet_csk_wait_for_connect`",
        "recv(2) of at most 16 KiB, blocking: `tcp_recvmsg`, `sk_wait_data`, woken by \
         `sock_def_readable`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
        "close(2), then the next connection",
    ],
    compared_with: "fork and thread_per_connection with one connection at a time: what creating a \
        process or a thread for it costs.",
    not_shown: "Anything about several keep-alive connections: all but one wait in the kernel's \
        queue, and that wait is their latency.",
};

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let mut acceptor = Acceptor::new(context, only(listeners)?, BLOCKING);
    let mut hands = context.hands()?;
    context.begun();
    loop {
        match acceptor.take(&hands.answers.tally).map_err(cannot("take a connection"))? {
            Taken::Connection(socket) => {
                let Some(held) = context.live.hold(socket) else { return Ok(()) };
                blocking::serve(held.as_fd(), &mut hands);
            }
            Taken::None => {}
            Taken::Over => return Ok(()),
        }
    }
}

//! `epoll_et`: as `epoll_lt`, but each connection is reported once when something
//! came (edge-triggered), so it is read until a call brings less than it could.
//!
//! Needs: a descriptor for each connection.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::entry::{Docs, Entry, never_waits, only};
use super::epoll_lt::{EpollLoop, How};
use crate::Context;

/// The registry entry.
pub(super) static ENTRY: Entry =
    never_waits("epoll_et", "one thread, epoll(7), edge-triggered", run, DOCS);

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
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

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    EpollLoop::open(context, only(listeners)?, How::Edges)?.run(|| context.begun())
}

//! `epoll_et`: as `epoll_lt`, but each connection is reported once when something
//! came (edge-triggered), so it is read until a call brings less than it could.
//!
//! Needs: a descriptor for each connection.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::entry::{Docs, Entry, never_waits, only};
use super::epoll_lt::{EpollLoop, How};
use crate::server::Context;

/// The registry entry.
pub(super) static ENTRY: Entry =
    never_waits("epoll_et", "one thread with epoll(7), told once when something came", run, DOCS);

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "entered once: epoll_ctl(2), `ep_insert`, with `EPOLLET`",
        "epoll_wait(2) for up to 256 connections: `ep_poll`; what came is put on the list \
         by `ep_poll_callback`, and taken off it when it was told (`ep_send_events`)",
        "recv(2) of at most 16 KiB until a call brings less than it could: `tcp_recvmsg`",
        "one send(2) for all replies to it: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "epoll_lt, which differs in nothing but the trigger: what being told once saves, \
         and what reading until there is no more costs.",
    not_shown: "A saving of calls, where each request is short: one that brings less than the \
         buffer holds ends the reading, so both models make the same calls for it.",
};

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    EpollLoop::open(context, only(listeners)?, How::Edges)?.run(|| context.begun())
}

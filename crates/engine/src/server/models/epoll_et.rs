//! `epoll_et`: as `epoll_lt`, but each connection is reported once when something
//! came (edge-triggered), so it is read until a call brings less than it could.
//!
//! Needs: a descriptor for each connection.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::epoll_lt::{EpollLoop, How};
use super::{Entry, never_waits, only};
use crate::server::Context;

/// The registry entry.
pub(super) static ENTRY: Entry =
    never_waits("epoll_et", "one thread with epoll(7), told once when something came", run);

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    EpollLoop::open(context, only(listeners)?, How::Edges)?.run(|| context.begun())
}

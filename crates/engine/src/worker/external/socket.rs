//! What the socket of a program is like.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::sender::{NODELAY, NODELAY_OFF, OUR_SEND_BUFFER, SEND_BUFFER};
use iolens_sys::errno::Errno;
use iolens_sys::kin::{self, Tree};
use iolens_sys::proc::Root;
use iolens_sys::tcp;

use iolens_harness::op::Fact;

/// The options of a program's connection, which are its own. That it may not be looked at is one of
/// these facts.
pub(super) fn facts(pid: u32, receiver: SocketAddr, lane: BorrowedFd<'_>) -> Vec<Fact> {
    let root = Root::real();
    let mut sockets = Vec::new();
    for pid in Tree::below(&root, pid).processes {
        match kin::sockets_of(&root, pid) {
            Ok(own) => sockets.extend(own),
            // It has ended meanwhile.
            Err(Errno::ENOENT | Errno::ESRCH) => {}
            Err(errno) => {
                return vec![("socket options", format!("cannot be read: {errno}"))];
            }
        }
    }
    let is_its = |fd: &OwnedFd| tcp::is_connected_to(fd.as_fd(), receiver);
    let own = sockets.iter().find(|fd| is_its(fd)).map(|fd| tcp::read_back(fd.as_fd()));
    let Some(Ok(own)) = own else { return Vec::new() };
    let nodelay = if own.nodelay { "on" } else { NODELAY_OFF };
    let mut facts = vec![
        (NODELAY, nodelay.to_owned()),
        (SEND_BUFFER, own.send_buffer_bytes.to_string()),
        ("congestion control", own.congestion),
    ];
    // The lane has the options of our methods' connections.
    let ours = tcp::read_back(lane).ok();
    facts.extend(ours.map(|ours| (OUR_SEND_BUFFER, ours.send_buffer_bytes.to_string())));
    facts
}

//! Ports for datagrams, which anybody can send to: each has one peer, and who else comes is
//! heard by a socket beside it, so that no byte of it is counted, but the datagram is. One that
//! names the peer's address and port as its own is not told from the peer's.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::trial::Trial;
use iolens_sys::udp::{self, Watched};

use super::{failed, options};
use crate::worker::protocol::Failure;

/// The ports of an end.
#[derive(Debug, Default)]
pub(super) struct Ports {
    watches: Vec<OwnedFd>,
    /// Strange datagrams that came before a port had its peer.
    early: u64,
}

impl Ports {
    /// A socket at a new port, for a peer that is not known yet.
    ///
    /// Errors: what was tried and what the system said.
    pub(super) fn open(&mut self, trial: &Trial, at: IpAddr) -> Result<OwnedFd, Failure> {
        let options = options(trial);
        let at = SocketAddr::new(at, 0);
        let Watched { data, watch } = udp::watched(at, options.buffer_bytes, options.stall_limit)?;
        self.watches.push(watch);
        Ok(data)
    }

    /// Gives a port its peer, which has sent nothing yet.
    ///
    /// Errors: what was tried and what the system said.
    pub(super) fn connect(&mut self, fd: BorrowedFd<'_>, to: SocketAddr) -> Result<(), Failure> {
        udp::connect_to(fd, to)?;
        // What has come already stays in the queue of a socket that is connected.
        let early = udp::drain(fd).map_err(|e| failed("look who came to a UDP port", e))?;
        self.early += early as u64;
        Ok(())
    }

    /// Strange datagrams so far, at least: what its queue has no room for is lost. `None` without
    /// a port. Each is counted once.
    pub(super) fn strangers(&self) -> Option<u64> {
        let waiting = |watch: &OwnedFd| udp::drain(watch.as_fd()).unwrap_or(0) as u64;
        let waiting = self.watches.iter().map(waiting).sum::<u64>();
        (!self.watches.is_empty()).then_some(self.early + waiting)
    }
}

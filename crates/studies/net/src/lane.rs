//! A lane: what one thread of an arm sends over or receives from, and the
//! connection on which the ends keep step where that is another one; and the bytes with which they
//! do so: a `ready`, a receipt, a release.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::tcp::{self, SetupError};
use iolens_sys::{pipe, poll, socket, udp, unix};

/// One end of a lane.
#[derive(Debug)]
pub struct Lane {
    transport: Transport,
    data: OwnedFd,
    /// Goes both ways and loses nothing; `None` where `data` does for that, too.
    back: Option<OwnedFd>,
}

impl Lane {
    /// A connection, which does for both.
    pub fn connection(transport: Transport, fd: OwnedFd) -> Lane {
        Lane { transport, data: fd, back: None }
    }

    /// What does not go both ways or may lose something, and a connection beside.
    pub fn beside(transport: Transport, data: OwnedFd, back: OwnedFd) -> Lane {
        Lane { transport, data, back: Some(back) }
    }

    /// With a connection beside it, if there is to be one.
    pub fn with_back(self, back: Option<OwnedFd>) -> Lane {
        Lane { back: back.or(self.back), ..self }
    }

    /// The connection alone.
    pub fn into_connection(self) -> OwnedFd {
        self.back.unwrap_or(self.data)
    }

    /// What it is.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// What messages are sent over or received from.
    pub fn data(&self) -> BorrowedFd<'_> {
        self.data.as_fd()
    }

    /// What the sending end tells the receiving one over, between slices.
    pub fn forth(&self) -> BorrowedFd<'_> {
        match self.transport {
            Transport::Pipe | Transport::Udp => self.back(),
            _ => self.data(),
        }
    }

    /// What the receiving end tells the sending one over.
    pub fn back(&self) -> BorrowedFd<'_> {
        self.back.as_ref().unwrap_or(&self.data).as_fd()
    }

    /// What a request for a message goes over: the way of the messages, unless
    /// that is a one-way street.
    pub fn requests(&self) -> BorrowedFd<'_> {
        match self.transport {
            Transport::Pipe => self.back(),
            _ => self.data(),
        }
    }

    /// The way of the messages, where it is a TCP connection that knows its
    /// segments.
    pub fn tcp(&self) -> Option<BorrowedFd<'_>> {
        matches!(self.transport, Transport::Tcp | Transport::Mptcp).then(|| self.data())
    }

    /// Ends it, which wakes whoever waits on it.
    pub fn hang_up(&self) {
        // The peer may have gone already, which is as good.
        let _ = tcp::hang_up(self.back());
        let _ = match self.transport {
            // At the end that reads this fails, and the other end's does it.
            Transport::Pipe => pipe::finish_writing(self.data()),
            _ => tcp::hang_up(self.data()),
        };
    }

    /// Sets the receiving thread free that still waits for messages, or for the
    /// word that the slice is over.
    ///
    /// Errors: of write(2) and send(2).
    pub fn release(&self, is_rr: bool) -> Result<(), Errno> {
        match (self.transport(), is_rr) {
            // What a reader of the pipe waits for comes through the pipe.
            (Transport::Pipe, false) => loop {
                match socket::write(self.data(), &[0]) {
                    Ok(_) => return Ok(()),
                    Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno),
                }
            },
            _ => send_byte(self.forth()),
        }
    }

    /// Ends the stream of messages of this end.
    ///
    /// Errors: of shutdown(2), or of what a pipe has instead.
    pub fn finish_sending(&self) -> Result<(), Errno> {
        match self.transport() {
            Transport::Pipe => pipe::finish_writing(self.data()),
            _ => tcp::finish_sending(self.data()),
        }
    }

    /// Says that all datagrams of a slice were sent, with an empty one, until the
    /// receipt comes: it may be lost like any other.
    ///
    /// Errors: `EAGAIN` when no receipt came within `limit`; of send(2) and poll(2).
    pub fn finish_datagrams(&self, limit: Duration) -> Result<(), Errno> {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let mut waited_ns = 0;
        while waited_ns < limit_ns {
            match socket::send(self.data(), &[]) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            let pause_ns = pause_ns(waited_ns);
            match poll::readable(&[self.back()], pause_ns) {
                Ok(ready) if ready == [true] => return receive_byte(self.back()),
                Ok(_) | Err(Errno::EINTR) => waited_ns += pause_ns,
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EAGAIN)
    }
}

/// How long a receipt is waited for before the end of a slice is said again, ns. The wait is in the
/// slice's time: with a full queue the end is lost, and the receiver is idle once it is empty.
fn pause_ns(waited_ns: u64) -> u64 {
    (waited_ns / 4).clamp(50_000, 2_000_000)
}

/// Both ends of a lane within this process, over loopback, datagrams between ports
/// of `at`: to try things. The sender's is the first.
///
/// Errors: the step that failed.
pub fn pair(
    transport: Transport,
    at: IpAddr,
    options: &tcp::Options,
) -> Result<[Lane; 2], SetupError> {
    let tcp::Options { buffer_bytes, stall_limit, .. } = *options;
    match transport {
        Transport::Tcp | Transport::Mptcp => {
            let multipath = transport == Transport::Mptcp;
            let (near, far) = over_loopback(&tcp::Options { multipath, ..options.clone() })?;
            Ok([near, far].map(|fd| Lane::connection(transport, fd)))
        }
        Transport::UnixStream => {
            let (near, far) = unix::pair(buffer_bytes, stall_limit)?;
            Ok([near, far].map(|fd| Lane::connection(transport, fd)))
        }
        Transport::Pipe => {
            let (near, far) = unix::pair(buffer_bytes, stall_limit)?;
            let (read, write) = open_pipe(buffer_bytes)?;
            Ok([Lane::beside(transport, write, near), Lane::beside(transport, read, far)])
        }
        Transport::Udp => {
            let (near, far) = over_loopback(options)?;
            let any = SocketAddr::new(at, 0);
            let open = || udp::bound(any, buffer_bytes, stall_limit);
            let (tx, rx) = (open()?, open()?);
            for (from, to) in [(&tx, &rx), (&rx, &tx)] {
                let port = udp::port(to.as_fd())?;
                udp::connect_to(from.as_fd(), SocketAddr::new(any.ip(), port))?;
            }
            Ok([Lane::beside(transport, tx, near), Lane::beside(transport, rx, far)])
        }
    }
}

/// Both ends of a TCP connection over loopback.
pub(crate) fn over_loopback(options: &tcp::Options) -> Result<(OwnedFd, OwnedFd), SetupError> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = tcp::Listener::open(&any, options, 1)?;
    let near = tcp::connect_to(&listener.address()?, options)?;
    Ok((near, listener.accept()?))
}

/// A pipe: the end to read from, the end to write to.
pub fn open_pipe(bytes: usize) -> Result<(OwnedFd, OwnedFd), SetupError> {
    pipe::open(bytes).map_err(|errno| SetupError { tried: "make a pipe".to_owned(), errno })
}

/// Both ends of a connection over loopback within this process, with short
/// waits: for calibration.
///
/// Errors: the step that failed.
pub fn connected_pair() -> Result<(OwnedFd, OwnedFd), tcp::SetupError> {
    over_loopback(&short_options(Duration::from_secs(1)))
}

/// Options for what is only tried.
pub fn short_options(stall_limit: Duration) -> tcp::Options {
    tcp::Options {
        congestion: "reno".to_owned(),
        buffer_bytes: 64 << 10,
        nodelay: true,
        stall_limit,
        multipath: false,
    }
}

/// Receives one byte: a `ready`, a receipt or a release.
///
/// Errors: `ENODATA` when the peer ended the stream, else of recv(2).
pub fn receive_byte(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    receive_exactly(fd, &mut [0])
}

/// Receives one byte that says something.
///
/// Errors: as [`receive_byte`].
pub fn receive_one(fd: BorrowedFd<'_>) -> Result<u8, Errno> {
    let mut byte = [0];
    receive_exactly(fd, &mut byte).map(|()| byte[0])
}

/// Receives as many bytes as there is room for.
pub fn receive_exactly(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    while filled < bytes.len() {
        match socket::recv(fd, &mut bytes[filled..]) {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(n) => filled += n,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Sends one such byte.
///
/// Errors: of send(2).
pub fn send_byte(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    send(fd, 0)
}

/// Sends one byte that says something.
///
/// Errors: of send(2).
#[inline]
pub fn send(fd: BorrowedFd<'_>, byte: u8) -> Result<(), Errno> {
    loop {
        match socket::send(fd, &[byte]) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Whether an error only says that the process at the other end has gone,
/// which is then the reason.
pub fn tells_of_the_peer(errno: Errno) -> bool {
    const OF_THE_PEER: [Errno; 6] = [
        Errno::ENODATA,
        Errno::EPIPE,
        Errno::ECONNRESET,
        Errno::ECONNREFUSED,
        Errno::ECONNABORTED,
        Errno::ENOTCONN,
    ];
    OF_THE_PEER.contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_end_is_said_again_before_much_more_time_has_gone() {
        let mut waited_ns = 0;
        for _ in 0..64 {
            let pause = pause_ns(waited_ns);
            assert!(pause <= (waited_ns / 4).max(50_000) && (50_000..=2_000_000).contains(&pause));
            waited_ns += pause;
        }
        assert_eq!(pause_ns(waited_ns), 2_000_000);
    }
}

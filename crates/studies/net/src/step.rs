//! The bytes with which the two ends of a trial keep step: a `ready`, a receipt, a release.

use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::socket;

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

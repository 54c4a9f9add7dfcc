//! Pairs of stream sockets of `AF_UNIX` (unix(7)): between two processes that may stand in
//! different network namespaces, and with which one hands descriptors to the other. They have no
//! name, so that nobody else can connect to them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    sockopt,
};

use crate::errno::Errno;
use crate::tcp::{SetupError, limit_waits, step};

/// Most descriptors that go along with one message.
pub const DESCRIPTORS_MAX: usize = 2;

/// Both ends of a connection, with these buffers and time limits.
///
/// Errors: the step that failed.
pub fn pair(buffer_bytes: usize, limit: Duration) -> Result<(OwnedFd, OwnedFd), SetupError> {
    let made = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let (near, far) = step("make a pair of Unix sockets", made)?;
    for fd in [&near, &far] {
        step("set SO_SNDBUF", sockopt::set_socket_send_buffer_size(fd, buffer_bytes))?;
        step("set SO_RCVBUF", sockopt::set_socket_recv_buffer_size(fd, buffer_bytes))?;
        limit_waits(fd.as_fd(), limit)?;
    }
    Ok((near, far))
}

/// Sends bytes with descriptors (`SCM_RIGHTS`).
///
/// Errors: see sendmsg(2); `EMSGSIZE` where not all bytes or too many descriptors
/// were to go.
pub fn send_with(
    fd: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::EMSGSIZE);
    }
    let sent = sendmsg(fd, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(Errno::EMSGSIZE) }
}

/// Receives at most `bytes` with the descriptors that came along; 0 bytes are
/// the end.
///
/// Errors: see recvmsg(2); `EAGAIN` when the socket's time-out passed.
pub fn receive_with(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(fd, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok((got.bytes, descriptors.flatten().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pipe, socket as calls};

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn descriptors_go_from_one_end_to_the_other() {
        let (near, far) = pair(4096, LIMIT).unwrap();
        let (read, write) = pipe::open(4096).unwrap();
        send_with(near.as_fd(), b"pipe", &[read.as_fd()]).unwrap();
        let mut bytes = [0; 4];
        let (got, descriptors) = receive_with(far.as_fd(), &mut bytes).unwrap();
        assert_eq!((got, &bytes, descriptors.len()), (4, b"pipe", 1));
        calls::write(write.as_fd(), b"through").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(calls::read(descriptors[0].as_fd(), &mut buffer), Ok(7));
        drop(near);
        let (got, descriptors) = receive_with(far.as_fd(), &mut bytes).unwrap();
        assert_eq!((got, descriptors.len()), (0, 0));
    }
}

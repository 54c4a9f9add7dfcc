//! Stream sockets of `AF_UNIX` (unix(7)): between two processes that may stand
//! in different network namespaces, and with which one hands descriptors to the
//! other. No name of them is ever in the file system.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, getsockname, listen, recvmsg, sendmsg, socket_with, socketpair, sockopt,
};

use crate::errno::Errno;
use crate::tcp::{SetupError, limit_waits, step};

/// Most descriptors that go along with one message.
pub const DESCRIPTORS_MAX: usize = 2;

/// A socket without a name. It belongs to the network namespace in which it is
/// made, wherever its process goes, and so does a name that it gets later.
///
/// Errors: the step that failed.
pub fn socket() -> Result<OwnedFd, SetupError> {
    let opened = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    step("open a Unix socket", opened)
}

/// Gives a socket an abstract name of the kernel's choosing ("autobind") and
/// waits for connections; the name.
///
/// Errors: the step that failed.
pub fn listen_at_any_name(fd: BorrowedFd<'_>, limit: Duration) -> Result<Vec<u8>, SetupError> {
    step("give a Unix socket a name", bind(fd, &SocketAddrUnix::new_unnamed()))?;
    step("listen on a Unix socket", listen(fd, 64))?;
    limit_waits(fd, limit)?;
    let address = step("read the name of a Unix socket", getsockname(fd))?;
    let address = SocketAddrUnix::try_from(address).map_err(|e| SetupError {
        tried: "read the name of a Unix socket".into(),
        errno: e.into(),
    })?;
    Ok(address.abstract_name().unwrap_or_default().to_vec())
}

/// Takes the next connection, waiting no longer than the limit.
///
/// Errors: `EAGAIN` when nobody came.
pub fn accept(fd: BorrowedFd<'_>, limit: Duration) -> Result<OwnedFd, SetupError> {
    let fd = step("accept a Unix connection", accept_with(fd, SocketFlags::CLOEXEC))?;
    limit_waits(fd.as_fd(), limit)?;
    Ok(fd)
}

/// Connects a socket to one with an abstract name.
///
/// Errors: `ECONNREFUSED` where nobody listens.
pub fn connect_to(fd: BorrowedFd<'_>, name: &[u8], limit: Duration) -> Result<(), SetupError> {
    limit_waits(fd, limit)?;
    let address = step("name a Unix socket", SocketAddrUnix::new_abstract_name(name))?;
    step("connect to a Unix socket", connect(fd, &address))
}

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
    fn descriptors_go_to_whoever_knows_the_name() {
        let (door, caller) = (socket().unwrap(), socket().unwrap());
        let name = listen_at_any_name(door.as_fd(), LIMIT).unwrap();
        assert!(!name.is_empty());
        connect_to(caller.as_fd(), &name, LIMIT).unwrap();
        let answering = accept(door.as_fd(), LIMIT).unwrap();
        let (read, write) = pipe::open(4096).unwrap();
        send_with(caller.as_fd(), b"pipe", &[read.as_fd()]).unwrap();
        let mut bytes = [0; 4];
        let (got, descriptors) = receive_with(answering.as_fd(), &mut bytes).unwrap();
        assert_eq!((got, &bytes, descriptors.len()), (4, b"pipe", 1));
        calls::write(write.as_fd(), b"through").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(calls::read(descriptors[0].as_fd(), &mut buffer), Ok(7));
        drop(caller);
        let (got, descriptors) = receive_with(answering.as_fd(), &mut bytes).unwrap();
        assert_eq!((got, descriptors.len()), (0, 0));
    }

    #[test]
    fn nobody_listens_at_a_name_that_nobody_has() {
        let fd = socket().unwrap();
        let error = connect_to(fd.as_fd(), b"iolens-nobody", LIMIT).unwrap_err().to_string();
        assert!(error.starts_with("cannot connect to a Unix socket: ECONNREFUSED"), "{error}");
    }
}

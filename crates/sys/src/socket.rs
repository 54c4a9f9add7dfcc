//! The socket calls that are measured, exactly as a program makes them: the C
//! library's wrapper, no retry, no loop.
//!
//! # Safety
//! Each wrapper passes a pointer and a length that come from one live slice.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{SocketType, sockopt};

use crate::errno::Errno;

/// Whether a socket keeps the order of its bytes and not the bounds of what was
/// sent (`SO_TYPE` is `SOCK_STREAM`).
///
/// Errors: see getsockopt(2); `ENOTSOCK` for another descriptor.
pub fn is_stream(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(sockopt::socket_type(fd)? == SocketType::STREAM)
}

/// The CPU that took in what came last for a connection or a connected port
/// (`SO_INCOMING_CPU`, socket(7); net/core/sock.c, `sk_getsockopt`); `None` where nothing came.
///
/// Errors: see getsockopt(2).
pub fn incoming_cpu(fd: BorrowedFd<'_>) -> Result<Option<u32>, Errno> {
    let cpu = sockopt::socket_incoming_cpu(fd)?;
    // -1 until something comes (sock_init_data).
    Ok(Some(cpu).filter(|cpu| i32::try_from(*cpu).is_ok()))
}

/// Has a call that would sleep until something arrives poll the device first, for so many
/// microseconds (`SO_BUSY_POLL`, socket(7)).
///
/// Errors: `EPERM` where only root may ask for more than `net.core.busy_read`; `ENOPROTOOPT`
/// without `CONFIG_NET_RX_BUSY_POLL`.
pub fn poll_busily(fd: BorrowedFd<'_>, us: u32) -> Result<(), Errno> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &us.to_ne_bytes())
}

/// Sets an option that rustix does not know, to a value without pointers.
///
/// Errors: see setsockopt(2).
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> Result<(), Errno> {
    #[expect(clippy::cast_possible_truncation, reason = "an int, or a name of the kernel's")]
    let length = value.len() as libc::socklen_t;
    // SAFETY: pointer and length are those of `value`, which the kernel only reads.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

/// Sends from one buffer; returns how many bytes the kernel accepted, which
/// may be fewer. `MSG_NOSIGNAL`: a closed peer is `EPIPE`, never a signal.
///
/// Errors: see send(2); `EAGAIN` when the socket's send time-out passed.
#[inline]
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are those of `bytes`, which the kernel only reads.
    let n = unsafe {
        libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
    };
    count(n)
}

/// Sends from several buffers in order with sendmsg(2); otherwise as [`send`].
///
/// Errors: see sendmsg(2); `EMSGSIZE` above 1024 buffers (`UIO_MAXIOV`).
#[inline]
pub fn sendmsg(fd: BorrowedFd<'_>, iovec: &[IoSlice<'_>]) -> Result<usize, Errno> {
    // SAFETY: an all-zero msghdr is valid: no name, no iovec, no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice is guaranteed to have the layout of iovec; sendmsg only reads it.
    header.msg_iov = iovec.as_ptr().cast::<libc::iovec>().cast_mut();
    header.msg_iovlen = iovec.len();
    // SAFETY: the header points at `iovec`, whose slices live for this call, and
    // the kernel only reads through it.
    let n = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    count(n)
}

/// Writes from one buffer with write(2), which knows nothing of sockets; may
/// take fewer bytes than there are. It has no flag against `SIGPIPE`, which
/// Rust's runtime ignores, so that a closed peer is `EPIPE` here too.
///
/// Errors: see write(2); `EAGAIN` when the socket's send time-out passed.
#[inline]
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are those of `bytes`, which the kernel only reads.
    let n = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    count(n)
}

/// Writes from several buffers in order with writev(2); otherwise as [`write`].
///
/// Errors: see writev(2); `EINVAL` above 1024 buffers (`UIO_MAXIOV`).
#[inline]
pub fn writev(fd: BorrowedFd<'_>, iovec: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let buffers = libc::c_int::try_from(iovec.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: IoSlice is guaranteed to have the layout of iovec; its slices live
    // for this call, and the kernel only reads through them.
    let n = unsafe { libc::writev(fd.as_raw_fd(), iovec.as_ptr().cast(), buffers) };
    count(n)
}

/// Receives into several buffers in order with recvmsg(2); 0 is the end of the
/// stream.
///
/// Errors: see recvmsg(2); `EAGAIN` when the socket's receive time-out passed,
/// `EMSGSIZE` above 1024 buffers (`UIO_MAXIOV`).
#[inline]
pub fn recvmsg(fd: BorrowedFd<'_>, iovec: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
    // SAFETY: an all-zero msghdr is valid: no name, no iovec, no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSliceMut is guaranteed to have the layout of iovec.
    header.msg_iov = iovec.as_mut_ptr().cast::<libc::iovec>();
    header.msg_iovlen = iovec.len();
    // SAFETY: the header points at `iovec`, whose slices are exclusively ours
    // for this call; the kernel writes within them.
    let n = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, 0) };
    count(n)
}

/// Takes at most `bytes` out of a TCP socket's queue and throws them away
/// (`MSG_TRUNC`; tcp(7)): nothing is copied. 0 is the end of the stream. On
/// sockets that are not TCP the flag means something else.
///
/// Errors: as [`recv`].
#[inline]
pub fn discard(fd: BorrowedFd<'_>, bytes: usize) -> Result<usize, Errno> {
    // SAFETY: with this flag TCP writes nowhere (tcp_recvmsg_locked), and a
    // kernel that would write fails on the null pointer with EFAULT.
    let n = unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), bytes, libc::MSG_TRUNC) };
    count(n)
}

/// Receives into one buffer; 0 is the end of the stream.
///
/// Errors: see recv(2); `EAGAIN` when the socket's receive time-out passed.
#[inline]
pub fn recv(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are those of `buffer`, exclusively ours for this call.
    let n = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    count(n)
}

/// As [`recv`], and waits for nothing (`MSG_DONTWAIT`).
///
/// Errors: see recv(2); `EAGAIN` where nothing has come.
#[inline]
pub fn recv_now(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (bytes, flags) = (buffer.len(), libc::MSG_DONTWAIT);
    // SAFETY: as above.
    let n = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), bytes, flags) };
    count(n)
}

/// Reads into one buffer with read(2), from a pipe for instance; 0 is the end.
///
/// Errors: see read(2).
#[inline(always)]
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are those of `buffer`, exclusively ours for this call.
    let n = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    count(n)
}

/// Reads into several buffers in order with readv(2); otherwise as [`read`].
///
/// Errors: see readv(2); `EINVAL` above 1024 buffers (`UIO_MAXIOV`).
#[inline(always)]
pub fn readv(fd: BorrowedFd<'_>, iovec: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
    let buffers = libc::c_int::try_from(iovec.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: IoSliceMut is guaranteed to have the layout of iovec; its slices are
    // exclusively ours for this call, and the kernel writes within them.
    let n = unsafe { libc::readv(fd.as_raw_fd(), iovec.as_mut_ptr().cast(), buffers) };
    count(n)
}

/// A byte count, or the error that a negative one stands for.
#[inline(always)]
pub(crate) fn count(n: isize) -> Result<usize, Errno> {
    usize::try_from(n).map_err(|_| Errno::last())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_arrive_in_order() {
        let (a, b) = UnixStream::pair().unwrap();
        assert_eq!(send(a.as_fd(), b"one "), Ok(4));
        assert_eq!(sendmsg(a.as_fd(), &[IoSlice::new(b"two "), IoSlice::new(b"three")]), Ok(9));
        assert_eq!(write(a.as_fd(), b" four"), Ok(5));
        assert_eq!(writev(a.as_fd(), &[IoSlice::new(b" fi"), IoSlice::new(b"ve")]), Ok(5));
        let mut buffer = [0u8; 32];
        let n = recv(b.as_fd(), &mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"one two three four five");
    }

    #[test]
    fn separate_buffers_are_filled_in_order() {
        let (a, b) = UnixStream::pair().unwrap();
        send(a.as_fd(), b"one two").unwrap();
        let (mut first, mut second) = ([0u8; 3], [0u8; 32]);
        let mut iovec = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(recvmsg(b.as_fd(), &mut iovec), Ok(7));
        assert_eq!((&first, &second[..4]), (b"one", &b" two"[..]));
    }

    #[test]
    fn a_closed_peer_is_an_error_and_no_signal() {
        let (a, b) = UnixStream::pair().unwrap();
        drop(b);
        assert_eq!(send(a.as_fd(), b"x"), Err(Errno::EPIPE));
        assert_eq!(write(a.as_fd(), b"x"), Err(Errno::EPIPE));
        assert_eq!(writev(a.as_fd(), &[IoSlice::new(b"x")]), Err(Errno::EPIPE));
        assert_eq!(recv(a.as_fd(), &mut [0u8; 4]), Ok(0));
    }

    #[test]
    fn too_many_buffers_are_refused_by_the_kernel() {
        let (a, _b) = UnixStream::pair().unwrap();
        let iovec = vec![IoSlice::new(b"x"); 1025];
        assert_eq!(sendmsg(a.as_fd(), &iovec), Err(Errno::EMSGSIZE));
        assert_eq!(writev(a.as_fd(), &iovec), Err(Errno::EINVAL));
    }
}

//! Sends that pin the caller's pages instead of copying them, and the error
//! queue that says when the pages are free again; see
//! Documentation/networking/msg_zerocopy.rst of the kernel.
//!
//! # Safety
//! Pointers and lengths come from live slices and from structs on this
//! module's stack; control data is read unaligned and only as far as the kernel
//! says that it wrote.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::errno::Errno;
use crate::socket;

/// Room for the one control message that an error queue's entry has: header,
/// `sock_extended_err`, and the offender's address, which is empty here.
const CONTROL_BYTES: usize = 128;

/// include/uapi/linux/errqueue.h; libc does not have them.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Sizes as the kernel's interface counts them.
const INT_BYTES: libc::socklen_t = 4;
const EXTENDED_ERR_BYTES: u32 = 16;
const _: () = assert!(size_of::<libc::c_int>() == INT_BYTES as usize);
const _: () = assert!(size_of::<libc::sock_extended_err>() == EXTENDED_ERR_BYTES as usize);

/// A range of zero-copy calls whose pages the kernel has released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Id of the first call, counted per socket from 0, wrapping at 2^32.
    pub first: u32,
    /// Id of the last call, inclusive.
    pub last: u32,
    /// Whether the kernel says that it copied the bytes after all
    /// (`SO_EE_CODE_ZEROCOPY_COPIED`); `None` where it does not say.
    pub copied: Option<bool>,
}

/// Allows zero-copy sends on a socket and reads back that they are: without
/// it TCP ignores `MSG_ZEROCOPY` in silence.
///
/// Errors: see setsockopt(2); `EOPNOTSUPP` where the option did not stay set.
pub fn enable(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    socket::set_option(fd, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &on.to_ne_bytes())?;
    let mut set: libc::c_int = 0;
    let mut length = INT_BYTES;
    // SAFETY: the kernel writes at most `length` bytes to `set`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ZEROCOPY,
            (&raw mut set).cast(),
            &raw mut length,
        )
    };
    match (result, set) {
        (0, 0) => Err(Errno::EOPNOTSUPP),
        (0, _) => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// Whether TCP sockets here take zero-copy sends: a socket is made and closed.
///
/// Errors: as [`enable`], and those of socket(2).
pub fn try_enable() -> Result<(), Errno> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let kind = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    enable(socket.as_fd())
}

/// Sends from several buffers with `MSG_ZEROCOPY`; each successful call takes
/// the socket's next id. The bytes must stay as they are until that id has
/// completed: the kernel may read them until then.
///
/// Errors: see sendmsg(2); `ENOBUFS` where locked memory or `optmem_max` is
/// used up.
#[inline]
pub fn sendmsg(fd: BorrowedFd<'_>, iovec: &[IoSlice<'_>]) -> Result<usize, Errno> {
    // SAFETY: an all-zero msghdr is valid: no name, no iovec, no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice is guaranteed to have the layout of iovec; sendmsg only reads it.
    header.msg_iov = iovec.as_ptr().cast::<libc::iovec>().cast_mut();
    header.msg_iovlen = iovec.len();
    let flags = libc::MSG_NOSIGNAL | libc::MSG_ZEROCOPY;
    // SAFETY: the header points at `iovec`, whose slices live for this call. The
    // kernel pins their pages and only reads them, now or later.
    let n = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, flags) };
    usize::try_from(n).map_err(|_| Errno::last())
}

/// The next entry of the error queue, if there is one; never waits.
///
/// Errors: see recvmsg(2); `EMSGSIZE` for an entry that was cut off (it is
/// lost), `EBADMSG` for one that is no zero-copy completion.
pub fn completion(fd: BorrowedFd<'_>) -> Result<Option<Completion>, Errno> {
    let mut control = [0u64; CONTROL_BYTES / 8];
    // SAFETY: an all-zero msghdr is valid: no name, no iovec, no control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header points at `control`, of which the kernel writes at most
    // `msg_controllen` bytes; both live on this stack.
    let n = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) };
    if n < 0 {
        return match Errno::last() {
            Errno::EAGAIN => Ok(None),
            errno => Err(errno),
        };
    }
    if header.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(Errno::EMSGSIZE);
    }
    // SAFETY: the header is as recvmsg left it.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    if first.is_null() {
        return Err(Errno::EBADMSG);
    }
    // SAFETY: not null, and aligned as `control` is.
    let (level, kind, length) =
        unsafe { ((*first).cmsg_level, (*first).cmsg_type, (*first).cmsg_len) };
    let of_ip = (level, kind) == (libc::SOL_IP, libc::IP_RECVERR)
        || (level, kind) == (libc::SOL_IPV6, libc::IPV6_RECVERR);
    // SAFETY: arithmetic on lengths only.
    let wanted = unsafe { libc::CMSG_LEN(EXTENDED_ERR_BYTES) } as usize;
    if !of_ip || length < wanted {
        return Err(Errno::EBADMSG);
    }
    // SAFETY: the message is at least as long as the struct that is read from
    // behind its header; unaligned, because nothing says how it is aligned.
    let said: libc::sock_extended_err =
        unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(first).cast()) };
    if said.ee_errno != 0 || said.ee_origin != SO_EE_ORIGIN_ZEROCOPY {
        return Err(Errno::EBADMSG);
    }
    Ok(Some(Completion {
        first: said.ee_info,
        last: said.ee_data,
        copied: Some(said.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0),
    }))
}

/// Waits until the error queue has an entry; `false` when the time is over.
///
/// Errors: the socket's own error, `ENOTCONN` when the connection has ended,
/// `EINTR` when a handled signal arrived.
pub fn wait(fd: BorrowedFd<'_>, timeout_ns: u64) -> Result<bool, Errno> {
    // POLLERR and POLLHUP are reported unasked; nothing else is wanted.
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let timeout = Timespec {
        tv_sec: (timeout_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (timeout_ns % 1_000_000_000).cast_signed(),
    };
    if rustix::event::poll(&mut polled, Some(&timeout))? == 0 {
        return Ok(false);
    }
    let happened = polled[0].revents();
    if !happened.contains(PollFlags::ERR) {
        return Err(Errno::ENOTCONN);
    }
    // An entry and the socket's own error look alike; reading the error takes
    // it away, so it is returned here.
    match rustix::net::sockopt::socket_error(fd)? {
        Ok(()) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::{socket, tcp};

    #[test]
    fn ids_complete_once_and_loopback_says_that_it_copied() {
        let (tx, rx) = tcp::loopback_pair(256 << 10);
        enable(tx.as_fd()).unwrap();
        let payload = vec![7u8; 32 << 10];
        for _ in 0..3 {
            assert_eq!(sendmsg(tx.as_fd(), &[IoSlice::new(&payload)]), Ok(payload.len()));
        }
        let (mut got, mut piece) = (0, vec![0; 64 << 10]);
        while got < 3 * payload.len() {
            got += socket::recv(rx.as_fd(), &mut piece).unwrap();
        }
        let mut done = Vec::new();
        while done.len() < 3 {
            assert!(wait(tx.as_fd(), 10_000_000_000).unwrap(), "only {done:?} completed");
            while let Some(range) = completion(tx.as_fd()).unwrap() {
                assert_eq!(range.copied, Some(true), "loopback cannot do without a copy");
                done.extend(range.first..=range.last);
            }
        }
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2]);
        assert_eq!(completion(tx.as_fd()), Ok(None));
        assert_eq!(wait(tx.as_fd(), 0), Ok(false));
    }

    #[test]
    fn where_there_is_no_zero_copy_it_is_refused_loudly() {
        let (tx, _rx) = UnixStream::pair().unwrap();
        assert!(enable(tx.as_fd()).is_err());
    }
}

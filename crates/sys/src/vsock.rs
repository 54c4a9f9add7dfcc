//! Whether sockets of `AF_VSOCK` (vsock(7)) reach this machine itself: between a
//! guest and its host they need both, and one machine has but the loopback.
//!
//! # Safety
//! The address lives on the stack of the caller for the whole call.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use crate::errno::Errno;
use crate::tcp::SetupError;

/// The size of an address as the kernel's interface counts it.
const ADDRESS_BYTES: libc::socklen_t = 16;
const _: () = assert!(size_of::<libc::sockaddr_vm>() == ADDRESS_BYTES as usize);

/// Connects to this machine by its own context (`VMADDR_CID_LOCAL`, Linux 5.6),
/// waiting no longer than `limit`.
///
/// Errors: the step that failed; `EAFNOSUPPORT` where the kernel has no such
/// sockets, `ETIMEDOUT` or `ENODEV` where nothing carries them here
/// (`CONFIG_VSOCKETS_LOOPBACK`).
pub fn try_loopback(limit: Duration) -> Result<(), SetupError> {
    let failed = |tried: &str, errno| SetupError { tried: tried.to_owned(), errno };
    let (listener, port) = listening().map_err(|errno| failed("listen on vsock", errno))?;
    let caller = socket(libc::SOCK_NONBLOCK).map_err(|e| failed("open a vsock socket", e))?;
    const CONNECT: &str = "connect to this machine over vsock";
    let address = address(libc::VMADDR_CID_LOCAL, port);
    // SAFETY: pointer and length are those of `address`.
    let result =
        unsafe { libc::connect(caller.as_raw_fd(), (&raw const address).cast(), ADDRESS_BYTES) };
    if result == 0 {
        return Ok(());
    }
    match Errno::last() {
        errno if errno == Errno::from_raw(libc::EINPROGRESS) => {}
        errno => return Err(failed(CONNECT, errno)),
    }
    let wait = Timespec::try_from(limit).map_err(|_| failed(CONNECT, Errno::EINVAL))?;
    let ready = poll(&mut [PollFd::new(&caller, PollFlags::OUT)], Some(&wait));
    drop(listener);
    match ready.map_err(|errno| failed(CONNECT, errno.into()))? {
        0 => Err(failed(CONNECT, Errno::ETIMEDOUT)),
        _ => match sockopt::socket_error(&caller) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(errno)) | Err(errno) => Err(failed(CONNECT, errno.into())),
        },
    }
}

/// A socket that waits for connections on a port of the kernel's choosing.
fn listening() -> Result<(OwnedFd, u32), Errno> {
    let fd = socket(0)?;
    let mut address = address(libc::VMADDR_CID_ANY, libc::VMADDR_PORT_ANY);
    let mut length = ADDRESS_BYTES;
    // SAFETY: pointers and lengths are those of `address` and `length`.
    let done = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) == 0
            && libc::listen(fd.as_raw_fd(), 1) == 0
            && libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length) == 0
    };
    if done { Ok((fd, address.svm_port)) } else { Err(Errno::last()) }
}

fn socket(flags: libc::c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: no pointers; a descriptor that comes back is nobody else's.
    unsafe {
        match libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags, 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(Errno::last()),
        }
    }
}

fn address(cid: u32, port: u32) -> libc::sockaddr_vm {
    // SAFETY: an all-zero address is valid: plain numbers.
    let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "the constant is 40")]
    let family = libc::AF_VSOCK as libc::sa_family_t;
    address.svm_family = family;
    address.svm_cid = cid;
    address.svm_port = port;
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_answer_in_time() {
        let begin_ns = crate::clock::monotonic_ns();
        let tried = try_loopback(Duration::from_millis(50)).map_err(|error| error.to_string());
        let is_named = tried.as_ref().map_or_else(|said| said.contains("vsock"), |()| true);
        assert!(is_named, "{tried:?}");
        // A limit that is ignored waits for two seconds (VSOCK_DEFAULT_CONNECT_TIMEOUT).
        assert!(crate::clock::monotonic_ns() - begin_ns < 1_500_000_000, "{tried:?}");
    }
}

//! Receiving by mapping: a range of addresses that is a mapping of TCP sockets,
//! into which the kernel puts the pages of received data instead of copying
//! them (`TCP_ZEROCOPY_RECEIVE`; `tcp_zerocopy_receive`, net/ipv4/tcp.c).
//!
//! Only pages can be mapped that the data fills from their first byte to their
//! last, that stand alone (no part of a larger allocation) and that belong to no
//! file and no process (`can_map_frag`). What lies between them is copied: a
//! little of it by the same call, the rest by recv(2), which the call asks for.
//!
//! # Safety
//! A [`Window`] owns its addresses and gives them back when it is dropped. Bytes
//! are lent out only as far as the last call mapped them, for as long as the
//! window is borrowed, and the next call needs it exclusively. The kernel maps
//! only pages that nobody writes to any more: they came from the receive queue
//! and belong to no process. Elsewhere in the range an access would be SIGBUS.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::errno::Errno;
use crate::pages::page_bytes;

/// What one page table of the processor's covers: windows that share none do
/// not wait for each other's locks.
const TABLE_BYTES: usize = 2 << 20;

/// `struct tcp_zerocopy_receive` of include/uapi/linux/tcp.h, which libc does not
/// have, in its form since Linux 5.12.
#[repr(C)]
#[derive(Default)]
struct Request {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
    copybuf_address: u64,
    copybuf_len: i32,
    flags: u32,
    msg_control: u64,
    msg_controllen: u64,
    msg_flags: u32,
    reserved: u32,
}

#[expect(clippy::cast_possible_truncation, reason = "checked below")]
const REQUEST_BYTES: libc::socklen_t = size_of::<Request>() as libc::socklen_t;
const _: () = assert!(REQUEST_BYTES == 64);

/// Number of the option; libc has it, as a constant of another type.
const TCP_ZEROCOPY_RECEIVE: libc::c_int = 35;

/// What one call did. All three are zero where nothing had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brought {
    /// Bytes at the start of the window, whole pages.
    pub mapped: usize,
    /// Bytes behind them in the stream, at the start of the buffer for copies.
    pub copied: usize,
    /// Bytes behind those that have to be received with recv(2): they cannot be
    /// mapped and are too many for the buffer.
    pub left: usize,
}

/// Addresses that pages of received data are mapped to.
#[derive(Debug)]
pub struct Window {
    /// What was reserved, to find aligned addresses in it.
    reserved: NonNull<libc::c_void>,
    reserved_bytes: usize,
    /// The window itself.
    start: NonNull<u8>,
    bytes: usize,
    /// What the last call mapped.
    mapped: usize,
}

// SAFETY: the addresses are the window's own, whichever thread uses them.
unsafe impl Send for Window {}

impl Window {
    /// A window of at least `bytes` bytes of a TCP socket. It begins on a border
    /// of 2 MiB, so that no other window shares its page table.
    ///
    /// Errors: `ENODEV` where sockets cannot be mapped, `ENOMEM`.
    pub fn open(socket: BorrowedFd<'_>, bytes: usize) -> Result<Window, Errno> {
        let bytes = bytes.max(1).next_multiple_of(page_bytes());
        let reserved_bytes = bytes.next_multiple_of(TABLE_BYTES) + TABLE_BYTES;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choosing touches no
        // memory of ours.
        let reserved = unsafe {
            libc::mmap(std::ptr::null_mut(), reserved_bytes, libc::PROT_NONE, kind, -1, 0)
        };
        let Some(reserved) = NonNull::new(reserved).filter(|at| at.as_ptr() != libc::MAP_FAILED)
        else {
            return Err(Errno::last());
        };
        let skip = reserved.addr().get().next_multiple_of(TABLE_BYTES) - reserved.addr().get();
        // SAFETY: less than a table was skipped, and the reservation is larger
        // than the window by one.
        let start = unsafe { reserved.cast::<u8>().add(skip) };
        let window = Window { reserved, reserved_bytes, start, bytes, mapped: 0 };
        let kind = libc::MAP_SHARED | libc::MAP_FIXED;
        let at = start.as_ptr().cast();
        // SAFETY: the range lies within the reservation above, which is ours and
        // holds nothing.
        let got = unsafe { libc::mmap(at, bytes, libc::PROT_READ, kind, socket.as_raw_fd(), 0) };
        // If it failed, dropping the window gives the reservation back.
        if got == at { Ok(window) } else { Err(Errno::last()) }
    }

    /// Maps what has arrived, as far as it can be mapped, and copies up to
    /// `copies.len()` bytes behind it. Does not wait. What the last call mapped is
    /// unmapped first.
    ///
    /// Errors: `EIO` at the end of the stream, `ENOPROTOOPT` where the kernel has
    /// no such option, what happened to the connection, `EINVAL` for a socket of
    /// another kind.
    #[inline]
    pub fn receive(&mut self, socket: BorrowedFd<'_>, copies: &mut [u8]) -> Result<Brought, Errno> {
        self.mapped = 0;
        let mut request = Request {
            address: self.start.as_ptr() as u64,
            length: u32::try_from(self.bytes).unwrap_or(u32::MAX),
            copybuf_address: copies.as_mut_ptr() as u64,
            copybuf_len: i32::try_from(copies.len()).unwrap_or(i32::MAX),
            ..Request::default()
        };
        let mut length = REQUEST_BYTES;
        // SAFETY: the request is as large as `length` says and lives on this
        // stack; its addresses are the window, ours alone, and `copies`,
        // exclusively ours for this call.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_ZEROCOPY_RECEIVE,
                (&raw mut request).cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(Errno::last());
        }
        if request.err != 0 {
            return Err(Errno::from_raw(request.err.abs()));
        }
        self.mapped = self.bytes.min(request.length as usize);
        Ok(Brought {
            mapped: self.mapped,
            copied: usize::try_from(request.copybuf_len).unwrap_or(0),
            left: request.recv_skip_hint as usize,
        })
    }

    /// What the last call mapped.
    pub fn mapped(&self) -> &[u8] {
        // SAFETY: so much from the start on is mapped, and stays so and unchanged
        // until the next call, which needs the window exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.mapped) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the whole reservation is this window's, and nothing borrowed
        // from it is left. The result can only say that it was not mapped.
        unsafe { libc::munmap(self.reserved.as_ptr(), self.reserved_bytes) };
    }
}

/// Whether this kernel can receive so: maps a socket and asks it for data.
///
/// Errors: `ENODEV` where sockets cannot be mapped, `ENOPROTOOPT` where there is
/// no such option, `EINVAL` where it has no buffer for copies (before Linux 5.11).
pub fn try_here() -> Result<(), Errno> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    let mut window = Window::open(socket.as_fd(), page_bytes())?;
    window.receive(socket.as_fd(), &mut [0]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn windows_begin_on_tables_of_their_own_and_go() {
        let (_near, far) = pair();
        for bytes in [1, page_bytes(), TABLE_BYTES + 1] {
            let window = Window::open(far.as_fd(), bytes).unwrap();
            assert_eq!(window.start.addr().get() % TABLE_BYTES, 0);
            assert!(window.bytes >= bytes && window.bytes < bytes + page_bytes());
            assert_eq!(window.mapped(), b"");
        }
        let (pipe, _into) = std::io::pipe().unwrap();
        assert!(Window::open(pipe.as_fd(), 1).is_err());
    }

    #[test]
    fn little_is_copied_and_the_end_is_an_error() {
        let (mut near, far) = pair();
        let mut window = Window::open(far.as_fd(), 1).unwrap();
        let mut copies = [0; 100];
        let nothing = Brought { mapped: 0, copied: 0, left: 0 };
        assert_eq!(window.receive(far.as_fd(), &mut copies), Ok(nothing));
        near.write_all(b"hello").unwrap();
        let hello = window.receive(far.as_fd(), &mut copies).unwrap();
        assert_eq!(hello, Brought { copied: 5, ..nothing });
        assert_eq!((&copies[..5], window.mapped()), (&b"hello"[..], &b""[..]));
        near.write_all(&[7; 300]).unwrap();
        let more = window.receive(far.as_fd(), &mut copies).unwrap();
        assert_eq!(more, Brought { left: 300, ..nothing });
        let mut rest = [0; 400];
        assert_eq!(crate::socket::recv(far.as_fd(), &mut rest), Ok(300));
        drop(near);
        crate::poll::readable(&[far.as_fd()], 1_000_000_000).unwrap();
        assert_eq!(window.receive(far.as_fd(), &mut copies), Err(Errno::EIO));
    }

    #[test]
    fn this_kernel_can_or_says_why_not() {
        let refusals = [libc::ENODEV, libc::ENOPROTOOPT, libc::EINVAL];
        let tried = try_here();
        assert!(tried.is_ok() || refusals.contains(&tried.unwrap_err().raw()), "{tried:?}");
    }
}

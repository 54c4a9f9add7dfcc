//! `tcp_zerocopy_receive`: mmap(2) of the socket, into which getsockopt(2) with
//! `TCP_ZEROCOPY_RECEIVE` maps the pages that hold the bytes.
//!
//! Path through the kernel: getsockopt(2) → `tcp_zerocopy_receive`, which unmaps
//! what the last call mapped, takes the queue's pages one by one and maps them
//! (`vm_insert_pages`). A page can be mapped only if the bytes fill it from its
//! first to its last, if it stands alone and belongs to nobody
//! (`can_map_frag`, net/ipv4/tcp.c). What cannot be mapped is copied: less than
//! a page by the same call, more by recv(2), as the call asks.
//! Needs: Linux 5.11 (`copybuf_address`), and pages that can be mapped.
//! Who fills them decides that. A sender that copies on the same machine puts
//! bytes into pages of a block of 32 KiB, of which none stands alone, unless
//! `net.core.high_order_alloc_disable` is 1 for the whole machine, as it is with
//! `--allow-sysctl` while the run goes on: nothing maps.
//! A late copy of a zero-copy send (`skb_copy_ubufs`) fills single pages, and
//! all of them map but the last of each segment of up to 64 KiB.
//! Each take is one call, another to poll(2) where nothing had arrived, and
//! another to recv(2) for what did not map. All are counted, and so is how much
//! was mapped.
//! Compared with: `recv`, which copies.
//! Does not show: a program that reads what it got. The bytes are in whatever
//! cache the sender left them; `recv` has just brought them into the receiver's.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{Hop, Movement};
use iolens_model::host::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::pages::page_bytes;
use iolens_sys::tcp::SetupError;
use iolens_sys::zerocopy_receive::{self, Brought, Window};
use iolens_sys::{poll, socket};

use super::{Entry, receiver};
use crate::hops::COPY_OUT;
use crate::take::{Setup, Take, Taken, Turn};

const MAP: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("receiver's pages"),
    function: Cow::Borrowed("tcp_zerocopy_receive"),
    movement: Movement::Mapped,
    ..COPY_OUT
};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    transports: &[Transport::Tcp],
    available: || Linux::try_here().map_err(refusal),
    ..receiver(
        "tcp_zerocopy_receive",
        "getsockopt(2) with TCP_ZEROCOPY_RECEIVE: maps whole pages, copies the rest",
        KernelVersion::new(5, 11, 0),
        &[MAP],
        |setup| Ok(Box::new(ZerocopyReceive::<Linux>::open(setup)?)),
    )
};

/// What the kernel does here; tests put something else in its place.
trait Kernel: Send + 'static {
    fn try_here() -> Result<(), Errno>;
    fn receive(
        window: &mut Window,
        fd: BorrowedFd<'_>,
        copies: &mut [u8],
    ) -> Result<Brought, Errno>;
    fn is_readable(fd: BorrowedFd<'_>, timeout_ns: u64) -> Result<bool, Errno>;
}

struct Linux;

impl Kernel for Linux {
    fn try_here() -> Result<(), Errno> {
        zerocopy_receive::try_here()
    }

    #[inline]
    fn receive(
        window: &mut Window,
        fd: BorrowedFd<'_>,
        copies: &mut [u8],
    ) -> Result<Brought, Errno> {
        window.receive(fd, copies)
    }

    #[inline]
    fn is_readable(fd: BorrowedFd<'_>, timeout_ns: u64) -> Result<bool, Errno> {
        poll::is_readable(fd, timeout_ns)
    }
}

/// Why it does not work here.
fn refusal(errno: Errno) -> String {
    match errno {
        Errno::ENODEV => format!("this kernel cannot map a TCP socket: {errno}"),
        Errno::ENOPROTOOPT => format!(
            "this kernel has no TCP_ZEROCOPY_RECEIVE, which Linux has since 4.18, with CONFIG_MMU: \
             {errno}"
        ),
        Errno::EINVAL => format!(
            "TCP_ZEROCOPY_RECEIVE takes no buffer for copies, which it does since Linux 5.11: \
             {errno}"
        ),
        errno => format!("TCP_ZEROCOPY_RECEIVE was refused: {errno}"),
    }
}

/// A window and buffers for all connections of the thread.
struct ZerocopyReceive<'a, K> {
    turn: Turn<'a>,
    /// One window by connection.
    windows: Vec<Window>,
    /// The window whose turn it is.
    link: usize,
    /// For less than a page, which the kernel copies while it maps. It has to be
    /// smaller than a page, or the kernel copies whole pages into it.
    copies: Box<[u8]>,
    /// For what neither is mapped nor fits there.
    rest: Box<[u8]>,
    /// What the last take found in the window, in `copies` and in `rest`.
    last: [usize; 3],
    stall_limit_ns: u64,
    kernel: std::marker::PhantomData<K>,
}

impl<'a, K: Kernel> ZerocopyReceive<'a, K> {
    fn open(setup: Setup<'a>) -> Result<ZerocopyReceive<'a, K>, SetupError> {
        let failed = |tried: &str| {
            let tried = tried.to_owned();
            move |errno| SetupError { tried, errno }
        };
        K::try_here().map_err(failed("receive with TCP_ZEROCOPY_RECEIVE"))?;
        let open = |fd: &BorrowedFd<'a>| Window::open(*fd, setup.receive_bytes);
        let windows = setup.links.iter().map(open).collect::<Result<Vec<Window>, Errno>>();
        Ok(ZerocopyReceive {
            windows: windows.map_err(failed("map a TCP socket"))?,
            turn: Turn::of(setup.links, setup.pipes),
            link: 0,
            // Written to, so that every page is there before a clock runs.
            copies: vec![1; page_bytes() - 1].into_boxed_slice(),
            rest: vec![1; setup.receive_bytes].into_boxed_slice(),
            last: [0; 3],
            stall_limit_ns: u64::try_from(setup.stall_limit.as_nanos()).unwrap_or(u64::MAX),
            kernel: std::marker::PhantomData,
        })
    }

    /// Takes `left` bytes that did not map, behind those that did, or waits for
    /// whatever the connection has to say.
    #[inline]
    fn take_rest(&mut self, brought: Brought, calls: u32) -> Result<Taken, Errno> {
        let Brought { mapped, copied, left } = brought;
        let so_far = mapped + copied;
        let most = if so_far > 0 { left.min(self.rest.len()) } else { self.rest.len() };
        let rest = match socket::recv(self.turn.fd, &mut self.rest[..most]) {
            Ok(rest) => rest,
            // What came before must not be lost; the next call says the same.
            Err(_) if so_far > 0 => 0,
            Err(errno) => return Err(errno),
        };
        self.last = [mapped, copied, rest];
        Ok(Taken { bytes: so_far + rest, calls: calls + 1, mapped })
    }
}

impl<K: Kernel> Take for ZerocopyReceive<'_, K> {
    const MAPS: bool = true;

    fn fd(&self) -> BorrowedFd<'_> {
        self.turn.fd
    }

    fn turn_to(&mut self, link: usize) {
        self.turn.pass_to(link);
        self.link = link;
    }

    #[inline]
    fn take(&mut self) -> Result<Taken, Errno> {
        let mut calls = 0;
        let nothing = Brought { mapped: 0, copied: 0, left: 0 };
        loop {
            let window = &mut self.windows[self.link];
            calls += 1;
            let brought = match K::receive(window, self.turn.fd, &mut self.copies) {
                Ok(brought) => brought,
                // The end of the stream, or of the connection: recv tells which.
                Err(Errno::EIO) => return self.take_rest(nothing, calls),
                Err(errno) => return Err(errno),
            };
            let Brought { mapped, copied, left } = brought;
            if left > 0 {
                return self.take_rest(brought, calls);
            }
            if mapped + copied > 0 {
                self.last = [mapped, copied, 0];
                return Ok(Taken { bytes: mapped + copied, calls, mapped });
            }
            if calls > 1 {
                // Something is there, and this call does not say what.
                return self.take_rest(nothing, calls);
            }
            calls += 1;
            if !K::is_readable(self.turn.fd, self.stall_limit_ns)? {
                return Err(Errno::EAGAIN);
            }
        }
    }

    #[cfg(test)]
    fn show(&self, bytes: usize, see: &mut dyn FnMut(&[u8])) {
        let [mapped, copied, rest] = self.last;
        assert_eq!(
            (mapped + copied + rest, self.windows[self.link].mapped().len()),
            (bytes, mapped)
        );
        see(self.windows[self.link].mapped());
        see(&self.copies[..copied]);
        see(&self.rest[..rest]);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::receive::{Quota, Received, Receiver};
    use crate::receivers::tests::{LONG, connection, send_with, setup};
    use crate::skip;

    /// A kernel without the option.
    struct Without;

    impl Kernel for Without {
        fn try_here() -> Result<(), Errno> {
            Err(Errno::ENOPROTOOPT)
        }
        fn receive(_: &mut Window, _: BorrowedFd<'_>, _: &mut [u8]) -> Result<Brought, Errno> {
            Err(Errno::ENOPROTOOPT)
        }
        fn is_readable(_: BorrowedFd<'_>, _: u64) -> Result<bool, Errno> {
            unreachable!("it is never asked")
        }
    }

    /// A kernel whose every wait is interrupted, and which maps nothing.
    struct Restless;

    impl Kernel for Restless {
        fn try_here() -> Result<(), Errno> {
            Ok(())
        }
        fn receive(_: &mut Window, fd: BorrowedFd<'_>, _: &mut [u8]) -> Result<Brought, Errno> {
            let left = if poll::is_readable(fd, 0)? { 100 } else { 0 };
            Ok(Brought { mapped: 0, copied: 0, left })
        }
        fn is_readable(_: BorrowedFd<'_>, _: u64) -> Result<bool, Errno> {
            Err(Errno::EINTR)
        }
    }

    #[test]
    fn a_kernel_without_the_option_is_refused_in_words() {
        let (_tx, rx) = connection(LONG);
        let refused = ZerocopyReceive::<Without>::open(setup(&rx, LONG)).map(|_| ()).unwrap_err();
        let text = "cannot receive with TCP_ZEROCOPY_RECEIVE: ENOPROTOOPT";
        assert!(refused.to_string().starts_with(text), "{refused}");
        assert!(refusal(refused.errno).contains("which Linux has since 4.18"));
        assert!(refusal(Errno::ENODEV).contains("cannot map a TCP socket"));
        assert!(refusal(Errno::EINVAL).contains("since Linux 5.11"));
    }

    /// Receives seven messages of a sender with a kernel.
    fn received<K: Kernel>(primitive: &str, size: usize) -> Received {
        let (tx, rx): (OwnedFd, OwnedFd) = connection(LONG);
        let target = 7 * size as u64;
        let mut receiver = ZerocopyReceive::<K>::open(setup(&rx, LONG)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                send_with(primitive, &tx, size);
                assert_eq!(socket::recv(tx.as_fd(), &mut [0]), Ok(1));
                socket::send(tx.as_fd(), &[0]).unwrap();
            });
            let complete = || socket::send(rx.as_fd(), &[0]).map(|_| ());
            let quota = Quota { total: &AtomicU64::new(0), target, complete: &complete };
            receiver.receive(&quota).unwrap()
        })
    }

    #[test]
    fn an_interrupted_wait_loses_nothing() {
        let received = received::<Restless>("send", 4095);
        assert_eq!((received.tally.bytes, received.mapped_bytes), (7 * 4095, Some(0)));
    }

    #[test]
    fn pages_that_a_late_copy_filled_are_mapped() {
        if let Err(why) = (ENTRY.available)() {
            return skip::note(
                "receivers::tcp_zerocopy_receive::tests::\
                 pages_that_a_late_copy_filled_are_mapped",
                &why,
            );
        }
        let received = received::<Linux>("sendmsg_zerocopy", 1 << 20);
        let share = received.mapped_bytes.unwrap() as f64 / received.tally.bytes as f64;
        assert!((0.5..=1.0).contains(&share), "{share}");
    }
}

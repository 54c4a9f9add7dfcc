//! Sending a message whole: the fast path is one call, everything that can
//! interrupt it is cold. `EINTR` is tried again and counted as a call; a short
//! count goes on where it ended; all other errors end the slice.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use arrayvec::ArrayVec;
use iolens_sys::errno::Errno;
use iolens_sys::socket;

use iolens_harness::op::Tally;

/// Most fields a message can have. An iovec of this length lives on the
/// stack; the kernel's own limit is 1024 (`UIO_MAXIOV`).
pub const FIELDS_MAX: usize = 64;

/// The iovec of one message.
pub(crate) type Iovecs<'a> = ArrayVec<IoSlice<'a>, FIELDS_MAX>;

/// Makes `call`, which is told how many bytes are done, until `total` are.
#[inline]
pub(crate) fn whole(
    total: usize,
    tally: &mut Tally,
    call: impl Fn(usize) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let result = call(0);
    tally.calls += 1;
    if result == Ok(total) {
        tally.bytes += total as u64;
        return Ok(());
    }
    rest(total, result, tally, call)
}

/// Goes on after a first call that did not do everything.
#[cold]
#[inline(never)]
fn rest(
    total: usize,
    first: Result<usize, Errno>,
    tally: &mut Tally,
    call: impl Fn(usize) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let (mut result, mut done) = (first, 0);
    loop {
        match result {
            // The end of a file that was cut off: there is no more to come.
            Ok(0) => return Err(Errno::EIO),
            Ok(n) => {
                tally.bytes += n as u64;
                done += n;
                if done >= total {
                    return Ok(());
                }
            }
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        result = call(done);
        tally.calls += 1;
    }
}

/// Sends all of `bytes` with send(2).
#[inline]
pub(crate) fn send_all(fd: BorrowedFd<'_>, bytes: &[u8], tally: &mut Tally) -> Result<(), Errno> {
    whole(bytes.len(), tally, |done| socket::send(fd, &bytes[done..]))
}

/// Makes `call` until all of an iovec of `total` bytes has gone.
#[inline]
pub(crate) fn whole_iovec(
    iovec: &[IoSlice<'_>],
    total: usize,
    tally: &mut Tally,
    call: impl Fn(&[IoSlice<'_>]) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let result = call(iovec);
    tally.calls += 1;
    if result == Ok(total) {
        tally.bytes += total as u64;
        return Ok(());
    }
    rest_of_iovec(iovec, result, tally, call)
}

#[cold]
#[inline(never)]
fn rest_of_iovec(
    iovec: &[IoSlice<'_>],
    first: Result<usize, Errno>,
    tally: &mut Tally,
    call: impl Fn(&[IoSlice<'_>]) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let mut copy: Iovecs<'_> = iovec.iter().copied().collect();
    let mut left = &mut copy[..];
    let mut result = first;
    loop {
        match result {
            Ok(n) => {
                tally.bytes += n as u64;
                IoSlice::advance_slices(&mut left, n);
                if left.is_empty() {
                    return Ok(());
                }
            }
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        result = call(left);
        tally.calls += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    /// Sends through a socket with a small buffer and a short send time-out
    /// to a reader that reads slowly, so that calls are cut short.
    fn received(
        send: impl FnOnce(BorrowedFd<'_>, &mut Tally) -> Result<(), Errno>,
    ) -> (Vec<u8>, Tally) {
        let (tx, mut rx) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let (mut all, mut piece) = (Vec::new(), [0u8; 777]);
            while let Ok(n @ 1..) = rx.read(&mut piece) {
                all.extend_from_slice(&piece[..n]);
            }
            all
        });
        let mut tally = Tally::default();
        send(tx.as_fd(), &mut tally).unwrap();
        drop(tx);
        (reader.join().unwrap(), tally)
    }

    #[test]
    fn a_cut_call_goes_on_where_it_ended() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        // As if a first call had sent 300 000 bytes of the message.
        let (got, tally) = received(|fd, tally| {
            socket::send(fd, &bytes[..4]).unwrap();
            rest(bytes.len(), Ok(4), tally, |done| socket::send(fd, &bytes[done..]))
        });
        assert_eq!((got == bytes, tally.bytes), (true, 1_000_000));
        let parts: Vec<&[u8]> = bytes.chunks(150_000).collect();
        let iovec: Vec<IoSlice<'_>> = parts.iter().map(|p| IoSlice::new(p)).collect();
        let (got, tally) = received(|fd, tally| {
            socket::send(fd, &bytes[..150_001]).unwrap();
            rest_of_iovec(&iovec, Ok(150_001), tally, |left| socket::sendmsg(fd, left))
        });
        assert_eq!((got == bytes, tally.bytes), (true, 1_000_000));
    }

    #[test]
    fn an_interrupted_call_is_made_again() {
        let (got, tally) = received(|fd, tally| {
            rest(3, Err(Errno::EINTR), tally, |done| socket::send(fd, &b"abc"[done..]))
        });
        assert_eq!((&got[..], tally.bytes, tally.calls), (&b"abc"[..], 3, 1));
    }

    #[test]
    fn a_call_that_does_nothing_is_not_made_for_ever() {
        let mut tally = Tally::default();
        assert_eq!(whole(3, &mut tally, |_| Ok(0)), Err(Errno::EIO));
        let half = |done: usize| Ok(if done == 0 { 2 } else { 0 });
        assert_eq!(whole(3, &mut tally, half), Err(Errno::EIO));
        assert_eq!((tally.bytes, tally.calls), (2, 3));
    }

    #[test]
    fn a_receiver_that_takes_nothing_ends_the_slice() {
        let (tx, _rx) = UnixStream::pair().unwrap();
        tx.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut tally = Tally::default();
        let bytes = vec![0u8; 64 << 20];
        assert_eq!(send_all(tx.as_fd(), &bytes, &mut tally), Err(Errno::EAGAIN));
        assert!(tally.bytes < bytes.len() as u64);
    }

    #[test]
    fn a_closed_peer_ends_the_slice() {
        let (tx, rx) = UnixStream::pair().unwrap();
        drop(rx);
        let mut tally = Tally::default();
        assert_eq!(send_all(tx.as_fd(), b"abc", &mut tally), Err(Errno::EPIPE));
        assert_eq!((tally.bytes, tally.calls), (0, 1));
    }
}

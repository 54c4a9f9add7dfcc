//! The time before a window that is not counted: a link that is slower than
//! the sender needs a while until its queues are full and its buckets empty.
//! The sender sends for that time and then says, on a connection of its own
//! for this, how many bytes it was; the receiver has followed when it has them
//! all. Nothing is in flight when the window begins.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_sys::errno::Errno;
use iolens_sys::{poll, socket};

use crate::take::{Take, Taken};

const COUNT_BYTES: usize = 8;

/// Says how many bytes were sent.
///
/// Errors: of send(2); `EMSGSIZE` where not all of the count was taken.
pub fn announce(signal: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    loop {
        match socket::send(signal, &bytes.to_le_bytes()) {
            Ok(COUNT_BYTES) => return Ok(()),
            Ok(_) => return Err(Errno::EMSGSIZE),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Receives until everything that was announced is here.
///
/// Errors: `EAGAIN` when nothing came for `limit`, `ENODATA` when the sender
/// has gone, `EMSGSIZE` when more came than was announced.
pub fn follow(
    receiver: &mut impl Take,
    signal: BorrowedFd<'_>,
    limit: Duration,
) -> Result<(), Errno> {
    let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let (mut received, mut count) = (0u64, Vec::with_capacity(COUNT_BYTES));
    loop {
        if let Ok(announced) = <[u8; COUNT_BYTES]>::try_from(&count[..]) {
            match received.cmp(&u64::from_le_bytes(announced)) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(()),
                std::cmp::Ordering::Greater => return Err(Errno::EMSGSIZE),
            }
        }
        let ready = match poll::readable(&[receiver.fd(), signal], limit_ns) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        if !ready.contains(&true) {
            return Err(Errno::EAGAIN);
        }
        if ready[0] {
            received += take(receiver)?;
        }
        if ready[1] {
            let mut piece = [0; COUNT_BYTES];
            let heard = hear(signal, &mut piece[count.len()..])?;
            count.extend_from_slice(&piece[..heard]);
        }
    }
}

/// How many bytes were there.
fn take(receiver: &mut impl Take) -> Result<u64, Errno> {
    loop {
        match receiver.take() {
            Ok(Taken { bytes: 0, .. }) => return Err(Errno::ENODATA),
            Ok(taken) => return Ok(taken.bytes as u64),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// What there is of the count.
fn hear(signal: BorrowedFd<'_>, piece: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match socket::recv(signal, piece) {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(n) => return Ok(n),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::receivers::Recv;

    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn the_receiver_follows_to_the_last_byte() {
        let (tx, rx) = UnixStream::pair().unwrap();
        let (say, hear) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            for _ in 0..1000 {
                socket::send(tx.as_fd(), &[1; 500]).unwrap();
            }
            announce(say.as_fd(), 500_000).unwrap();
            (tx, say)
        });
        let mut recv = Recv::one(rx.as_fd(), 4096);
        let limit = Duration::from_secs(20);
        assert_eq!(follow(&mut recv, hear.as_fd(), limit), Ok(()));
        // Nothing is left for the window.
        assert_eq!(poll::readable(&[rx.as_fd()], 0), Ok(vec![false]));
        sender.join().unwrap();
    }

    #[test]
    fn what_does_not_come_and_what_is_too_much_are_errors() {
        let (tx, rx) = UnixStream::pair().unwrap();
        let (say, hear) = UnixStream::pair().unwrap();
        let mut recv = Recv::one(rx.as_fd(), 64);
        let mut follow = || follow(&mut recv, hear.as_fd(), SOON);
        assert_eq!(follow(), Err(Errno::EAGAIN));
        socket::send(tx.as_fd(), &[1; 10]).unwrap();
        announce(say.as_fd(), 9).unwrap();
        assert_eq!(follow(), Err(Errno::EMSGSIZE));
        drop(tx);
        assert_eq!(follow(), Err(Errno::ENODATA));
    }
}

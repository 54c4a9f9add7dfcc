//! What is moved, how much fits, and whose the bytes are until they are read.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::pages::PAGE_BYTES;
use crate::{file, socket, tcp};

fn connection() -> (OwnedFd, OwnedFd) {
    let options = tcp::Options {
        congestion: "reno".into(),
        buffer_bytes: 256 << 10,
        nodelay: true,
        stall_limit: Duration::from_secs(5),
        multipath: false,
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = tcp::Listener::open(&any, &options, 1).unwrap();
    let tx = tcp::connect_to(&listener.address().unwrap(), &options).unwrap();
    (tx, listener.accept().unwrap())
}

fn received(fd: BorrowedFd<'_>, bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        match socket::recv(fd, &mut all[filled..]).unwrap() {
            0 => panic!("the stream ended"),
            n => filled += n,
        }
    }
    all
}

fn await_acknowledged(fd: BorrowedFd<'_>) {
    while tcp::unacknowledged_bytes(fd).unwrap() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn pages_go_through_a_pipe_to_a_socket() {
    let (tx, rx) = connection();
    let pipe = Pipe::open().unwrap();
    let (one, two) = (vec![1u8; 5000], vec![2u8; 100]);
    assert_eq!(pipe.vmsplice(&[IoSlice::new(&one), IoSlice::new(&two)]), Ok(5100));
    assert_eq!(pipe.splice_to(tx.as_fd(), 5050, true), Ok(5050));
    assert_eq!(pipe.splice_to(tx.as_fd(), 5100, false), Ok(50));
    assert_eq!(received(rx.as_fd(), 5100), [one, two].concat());
}

#[test]
fn a_pipe_takes_as_many_pages_as_it_has_places() {
    let pipe = Pipe::open().unwrap();
    pipe.resize(4 * page_bytes()).unwrap();
    assert_eq!(pipe.size_bytes(), Ok(4 * page_bytes()));
    let pieces = vec![7u8; 100];
    let iovec = [IoSlice::new(&pieces); 6];
    let taken = pipe.vmsplice(&iovec).unwrap();
    // A piece that crosses from one page into the next takes two places.
    let fit = 4 / places(&pieces);
    assert_eq!(taken, fit * pieces.len());
}

#[test]
fn places_follow_pages() {
    let memory = vec![0u8; 3 * PAGE_BYTES];
    let first = memory.as_ptr().align_offset(PAGE_BYTES);
    let page = &memory[first..first + PAGE_BYTES + 2];
    assert_eq!(places_of(&page[..PAGE_BYTES], PAGE_BYTES), 1);
    assert_eq!(places_of(&page[1..=PAGE_BYTES], PAGE_BYTES), 2);
    assert_eq!(places_of(&page[..PAGE_BYTES + 1], PAGE_BYTES), 2);
    assert_eq!(places_of(&page[..0], PAGE_BYTES), 0);
    const LARGE: usize = 16 * PAGE_BYTES;
    let memory = vec![0u8; 4 * LARGE];
    let first = memory.as_ptr().align_offset(LARGE);
    assert_eq!(places_of(&memory[first..first + 33 * PAGE_BYTES], LARGE), 3);
    assert_eq!(places_of(&memory[first + 1..first + 1 + LARGE], LARGE), 2);
}

/// What decides when memory that was spliced may be changed: over `lo` the
/// peer's kernel acknowledges bytes that are still nowhere but in our pages.
#[test]
fn acknowledged_pages_are_still_ours_until_they_are_read() {
    let (tx, rx) = connection();
    let pipe = Pipe::open().unwrap();
    let mut message = vec![1u8; 3 * PAGE_BYTES];
    assert_eq!(pipe.vmsplice(&[IoSlice::new(&message)]), Ok(message.len()));
    assert_eq!(pipe.splice_to(tx.as_fd(), message.len(), false), Ok(message.len()));
    await_acknowledged(tx.as_fd());
    message.fill(2);
    let there = received(rx.as_fd(), message.len());
    // No copy of ours can be told from what was received: a reference it was.
    assert_eq!(there, message, "the kernel copied the pages after all");
}

#[test]
fn a_sent_file_is_still_the_file_until_it_is_read() {
    use std::os::unix::fs::FileExt;
    let (tx, rx) = connection();
    let mut source = file::in_memory("iolens-test").unwrap();
    source.write_all(&[1; 3 * PAGE_BYTES]).unwrap();
    assert_eq!(sendfile(tx.as_fd(), source.as_fd(), 5, 2 * PAGE_BYTES), Ok(2 * PAGE_BYTES));
    await_acknowledged(tx.as_fd());
    source.write_all_at(&[2; 3 * PAGE_BYTES], 0).unwrap();
    assert_eq!(received(rx.as_fd(), 2 * PAGE_BYTES), [2; 2 * PAGE_BYTES]);
    assert_eq!(sendfile(tx.as_fd(), source.as_fd(), 3 * PAGE_BYTES as u64, 9), Ok(0), "its end");
}

#[test]
fn a_copying_send_is_not_such_a_reference() {
    let (tx, rx) = connection();
    let mut message = vec![1u8; 3 * PAGE_BYTES];
    assert_eq!(socket::send(tx.as_fd(), &message), Ok(message.len()));
    message.fill(2);
    assert_eq!(received(rx.as_fd(), message.len()), [1; 3 * PAGE_BYTES]);
}

#[test]
fn a_closed_peer_is_an_error_and_no_signal() {
    let (tx, rx) = UnixStream::pair().unwrap();
    drop(rx);
    let pipe = Pipe::open().unwrap();
    let mut source = file::in_memory("iolens-test").unwrap();
    source.write_all(b"abc").unwrap();
    assert_eq!(pipe.vmsplice(&[IoSlice::new(b"abc")]), Ok(3));
    assert_eq!(pipe.splice_to(tx.as_fd(), 3, false), Err(Errno::EPIPE));
    assert_eq!(sendfile(tx.as_fd(), source.as_fd(), 0, 3), Err(Errno::EPIPE));
}

#[test]
fn what_a_file_gives_to_a_pipe_another_takes() {
    let [mut one, other] = [(); 2].map(|()| file::in_folder(&std::env::temp_dir()).unwrap());
    one.write_all(b"0123456789").unwrap();
    let pipe = Pipe::open().unwrap();
    assert_eq!(pipe.take_from(one.as_fd(), 4, 100), Ok(6));
    assert_eq!(pipe.give_to(other.as_fd(), 1, 4), Ok(4));
    assert_eq!(pipe.give_to(other.as_fd(), 5, 100), Ok(2), "no more is in it");
    let mut bytes = [9; 8];
    assert_eq!(other.read_at(&mut bytes, 0).unwrap(), 7);
    assert_eq!(&bytes[..7], b"\x00456789");
    assert_eq!(pipe.take_from(one.as_fd(), 10, 100), Ok(0), "the file ends there");
    assert_eq!(pipe.take_from(one.as_fd(), u64::MAX, 1), Err(Errno::EINVAL));
}

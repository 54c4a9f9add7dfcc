//! The receiving end against a program that is played by the test, and the sending end against
//! one that is real.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use iolens_model::external::External;
use iolens_model::transport::Transport;
use iolens_sys::tcp::Listener;

use super::*;
use crate::worker::crew::Stop;
use iolens_net::lane::{self, Lane, short_options};
use iolens_net::receive::Received;

const SIZE: u64 = 1000;
const MESSAGES: u64 = 16;
const PORTION: fn() -> Portion = || Portion::of(MESSAGES, SIZE);
/// With the two before those that count.
const ALL: u64 = (MESSAGES + 2) * SIZE;

/// What the sending end sees: its lanes, and where the program connects to.
struct Near {
    lanes: Vec<OwnedFd>,
    door: SocketAddr,
}

impl Near {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.door).unwrap()
    }

    fn say(&self, thread: usize, byte: u8) {
        lane::send(std::os::fd::AsFd::as_fd(&self.lanes[thread]), byte).unwrap();
    }

    /// Hears when what counts begins, and every receipt, and sets all threads free.
    fn follow(&self) {
        self.follow_after(&mut [0; 9]);
    }

    /// The same where the first thread says so much until its receipt.
    fn follow_after(&self, said: &mut [u8]) {
        let mut lanes = self.lanes.iter().map(|fd| TcpStream::from(fd.try_clone().unwrap()));
        let mut first = lanes.next().unwrap();
        first.read_exact(said).unwrap();
        lanes.for_each(|mut lane| lane.read_exact(&mut [0]).unwrap());
        (0..self.lanes.len()).for_each(|thread| self.say(thread, 0));
        // That all connections have ended, or that one has ended badly.
        let _ = first.read(&mut [0]);
    }
}

/// What each thread of the receiving end has when the program was played; a connection more or
/// less is noted.
fn gathered<T: Send>(
    command: &str,
    threads: usize,
    play: impl FnOnce(&Near) -> T + Send,
) -> (Vec<Result<Received, String>>, usize) {
    gathered_of(command, threads, None, play)
}

/// The same of a program that has sent so many messages in earlier slices and stays.
fn gathered_of<T: Send>(
    command: &str,
    threads: usize,
    earlier: Option<u64>,
    play: impl FnOnce(&Near) -> T + Send,
) -> (Vec<Result<Received, String>>, usize) {
    let argv = command.split(' ').map(str::to_owned).collect();
    let program = External { name: "mine".to_owned(), argv };
    let limit = Duration::from_secs(3600);
    let door = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let door = Listener::open(&door, &short_options(limit), 64).unwrap();
    let pairs = (0..threads).map(|_| lane::connected_pair().unwrap());
    let (near, far): (Vec<OwnedFd>, Vec<OwnedFd>) = pairs.unzip();
    let lanes: Vec<Lane> = far.into_iter().map(|fd| Lane::connection(Transport::Tcp, fd)).collect();
    let near = Near { lanes: near, door: door.address().unwrap() };
    let shared = Gathered::default();
    let gather = |thread| {
        let (program, shared, door, lanes) = (&program, &shared, &door, &lanes[..]);
        let portion = match earlier {
            Some(_) => Portion::without_lead(PORTION().all(), SIZE),
            None => PORTION(),
        };
        let gathering = Gathering {
            program,
            portion,
            shared,
            door,
            lanes,
            thread,
            receive_bytes: 4096,
            limit,
            stays: earlier.is_some(),
            earlier_messages: &|| earlier.unwrap_or(0),
        };
        let mut begun = 0;
        let mut begin = || {
            begun += 1;
            // Where all counts, what is spent on the first bytes does, too.
            assert!(portion.lead > 0 || threads > 1 || shared.bytes() == 0);
        };
        let mut streams = earlier.map(|_| door.accept().unwrap()).into_iter().collect();
        let done = gathering.gather(&mut streams, &mut begin);
        assert!(done.is_err() || begun == 1);
        // A thread that has failed ends the others.
        if done.is_err() {
            for lane in lanes {
                let _ = iolens_sys::tcp::hang_up(lane.back());
            }
        }
        done.map_err(|stop: Stop| stop.what().to_owned())
    };
    let done = std::thread::scope(|scope| {
        let gather = &gather;
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || gather(thread))).collect();
        let near = &near;
        let played = scope.spawn(move || drop(play(near)));
        let done = all.into_iter().map(|thread| thread.join().unwrap()).collect();
        played.join().unwrap();
        done
    });
    (done, shared.connections())
}

fn bytes(n: u64) -> Vec<u8> {
    vec![7; usize::try_from(n).unwrap()]
}

#[test]
fn what_counts_begins_behind_the_lead_and_ends_with_the_last_byte() {
    let (done, connections) = gathered("prog {messages}", 1, |near| {
        let mut stream = near.connect();
        stream.write_all(&bytes(ALL)).unwrap();
        near.follow();
    });
    let received = done.into_iter().next().unwrap().unwrap();
    assert_eq!((received.tally.bytes, received.tally.messages), (MESSAGES * SIZE, MESSAGES));
    assert!(received.first_ns > 0 && received.end_ns >= received.first_ns);
    assert_eq!(connections, 1);
}

#[test]
fn threads_share_what_comes() {
    for connections in [1, 2, 3] {
        let (done, made) = gathered("prog {messages}", 2, |near| {
            let streams: Vec<TcpStream> = (0..connections).map(|_| near.connect()).collect();
            let each = ALL / connections;
            for (index, mut stream) in (0..).zip(&streams) {
                let last = if index == 0 { ALL % connections } else { 0 };
                stream.write_all(&bytes(each + last)).unwrap();
            }
            drop(streams);
            near.follow();
        });
        let done: Vec<Received> = done.into_iter().map(Result::unwrap).collect();
        let sum = |of: fn(&Received) -> u64| done.iter().map(of).sum::<u64>();
        assert_eq!(sum(|r| r.tally.bytes), MESSAGES * SIZE);
        assert_eq!(sum(|r| r.tally.messages), MESSAGES);
        assert_eq!(made as u64, connections);
    }
}

#[test]
fn one_that_never_ends_is_left_where_the_slice_does() {
    let (done, _) = gathered("prog", 1, |near| {
        let mut stream = near.connect();
        stream.write_all(&bytes(ALL + 12_345)).unwrap();
        near.follow();
        stream
    });
    assert_eq!(done[0].as_ref().map(|received| received.tally.bytes), Ok(MESSAGES * SIZE));
}

/// What the first thread says of a program that plays this.
fn fault(command: &str, play: impl FnOnce(&Near) + Send) -> String {
    let (done, _) = gathered(command, 1, play);
    done.into_iter().next().unwrap().map(drop).unwrap_err()
}

#[test]
fn what_is_too_much_in_a_slice_is_told_of_all_slices_so_far() {
    let (done, _) = gathered_of("prog", 1, Some(182), |near| {
        let mut stream = near.connect();
        stream.write_all(&bytes(ALL + 200)).unwrap();
        near.follow_after(&mut [0]);
        stream
    });
    let why = done.into_iter().next().unwrap().map(drop).unwrap_err();
    assert_eq!(why, "`mine` sent 200200 bytes for 200 messages of 1000 bytes: 1001.0 each");
}

#[test]
fn what_a_program_does_wrong_is_named() {
    let other_size = |near: &Near| {
        let mut stream = near.connect();
        stream.write_all(&bytes(ALL + 18)).unwrap();
        drop(stream);
        near.follow();
    };
    let early = |near: &Near| {
        let mut stream = near.connect();
        stream.write_all(&bytes(1234)).unwrap();
        drop(stream);
        near.say(0, ENDED);
    };
    assert_eq!(
        fault("prog {messages}", other_size),
        "`mine` sent 18018 bytes for 18 messages of 1000 bytes: 1001.0 each"
    );
    assert_eq!(
        fault("prog {messages}", early),
        "`mine` ended after 1 of 18 messages of 1000 bytes"
    );
    let why = fault("prog", early);
    assert!(why.starts_with("`mine` ended by itself after 1234 bytes: it must send"), "{why}");
    let why = fault("prog {messages}", |near| near.say(0, ENDED));
    assert_eq!(why, "`mine` ended without connecting");
}

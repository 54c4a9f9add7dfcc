//! Conversations without sockets: whatever way the bytes come in and go out, the
//! replies are the same.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::services::Spec;
use crate::tally::Tallies;

/// A wire that takes so many bytes at a time, and then has no room once.
struct Narrow {
    room: usize,
    is_full: bool,
    deferred: bool,
    taken: Vec<u8>,
    finished: bool,
}

impl Wire for Narrow {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        assert!(!bytes.is_empty() && !self.finished);
        if std::mem::replace(&mut self.is_full, true) {
            return Ok(0);
        }
        let taken = bytes.len().min(self.room);
        self.taken.extend_from_slice(&bytes[..taken]);
        self.is_full = taken < bytes.len();
        Ok(taken)
    }

    fn is_deferred(&self) -> bool {
        self.deferred
    }

    fn finish(&mut self) {
        self.finished = true;
    }
}

/// All that a service replies to what comes in pieces, what the conversation wants
/// at the end, and the tallies.
fn converse(
    service: &str,
    pieces: &[&[u8]],
    room: usize,
    close: Close,
) -> (String, Wants, Arc<Tallies>) {
    let tallies = Tallies::new().unwrap();
    let spec = Spec::parse(service).unwrap();
    let made = spec.make(&tallies).unwrap();
    let mut answers = Answers::new(made, tallies.take().unwrap(), close);
    let deferred = room.is_multiple_of(2);
    let mut wire = Narrow { room, is_full: false, deferred, taken: Vec::new(), finished: false };
    let mut conversation = Conversation::default();
    let mut wants = Wants::Bytes;
    for piece in pieces {
        wants = conversation.feed(&mut answers, piece, &mut wire).unwrap();
        // Sometimes more comes while there is no room.
        while wants == Wants::Room && !room.is_multiple_of(3) {
            wire.is_full = false;
            wants = conversation.resume(&mut answers, &mut wire).unwrap();
        }
    }
    while wants == Wants::Room {
        wire.is_full = false;
        wants = conversation.resume(&mut answers, &mut wire).unwrap();
    }
    if wants == Wants::Bytes {
        conversation.end(&answers);
    }
    assert!(conversation.unsent.is_empty());
    (String::from_utf8(wire.taken).unwrap(), wants, tallies)
}

fn check(input: &str, expect: &str, wants: Wants, mishaps: &[(Mishap, u64)]) {
    for room in [1, 2, 3, 1 << 20] {
        let (replies, wanted, tallies) = converse("echo", &[input.as_bytes()], room, Close::Client);
        assert_eq!((replies.as_str(), wanted), (expect, wants), "{input:?}, {room}");
        assert_eq!(tallies.mishaps(), mishaps, "{input:?}");
    }
}

#[test]
fn each_request_has_its_reply() {
    check("", "", Wants::Bytes, &[]);
    check("1 a\n\n3\n", "1 a\n \n3 \n", Wants::Bytes, &[]);
    check("1 a\n2 b", "1 a\n", Wants::Bytes, &[(Mishap::CutOff, 1)]);
}

#[test]
fn nothing_is_answered_behind_an_error() {
    let why = " error a request begins with a decimal number, or is an empty line\n";
    let one = [(Mishap::NotANumber, 1)];
    check("1 a\nx\n2 b\n", &format!("1 a\n{why}"), Wants::Bytes, &one);
    check("-1\n2 b", why, Wants::Bytes, &one);
}

#[test]
fn the_longest_request_is_answered_and_one_byte_more_is_not() {
    let text = "z".repeat(REQUEST_MAX - 2);
    check(&format!("1 {text}\n2\n"), &format!("1 {text}\n2 \n"), Wants::Bytes, &[]);
    let why = "1 error a request has 65536 bytes at most\n";
    check(&format!("1 {text}z\n2\n"), why, Wants::Bytes, &[(Mishap::TooLong, 1)]);
    // It is known before its end.
    check(&format!("1 {text}zz"), why, Wants::Bytes, &[(Mishap::TooLong, 1)]);
}

#[test]
fn who_was_refused_is_read_from_for_a_while() {
    let tallies = Tallies::new().unwrap();
    let made = Spec::parse("echo").unwrap().make(&tallies).unwrap();
    let mut answers = Answers::new(made, tallies.take().unwrap(), Close::Client);
    let mut wire =
        Narrow { room: 99, is_full: false, deferred: false, taken: Vec::new(), finished: false };
    let mut conversation = Conversation::default();
    let garbage = vec![b'x'; 1 << 20];
    let mut fed = 0;
    while conversation.feed(&mut answers, &garbage, &mut wire) == Ok(Wants::Bytes) {
        assert!(wire.finished && conversation.held.capacity() == 0);
        fed += garbage.len();
    }
    assert!(fed >= LAST_BYTES_MAX);
    // However it goes then, its mishap is the one that was counted.
    conversation.fail(&answers, Errno::ECONNRESET);
    assert_eq!(tallies.mishaps(), [(Mishap::TooLong, 1)]);
}

#[test]
fn a_server_that_closes_answers_once() {
    let (replies, wants, _) = converse("echo", &[b"1 a\n2 b\n"], 2, Close::Server);
    assert_eq!((replies.as_str(), wants), ("1 a\n", Wants::Nothing));
}

#[test]
fn a_connection_without_anything_under_way_has_no_buffer() {
    let tallies = Tallies::new().unwrap();
    let made = Spec::parse("echo").unwrap().make(&tallies).unwrap();
    let mut answers = Answers::new(made, tallies.take().unwrap(), Close::Client);
    let mut wire =
        Narrow { room: 3, is_full: false, deferred: false, taken: Vec::new(), finished: false };
    let mut conversation = Conversation::default();
    let wants = conversation.feed(&mut answers, b"1 abcdef\n2 g", &mut wire);
    assert_eq!(wants, Ok(Wants::Room));
    assert!(conversation.waiting_bytes() > 0);
    wire.room = 99;
    conversation.feed(&mut answers, b"hi\n", &mut wire).unwrap();
    wire.is_full = false;
    assert_eq!(conversation.resume(&mut answers, &mut wire), Ok(Wants::Bytes));
    assert_eq!(wire.taken, b"1 abcdef\n2 ghi\n");
    assert_eq!((conversation.held.capacity(), conversation.unsent.capacity()), (0, 0));
}

proptest! {
    #[test]
    fn it_does_not_matter_how_bytes_come_and_go(
        requests in proptest::collection::vec("[0-9]{0,4}( [a-z ]{0,30})?", 0..20),
        cuts in proptest::collection::vec(0usize..400, 0..8),
        room in 1usize..40,
        slow in proptest::bool::ANY,
    ) {
        let input: String = requests.iter().map(|request| format!("{request}\n")).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|cut| &input.as_bytes()[cut[0]..cut[1]]).collect();
        let service = if slow { "burn:1" } else { "echo" };
        let expect: String = requests
            .iter()
            .map(|request| {
                let (id, text) = request.split_once(' ').unwrap_or((request, ""));
                format!("{id} {}\n", if slow { "burned" } else { text })
            })
            .collect();
        let (replies, wants, tallies) = converse(service, &pieces, room, Close::Client);
        prop_assert_eq!(replies, expect);
        prop_assert_eq!(wants, Wants::Bytes);
        prop_assert_eq!(tallies.tasks()[0].requests, requests.len() as u64);
        prop_assert_eq!(tallies.mishaps(), vec![]);
    }
}

//! One thread of the client: it sends what the books say is due, reads what
//! comes, and enters both.
//!
//! A thread waits in epoll_pwait2(2), whose timers are good to some tens of µs.
//! Where a schedule must be kept and the thread has a processor for itself, it
//! stops waiting 50 µs before a request is due and looks without waiting from
//! there on. That time is counted apart: it is no work.

use std::collections::BTreeMap;

use iolens_model::load::Length;
use iolens_sys::clock;
use iolens_sys::epoll::{Events, Ready};

use super::book::{Book, Ending, Found, Request, Results};
use super::links::{EVENTS, Links, Trouble, cannot_wait};
use super::reply::{Expected, Reply, Text};
use super::{Answer, Ends, Form, Insistence, LOOK_NS, Settings, Watch};

/// How long before a request is due a thread begins to look without waiting.
const SPIN_NS: u64 = 50_000;

/// Bytes asked of one recv(2).
const RECEIVE_BYTES: usize = 64 << 10;

/// Kinds of failures that are told apart.
const KINDS_MAX: usize = 8;

/// What went wrong and how often.
pub(super) type Failures = BTreeMap<String, u64>;

/// What failures of more kinds than that are called.
pub(super) const REST: &str = "failures of other kinds";

/// Enters a failure; when there are very many kinds, as one of the rest.
pub(super) fn enter(failures: &mut Failures, text: &str) {
    let known = failures.len() < KINDS_MAX || failures.contains_key(text);
    *failures.entry(if known { text } else { REST }.to_owned()).or_default() += 1;
}

/// One thread at work.
pub(super) struct Client<'a> {
    pub(super) settings: &'a Settings,
    pub(super) links: &'a mut Links,
    pub(super) book: Book,
    pub(super) ends: &'a Ends<'a>,
    pub(super) watch: Option<&'a Watch<'a>>,
    /// Whether it looks without waiting before a request is due.
    pub(super) spins: bool,
    pub(super) failures: Failures,
}

/// What a thread leaves behind.
pub(super) struct Left {
    pub(super) results: Results,
    pub(super) failures: Failures,
    pub(super) closing: Closing,
    /// What kept this client from going on.
    pub(super) limit: Option<String>,
}

/// What a thread had done when nothing more could become due: what follows is waiting for replies,
/// or for requests to time out.
#[derive(Clone, Copy)]
pub(super) struct Closing {
    pub(super) cpu_ns: u64,
    pub(super) spinning_ns: u64,
    pub(super) end_ns: u64,
}

/// What changes as it goes on.
struct Course {
    buffer: Vec<u8>,
    /// The request that is sent.
    line: Vec<u8>,
    held: Vec<u32>,
    next_expiry_ns: u64,
    limit: Option<String>,
}

/// Where a thread's time went: turns that only look are no work, but what a turn has done
/// before it looks is.
struct Turns {
    /// When the last turn ended, or the work of this one.
    now_ns: u64,
    spinning_ns: u64,
}

impl Turns {
    fn closing(&self, end_ns: u64) -> Closing {
        Closing { cpu_ns: clock::thread_cpu_ns(), spinning_ns: self.spinning_ns, end_ns }
    }

    /// The turn has done something, and now it looks.
    fn worked(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The turn has ended; whether all it did since was to look in vain.
    fn looked(&mut self, now_ns: u64, in_vain: bool) {
        if in_vain {
            self.spinning_ns += now_ns - self.now_ns;
        }
        self.now_ns = now_ns;
    }
}

impl Client<'_> {
    /// Sends and receives until every request has ended. No connection is left open
    /// over which a reply may still come.
    pub(super) fn run(mut self) -> Left {
        let mut course = Course {
            buffer: vec![0; RECEIVE_BYTES],
            line: Vec::new(),
            held: Vec::new(),
            next_expiry_ns: 0,
            limit: None,
        };
        let mut events = Events::with_room(EVENTS);
        let mut turns = Turns { now_ns: clock::monotonic_ns(), spinning_ns: 0 };
        let mut closing = None;
        loop {
            let now_ns = turns.now_ns;
            self.heed(now_ns, &mut course);
            if let (None, Some(end_ns)) = (closing, self.book.closed_at(now_ns)) {
                closing = Some(turns.closing(end_ns));
            }
            self.book.advance(now_ns);
            let mut worked = self.send_due(&mut course);
            if now_ns >= course.next_expiry_ns {
                self.expire(now_ns, &mut course);
                worked = true;
            }
            if self.book.is_done() {
                break;
            }
            if worked {
                turns.worked(clock::monotonic_ns());
            }
            let (timeout_ns, spins) = self.patience(turns.now_ns);
            if let Err(errno) = self.links.wait(&mut events, timeout_ns) {
                course.limit = Some(cannot_wait(errno));
            }
            for at in 0..events.len() {
                if let Some(ready) = events.get(at) {
                    self.serve(ready, &mut course);
                }
            }
            turns.looked(clock::monotonic_ns(), spins && events.is_empty());
        }
        self.close_owing(|book, slot| book.has_timed_out(slot));
        Left {
            results: self.book.results(),
            failures: self.failures,
            closing: closing.unwrap_or_else(|| turns.closing(turns.now_ns)),
            limit: course.limit,
        }
    }

    /// Ends as others want it to, or as it must.
    fn heed(&mut self, now_ns: u64, course: &mut Course) {
        if course.limit.is_some() {
            self.ends.at_limit();
        }
        match self.ends.asked() {
            None => {}
            Some(Insistence::Asked) => self.book.stop(now_ns),
            Some(Insistence::Insists) => {
                self.close_owing(|book, slot| book.is_in_flight(slot));
                self.book.abandon(now_ns);
            }
        }
    }

    /// Closes the connections that may still carry a reply to such a request. Where
    /// replies have no ids it would be taken for that to the next one.
    fn close_owing(&mut self, owes: fn(&Book, u32) -> bool) {
        let in_flight = self.settings.in_flight;
        for (index, first) in (0..self.links.len()).zip((0..).step_by(in_flight as usize)) {
            if (first..first + in_flight).any(|slot| owes(&self.book, slot)) {
                self.links.close(index);
            }
        }
    }

    /// How long to wait, and whether that is looking without waiting.
    fn patience(&self, now_ns: u64) -> (u64, bool) {
        let until_ns = self.book.next_ns().map_or(u64::MAX, |due_ns| due_ns.saturating_sub(now_ns));
        match self.spins {
            false => (until_ns.min(LOOK_NS), false),
            true if until_ns <= SPIN_NS => (0, until_ns > 0),
            true => ((until_ns - SPIN_NS).min(LOOK_NS), false),
        }
    }

    /// Sends every request that is due and has a slot; whether there was one.
    fn send_due(&mut self, course: &mut Course) -> bool {
        let mut sent = false;
        while let Some(request) = self.book.take() {
            sent = true;
            if let Err(trouble) = self.send(request, course) {
                self.lose(self.index_of(request.slot), &trouble, course);
            }
        }
        sent
    }

    fn index_of(&self, slot: u32) -> usize {
        (slot / self.settings.in_flight) as usize
    }

    fn send(&mut self, request: Request, course: &mut Course) -> Result<(), Trouble> {
        self.settings.form.write(request.id, &mut course.line);
        let index = self.index_of(request.slot);
        // Of a connection that has to be made, that is a part of the request's time.
        self.book.sent(request.slot, clock::monotonic_ns());
        if !self.links.get(index).is_open() {
            self.links.open(index)?;
        }
        self.links.send(index, &course.line)
    }

    /// Does what can be done with a connection.
    fn serve(&mut self, ready: Ready, course: &mut Course) {
        let Ok(index) = usize::try_from(ready.key) else { return };
        let mut served = self.links.settle(index, ready);
        if served.is_ok() && ready.readable {
            let mut buffer = std::mem::take(&mut course.buffer);
            served = self.receive(index, ready, &mut buffer);
            course.buffer = buffer;
        }
        if let Err(trouble) = served {
            self.lose(index, &trouble, course);
        }
        self.send_due(course);
    }

    /// Receives all there is.
    fn receive(&mut self, index: usize, ready: Ready, buffer: &mut [u8]) -> Result<(), Trouble> {
        while let Some(received) = self.links.receive(index, buffer)? {
            if received == 0 {
                return Err(Trouble::new(Ending::Reset, "the server closed a connection"));
            }
            let now_ns = clock::monotonic_ns();
            let mut at = 0;
            while at < received {
                let piece = &buffer[at..received];
                let (used, reply) =
                    self.links.get_mut(index).partial.take(piece, &self.settings.expected);
                if let Some(reply) = reply {
                    self.answer(index, &reply, piece, now_ns)?;
                }
                at += used;
            }
            // What a full read leaves, and an end behind it, are read at once; for all
            // else there will be another event (epoll(7), question 9).
            if received < buffer.len() && !ready.ended {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A reply has come whole.
    fn answer(
        &mut self,
        index: usize,
        reply: &Reply,
        piece: &[u8],
        now_ns: u64,
    ) -> Result<(), Trouble> {
        let text = match &reply.text {
            Text::Piece(range) => &piece[range.clone()],
            Text::Head => self.links.get(index).partial.head(),
        };
        let own_slot = u32::try_from(index).unwrap_or(0) * self.settings.in_flight;
        let found = match (reply.id, &self.settings.expected) {
            (None, Expected::Http) if self.book.is_in_flight(own_slot) => Found::InFlight(own_slot),
            (None, _) => Found::Unknown,
            (Some(id), _) => self.book.find(id),
        };
        let slot = match found {
            Found::InFlight(slot) if self.index_of(slot) == index => slot,
            Found::Late(slot) if self.index_of(slot) == index => {
                self.book.late(slot, now_ns);
                return Ok(());
            }
            _ => {
                let text = format!("a reply that answers no request: {}", shown(text));
                return Err(Trouble::new(Ending::Invalid, text));
            }
        };
        if let Some(watch) = self.watch {
            let (due_ns, sent_ns) = self.book.times_of(slot);
            watch(&Answer {
                connection: self.links.number(index),
                id: reply.id.unwrap_or_default(),
                due_ns,
                sent_ns,
                received_ns: now_ns,
                is_right: reply.is_right,
                text,
            });
        }
        if !reply.is_right {
            enter(&mut self.failures, &wrong(text));
        }
        let is_broken = !reply.is_right && self.settings.expected == Expected::Http;
        if self.settings.length == Length::Short || is_broken {
            self.links.close(index);
        }
        self.book.end(slot, if reply.is_right { Ending::Ok } else { Ending::Invalid }, now_ns);
        Ok(())
    }

    /// A connection is no more, and with it go its requests.
    fn lose(&mut self, index: usize, trouble: &Trouble, course: &mut Course) {
        self.links.close(index);
        let now_ns = clock::monotonic_ns();
        if trouble.ending == Ending::Abandoned {
            course.limit.get_or_insert_with(|| trouble.text.clone());
        }
        let in_flight = self.settings.in_flight;
        let first = u32::try_from(index).unwrap_or(0) * in_flight;
        for slot in first..first + in_flight {
            if self.book.is_in_flight(slot) {
                enter(&mut self.failures, &trouble.text);
                self.book.end(slot, trouble.ending, now_ns);
            } else if self.book.has_timed_out(slot) {
                self.book.release(slot, now_ns);
            }
        }
    }

    /// Ends what has waited too long. A connection with nothing but such requests
    /// is made anew: nobody knows what it is still good for.
    fn expire(&mut self, now_ns: u64, course: &mut Course) {
        let period_ns = (self.settings.timeout.0 / 64).clamp(1_000_000, LOOK_NS);
        course.next_expiry_ns = now_ns + period_ns;
        let mut held = std::mem::take(&mut course.held);
        self.book.expire(now_ns, &mut held);
        for slot in held.drain(..) {
            let text = format!("no reply in {}", self.settings.timeout);
            enter(&mut self.failures, &text);
            let index = self.index_of(slot);
            let in_flight = self.settings.in_flight;
            let first = u32::try_from(index).unwrap_or(0) * in_flight;
            if (first..first + in_flight).all(|slot| self.book.has_timed_out(slot)) {
                self.lose(index, &Trouble::new(Ending::Timeout, text), course);
            }
        }
        course.held = held;
    }
}

impl Form {
    /// Writes a request with this id over whatever was in `line`.
    fn write(&self, id: u64, line: &mut Vec<u8>) {
        line.clear();
        match self {
            Form::Request(bytes) => line.extend_from_slice(bytes),
            Form::Line { text } => {
                write_number(id, line);
                if !text.is_empty() {
                    line.push(b' ');
                    line.extend_from_slice(text);
                }
                line.push(b'\n');
            }
        }
    }
}

fn write_number(mut number: u64, line: &mut Vec<u8>) {
    let at = line.len();
    loop {
        line.push(b'0' + u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line[at..].reverse();
}

/// Why a reply is wrong, the same for all that say the same.
fn wrong(text: &[u8]) -> String {
    match text.strip_prefix(b"error ") {
        Some(why) => format!("the server says: error {}", shown(why)),
        None => format!("a wrong reply: {}", shown(text)),
    }
}

/// The beginning of a text, printable.
fn shown(text: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 60;
    let head = text[..text.len().min(SHOWN_BYTES_MAX)].escape_ascii();
    let dots = if text.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    format!("`{head}{dots}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_turn_sends_before_it_looks_in_vain_is_work() {
        let mut turns = Turns { now_ns: 1_000, spinning_ns: 0 };
        turns.worked(4_000);
        turns.looked(4_200, true);
        assert_eq!(turns.spinning_ns, 200, "3 µs of sending are none");
        // A turn that only looks is spinning from one end to the other.
        turns.looked(4_500, true);
        assert_eq!(turns.spinning_ns, 500);
        turns.looked(9_000, false);
        assert_eq!((turns.spinning_ns, turns.now_ns), (500, 9_000));
    }
}

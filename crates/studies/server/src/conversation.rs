//! What every concurrency model does with a connection, so that they differ in
//! nothing else: requests come in as bytes, replies go out as bytes, and what the
//! kernel has no room for waits here.
//!
//! Replies to requests that arrived together go out with one call, unless the
//! service takes time: then each goes out when it is there. A connection that
//! does not read its replies is not read from either. One without anything under
//! way has no buffer.

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;

use super::Close;
use super::request::{NotANumber, REQUEST_MAX, Request, id_of_beginning};
use super::services::Service;
use super::tally::Tally;

/// Replies that are put together before they are sent.
const REPLIES_BYTES: usize = 64 << 10;

/// What is read and thrown away of a client that was sent an error, until it
/// closes: closing at once would reset the connection, and the error with it.
const LAST_BYTES_MAX: usize = 16 << 20;

/// Where replies go.
pub(super) trait Wire {
    /// Takes bytes; returns how many, which are fewer where there is no room.
    ///
    /// Errors: the connection has failed.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Whether what is taken goes out later, and not before what waits is told so.
    fn is_deferred(&self) -> bool {
        false
    }

    /// Nothing more will be sent: the client reads the rest and then the end.
    fn finish(&mut self);
}

/// What answers: a thread, or a process, has one.
pub(super) struct Answers {
    pub(super) service: Box<dyn Service>,
    pub(super) tally: Tally,
    /// Whose part it is to close.
    pub(super) close: Close,
    /// Replies that are about to be sent.
    reply: Vec<u8>,
}

impl Answers {
    pub(super) fn new(service: Box<dyn Service>, tally: Tally, close: Close) -> Answers {
        Answers { service, tally, close, reply: Vec::with_capacity(REPLIES_BYTES) }
    }
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Bytes of the client.
    Bytes,
    /// Room for replies.
    Room,
    /// To be closed.
    Nothing,
}

/// A connection, apart from its socket.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// What was received and is not answered: the beginning of a request, or more
    /// where replies wait.
    held: Vec<u8>,
    /// Bytes of these that have no newline.
    searched: usize,
    /// Replies that the kernel had no room for.
    unsent: Vec<u8>,
    /// Whether requests wait for a reply to go out that took time.
    waits: bool,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Requests are answered.
    #[default]
    Open,
    /// The only reply was made, and then it is closed.
    Leaving,
    /// An error was answered, which has to arrive.
    Refusing,
    /// The error is sent; so much was thrown away since.
    Refused(usize),
}

impl Conversation {
    /// Answers what has arrived.
    ///
    /// Errors: the connection has failed, which was counted.
    #[inline]
    pub(super) fn feed(
        &mut self,
        answers: &mut Answers,
        bytes: &[u8],
        wire: &mut impl Wire,
    ) -> Result<Wants, Errno> {
        if let State::Refused(before) = &mut self.state {
            *before += bytes.len();
            let enough = *before > LAST_BYTES_MAX;
            return Ok(if enough { Wants::Nothing } else { Wants::Bytes });
        }
        let result = if self.held.is_empty() && self.unsent.is_empty() && !self.waits {
            let answered = self.answer(answers, bytes, wire);
            answered.map(|used| self.held.extend_from_slice(&bytes[used..]))
        } else {
            self.held.extend_from_slice(bytes);
            self.answer_held(answers, wire)
        };
        result.map(|()| self.wants(wire)).inspect_err(|&errno| self.fail(answers, errno))
    }

    /// Goes on where there was no room.
    ///
    /// Errors: as [`Self::feed`].
    pub(super) fn resume(
        &mut self,
        answers: &mut Answers,
        wire: &mut impl Wire,
    ) -> Result<Wants, Errno> {
        self.waits = false;
        let result = self.send_unsent(wire).and_then(|()| self.answer_held(answers, wire));
        result.map(|()| self.wants(wire)).inspect_err(|&errno| self.fail(answers, errno))
    }

    /// Bytes that wait, of requests and replies.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.held.len() + self.unsent.len()
    }

    /// The client sends no more.
    pub(super) fn end(&mut self, answers: &Answers) {
        if self.state == State::Open && !self.held.is_empty() {
            answers.tally.mishap(Mishap::CutOff);
        }
    }

    /// A call on the connection failed.
    #[cold]
    pub(super) fn fail(&mut self, answers: &Answers, errno: Errno) {
        if !matches!(self.state, State::Open | State::Leaving) {
            // Who was refused may go as he likes.
            return;
        }
        answers.tally.mishap(match errno {
            Errno::ECONNRESET | Errno::EPIPE | Errno::ENOTCONN => Mishap::Reset,
            Errno::ETIMEDOUT | Errno::EAGAIN => Mishap::TimedOut,
            _ => Mishap::Other,
        });
    }

    fn send_unsent(&mut self, wire: &mut impl Wire) -> Result<(), Errno> {
        if !self.unsent.is_empty() {
            let sent = wire.send(&self.unsent)?;
            self.unsent.drain(..sent);
        }
        if self.unsent.is_empty() {
            self.unsent = Vec::new();
        }
        Ok(())
    }

    fn answer_held(&mut self, answers: &mut Answers, wire: &mut impl Wire) -> Result<(), Errno> {
        if !self.unsent.is_empty() || self.waits {
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        let used = self.answer(answers, &held, wire)?;
        if used < held.len() {
            held.drain(..used);
            self.held = held;
        }
        Ok(())
    }

    /// Answers the requests in `bytes` as long as there is room for the replies;
    /// returns how many bytes were answered.
    #[inline]
    fn answer(
        &mut self,
        answers: &mut Answers,
        bytes: &[u8],
        wire: &mut impl Wire,
    ) -> Result<usize, Errno> {
        let mut used = 0;
        loop {
            used += self.put_together(answers, &bytes[used..]);
            if answers.reply.is_empty() {
                return Ok(used);
            }
            let sent = wire.send(&answers.reply);
            let unsent = sent.map(|sent| self.unsent.extend_from_slice(&answers.reply[sent..]));
            answers.reply.clear();
            unsent?;
            self.waits = wire.is_deferred() && answers.service.takes_time();
            if !self.unsent.is_empty() || self.waits {
                return Ok(used);
            }
        }
    }

    /// Puts the replies together that go out with one call; returns how many bytes
    /// they answer.
    #[inline]
    fn put_together(&mut self, answers: &mut Answers, bytes: &[u8]) -> usize {
        let mut used = 0;
        while self.state == State::Open {
            let rest = &bytes[used..];
            let searched = std::mem::take(&mut self.searched).min(rest.len());
            let newline = rest[searched..].iter().position(|&byte| byte == b'\n');
            let length = newline.map(|at| searched + at);
            if length.unwrap_or(rest.len()) > REQUEST_MAX {
                self.refuse(answers, id_of_beginning(&rest[..REQUEST_MAX]), Mishap::TooLong);
                break;
            }
            let Some(length) = length else {
                self.searched = rest.len();
                return used;
            };
            used += length + 1;
            match Request::parse(&rest[..length]) {
                Ok(request) => self.reply(answers, request),
                Err(NotANumber) => self.refuse(answers, b"", Mishap::NotANumber),
            }
            if answers.service.takes_time() || answers.reply.len() >= REPLIES_BYTES {
                break;
            }
        }
        // Nothing more will be answered.
        if self.state == State::Open { used } else { bytes.len() }
    }

    #[inline]
    fn reply(&mut self, answers: &mut Answers, request: Request<'_>) {
        let reply = &mut answers.reply;
        let before = reply.len();
        reply.extend_from_slice(request.id);
        reply.push(b' ');
        match answers.service.answer(request, reply) {
            Ok(()) => answers.tally.request(),
            Err(why) => {
                reply.truncate(before + request.id.len());
                reply.extend_from_slice(b" error ");
                reply.extend(why.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
                answers.tally.mishap(Mishap::Service);
            }
        }
        reply.push(b'\n');
        if answers.close == Close::Server {
            self.state = State::Leaving;
        }
    }

    #[cold]
    fn refuse(&mut self, answers: &mut Answers, id: &[u8], mishap: Mishap) {
        let why: &[u8] = match mishap {
            Mishap::TooLong => b" error a request has 65536 bytes at most\n",
            _ => b" error a request begins with a decimal number, or is an empty line\n",
        };
        answers.reply.extend_from_slice(id);
        answers.reply.extend_from_slice(why);
        answers.tally.mishap(mishap);
        self.state = State::Refusing;
    }

    #[inline]
    fn wants(&mut self, wire: &mut impl Wire) -> Wants {
        match self.state {
            _ if !self.unsent.is_empty() || self.waits => Wants::Room,
            State::Open | State::Refused(_) => Wants::Bytes,
            State::Leaving => Wants::Nothing,
            State::Refusing => {
                wire.finish();
                self.state = State::Refused(0);
                Wants::Bytes
            }
        }
    }
}

#[cfg(test)]
mod tests;

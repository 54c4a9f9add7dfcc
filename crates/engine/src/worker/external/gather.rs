//! The receiving end of a program's slice: takes its connections, one for each thread that
//! receives and what is more on the first, and counts what comes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iolens_model::external::External;
use iolens_sys::errno::Errno;
use iolens_sys::tcp::Listener;
use iolens_sys::{clock, poll, socket, tcp};

use super::{ENDED, Portion};
use crate::worker::crew::Stop;
use iolens_net::lane::Lane;
use iolens_net::receive::Received;
use iolens_net::{lane, lead};

/// How long a program may take to close its connections behind its last message, ns.
const CLOSING_NS: u64 = 5_000_000_000;

/// How long a thread with one connection waits in recv(2) itself, as the receivers of methods do:
/// with a poll(2) before each call it would wake less often, and take more each time.
const BLOCKING: Duration = Duration::from_millis(5);

/// Time between two looks whether what an ended program has sent is all here, ns.
const LOOK_NS: u64 = 2_000_000;

/// How long more is waited for of what is too much already, ns. The last bytes of a write may
/// wait for an acknowledgement, which is delayed by up to 200 ms (TCP_DELACK_MAX).
const LINGERING_NS: u64 = 500_000_000;

/// How far a slice is, over all threads.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    bytes: AtomicU64,
    /// Connections so far, and those that are open.
    connections: AtomicUsize,
    open: AtomicUsize,
    /// Whether the sending end has heard that what counts has begun.
    has_begun: AtomicBool,
    /// Threads that have seen the end of all of their connections.
    finished: AtomicUsize,
    /// Who takes a connection looks first whether there is one.
    door: Mutex<()>,
}

impl Gathered {
    /// Connections that the program has made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// One thread's part in it.
pub(crate) struct Gathering<'a> {
    pub(crate) program: &'a External,
    pub(crate) portion: Portion,
    pub(crate) shared: &'a Gathered,
    pub(crate) door: &'a Listener,
    /// The lanes of the arm, by thread.
    pub(crate) lanes: &'a [Lane],
    pub(crate) thread: usize,
    /// Bytes asked of one call.
    pub(crate) receive_bytes: usize,
    /// How long nothing may come.
    pub(crate) limit: Duration,
    /// Whether the program stays, with its connections, for the slices that follow.
    pub(crate) stays: bool,
    /// Messages that it was told to send in earlier slices, if it stays.
    pub(crate) earlier_messages: &'a dyn Fn() -> u64,
}

/// What a thread has of it.
struct Own {
    streams: Vec<OwnedFd>,
    buffer: Vec<u8>,
    received: Received,
    /// Whether it knows that what counts has begun.
    has_begun: bool,
    /// Whether it was told that the program has ended.
    is_told: bool,
    /// Bytes that all threads had when this one last waited in vain.
    seen: u64,
}

impl Gathering<'_> {
    /// Receives until all of the slice is here and this thread was released; `begin` is called
    /// when what counts begins. `streams` are this thread's connections of a program that stays.
    ///
    /// Errors: what the program did not do, or did too much; what the system said.
    pub(crate) fn gather(
        &self,
        streams: &mut Vec<OwnedFd>,
        begin: &mut dyn FnMut(),
    ) -> Result<Received, Stop> {
        let mut own = Own {
            streams: std::mem::take(streams),
            buffer: vec![0; self.receive_bytes.max(1)],
            received: Received::default(),
            has_begun: false,
            is_told: false,
            seen: 0,
        };
        self.shared.connections.fetch_add(own.streams.len(), Ordering::Relaxed);
        self.shared.open.fetch_add(own.streams.len(), Ordering::Relaxed);
        if self.portion.lead == 0 {
            self.shared.has_begun.store(true, Ordering::Release);
            // All counts, so before the first bytes are waited for, as of our methods.
            own.has_begun = true;
            begin();
        }
        while !self.is_complete() {
            let came = self.take(&mut own)?;
            if !own.has_begun && self.shared.bytes() >= self.portion.lead_bytes() {
                own.has_begun = true;
                begin();
            }
            if !came && !self.is_complete() {
                self.wait(&mut own)?;
            }
        }
        if !own.has_begun {
            begin();
        }
        own.received.end_ns = own.received.end_ns.max(own.received.first_ns);
        self.until_released()?;
        if self.stays {
            let Own { streams: own, mut buffer, received, .. } = own;
            own.iter().try_for_each(|stream| self.must_be_silent(stream, &mut buffer))?;
            *streams = own;
            return Ok(received);
        }
        if self.program.counts_messages() {
            own.streams.iter().try_for_each(|stream| self.finish(stream, &mut own.buffer))?;
        }
        if self.shared.finished.fetch_add(1, Ordering::Relaxed) + 1 == self.lanes.len() {
            let said = lane::send_byte(self.lanes[0].back());
            said.map_err(Stop::at("say that all connections have ended"))?;
        }
        Ok(own.received)
    }

    fn is_complete(&self) -> bool {
        self.shared.bytes() >= self.portion.all_bytes()
    }

    /// Takes what there is on every connection of this thread; whether there was anything.
    fn take(&self, own: &mut Own) -> Result<bool, Stop> {
        let mut came = false;
        let mut at = 0;
        while at < own.streams.len() {
            let most = self.to_the_edge().min(own.buffer.len());
            let take = if own.streams.len() == 1 { socket::recv } else { socket::recv_now };
            match take(own.streams[at].as_fd(), &mut own.buffer[..most]) {
                Ok(0) | Err(Errno::ECONNRESET) if most > 0 => {
                    own.streams.swap_remove(at);
                    self.shared.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                Ok(n) => {
                    came |= n > 0;
                    self.note(n as u64, &mut own.received)?;
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(Stop::at("receive")(errno)),
            }
            at += 1;
        }
        Ok(came)
    }

    /// Bytes up to where what counts begins or ends.
    fn to_the_edge(&self) -> usize {
        let (bytes, lead) = (self.shared.bytes(), self.portion.lead_bytes());
        let edge = if bytes < lead { lead } else { self.portion.all_bytes() };
        usize::try_from(edge.saturating_sub(bytes)).unwrap_or(usize::MAX)
    }

    /// Counts what came. With several threads some bytes at either edge count for the other
    /// side of it; what counts is as much all the same.
    fn note(&self, n: u64, received: &mut Received) -> Result<(), Stop> {
        // Relaxed: the number is all that threads exchange here.
        let before = self.shared.bytes.fetch_add(n, Ordering::Relaxed);
        let after = before + n;
        let (lead, all) = (self.portion.lead_bytes(), self.portion.all_bytes());
        let counted = after.min(all).saturating_sub(before.max(lead));
        received.tally.calls += u64::from(counted > 0);
        received.tally.bytes += counted;
        if before < lead && after >= lead {
            received.first_ns = clock::monotonic_ns();
            let said = lead::announce(self.lanes[0].back(), received.first_ns);
            said.map_err(Stop::at("say when it began"))?;
            self.shared.has_begun.store(true, Ordering::Release);
        } else if counted > 0 && received.first_ns == 0 {
            received.first_ns = clock::monotonic_ns();
        }
        if before < all && after >= all {
            received.end_ns = clock::monotonic_ns();
            received.tally.messages = self.portion.messages;
            // Who has crossed the other edge may not have said so yet.
            while !self.shared.has_begun.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let mut lanes = self.lanes.iter();
            let receipts = lanes.try_for_each(|lane| lane::send_byte(lane.back()));
            receipts.map_err(Stop::at("return the receipt"))?;
        }
        Ok(())
    }

    /// Waits until something comes, and takes a new connection.
    fn wait(&self, own: &mut Own) -> Result<(), Stop> {
        let may_accept = self.may_accept(own);
        let mut fds: Vec<BorrowedFd<'_>> = vec![self.lanes[self.thread].forth()];
        fds.extend(own.streams.iter().map(AsFd::as_fd));
        fds.extend(may_accept.then(|| self.door.as_fd()));
        let limit_ns = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let ready = match poll::readable(&fds, if own.is_told { LOOK_NS } else { limit_ns }) {
            Err(Errno::EINTR) => return Ok(()),
            ready => ready.map_err(Stop::at("wait for messages"))?,
        };
        if self.is_complete() {
            // By somebody else's bytes; the release is read later.
            return Ok(());
        }
        if ready[0] {
            let byte = lane::receive_one(self.lanes[self.thread].forth());
            own.is_told |= byte.map_err(Stop::at("hear from the sending end"))? == ENDED;
            return Ok(());
        }
        if may_accept && ready.last() == Some(&true) {
            return self.accept(own);
        }
        match ready.contains(&true) {
            true => Ok(()),
            false if own.is_told => self.must_still_come(),
            false
                if std::mem::replace(&mut own.seen, self.shared.bytes()) < self.shared.bytes() =>
            {
                Ok(())
            }
            false => Err(self.came_to_nothing(&format!("{} s", self.limit.as_secs()))),
        }
    }

    /// Whether the next connection is this thread's.
    fn may_accept(&self, own: &Own) -> bool {
        let all_have_one = self.shared.connections() >= self.lanes.len();
        own.streams.is_empty() || self.thread == 0 && (all_have_one || own.is_told)
    }

    fn accept(&self, own: &mut Own) -> Result<(), Stop> {
        let _alone = self.shared.door.lock().unwrap_or_else(PoisonError::into_inner);
        if poll::is_readable(self.door.as_fd(), 0) != Ok(true) {
            return Ok(());
        }
        let stream = self.door.accept().map_err(|error| Stop::cause(error.to_string()))?;
        tcp::limit_waits(stream.as_fd(), BLOCKING)
            .map_err(|error| Stop::cause(error.to_string()))?;
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        own.streams.push(stream);
        Ok(())
    }

    /// Nothing came for a while of a program that has ended; that is all where no connection
    /// is open any more.
    fn must_still_come(&self) -> Result<(), Stop> {
        let is_over = self.shared.open.load(Ordering::Relaxed) == 0
            && poll::is_readable(self.door.as_fd(), 0) != Ok(true);
        match is_over && !self.is_complete() {
            true => Err(self.ended_early()),
            false => Ok(()),
        }
    }

    fn ended_early(&self) -> Stop {
        let (name, bytes) = (&self.program.name, self.shared.bytes());
        let Portion { message_bytes, .. } = self.portion;
        Stop::cause(match self.program.counts_messages() {
            _ if self.shared.connections() == 0 => format!("`{name}` ended without connecting"),
            true => {
                let (sent, all) = (bytes / message_bytes.max(1), self.portion.all());
                format!("`{name}` ended after {sent} of {all} messages of {message_bytes} bytes")
            }
            false => format!(
                "`{name}` ended by itself after {bytes} bytes: it must send until its connection \
                 is closed, or take {{messages}} and send so many"
            ),
        })
    }

    fn came_to_nothing(&self, waited: &str) -> Stop {
        let name = &self.program.name;
        Stop::cause(match self.shared.connections() {
            0 => format!("`{name}` has not connected within {waited}"),
            _ => format!(
                "`{name}` has sent nothing for {waited}, after {} of {} bytes",
                self.shared.bytes(),
                self.portion.all_bytes(),
            ),
        })
    }

    /// Waits for the word that the slice is over.
    fn until_released(&self) -> Result<(), Stop> {
        let forth = self.lanes[self.thread].forth();
        while lane::receive_one(forth).map_err(Stop::at("hear that the slice is over"))? == ENDED {}
        Ok(())
    }

    /// Sees to it that nothing comes on a connection behind the last message of a program that
    /// was told how many there are.
    fn finish(&self, stream: &OwnedFd, buffer: &mut [u8]) -> Result<(), Stop> {
        let name = &self.program.name;
        // Its end may wait for ours. One that has gone has ended, too.
        let _ = tcp::finish_sending(stream.as_fd());
        let (mut more, deadline_ns) = (0u64, clock::monotonic_ns() + CLOSING_NS);
        loop {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return Err(Stop::cause(format!(
                    "`{name}` has not closed its connection within {} s of its last message",
                    CLOSING_NS / 1_000_000_000
                )));
            }
            match poll::is_readable(stream.as_fd(), left_ns) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Stop::at("wait for the end of a connection")(errno)),
            }
            match socket::recv_now(stream.as_fd(), buffer) {
                Ok(0) | Err(Errno::ECONNRESET) if more == 0 => return Ok(()),
                Ok(0) | Err(Errno::ECONNRESET) => return Err(self.too_much(more)),
                Ok(n) => more += n as u64,
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(Stop::at("receive")(errno)),
            }
        }
    }

    /// Nothing may come on a connection that stays before the next slice.
    fn must_be_silent(&self, stream: &OwnedFd, buffer: &mut [u8]) -> Result<(), Stop> {
        let mut more = 0;
        loop {
            match socket::recv_now(stream.as_fd(), buffer) {
                Ok(0) | Err(Errno::ECONNRESET) => {
                    return Err(Stop::cause(format!(
                        "`{}` closed its connection, which it needs in the slices that follow",
                        self.program.name
                    )));
                }
                Ok(n) => more += n as u64,
                Err(Errno::EINTR) => {}
                Err(_) if more == 0 => return Ok(()),
                // The rest may be on its way.
                Err(_) if poll::is_readable(stream.as_fd(), LINGERING_NS) == Ok(true) => {}
                Err(_) => return Err(self.too_much(more)),
            }
        }
    }

    /// In all slices so far: what is too much in one may be read in the next.
    fn too_much(&self, more: u64) -> Stop {
        let Portion { message_bytes, .. } = self.portion;
        let messages = self.portion.all().saturating_add((self.earlier_messages)());
        let bytes = messages.saturating_mul(message_bytes).saturating_add(more);
        let each = bytes as f64 / messages.max(1) as f64;
        Stop::cause(format!(
            "`{}` sent {bytes} bytes for {messages} messages of {message_bytes} bytes: {each:.1} \
             each",
            self.program.name
        ))
    }
}

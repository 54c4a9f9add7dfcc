//! The receiving end of a trial. Each slice, on each thread: read the
//! counters, say `ready`, receive. All threads add what they get to one
//! number; the one whose bytes complete the slice returns a receipt on every
//! connection of the arm. A release byte, which the sender sends outside its
//! clock, then sets those free that still wait in recv. So no receiver needs
//! to know how the work was divided, or to look at what it got.
//! In mode `rr` this end asks for each message and holds the clock.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use iolens_model::axes::Mode;
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_sys::errno::Errno;
use iolens_sys::{clock, socket};

use super::bracket::Bracket;
use super::crew::{Crew, Stop};
use super::protocol::{EndReport, Failure};
use super::report::{self, ThreadReport, ThreadSlice};
use super::requests::{self, Times};
use super::sampling::StackSampler;
use super::{facts, lead, link};
use crate::op::{Budget, Span, Tally};
use crate::registry;

/// How far a slice is, over all threads.
struct Progress {
    bytes: AtomicU64,
    ended: AtomicUsize,
    /// Requests to make, over all threads.
    requests: Budget,
}

impl Progress {
    fn of(trial: &Trial, slice: &Slice) -> Progress {
        Progress {
            bytes: AtomicU64::new(0),
            ended: AtomicUsize::new(0),
            requests: Budget::of(trial, slice),
        }
    }
}

/// What a thread waits for in a slice.
#[derive(Clone, Copy)]
enum Awaited {
    /// This many bytes over all threads; 0 for an arm that sends nothing.
    Bytes(u64),
    /// The end of the stream.
    End,
    /// Answers to its requests.
    Answers,
    /// As much as the sender will have sent.
    Announced,
}

/// Runs the receiving end to its last slice.
///
/// Errors: the first failure of any thread, with the slice that ran.
pub(crate) fn run(crew: &Crew<'_>) -> Result<EndReport, Failure> {
    let trial = crew.trial;
    let progress: Vec<Progress> =
        trial.slices.iter().map(|slice| Progress::of(trial, slice)).collect();
    let reports = crew.run(|thread, slice| thread_slices(crew, &progress, thread, slice))?;
    Ok(report::merge(trial, crew.links, &reports, |arm| sends_something(trial, arm)))
}

fn sends_something(trial: &Trial, arm: usize) -> bool {
    let id = &trial.arms[arm].primitive;
    registry::find(id).is_some_and(|entry| entry.is_received(trial.cell.topology))
}

fn awaited(trial: &Trial, slice: &Slice) -> Awaited {
    match slice.work {
        _ if !sends_something(trial, slice.arm) => Awaited::Bytes(0),
        _ if trial.cell.mode == Mode::Rr => Awaited::Answers,
        _ if slice.is_lead() => Awaited::Announced,
        Work::Messages(messages) => {
            Awaited::Bytes(messages.saturating_mul(trial.cell.message_bytes.0))
        }
        Work::Window(_) => Awaited::End,
    }
}

fn thread_slices(
    crew: &Crew<'_>,
    progress: &[Progress],
    thread: usize,
    current: &mut Option<usize>,
) -> Result<ThreadReport, Stop> {
    let trial = crew.trial;
    let cpus = facts::pin(&trial.rx_cpus, thread)?;
    let mut bracket = Bracket::open(thread, &trial.rx_cpus, trial.pass, trial.probes);
    let receive_bytes = usize::try_from(trial.socket.receive_bytes.0).unwrap_or(usize::MAX);
    let mut buffer = vec![1u8; receive_bytes];
    let mut times: Vec<Times> = match trial.cell.mode {
        Mode::Rr => trial.arms.iter().map(|_| Times::new()).collect(),
        Mode::Stream => Vec::new(),
    };
    let mut sampler = StackSampler::open(trial);
    crew.ready(thread)?;
    let mut slices = Vec::with_capacity(trial.slices.len());
    for (index, slice) in trial.slices.iter().enumerate() {
        *current = Some(index);
        let task = Task { crew, thread, slice, progress: &progress[index] };
        let fd = crew.links.get(slice.arm, thread);
        let times = times.get_mut(slice.arm).filter(|_| slice.kind == SliceKind::Measured);
        let done = task.run(fd, &mut buffer, times, &mut bracket)?;
        sampler.collect(slice, done.span.first_call_ns, done.end_ns);
        slices.push(done);
    }
    let latency = times.iter().map(Times::histogram).collect();
    Ok(ThreadReport { slices, bracket, cpus, latency, sampler, arm_facts: Vec::new() })
}

/// What a thread received in a slice.
#[derive(Default)]
struct Received {
    tally: Tally,
    first_ns: u64,
    end_ns: u64,
}

impl Received {
    fn note(&mut self, bytes: usize) {
        if self.tally.calls == 0 {
            self.first_ns = clock::monotonic_ns();
        }
        self.tally.calls += 1;
        self.tally.bytes += bytes as u64;
    }
}

/// One slice of one thread.
struct Task<'a> {
    crew: &'a Crew<'a>,
    thread: usize,
    slice: &'a Slice,
    progress: &'a Progress,
}

impl Task<'_> {
    fn run(
        &self,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        times: Option<&mut Times>,
        bracket: &mut Bracket,
    ) -> Result<ThreadSlice, Stop> {
        bracket.count(self.crew.trial.counts(self.slice.arm));
        let connected = self.crew.trial.cell.topology.has_receiver();
        let connection = connected.then_some(fd);
        let outer_before = bracket.outer_before(connection);
        let mut inner_before = bracket.inner_before();
        link::send_byte(fd).map_err(Stop::at("say that it is ready"))?;
        let awaited = awaited(self.crew.trial, self.slice);
        let received = match awaited {
            Awaited::Bytes(target) => self.receive_bytes(fd, buffer, target),
            Awaited::End => self.receive_until_end(fd, buffer),
            Awaited::Announced => self.follow(fd, buffer),
            Awaited::Answers => {
                link::receive_byte(fd).map_err(Stop::at("hear that it may ask"))?;
                inner_before = bracket.inner_before();
                self.ask(fd, buffer, times)
            }
        };
        let received = received.map_err(Stop::at("receive"))?;
        let inner_after = bracket.inner_after();
        if matches!(awaited, Awaited::Answers) {
            link::receive_byte(fd).map_err(Stop::at("hear that the slice is over"))?;
        }
        let outer_after = bracket.outer_after(connection);
        let mut counts =
            bracket.between([&inner_before, &inner_after], [&outer_before, &outer_after]);
        counts.bytes = received.tally.bytes;
        counts.calls = received.tally.calls;
        // Each connection carries whole messages.
        counts.messages = received.tally.bytes / self.crew.trial.cell.message_bytes.0;
        let span = Span { first_call_ns: received.first_ns, last_call_ns: received.end_ns };
        Ok(ThreadSlice { span, end_ns: received.end_ns, counts })
    }

    /// Receives a lead, of which nothing is counted.
    fn follow(&self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Received, Errno> {
        let signal = self.crew.links.signal(self.thread).ok_or(Errno::ENOTCONN)?;
        lead::follow(fd, signal, buffer, link::stall_limit(self.crew.trial))?;
        Ok(Received::default())
    }

    /// Asks for messages until the slice's requests are used up.
    fn ask(
        &self,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        times: Option<&mut Times>,
    ) -> Result<Received, Errno> {
        let size = usize::try_from(self.crew.trial.cell.message_bytes.0).unwrap_or(usize::MAX);
        let done = requests::exchange(fd, &self.progress.requests, size, buffer, times)?;
        Ok(Received {
            tally: done.tally,
            first_ns: done.span.first_call_ns,
            end_ns: done.span.last_call_ns,
        })
    }

    /// Receives until the arm's threads together have `target` bytes and this
    /// connection was released.
    fn receive_bytes(
        &self,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        target: u64,
    ) -> Result<Received, Errno> {
        let total = &self.progress.bytes;
        let mut received = Received::default();
        loop {
            let n = match socket::recv(fd, buffer) {
                Ok(0) => return Err(Errno::ENODATA),
                Ok(n) => n,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            };
            // Relaxed: the number is all that threads exchange here.
            let before = total.fetch_add(n as u64, Ordering::Relaxed);
            let after = before + n as u64;
            if after <= target {
                received.note(n);
                if after == target {
                    self.receipt()?;
                    received.end_ns = clock::monotonic_ns();
                }
            } else if before >= target && n == 1 {
                // The release: it is sent only after the receipt, hence alone.
                received.end_ns = received.end_ns.max(received.first_ns);
                return Ok(received);
            } else {
                return Err(Errno::EMSGSIZE);
            }
        }
    }

    /// Receives until the sender ends the stream; the last thread to see the
    /// end returns the receipts.
    fn receive_until_end(&self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Received, Errno> {
        let mut received = Received::default();
        loop {
            match socket::recv(fd, buffer) {
                Ok(0) => break,
                Ok(n) => received.note(n),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let ended = self.progress.ended.fetch_add(1, Ordering::Relaxed) + 1;
        if ended == self.crew.trial.cell.threads as usize {
            self.receipt()?;
        }
        received.end_ns = clock::monotonic_ns();
        Ok(received)
    }

    /// Tells every sending thread of the slice that all of it has arrived.
    fn receipt(&self) -> Result<(), Errno> {
        let mut connections = self.crew.links.of_arm(self.slice.arm).iter();
        connections.try_for_each(|fd| link::send_byte(fd.as_fd()))
    }
}

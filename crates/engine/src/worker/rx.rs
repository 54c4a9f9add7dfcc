//! The receiving end of a trial. Each slice, on each thread: read the
//! counters, say `ready`, receive. All threads add what they get to one
//! number; the one whose bytes complete the slice returns a receipt on every
//! connection of the arm. A release byte, which the sender sends outside its
//! clock, then sets those free that still wait in recv. So no receiver needs
//! to know how the work was divided, or to look at what it got.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use iolens_model::outcome::Counts;
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_sys::errno::Errno;
use iolens_sys::{clock, socket};

use super::bracket::{self, Bracket};
use super::crew::{Crew, Stop};
use super::facts;
use super::link::{self, Links};
use super::protocol::{EndReport, EndSlice, Failure};
use crate::op::Tally;
use crate::registry::{self, Ends};

/// How far a slice is, over all threads.
#[derive(Default)]
struct Progress {
    bytes: AtomicU64,
    ended: AtomicUsize,
}

/// One slice on one thread.
struct ThreadSlice {
    first_ns: u64,
    end_ns: u64,
    counts: Counts,
}

/// What one thread brings home.
struct ThreadReport {
    slices: Vec<ThreadSlice>,
    bracket: Bracket,
    cpus: Vec<u32>,
}

/// What a thread waits for in a slice.
enum Awaited {
    /// This many bytes over all threads; 0 for an arm that sends nothing.
    Bytes(u64),
    /// The end of the stream.
    End,
}

/// Runs the receiving end to its last slice.
///
/// Errors: the first failure of any thread, with the slice that ran.
pub(crate) fn run(crew: &Crew<'_>) -> Result<EndReport, Failure> {
    let progress: Vec<Progress> = crew.trial.slices.iter().map(|_| Progress::default()).collect();
    let reports = crew.run(|thread, slice| thread_slices(crew, &progress, thread, slice))?;
    Ok(merge(crew.trial, crew.links, &reports))
}

fn sends_something(trial: &Trial, slice: &Slice) -> bool {
    let id = &trial.arms[slice.arm].primitive;
    registry::find(id).is_some_and(|entry| entry.ends == Ends::Pair)
}

fn awaited(trial: &Trial, slice: &Slice) -> Awaited {
    match slice.work {
        _ if !sends_something(trial, slice) => Awaited::Bytes(0),
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
    let mut bracket = Bracket::open(thread, &trial.rx_cpus, trial.pass);
    let receive_bytes = usize::try_from(trial.socket.receive_bytes.0).unwrap_or(usize::MAX);
    let mut buffer = vec![1u8; receive_bytes];
    crew.ready(thread)?;
    let mut slices = Vec::with_capacity(trial.slices.len());
    for (index, slice) in trial.slices.iter().enumerate() {
        *current = Some(index);
        let task = Task { crew, slice, progress: &progress[index] };
        let fd = crew.links.get(slice.arm, thread);
        slices.push(task.run(fd, &mut buffer, &mut bracket)?);
    }
    Ok(ThreadReport { slices, bracket, cpus })
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
    slice: &'a Slice,
    progress: &'a Progress,
}

impl Task<'_> {
    fn run(
        &self,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        bracket: &mut Bracket,
    ) -> Result<ThreadSlice, Stop> {
        let outer_before = bracket.outer(Some(fd));
        let inner_before = bracket.inner_before();
        link::send_byte(fd).map_err(Stop::at("say that it is ready"))?;
        let received = match awaited(self.crew.trial, self.slice) {
            Awaited::Bytes(target) => self.receive_bytes(fd, buffer, target),
            Awaited::End => self.receive_until_end(fd, buffer),
        };
        let received = received.map_err(Stop::at("receive"))?;
        let inner_after = bracket.inner_after();
        let outer_after = bracket.outer(Some(fd));
        let mut counts =
            bracket.between([&inner_before, &inner_after], [&outer_before, &outer_after]);
        counts.bytes = received.tally.bytes;
        counts.calls = received.tally.calls;
        Ok(ThreadSlice { first_ns: received.first_ns, end_ns: received.end_ns, counts })
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

/// Puts the threads' slices together; an arm that sends nothing has none.
fn merge(trial: &Trial, links: &Links, threads: &[ThreadReport]) -> EndReport {
    let slice = |(index, slice): (usize, &Slice)| {
        if slice.kind == SliceKind::Warm || !sends_something(trial, slice) {
            return None;
        }
        let parts = || threads.iter().map(|thread| &thread.slices[index]);
        let mut counts = Counts::default();
        for (i, part) in parts().enumerate() {
            bracket::add(&mut counts, &part.counts, i == 0);
        }
        let first = parts().filter(|part| part.counts.calls > 0).map(|part| part.first_ns).min()?;
        let last = parts().map(|part| part.end_ns).max()?;
        counts.time_ns = last.saturating_sub(first);
        counts.messages = counts.bytes / trial.cell.message_bytes.0;
        Some(EndSlice { counts, all_active_ns: 0 })
    };
    let ends = threads.iter().map(|thread| (&thread.bracket, thread.cpus.clone()));
    EndReport {
        facts: facts::end_facts(trial, links, ends),
        slices: trial.slices.iter().enumerate().map(slice).collect(),
    }
}

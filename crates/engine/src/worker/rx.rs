//! The receiving end of a trial. Each slice, on each thread: read the
//! counters, say `ready`, receive. All threads add what they get to one
//! number; the one whose bytes complete the slice returns a receipt on every
//! connection of the arm. A release byte, which the sender sends outside its
//! clock, then sets those free that still wait in recv. So no receiver needs
//! to know how the work was divided, or to look at what it got.
//! In mode `rr` this end asks for each message and holds the clock.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use iolens_model::outcome::ArmFact;
use iolens_model::transport::CONNECTIONS;
use iolens_model::transport::Transport;
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_sys::errno::Errno;
use iolens_sys::{clock, tcp, udp};

use super::bracket::Bracket;
use super::crew::{Crew, Stop, ThreadReport, ThreadSlice};
use super::external::{Gathered, Gathering, Portion};
use super::flow::{self, Follower};
use super::protocol::{EndReport, Failure};
use super::sampling::StackSampler;
use super::{facts, link, report};
use iolens_harness::op::{Budget, Span};
use iolens_harness::stream::Times;
use iolens_net::lane::Lane;
use iolens_net::receive::{Quota, Received, Receiver};
use iolens_net::take::Setup;
use iolens_net::{lane, receivers, registry};

/// How far a slice is, over all threads.
struct Progress {
    bytes: AtomicU64,
    ended: AtomicUsize,
    /// Requests to make, over all threads.
    requests: Budget,
    /// What came of a program.
    gathered: Gathered,
}

impl Progress {
    fn of(trial: &Trial, slice: &Slice) -> Progress {
        Progress {
            bytes: AtomicU64::new(0),
            ended: AtomicUsize::new(0),
            requests: Budget::of(trial, slice),
            gathered: Gathered::default(),
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
    /// The empty datagram that ends a slice, and whatever comes before it.
    Datagrams,
    /// So much of a program.
    OfProgram(Portion),
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
    let of_registry = registry::find(id).is_some_and(|entry| entry.is_received(&trial.cell));
    of_registry || trial.program(arm).is_some()
}

fn awaited(trial: &Trial, slice: &Slice) -> Awaited {
    match slice.work {
        _ if !sends_something(trial, slice.arm) => Awaited::Bytes(0),
        _ if trial.cell.is_rr() => Awaited::Answers,
        _ if link::transport(trial, slice.arm).loses() => Awaited::Datagrams,
        Work::Messages(messages) if trial.program(slice.arm).is_some() => {
            let portion = if trial.programs_loop { Portion::without_lead } else { Portion::of };
            Awaited::OfProgram(portion(messages, trial.cell.size.0))
        }
        _ if slice.is_lead() => Awaited::Announced,
        Work::Messages(messages) => Awaited::Bytes(messages.saturating_mul(trial.cell.size.0)),
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
    let mut cpus = facts::pin(&trial.rx_cpus, thread)?;
    let mut bracket = Bracket::open(thread, &trial.rx_cpus, trial.pass, trial.probes);
    let mut follower = Follower::of(trial, crew.links, thread, bracket.pmu().is_none());
    let mut receiver = open_receiver(crew, thread)?;
    let mut times: Vec<Times> = match trial.cell.is_rr() {
        true => trial.arms.iter().map(|_| Times::default()).collect(),
        false => Vec::new(),
    };
    let mut sampler = StackSampler::open(trial);
    crew.ready(thread)?;
    let mut streams: Vec<Vec<OwnedFd>> = trial.arms.iter().map(|_| Vec::new()).collect();
    let mut slices = Vec::with_capacity(trial.slices.len());
    for (index, slice) in trial.slices.iter().enumerate() {
        *current = Some(index);
        sampler.sample(trial.samples(slice.arm)).map_err(Stop::at("switch sampling"))?;
        let task = Task { crew, thread, index, slice, progress: &progress[index] };
        follower.turn_to(index)?;
        receiver.turn_to(slice.arm);
        let times = times.get_mut(slice.arm).filter(|_| slice.kind == SliceKind::Measured);
        let streams = &mut streams[slice.arm];
        let done = task.run(receiver.as_mut(), streams, times, &mut bracket)?;
        sampler.collect(slice, &done);
        slices.push(done);
    }
    let homes = follower.homes();
    if !homes.is_empty() {
        cpus = flow::distinct(&homes);
    }
    let latency = times.iter().map(Times::histogram).collect();
    Ok(ThreadReport {
        slices,
        bracket,
        cpus,
        homes,
        latency,
        sampler,
        arm_facts: if thread == 0 { connections(trial, progress) } else { Vec::new() },
        starts: Vec::new(),
    })
}

/// The connections of programs, where they are not one for each thread.
fn connections(trial: &Trial, progress: &[Progress]) -> Vec<ArmFact> {
    let threads = trial.cell.threads as usize;
    let made = trial.slices.iter().zip(progress);
    let made = made.filter(|(slice, _)| trial.program(slice.arm).is_some());
    let made = made.map(|(slice, progress)| (slice.arm, progress.gathered.connections()));
    let facts = made.filter(|(_, made)| *made != threads).map(|(arm, made)| ArmFact {
        arm,
        name: CONNECTIONS.to_owned(),
        value: made.to_string(),
    });
    facts.collect()
}

/// This thread's receiver, which serves all arms in turn.
fn open_receiver<'a>(crew: &Crew<'a>, thread: usize) -> Result<Box<dyn Receiver + 'a>, Stop> {
    let trial = crew.trial;
    let net = trial.cell.net();
    let net = net.ok_or_else(|| Stop::cause("nobody receives in this study".to_owned()))?;
    let id = &net.receiver;
    let entry = receivers::find(id)
        .ok_or_else(|| Stop::cause(format!("this build knows no receiver `{id}`")))?;
    let setup = Setup {
        links: (0..trial.arms.len()).map(|arm| crew.links.data(arm, thread)).collect(),
        pipes: (0..trial.arms.len()).map(|arm| is_pipe(trial, arm)).collect(),
        receive_bytes: usize::try_from(trial.socket.receive_bytes.0).unwrap_or(usize::MAX),
        fields: net.fields as usize,
        stall_limit: link::stall_limit(trial),
    };
    (entry.open)(setup).map_err(|error| Stop::not_set_up(&error))
}

fn is_pipe(trial: &Trial, arm: usize) -> bool {
    link::transport(trial, arm) == Transport::Pipe
}

/// One slice of one thread.
struct Task<'a> {
    crew: &'a Crew<'a>,
    thread: usize,
    /// Its place in the trial.
    index: usize,
    slice: &'a Slice,
    progress: &'a Progress,
}

impl Task<'_> {
    fn run(
        &self,
        receiver: &mut dyn Receiver,
        streams: &mut Vec<OwnedFd>,
        times: Option<&mut Times>,
        bracket: &mut Bracket,
    ) -> Result<ThreadSlice, Stop> {
        let lane = &self.crew.links.of_arm(self.slice.arm)[self.thread];
        bracket.count(self.crew.trial.counts(self.slice.arm));
        let awaited = awaited(self.crew.trial, self.slice);
        let door = self.crew.links.program_door(self.slice.arm);
        let received = self.crew.trial.cell.has_receiver() && door.is_none();
        let connection = lane.tcp().filter(|_| received);
        let connects_anew = self.crew.trial.whole_program(self.slice.arm).is_some();
        if let (Some(door), 0, true) = (door, self.thread, connects_anew) {
            // What the programs of earlier slices may have left there.
            link::turn_away(door);
        }
        let multishot_before = receiver.multishot();
        let outer_before = bracket.outer_before(connection);
        lane::send_byte(lane.back()).map_err(Stop::at("say that it is ready"))?;
        // While the sender wakes, where it has another CPU: the saying is in nobody's numbers.
        let mut inner_before = bracket.inner_before();
        let received = match awaited {
            Awaited::Bytes(target) => self.receive(receiver, target),
            Awaited::End | Awaited::Datagrams => self.receive_until_end(receiver, connection),
            Awaited::Announced => self.follow(receiver),
            Awaited::Answers => {
                lane::receive_byte(lane.back()).map_err(Stop::at("hear that it may ask"))?;
                inner_before = bracket.inner_before();
                self.ask(receiver, lane, times)
            }
            Awaited::OfProgram(portion) => Ok(self.gather(portion, streams, &mut || {
                inner_before = bracket.inner_before();
            })?),
        };
        let received = received.map_err(Stop::at("receive"))?;
        let inner_after = bracket.inner_after();
        if matches!(awaited, Awaited::Answers | Awaited::Datagrams) {
            lane::receive_byte(lane.back()).map_err(Stop::at("hear that the slice is over"))?;
        }
        if matches!(awaited, Awaited::Datagrams) {
            // The end of a slice may have been said more than once.
            udp::drain(lane.data()).map_err(Stop::at("receive what is left of a slice"))?;
        }
        let outer_after = bracket.outer_after(connection);
        let mut counts =
            bracket.between([&inner_before, &inner_after], [&outer_before, &outer_after]);
        counts.bytes = received.tally.bytes;
        counts.calls = Some(received.tally.calls);
        counts.mapped_bytes = received.mapped_bytes;
        let multishot = receiver.multishot().zip(multishot_before);
        counts.multishot = multishot.map(|(after, before)| after.since(&before));
        counts.messages = match awaited {
            Awaited::OfProgram(_) => received.tally.messages,
            // Each connection carries whole messages.
            _ => received.tally.bytes / self.crew.trial.cell.size.0,
        };
        let span = Span { first_call_ns: received.first_ns, last_call_ns: received.end_ns };
        let own_cpu_ns = inner_after.own_cpu_ns(&inner_before);
        Ok(ThreadSlice { span, end_ns: received.end_ns, counts, own_cpu_ns })
    }

    /// Receives a lead, of which nothing is counted.
    fn follow(&self, receiver: &mut dyn Receiver) -> Result<Received, Errno> {
        let signal = self.crew.links.signal(self.thread).ok_or(Errno::ENOTCONN)?;
        receiver.follow(signal, link::stall_limit(self.crew.trial))?;
        Ok(Received::default())
    }

    /// Receives what a program sends.
    fn gather(
        &self,
        portion: Portion,
        streams: &mut Vec<OwnedFd>,
        begin: &mut dyn FnMut(),
    ) -> Result<Received, Stop> {
        let (trial, arm) = (self.crew.trial, self.slice.arm);
        let here = trial.program(arm).zip(self.crew.links.program_door(arm));
        let (program, door) =
            here.ok_or_else(|| Stop::cause("this end has no port for programs".to_owned()))?;
        let gathering = Gathering {
            program,
            portion,
            shared: &self.progress.gathered,
            door,
            lanes: self.crew.links.of_arm(arm),
            thread: self.thread,
            receive_bytes: usize::try_from(trial.socket.receive_bytes.0).unwrap_or(usize::MAX),
            limit: link::stall_limit(trial),
            stays: trial.programs_loop,
            earlier_messages: &|| if trial.programs_loop { self.earlier_messages() } else { 0 },
        };
        gathering.gather(streams, begin)
    }

    /// Messages of the arm's slices before this one.
    fn earlier_messages(&self) -> u64 {
        let earlier = &self.crew.trial.slices[..self.index];
        let messages = earlier.iter().filter(|slice| slice.arm == self.slice.arm).map(|slice| {
            match slice.work {
                Work::Messages(messages) => messages,
                Work::Window(_) => 0,
            }
        });
        messages.sum()
    }

    /// Asks for messages until the slice's requests are used up.
    fn ask(
        &self,
        receiver: &mut dyn Receiver,
        lane: &Lane,
        times: Option<&mut Times>,
    ) -> Result<Received, Errno> {
        let size = usize::try_from(self.crew.trial.cell.size.0).unwrap_or(usize::MAX);
        let done = receiver.exchange(lane.requests(), &self.progress.requests, size, times)?;
        Ok(Received {
            tally: done.tally,
            mapped_bytes: done.mapped_bytes,
            first_ns: done.span.first_call_ns,
            end_ns: done.span.last_call_ns,
            ..Received::default()
        })
    }

    /// Receives until the arm's threads together have `target` bytes and this
    /// connection was released.
    fn receive(&self, receiver: &mut dyn Receiver, target: u64) -> Result<Received, Errno> {
        let complete = || self.receipt();
        receiver.receive(&Quota { total: &self.progress.bytes, target, complete: &complete })
    }

    /// Receives until the sender ends the stream, or the slice; the last thread to see the
    /// end returns the receipts.
    fn receive_until_end(
        &self,
        receiver: &mut dyn Receiver,
        connection: Option<BorrowedFd<'_>>,
    ) -> Result<Received, Errno> {
        let mut received = receiver.receive_until_end()?;
        // Or the sender would wait: behind an end the kernel acknowledges late (tcp_fin).
        connection.map_or(Ok(()), tcp::finish_sending)?;
        let ended = self.progress.ended.fetch_add(1, Ordering::Relaxed) + 1;
        if ended == self.crew.trial.cell.threads as usize {
            self.receipt()?;
        }
        received.end_ns = clock::monotonic_ns();
        Ok(received)
    }

    /// Tells every sending thread of the slice that all of it has arrived.
    fn receipt(&self) -> Result<(), Errno> {
        let mut lanes = self.crew.links.of_arm(self.slice.arm).iter();
        lanes.try_for_each(|lane| lane::send_byte(lane.back()))
    }
}

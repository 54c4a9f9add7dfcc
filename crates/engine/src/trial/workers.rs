//! The worker processes of a trial and the conversation with them, on one thread:
//! every wait is a poll over all pipes and the user's interrupt, and has an end.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Sender, channel};

use iolens_model::outcome::Environment;
use iolens_model::plan::NetworkOptions;
use iolens_model::units::Nanos;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{clock, poll};

use super::Trouble;
use crate::far::wire::NOT_NAMED;
use crate::far::{Far, Heard};
use crate::worker::protocol::{
    BUILD, Failure, FromWorker, PROTOCOL_VERSION, Side, StageStep, ToWorker,
};
use iolens_harness::frames::{FrameBuffer, write_frame};
use iolens_programs::describe_end;
use iolens_programs::spawn::{END_VARIABLE, Launch, Spawned, spawn};

/// A worker that has not said hello by then is not one.
const HELLO_LIMIT_NS: u64 = 10_000_000_000;

/// Is of random length in each worker, and read by nobody.
const PADDING_VARIABLE: &str = "IOLENS_PADDING";

/// How long the survivor may take to say which slice ran when the other died.
const GRACE_NS: u64 = 1_000_000_000;

/// One worker process.
struct Worker {
    /// What messages to the user call it: `sending`.
    name: String,
    stands: Stands,
    buffer: FrameBuffer,
    ended: bool,
}

/// Where a worker is, and how it is spoken to.
enum Stands {
    Here {
        child: Child,
        orders: Option<Sender<ToWorker>>,
        stdout: ChildStdout,
    },
    /// At the other end, by its number there.
    There(u32),
}

/// What a wait ended with.
enum Event {
    Message(usize, FromWorker),
    /// The worker's stdout has ended.
    Gone(usize),
    TimeUp,
    Interrupted,
}

/// Worker processes, known by their place in the order in which they were started;
/// killed and reaped when dropped.
pub(crate) struct Workers<'a> {
    workers: Vec<Worker>,
    /// The other end, where a worker is to be there.
    far: Option<&'a mut Far>,
    /// Why it was lost.
    lost: Option<String>,
    interrupts: Option<&'a Interrupts>,
    /// Moves the stacks of all of them.
    random: u64,
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            match &mut worker.stands {
                Stands::Here { child, orders, .. } => {
                    // Closing its control pipe asks it to end; killing makes sure, and
                    // ends the thread that may still be writing to it.
                    *orders = None;
                    let _ = child.kill();
                    let _ = child.wait();
                }
                Stands::There(number) => {
                    self.far.iter().for_each(|far| far.dismiss(*number));
                }
            }
        }
    }
}

impl Worker {
    fn new(name: String, stands: Stands) -> Worker {
        Worker { name, stands, buffer: FrameBuffer::default(), ended: false }
    }

    /// The number of one that is at the other end.
    fn number(&self) -> Option<u32> {
        match self.stands {
            Stands::Here { .. } => None,
            Stands::There(number) => Some(number),
        }
    }
}

/// Starts a worker on this machine.
fn start_here(
    launch: &Launch,
    environment: &[(&str, &str)],
    socket: Option<OwnedFd>,
) -> Result<Stands, Trouble> {
    let Spawned { child, stdin, stdout } =
        spawn(launch, environment, socket).map_err(Trouble::failed)?;
    Ok(Stands::Here { child, orders: Some(writer(stdin)), stdout })
}

/// A thread that writes orders to a worker, so that nobody else can be held
/// up by a worker that does not read. Dropping the sender closes the pipe.
fn writer(mut stdin: ChildStdin) -> Sender<ToWorker> {
    let (orders, to_write) = channel::<ToWorker>();
    std::thread::spawn(move || {
        for message in to_write {
            if write_frame(&mut stdin, &message).is_err() {
                return;
            }
        }
    });
    orders
}

impl<'a> Workers<'a> {
    /// No worker yet. `far` is where those are that are not on this machine.
    pub(crate) fn none(
        far: Option<&'a mut Far>,
        interrupts: Option<&'a Interrupts>,
    ) -> Workers<'a> {
        Workers { workers: Vec::new(), far, lost: None, interrupts, random: token() }
    }

    /// Starts one more. `name` is what messages call it, `end` what others find it by, `socket`
    /// what it has of a pair with another worker.
    pub(crate) fn start(
        &mut self,
        name: &str,
        end: Side,
        launch: &Launch,
        socket: Option<OwnedFd>,
    ) -> Result<(), Trouble> {
        let padding = self.padding();
        let environment = [(PADDING_VARIABLE, padding.as_str()), (END_VARIABLE, end.short())];
        let stands = start_here(launch, &environment, socket)?;
        self.workers.push(Worker::new(name.to_owned(), stands));
        Ok(())
    }

    /// Starts one more, at the other end.
    pub(crate) fn start_there(&mut self, name: &str, end: Side) -> Result<(), Trouble> {
        let padding = self.padding();
        let environment = [(PADDING_VARIABLE, padding.as_str()), (END_VARIABLE, end.short())];
        let Some(far) = &mut self.far else { return Err(Trouble::failed(NOT_NAMED)) };
        let number = far.start(&environment, self.interrupts)?;
        self.workers.push(Worker::new(name.to_owned(), Stands::There(number)));
        Ok(())
    }

    /// An environment of random length moves the stack: the memory layout is sampled over
    /// trials instead of frozen (Mytkowicz et al. 2009).
    fn padding(&mut self) -> String {
        self.random = self.random.rotate_right(12);
        "x".repeat(usize::from((self.random & 0xfff) as u16))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Hears a hello of each, and checks that it speaks our protocol; the builds that they
    /// are of, as they said hello.
    pub(crate) fn greet(&mut self) -> Result<Vec<String>, Trouble> {
        let deadline_ns = clock::monotonic_ns() + HELLO_LIMIT_NS;
        let mut builds = Vec::new();
        for _ in 0..self.workers.len() {
            let answer = self.answer(deadline_ns).map_err(|trouble| match trouble {
                Trouble::TimeUp => {
                    Trouble::failed("a worker did not say hello within 10 s of its start")
                }
                other => other,
            });
            match answer? {
                (index, FromWorker::Hello { protocol: PROTOCOL_VERSION, build }) => {
                    self.say(index, ToWorker::Hello { protocol: PROTOCOL_VERSION });
                    builds.push(build);
                }
                (index, FromWorker::Hello { protocol, build }) => {
                    return Err(Trouble::failed(format!(
                        "the {} worker (build {build}) speaks protocol {protocol}, this iolens \
                         (build {BUILD}) speaks {PROTOCOL_VERSION}: use builds that speak the same \
                         protocol",
                        self.workers[index].name
                    )));
                }
                (index, _) => return Err(self.out_of_turn(index)),
            }
        }
        Ok(builds)
    }

    /// Hands a message to a worker, or to the thread that writes to it. If the worker has gone,
    /// what it says has ended too, which is where that is noticed.
    pub(crate) fn say(&mut self, index: usize, message: ToWorker) {
        match &self.workers[index].stands {
            Stands::Here { orders, .. } => {
                let _ = orders.as_ref().map(|orders| orders.send(message));
            }
            Stands::There(number) => self.far.iter().for_each(|far| far.say(*number, &message)),
        }
    }

    /// The process of a worker.
    ///
    /// Errors: it is not on this machine.
    pub(crate) fn pid(&self, index: usize) -> Result<u32, Trouble> {
        match &self.workers[index].stands {
            Stands::Here { child, .. } => Ok(child.id()),
            Stands::There(_) => Err(Trouble::failed("network namespaces are of one machine")),
        }
    }

    /// Ends the worker at the other end, if there is one that is not lost; the machine there
    /// around the trial.
    pub(crate) fn end_there(&mut self) -> Option<Environment> {
        let number = self.workers.iter().find_map(Worker::number)?;
        let gone = self.far.as_mut()?.end(number).ok()?;
        self.workers.retain(|worker| worker.number().is_none());
        Some(*gone.environment)
    }

    /// How a worker's process ended, in words.
    fn obituary(&mut self, index: usize) -> String {
        let Worker { name, stands, .. } = &mut self.workers[index];
        match stands {
            Stands::Here { child, .. } => {
                // Its stdout is closed: it is dead, or must be.
                let _ = child.kill();
                match child.wait().map(describe_end) {
                    Ok(how) => format!("the {name} worker {how}"),
                    Err(e) => {
                        format!("the {name} worker cannot be waited for: {}", Errno::from(e))
                    }
                }
            }
            Stands::There(number) => {
                if let Some(why) = &self.lost {
                    return why.clone();
                }
                match self.far.as_mut().map(|far| far.end(*number)) {
                    Some(Ok(gone)) => format!("the {name} worker at the other end {}", gone.how),
                    Some(Err(Trouble::Failed { what, .. })) => what,
                    _ => format!("the {name} worker at the other end is lost"),
                }
            }
        }
    }

    /// What is said of one that says something that it was not asked for.
    pub(crate) fn out_of_turn(&self, index: usize) -> Trouble {
        Trouble::failed(format!("the {} worker spoke out of turn", self.workers[index].name))
    }

    /// Puts a sending and a receiving worker into a network namespace each, with a veth
    /// pair between them; whether the first one made a user namespace.
    pub(crate) fn stage_veth(
        &mut self,
        [tx, rx]: [usize; 2],
        network: NetworkOptions,
        deadline_ns: u64,
    ) -> Result<bool, Trouble> {
        let [tx_pid, far_pid] = [self.pid(tx)?, self.pid(rx)?];
        let made = self.stage(tx, StageStep::Enter { beside: None }, deadline_ns)?;
        let beside = made.then_some(tx_pid);
        self.stage(rx, StageStep::Enter { beside }, deadline_ns)?;
        self.stage(tx, StageStep::Pair { far_pid, network }, deadline_ns)?;
        for (index, side) in [(rx, Side::Rx), (tx, Side::Tx)] {
            self.stage(index, StageStep::Open { side, network }, deadline_ns)?;
        }
        Ok(made)
    }

    /// Has a worker take a step; returns whether it made a user namespace.
    pub(crate) fn stage(
        &mut self,
        index: usize,
        step: StageStep,
        deadline_ns: u64,
    ) -> Result<bool, Trouble> {
        self.say(index, ToWorker::Stage(step));
        match self.answer(deadline_ns)? {
            (from, FromWorker::Staged { user_namespace }) if from == index => Ok(user_namespace),
            (from, _) => Err(self.out_of_turn(from)),
        }
    }

    /// The next message that is not a failure.
    pub(crate) fn answer(&mut self, deadline_ns: u64) -> Result<(usize, FromWorker), Trouble> {
        match self.next(deadline_ns)? {
            Event::Message(_, FromWorker::Failed { failure }) => {
                Err(self.explain(Some(failure), None))
            }
            Event::Message(index, message) => Ok((index, message)),
            Event::Gone(index) => Err(self.explain(None, Some(index))),
            Event::TimeUp => Err(Trouble::TimeUp),
            Event::Interrupted => Err(Trouble::Interrupted),
        }
    }

    /// Leaves all workers alone for a time.
    ///
    /// Errors: one of them did not stay.
    pub(crate) fn rest(&mut self, time: Nanos) -> Result<(), Trouble> {
        match self.next(clock::monotonic_ns() + time.0)? {
            Event::TimeUp => Ok(()),
            Event::Message(_, FromWorker::Failed { failure }) => {
                Err(self.explain(Some(failure), None))
            }
            Event::Message(index, _) => Err(self.out_of_turn(index)),
            Event::Gone(index) => Err(self.explain(None, Some(index))),
            Event::Interrupted => Err(Trouble::Interrupted),
        }
    }

    /// Brings together what a survivor says and how the other one died: one
    /// knows the slice, the other one is the reason.
    fn explain(&mut self, first: Option<Failure>, gone: Option<usize>) -> Trouble {
        let deadline_ns = clock::monotonic_ns() + GRACE_NS;
        let mut failures: Vec<Failure> = first.into_iter().collect();
        let mut gone = gone;
        // A cause of its own is told by nobody else; a consequence has a cause
        // that the other side tells, or was.
        while failures.len() < self.workers.len() && !failures.iter().any(|f| !f.consequence) {
            let is_told = gone.is_some() && !failures.is_empty();
            if is_told || self.workers.iter().all(|worker| worker.ended) {
                break;
            }
            match self.next(deadline_ns) {
                Ok(Event::Message(_, FromWorker::Failed { failure })) => failures.push(failure),
                Ok(Event::Message(..)) => {}
                Ok(Event::Gone(index)) => gone = Some(index),
                Ok(Event::Interrupted) => return Trouble::Interrupted,
                Ok(Event::TimeUp) | Err(_) => break,
            }
        }
        let slice = failures.iter().find_map(|failure| failure.slice);
        let told = failures.iter().min_by_key(|failure| failure.consequence);
        let what = match (gone, told) {
            (_, Some(failure)) if !failure.consequence => failure.what.clone(),
            (Some(index), _) => self.obituary(index),
            (None, Some(failure)) => failure.what.clone(),
            (None, None) => "the workers fell silent".to_owned(),
        };
        let refused = told.is_some_and(|failure| failure.refused);
        Trouble::Failed { slice, what, refused }
    }

    /// Waits for whatever comes first.
    fn next(&mut self, deadline_ns: u64) -> Result<Event, Trouble> {
        loop {
            for (index, worker) in self.workers.iter_mut().enumerate() {
                match worker.buffer.take() {
                    Ok(Some(message)) => return Ok(Event::Message(index, message)),
                    Ok(None) => {}
                    Err(e) => {
                        return Err(Trouble::failed(format!(
                            "the {} worker sent what is not our protocol: {e}",
                            worker.name
                        )));
                    }
                }
            }
            if self.interrupts.is_some_and(Interrupts::came) {
                return Ok(Event::Interrupted);
            }
            let now_ns = clock::monotonic_ns();
            if now_ns >= deadline_ns {
                return Ok(Event::TimeUp);
            }
            if let Some(gone) = self.wait(deadline_ns - now_ns)? {
                return Ok(Event::Gone(gone));
            }
        }
    }

    /// Waits once and takes in what has come; a worker whose stdout ended is
    /// returned, once.
    fn wait(&mut self, timeout_ns: u64) -> Result<Option<usize>, Trouble> {
        let open = self.workers.iter().enumerate().filter(|(_, worker)| !worker.ended);
        let (mut here, mut fds) = (Vec::new(), Vec::new());
        for (index, worker) in open {
            if let Stands::Here { stdout, .. } = &worker.stands {
                here.push(index);
                fds.push(stdout.as_fd());
            }
        }
        let is_there = self.workers.iter().any(|w| !w.ended && w.number().is_some());
        let there = self.far.as_ref().filter(|_| is_there).and_then(|far| far.fd());
        fds.extend(there);
        fds.extend(self.interrupts.map(AsFd::as_fd));
        let is_heard_there = there.is_some();
        let ready = match poll::readable(&fds, timeout_ns) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => return Ok(None),
            Err(e) => return Err(Trouble::failed(format!("cannot wait for the workers: {e}"))),
        };
        for (&index, _) in here.iter().zip(&ready).filter(|(_, ready)| **ready) {
            if self.hear_here(index)? {
                return Ok(Some(index));
            }
        }
        match is_heard_there && ready[here.len()] {
            true => Ok(self.hear_there()),
            false => Ok(None),
        }
    }

    /// Takes in what a worker of this machine has said; whether that was its end.
    fn hear_here(&mut self, index: usize) -> Result<bool, Trouble> {
        let Worker { name, stands, buffer, ended } = &mut self.workers[index];
        let Stands::Here { stdout, .. } = stands else { return Ok(false) };
        let mut piece = vec![0; 64 << 10];
        match stdout.read(&mut piece) {
            Ok(0) => *ended = true,
            Ok(n) => buffer.extend(&piece[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => {
                return Err(Trouble::failed(format!("cannot read from the {name} worker: {e}")));
            }
        }
        Ok(*ended)
    }

    /// Takes in what the other end has said; its worker, if that was the worker's end.
    fn hear_there(&mut self) -> Option<usize> {
        let index = self.workers.iter().position(|worker| worker.number().is_some())?;
        let worker = &mut self.workers[index];
        let number = worker.number()?;
        match self.far.as_mut()?.hear() {
            Ok(heard) => {
                for heard in heard {
                    match heard {
                        Heard::Said(from, bytes) if from == number => {
                            worker.ended |= bytes.is_empty();
                            worker.buffer.extend(&bytes);
                        }
                        Heard::Failed(from, what) if from == number => {
                            worker.ended = true;
                            self.lost = Some(what);
                        }
                        // Of a worker of an earlier trial.
                        Heard::Said(..) | Heard::Failed(..) | Heard::Ended(..) => {}
                    }
                }
            }
            Err(Trouble::Failed { what, .. }) => {
                worker.ended = true;
                self.lost = Some(what);
            }
            Err(Trouble::TimeUp | Trouble::Interrupted) => worker.ended = true,
        }
        worker.ended.then_some(index)
    }
}

/// A number nobody else has: the standard library seeds its hashers from the
/// kernel's random pool.
pub(super) fn token() -> u64 {
    RandomState::new().build_hasher().finish()
}

//! Two workers and the conversation with them, on one thread: every wait is a
//! poll over both pipes and the user's interrupt, and has an end.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Sender, channel};

use iolens_model::axes::Topology;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{clock, poll};

use super::{END_VARIABLE, Launch};
use crate::spawn::{Spawned, describe, spawn};
use crate::stage::sink;
use crate::worker::protocol::{
    EndReport, Failure, FrameBuffer, FromWorker, PROTOCOL_VERSION, Side, StageStep, Task, ToWorker,
    write_frame,
};

/// A worker that has not said hello by then is not one.
const HELLO_LIMIT_NS: u64 = 10_000_000_000;

/// How long the survivor may take to say which slice ran when the other died.
const GRACE_NS: u64 = 1_000_000_000;

/// Why a trial has no reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Something failed.
    Failed {
        /// The slice that ran, if it is known.
        slice: Option<usize>,
        /// What happened, one clause.
        what: String,
        /// Whether the machine's limits do not allow the arm at all.
        refused: bool,
    },
    /// It took longer than it may.
    TimeUp,
    /// The user wants to stop.
    Interrupted,
}

fn failed(what: impl Into<String>) -> Trouble {
    Trouble::Failed { slice: None, what: what.into(), refused: false }
}

/// One worker process.
struct Worker {
    side: Side,
    child: Child,
    orders: Option<Sender<ToWorker>>,
    stdout: ChildStdout,
    buffer: FrameBuffer,
    ended: bool,
}

/// What a wait ended with.
enum Event {
    Message(Side, FromWorker),
    /// The worker's stdout has ended.
    Gone(Side),
    TimeUp,
    Interrupted,
}

/// The workers of a trial, the sending one first, or alone where nobody
/// receives; killed and reaped when dropped.
pub(crate) struct Pair<'a> {
    workers: Vec<Worker>,
    interrupts: Option<&'a Interrupts>,
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // Closing its control pipe asks it to end; killing makes sure, and
            // ends the thread that may still be writing to it.
            worker.orders = None;
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

impl Worker {
    fn start(side: Side, launch: &Launch, random: u64) -> Result<Worker, Trouble> {
        // An environment of random length moves the stack: the memory layout
        // is sampled over trials instead of frozen (Mytkowicz et al. 2009).
        let padding = "x".repeat(usize::from((random & 0xfff) as u16));
        let environment = [("IOLENS_PADDING", padding.as_str()), (END_VARIABLE, side.short())];
        let Spawned { child, stdin, stdout } = spawn(launch, &environment).map_err(failed)?;
        Ok(Worker {
            side,
            child,
            orders: Some(writer(stdin)),
            stdout,
            buffer: FrameBuffer::default(),
            ended: false,
        })
    }

    /// Hands a message to the thread that writes to the worker. If the worker
    /// has gone, its stdout has ended too, which is where that is noticed.
    fn say(&mut self, message: ToWorker) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(message);
        }
    }

    /// How the process ended, in words.
    fn obituary(&mut self, is_alone: bool) -> String {
        let worker = match is_alone {
            true => "worker".to_owned(),
            false => format!("{} worker", self.side.word()),
        };
        // Its stdout is closed: it is dead, or must be.
        let _ = self.child.kill();
        match self.child.wait().map(describe) {
            Ok(how) => format!("the {worker} {how}"),
            Err(e) => format!("the {worker} cannot be waited for: {}", Errno::from(e)),
        }
    }
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

impl<'a> Pair<'a> {
    /// Starts the workers of a trial and checks that they speak our protocol.
    pub(crate) fn start(
        trial: &Trial,
        launch: &Launch,
        interrupts: Option<&'a Interrupts>,
    ) -> Result<Pair<'a>, Trouble> {
        let random = token();
        let mut pair = Pair { workers: Vec::with_capacity(2), interrupts };
        pair.workers.push(Worker::start(Side::Tx, launch, random)?);
        if !trial.cell.is_alone() {
            pair.workers.push(Worker::start(Side::Rx, launch, random >> 12)?);
        }
        let deadline_ns = clock::monotonic_ns() + HELLO_LIMIT_NS;
        for _ in 0..pair.workers.len() {
            let answer = pair.answer(deadline_ns).map_err(|trouble| match trouble {
                Trouble::TimeUp => failed("a worker did not say hello within 10 s of its start"),
                other => other,
            });
            match answer? {
                (side, FromWorker::Hello { protocol: PROTOCOL_VERSION, .. }) => {
                    pair.worker(side).say(ToWorker::Hello { protocol: PROTOCOL_VERSION });
                }
                (side, FromWorker::Hello { protocol, build }) => {
                    return Err(failed(format!(
                        "the {} worker (build {build}) speaks protocol {protocol}, this iolens \
                         speaks {PROTOCOL_VERSION}: use the same build at both ends",
                        side.word()
                    )));
                }
                (side, _) => return Err(out_of_turn(side)),
            }
        }
        Ok(pair)
    }

    /// Takes the trial from its preparation to the reports of the sending end
    /// and of the receiving one, where there is one.
    pub(crate) fn conduct(
        &mut self,
        trial: &Trial,
    ) -> Result<(EndReport, Option<EndReport>), Trouble> {
        let deadline_ns = clock::monotonic_ns() + trial.trial_limit.0;
        match trial.cell.topology() {
            None | Some(Topology::Loopback) => {}
            Some(Topology::Veth) => self.stage_veth(trial, deadline_ns)?,
            Some(Topology::Sink) => self.stage_sink(trial, deadline_ns)?,
        }
        let token = token();
        let prepare = |side, peer| {
            ToWorker::Prepare(Box::new(Task { side, trial: trial.clone(), peer, token }))
        };
        let peer = if trial.cell.is_alone() {
            None
        } else {
            self.worker(Side::Rx).say(prepare(Side::Rx, None));
            match self.answer(deadline_ns)? {
                (Side::Rx, FromWorker::Listening { peer }) => Some(peer),
                (side, _) => return Err(out_of_turn(side)),
            }
        };
        self.worker(Side::Tx).say(prepare(Side::Tx, peer));
        for _ in 0..self.workers.len() {
            match self.answer(deadline_ns)? {
                (_, FromWorker::Ready) => {}
                (side, _) => return Err(out_of_turn(side)),
            }
        }
        for worker in self.workers.iter_mut().rev() {
            worker.say(ToWorker::Run);
        }
        let mut reports = [None, None];
        for _ in 0..self.workers.len() {
            match self.answer(deadline_ns)? {
                (side, FromWorker::Finished { report }) => reports[index(side)] = Some(*report),
                (side, _) => return Err(out_of_turn(side)),
            }
        }
        match reports {
            [Some(tx), rx] if rx.is_none() == trial.cell.is_alone() => Ok((tx, rx)),
            _ => Err(failed("a worker reported twice")),
        }
    }

    /// Puts each worker into a network namespace of its own, with a veth pair
    /// between them.
    fn stage_veth(&mut self, trial: &Trial, deadline_ns: u64) -> Result<(), Trouble> {
        let network = trial.network;
        let [tx_pid, rx_pid] = [Side::Tx, Side::Rx].map(|side| self.worker(side).child.id());
        let made = self.stage(Side::Tx, StageStep::Enter { beside: None }, deadline_ns)?;
        let beside = made.then_some(tx_pid);
        self.stage(Side::Rx, StageStep::Enter { beside }, deadline_ns)?;
        self.stage(Side::Tx, StageStep::Pair { far_pid: rx_pid, network }, deadline_ns)?;
        for side in [Side::Rx, Side::Tx] {
            self.stage(side, StageStep::Open { side, network }, deadline_ns)?;
        }
        Ok(())
    }

    /// Puts both workers into one network namespace, with a device in it that
    /// drops what is sent.
    fn stage_sink(&mut self, trial: &Trial, deadline_ns: u64) -> Result<(), Trouble> {
        let network = trial.network;
        let pid = self.worker(Side::Tx).child.id();
        let user_namespace =
            self.stage(Side::Tx, StageStep::Enter { beside: None }, deadline_ns)?;
        let queues = sink::queues(trial);
        self.stage(Side::Tx, StageStep::Sink { network, queues }, deadline_ns)?;
        self.stage(Side::Rx, StageStep::Join { pid, user_namespace }, deadline_ns)?;
        Ok(())
    }

    /// Has a worker take a step; returns whether it made a user namespace.
    fn stage(&mut self, side: Side, step: StageStep, deadline_ns: u64) -> Result<bool, Trouble> {
        self.worker(side).say(ToWorker::Stage(step));
        match self.answer(deadline_ns)? {
            (from, FromWorker::Staged { user_namespace }) if from == side => Ok(user_namespace),
            (from, _) => Err(out_of_turn(from)),
        }
    }

    fn worker(&mut self, side: Side) -> &mut Worker {
        &mut self.workers[index(side)]
    }

    /// The next message that is not a failure.
    fn answer(&mut self, deadline_ns: u64) -> Result<(Side, FromWorker), Trouble> {
        match self.next(deadline_ns)? {
            Event::Message(_, FromWorker::Failed { failure }) => {
                Err(self.explain(Some(failure), None))
            }
            Event::Message(side, message) => Ok((side, message)),
            Event::Gone(side) => Err(self.explain(None, Some(side))),
            Event::TimeUp => Err(Trouble::TimeUp),
            Event::Interrupted => Err(Trouble::Interrupted),
        }
    }

    /// Brings together what a survivor says and how the other one died: one
    /// knows the slice, the other one is the reason.
    fn explain(&mut self, first: Option<Failure>, gone: Option<Side>) -> Trouble {
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
                Ok(Event::Gone(side)) => gone = Some(side),
                Ok(Event::Interrupted) => return Trouble::Interrupted,
                Ok(Event::TimeUp) | Err(_) => break,
            }
        }
        let slice = failures.iter().find_map(|failure| failure.slice);
        let told = failures.iter().min_by_key(|failure| failure.consequence);
        let what = match (gone, told) {
            (_, Some(failure)) if !failure.consequence => failure.what.clone(),
            (Some(side), _) => {
                let is_alone = self.workers.len() == 1;
                self.worker(side).obituary(is_alone)
            }
            (None, Some(failure)) => failure.what.clone(),
            (None, None) => "the workers fell silent".to_owned(),
        };
        let refused = told.is_some_and(|failure| failure.refused);
        Trouble::Failed { slice, what, refused }
    }

    /// Waits for whatever comes first.
    fn next(&mut self, deadline_ns: u64) -> Result<Event, Trouble> {
        loop {
            for worker in &mut self.workers {
                let side = worker.side;
                match worker.buffer.take() {
                    Ok(Some(message)) => return Ok(Event::Message(side, message)),
                    Ok(None) => {}
                    Err(e) => {
                        return Err(failed(format!(
                            "the {} worker speaks nonsense: {e}",
                            side.word()
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
    fn wait(&mut self, timeout_ns: u64) -> Result<Option<Side>, Trouble> {
        let open: Vec<Side> = self.workers.iter().filter(|w| !w.ended).map(|w| w.side).collect();
        let mut fds: Vec<BorrowedFd<'_>> =
            open.iter().map(|&side| self.workers[index(side)].stdout.as_fd()).collect();
        fds.extend(self.interrupts.map(AsFd::as_fd));
        let ready = match poll::readable(&fds, timeout_ns) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => return Ok(None),
            Err(e) => return Err(failed(format!("cannot wait for the workers: {e}"))),
        };
        let mut piece = vec![0; 64 << 10];
        for (&side, _) in open.iter().zip(&ready).filter(|(_, ready)| **ready) {
            let worker = &mut self.workers[index(side)];
            match worker.stdout.read(&mut piece) {
                Ok(0) => {
                    worker.ended = true;
                    return Ok(Some(side));
                }
                Ok(n) => worker.buffer.extend(&piece[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => {
                    let what = format!("cannot hear the {} worker: {e}", side.word());
                    return Err(failed(what));
                }
            }
        }
        Ok(None)
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Tx => 0,
        Side::Rx => 1,
    }
}

fn out_of_turn(side: Side) -> Trouble {
    failed(format!("the {} worker spoke out of turn", side.word()))
}

/// A number nobody else has: the standard library seeds its hashers from the
/// kernel's random pool.
fn token() -> u64 {
    RandomState::new().build_hasher().finish()
}

//! A worker: one end of one trial in a process of its own. It takes its
//! orders on stdin, answers on stdout, listens on no port for control, and
//! ends when its stdin does.

pub(crate) mod bracket;
mod busy_poll;
mod crew;
mod external;
mod facts;
mod family;
mod flow;
mod gate;
mod helpers;
mod last_word;
pub mod link;
mod program;
pub mod protocol;
mod report;
mod rx;
mod sampling;
mod serving;
mod tx;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use iolens_model::trial::Trial;
use iolens_sys::{child, poll, process, signal};

use self::busy_poll::BusyPolling;
use self::crew::Crew;
use self::gate::Latch;
use self::link::{Doors, Links};
use self::protocol::{
    BUILD, EndReport, Failure, FromWorker, PROTOCOL_VERSION, Side, Task, ToWorker,
};

use crate::stage::{self, Place};
use iolens_file::arm::Ground;
use iolens_file::copy::site::Site;
use iolens_harness::frames::{FrameBuffer, read_frame, write_frame};
use iolens_harness::perf_control::{Listener, PerfControl};
use iolens_programs::spawn::SOCKET_VARIABLE;

/// Ties this process to its parent; to be called first thing in a worker.
///
/// Errors: what was tried and what the system said.
pub fn become_worker() -> Result<(), String> {
    process::die_with_parent().map_err(|e| format!("cannot set PR_SET_PDEATHSIG: {e}"))?;
    // A parent that had died before sends no signal: it hears nothing any more.
    if poll::has_reader(io::stdout().as_fd()) == Ok(false) {
        return Err("the process that started it has ended".to_owned());
    }
    signal::ignore_interrupt().map_err(|e| format!("cannot ignore SIGINT: {e}"))?;
    // Many arms times many threads need more than the usual soft limit; where
    // the hard one is not enough either, the coordinator has said so before.
    let _ = process::raise_descriptor_limit();
    Ok(())
}

/// Serves one trial; returns when the control stream ends. The trial itself
/// runs on threads that are abandoned then: the caller exits the process.
///
/// `perf` is told of the slices that count.
///
/// Errors: a coordinator of another protocol version, or bytes that are no
/// protocol at all.
pub fn serve(
    mut control: impl Read,
    answers: impl Write + Send + 'static,
    perf: Option<PerfControl>,
) -> io::Result<()> {
    let answers = Arc::new(Mutex::new(answers));
    let say = move |message: &FromWorker| {
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        write_frame(&mut *answers, message)
    };
    say(&FromWorker::Hello { protocol: PROTOCOL_VERSION, build: BUILD.to_owned() })?;
    let mut buffer = FrameBuffer::default();
    let go = Arc::new(Latch::default());
    let mut turns = None;
    let inherited = Arc::new(inherited_socket());
    while let Some(message) = read_frame::<ToWorker>(&mut control, &mut buffer)? {
        match message {
            ToWorker::Hello { protocol } => check_version(protocol)?,
            ToWorker::Stage(step) => say(&match stage::take(&step) {
                Ok(user_namespace) => FromWorker::Staged { user_namespace },
                Err(failure) => FromWorker::Failed { failure },
            })?,
            ToWorker::Prepare(task) => {
                let (say, go, perf) = (say.clone(), Arc::clone(&go), perf.clone());
                let inherited = Arc::clone(&inherited);
                // Not on this thread, which must hear when control ends.
                std::thread::spawn(move || {
                    let inherited = inherited.as_ref().as_ref();
                    let last = conduct(&task, inherited, perf.as_ref(), &say, &go);
                    // If nobody listens any more, there is nobody to tell.
                    let _ = say(&last);
                });
            }
            ToWorker::Run => go.open(),
            ToWorker::Serve(task) => turns = Some(serving::serve(*task, say.clone())),
            ToWorker::Visit(task) => turns = Some(serving::visit(*task, say.clone())),
            ToWorker::Turn(turn) => {
                // Who has ended has said why.
                let _ = turns.as_ref().map(|turns: &Sender<_>| turns.send(turn));
            }
        }
    }
    Ok(())
}

/// The socket to the other end that this process was started with, if it was.
fn inherited_socket() -> Option<OwnedFd> {
    let number = std::env::var(SOCKET_VARIABLE).ok()?.parse().ok()?;
    child::unix_socket(number).ok()
}

/// This end from its connections to its last word.
fn conduct(
    task: &Task,
    inherited: Option<&OwnedFd>,
    perf: Option<&PerfControl>,
    say: &(impl Fn(&FromWorker) -> io::Result<()> + Sync),
    go: &Latch,
) -> FromWorker {
    let place = Place::of(&task.trial, task.side);
    match take_part(task, inherited, perf, place, say, go) {
        Ok(mut report) => {
            if let Some(place) = place {
                place.describe(&mut report.facts);
            }
            FromWorker::Finished { report: Box::new(report) }
        }
        Err(failure) => FromWorker::Failed {
            failure: match place {
                Some(place) => place.explain(failure),
                None => failure,
            },
        },
    }
}

/// Connects, waits for the word to go, and runs every slice.
fn take_part(
    task: &Task,
    inherited: Option<&OwnedFd>,
    perf: Option<&PerfControl>,
    place: Option<Place>,
    say: &(impl Fn(&FromWorker) -> io::Result<()> + Sync),
    go: &Latch,
) -> Result<EndReport, Failure> {
    let links = match place {
        Some(place) => {
            place.wait_until_usable(link::stall_limit(&task.trial))?;
            connect(task, inherited, place, say)?
        }
        None => Links::none(),
    };
    let say_ready = || {
        let _ = say(&FromWorker::Ready);
    };
    let polling = BusyPolling::arrange(&task.trial, task.side, &links)?;
    last_word::prepare(&task.trial);
    let ground = iolens_file::open(&task.trial).map_err(Failure::cause)?;
    let mut crew = Crew::new(&task.trial, &links, &say_ready, go);
    crew.ground = ground.as_deref();
    let site = Site::of(&task.trial, ground.as_deref().and_then(Ground::read));
    crew.site = site.as_ref();
    let mut report = match task.side {
        Side::Tx => {
            crew.perf = listener(&task.trial, perf)?;
            tx::run(&crew)?
        }
        Side::Rx => rx::run(&crew)?,
    };
    if let Some(polling) = polling {
        polling.describe(&mut report.facts);
    }
    Ok(report)
}

/// perf, for a trial that is stored: one that finds the work of slices is not.
fn listener(trial: &Trial, perf: Option<&PerfControl>) -> Result<Option<Listener>, Failure> {
    let perf = perf.filter(|_| trial.pass > 0);
    let opened = perf.map(|perf| perf.open(link::stall_limit(trial))).transpose();
    opened.map_err(Failure::cause)
}

fn check_version(protocol: u32) -> io::Result<()> {
    if protocol == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the coordinator speaks protocol {protocol}, this worker (build {BUILD}) speaks \
         {PROTOCOL_VERSION}: use the same build at both ends"
    )))
}

/// Connects this end.
fn connect(
    task: &Task,
    inherited: Option<&OwnedFd>,
    place: Place,
    say: &impl Fn(&FromWorker) -> io::Result<()>,
) -> Result<Links, Failure> {
    let (trial, address) = (&task.trial, place.address());
    match (task.side, &task.peer) {
        (Side::Rx, _) => {
            let doors = Doors::open(trial, address)?;
            let peer = doors.peer()?;
            say(&FromWorker::Listening { peer }).map_err(|e| Failure {
                consequence: true,
                ..Failure::cause(format!("cannot answer the coordinator: {e}"))
            })?;
            link::accept(trial, doors, task.token, address, inherited)
        }
        (Side::Tx, Some(peer)) => link::connect(trial, peer, task.token, address, inherited),
        (Side::Tx, None) => Err(Failure::cause("the sending end was not told whom to connect to")),
    }
}

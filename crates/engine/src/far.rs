//! The other end of a trial on another machine. No daemon waits there, and no port of ours
//! listens for orders: a launcher that the user has anyway starts a shell, the shell starts the
//! keeper, and the keeper starts a worker for each trial and passes on what it says. All of it
//! ends when its input does.
//!
//! ```text
//! coordinator ─ launcher ═ shell ─ keeper ─ worker
//!      └────────── worker ══ data ══════════┘
//! ```

mod answers;
mod cksum;
mod keeper;
pub mod launcher;
mod session;
pub mod wire;

use std::os::fd::{AsFd, BorrowedFd};

use iolens_model::outcome::Environment;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{clock, poll};

pub use self::keeper::keep;
pub use self::launcher::Launcher;
use self::session::Session;
pub use self::session::Way;
pub use self::wire::{FarEnd, NOT_NAMED};
use self::wire::{FromKeeper, NOBODY, ToKeeper};
use crate::trial::Trouble;
use crate::worker::protocol::ToWorker;
use iolens_harness::frames::write_frame;

/// Pauses before each try to find the other end again, once it was lost: a machine that starts
/// anew takes longer, and is another boot.
const PAUSES_NS: [u64; 4] = [0, 1_000_000_000, 2_000_000_000, 4_000_000_000];

/// How long a keeper may take to say how a worker ended.
const END_LIMIT_NS: u64 = 5_000_000_000;

/// The other end: not reached yet, reached, or lost.
pub struct Far {
    way: Way,
    session: Option<Session>,
    reached: Option<Reached>,
    /// Whether it was not found again.
    is_lost: bool,
    /// The number of the last worker.
    last: u32,
}

/// What is known of the other end.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// Version and commit of the iolens there.
    pub build: String,
    /// Its machine.
    pub end: FarEnd,
}

/// What a keeper says of its workers, by their numbers.
pub(crate) enum Heard {
    /// What a worker says; nothing at its end.
    Said(u32, Vec<u8>),
    /// It was not started, and why.
    Failed(u32, String),
    /// How it ended, and its machine around it.
    Ended(u32, Gone),
}

/// What became of a worker.
pub(crate) struct Gone {
    pub(crate) how: String,
    pub(crate) environment: Box<Environment>,
}

impl Far {
    /// Reached when it is first asked for.
    pub fn new(way: Way) -> Far {
        Far { way, session: None, reached: None, is_lost: false, last: 0 }
    }

    /// What is there, reached now if it was not before.
    ///
    /// # Errors
    /// What was started and what became of it; nothing where the user wants to stop.
    pub fn reach(&mut self, interrupts: Option<&Interrupts>) -> Result<&Reached, Option<String>> {
        self.ready(interrupts).map_err(|trouble| match trouble {
            Trouble::Failed { what, .. } => Some(what),
            Trouble::TimeUp => Some("the other end took too long".to_owned()),
            Trouble::Interrupted => None,
        })
    }

    /// Whether it was reached, lost, and not found again: no trial comes to its end any more.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Opens the conversation, if there is none that still goes on.
    fn ready(&mut self, interrupts: Option<&Interrupts>) -> Result<&Reached, Trouble> {
        self.notice();
        if self.session.is_none() {
            // Until it is found again.
            self.is_lost = self.reached.is_some();
            let pauses = if self.reached.is_some() { &PAUSES_NS[..] } else { &PAUSES_NS[..1] };
            let mut found = Err(Trouble::TimeUp);
            for &pause_ns in pauses {
                rest(pause_ns, interrupts)?;
                found = session::open(&self.way, interrupts);
                if !matches!(found, Err(Trouble::Failed { .. })) {
                    break;
                }
            }
            let (session, build, end) = found?;
            let reached = Reached { build, end };
            if let Some(before) = &self.reached {
                check_same(before, &reached).map_err(Trouble::failed)?;
            }
            (self.session, self.reached) = (Some(session), Some(reached));
            self.is_lost = false;
        }
        self.reached.as_ref().ok_or(Trouble::TimeUp)
    }

    /// Lets go of a conversation that has ended meanwhile.
    fn notice(&mut self) {
        while let Some(session) = &self.session {
            match poll::is_readable(session.fd(), 0) {
                // What is said of workers that are gone is of no use.
                Ok(true) => drop(self.hear()),
                _ => return,
            }
        }
    }

    /// Starts a worker at the other end; its number.
    pub(crate) fn start(
        &mut self,
        environment: &[(&str, &str)],
        interrupts: Option<&Interrupts>,
    ) -> Result<u32, Trouble> {
        self.ready(interrupts)?;
        self.last += 1;
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let environment = environment.iter().map(own).collect();
        self.tell(&ToKeeper::Start { worker: self.last, environment });
        Ok(self.last)
    }

    /// Hands a message to a worker.
    pub(crate) fn say(&self, worker: u32, message: &ToWorker) {
        let mut bytes = Vec::new();
        // Memory takes all of it.
        let _ = write_frame(&mut bytes, message);
        if let Some(session) = &self.session {
            session.pass_on(worker, &bytes);
        }
    }

    fn tell(&self, word: &ToKeeper) {
        if let Some(session) = &self.session {
            session.say(word);
        }
    }

    /// What can be waited for; `None` once the other end is lost.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.session.as_ref().map(Session::fd)
    }

    /// What has come, read once.
    ///
    /// Errors: the other end is lost, and why.
    pub(crate) fn hear(&mut self) -> Result<Vec<Heard>, Trouble> {
        let heard = self.heard();
        if heard.is_err() {
            self.session = None;
        }
        heard
    }

    fn heard(&mut self) -> Result<Vec<Heard>, Trouble> {
        let Some(session) = &mut self.session else {
            return Err(Trouble::failed("the other end is lost"));
        };
        session.hear()?;
        let mut heard = Vec::new();
        while let Some((worker, body)) = session.frame()? {
            if worker != NOBODY {
                heard.push(Heard::Said(worker, body));
                continue;
            }
            match wire::word(&body) {
                Ok(FromKeeper::Failed { worker, what }) => heard.push(Heard::Failed(worker, what)),
                Ok(FromKeeper::Ended { worker, how, environment }) => {
                    heard.push(Heard::Ended(worker, Gone { how, environment }));
                }
                Ok(
                    FromKeeper::Hello { .. } | FromKeeper::Here { .. } | FromKeeper::Refused { .. },
                ) => {}
                Err(e) => {
                    return Err(Trouble::failed(format!(
                        "the other end sent what is not our protocol: {e}"
                    )));
                }
            }
        }
        Ok(heard)
    }

    /// Ends a worker; what became of it, or why that is not known.
    pub(crate) fn end(&mut self, worker: u32) -> Result<Gone, Trouble> {
        self.tell(&ToKeeper::End { worker });
        let deadline_ns = clock::monotonic_ns() + END_LIMIT_NS;
        loop {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            let Some(fd) = self.fd() else { return Err(Trouble::failed("the other end is lost")) };
            match poll::is_readable(fd, left_ns) {
                Err(Errno::EINTR) => {}
                Ok(false) if left_ns > 0 => {}
                Ok(true) => {
                    for heard in self.hear()? {
                        match heard {
                            Heard::Ended(number, gone) if number == worker => return Ok(gone),
                            _ => {}
                        }
                    }
                }
                _ => {
                    // Who does not answer this has no more to say.
                    self.session = None;
                    return Err(Trouble::failed("the other end does not say what became of it"));
                }
            }
        }
    }

    /// Ends a worker, whatever becomes of it.
    pub(crate) fn dismiss(&self, worker: u32) {
        self.tell(&ToKeeper::End { worker });
    }
}

/// Refuses another machine in the place of one that was lost, or the same after a restart.
fn check_same(before: &Reached, now: &Reached) -> Result<(), String> {
    let of = |reached: &Reached| reached.end.host.fact("kernel", "boot id");
    match of(before) == of(now) {
        true => Ok(()),
        false => Err("what is at the other end now is another machine, or was started anew: \
                      a run is of one boot of each"
            .to_owned()),
    }
}

/// Waits.
fn rest(time_ns: u64, interrupts: Option<&Interrupts>) -> Result<(), Trouble> {
    let fds: Vec<BorrowedFd<'_>> = interrupts.iter().map(|interrupts| interrupts.as_fd()).collect();
    if time_ns > 0 {
        // Woken early by a signal that means nothing, it tries a little earlier.
        let _ = poll::readable(&fds, time_ns);
    }
    match interrupts.is_some_and(Interrupts::came) {
        true => Err(Trouble::Interrupted),
        false => Ok(()),
    }
}

//! Who hears the user while something is done by hand, and how long it may still take.

use std::os::fd::AsFd;
use std::time::Duration;

use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{clock, poll};

/// How much the user wants what is under way to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insistence {
    /// As soon as it can end well.
    Asked,
    /// At once: the user has said so twice, or it did not end.
    Insists,
}

/// How long it may take to end well.
const GRACE_NS: u64 = 1_000_000_000;

/// Does `work` on this thread. Meanwhile another one waits for an interrupt,
/// and calls `stop` when there is one and once more when that was not enough.
/// Says whether there was one.
pub fn watched<R>(
    interrupts: &mut Interrupts,
    stop: &(dyn Fn(Insistence) + Sync),
    work: impl FnOnce() -> R,
) -> (R, bool) {
    let done = std::thread::scope(|scope| {
        // The write end says by its end that the work is done.
        let Ok((over, working)) = std::io::pipe() else { return work() };
        let interrupts = &mut *interrupts;
        scope.spawn(move || watch(interrupts, &over, stop));
        let done = work();
        drop(working);
        done
    });
    (done, interrupts.came())
}

/// Waits for interrupts until the work is over.
fn watch(interrupts: &mut Interrupts, over: &impl AsFd, stop: &(dyn Fn(Insistence) + Sync)) {
    let mut asked = false;
    loop {
        let limit_ns = if asked { GRACE_NS } else { u64::MAX };
        match poll::readable(&[over.as_fd(), interrupts.as_fd()], limit_ns) {
            Err(Errno::EINTR) => {}
            Ok(ready) if ready[0] => return,
            Ok(ready) if ready[1] && !asked => {
                // Takes the signal out, so that the next one is another.
                asked = interrupts.came();
                stop(Insistence::Asked);
            }
            Ok(ready) if !ready[1] && !asked => {}
            Ok(_) | Err(_) => return stop(Insistence::Insists),
        }
    }
}

// How long somebody may still wait.

/// The end of a time limit.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at_ns: u64,
}

impl Deadline {
    /// As far from now as this.
    pub fn after(limit: Duration) -> Deadline {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Deadline { at_ns: clock::monotonic_ns().saturating_add(limit_ns) }
    }

    /// What is left of it.
    pub fn left(self) -> Duration {
        Duration::from_nanos(self.at_ns.saturating_sub(clock::monotonic_ns()))
    }
}

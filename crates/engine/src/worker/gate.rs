//! Where a worker's threads wait for each other between slices, and how one
//! that fails sets the others free.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use iolens_sys::clock;

use super::protocol::Failure;

/// A barrier for `threads` threads that can be broken.
#[derive(Debug)]
pub(crate) struct Gate {
    threads: usize,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    generation: u64,
    failure: Option<Failure>,
}

/// Where threads that the gate has let through wait for those that still wake, without
/// sleeping again: a CPU that idles takes its time to come back, in a virtual machine
/// a millisecond at times, and so long the others would be in the slice without it.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    threads: u64,
    /// Threads that have come, in all slices so far.
    come: AtomicU64,
}

impl Rendezvous {
    /// Who does not come within this time is not waited for: what the slice is worth
    /// without it is a gate's to say.
    const LIMIT_NS: u64 = 20_000_000;

    pub(crate) fn new(threads: u32) -> Rendezvous {
        Rendezvous { threads: threads.into(), come: AtomicU64::new(0) }
    }

    /// Waits for all threads. All have to pass a gate between two times.
    pub(crate) fn wait(&self) {
        // Relaxed: the number is all that threads exchange here.
        let before = self.come.fetch_add(1, Ordering::Relaxed);
        let all = (before / self.threads + 1) * self.threads;
        let until_ns = clock::monotonic_ns() + Rendezvous::LIMIT_NS;
        while self.come.load(Ordering::Relaxed) < all && clock::monotonic_ns() < until_ns {
            spin_loop();
        }
    }
}

/// A door that opens once, for the start of a trial.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    /// Lets everybody pass from now on.
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits until it is open, for as long as the process lives: a coordinator
    /// that goes away ends the process.
    pub(crate) fn pass(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let _open =
            self.opened.wait_while(open, |open| !*open).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The gate is broken: the trial is over at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

impl Gate {
    pub(crate) fn new(threads: usize) -> Gate {
        Gate { threads, state: Mutex::default(), opened: Condvar::new() }
    }

    /// Waits until all threads are here.
    ///
    /// Errors: when a thread failed, or did not come within the limit.
    pub(crate) fn wait(&self, limit: Duration) -> Result<(), Broken> {
        let mut state = self.lock();
        state.waiting += 1;
        if state.waiting == self.threads {
            state.waiting = 0;
            state.generation += 1;
            self.opened.notify_all();
            return if state.failure.is_none() { Ok(()) } else { Err(Broken) };
        }
        let generation = state.generation;
        let (state, timeout) = self
            .opened
            .wait_timeout_while(state, limit, |s| s.generation == generation && s.failure.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        if state.failure.is_some() || timeout.timed_out() { Err(Broken) } else { Ok(()) }
    }

    /// Breaks the gate. The first failure is kept, but one that is nobody
    /// else's consequence takes the place of one that is.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        let known = state.failure.as_ref();
        if known.is_none_or(|known| known.consequence && !failure.consequence) {
            state.failure = Some(failure);
        }
        self.opened.notify_all();
    }

    /// The failure that broke the gate.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn threads_meet_again_and_again() {
        let gate = Gate::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..200).for_each(|_| gate.wait(LONG).unwrap()));
            }
        });
    }

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        let (gate, rendezvous) = (Gate::new(2), Rendezvous::new(2));
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 1..=50 {
                        gate.wait(LONG).unwrap();
                        count.fetch_add(1, Ordering::SeqCst);
                        let begin_ns = clock::monotonic_ns();
                        rendezvous.wait();
                        // On a busy machine the other one may not come in time.
                        let gave_up = clock::monotonic_ns() - begin_ns >= Rendezvous::LIMIT_NS;
                        assert!(gave_up || count.load(Ordering::SeqCst) >= 2 * round);
                        gate.wait(LONG).unwrap();
                    }
                });
            }
        });
        // One that is alone gives up.
        Rendezvous::new(2).wait();
    }

    #[test]
    fn a_failure_frees_those_who_wait() {
        let gate = Gate::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(LONG));
            for (what, consequence) in [("follows", true), ("cause", false), ("later", false)] {
                gate.fail(Failure { slice: Some(3), consequence, ..Failure::cause(what) });
            }
            assert_eq!(waiting.join().unwrap(), Err(Broken));
        });
        assert_eq!(gate.failure().unwrap().what, "cause");
    }

    #[test]
    fn nobody_waits_for_ever() {
        assert_eq!(Gate::new(2).wait(Duration::from_millis(5)), Err(Broken));
    }
}

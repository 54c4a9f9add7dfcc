//! The threads of one end: how they start, wait for each other, stop together when one of them
//! fails, and what each brings home.

use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{ArmFact, Counts, ZerocopyCounts};
use iolens_model::reading::Histogram;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::tcp::SetupError;

use super::bracket::Bracket;
use super::gate::{Broken, Gate, Latch, Rendezvous};
use super::link::{self, Links};
use super::protocol::Failure;
use super::sampling::StackSampler;
use iolens_file::arm::Ground;
use iolens_file::copy::site::Site;
use iolens_harness::op::{Span, Trouble};
use iolens_harness::perf_control::Listener;
use iolens_net::lane;

/// What the threads of an end share.
pub(crate) struct Crew<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) links: &'a Links,
    /// The file of the trial; `None` in studies without one.
    pub(crate) ground: Option<&'a dyn Ground>,
    /// Where files are copied; `None` in other studies.
    pub(crate) site: Option<&'a Site<'a>>,
    /// Is told of the slices that count; the sending end's alone.
    pub(crate) perf: Option<Listener>,
    gate: Gate,
    /// Where the threads have a CPU each and no other end to wait for.
    rendezvous: Option<Rendezvous>,
    /// Says that everything is allocated and warm.
    say_ready: &'a (dyn Fn() + Sync),
    go: &'a Latch,
}

/// One slice on one thread.
pub(crate) struct ThreadSlice {
    /// First and last call; at the receiving end the first and the last bytes.
    pub(crate) span: Span,
    /// When the slice was over for this thread.
    pub(crate) end_ns: u64,
    pub(crate) counts: Counts,
    /// CPU time of the thread alone: `counts` has that of its helpers and children as well.
    pub(crate) own_cpu_ns: u64,
}

/// What one thread brings home.
pub(crate) struct ThreadReport {
    /// One entry per slice of the trial.
    pub(crate) slices: Vec<ThreadSlice>,
    pub(crate) bracket: Bracket,
    pub(crate) cpus: Vec<u32>,
    /// The CPU that it was bound to in the slices of each arm, where it follows what comes in;
    /// else empty.
    pub(crate) homes: Vec<u32>,
    /// Round-trip times by arm; empty at the answering end.
    pub(crate) latency: Vec<Histogram>,
    pub(crate) sampler: StackSampler,
    /// What its arms found when they were opened.
    pub(crate) arm_facts: Vec<ArmFact>,
    /// What starting its programs took.
    pub(crate) starts: Vec<ProgramStart>,
}

/// Why a thread stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    what: String,
    consequence: bool,
    refused: bool,
}

impl Stop {
    /// A reason of this thread's own.
    pub(crate) fn cause(what: String) -> Stop {
        Stop { what, consequence: false, refused: false }
    }

    /// What it says.
    #[cfg(test)]
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// The machine's limits do not allow what the arm needs.
    pub(crate) fn refused(what: String) -> Stop {
        Stop { what, consequence: false, refused: true }
    }

    /// What an arm or a receiver cannot do without was refused; where the
    /// kernel has no such thing, or this machine does not allow it, nothing has
    /// failed.
    pub(crate) fn not_set_up(error: &SetupError) -> Stop {
        const LACKS: [Errno; 5] = [
            Errno::EOPNOTSUPP,
            Errno::ENOPROTOOPT,
            Errno::EAFNOSUPPORT,
            Errno::ENODEV,
            Errno::ENOSYS,
        ];
        // What somebody else has is his.
        const FORBIDS: [Errno; 5] =
            [Errno::EPERM, Errno::EACCES, Errno::ENOMEM, Errno::ENOBUFS, Errno::EBUSY];
        // What the cell's network has no room for.
        let is_too_large = error.errno == Errno::EMSGSIZE;
        let refuses =
            is_too_large || LACKS.contains(&error.errno) || FORBIDS.contains(&error.errno);
        let stop = if refuses { Stop::refused } else { Stop::cause };
        stop(error.to_string())
    }

    /// Turns an error of `what` was tried into a reason.
    pub(crate) fn at(what: &'static str) -> impl Fn(Errno) -> Stop {
        move |errno| {
            let (said, consequence) = match errno {
                Errno::EAGAIN => ("the peer did not move within the time limit".to_owned(), false),
                _ if lane::tells_of_the_peer(errno) => {
                    (format!("the peer has gone: {errno}"), true)
                }
                Errno::ETIMEDOUT => ("no completion came within the time limit".to_owned(), false),
                other => (other.to_string(), false),
            };
            Stop { what: format!("cannot {what}: {said}"), consequence, refused: false }
        }
    }

    /// The same with what of an arm's zero-copy sends the kernel had not
    /// released by then.
    pub(crate) fn counting(self, zerocopy: Option<ZerocopyCounts>) -> Stop {
        let Some(counts) = zerocopy.filter(|counts| counts.completions < counts.sends) else {
            return self;
        };
        let (left, all) = (counts.sends - counts.completions, counts.sends);
        let what = format!("{} ({left} of {all} zero-copy sends had not completed)", self.what);
        Stop { what, ..self }
    }
}

impl From<Trouble> for Stop {
    fn from(Trouble { what, is_refused }: Trouble) -> Stop {
        Stop { what, consequence: false, refused: is_refused }
    }
}

impl From<Broken> for Stop {
    fn from(Broken: Broken) -> Stop {
        let what = "another thread stopped or did not come".to_owned();
        Stop { what, consequence: true, refused: false }
    }
}

/// Breaks the crew up when its thread ends without a report, a panic included.
struct Alarm<'a> {
    crew: &'a Crew<'a>,
    slice: Option<usize>,
    stop: Option<Stop>,
    done: bool,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let stop = self.stop.take().unwrap_or_else(|| Stop::cause("a thread panicked".to_owned()));
        let Stop { what, consequence, refused } = stop;
        self.crew.gate.fail(Failure { slice: self.slice, what, consequence, refused });
        self.crew.links.hang_up();
    }
}

impl<'a> Crew<'a> {
    pub(crate) fn new(
        trial: &'a Trial,
        links: &'a Links,
        say_ready: &'a (dyn Fn() + Sync),
        go: &'a Latch,
    ) -> Crew<'a> {
        let threads = trial.cell.threads;
        let gate = Gate::new(threads as usize);
        let rendezvous = has_cpus(trial).then(|| Rendezvous::new(threads));
        Crew { trial, links, ground: None, site: None, perf: None, gate, rendezvous, say_ready, go }
    }

    /// Runs `work` on every thread; it notes the slice that it is in.
    ///
    /// Errors: the first failure that was not another one's consequence.
    pub(crate) fn run<R: Send>(
        &self,
        work: impl Fn(usize, &mut Option<usize>) -> Result<R, Stop> + Sync,
    ) -> Result<Vec<R>, Failure> {
        let one = |thread: usize| {
            let mut alarm = Alarm { crew: self, slice: None, stop: None, done: false };
            match work(thread, &mut alarm.slice) {
                Ok(report) => {
                    alarm.done = true;
                    Some(report)
                }
                Err(stop) => {
                    alarm.stop = Some(stop);
                    None
                }
            }
        };
        let reports: Option<Vec<R>> = std::thread::scope(|scope| {
            let one = &one;
            let threads = 0..self.trial.cell.threads as usize;
            let spawned: Vec<_> = threads.map(|thread| scope.spawn(move || one(thread))).collect();
            spawned.into_iter().map(|thread| thread.join().unwrap_or(None)).collect()
        });
        let unknown = || Failure::cause("a thread ended without saying why");
        reports.ok_or_else(|| self.gate.failure().unwrap_or_else(unknown))
    }

    /// Waits until every thread has what it needs, says so, and waits for the
    /// coordinator's word to begin.
    pub(crate) fn ready(&self, thread: usize) -> Result<(), Stop> {
        // Large rings take their time, which no slice's limit bounds.
        self.gate.wait(self.trial.trial_limit.as_duration())?;
        if thread == 0 {
            (self.say_ready)();
        }
        self.go.pass();
        Ok(())
    }

    /// Waits until all threads are about to begin a slice.
    pub(crate) fn begin(&self) -> Result<(), Stop> {
        self.meet()?;
        if let Some(rendezvous) = &self.rendezvous {
            rendezvous.wait();
        }
        Ok(())
    }

    /// Waits for the other threads.
    pub(crate) fn meet(&self) -> Result<(), Stop> {
        Ok(self.gate.wait(link::stall_limit(self.trial))?)
    }
}

/// Whether several threads have a CPU each for themselves, and nobody else of the trial
/// wants one: where they share, who waits without sleeping would keep another one from
/// coming.
fn has_cpus(trial: &Trial) -> bool {
    let mut cpus = trial.tx_cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    let threads = trial.cell.threads as usize;
    trial.cell.is_alone() && threads > 1 && threads <= cpus.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_that_never_come_are_counted() {
        let counts = |sends, completions| {
            Some(ZerocopyCounts {
                sends,
                completions,
                copied: Some(0),
                ..ZerocopyCounts::default()
            })
        };
        let stop = || Stop::at("hear that everything was released")(Errno::ETIMEDOUT);
        let what = "cannot hear that everything was released: no completion came within the time \
                    limit";
        assert_eq!(stop().counting(None).what, what);
        assert_eq!(stop().counting(counts(7, 7)).what, what);
        let expect = format!("{what} (3 of 7 zero-copy sends had not completed)");
        assert_eq!(stop().counting(counts(7, 4)).what, expect);
    }

    #[test]
    fn what_the_kernel_or_the_machine_refuses_has_not_failed() {
        let of = |errno| Stop::not_set_up(&SetupError { tried: "open".to_owned(), errno });
        for errno in [Errno::EPERM, Errno::ENOSYS, Errno::EOPNOTSUPP, Errno::ENOMEM] {
            assert!(of(errno).refused, "{errno}");
        }
        assert!(!of(Errno::EINVAL).refused);
    }
}

//! Threads that the kernel runs for threads of ours: io_uring gives what it cannot do at
//! once to workers (`iou-wrk-…`, io_uring/io-wq.c), and `IORING_SETUP_SQPOLL` has a thread
//! that takes requests (`iou-sqp-…`, io_uring/sqpoll.c). They are threads of the process,
//! and their CPU time is in no clock of ours. One arm works at a time, so what all of them
//! spend within a slice is that arm's. (The number in their names is a thread's that opened
//! a ring, but as the first process namespace numbers it.)
//!
//! A worker with nothing to do ends after [`IDLE_NS`], but for the last of its kind. In a slice
//! that is longer, one may come and go that was never listed; the process's clock keeps what it
//! spent, and that of no thread has it.

use std::fs;
use std::os::linux::fs::MetadataExt;

use iolens_sys::{clock, proc, usage};

const TASKS: &str = "/proc/self/task";

/// `WORKER_IDLE_TIMEOUT`, io_uring/io-wq.c, less what a tick is at most.
const IDLE_NS: u64 = 4_900_000_000;

/// The kernel's threads that work for this process.
#[derive(Debug)]
pub(super) struct Helpers {
    /// Threads of the process, each looked at once.
    threads: Vec<Thread>,
    /// How many there were when they were listed.
    listed: u64,
    spent: Spent,
    /// When that was read.
    read_ns: u64,
    /// CPU time of threads that have ended, as it was last reckoned: at least and at most.
    gone_ns: [u64; 2],
}

#[derive(Debug)]
struct Thread {
    tid: u32,
    /// Its CPU time so far; `None` for one that is no helper.
    cpu_ns: Option<u64>,
}

/// What they have spent so far, and how many have ended with what nobody read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spent {
    cpu_ns: u64,
    ended: u64,
}

impl Spent {
    /// CPU time since `before`; `None` where one of them has ended since.
    pub(super) fn since(&self, before: &Spent) -> Option<u64> {
        (self.ended == before.ended).then(|| self.cpu_ns - before.cpu_ns)
    }
}

impl Helpers {
    /// Those of this process.
    ///
    /// Errors: why its threads cannot be listed.
    pub(super) fn open() -> Result<Helpers, String> {
        let mut helpers = Helpers {
            threads: Vec::new(),
            listed: 0,
            spent: Spent::default(),
            read_ns: clock::monotonic_ns(),
            gone_ns: [0, 0],
        };
        match helpers.read() {
            Some(_) => Ok(helpers),
            None => Err(format!("cannot list {TASKS}")),
        }
    }

    /// What they have spent so far. Where no thread came or went since the last time, which was
    /// not long ago, and none of them is there, this is one system call besides the clock's.
    pub(super) fn read(&mut self) -> Option<Spent> {
        self.read_at(clock::monotonic_ns())
    }

    fn read_at(&mut self, now_ns: u64) -> Option<Spent> {
        self.read_with(now_ns, Helpers::list)
    }

    fn read_with(
        &mut self,
        now_ns: u64,
        list: impl FnOnce(&mut Helpers) -> Option<()>,
    ) -> Option<Spent> {
        let is_long = now_ns - std::mem::replace(&mut self.read_ns, now_ns) >= IDLE_NS;
        let ended = self.spent.ended;
        let has_some = self.threads.iter().any(|thread| thread.cpu_ns.is_some());
        // First: one of SQPOLL looks for more work while the others are listed.
        self.add_up();
        // Two names of the folder are its own.
        let count = fs::metadata(TASKS).ok()?.st_nlink();
        let is_other = count != self.listed;
        if has_some || is_other {
            list(self)?;
            self.listed = count;
        }
        if is_long || is_other || self.spent.ended != ended {
            let gone_ns = self.reckon_gone()?;
            let [_, most_before_ns] = std::mem::replace(&mut self.gone_ns, gone_ns);
            self.spent.ended += u64::from(is_long && gone_ns[0] > most_before_ns);
        }
        Some(self.spent)
    }

    /// CPU time of threads that have ended: what the process has beyond those that are there,
    /// at least and at most, as clocks go on between two readings.
    fn reckon_gone(&self) -> Option<[u64; 2]> {
        let of_process = usage::cpu_ns_of_process;
        // A look at a thread's clock brings the process's up to date, so before and after.
        let there_ns = || -> u64 {
            let clocks = self.threads.iter().map(|thread| usage::cpu_ns_of_thread(thread.tid));
            clocks.map(|ns| ns.unwrap_or(0)).sum()
        };
        there_ns();
        let least_ns = of_process()?;
        let there_ns = there_ns();
        Some([least_ns, of_process()?].map(|ns| ns.saturating_sub(there_ns)))
    }

    fn list(&mut self) -> Option<()> {
        let mut tids = Vec::with_capacity(self.threads.len() + 1);
        for entry in fs::read_dir(TASKS).ok()? {
            tids.push(entry.ok()?.file_name().to_str()?.parse::<u32>().ok()?);
        }
        let spent = &mut self.spent;
        self.threads.retain(|thread| {
            let is_there = tids.contains(&thread.tid);
            spent.ended += u64::from(!is_there && thread.cpu_ns.is_some());
            is_there
        });
        for tid in tids {
            if self.threads.iter().all(|thread| thread.tid != tid) {
                self.add(tid);
            }
        }
        Some(())
    }

    /// Adds a thread, with what it has spent if it is one of them.
    fn add(&mut self, tid: u32) {
        let cpu_ns = match is_one(tid).then(|| usage::cpu_ns_of_thread(tid)) {
            None => None,
            Some(Ok(cpu_ns)) => Some(cpu_ns),
            Some(Err(_)) => {
                self.spent.ended += 1;
                return;
            }
        };
        self.spent.cpu_ns += cpu_ns.unwrap_or(0);
        self.threads.push(Thread { tid, cpu_ns });
    }

    /// Adds what those that are known have spent since the last time.
    fn add_up(&mut self) {
        let spent = &mut self.spent;
        self.threads.retain_mut(|Thread { tid, cpu_ns }| {
            let Some(earlier_ns) = cpu_ns else { return true };
            let Ok(now_ns) = usage::cpu_ns_of_thread(*tid) else {
                spent.ended += 1;
                return false;
            };
            spent.cpu_ns += now_ns.saturating_sub(std::mem::replace(earlier_ns, now_ns));
            true
        });
    }
}

/// Whether a thread is one of them; one that has ended already is none.
fn is_one(tid: u32) -> bool {
    let stat = fs::read_to_string(format!("{TASKS}/{tid}/stat")).unwrap_or_default();
    proc::is_io_worker(&stat) == Some(true)
}

#[cfg(test)]
mod tests {
    use iolens_sys::process;

    use super::*;

    #[test]
    fn one_that_has_ended_leaves_no_number() {
        let before = Spent { cpu_ns: 5, ended: 0 };
        assert_eq!(Spent { cpu_ns: 12, ended: 0 }.since(&before), Some(7));
        assert_eq!(Spent { cpu_ns: 12, ended: 1 }.since(&before), None);
    }

    #[test]
    fn clocks_of_known_ones_are_read_before_threads_are_listed() {
        let mut helpers = Helpers::open().unwrap();
        helpers.threads = vec![Thread { tid: process::thread_id(), cpu_ns: Some(0) }];
        let mut before = None;
        let list = |helpers: &mut Helpers| {
            before = Some(helpers.spent.cpu_ns);
            Some(())
        };
        let after = helpers.read_with(helpers.read_ns, list).unwrap();
        assert!(before.is_some_and(|ns| ns > 0) && before == Some(after.cpu_ns), "{before:?}");
    }

    /// In a process of its own: threads of other tests spend and end beside it.
    #[test]
    fn one_that_came_and_went_in_a_long_slice_leaves_no_number() {
        let own = std::env::current_exe().unwrap();
        let test = "worker::helpers::tests::a_thread_comes_and_goes";
        let mut alone = std::process::Command::new(own);
        let done = alone.args(["--exact", test, "--include-ignored"]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("test result: ok. 1 passed"), "{said}");
    }

    #[test]
    #[ignore = "the one above starts it"]
    fn a_thread_comes_and_goes() {
        let mut helpers = Helpers::open().unwrap();
        let begin_ns = helpers.read_ns;
        let before = helpers.read_at(begin_ns + 1).unwrap();
        let spends = || while clock::thread_cpu_ns() < 3_000_000 {};
        std::thread::spawn(spends).join().unwrap();
        let after = helpers.read_at(begin_ns + 1 + IDLE_NS).unwrap();
        assert_eq!(after.since(&before), None);
    }

    #[test]
    fn threads_of_ours_are_no_helpers() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let own = process::thread_id();
            receiver.recv().map_or(own, |()| 0)
        });
        let helpers = Helpers::open().unwrap();
        drop(sender);
        let tid = other.join().unwrap();
        let found = |thread: &&Thread| [tid, process::thread_id()].contains(&thread.tid);
        let ours: Vec<&Thread> = helpers.threads.iter().filter(found).collect();
        assert_eq!(ours.len(), 2, "{helpers:?}");
        assert!(ours.iter().all(|thread| thread.cpu_ns.is_none()), "{helpers:?}");
    }
}

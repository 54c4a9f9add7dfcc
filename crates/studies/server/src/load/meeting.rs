//! Where the threads of a client wait for each other, and learn when to begin.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iolens_model::transfer::Cpu;
use iolens_model::units::Nanos;
use iolens_sys::{clock, usage};

/// Between the moment at which all threads know when to begin, and that one.
const LEAD_NS: u64 = 1_000_000;

/// Where threads wait until all are connected, and learn when to begin.
pub(super) struct Meeting {
    barrier: Barrier,
    /// A thread cannot begin, so none does.
    failed: AtomicBool,
    open: AtomicU64,
    start_ns: AtomicU64,
    user_ns: AtomicU64,
    system_ns: AtomicU64,
}

impl Meeting {
    pub(super) fn of(threads: u32) -> Meeting {
        Meeting {
            barrier: Barrier::new(threads as usize),
            failed: AtomicBool::new(false),
            open: AtomicU64::new(0),
            start_ns: AtomicU64::new(0),
            user_ns: AtomicU64::new(0),
            system_ns: AtomicU64::new(0),
        }
    }

    /// When all begin; `None` where one cannot, or no connection is there that was to
    /// be. All that passes between threads is ordered by the barrier.
    pub(super) fn start(
        &self,
        thread: u32,
        open: u64,
        ready: bool,
        needs_one: bool,
    ) -> Option<u64> {
        self.open.fetch_add(open, Ordering::Relaxed);
        if !ready {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.barrier.wait();
        if thread == 0 {
            let none = needs_one && self.open.load(Ordering::Relaxed) == 0;
            if !none && !self.failed.load(Ordering::Relaxed) {
                let spent = usage::process_cpu().unwrap_or_default();
                self.user_ns.store(spent.user_ns, Ordering::Relaxed);
                self.system_ns.store(spent.system_ns, Ordering::Relaxed);
                self.start_ns.store(clock::monotonic_ns() + LEAD_NS, Ordering::Relaxed);
            }
        }
        self.barrier.wait();
        self.begun()
    }

    /// When all began.
    pub(super) fn begun(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Relaxed)).filter(|&ns| ns > 0)
    }

    /// CPU time of the process since then.
    pub(super) fn cpu_since(&self) -> Option<Cpu> {
        self.begun()?;
        let after = usage::process_cpu().ok()?;
        let since = |after: u64, before: &AtomicU64| {
            Nanos(after.saturating_sub(before.load(Ordering::Relaxed)))
        };
        Some(Cpu {
            user: since(after.user_ns, &self.user_ns),
            system: since(after.system_ns, &self.system_ns),
        })
    }
}

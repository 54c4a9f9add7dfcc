//! When the requests of a client begin. Those of an open loop are due by a schedule in ns that is
//! there before, waits for nobody and does not drift.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iolens_model::load::Arrivals;
use iolens_model::transfer::Cpu;
use iolens_model::units::Nanos;
use iolens_sys::{clock, usage};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The schedule of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    arrivals: Arrivals,
    /// Mean gap of this thread's requests.
    gap_ns: f64,
    /// Where its first gap begins, from the start.
    first_ns: f64,
    /// Requests so far.
    count: u64,
    /// When the last one of random gaps was due, from the start.
    at_ns: f64,
    random: Pcg64Mcg,
}

impl Schedule {
    /// The part of thread `thread` of `threads` in `rate` requests per second.
    /// All parts together are what one schedule would be: equal gaps interleave,
    /// and independent random ones add up to random ones.
    pub(crate) fn new(
        rate: f64,
        arrivals: Arrivals,
        seed: u64,
        thread: u32,
        threads: u32,
    ) -> Schedule {
        let all_gap_ns = 1e9 / rate;
        // Neighbouring seeds must not give sequences that have anything in common.
        let own_seed = seed ^ (u64::from(thread) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Schedule {
            arrivals,
            gap_ns: all_gap_ns * f64::from(threads),
            first_ns: all_gap_ns * f64::from(thread),
            count: 0,
            at_ns: 0.0,
            random: Pcg64Mcg::seed_from_u64(own_seed),
        }
    }

    /// When the next request is due, in ns from the start.
    pub(crate) fn next_ns(&mut self) -> u64 {
        match self.arrivals {
            // From its number, so that nothing adds up but what rounding leaves.
            Arrivals::Fixed => self.at_ns = self.first_ns + self.count as f64 * self.gap_ns,
            Arrivals::Poisson => {
                // Of [0, 1), so that the logarithm's argument is never 0.
                let uniform: f64 = self.random.random();
                self.at_ns -= (1.0 - uniform).ln() * self.gap_ns;
            }
        }
        self.count += 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rising from 0"
        )]
        let ns = self.at_ns.round() as u64;
        ns
    }
}

// Where the threads of a client wait for each other, and learn when to begin.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(schedule: &mut Schedule, n: usize) -> Vec<f64> {
        let mut before = 0;
        let mut next = || {
            let at = schedule.next_ns();
            (at - std::mem::replace(&mut before, at)) as f64
        };
        (0..n).map(|_| next()).collect()
    }

    /// Kolmogorov and Smirnov's largest distance between the gaps and the
    /// exponential distribution.
    fn distance(gaps: &mut [f64], mean: f64) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let of = |(i, gap): (usize, &f64)| {
            let expected = 1.0 - (-gap / mean).exp();
            let (below, above) = (i as f64 / n, (i + 1) as f64 / n);
            (expected - below).abs().max((above - expected).abs())
        };
        gaps.iter().enumerate().map(of).fold(0.0, f64::max)
    }

    /// For `cargo xtask accept`.
    fn told(what: &str, n: usize, far: f64) {
        let limit = 1.63 / (n as f64).sqrt();
        println!("figure: Kolmogorov-Smirnov, {n} gaps, {what}: {far:.6}, limit {limit:.6} at 1%");
    }

    /// 1.63 / √n is passed by one in a hundred of random sets.
    #[test]
    fn random_gaps_are_exponential() {
        const N: usize = 1_000_000;
        for (rate, threads) in [(50.0, 1), (20_000.0, 1), (3000.0, 3)] {
            let thread = threads - 1;
            let mut schedule = Schedule::new(rate, Arrivals::Poisson, 7, thread, threads);
            let mean = 1e9 / rate * f64::from(threads);
            let mut all = gaps(&mut schedule, N);
            let far = distance(&mut all, mean);
            told(&format!("{rate} per second, one of {threads} threads"), N, far);
            assert!(far < 1.63 / (N as f64).sqrt(), "{rate}: {far}");
            // The test can tell: gaps a hundredth longer are found out.
            assert!(distance(&mut all, mean * 1.01) > 1.63 / (N as f64).sqrt());
        }
    }

    #[test]
    fn threads_add_up_to_one_schedule() {
        let mut parts: Vec<Schedule> =
            (0..3).map(|t| Schedule::new(7000.0, Arrivals::Poisson, 1, t, 3)).collect();
        let mut merged: Vec<u64> = Vec::new();
        for part in &mut parts {
            merged.extend((0..100_000).map(|_| part.next_ns()));
        }
        merged.sort_unstable();
        // Only as far as all three have come.
        let mut gaps: Vec<f64> =
            merged[..280_000].windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let n = gaps.len() as f64;
        let far = distance(&mut gaps, 1e9 / 7000.0);
        told("three threads together", gaps.len(), far);
        assert!(far < 1.63 / n.sqrt());
    }

    #[test]
    fn equal_gaps_interleave_and_do_not_drift() {
        let mut parts: Vec<Schedule> =
            (0..3).map(|t| Schedule::new(3_000_000.0 / 7.0, Arrivals::Fixed, 1, t, 3)).collect();
        for request in 0..300_000_u64 {
            let part = usize::try_from(request % 3).unwrap();
            let due = request as f64 * 7_000.0 / 3.0;
            assert!((parts[part].next_ns() as f64 - due).abs() <= 0.501);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule() {
        let of = |seed, thread| {
            let mut schedule = Schedule::new(1000.0, Arrivals::Poisson, seed, thread, 2);
            (0..100).map(|_| schedule.next_ns()).collect::<Vec<_>>()
        };
        assert_eq!(of(5, 0), of(5, 0));
        assert!(of(5, 0) != of(6, 0) && of(5, 0) != of(5, 1));
    }
}

//! What the machine's own building blocks cost, measured at the start of a
//! run in well under two seconds: bounds for gates and figures, and the
//! harness's own price. Nothing here is ever subtracted from a result.

mod bandwidth;
mod switching;

use std::os::fd::AsFd;
use std::time::Duration;

use iolens_model::axes::Iovec;
use iolens_model::host::{Calibration, Costs, HostFacts, Spreads};
use iolens_model::plan::Probes;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use iolens_sys::proc::Root;
use iolens_sys::{affinity, calls, clock};

use self::bandwidth::Bandwidths;
use crate::worker::bracket::Bracket;
use iolens_harness::environment::fixed_loop_ns;
use iolens_harness::host;
use iolens_harness::op::Budget;
use iolens_net::entry::{Link, Setup, Shape};
use iolens_net::lane;
use iolens_net::registry;

/// Work is divided by this. A debug build is for tests: their runs are many, and nobody uses
/// their numbers.
const PARTS: usize = if cfg!(debug_assertions) { 8 } else { 1 };

/// Repetitions of every short measurement; the fastest counts, because
/// nothing but disturbance can make a fixed piece of work slower.
const REPETITIONS: usize = 7;

/// Calls in a repetition of what costs nanoseconds, and how many there are of them: as
/// long together as a few long ones, and none so long that on a machine with other work
/// every one of them is interrupted.
const CALLS: u32 = 1000;
const SHORT_REPETITIONS: usize = 700 / PARTS;

/// Messages that the harness itself is timed with.
const HARNESS_MESSAGES: u64 = 1_000_000 / PARTS as u64;

/// Threads that copy at once, at most: what saturates memory everywhere, and
/// the cold buffers stay within two GiB.
const THREADS_MAX: usize = 16;

/// Measures, on the processors that the run will use; what takes memory keeps
/// within [`memory`]. `probes` are what a slice is read with.
pub fn calibrate(cpus: &[u32], host: &HostFacts, probes: Probes) -> Calibration {
    let room = Room::of(host, free());
    std::thread::scope(|scope| {
        let calibrating = scope.spawn(|| {
            // Unpinned they are still bounds, only of any processor.
            let _ = affinity::pin_thread(cpus[0]);
            on_this_thread(cpus, &room, probes)
        });
        // Joining fails only if the measuring thread panicked.
        calibrating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Memory that [`calibrate`] takes at most at a time.
pub fn memory(cpus: &[u32], host: &HostFacts) -> Bytes {
    Room::of(host, free()).taken(threads_of(cpus))
}

/// Memory that is free or can be made so, as far as the kernel tells.
fn free() -> Option<Bytes> {
    host::memory_room(&Root::real()).into_iter().map(|(room, _)| room).min()
}

/// Memory that may be used, and the size of the last-level cache.
struct Room {
    memory_bytes: usize,
    llc_bytes: Option<usize>,
}

impl Room {
    /// A sixteenth of the machine's memory, and no more than a quarter of what is free: what
    /// is taken from the page cache is a file that somebody else reads.
    fn of(host: &HostFacts, free: Option<Bytes>) -> Room {
        let whole = host.memory.value().map_or(u64::MAX, |bytes| bytes.0 / 16);
        let memory = free.map_or(whole, |free| whole.min(free.0 / 4));
        Room {
            memory_bytes: usize::try_from(memory).unwrap_or(usize::MAX),
            llc_bytes: host.llc.value().and_then(|bytes| usize::try_from(bytes.0).ok()),
        }
    }

    /// What is taken of it by so many threads.
    fn taken(&self, threads: usize) -> Bytes {
        let switched = switching::most_bytes(self.llc_bytes, self.memory_bytes);
        let copied = [1, threads].map(|n| bandwidth::most_bytes(n, self.memory_bytes));
        Bytes(copied.into_iter().fold(switched, usize::max) as u64)
    }
}

fn threads_of(cpus: &[u32]) -> usize {
    cpus.len().clamp(1, THREADS_MAX)
}

fn on_this_thread(cpus: &[u32], room: &Room, probes: Probes) -> Calibration {
    let begin = clock::monotonic_ns();
    let threads = threads_of(cpus);
    let one = Bandwidths::measure(cpus, 1, room.memory_bytes);
    let all = Bandwidths::measure(cpus, threads, room.memory_bytes);
    Calibration {
        empty_call_ns: fastest_ns_per(CALLS, SHORT_REPETITIONS, || {
            std::hint::black_box(calls::parent_id());
        }),
        clock_read_ns: clock_read_ns(CALLS, SHORT_REPETITIONS),
        loop_ns: (0..REPETITIONS).map(|_| fixed_loop_ns()).min().unwrap_or(0),
        harness_message_ns: harness_ns(HARNESS_MESSAGES) / HARNESS_MESSAGES as f64,
        harness_slice_ns: harness_ns(1),
        receipt_round_trip_ns: receipt_round_trip_ns(cpus),
        memcpy_hot_bytes_per_s: one.copy_hot.bytes_per_s,
        memcpy_cold_bytes_per_s: one.copy_cold.bytes_per_s,
        memcpy_hot_all_bytes_per_s: all.copy_hot.bytes_per_s,
        memcpy_cold_all_bytes_per_s: all.copy_cold.bytes_per_s,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        costs: costs(cpus, room, probes, [&one, &all]),
        spread: Spreads { one: one.spread(), all: all.spread() },
        // Read last.
        duration_ns: clock::monotonic_ns() - begin,
    }
}

/// Nanoseconds of one reading of the clock, fastest of some repetitions of `readings`.
pub(crate) fn clock_read_ns(readings: u32, repetitions: usize) -> f64 {
    fastest_ns_per(readings, repetitions, || {
        std::hint::black_box(clock::monotonic_ns());
    })
}

fn costs(cpus: &[u32], room: &Room, probes: Probes, bandwidths: [&Bandwidths; 2]) -> Costs {
    let [one, all] = bandwidths;
    let mut bracket = Bracket::open(0, cpus, 0, probes);
    Costs {
        inner_readings_ns: Some(fastest_ns_per(EDGES, REPETITIONS, || {
            std::hint::black_box(bracket.inner_before());
        })),
        outer_readings_ns: outer_readings_ns(&mut bracket),
        counter_groups: u32::try_from(bracket.groups()).unwrap_or(u32::MAX),
        scan_hot_bytes_per_s: one.scan_hot.bytes_per_s,
        scan_cold_bytes_per_s: one.scan_cold.bytes_per_s,
        scan_hot_all_bytes_per_s: all.scan_hot.bytes_per_s,
        scan_cold_all_bytes_per_s: all.scan_cold.bytes_per_s,
        thread_start_ns: switching::thread_start_ns(),
        counted_handover_ns: switching::counted_handover_ns(cpus[0], probes),
        switches: switching::costs(cpus[0], room.llc_bytes, room.memory_bytes),
    }
}

/// Readings that are timed together.
const EDGES: u32 = 500;

/// The slower readings at one edge, those of a connection among them.
fn outer_readings_ns(bracket: &mut Bracket) -> Option<f64> {
    let (tx, _rx) = lane::connected_pair().ok()?;
    Some(fastest_ns_per(EDGES, REPETITIONS, || {
        std::hint::black_box(bracket.outer_before(Some(tx.as_fd())));
    }))
}

/// Nanoseconds per call of `work`, fastest of some repetitions of `calls`.
fn fastest_ns_per(calls: u32, repetitions: usize, mut work: impl FnMut()) -> f64 {
    let mut once = || {
        let begin = clock::monotonic_ns();
        for _ in 0..calls {
            work();
        }
        (clock::monotonic_ns() - begin) as f64 / f64::from(calls)
    };
    (0..repetitions).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds of one slice of the `null` primitive.
fn harness_ns(messages: u64) -> f64 {
    let Some(null) = registry::find("null") else { return f64::NAN };
    let shape = Shape { messages: 64, message_bytes: 1, fields: 1, iovec: Iovec::PerMessage };
    let setup =
        Setup { link: Link::None, shape, tuning: Tuning::DEFAULT, stall_limit: Duration::ZERO };
    let Ok(mut sender) = (null.open)(setup) else { return f64::NAN };
    let mut once = || {
        let budget = Budget::messages(messages, 1);
        let span = sender.run(&budget);
        span.map_or(f64::NAN, |s| (s.last_call_ns - s.first_call_ns) as f64)
    };
    (0..REPETITIONS).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Median time of one byte there and one byte back over TCP on loopback,
/// between threads on the first and the last processor.
fn receipt_round_trip_ns(cpus: &[u32]) -> Option<f64> {
    const ROUND_TRIPS: usize = 400;
    let (near, far) = (*cpus.first()?, *cpus.last()?);
    let (tx, rx) = lane::connected_pair().ok()?;
    let echo = std::thread::spawn(move || {
        // Unpinned it is still a round trip, between processors of the
        // scheduler's choosing.
        let _ = affinity::pin_thread(far);
        while lane::receive_byte(rx.as_fd()).is_ok() && lane::send_byte(rx.as_fd()).is_ok() {}
    });
    let measured = std::thread::spawn(move || {
        let _ = affinity::pin_thread(near);
        let once = || {
            let begin = clock::monotonic_ns();
            lane::send_byte(tx.as_fd()).ok()?;
            lane::receive_byte(tx.as_fd()).ok()?;
            Some((clock::monotonic_ns() - begin) as f64)
        };
        (0..ROUND_TRIPS).map(|_| once()).collect::<Option<Vec<f64>>>()
    });
    let mut round_trips = measured.join().ok()??;
    // The other end of the connection is closed by now.
    let _ = echo.join();
    round_trips.sort_unstable_by(f64::total_cmp);
    round_trips.get(ROUND_TRIPS / 2).copied()
}

#[cfg(test)]
mod tests {
    use iolens_model::reading::Reading;

    use super::*;

    fn machine(cpus: &[u32]) -> HostFacts {
        HostFacts {
            cores: Vec::new(),
            cpus: cpus.to_vec(),
            l1d: Reading::not_measured("not needed"),
            l2: Reading::not_measured("not needed"),
            llc: Reading::Exact(Bytes(4 << 20)),
            memory: Reading::Exact(Bytes(2 << 30)),
            descriptors_max: Reading::Exact(1024),
            changed: Vec::new(),
            facts: Vec::new(),
        }
    }

    #[test]
    fn no_more_is_taken_than_a_quarter_of_what_is_free() {
        let machine = machine(&[0]);
        for (free, threads) in [(16 << 20, 1), (256 << 20, 2), (1 << 40, 16)] {
            let taken = Room::of(&machine, Some(Bytes(free))).taken(threads);
            assert!(taken.0 <= free / 4 && taken.0 <= (2 << 30) / 16, "{taken} of {free}");
        }
        let unknown = Room::of(&machine, None).taken(2);
        assert!(unknown.0 > 1 << 20 && unknown.0 <= (2 << 30) / 16, "{unknown}");
    }

    #[test]
    fn a_machine_with_little_free_memory_has_bounds_too() {
        let room = Room::of(&machine(&[0]), Some(Bytes(1 << 20)));
        let found = Bandwidths::measure(&affinity::thread_cpus().unwrap(), 1, room.memory_bytes);
        assert!(found.copy_cold.bytes_per_s > 1e7 && found.scan_cold.bytes_per_s > 1e7);
    }

    #[test]
    fn every_block_costs_something() {
        let cpus = affinity::thread_cpus().unwrap();
        let c = calibrate(&cpus, &machine(&cpus), Probes::default());
        assert!(c.empty_call_ns > 1.0 && c.clock_read_ns > 1.0, "{c:?}");
        assert!(c.harness_message_ns >= 0.0 && c.harness_message_ns < c.empty_call_ns, "{c:?}");
        assert!(c.memcpy_hot_bytes_per_s > 1e8 && c.memcpy_cold_all_bytes_per_s > 1e8, "{c:?}");
        assert!(c.loop_ns > 0);
        let spread = c.spread;
        for share in [spread.one.copy_cold, spread.one.scan_hot, spread.all.copy_hot] {
            assert!((0.0..1.0).contains(&share), "{spread:?}");
        }
        assert!(c.receipt_round_trip_ns.unwrap() > c.empty_call_ns);
        let costs = &c.costs;
        assert!(costs.scan_hot_bytes_per_s > 1e8 && costs.scan_cold_all_bytes_per_s > 1e8);
        // The inner readings make at least a system call, the outer ones more.
        assert!(costs.inner_readings_ns.unwrap() > c.empty_call_ns, "{costs:?}");
        assert!(costs.outer_readings_ns > costs.inner_readings_ns.map(|_| c.empty_call_ns));
        assert!(costs.thread_start_ns.unwrap() > 10.0 * c.empty_call_ns, "{costs:?}");
        let sets: Vec<u64> = costs.switches.iter().map(|cost| cost.working_set.0).collect();
        assert_eq!(sets, [0, 32 << 10, 256 << 10, 4 << 20]);
        for cost in &costs.switches {
            // At least the two calls of a hand-over.
            assert!(cost.alone_ns.min(cost.handover_ns) > 2.0 * c.empty_call_ns, "{cost:?}");
        }
        // Whoever else runs, a switch is more than its calls, and reading what
        // fills a cache is more than reading nothing.
        let [bare, .., large] = &costs.switches[..] else { panic!("{costs:?}") };
        assert!(bare.handover_ns > bare.alone_ns && large.alone_ns > bare.alone_ns, "{costs:?}");
    }
}

//! What the machine's own building blocks cost, measured at the start of a
//! run in well under two seconds: bounds for gates and figures, and the
//! harness's own price. Nothing here is ever subtracted from a result.

use std::os::fd::AsFd;
use std::sync::Barrier;
use std::time::Duration;

use iolens_model::axes::Iovec;
use iolens_model::host::Calibration;
use iolens_model::units::Bytes;
use iolens_sys::{affinity, clock, null_call};

use crate::environment::fixed_loop_ns;
use crate::op::Budget;
use crate::registry::{self, Link, Setup, Shape};
use crate::worker::link;

/// Repetitions of every short measurement; the fastest counts, because
/// nothing but disturbance can make a fixed piece of work slower.
const REPETITIONS: usize = 7;

/// Copies in cache: the best of these counts, because which length a memcpy
/// likes best is its own affair and the figure bounds all copies.
const HOT_BYTES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Copies out of cache.
const COLD_BYTES: usize = 64 << 20;
/// Bytes copied in one repetition of a hot copy.
const HOT_TOTAL_BYTES: usize = 32 << 20;
/// Threads that copy at once, at most: what saturates memory everywhere, and
/// the cold buffers stay within two GiB.
const THREADS_MAX: usize = 16;

/// Measures, on the processors that the run will use; cold copies keep within
/// a sixteenth of `memory`.
#[must_use]
pub fn calibrate(cpus: &[u32], memory: Option<Bytes>) -> Calibration {
    let memory = memory.map_or(u64::MAX, |bytes| bytes.0 / 16);
    std::thread::scope(|scope| {
        let calibrating = scope.spawn(|| {
            // Unpinned they are still bounds, only of any processor.
            let _ = affinity::pin_thread(cpus[0]);
            on_this_thread(cpus, usize::try_from(memory).unwrap_or(usize::MAX))
        });
        // Joining fails only if the measuring thread panicked.
        calibrating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn on_this_thread(cpus: &[u32], memory_bytes: usize) -> Calibration {
    let begin = clock::monotonic_ns();
    let threads = cpus.len().clamp(1, THREADS_MAX);
    let cold_bytes = COLD_BYTES.min(memory_bytes / (2 * threads)).max(HOT_BYTES[0]);
    Calibration {
        empty_call_ns: fastest_ns_per(100_000, || {
            std::hint::black_box(null_call::getppid());
        }),
        clock_read_ns: clock_read_ns(100_000),
        loop_ns: (0..REPETITIONS).map(|_| fixed_loop_ns()).min().unwrap_or(0),
        harness_message_ns: harness_ns(1_000_000) / 1e6,
        harness_slice_ns: harness_ns(1),
        receipt_round_trip_ns: receipt_round_trip_ns(cpus),
        memcpy_hot_bytes_per_s: hot_bytes_per_s(cpus, 1),
        memcpy_cold_bytes_per_s: copy_bytes_per_s(cpus, 1, cold_bytes),
        memcpy_hot_all_bytes_per_s: hot_bytes_per_s(cpus, threads),
        memcpy_cold_all_bytes_per_s: copy_bytes_per_s(cpus, threads, cold_bytes),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        duration_ns: clock::monotonic_ns() - begin,
    }
}

/// Nanoseconds of one reading of the clock, fastest of several repetitions of
/// `readings`.
pub(crate) fn clock_read_ns(readings: u32) -> f64 {
    fastest_ns_per(readings, || {
        std::hint::black_box(clock::monotonic_ns());
    })
}

/// Nanoseconds per call of `work`, fastest of several repetitions.
fn fastest_ns_per(calls: u32, mut work: impl FnMut()) -> f64 {
    let mut once = || {
        let begin = clock::monotonic_ns();
        for _ in 0..calls {
            work();
        }
        (clock::monotonic_ns() - begin) as f64 / f64::from(calls)
    };
    (0..REPETITIONS).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds of one slice of the `null` primitive.
fn harness_ns(messages: u64) -> f64 {
    let Some(null) = registry::find("null") else { return f64::NAN };
    let shape = Shape { messages: 64, message_bytes: 1, fields: 1, iovec: Iovec::PerMessage };
    let setup = Setup { link: Link::None, shape, stall_limit: Duration::ZERO };
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
    let (tx, rx) = link::connected_pair().ok()?;
    let echo = std::thread::spawn(move || {
        // Unpinned it is still a round trip, between processors of the
        // scheduler's choosing.
        let _ = affinity::pin_thread(far);
        while link::receive_byte(rx.as_fd()).is_ok() && link::send_byte(rx.as_fd()).is_ok() {}
    });
    let measured = std::thread::spawn(move || {
        let _ = affinity::pin_thread(near);
        let once = || {
            let begin = clock::monotonic_ns();
            link::send_byte(tx.as_fd()).ok()?;
            link::receive_byte(tx.as_fd()).ok()?;
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

fn hot_bytes_per_s(cpus: &[u32], threads: usize) -> f64 {
    HOT_BYTES.iter().map(|&bytes| copy_bytes_per_s(cpus, threads, bytes)).fold(0.0, f64::max)
}

/// Bytes per second that `threads` threads together write by memcpy between
/// buffers of `bytes`; the best of a few repetitions.
fn copy_bytes_per_s(cpus: &[u32], threads: usize, bytes: usize) -> f64 {
    const COPY_REPETITIONS: usize = 3;
    let copies = (HOT_TOTAL_BYTES / bytes).max(1);
    let barrier = &Barrier::new(threads);
    let worker = |thread: usize| {
        // Unpinned is still a bound, only a looser one.
        let _ = affinity::pin_thread(cpus[thread % cpus.len()]);
        let (source, mut destination) = (vec![1u8; bytes], vec![2u8; bytes]);
        let mut spans = [(0, 0); COPY_REPETITIONS];
        for span in &mut spans {
            barrier.wait();
            let begin = clock::monotonic_ns();
            for _ in 0..copies {
                destination.copy_from_slice(std::hint::black_box(&source));
                std::hint::black_box(&mut destination);
            }
            *span = (begin, clock::monotonic_ns());
        }
        spans
    };
    let spans: Vec<_> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads)
            .map(|t| {
                scope.spawn({
                    let worker = &worker;
                    move || worker(t)
                })
            })
            .collect();
        spawned.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let total_bytes = (threads * copies * bytes) as f64;
    let rate = |repetition: usize| {
        let begin = spans.iter().map(|s| s[repetition].0).min().unwrap_or(0);
        let end = spans.iter().map(|s| s[repetition].1).max().unwrap_or(0);
        total_bytes / (end.saturating_sub(begin).max(1) as f64 / 1e9)
    };
    (0..COPY_REPETITIONS).map(rate).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_costs_something() {
        let cpus = affinity::thread_cpus().unwrap();
        let c = calibrate(&cpus, None);
        assert!(c.empty_call_ns > 1.0 && c.clock_read_ns > 1.0, "{c:?}");
        assert!(c.harness_message_ns >= 0.0 && c.harness_message_ns < c.empty_call_ns, "{c:?}");
        assert!(c.memcpy_hot_bytes_per_s > 1e8 && c.memcpy_cold_all_bytes_per_s > 1e8, "{c:?}");
        assert!(c.loop_ns > 0);
        assert!(c.receipt_round_trip_ns.unwrap() > c.empty_call_ns);
    }
}

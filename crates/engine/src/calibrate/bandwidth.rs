//! How fast memory is copied, and how fast it is only read.

use std::hint::black_box;
use std::sync::Barrier;

use iolens_sys::pages::PAGE_BYTES;
use iolens_sys::scan::scan;
use iolens_sys::{affinity, clock};

use super::PARTS;

/// Buffers in cache: the best of these counts, because which length a memcpy
/// likes best is its own affair and the figure bounds all copies.
const HOT_BYTES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Buffers out of cache.
const COLD_BYTES: usize = (64 << 20) / PARTS;
/// Bytes that each of several threads moves in one repetition in cache: long enough that
/// they are at it together.
const HOT_TOTAL_BYTES: usize = (32 << 20) / PARTS;
const REPETITIONS: usize = 3;
/// One thread waits for nobody: as many bytes in shorter repetitions, some of which
/// nothing interrupts even on a machine with other work.
const ALONE_PARTS: usize = 16;

/// Bytes per second that some threads together copy (counted once, where they
/// are written) or read.
pub(super) struct Bandwidths {
    pub(super) copy_hot: f64,
    pub(super) copy_cold: f64,
    pub(super) scan_hot: f64,
    pub(super) scan_cold: f64,
}

impl Bandwidths {
    /// Measures with `threads` threads; cold buffers keep within `memory_bytes`.
    pub(super) fn measure(cpus: &[u32], threads: usize, memory_bytes: usize) -> Bandwidths {
        let cold_bytes = COLD_BYTES.min(memory_bytes / (2 * threads)).max(HOT_BYTES[0]);
        let hot = HOT_BYTES.map(|bytes| bytes_per_s(cpus, threads, bytes));
        let best = |of: usize| hot.iter().map(|rates| rates[of]).fold(0.0, f64::max);
        let [copy_cold, scan_cold] = bytes_per_s(cpus, threads, cold_bytes);
        Bandwidths { copy_hot: best(0), copy_cold, scan_hot: best(1), scan_cold }
    }
}

/// Times of the same repetition on one thread, copying and reading.
type Spans = [Vec<(u64, u64)>; 2];

/// Bytes per second that `threads` threads together copy between buffers of
/// `bytes`, and read from one; the best of a few repetitions.
fn bytes_per_s(cpus: &[u32], threads: usize, bytes: usize) -> [f64; 2] {
    let parts =
        if threads == 1 && bytes <= HOT_TOTAL_BYTES / ALONE_PARTS { ALONE_PARTS } else { 1 };
    let (rounds, repetitions) = ((HOT_TOTAL_BYTES / parts / bytes).max(1), REPETITIONS * parts);
    let barrier = &Barrier::new(threads);
    let worker = |thread: usize| {
        // Unpinned is still a bound, only a looser one.
        let _ = affinity::pin_thread(cpus[thread % cpus.len()]);
        let (mut source, mut destination) =
            (vec![1; bytes + PAGE_BYTES], vec![2; bytes + PAGE_BYTES]);
        let (source, destination) =
            (in_pages(&mut source, bytes), in_pages(&mut destination, bytes));
        let copied = spans(barrier, repetitions, || {
            for _ in 0..rounds {
                destination.copy_from_slice(black_box(source));
                black_box(&mut *destination);
            }
        });
        let read = spans(barrier, repetitions, || {
            for _ in 0..rounds {
                black_box(scan(source));
            }
        });
        [copied, read]
    };
    let worker = &worker;
    let all: Vec<Spans> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads).map(|t| scope.spawn(move || worker(t))).collect();
        spawned.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let total_bytes = (threads * rounds * bytes) as f64;
    let rate = |work: usize, repetition: usize| {
        let begin = all.iter().map(|spans| spans[work][repetition].0).min().unwrap_or(0);
        let end = all.iter().map(|spans| spans[work][repetition].1).max().unwrap_or(0);
        total_bytes / (end.saturating_sub(begin).max(1) as f64 / 1e9)
    };
    [0, 1].map(|work| (0..repetitions).map(|i| rate(work, i)).fold(0.0, f64::max))
}

/// As many bytes from the first page on that begins in some memory. Where malloc puts two
/// buffers one behind the other, the second begins 16 bytes further into its page than the
/// first, which is where `rep movsb` of some processors is 30 times as slow as elsewhere.
fn in_pages(memory: &mut [u8], bytes: usize) -> &mut [u8] {
    let from = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    &mut memory[from..from + bytes]
}

/// When some work began and ended, so many times over, all threads at once.
fn spans(barrier: &Barrier, repetitions: usize, mut work: impl FnMut()) -> Vec<(u64, u64)> {
    let once = || {
        barrier.wait();
        let begin = clock::monotonic_ns();
        work();
        (begin, clock::monotonic_ns())
    };
    std::iter::repeat_with(once).take(repetitions).collect()
}

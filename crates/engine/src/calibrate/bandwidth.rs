//! How fast memory is copied, and how fast it is only read.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Barrier;

use iolens_model::host::Spread;
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
/// Work is done in so many pieces, each of which is timed: the best of them counts, and on a
/// machine with other work some are interrupted by nothing. Threads that wait for each other
/// before each piece get larger ones, so that they are at it together.
const PIECES_ALONE: usize = 16;
const PIECES_TOGETHER: usize = 4;

/// Bytes per second, and how much the pieces differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Best {
    pub(super) bytes_per_s: f64,
    /// By which share of the best piece the one in the middle is slower.
    pub(super) spread: f64,
}

impl Best {
    /// Of the rates of pieces.
    fn of(mut rates: Vec<f64>) -> Best {
        rates.sort_by(f64::total_cmp);
        let best = rates.last().copied().unwrap_or(0.0);
        let middle = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
        Best { bytes_per_s: best, spread: if best > 0.0 { 1.0 - middle / best } else { 0.0 } }
    }
}

/// What some threads together copy (counted once, where they are written) or read.
pub(super) struct Bandwidths {
    pub(super) copy_hot: Best,
    pub(super) copy_cold: Best,
    pub(super) scan_hot: Best,
    pub(super) scan_cold: Best,
}

impl Bandwidths {
    /// Measures with `threads` threads; all buffers keep within `memory_bytes`.
    pub(super) fn measure(cpus: &[u32], threads: usize, memory_bytes: usize) -> Bandwidths {
        let hot = HOT_BYTES.map(|bytes| measured(cpus, threads, Work::hot(threads, bytes)));
        let best = |of: usize| {
            let all = hot.iter().map(|found| found[of]);
            all.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
        };
        let nothing = Best { bytes_per_s: 0.0, spread: 0.0 };
        let cold = Work::cold(threads, cold_bytes(threads, memory_bytes));
        let [copy_cold, scan_cold] = measured(cpus, threads, cold);
        let [copy_hot, scan_hot] = [0, 1].map(|of| best(of).unwrap_or(nothing));
        Bandwidths { copy_hot, copy_cold, scan_hot, scan_cold }
    }

    pub(super) fn spread(&self) -> Spread {
        Spread {
            copy_hot: self.copy_hot.spread,
            copy_cold: self.copy_cold.spread,
            scan_hot: self.scan_hot.spread,
            scan_cold: self.scan_cold.spread,
        }
    }
}

/// Bytes of a buffer out of cache, of which each thread has two.
fn cold_bytes(threads: usize, memory_bytes: usize) -> usize {
    let each = (memory_bytes / (2 * threads)).saturating_sub(PAGE_BYTES);
    COLD_BYTES.min(each).max(HOT_BYTES[0])
}

/// Memory that all buffers of some threads take at once.
pub(super) fn most_bytes(threads: usize, memory_bytes: usize) -> usize {
    2 * threads * (cold_bytes(threads, memory_bytes) + PAGE_BYTES)
}

/// What a thread does in a piece.
#[derive(Debug, Clone, Copy)]
struct Work {
    /// Of each of the two buffers.
    buffer_bytes: usize,
    /// Of the part of them that a piece goes over; the next piece takes the next part.
    piece_bytes: usize,
    /// How often it goes over that.
    rounds: usize,
    pieces: usize,
}

impl Work {
    fn pieces_of(threads: usize) -> usize {
        if threads == 1 { PIECES_ALONE } else { PIECES_TOGETHER }
    }

    /// The same buffer over and over.
    fn hot(threads: usize, bytes: usize) -> Work {
        let pieces = Work::pieces_of(threads);
        let rounds = (HOT_TOTAL_BYTES / pieces / bytes).max(1);
        let pieces = REPETITIONS * pieces;
        Work { buffer_bytes: bytes, piece_bytes: bytes, rounds, pieces }
    }

    /// One part of a large buffer after the other: when it is a part's turn again, the rest
    /// has been through the caches.
    fn cold(threads: usize, bytes: usize) -> Work {
        let parts = Work::pieces_of(threads);
        let piece_bytes = (bytes / parts).max(1);
        Work { buffer_bytes: bytes, piece_bytes, rounds: 1, pieces: REPETITIONS * parts }
    }

    fn part(&self, piece: usize) -> Range<usize> {
        let parts = self.buffer_bytes / self.piece_bytes;
        let begin = piece % parts * self.piece_bytes;
        begin..begin + self.piece_bytes
    }
}

/// Times of the pieces on one thread, copying and reading.
type Spans = [Vec<(u64, u64)>; 2];

/// What `threads` threads together copy between buffers, and read from one.
fn measured(cpus: &[u32], threads: usize, work: Work) -> [Best; 2] {
    let barrier = &Barrier::new(threads);
    let worker = |thread: usize| {
        // Unpinned is still a bound, only a looser one.
        let _ = affinity::pin_thread(cpus[thread % cpus.len()]);
        let bytes = work.buffer_bytes;
        let (mut source, mut destination) =
            (vec![1; bytes + PAGE_BYTES], vec![2; bytes + PAGE_BYTES]);
        let (source, destination) =
            (in_pages(&mut source, bytes), in_pages(&mut destination, bytes));
        let copied = spans(barrier, work.pieces, |piece| {
            for _ in 0..work.rounds {
                destination[work.part(piece)].copy_from_slice(black_box(&source[work.part(piece)]));
                black_box(&mut *destination);
            }
        });
        let read = spans(barrier, work.pieces, |piece| {
            for _ in 0..work.rounds {
                black_box(scan(&source[work.part(piece)]));
            }
        });
        [copied, read]
    };
    let worker = &worker;
    let all: Vec<Spans> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads).map(|t| scope.spawn(move || worker(t))).collect();
        spawned.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let total_bytes = (threads * work.rounds * work.piece_bytes) as f64;
    let rate = |what: usize, piece: usize| {
        let begin = all.iter().map(|spans| spans[what][piece].0).min().unwrap_or(0);
        let end = all.iter().map(|spans| spans[what][piece].1).max().unwrap_or(0);
        total_bytes / (end.saturating_sub(begin).max(1) as f64 / 1e9)
    };
    [0, 1].map(|what| Best::of((0..work.pieces).map(|piece| rate(what, piece)).collect()))
}

/// As many bytes from the first page on that begins in some memory. Where malloc puts two
/// buffers one behind the other, the second begins 16 bytes further into its page than the
/// first, which is where `rep movsb` of some processors is 30 times as slow as elsewhere.
fn in_pages(memory: &mut [u8], bytes: usize) -> &mut [u8] {
    let from = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    &mut memory[from..from + bytes]
}

/// When each piece of some work began and ended, all threads at once.
fn spans(barrier: &Barrier, pieces: usize, mut work: impl FnMut(usize)) -> Vec<(u64, u64)> {
    let once = |piece| {
        barrier.wait();
        let begin = clock::monotonic_ns();
        work(piece);
        (begin, clock::monotonic_ns())
    };
    (0..pieces).map(once).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_piece_counts_and_the_others_say_how_sure_it_is() {
        // Two of three pieces were interrupted: the best one is not, and says that it is alone.
        let found = Best::of(vec![2e9, 10e9, 5e9]);
        assert_eq!((found.bytes_per_s, found.spread), (10e9, 0.5));
        assert_eq!(Best::of(vec![4e9; 5]).spread, 0.0);
        assert_eq!(Best::of(Vec::new()), Best { bytes_per_s: 0.0, spread: 0.0 });
    }

    #[test]
    fn pieces_go_over_all_of_a_cold_buffer() {
        for threads in [1, 2] {
            let work = Work::cold(threads, COLD_BYTES);
            let ends: Vec<usize> = (0..work.pieces).map(|piece| work.part(piece).end).collect();
            assert_eq!(ends.iter().max(), Some(&COLD_BYTES));
            assert!(work.part(0) != work.part(1) && work.part(0) == work.part(work.pieces / 3));
        }
    }

    #[test]
    fn buffers_keep_within_the_memory_that_may_be_used() {
        for memory in [1 << 20, 64 << 20, 1 << 30] {
            for threads in [1, 2, 16] {
                assert!(most_bytes(threads, memory) <= memory, "{threads} threads, {memory}");
            }
        }
    }
}

//! Files as blocks: which blocks of a file a thread has, and in which order it
//! visits them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use iolens_harness::op::Span;
pub use iolens_model::file::Pattern;
use iolens_model::units::Nanos;
use iolens_sys::clock;
use iolens_sys::usage::{self, ProcessCpu};

/// The blocks of one thread: a range of a file. Only the last block of the file
/// may be shorter than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Bytes of a block; at least 1.
    pub block_bytes: u64,
    /// Where the first block begins, a multiple of the block size.
    pub start: u64,
    /// Where the last one ends.
    pub end: u64,
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where in the file it begins.
    pub offset: u64,
    /// How long it is, which is 1 byte at least.
    pub bytes: usize,
}

impl Part {
    /// Blocks of it.
    pub fn blocks(&self) -> u64 {
        (self.end - self.start).div_ceil(self.block_bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// The same blocks, so many bytes further on.
    #[must_use]
    pub fn moved(self, by: u64) -> Part {
        Part { start: self.start + by, end: self.end + by, ..self }
    }

    /// The first `bytes` of a file in as many parts as there are threads, whose
    /// numbers of blocks differ by one at most; fewer where blocks are few.
    pub fn split(bytes: u64, block_bytes: u64, threads: u32) -> Vec<Part> {
        let blocks = bytes.div_ceil(block_bytes);
        let threads = u64::from(threads).min(blocks);
        let first = |thread: u64| blocks / threads * thread + (blocks % threads).min(thread);
        let at = |thread: u64| (first(thread) * block_bytes).min(bytes);
        let part = |thread| Part { block_bytes, start: at(thread), end: at(thread + 1) };
        (0..threads).map(part).collect()
    }
}

/// An order of the blocks of a part, round and round.
pub(crate) trait Walk: Send {
    /// The next block.
    fn next(&mut self) -> Place;
}

/// One after the other.
#[derive(Debug, Clone)]
pub(crate) struct Sequential {
    part: Part,
    offset: u64,
}

impl Sequential {
    /// Of a part that is not empty.
    pub(crate) fn of(part: Part) -> Sequential {
        Sequential::at(part, 0)
    }

    /// The same from this one of its blocks on.
    pub(crate) fn at(part: Part, first: u64) -> Sequential {
        Sequential { part, offset: part.start + first * part.block_bytes }
    }
}

impl Walk for Sequential {
    #[inline]
    fn next(&mut self) -> Place {
        let place = place(&self.part, self.offset);
        let after = self.offset + self.part.block_bytes;
        self.offset = if after < self.part.end { after } else { self.part.start };
        place
    }
}

/// Each once, in an order that looks like chance: the numbers of a linear
/// congruential generator whose period is the next power of two, stirred by steps
/// that can be undone, those left out that no block has. No table: a large file
/// has more blocks of one byte than memory has room for.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    part: Part,
    blocks: u64,
    state: u64,
    mask: u64,
    increment: u64,
    shift: u32,
}

impl Random {
    /// Of a part that is not empty.
    pub(crate) fn of(part: Part, seed: u64) -> Random {
        let blocks = part.blocks();
        let mask = blocks.next_power_of_two() - 1;
        // SplitMix64, so that seeds that differ little do not look alike.
        let stirred = stir(seed);
        Random {
            part,
            blocks,
            state: stirred & mask,
            mask,
            increment: stir(stirred) | 1,
            // Half of the bits of a number: what is above comes down.
            shift: (u64::BITS - mask.leading_zeros()).div_ceil(2).max(1),
        }
    }
}

impl Walk for Random {
    #[inline]
    fn next(&mut self) -> Place {
        loop {
            // The period is that of the mask: the multiplier is 1 modulo 4 and the
            // increment odd (Hull and Dobell 1962).
            self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d);
            self.state = self.state.wrapping_add(self.increment) & self.mask;
            let mut number = self.state;
            for factor in [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03u64] {
                number = number.wrapping_mul(factor) & self.mask;
                number ^= number >> self.shift;
            }
            // One in two at least.
            if number < self.blocks {
                return place(&self.part, self.part.start + number * self.part.block_bytes);
            }
        }
    }
}

/// One number from another, as SplitMix64 does.
pub fn stir(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The block at an offset.
#[inline]
fn place(part: &Part, offset: u64) -> Place {
    let bytes = part.block_bytes.min(part.end - offset);
    Place { offset, bytes: usize::try_from(bytes).unwrap_or(usize::MAX) }
}

// Threads that share a file, a part each, and begin together.

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Together<T> {
    /// Of each part, in order.
    pub(crate) each: Vec<T>,
    /// CPU time of the process, user and kernel, from when all had opened until the last had
    /// worked; `None` where it cannot be read.
    pub(crate) cpu: Option<(Nanos, Nanos)>,
}

/// Has each part worked on by a thread of its own, which opens what it needs there,
/// waits until all have, and then works; one alone is worked on by this thread.
///
/// Errors: why a thread could not open; then none has begun.
pub(crate) fn together<O, T: Send>(
    parts: &[Part],
    open: impl Fn(Part) -> Result<O, String> + Sync,
    work: impl Fn(&mut O, Part) -> T + Sync,
) -> Result<Together<T>, String> {
    let (start, is_refused) = (Barrier::new(parts.len()), AtomicBool::new(false));
    let (busy, cpu) = (AtomicUsize::new(parts.len()), Mutex::new([usage::process_cpu().ok(); 2]));
    let read_cpu = |end: usize| {
        cpu.lock().unwrap_or_else(PoisonError::into_inner)[end] = usage::process_cpu().ok();
    };
    let take_part = |part: Part| {
        let opened = open(part);
        if opened.is_err() {
            // The barrier orders this before the reading below.
            is_refused.store(true, Ordering::Relaxed);
        }
        if start.wait().is_leader() {
            read_cpu(0);
        }
        start.wait();
        let mut opened = opened?;
        let done = (!is_refused.load(Ordering::Relaxed)).then(|| work(&mut opened, part));
        if busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            read_cpu(1);
        }
        Ok(done)
    };
    let done: Vec<Result<Option<T>, String>> = match parts {
        [] => Vec::new(),
        [part] => vec![take_part(*part)],
        parts => std::thread::scope(|scope| {
            let take_part = &take_part;
            let threads: Vec<_> =
                parts.iter().map(|&part| scope.spawn(move || take_part(part))).collect();
            let died = |_| Err("a thread has panicked".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect()
        }),
    };
    let done: Result<Vec<Option<T>>, String> = done.into_iter().collect();
    let each = done?.into_iter().flatten().collect();
    let [before, after] = cpu.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Together { each, cpu: before.zip(after).map(|(before, after)| spent(before, after)) })
}

/// CPU time between two readings, user and kernel.
pub(crate) fn spent(before: ProcessCpu, after: ProcessCpu) -> (Nanos, Nanos) {
    let user_ns = after.user_ns.saturating_sub(before.user_ns);
    (Nanos(user_ns), Nanos(after.system_ns.saturating_sub(before.system_ns)))
}

/// Runs what takes its own time; where it breaks off, from its beginning to then.
pub(crate) fn timed<E>(run: impl FnOnce() -> Result<Span, E>) -> (Span, Option<E>) {
    let first_call_ns = clock::monotonic_ns();
    match run() {
        Ok(span) => (span, None),
        Err(why) => (Span { first_call_ns, last_call_ns: clock::monotonic_ns() }, Some(why)),
    }
}

/// From the first call of the first thread to the last one of the last.
pub(crate) fn duration(spans: impl Iterator<Item = Span> + Clone) -> Nanos {
    let first_ns = spans.clone().map(|span| span.first_call_ns).min().unwrap_or(0);
    let last_ns = spans.map(|span| span.last_call_ns).max().unwrap_or(0);
    Nanos(last_ns.saturating_sub(first_ns))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn visits(walk: &mut impl Walk, part: &Part) -> Vec<Place> {
        (0..part.blocks()).map(|_| walk.next()).collect()
    }

    proptest! {
        #[test]
        fn parts_are_the_file_once(bytes in 0u64..100_000, block in 1u64..5000, n in 1u32..20) {
            let parts = Part::split(bytes, block, n);
            prop_assert_eq!(parts.iter().map(Part::bytes).sum::<u64>(), bytes);
            prop_assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(parts.iter().all(|part| part.start % block == 0 && part.blocks() > 0));
            prop_assert_eq!(parts.is_empty(), bytes == 0);
            let blocks: Vec<u64> = parts.iter().map(Part::blocks).collect();
            let spread = blocks.iter().max().zip(blocks.iter().min()).map_or(0, |(a, b)| a - b);
            prop_assert!(spread <= 1, "{blocks:?}");
        }

        #[test]
        fn every_order_visits_each_block_once_and_again(
            blocks in 1u64..3000, tail in 0u64..7, first in 0u64..50, seed in any::<u64>(),
        ) {
            let (block_bytes, start) = (7, first * 7);
            let part = Part { block_bytes, start, end: start + blocks * 7 - tail };
            let mut sequential = Sequential::of(part);
            let in_order = visits(&mut sequential, &part);
            let expect = (0..blocks).map(|n| start + n * 7);
            prop_assert!(in_order.iter().map(|place| place.offset).eq(expect));
            prop_assert_eq!(in_order.iter().map(|p| p.bytes as u64).sum::<u64>(), part.bytes());
            prop_assert_eq!(visits(&mut sequential, &part), in_order.clone());
            let mut random = Random::of(part, seed);
            for _ in 0..2 {
                let mut visited = visits(&mut random, &part);
                visited.sort_by_key(|place| place.offset);
                prop_assert_eq!(&visited, &in_order);
            }
        }
    }

    #[test]
    fn chance_leaves_few_neighbours_together() {
        for blocks in [1000, 1024, 1 << 16] {
            let part = Part { block_bytes: 1, start: 0, end: blocks };
            let order = visits(&mut Random::of(part, 1), &part);
            let neighbours = order.windows(2).filter(|p| p[1].offset.abs_diff(p[0].offset) < 3);
            // Four of them are expected on average, for any number of blocks.
            assert!(neighbours.count() < 16, "{blocks}");
            let rising = order.windows(2).filter(|p| p[1].offset > p[0].offset).count() as u64;
            assert!(rising.abs_diff(blocks / 2) < blocks / 10, "{rising} of {blocks}");
            let other = visits(&mut Random::of(part, 2), &part);
            assert_ne!(order, other);
        }
    }

    #[test]
    fn all_begin_or_none() {
        let parts = Part::split(100, 10, 4);
        let worked = together(&parts, |part| Ok(part.start), |start, part| (*start, part.end));
        assert_eq!(worked.unwrap().each, [(0, 30), (30, 60), (60, 80), (80, 100)]);
        let begun = AtomicBool::new(false);
        let open = |part: Part| if part.start == 60 { Err("no".to_owned()) } else { Ok(()) };
        let refused = together(&parts, open, |_, _| begun.store(true, Ordering::Relaxed));
        assert_eq!(refused, Err("no".to_owned()));
        assert!(!begun.load(Ordering::Relaxed));
        let of_nothing = Together { each: Vec::new(), cpu: Some((Nanos(0), Nanos(0))) };
        assert_eq!(together(&[], |_| Ok(()), |_, _| ()), Ok(of_nothing));
    }

    #[test]
    fn opening_is_in_nobodys_cpu_time() {
        const OPENING_NS: u64 = 100_000_000;
        let spend = |_: Part| {
            let begin_ns = clock::thread_cpu_ns();
            while clock::thread_cpu_ns() < begin_ns + OPENING_NS {}
            Ok(())
        };
        let opened = together(&Part::split(100, 10, 2), spend, |_, _| ()).unwrap();
        let (user, system) = opened.cpu.unwrap();
        // Other tests of this process work meanwhile.
        assert!(user.0 + system.0 < OPENING_NS, "{user:?} and {system:?}");
    }

    #[test]
    fn what_broke_off_took_its_time_too() {
        let span = Span { first_call_ns: 5, last_call_ns: 9 };
        assert_eq!(timed(|| Ok::<_, ()>(span)), (span, None));
        let (cut_short, why) = timed(|| Err("why"));
        assert!(cut_short.last_call_ns >= cut_short.first_call_ns && why == Some("why"));
        let other = Span { first_call_ns: 3, last_call_ns: 8 };
        assert_eq!(duration([span, other].into_iter()), Nanos(6));
        assert_eq!(duration([].into_iter()), Nanos(0));
    }
}

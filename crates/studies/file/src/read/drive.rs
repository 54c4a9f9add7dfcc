//! The loop that reads. Dispatch is erased once per slice, at [`Reader::run`];
//! inside, `drive` is compiled for its engine, its consumer and its order of
//! blocks, and allocates, locks and logs nothing.

use iolens_sys::clock;
use iolens_sys::errno::Errno;
use serde::{Deserialize, Serialize};

use super::consume::{Consume, Consumer, Digest, HashAndXor, Nothing, Scan};
use crate::checksum::{Checksum, Xor};
use crate::part::{Part, Pattern, Place, Random, Sequential, Walk};
use crate::subject::Subject;
use iolens_harness::op::{Budget, Fact, Span};

/// What one thread's reading is made from.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The file.
    pub subject: &'a Subject,
    /// The thread's blocks; at least one.
    pub part: Part,
    /// Their order.
    pub pattern: Pattern,
    /// Block of the part with which a sequential order begins, from 0.
    pub first: u64,
    /// What a random order follows from.
    pub seed: u64,
    /// Reads under way at once, for an engine that can have several.
    pub depth: u32,
    /// What becomes of the bytes.
    pub consumer: Consumer,
}

impl Setup<'_> {
    /// Blocks up to the end of the part, from where its order begins: that of a random one has
    /// no place.
    pub(crate) fn blocks_to_end(&self) -> u64 {
        match self.pattern {
            Pattern::Sequential => self.part.blocks() - self.first,
            Pattern::Random => self.part.blocks(),
        }
    }
}

/// What a thread has read since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Blocks read whole.
    pub blocks: u64,
    /// Bytes read.
    pub bytes: u64,
    /// System calls that read, or tried to; those that move the position, and that
    /// map and unmap, among them.
    pub calls: u64,
    /// Of them, those that only move the position (lseek(2)).
    pub seeks: u64,
    /// Reads that brought less than was asked for; the last read of a file that has
    /// no whole block left asks for no more than there is.
    pub short_reads: u64,
    /// Calls that a signal ended before anything was read (`EINTR`).
    pub interrupted: u64,
    /// Reads that would have had to wait (`EAGAIN`), and were made again so that
    /// they may.
    pub would_block: u64,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
            calls: self.calls + other.calls,
            seeks: self.seeks + other.seeks,
            short_reads: self.short_reads + other.short_reads,
            interrupted: self.interrupted + other.interrupted,
            would_block: self.would_block + other.would_block,
        }
    }
}

/// One thread's reading: erased, one virtual call per slice. To be used on the
/// thread that opened it.
pub trait Reader: Send {
    /// Reads as many blocks as the budget has messages, round and round.
    ///
    /// Errors: the first call that failed for good; `ENODATA` where the file ends
    /// that was longer when it was opened. The tally has what came before it.
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno>;

    /// Waits until nothing of the kernel's goes on for it, between slices; whether there is
    /// anything that could.
    ///
    /// Errors: `ETIMEDOUT` when something still does.
    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }

    /// What was read so far.
    fn tally(&self) -> Tally;

    /// What the consumer made of it.
    fn digest(&self) -> Digest;

    /// What was found or arranged when it was opened and a reader of its numbers
    /// should know.
    fn facts(&self) -> Vec<Fact>;
}

/// Where blocks go: what is made of them, and what is counted.
#[derive(Debug, Default)]
pub(crate) struct Sink<C> {
    pub(crate) consumer: C,
    pub(crate) tally: Tally,
}

impl<C: Consume> Sink<C> {
    /// Takes a block that is whole.
    #[inline(always)]
    pub(crate) fn take(&mut self, offset: u64, bytes: &[u8]) {
        self.tally.blocks += 1;
        self.take_piece(offset, bytes);
    }

    /// Takes what there is of a block whose rest does not come.
    #[inline(always)]
    pub(crate) fn take_piece(&mut self, offset: u64, bytes: &[u8]) {
        self.tally.bytes += bytes.len() as u64;
        self.consumer.take(offset, bytes);
    }
}

/// One block with one engine; what the engines in `files::ways` implement. What is one call
/// is inlined into the loop whatever its size: a call more would be a percent of the
/// cheapest read.
pub(crate) trait Fetch: Send {
    /// Reads a block whole and puts it into the sink; or begins to, and does so later.
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno>;

    /// Waits for what was begun, and gives back what is held of the file.
    #[inline]
    fn finish<C: Consume>(&mut self, _sink: &mut Sink<C>) -> Result<(), Errno> {
        Ok(())
    }

    /// As [`Reader::facts`].
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    /// As [`Reader::idle`].
    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }
}

/// An engine with all that its loop is compiled for.
struct Reading<F, C, W> {
    fetch: F,
    walk: W,
    sink: Sink<C>,
}

impl<F: Fetch, C: Consume, W: Walk> Reader for Reading<F, C, W> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        drive(self, budget)
    }

    fn tally(&self) -> Tally {
        self.sink.tally
    }

    fn digest(&self) -> Digest {
        self.sink.consumer.digest()
    }

    fn facts(&self) -> Vec<Fact> {
        self.fetch.facts()
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        self.fetch.idle()
    }
}

/// Two timestamps, and between them nothing but blocks.
#[inline(never)]
fn drive<F: Fetch, C: Consume, W: Walk>(
    reading: &mut Reading<F, C, W>,
    budget: &Budget,
) -> Result<Span, Errno> {
    let Reading { fetch, walk, sink } = reading;
    let first_call_ns = clock::monotonic_ns();
    budget.begin(first_call_ns);
    while let Some(blocks) = budget.take() {
        for _ in 0..blocks {
            fetch.fetch(walk.next(), sink)?;
        }
    }
    fetch.finish(sink)?;
    Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
}

/// Puts an engine together with the consumer and the order that are asked for.
pub(crate) fn assemble<'a, F: Fetch + 'a>(setup: &Setup<'_>, fetch: F) -> Box<dyn Reader + 'a> {
    match setup.consumer {
        Consumer::None => with_walk(setup, fetch, Nothing),
        Consumer::Scan => with_walk(setup, fetch, Scan),
        Consumer::Hash => with_walk(setup, fetch, Checksum::new()),
        Consumer::Xor => with_walk(setup, fetch, Xor::default()),
        Consumer::HashAndXor => with_walk(setup, fetch, HashAndXor::default()),
    }
}

fn with_walk<'a, F: Fetch + 'a, C: Consume + 'a>(
    setup: &Setup<'_>,
    fetch: F,
    consumer: C,
) -> Box<dyn Reader + 'a> {
    let sink = Sink { consumer, tally: Tally::default() };
    match setup.pattern {
        Pattern::Sequential => {
            Box::new(Reading { fetch, walk: Sequential::at(setup.part, setup.first), sink })
        }
        Pattern::Random => {
            Box::new(Reading { fetch, walk: Random::of(setup.part, setup.seed), sink })
        }
    }
}

/// Reads a block with calls that each bring some of it: one, unless something cuts
/// it short. Calls ask for `asked` bytes, which may be more than the block has.
#[inline(always)]
pub(crate) fn fill<C: Consume>(
    asked: usize,
    buffer: &mut [u8],
    place: Place,
    sink: &mut Sink<C>,
    mut call: impl FnMut(&mut [u8], u64, &mut Tally) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let buffer = &mut buffer[..asked];
    let first = call(buffer, place.offset, &mut sink.tally);
    sink.tally.calls += 1;
    if !first.is_ok_and(|n| n >= place.bytes) {
        let mut filled = 0;
        let end = fill_slowly(first, buffer, place, &mut sink.tally, &mut call, &mut filled);
        if let Err(errno) = end {
            sink.take_piece(place.offset, &buffer[..filled]);
            return Err(errno);
        }
    }
    sink.take(place.offset, &buffer[..place.bytes]);
    Ok(())
}

/// What comes after a first call that did not bring the whole block.
#[cold]
fn fill_slowly(
    first: Result<usize, Errno>,
    buffer: &mut [u8],
    place: Place,
    tally: &mut Tally,
    call: &mut impl FnMut(&mut [u8], u64, &mut Tally) -> Result<usize, Errno>,
    filled: &mut usize,
) -> Result<(), Errno> {
    let mut result = first;
    loop {
        match result {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(n) => {
                *filled = (*filled + n).min(place.bytes);
                if *filled == place.bytes {
                    return Ok(());
                }
                tally.short_reads += 1;
            }
            Err(Errno::EINTR) => tally.interrupted += 1,
            Err(errno) => return Err(errno),
        }
        result = call(&mut buffer[*filled..], place.offset + *filled as u64, tally);
        tally.calls += 1;
    }
}

//! Writing in the slices of a trial: one thread's way through its part of a file.
//! Dispatch is erased once per slice, at [`Sender::run`]; inside, the loop is compiled
//! for its engine and its order of blocks, and allocates, locks and logs nothing.
//!
//! What is written can be told from what was there: each slice has a content of its
//! own, made before its clock runs, of which the first eight bytes of a block follow
//! from its place. Storing these is part of the loop, the same for every engine.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use iolens_model::file::{Destination, FileCounts, Pattern};
use iolens_model::units::Bytes;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::at::pread;
use iolens_sys::file::create::{self, How};

use crate::moved::{Broken, Moved};
use crate::part::{Part, Place, Random, Sequential, Walk};
use crate::test_file::fill;
use crate::ways::memory;
use iolens_harness::op::{Budget, Fact, Sender, Span, Tally};

/// What one thread's writing is made from.
#[derive(Debug, Clone, Copy)]
pub struct LaneSetup<'a> {
    /// The file, open for reading and writing.
    pub file: BorrowedFd<'a>,
    /// How the engine has it opened.
    pub how: How,
    /// The thread's blocks; at least one, all of them whole.
    pub part: Part,
    /// Their order.
    pub pattern: Pattern,
    /// What the order and the content follow from.
    pub seed: u64,
    /// Writes under way at once, for an engine that can have several.
    pub depth: u32,
    /// What is there already: a slice begins anew where nothing is.
    pub destination: Destination,
    /// Where the blocks that were written end: the largest of all threads.
    pub reached: &'a AtomicU64,
}

impl LaneSetup<'_> {
    /// Bytes of a block.
    ///
    /// Errors: they are more than memory can have.
    pub(crate) fn block(&self) -> Result<usize, String> {
        let bytes = self.part.block_bytes;
        usize::try_from(bytes)
            .map_err(|_| format!("blocks of {} are too large for memory", Bytes(bytes)))
    }
}

/// The content of one slice of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    seed: u64,
}

/// Bytes at the beginning of a block that follow from its place.
const MARK_BYTES: usize = 8;

impl Stamp {
    /// The content of a block without its mark.
    pub(crate) fn base(&self, block: &mut [u8]) {
        fill(self.seed, 0, block);
    }

    /// Marks the block that belongs at an offset.
    #[inline(always)]
    pub(crate) fn mark(&self, offset: u64, block: &mut [u8]) {
        let mark = self.at(offset);
        match block.first_chunk_mut::<MARK_BYTES>() {
            Some(begin) => *begin = mark,
            None => block.copy_from_slice(&mark[MARK_BYTES - block.len()..]),
        }
    }

    /// The mark of a block, for memory that is no slice.
    #[inline(always)]
    pub(crate) fn of(&self, place: Place) -> Mark {
        Mark { mark: self.at(place.offset), bytes: place.bytes.min(MARK_BYTES) }
    }

    /// The mark of a place: its high bits differ between neighbours, so that a block
    /// of one byte has a mark too.
    #[inline(always)]
    fn at(&self, offset: u64) -> [u8; MARK_BYTES] {
        // Odd, and without a pattern: 2^64 over the golden ratio.
        let mixed = (offset.wrapping_add(self.seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.to_le_bytes()
    }
}

/// The first bytes of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    mark: [u8; MARK_BYTES],
    bytes: usize,
}

impl Mark {
    /// They.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.mark[MARK_BYTES - self.bytes..]
    }
}

/// One block with one engine.
pub(crate) trait Put: Send {
    /// Makes the content of the next slice.
    fn prepare(&mut self, stamp: &Stamp);

    /// Writes a block whole; or begins to, and ends it later.
    fn put(
        &mut self,
        file: &OwnedFd,
        place: Place,
        stamp: &Stamp,
        moved: &mut Moved,
    ) -> Result<(), Broken>;

    /// Waits for what was begun, and gives back what is held of the file.
    #[inline]
    fn finish(&mut self, _file: &OwnedFd, _moved: &mut Moved) -> Result<(), Broken> {
        Ok(())
    }

    /// As [`Sender::facts`].
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}

/// An engine with all that its loop is compiled for.
struct Writing<'a, P, W> {
    /// Goes before the file: it may have requests about it.
    put: P,
    /// Of the engine's own, with its flags.
    file: OwnedFd,
    /// As it was before the first block.
    fresh: W,
    /// As it was before the last slice.
    before: W,
    walk: W,
    /// Blocks before the last slice.
    blocks_before: u64,
    stamp: Stamp,
    moved: Moved,
    setup: LaneSetup<'a>,
}

/// Puts an engine together with the order that is asked for; the file is opened again.
pub(crate) fn assemble<'a, P: Put + 'a>(
    setup: LaneSetup<'a>,
    put: P,
) -> Result<Box<dyn Sender + 'a>, String> {
    let file = create::reopen(setup.file, setup.how)
        .map_err(|errno| format!("cannot open the file again to write to it: {errno}"))?;
    let file = OwnedFd::from(file);
    Ok(match setup.pattern {
        Pattern::Sequential => with_walk(setup, file, put, Sequential::of(setup.part)),
        Pattern::Random => with_walk(setup, file, put, Random::of(setup.part, setup.seed)),
    })
}

fn with_walk<'a, P: Put + 'a, W: Walk + Clone + 'a>(
    setup: LaneSetup<'a>,
    file: OwnedFd,
    put: P,
    walk: W,
) -> Box<dyn Sender + 'a> {
    Box::new(Writing {
        file,
        put,
        fresh: walk.clone(),
        before: walk.clone(),
        walk,
        blocks_before: 0,
        stamp: Stamp { seed: setup.seed },
        moved: Moved::default(),
        setup,
    })
}

impl<P: Put, W: Walk + Clone> Sender for Writing<'_, P, W> {
    /// Makes the content of the next slice, which is so in the cache.
    fn touch(&mut self) {
        if self.setup.destination == Destination::New {
            self.walk = self.fresh.clone();
        }
        self.before = self.walk.clone();
        self.blocks_before = self.moved.blocks;
        // Odd steps reach every number: no slice has the content of another.
        self.stamp.seed = self.stamp.seed.wrapping_add(0xd1b5_4a32_d192_ed03);
        self.put.prepare(&self.stamp);
    }

    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let span = drive(self, budget).map_err(|broken| broken.errno);
        self.tell_reached();
        span
    }

    fn tally(&self) -> Tally {
        let Moved { blocks, bytes, calls, short_calls } = self.moved;
        let file = FileCounts { short_reads: short_calls, ..FileCounts::default() };
        Tally { messages: blocks, bytes, calls, file: Some(file), ..Tally::default() }
    }

    /// Reads what the last slice wrote, and compares it with what it should be.
    fn check(&self) -> Result<(), String> {
        let file = create::reopen(self.setup.file, How::READS)
            .map_err(|errno| format!("cannot open the file again to check it: {errno}"))?;
        let block = self.setup.block()?;
        let (mut expect, mut found) = (memory(block as u64)?, memory(block as u64)?);
        let (expect, found) = (&mut expect[..block], &mut found[..block]);
        self.stamp.base(expect);
        let mut walk = self.before.clone();
        for _ in self.blocks_before..self.moved.blocks {
            let offset = walk.next().offset;
            self.stamp.mark(offset, expect);
            read_block(&file, offset, found)?;
            if expect != found {
                return Err(format!(
                    "the block of {} at offset {offset} of the file is not what was written there",
                    Bytes(block as u64)
                ));
            }
        }
        Ok(())
    }

    fn facts(&self) -> Vec<Fact> {
        self.put.facts()
    }
}

impl<P, W: Walk + Clone> Writing<'_, P, W> {
    /// Says where the blocks of the last slice end. In order, the last of them does,
    /// and of a round that was gone through the part; by chance, any.
    fn tell_reached(&self) {
        let part = self.setup.part;
        let blocks = self.moved.blocks - self.blocks_before;
        let end = match (self.setup.pattern, self.setup.destination) {
            (Pattern::Sequential, Destination::New) => {
                (part.start + blocks.saturating_mul(part.block_bytes)).min(part.end)
            }
            (Pattern::Random, Destination::New) => {
                let mut walk = self.before.clone();
                let ends = (0..blocks).map(|_| walk.next()).map(|p| p.offset + p.bytes as u64);
                ends.max().unwrap_or(0)
            }
            // It is as long as ever.
            (_, Destination::Existing) => return,
        };
        if blocks > 0 {
            // Who reads it has met this thread at the gate since.
            self.setup.reached.fetch_max(end, Ordering::Relaxed);
        }
    }
}

/// Two timestamps, and between them nothing but blocks.
#[inline(never)]
fn drive<P: Put, W: Walk>(
    writing: &mut Writing<'_, P, W>,
    budget: &Budget,
) -> Result<Span, Broken> {
    let Writing { file, put, walk, stamp, moved, .. } = writing;
    let first_call_ns = clock::monotonic_ns();
    budget.begin(first_call_ns);
    while let Some(blocks) = budget.take() {
        for _ in 0..blocks {
            put.put(file, walk.next(), stamp, moved)?;
        }
    }
    put.finish(file, moved)?;
    Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
}

/// Reads a block whole.
fn read_block(file: &File, offset: u64, into: &mut [u8]) -> Result<(), String> {
    let mut done = 0;
    while done < into.len() {
        match pread(file.as_fd(), &mut into[done..], offset + done as u64) {
            Ok(0) => return Err(format!("the file ends at {}", offset + done as u64)),
            Ok(n) => done += n,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("cannot read what was written: {errno}")),
        }
    }
    Ok(())
}

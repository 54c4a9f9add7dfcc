//! Reading a mapped file: what the engines that map share. The range of a thread is
//! mapped with the first block of a slice, or of a round, and unmapped with the last,
//! both within the clock, because that is where mappings cost. Between slices nothing
//! is mapped: the kernel evicts no page that is.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use iolens_sys::errno::Errno;
use iolens_sys::file::mapping::Mapping;
use iolens_sys::file::open::Caching;
use iolens_sys::pages::PAGE_BYTES;

use super::consume::Consume;
use super::drive::{Fetch, Reader, Setup, Sink, Tally, assemble};
use crate::files::part::{Part, Pattern, Place};

/// How much is mapped at once where blocks are read in order.
const POPULATE_BYTES: usize = 2 << 20;

/// Whether pages are mapped by the faults of who reads them, or before.
pub(crate) trait Faults: Send {
    /// Whether before, with a call (`MADV_POPULATE_READ`).
    const POPULATES: bool;
}

/// By faults.
pub(crate) struct WhenTouched;

impl Faults for WhenTouched {
    const POPULATES: bool = false;
}

/// By calls.
pub(crate) struct Before;

impl Faults for Before {
    const POPULATES: bool = true;
}

struct Mapped<P> {
    file: OwnedFd,
    part: Part,
    mapping: Option<Mapping>,
    /// Where in the file the mapping begins: the page that the range begins in.
    base: u64,
    /// Blocks that are left up to the end of the part.
    left: u64,
    /// Up to where the mapping is populated, for who reads in order.
    populated: usize,
    in_order: bool,
    faults: std::marker::PhantomData<P>,
}

/// Makes one thread's reading.
pub(crate) fn open<P: Faults + 'static>(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    let mapped = Mapped::<P> {
        file,
        part: setup.part,
        mapping: None,
        base: setup.part.start / PAGE_BYTES as u64 * PAGE_BYTES as u64,
        left: setup.blocks_to_end(),
        populated: 0,
        in_order: setup.pattern == Pattern::Sequential,
        faults: std::marker::PhantomData,
    };
    // What cannot be mapped is found out before the clock runs.
    mapped.map().map_err(|errno| {
        format!(
            "cannot map {} ({} bytes, on {}): {errno}",
            setup.subject.name(),
            setup.part.bytes(),
            setup.subject.file_system()
        )
    })?;
    Ok(assemble(&setup, mapped))
}

impl<P: Faults> Mapped<P> {
    fn map(&self) -> Result<Mapping, Errno> {
        let bytes = usize::try_from(self.part.end - self.base).map_err(|_| Errno::ENOMEM)?;
        Mapping::of_file(self.file.as_fd(), self.base, bytes)
    }

    #[cold]
    fn begin(&mut self, tally: &mut Tally) -> Result<(), Errno> {
        self.mapping = Some(self.map()?);
        tally.calls += 1;
        self.populated = 0;
        Ok(())
    }

    /// Unmaps.
    #[cold]
    fn end(&mut self, tally: &mut Tally) {
        tally.calls += u64::from(self.mapping.take().is_some());
    }

    /// Maps the pages of a block, and of those behind it that come next.
    #[inline]
    fn populate(&mut self, block: Range<usize>, tally: &mut Tally) -> Result<(), Errno> {
        let Some(mapping) = &self.mapping else { return Ok(()) };
        if !self.in_order {
            return populate(mapping, block, tally);
        }
        if block.end <= self.populated {
            return Ok(());
        }
        let start = self.populated.max(block.start);
        let end = block.end.max(start + POPULATE_BYTES).min(mapping.bytes());
        match populate(mapping, start..end, tally) {
            // Of what comes next, not all is there any more: the block may be.
            Err(Errno::ENODATA) if end > block.end => {
                self.populated = block.end;
                populate(mapping, block, tally)
            }
            other => {
                self.populated = end;
                other
            }
        }
    }
}

/// A place within a mapping, whose length is a usize.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "no more than the length of a mapping")]
const fn within(distance: u64) -> usize {
    distance as usize
}

/// Maps pages with one call, unless something cuts it short.
///
/// Errors: `ENODATA` for pages that the file has lost: what a touch would have
/// answered with SIGBUS.
#[inline]
fn populate(mapping: &Mapping, range: Range<usize>, tally: &mut Tally) -> Result<(), Errno> {
    loop {
        tally.calls += 1;
        match mapping.populate(range.clone()) {
            Err(Errno::EINTR) => tally.interrupted += 1,
            Err(Errno::EAGAIN) => tally.would_block += 1,
            Err(Errno::EFAULT) => return Err(Errno::ENODATA),
            other => return other,
        }
    }
}

impl<P: Faults> Fetch for Mapped<P> {
    #[inline]
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno> {
        if self.mapping.is_none() {
            self.begin(&mut sink.tally)?;
        }
        let from = within(place.offset - self.base);
        let range = from..from + place.bytes;
        if P::POPULATES {
            self.populate(range.clone(), &mut sink.tally)?;
        }
        if let Some(mapping) = &self.mapping {
            sink.consumer.take_mapped(place.offset, mapping, range);
        }
        sink.tally.blocks += 1;
        sink.tally.bytes += place.bytes as u64;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.part.blocks();
            self.end(&mut sink.tally);
        }
        Ok(())
    }

    #[inline]
    fn finish<C: Consume>(&mut self, sink: &mut Sink<C>) -> Result<(), Errno> {
        self.end(&mut sink.tally);
        Ok(())
    }
}

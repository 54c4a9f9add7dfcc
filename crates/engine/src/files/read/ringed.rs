//! Reading through a ring of io_uring: what the engines that do so share. A block is
//! asked for as soon as a slot is free, and looked at when it is there, in the order
//! in which blocks arrive.

use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::io_uring::{OpenError, ReadRing, ReadWishes};

use super::consume::Consume;
use super::direct;
use super::drive::{Fetch, Reader, Setup, Sink, assemble};
use crate::files::part::Place;
use crate::uring::patiently;
use crate::uring::refusal::setup_error;

/// What a ring is like.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kind {
    /// Whether its buffers are registered.
    pub(crate) registered: bool,
    /// Whether a thread of the kernel's takes its requests.
    pub(crate) poll_thread: bool,
    /// Whether it reads around the page cache.
    pub(crate) direct: bool,
}

struct Ringed {
    ring: ReadRing,
    /// What each slot is for, and how much of it is there.
    slots: Vec<(Place, usize)>,
    free: Vec<usize>,
    /// What lengths and offsets are multiples of; 1 but for direct reads.
    alignment: u32,
}

/// Makes one thread's reading.
pub(crate) fn open<'a>(setup: Setup<'a>, kind: Kind) -> Result<Box<dyn Reader + 'a>, String> {
    let (caching, alignment) = match kind.direct {
        true => (Caching::Direct, direct::offset_alignment(&setup)?),
        false => (Caching::Buffered, 1),
    };
    let file = setup.subject.reopen(caching)?;
    let wishes = ReadWishes {
        depth: setup.depth,
        buffer_bytes: usize::try_from(setup.part.block_bytes).unwrap_or(usize::MAX),
        registered: kind.registered,
        poll_thread: kind.poll_thread,
    };
    let again = || file.try_clone().map_err(|e| OpenError::Setup(e.into()));
    let ring = patiently(|| ReadRing::open(again()?, wishes))
        .map_err(|why| setup_error(why).to_string())?;
    let depth = ring.depth();
    let nothing = (Place { offset: 0, bytes: 0 }, 0);
    let (slots, free) = (vec![nothing; depth], (0..depth).rev().collect());
    Ok(assemble(&setup, Ringed { ring, slots, free, alignment }))
}

impl Ringed {
    /// Asks for what is missing of a slot's block.
    #[inline]
    fn ask(&mut self, slot: usize) -> Result<(), Errno> {
        let (place, filled) = self.slots[slot];
        let bytes = direct::rounded_up(place.bytes, self.alignment) - filled;
        self.ring.push(slot, filled, bytes, place.offset + filled as u64)
    }

    /// Hands over, waits until a block is there, and looks at all that are.
    #[inline]
    fn wait<C: Consume>(&mut self, sink: &mut Sink<C>) -> Result<(), Errno> {
        match self.ring.enter() {
            Ok(calls) => sink.tally.calls += u64::from(calls),
            Err(Errno::EINTR) => {
                sink.tally.calls += 1;
                sink.tally.interrupted += 1;
            }
            Err(errno) => return Err(errno),
        }
        let mut end = Ok(());
        while let Some((slot, result)) = self.ring.completed() {
            end = end.and(self.take(slot, result, sink));
        }
        if end.is_err() {
            self.drain(sink);
        }
        end
    }

    /// After a failure: what else is under way is waited for and counted.
    #[cold]
    fn drain<C: Consume>(&mut self, sink: &mut Sink<C>) {
        while self.ring.under_way() > 0 {
            match self.ring.enter() {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
            while let Some((slot, result)) = self.ring.completed() {
                // The first failure is the one that is told.
                let _ = self.take(slot, result, sink);
            }
        }
    }

    /// Takes what has come for a slot.
    #[inline]
    fn take<C: Consume>(
        &mut self,
        slot: usize,
        result: Result<usize, Errno>,
        sink: &mut Sink<C>,
    ) -> Result<(), Errno> {
        let (place, filled) = self.slots[slot];
        // A direct read may bring bytes that the file got after it was opened.
        let now = result.map(|n| (filled + n).min(place.bytes));
        match now {
            Ok(now) if now == place.bytes => {
                sink.take(place.offset, self.ring.bytes(slot, place.bytes));
                self.free.push(slot);
                Ok(())
            }
            // The end of the file, which is where an unaligned direct read ends.
            Ok(now) if now == filled || !now.is_multiple_of(self.alignment as usize) => {
                sink.take_piece(place.offset, self.ring.bytes(slot, now));
                Err(Errno::ENODATA)
            }
            Ok(now) => {
                sink.tally.short_reads += 1;
                self.slots[slot].1 = now;
                self.ask(slot)
            }
            Err(errno @ (Errno::EINTR | Errno::EAGAIN)) => {
                sink.tally.interrupted += u64::from(errno == Errno::EINTR);
                sink.tally.would_block += u64::from(errno == Errno::EAGAIN);
                self.ask(slot)
            }
            Err(errno) => Err(errno),
        }
    }
}

impl Fetch for Ringed {
    #[inline]
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno> {
        let slot = loop {
            match self.free.pop() {
                Some(slot) => break slot,
                None => self.wait(sink)?,
            }
        };
        self.slots[slot] = (place, 0);
        self.ask(slot)
    }

    #[inline]
    fn finish<C: Consume>(&mut self, sink: &mut Sink<C>) -> Result<(), Errno> {
        while self.ring.under_way() > 0 {
            self.wait(sink)?;
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        self.ring.idle()
    }
}

//! Engines that read through a ring of io_uring, several blocks under way at once, and what
//! they share.

use iolens_model::host::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::io_uring::{OpenError, ReadRing, ReadWishes};

use super::direct::{offset_alignment, rounded_up};
use super::{COPIED_OUT, Entry, engine};
use crate::part::Place;
use crate::read::consume::Consume;
use crate::read::drive::{Fetch, Reader, Setup, Sink, assemble};
use crate::read::engine::{Open, Reads};
use iolens_harness::ring_refusal::patiently;
use iolens_harness::ring_refusal::setup_error;

/// An engine that reads with several reads under way.
const fn reads(id: &'static str, summary: &'static str, open: Open) -> Entry<Reads> {
    Entry {
        since: Some(KernelVersion::new(6, 1, 0)),
        has_depth: true,
        ..engine(Way::Ring, id, summary, COPIED_OUT, Reads { open })
    }
}

/// `uring`: `IORING_OP_READ`: several reads under way in each thread.
///
/// Path through the kernel: io_uring_enter(2) → `io_read`; what is in the page cache
/// is copied within that call, what is not arrives later.
/// Needs: io_uring with `IORING_SETUP_DEFER_TASKRUN`.
/// Compared with: `pread`, which has one read under way; `uring_fixed`.
/// Does not show: reads that the kernel gives to threads of its own (io-wq), but in
/// the CPU time, which has theirs.
pub(crate) static READ: Entry<Reads> = Entry {
    needs: "io_uring",
    ..reads("uring", "IORING_OP_READ, several under way", |setup| {
        open_reader(setup, Kind::default())
    })
};

/// `uring_fixed`: `IORING_OP_READ_FIXED` into buffers that were registered.
///
/// Path through the kernel: as `uring`, with buffers whose pages were looked up and
/// pinned once.
/// Needs: as `uring`, and memory that may be locked.
/// Compared with: `uring`.
/// Does not show: much on a warm file, where the pages of the buffer do not matter to
/// a copy.
pub(crate) static READ_FIXED: Entry<Reads> = Entry {
    needs: "io_uring, and memory that may be locked",
    locks_memory: true,
    ..reads(
        "uring_fixed",
        "IORING_OP_READ_FIXED into registered buffers, several under way",
        |setup| open_reader(setup, Kind { registered: true, ..Kind::default() }),
    )
};

/// `uring_direct`: `IORING_OP_READ_FIXED` of a file opened with `O_DIRECT`.
///
/// Path through the kernel: as `direct`, several reads under way, into buffers that
/// were pinned once.
/// Needs: what `direct` and `uring_fixed` need.
/// Compared with: `direct`, which waits for each read.
/// Does not show: polled completions (`IORING_SETUP_IOPOLL`), which need queues that
/// few devices have.
pub(crate) static READ_DIRECT: Entry<Reads> = Entry {
    needs: "io_uring, O_DIRECT of the file system, and blocks of whole sectors",
    path: "device → buffer: written by the device",
    way: Way::Direct,
    is_direct: true,
    locks_memory: true,
    ..reads("uring_direct", "IORING_OP_READ_FIXED with O_DIRECT, several under way", |setup| {
        open_reader(setup, Kind { registered: true, direct: true, ..Kind::default() })
    })
};

/// `uring_sqpoll`: `IORING_OP_READ`, handed over without a call (`IORING_SETUP_SQPOLL`).
///
/// Path through the kernel: a thread of the kernel's finds the requests in memory and
/// does the reading, the copy too.
/// Needs: io_uring, and a CPU that has nothing else to do.
/// Compared with: `uring`, which makes a call.
/// Does not show: the kernel's thread in the calls. Its time is in the CPU time of the
/// slice; it runs on any CPU, whatever taskset(1) says, and looks for more requests for
/// 1 ms before it sleeps, which is waited for before the next slice.
pub(crate) static READ_SQPOLL: Entry<Reads> = Entry {
    needs: "io_uring, and a CPU for the kernel's thread",
    since: Some(KernelVersion::new(5, 11, 0)),
    ..reads(
        "uring_sqpoll",
        "IORING_OP_READ, taken by a thread of the kernel's (SQPOLL) without a call",
        |setup| open_reader(setup, Kind { poll_thread: true, ..Kind::default() }),
    )
};

/// What a ring is like.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    /// Whether its buffers are registered.
    registered: bool,
    /// Whether a thread of the kernel's takes its requests.
    poll_thread: bool,
    /// Whether it reads around the page cache.
    direct: bool,
}

/// A block is asked for as soon as a slot is free, and looked at when it is there, in the
/// order in which blocks arrive.
struct RingReader {
    ring: ReadRing,
    /// What each slot is for, and how much of it is there.
    slots: Vec<(Place, usize)>,
    free: Vec<usize>,
    /// What lengths and offsets are multiples of; 1 but for direct reads.
    alignment: u32,
}

fn open_reader<'a>(setup: Setup<'a>, kind: Kind) -> Result<Box<dyn Reader + 'a>, String> {
    let (caching, alignment) = match kind.direct {
        true => (Caching::Direct, offset_alignment(&setup)?),
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
    Ok(assemble(&setup, RingReader { ring, slots, free, alignment }))
}

impl RingReader {
    /// Asks for what is missing of a slot's block.
    #[inline]
    fn ask(&mut self, slot: usize) -> Result<(), Errno> {
        let (place, filled) = self.slots[slot];
        let bytes = rounded_up(place.bytes, self.alignment) - filled;
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

impl Fetch for RingReader {
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

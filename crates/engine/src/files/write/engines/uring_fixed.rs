//! `uring_fixed`: each block from a registered buffer through a ring
//! (`IORING_OP_WRITE_FIXED`), several under way at once: by hand up to eight, in a study
//! as many as its depth says.
//!
//! Path through the kernel: io_uring_enter(2) → `io_write` → the file system's
//! `write_iter`. Where that would have to wait, the request goes to a kernel thread of
//! the process (`iou-wrk`), one after the other for one file; ext4 always does so for
//! what goes through the page cache.
//! Needs: io_uring with deferred task work (Linux 6.1); buffers count against
//! `RLIMIT_MEMLOCK` for who has not `CAP_IPC_LOCK`.
//! Compared with: `pwrite`, which waits for each block.
//! Does not show: a ring that never runs empty; it does at the end of each slice.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Ended, Request, TransferRing, Way};

use crate::files::moved::{Broken, Call, Moved};
use crate::files::part::Place;
use crate::files::ring::{DEPTH, drain};
use crate::files::write::engines::{Entry, Setup, Writer};
use crate::files::write::lane::{self, Lane, LaneSetup, Put, Stamp};
use crate::op::{Fact, Span};
use crate::uring::{patiently, refusal};

const CALL: Call = Call::destination("IORING_OP_WRITE_FIXED");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_fixed",
    summary: "blocks from registered buffers through a ring, several under way at once",
    needs: "io_uring with deferred task work, memory that may be locked",
    since: Some(KernelVersion::new(6, 1, 0)),
    path: "buffer → page cache: copied by the kernel, on a thread of its own where it has to wait",
    is_direct: false,
    ignores_dsync: None,
    has_depth: true,
    is_dsync: false,
    is_durable: false,
    needs_size: false,
    by_hand: None,
    open,
    lane,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Writer + '_>, String> {
    let slots = u32::try_from(DEPTH).expect("it is 8");
    let ring = patiently(|| TransferRing::open(slots, setup.slice_bytes()))
        .map_err(|why| refusal::setup_error(why).to_string())?;
    let block = setup.block_bytes;
    let pieces = [Piece::default(); DEPTH];
    Ok(Box::new(UringFixed {
        ring,
        file: setup.file,
        block,
        at: 0,
        pieces,
        moved: Moved::default(),
    }))
}

struct UringFixed<'a> {
    ring: TransferRing,
    file: BorrowedFd<'a>,
    block: usize,
    /// Where the next slice belongs.
    at: u64,
    /// What each slot writes.
    pieces: [Piece; DEPTH],
    moved: Moved,
}

/// What is left of a block, as a range of the memory.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    from: usize,
    end: usize,
}

impl UringFixed<'_> {
    /// Queues the rest of a slot's block.
    #[inline]
    fn queue(&mut self, slot: usize) -> Result<(), Errno> {
        let Piece { from, end } = self.pieces[slot];
        let offset = self.at + from as u64;
        let file = self.file;
        let request = Request { way: Way::Write, file, offset, from, bytes: end - from };
        self.ring.queue(slot, &request)
    }

    /// Takes what has ended: a block that is whole frees its slot, the rest of
    /// another is queued again.
    #[inline]
    fn reap(&mut self) -> Result<(), Broken> {
        while let Some(Ended { slot, result }) = self.ring.ended() {
            let Piece { from, end } = &mut self.pieces[slot];
            match result {
                Ok(0) => return Err(Broken { call: CALL, errno: Errno::EIO }),
                Ok(n) => {
                    self.moved.bytes += n as u64;
                    *from += n;
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(Broken { call: CALL, errno }),
            }
            if from == end {
                self.moved.blocks += 1;
            } else {
                self.moved.short_calls += 1;
                self.queue(slot).map_err(|errno| Broken { call: CALL, errno })?;
            }
        }
        Ok(())
    }

    /// Hands over what is queued and waits for something to end.
    #[inline]
    fn enter(&mut self) -> Result<(), Broken> {
        self.moved.calls += 1;
        match self.ring.submit() {
            Ok(()) | Err(Errno::EINTR) => self.reap(),
            Err(errno) => Err(Broken { call: Call::destination("io_uring_enter"), errno }),
        }
    }

    /// Writes a slice, with at most [`DEPTH`] of its blocks under way.
    fn slice(&mut self, bytes: usize) -> Result<(), Broken> {
        let mut from = 0;
        while from < bytes || self.ring.under_way() > 0 {
            for slot in 0..DEPTH {
                if from < bytes && !self.ring.is_busy(slot) {
                    let end = bytes.min(from + self.block);
                    self.pieces[slot] = Piece { from, end };
                    self.queue(slot).map_err(|errno| Broken { call: CALL, errno })?;
                    from = end;
                }
            }
            self.enter()?;
        }
        Ok(())
    }
}

impl Writer for UringFixed<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.ring.memory()
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let first_call_ns = clock::monotonic_ns();
        let done = self.slice(bytes);
        let last_call_ns = clock::monotonic_ns();
        if let Err(broken) = done {
            drain(&mut self.ring);
            return Err(broken);
        }
        self.at += bytes as u64;
        Ok(Span { first_call_ns, last_call_ns })
    }

    fn moved(&self) -> Moved {
        self.moved
    }

    fn facts(&self) -> Vec<Fact> {
        vec![("under way", format!("at most {DEPTH} blocks at once"))]
    }
}

/// One thread's writing in the slices of a trial.
fn lane<'a>(setup: LaneSetup<'a>) -> Result<Box<dyn Lane + 'a>, String> {
    let (block, depth) = (setup.block()?, setup.depth.max(1));
    let ring = patiently(|| TransferRing::open(depth, block.saturating_mul(depth as usize)))
        .map_err(|why| refusal::setup_error(why).to_string())?;
    let slots = vec![Rest::default(); depth as usize];
    lane::assemble(setup, Ringed { ring, block, slots })
}

/// The state of a thread that writes through a ring.
struct Ringed {
    ring: TransferRing,
    block: usize,
    slots: Vec<Rest>,
}

/// What is left of the block of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    offset: u64,
    from: usize,
    bytes: usize,
}

impl Ringed {
    #[inline]
    fn queue(&mut self, file: BorrowedFd<'_>, slot: usize) -> Result<(), Broken> {
        let Rest { offset, from, bytes } = self.slots[slot];
        let request = Request { way: Way::Write, file, offset, from, bytes };
        self.ring.queue(slot, &request).map_err(|errno| Broken { call: CALL, errno })
    }

    /// Hands over what is queued, waits for something to end, and takes what has.
    #[inline]
    fn enter(&mut self, file: BorrowedFd<'_>, moved: &mut Moved) -> Result<(), Broken> {
        moved.calls += 1;
        match self.ring.submit() {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(errno) => {
                return Err(Broken { call: Call::destination("io_uring_enter"), errno });
            }
        }
        while let Some(Ended { slot, result }) = self.ring.ended() {
            let rest = &mut self.slots[slot];
            match result {
                Ok(0) => return Err(Broken { call: CALL, errno: Errno::EIO }),
                Ok(n) => {
                    moved.bytes += n as u64;
                    rest.offset += n as u64;
                    rest.from += n;
                    rest.bytes -= n;
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(Broken { call: CALL, errno }),
            }
            if rest.bytes == 0 {
                moved.blocks += 1;
            } else {
                moved.short_calls += 1;
                self.queue(file, slot)?;
            }
        }
        Ok(())
    }

    /// A slot without a request, waited for if need be.
    #[inline]
    fn free(&mut self, file: BorrowedFd<'_>, moved: &mut Moved) -> Result<usize, Broken> {
        loop {
            if let Some(slot) = (0..self.slots.len()).find(|&slot| !self.ring.is_busy(slot)) {
                return Ok(slot);
            }
            self.enter(file, moved)?;
        }
    }

    fn begin(
        &mut self,
        file: BorrowedFd<'_>,
        place: Place,
        stamp: &Stamp,
        moved: &mut Moved,
    ) -> Result<(), Broken> {
        let slot = self.free(file, moved)?;
        let from = slot * self.block;
        let mark = stamp.of(place);
        self.ring.store(from, mark.bytes()).map_err(|errno| Broken { call: CALL, errno })?;
        self.slots[slot] = Rest { offset: place.offset, from, bytes: place.bytes };
        self.queue(file, slot)
    }

    fn end(&mut self, file: BorrowedFd<'_>, moved: &mut Moved) -> Result<(), Broken> {
        while self.ring.under_way() > 0 {
            self.enter(file, moved)?;
        }
        Ok(())
    }
}

impl Put for Ringed {
    fn prepare(&mut self, stamp: &Stamp) {
        let (block, bytes) = (self.block, self.block * self.slots.len());
        self.ring.memory()[..bytes].chunks_mut(block).for_each(|block| stamp.base(block));
    }

    #[inline(always)]
    fn put(
        &mut self,
        file: &OwnedFd,
        place: Place,
        stamp: &Stamp,
        moved: &mut Moved,
    ) -> Result<(), Broken> {
        self.begin(file.as_fd(), place, stamp, moved).inspect_err(|_| drain(&mut self.ring))
    }

    #[inline]
    fn finish(&mut self, file: &OwnedFd, moved: &mut Moved) -> Result<(), Broken> {
        self.end(file.as_fd(), moved).inspect_err(|_| drain(&mut self.ring))
    }

    fn facts(&self) -> Vec<Fact> {
        vec![("under way", format!("at most {} blocks at once", self.slots.len()))]
    }
}

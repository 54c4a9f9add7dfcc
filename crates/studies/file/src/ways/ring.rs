//! Engines that write and copy through a ring of io_uring, several blocks under way at once,
//! and what they share.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::host::KernelVersion;
use iolens_model::tune;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Ended, Request, TransferRing, Way};
use iolens_sys::{clock, process};

use super::{Entry, engine};
use crate::copy::drive::Copier;
use crate::copy::engine::{Copies, Setup as CopySetup};
use crate::moved::{Broken, Call, Moved};
use crate::part::{Place, Sequential, Walk};
use crate::write::engine::{Setup as WriterSetup, Writer, Writes};
use crate::write::lane::{self, LaneSetup, Put, Stamp};
use iolens_harness::op::{Budget, Fact, Sender, Span};
use iolens_harness::ring_refusal::patiently;
use iolens_harness::ring_refusal::setup_error;

/// Requests under way at once: enough that a device has several to work on, few
/// enough that their blocks stay in the processor's caches.
pub(crate) const DEPTH: usize = 8;

/// Most bytes of registered buffers, which are locked; `None` where nothing limits them.
/// Half of what a user without `CAP_IPC_LOCK` may lock: the ring itself, other threads and
/// the user's other processes need some too.
pub(crate) fn locked_bytes_max() -> Option<u64> {
    let limit = (!process::may_lock_any_memory()).then(process::memlock_limit_bytes)?;
    (limit != u64::MAX).then_some(limit / 2)
}

/// Memory for the blocks that are under way at once, whatever their number.
pub(crate) fn memory_bytes_max() -> usize {
    const MEMORY_BYTES_MAX: u64 = 64 << 20;
    let most = locked_bytes_max().map_or(MEMORY_BYTES_MAX, |most| most.min(MEMORY_BYTES_MAX));
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// A ring for requests about files, with memory for their blocks.
///
/// Errors: why there is none.
fn transfer_ring(slots: u32, bytes: usize) -> Result<TransferRing, String> {
    patiently(|| TransferRing::open(slots, bytes)).map_err(|why| setup_error(why).to_string())
}

/// How many blocks are under way, for a reader of the numbers.
fn under_way(slots: usize) -> Vec<Fact> {
    vec![("under way", format!("at most {slots} blocks at once"))]
}

/// Waits for what is under way when nobody asks for its results any more: the kernel
/// has the ring's memory until then.
#[cold]
fn drain(ring: &mut TransferRing) {
    loop {
        while ring.ended().is_some() {}
        if ring.under_way() == 0 || ring.submit().is_err_and(|errno| errno != Errno::EINTR) {
            return;
        }
    }
}

/// `uring_fixed`: each block from a registered buffer through a ring
/// (`IORING_OP_WRITE_FIXED`), several under way at once: by hand up to eight, in a study
/// as many as its depth says.
///
/// Path through the kernel: io_uring_enter(2) → `io_write` → the file system's
/// `write_iter`. Where that would have to wait, the request goes to a kernel thread of
/// the process (`iou-wrk`), one after the other for one file; ext4 always does so for
/// what goes through the page cache.
/// Needs: io_uring with deferred task work; buffers count against `RLIMIT_MEMLOCK` for
/// who has not `CAP_IPC_LOCK`.
/// Compared with: `pwrite`, which waits for each block.
/// Does not show: a ring that never runs empty; it does at the end of each slice.
pub(crate) static WRITE_FIXED: Entry<Writes> = Entry {
    needs: "io_uring with deferred task work, memory that may be locked",
    since: Some(KernelVersion::new(6, 1, 0)),
    has_depth: true,
    ..engine(
        tune::Way::Ring,
        "uring_fixed",
        "blocks from registered buffers through a ring, several under way at once",
        "buffer → page cache: copied by the kernel, on a thread of its own where it has to wait",
        Writes::with(open_writer, lane),
    )
};

const READ_CALL: Call = Call::source("IORING_OP_READ_FIXED");
const WRITE_CALL: Call = Call::destination("IORING_OP_WRITE_FIXED");

fn open_writer(setup: WriterSetup<'_>) -> Result<Box<dyn Writer + '_>, String> {
    let depth = u32::try_from(DEPTH).expect("it is 8");
    let ring = transfer_ring(depth, setup.slice_bytes())?;
    let writes = RingLane { ring, block: setup.block_bytes, slots: vec![Rest::default(); DEPTH] };
    Ok(Box::new(RingWriter { writes, file: setup.file, at: 0, moved: Moved::default() }))
}

struct RingWriter<'a> {
    writes: RingLane,
    file: BorrowedFd<'a>,
    /// Where the next slice belongs.
    at: u64,
    moved: Moved,
}

impl RingWriter<'_> {
    /// Writes a slice, with at most [`DEPTH`] of its blocks under way.
    fn slice(&mut self, bytes: usize) -> Result<(), Broken> {
        let RingWriter { writes, file, at, moved } = self;
        for from in (0..bytes).step_by(writes.block) {
            let slot = writes.free(*file, moved)?;
            let bytes = writes.block.min(bytes - from);
            writes.slots[slot] = Rest { offset: *at + from as u64, from, bytes };
            writes.queue(*file, slot)?;
        }
        writes.end(*file, moved)
    }
}

impl Writer for RingWriter<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.writes.ring.memory()
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let first_call_ns = clock::monotonic_ns();
        let done = self.slice(bytes);
        let last_call_ns = clock::monotonic_ns();
        if let Err(broken) = done {
            drain(&mut self.writes.ring);
            return Err(broken);
        }
        self.at += bytes as u64;
        Ok(Span { first_call_ns, last_call_ns })
    }

    fn moved(&self) -> Moved {
        self.moved
    }

    fn facts(&self) -> Vec<Fact> {
        under_way(DEPTH)
    }
}

/// One thread's writing in the slices of a trial.
fn lane<'a>(setup: LaneSetup<'a>) -> Result<Box<dyn Sender + 'a>, String> {
    let (block, depth) = (setup.block()?, setup.depth.max(1));
    let ring = transfer_ring(depth, block.saturating_mul(depth as usize))?;
    let slots = vec![Rest::default(); depth as usize];
    lane::assemble(setup, RingLane { ring, block, slots })
}

/// The state of a thread that writes through a ring.
struct RingLane {
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

impl RingLane {
    #[inline]
    fn queue(&mut self, file: BorrowedFd<'_>, slot: usize) -> Result<(), Broken> {
        let Rest { offset, from, bytes } = self.slots[slot];
        let request = Request { way: Way::Write, file, offset, from, bytes };
        self.ring.queue(slot, &request).map_err(|errno| Broken { call: WRITE_CALL, errno })
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
                Ok(0) => return Err(Broken { call: WRITE_CALL, errno: Errno::EIO }),
                Ok(n) => {
                    moved.bytes += n as u64;
                    rest.offset += n as u64;
                    rest.from += n;
                    rest.bytes -= n;
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(Broken { call: WRITE_CALL, errno }),
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
        self.ring.store(from, mark.bytes()).map_err(|errno| Broken { call: WRITE_CALL, errno })?;
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

impl Put for RingLane {
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
        under_way(self.slots.len())
    }
}

/// `uring_copy`: each block is read into a registered buffer through a ring and
/// written from it, up to eight blocks under way at once.
///
/// Path through the kernel: io_uring_enter(2) → `io_read` (`IORING_OP_READ_FIXED`), and
/// when that has ended `io_write` (`IORING_OP_WRITE_FIXED`): the copies of
/// `read_write`, with the reading of some blocks behind the writing of others. What
/// would have to wait goes to kernel threads as with `uring_fixed`.
/// Needs: as `uring_fixed`.
/// Compared with: `read_write`, where nothing overlaps.
/// Does not show: linked requests (`IOSQE_IO_LINK`), whose write is begun by the kernel:
/// a read that comes up short would break the link.
pub(crate) static COPY: Entry<Copies> = Entry {
    needs: "io_uring with deferred task work, memory that may be locked",
    since: Some(KernelVersion::new(6, 1, 0)),
    ..engine(
        tune::Way::Ring,
        "uring_copy",
        "blocks read and written through a ring, eight under way at once",
        "page cache → buffer → page cache: copied twice by the kernel, blocks beside each other",
        Copies::with(open_copier),
    )
};

fn open_copier(setup: CopySetup) -> Result<Box<dyn Copier>, String> {
    let CopySetup { source, destination, part } = setup;
    let block = part.block_bytes.min(part.bytes());
    let too_large = || format!("cannot allocate {} for a block", Bytes(block));
    let block = usize::try_from(block).map_err(|_| too_large())?;
    // No more than there are blocks: the memory is locked.
    let blocks = usize::try_from(part.blocks()).unwrap_or(usize::MAX);
    let depth = (memory_bytes_max() / block).min(blocks).clamp(1, DEPTH);
    let bytes = block.checked_mul(depth).ok_or_else(too_large)?;
    let slots = u32::try_from(depth).map_err(|_| too_large())?;
    let ring = transfer_ring(slots, bytes)?;
    let walk = Sequential::of(part);
    let slots = vec![Slot::default(); depth].into_boxed_slice();
    let moved = Moved::default();
    Ok(Box::new(RingCopier { ring, source, destination, walk, block, slots, moved }))
}

struct RingCopier {
    ring: TransferRing,
    source: OwnedFd,
    destination: OwnedFd,
    walk: Sequential,
    /// Bytes of the memory that each slot has.
    block: usize,
    slots: Box<[Slot]>,
    moved: Moved,
}

/// A block on its way.
#[derive(Debug, Clone, Copy)]
struct Slot {
    place: Place,
    read: usize,
    written: usize,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot { place: Place { offset: 0, bytes: 0 }, read: 0, written: 0 }
    }
}

impl Slot {
    /// Its next request: the rest of its reading, then of its writing.
    #[inline]
    fn way(&self) -> Way {
        if self.read < self.place.bytes { Way::Read } else { Way::Write }
    }
}

impl RingCopier {
    /// Queues the next request of a slot's block.
    #[inline]
    fn queue(&mut self, index: usize) -> Result<(), Broken> {
        let slot = &self.slots[index];
        let way = slot.way();
        let (file, done, call) = match way {
            Way::Read => (&self.source, slot.read, READ_CALL),
            Way::Write => (&self.destination, slot.written, WRITE_CALL),
        };
        let request = Request {
            way,
            file: file.as_fd(),
            offset: slot.place.offset + done as u64,
            from: index * self.block + done,
            bytes: slot.place.bytes - done,
        };
        self.ring.queue(index, &request).map_err(|errno| Broken { call, errno })
    }

    /// Takes what has ended, and goes on with blocks that are not done.
    #[inline]
    fn reap(&mut self) -> Result<(), Broken> {
        while let Some(Ended { slot: index, result }) = self.ring.ended() {
            let slot = &mut self.slots[index];
            let (way, wanted) = (slot.way(), slot.place.bytes);
            match (way, result) {
                (Way::Read, Ok(0)) => {
                    return Err(Broken { call: READ_CALL, errno: Errno::ENODATA });
                }
                (Way::Write, Ok(0)) => return Err(Broken { call: WRITE_CALL, errno: Errno::EIO }),
                (Way::Read, Ok(n)) => {
                    slot.read += n;
                    self.moved.short_calls += u64::from(slot.read < wanted);
                }
                (Way::Write, Ok(n)) => {
                    slot.written += n;
                    self.moved.bytes += n as u64;
                    self.moved.short_calls += u64::from(slot.written < wanted);
                }
                (_, Err(Errno::EINTR | Errno::EAGAIN)) => self.moved.short_calls += 1,
                (Way::Read, Err(errno)) => return Err(Broken { call: READ_CALL, errno }),
                (Way::Write, Err(errno)) => return Err(Broken { call: WRITE_CALL, errno }),
            }
            match slot.written == wanted {
                true => self.moved.blocks += 1,
                false => self.queue(index)?,
            }
        }
        Ok(())
    }

    /// Copies what the budget has, with as many blocks under way as there are slots.
    fn copy(&mut self, budget: &Budget) -> Result<(), Broken> {
        let mut left = budget.take().unwrap_or(0);
        while left > 0 || self.ring.under_way() > 0 {
            for index in 0..self.slots.len() {
                if left > 0 && !self.ring.is_busy(index) {
                    self.slots[index] = Slot { place: self.walk.next(), read: 0, written: 0 };
                    self.queue(index)?;
                    left -= 1;
                    if left == 0 {
                        left = budget.take().unwrap_or(0);
                    }
                }
            }
            self.moved.calls += 1;
            match self.ring.submit() {
                Ok(()) | Err(Errno::EINTR) => self.reap()?,
                Err(errno) => return Err(Broken { call: Call::both("io_uring_enter"), errno }),
            }
        }
        Ok(())
    }
}

impl Copier for RingCopier {
    #[inline(never)]
    fn run(&mut self, budget: &Budget) -> Result<Span, Broken> {
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        let done = self.copy(budget);
        let last_call_ns = clock::monotonic_ns();
        if let Err(broken) = done {
            drain(&mut self.ring);
            return Err(broken);
        }
        Ok(Span { first_call_ns, last_call_ns })
    }

    fn moved(&self) -> Moved {
        self.moved
    }

    fn facts(&self) -> Vec<Fact> {
        under_way(self.slots.len())
    }
}

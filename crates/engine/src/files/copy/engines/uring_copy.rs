//! `uring_copy`: each block is read into a registered buffer through a ring and
//! written from it, up to eight blocks under way at once.
//!
//! Path through the kernel: io_uring_enter(2) → `io_read` (`IORING_OP_READ_FIXED`), and
//! when that has ended `io_write` (`IORING_OP_WRITE_FIXED`): the copies of
//! `read_write`, with the reading of some blocks behind the writing of others. What
//! would have to wait goes to kernel threads of the process (`iou-wrk`); ext4 sends
//! every write there that goes through the page cache, one after the other for a file.
//! Needs: io_uring with deferred task work (Linux 6.1); buffers count against
//! `RLIMIT_MEMLOCK` for who has not `CAP_IPC_LOCK`.
//! Compared with: `read_write`, where nothing overlaps.
//! Does not show: linked requests (`IOSQE_IO_LINK`), whose write is begun by the kernel:
//! a read that comes up short would break the link.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_model::units::Bytes;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Ended, Request, TransferRing, Way};

use crate::files::copy::drive::Copier;
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::{Broken, Call, Moved};
use crate::files::part::{Place, Sequential, Walk};
use crate::files::ring::{DEPTH, drain, memory_bytes_max};
use crate::op::{Budget, Fact, Span};
use crate::uring::{patiently, refusal};

const READ: Call = Call::source("IORING_OP_READ_FIXED");
const WRITE: Call = Call::destination("IORING_OP_WRITE_FIXED");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_copy",
    summary: "blocks read and written through a ring, eight under way at once",
    needs: "io_uring with deferred task work, memory that may be locked",
    since: Some(KernelVersion::new(6, 1, 0)),
    path: "page cache → buffer → page cache: copied twice by the kernel, blocks beside each other",
    class: Class::Copies,
    is_direct: false,
    one_thread: None,
    instead: Some("read_write"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    let Setup { source, destination, part } = setup;
    let block = part.block_bytes.min(part.bytes());
    let too_large = || format!("cannot have {} of memory for a block", Bytes(block));
    let block = usize::try_from(block).map_err(|_| too_large())?;
    // No more than there are blocks: the memory is locked.
    let blocks = usize::try_from(part.blocks()).unwrap_or(usize::MAX);
    let depth = (memory_bytes_max() / block).min(blocks).clamp(1, DEPTH);
    let bytes = block.checked_mul(depth).ok_or_else(too_large)?;
    let slots = u32::try_from(depth).map_err(|_| too_large())?;
    let ring = patiently(|| TransferRing::open(slots, bytes))
        .map_err(|why| refusal::setup_error(why).to_string())?;
    let walk = Sequential::of(part);
    let slots = vec![Slot::default(); depth].into_boxed_slice();
    let moved = Moved::default();
    Ok(Box::new(UringCopy { ring, source, destination, walk, block, slots, moved }))
}

struct UringCopy {
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

impl UringCopy {
    /// Queues the next request of a slot's block.
    #[inline]
    fn queue(&mut self, index: usize) -> Result<(), Broken> {
        let slot = &self.slots[index];
        let way = slot.way();
        let (file, done, call) = match way {
            Way::Read => (&self.source, slot.read, READ),
            Way::Write => (&self.destination, slot.written, WRITE),
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
                (Way::Read, Ok(0)) => return Err(Broken { call: READ, errno: Errno::ENODATA }),
                (Way::Write, Ok(0)) => return Err(Broken { call: WRITE, errno: Errno::EIO }),
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
                (Way::Read, Err(errno)) => return Err(Broken { call: READ, errno }),
                (Way::Write, Err(errno)) => return Err(Broken { call: WRITE, errno }),
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

impl Copier for UringCopy {
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
        vec![("under way", format!("at most {} blocks at once", self.slots.len()))]
    }
}

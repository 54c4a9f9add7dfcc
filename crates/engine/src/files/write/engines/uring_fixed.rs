//! `uring_fixed`: each block from a registered buffer through a ring
//! (`IORING_OP_WRITE_FIXED`), up to eight under way at once.
//!
//! Path through the kernel: io_uring_enter(2) → `io_write` → the file system's
//! `write_iter`. Where that would have to wait, the request goes to a kernel thread of
//! the process (`iou-wrk`), one after the other for one file; ext4 always does so for
//! what goes through the page cache.
//! Needs: io_uring with deferred task work (Linux 6.1); buffers count against
//! `RLIMIT_MEMLOCK` for who has not `CAP_IPC_LOCK`.
//! Compared with: `pwrite`, which waits for each block.
//! Does not show: more than eight at once. The ring runs empty at the end of each
//! slice.

use std::os::fd::BorrowedFd;

use iolens_model::kernel::KernelVersion;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Ended, Request, TransferRing, Way};

use crate::files::moved::{Broken, Call, Moved};
use crate::files::ring::{DEPTH, drain};
use crate::files::write::engines::{Entry, Setup, Writer};
use crate::op::{Fact, Span};
use crate::uring::{patiently, refusal};

const CALL: Call = Call::destination("IORING_OP_WRITE_FIXED");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_fixed",
    summary: "blocks from registered buffers through a ring, eight under way at once",
    needs: "io_uring with deferred task work, memory that may be locked",
    since: Some(KernelVersion::new(6, 1, 0)),
    path: "buffer → page cache: copied by the kernel, on a thread of its own where it has to wait",
    is_direct: false,
    ignores_dsync: None,
    has_several_under_way: true,
    open,
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

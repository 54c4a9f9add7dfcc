//! Engines that make a call for each block, with one buffer, and what they share.

use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use arrayvec::ArrayVec;
use iolens_model::host::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::at::{How, pread, preadv2, pwrite, read, readv, seek, write, writev};
use iolens_sys::file::open::Caching;
use iolens_sys::pages::Pages;

use super::{COPIED_OUT, Entry, engine, memory};
use crate::copy::drive::{Blocks, Piecewise};
use crate::copy::engine::{Copies, Setup as CopySetup};
use crate::moved::{Broken, Call, Moved, write_all};
use crate::part::Place;
use crate::read::consume::Consume;
use crate::read::drive::{Fetch, Reader, Setup, Sink, Tally, assemble, fill};
use crate::read::engine::Reads;
use crate::subject::Subject;
use crate::write::engine::{Setup as WriterSetup, Writer, Writes};
use crate::write::lane::{self, LaneSetup, Put, Stamp};
use iolens_harness::op::{Sender, Span};

/// Pieces of a block for calls that take several, as many as a message of `run net` has
/// fields.
const PIECES: usize = 8;

/// What an engine reads with that does so through the page cache.
const fn reads<K: ReadCall + 'static>(id: &'static str, summary: &'static str) -> Entry<Reads> {
    engine(Way::Called, id, summary, COPIED_OUT, Reads { open: open_reader::<K> })
}

/// `read`: read(2), from where the one before has ended.
///
/// Path through the kernel: read(2) → `filemap_read` → `copy_folio_to_iter`; one
/// copy out of the page cache, which readahead fills before.
/// Compared with: everything else; it is what a program does that does nothing
/// special.
/// Does not show: a position shared by threads. Each thread has a descriptor, a
/// position and a readahead of its own. A random order moves the position before
/// each read, with a call that is counted.
pub(crate) static READ: Entry<Reads> =
    reads::<Read>("read", "read(2), each call from where the last one ended");

struct Read;

impl ReadCall for Read {
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], _offset: u64, _tally: &mut Tally) -> Got {
        read(fd, bytes)
    }
}

/// `readv`: readv(2) into eight buffers, each call from where the last one ended.
///
/// Path through the kernel: as `read`, over an iovec of eight equal pieces of the
/// block (fewer where the block has fewer bytes).
/// Compared with: `read`, which fills one buffer with the same bytes.
/// Does not show: what a program saves that would have to take one buffer apart.
pub(crate) static READV: Entry<Reads> = Entry {
    since: Some(KernelVersion::new(2, 0, 0)),
    path: "page cache → buffers: copied by the kernel (copy_folio_to_iter)",
    ..reads::<Readv>(
        "readv",
        "readv(2) into eight buffers, each call from where the last one ended",
    )
};

struct Readv;

impl ReadCall for Readv {
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], _offset: u64, _tally: &mut Tally) -> Got {
        let piece = bytes.len().div_ceil(PIECES);
        let mut iovec: ArrayVec<_, PIECES> = bytes.chunks_mut(piece).map(IoSliceMut::new).collect();
        readv(fd, &mut iovec)
    }
}

/// `pread`: pread(2), at an offset.
///
/// Path through the kernel: as `read`, without the position and its lock.
/// Compared with: `read`; and with what reads at offsets in other ways.
/// Does not show: threads that share a descriptor; each has one of its own, whose
/// readahead nobody else disturbs.
pub(crate) static PREAD: Entry<Reads> = reads::<Pread>("pread", "pread(2) at an offset");

struct Pread;

impl ReadCall for Pread {
    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, _tally: &mut Tally) -> Got {
        pread(fd, bytes, offset)
    }
}

/// `preadv2_dontcache`: preadv2(2) with `RWF_DONTCACHE`, through the page cache and out
/// of it again.
///
/// Path through the kernel: as `pread`; pages that the read brought into the page
/// cache are dropped when it ends (`filemap_end_dropbehind_read`).
/// Needs: Linux 6.14 and a file system that knows the flag (`FOP_DONTCACHE`).
/// Compared with: `pread`, which leaves the pages there; `direct`, which never has
/// them.
/// Does not show: much on a warm file: pages that were in the page cache before stay.
pub(crate) static PREADV2_DONTCACHE: Entry<Reads> = Entry {
    needs: "RWF_DONTCACHE of the file system",
    since: Some(KernelVersion::new(6, 14, 0)),
    path: "device → page cache → buffer: copied by the kernel (copy_folio_to_iter), then dropped",
    ..reads::<DontCache>(
        "preadv2_dontcache",
        "preadv2(2) with RWF_DONTCACHE: what it brought into the page cache leaves it again",
    )
};

struct DontCache;

impl ReadCall for DontCache {
    fn check(subject: &Subject, file: &OwnedFd) -> Result<(), String> {
        knows(subject, file, How::DontCache, "RWF_DONTCACHE")
    }

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, _tally: &mut Tally) -> Got {
        preadv2(fd, bytes, offset, How::DontCache)
    }
}

/// `preadv2_nowait`: preadv2(2) with `RWF_NOWAIT`: what is in memory is read at once.
///
/// Path through the kernel: as `pread`, but a page that is not in the page cache is
/// no reason to wait: the call says `EAGAIN`, which is counted, and the block is
/// read with pread(2).
/// Needs: a file system that knows the flag; tmpfs does not.
/// Compared with: `pread`.
/// Does not show: what a program does better that leaves the waiting to another
/// thread. On a cold file most calls are errors.
pub(crate) static PREADV2_NOWAIT: Entry<Reads> = Entry {
    needs: "RWF_NOWAIT of the file system",
    since: Some(KernelVersion::new(4, 14, 0)),
    ..reads::<NoWait>(
        "preadv2_nowait",
        "preadv2(2) with RWF_NOWAIT, and pread(2) where it would have to wait",
    )
};

struct NoWait;

impl ReadCall for NoWait {
    fn check(subject: &Subject, file: &OwnedFd) -> Result<(), String> {
        knows(subject, file, How::NoWait, "RWF_NOWAIT")
    }

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, tally: &mut Tally) -> Got {
        match preadv2(fd, bytes, offset, How::NoWait) {
            Err(Errno::EAGAIN) => {
                tally.calls += 1;
                tally.would_block += 1;
                pread(fd, bytes, offset)
            }
            other => other,
        }
    }
}

/// What a call brought.
type Got = Result<usize, Errno>;

/// One way to call.
trait ReadCall: Send {
    /// Whether it reads from where the last call ended, and so has to be moved to
    /// where it did not.
    const MOVES: bool = false;

    /// Finds out whether kernel and file system know it, without reading anything.
    ///
    /// Errors: what the system said.
    fn check(_subject: &Subject, _file: &OwnedFd) -> Result<(), String> {
        Ok(())
    }

    /// Calls once; what it does besides is counted in the tally.
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, tally: &mut Tally) -> Got;
}

struct CalledReader<K> {
    file: OwnedFd,
    buffer: Pages,
    /// Where the next call reads from, for one that moves.
    position: u64,
    call: PhantomData<K>,
}

fn open_reader<K: ReadCall + 'static>(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    K::check(setup.subject, &file)?;
    let buffer = memory(setup.part.block_bytes)?;
    let called = CalledReader::<K> { file, buffer, position: 0, call: PhantomData };
    Ok(assemble(&setup, called))
}

impl<K: ReadCall> Fetch for CalledReader<K> {
    #[inline(always)]
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno> {
        let fd = self.file.as_fd();
        if K::MOVES {
            if self.position != place.offset {
                seek(fd, place.offset)?;
                sink.tally.calls += 1;
                sink.tally.seeks += 1;
            }
            self.position = place.offset + place.bytes as u64;
        }
        let call = |bytes: &mut [u8], offset, tally: &mut Tally| K::call(fd, bytes, offset, tally);
        fill(place.bytes, &mut self.buffer, place, sink, call)
    }
}

/// Whether kernel and file system know a flag of preadv2(2): asked behind the end of
/// the file, where no read brings anything into the page cache.
///
/// Errors: what the system said.
fn knows(subject: &Subject, file: &OwnedFd, how: How, name: &str) -> Result<(), String> {
    let behind = subject.bytes().next_multiple_of(1 << 16);
    match preadv2(file.as_fd(), &mut [0], behind, how) {
        Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
        Err(errno) => Err(format!("cannot read with {name} on {}: {errno}", subject.file_system())),
    }
}

/// What an engine writes with that does so through the page cache.
const fn writes<K: WriteCall>(id: &'static str, summary: &'static str) -> Entry<Writes> {
    let path = "buffer → page cache: copied by the kernel (copy_page_from_iter_atomic)";
    engine(Way::Called, id, summary, path, Writes::with(open_writer::<K>, lane::<K>))
}

/// `write`: write(2), block by block, where the descriptor stands.
///
/// Path through the kernel: write(2) → `vfs_write` → the file system's `write_iter`
/// → `generic_perform_write` or iomap: each block is copied into the page cache and
/// goes to the device later, when somebody syncs or the kernel writes back.
/// Compared with: `pwrite`, which names the place; `writev`, whose block is in
/// pieces.
/// Does not show: what it costs to bring the bytes to the device, which is in the
/// time of the sync, or of nobody's.
pub(crate) static WRITE: Entry<Writes> =
    writes::<Written<Nothing>>("write", "write(2) of each block");

/// `write_dsync`: write(2) to a descriptor with `O_DSYNC`, which returns when the block
/// is on the device.
///
/// Path through the kernel: as of `write`, then `generic_write_sync` of the range that
/// was written: what `write_fdatasync` does, in one call.
/// Compared with: `write_fdatasync`, which makes two calls.
/// Does not show: as `write_fsync`; nor direct writes with `O_DSYNC`, which a device
/// may answer with one request (FUA).
pub(crate) static WRITE_DSYNC: Entry<Writes> = Entry {
    path: "buffer → page cache → device: copied by the kernel, written back by the same call",
    is_durable: true,
    own: Writes {
        is_dsync: true,
        by_hand: Some("--engine write --sync dsync"),
        ..Writes::with(open_writer::<Written<Nothing>>, lane::<Written<Nothing>>)
    },
    ..writes::<Written<Nothing>>("write_dsync", "write(2) of each block to a file with O_DSYNC")
};

/// `write_fsync`: write(2), and fsync(2) after every block, as a log does that promises
/// what it has written.
///
/// Path through the kernel: as of `write`; then `vfs_fsync` → the file system writes
/// back the pages, commits what it knows about the file (on ext4 a transaction of the
/// journal, for the time of the change if for nothing else) and has the device empty
/// its cache.
/// Compared with: `write`, which leaves that for later; `write_fdatasync`,
/// `write_dsync`.
/// Does not show: whether the device does what it says; see the test of a flush's
/// plausibility in the report.
pub(crate) static WRITE_FSYNC: Entry<Writes> = Entry {
    path: "buffer → page cache → device: copied by the kernel, written back by fsync(2)",
    is_durable: true,
    ..writes::<Written<Fsync>>("write_fsync", "write(2) of each block, then fsync(2)")
};

/// `write_fdatasync`: write(2), and fdatasync(2) after every block: what is needed to
/// read it again is on the device before the next one.
///
/// Path through the kernel: as of `write_fsync`, but the file system commits only what
/// reading asks for: where blocks were there before and the size stays, no metadata.
/// Compared with: `write_fsync`, `write_dsync`.
/// Does not show: as `write_fsync`.
pub(crate) static WRITE_FDATASYNC: Entry<Writes> = Entry {
    path: "buffer → page cache → device: copied by the kernel, written back by fdatasync(2)",
    is_durable: true,
    ..writes::<Written<Fdatasync>>("write_fdatasync", "write(2) of each block, then fdatasync(2)")
};

/// What follows a write(2).
trait After: Send + 'static {
    /// As [`WriteCall::SYNC`].
    const SYNC: Option<Sync> = None;
}

struct Nothing;

impl After for Nothing {}

struct Fsync;

impl After for Fsync {
    const SYNC: Option<Sync> = Some(Sync { name: Call::destination("fsync"), call: file::fsync });
}

struct Fdatasync;

impl After for Fdatasync {
    const SYNC: Option<Sync> =
        Some(Sync { name: Call::destination("fdatasync"), call: file::fdatasync });
}

/// write(2) where the last one ended, and what follows it.
struct Written<A>(PhantomData<A>);

impl<A: After> WriteCall for Written<A> {
    const NAME: Call = Call::destination("write");
    const MOVES: bool = true;
    const SYNC: Option<Sync> = A::SYNC;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], _at: u64, _block: usize) -> Got {
        write(fd, bytes)
    }
}

/// `pwrite`: pwrite(2), block by block, at a place that the call names.
///
/// Path through the kernel: pwrite64(2) → `vfs_write`: as of `write`, without the
/// lock on the position of a descriptor that threads share.
/// Compared with: `write`.
/// Does not show: what threads gain from it; here there is one.
pub(crate) static PWRITE: Entry<Writes> = writes::<Pwrite>("pwrite", "pwrite(2) of each block");

struct Pwrite;

impl WriteCall for Pwrite {
    const NAME: Call = Call::destination("pwrite");

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], at: u64, _block: usize) -> Got {
        pwrite(fd, bytes, at)
    }
}

/// `writev`: writev(2) of each block in up to eight pieces, as a program writes that
/// puts a record together from parts.
///
/// Path through the kernel: writev(2) → `vfs_writev` → `import_iovec` → as of
/// `write`, one copy for each piece.
/// Compared with: `write`, whose block lies in one piece.
/// Does not show: the gathering that it saves the program.
pub(crate) static WRITEV: Entry<Writes> = Entry {
    path: "pieces of a buffer → page cache: copied by the kernel, one after the other",
    ..writes::<Writev>("writev", "writev(2) of each block in up to eight pieces")
};

struct Writev;

impl WriteCall for Writev {
    const NAME: Call = Call::destination("writev");
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], _at: u64, block: usize) -> Got {
        let piece_bytes = block.div_ceil(PIECES).max(1);
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let mut used = 0;
        for (piece, bytes) in pieces.iter_mut().zip(bytes.chunks(piece_bytes)) {
            *piece = IoSlice::new(bytes);
            used += 1;
        }
        writev(fd, &pieces[..used])
    }
}

/// One way to call, and what brings the block to the device then.
pub(super) trait WriteCall: Send + 'static {
    /// What it is called in messages.
    const NAME: Call;

    /// Whether it writes where the last call ended, and so has to be moved to where it
    /// did not.
    const MOVES: bool = false;

    /// Calls once.
    ///
    /// Errors: what the system said.
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], at: u64, block_bytes: usize) -> Got;

    /// What brings a block to the device once it is whole; `None` where nothing does.
    const SYNC: Option<Sync> = None;
}

/// A call that brings a file to its device.
#[derive(Clone, Copy)]
pub(super) struct Sync {
    name: Call,
    call: fn(BorrowedFd<'_>) -> Result<(), Errno>,
}

impl Sync {
    /// Makes the call, again where a signal came.
    #[inline]
    fn run(self, fd: BorrowedFd<'_>, moved: &mut Moved) -> Result<(), Broken> {
        loop {
            match (self.call)(fd) {
                Ok(()) => {
                    moved.calls += 1;
                    return Ok(());
                }
                Err(errno) => moved.nothing(self.name, errno)?,
            }
        }
    }
}

/// A writer of a file by hand.
///
/// Errors: no memory.
pub(super) fn open_writer<K: WriteCall>(
    setup: WriterSetup<'_>,
) -> Result<Box<dyn Writer + '_>, String> {
    let buffer = memory(setup.slice_bytes() as u64)?;
    Ok(Box::new(CalledWriter::<K> {
        file: setup.file,
        buffer,
        block: setup.block_bytes,
        at: 0,
        moved: Moved::default(),
        call: PhantomData,
    }))
}

struct CalledWriter<'a, K> {
    file: BorrowedFd<'a>,
    buffer: Pages,
    block: usize,
    at: u64,
    moved: Moved,
    call: PhantomData<K>,
}

impl<K: WriteCall> Writer for CalledWriter<'_, K> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let CalledWriter { file, buffer, block: block_bytes, at, moved, .. } = self;
        let write = |bytes: &[u8], at| K::call(*file, bytes, at, *block_bytes);
        let first_call_ns = clock::monotonic_ns();
        for block in buffer[..bytes].chunks(*block_bytes) {
            write_all(block, *at, K::NAME, moved, write)?;
            *at += block.len() as u64;
            moved.blocks += 1;
            if let Some(sync) = K::SYNC {
                sync.run(*file, moved)?;
            }
        }
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn moved(&self) -> Moved {
        self.moved
    }
}

/// One thread's writing in the slices of a trial.
///
/// Errors: no memory.
pub(super) fn lane<'a, K: WriteCall>(setup: LaneSetup<'a>) -> Result<Box<dyn Sender + 'a>, String> {
    let block = setup.block()?;
    let source = memory(block as u64)?;
    let put = CalledLane::<K> { source, block, position: None, call: PhantomData };
    lane::assemble(setup, put)
}

struct CalledLane<K> {
    source: Pages,
    /// Bytes of a block; the source is whole pages.
    block: usize,
    /// Where the descriptor stands, for a call that moves it; `None` before the first.
    position: Option<u64>,
    call: PhantomData<K>,
}

impl<K: WriteCall> Put for CalledLane<K> {
    fn prepare(&mut self, stamp: &Stamp) {
        stamp.base(&mut self.source[..self.block]);
    }

    #[inline(always)]
    fn put(
        &mut self,
        file: &OwnedFd,
        place: Place,
        stamp: &Stamp,
        moved: &mut Moved,
    ) -> Result<(), Broken> {
        let (fd, block) = (file.as_fd(), self.block);
        if K::MOVES {
            if self.position != Some(place.offset) {
                seek(fd, place.offset).map_err(|errno| Broken { call: K::NAME, errno })?;
                moved.calls += 1;
            }
            self.position = Some(place.offset + place.bytes as u64);
        }
        let bytes = &mut self.source[..place.bytes];
        stamp.mark(place.offset, bytes);
        let write = |bytes: &[u8], at| K::call(fd, bytes, at, block);
        write_all(bytes, place.offset, K::NAME, moved, write)?;
        moved.blocks += 1;
        match K::SYNC {
            Some(sync) => sync.run(fd, moved),
            None => Ok(()),
        }
    }
}

/// `read_write`: read(2) into one buffer and write(2) from it, block by block, as
/// `dd` and most programs do.
///
/// Path through the kernel: read(2) copies from the page cache of the source,
/// write(2) into that of the destination: two copies, by way of memory that stays in
/// the processor's caches if the block is small enough.
/// Compared with: everything else.
/// Does not show: what a program gains that looks at the bytes on their way.
pub(crate) static READ_WRITE: Entry<Copies> = engine(
    Way::Called,
    "read_write",
    "read(2) and write(2) of each block through one buffer",
    "page cache → buffer → page cache: copied twice by the kernel",
    Copies {
        instead: None,
        ..Copies::with(|setup| {
            let CopySetup { source, destination, part } = setup;
            let buffer = memory(part.block_bytes.min(part.bytes()))?;
            Ok(Box::new(Blocks::of(part, ReadWrite { source, destination, buffer }, READ_CALL)))
        })
    },
);

const READ_CALL: Call = Call::source("read");
const WRITE_CALL: Call = Call::destination("write");

struct ReadWrite {
    source: OwnedFd,
    destination: OwnedFd,
    buffer: Pages,
}

impl Piecewise for ReadWrite {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let read = read(self.source.as_fd(), &mut self.buffer[..piece.bytes])
            .map_err(|errno| moved.failed(READ_CALL, errno))?;
        moved.calls += 1;
        moved.short_calls += u64::from(read < piece.bytes);
        let to = self.destination.as_fd();
        let bytes = &self.buffer[..read];
        write_all(bytes, piece.offset, WRITE_CALL, moved, |bytes, _| write(to, bytes))?;
        Ok(read)
    }

    /// Both files are read and written where they stand.
    fn begin(&mut self, offset: u64) -> Result<(), Broken> {
        for (file, call) in
            [(&self.source, Call::source("lseek")), (&self.destination, Call::destination("lseek"))]
        {
            seek(file.as_fd(), offset).map_err(|errno| Broken { call, errno })?;
        }
        Ok(())
    }
}

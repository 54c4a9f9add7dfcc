//! Engines that have the kernel copy from file to file: no byte passes the program.

use std::os::fd::AsFd;

use iolens_model::host::KernelVersion;
use iolens_model::tune::Way;
use iolens_model::units::Bytes;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::at::seek;
use iolens_sys::file::copy::{Between, clone_file, copy_file_range};
use iolens_sys::splice::{Pipe, sendfile};

use super::{Entry, engine};
use crate::copy::drive::{Blocks, Copier, OneCall, Piecewise};
use crate::copy::engine::{Class, Copies, Setup};
use crate::moved::{Broken, Call, Moved};
use crate::part::Place;
use iolens_harness::op::{Budget, Fact, Span};

/// `copy_file_range`: one copy_file_range(2) for each block.
///
/// Path through the kernel: `vfs_copy_file_range` → the file system's
/// `copy_file_range` or `remap_file_range`, which may share blocks (btrfs, xfs) or
/// have a server copy (NFS, SMB), else `splice_copy_file_range`: pages of the source
/// go through a pipe of the kernel's own and are copied into the page cache of the
/// destination.
/// Needs: Linux 5.3, and 5.19 for a count that is true; both files on file systems
/// of one kind.
/// Compared with: `read_write`, whose bytes pass this program; `reflink`, which shares
/// or fails.
/// Does not show: which of these it did; whether the blocks are shared afterwards does.
pub(crate) static COPY_FILE_RANGE: Entry<Copies> = Entry {
    needs: "both files on file systems of one kind",
    since: Some(KernelVersion::new(5, 3, 0)),
    ..engine(
        Way::Kernel,
        "copy_file_range",
        "copy_file_range(2) of each block: the kernel copies, or shares blocks",
        "page cache → page cache within the kernel, or shared blocks where the file system has \
         them",
        Copies {
            class: Class::MayShare,
            ..Copies::with(|setup| {
                let Setup { source, destination, part } = setup;
                let copy = move |piece: Place| {
                    let between = Between { from: source.as_fd(), to: destination.as_fd() };
                    copy_file_range(between, piece.offset, piece.bytes)
                };
                let call = Call::both("copy_file_range");
                Ok(Box::new(Blocks::of(part, OneCall { call, copy }, call)))
            })
        },
    )
};

/// `sendfile`: one sendfile(2) for each block, between two files.
///
/// Path through the kernel: `do_splice_direct`: pages of the source go through a pipe
/// of the kernel's own, 16 pages at a time, and are copied into the page cache of
/// the destination (`iter_file_splice_write`).
/// Needs: Linux 2.6.33 for a destination that is no socket.
/// Compared with: `splice`, which has the pipe in the program's hands;
/// `copy_file_range`, which asks the file system first.
/// Does not show: zero-copy, whatever its name: the copy is made by the kernel.
pub(crate) static SENDFILE: Entry<Copies> = Entry {
    needs: "a destination that can be spliced into",
    since: Some(KernelVersion::new(2, 6, 33)),
    ..engine(
        Way::Kernel,
        "sendfile",
        "sendfile(2) of each block: the kernel copies by way of a pipe",
        "page cache → pipe (references) → page cache: copied once by the kernel",
        Copies::with(|setup| Ok(Box::new(Blocks::of(setup.part, Sendfile(setup), SENDFILE_CALL)))),
    )
};

const SENDFILE_CALL: Call = Call::both("sendfile");

/// It writes where the destination stands.
struct Sendfile(Setup);

impl Piecewise for Sendfile {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let (to, from) = (self.0.destination.as_fd(), self.0.source.as_fd());
        let n = sendfile(to, from, piece.offset, piece.bytes)
            .map_err(|errno| moved.failed(SENDFILE_CALL, errno))?;
        moved.call(piece.bytes, n);
        Ok(n)
    }

    fn begin(&mut self, offset: u64) -> Result<(), Broken> {
        seek(self.0.destination.as_fd(), offset)
            .map_err(|errno| Broken { call: Call::destination("lseek"), errno })
    }
}

/// `splice`: splice(2) from the source into a pipe and from there into the
/// destination, block by block.
///
/// Path through the kernel: `filemap_splice_read` puts references to the source's
/// pages into the pipe; `iter_file_splice_write` copies what they hold into the page
/// cache of the destination. One copy, two calls and more: a pipe holds 16 pages, or
/// what `F_SETPIPE_SZ` gave it.
/// Compared with: `sendfile`, which does the same within one call.
/// Does not show: zero-copy between files, which the kernel does not have.
pub(crate) static SPLICE: Entry<Copies> = Entry {
    needs: "files that can be spliced",
    ..engine(
        Way::Kernel,
        "splice",
        "splice(2) of each block into a pipe and out of it",
        "page cache → pipe (references) → page cache: copied once by the kernel",
        Copies::with(open_splice),
    )
};

const TAKE: Call = Call::source("splice from the source");
const GIVE: Call = Call::destination("splice into the destination");

fn open_splice(setup: Setup) -> Result<Box<dyn Copier>, String> {
    let refused = |errno: Errno| format!("cannot open a pipe: {errno}");
    let pipe = Pipe::open().map_err(refused)?;
    // As large as a block, and no larger than a user may have: 1 MiB by default.
    const PIPE_BYTES_MAX: u64 = 1 << 20;
    let wanted = setup.part.block_bytes.min(PIPE_BYTES_MAX);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let size = pipe.size_bytes().map_err(refused)?;
    if wanted > size {
        // Where it may not, it has the kernel's own size, which the facts say.
        let _ = pipe.resize(wanted);
    }
    let part = setup.part;
    Ok(Box::new(Blocks::of(part, Splice { pipe, setup }, TAKE)))
}

struct Splice {
    pipe: Pipe,
    setup: Setup,
}

impl Piecewise for Splice {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let from = self.setup.source.as_fd();
        let taken = self
            .pipe
            .take_from(from, piece.offset, piece.bytes)
            .map_err(|errno| moved.failed(TAKE, errno))?;
        // A block that is larger than the pipe is no short count.
        moved.calls += 1;
        let to = self.setup.destination.as_fd();
        let mut given = 0;
        while given < taken {
            match self.pipe.give_to(to, piece.offset + given as u64, taken - given) {
                // The pipe holds what was taken: it cannot be empty.
                Ok(0) => return Err(Broken { call: GIVE, errno: Errno::EIO }),
                Ok(n) => {
                    moved.call(taken - given, n);
                    given += n;
                }
                Err(errno) => moved.nothing(GIVE, errno)?,
            }
        }
        Ok(taken)
    }

    fn facts(&self) -> Vec<Fact> {
        let size = self.pipe.size_bytes().map_err(|errno| errno.to_string());
        let size = size.map(|bytes| Bytes(bytes as u64).to_string());
        vec![("pipe", size.unwrap_or_else(|why| why))]
    }
}

/// `reflink`: one ioctl (`FICLONE`) makes the destination share all blocks of the
/// source, until one of them is written to.
///
/// Path through the kernel: `vfs_clone_file_range` → the file system's
/// `remap_file_range`: work on metadata alone, whatever the size; what is dirty of the
/// source is written back first.
/// Needs: btrfs, xfs made with `reflink=1` (the default), bcachefs, ocfs2, or overlayfs
/// above one of them; both files on it.
/// Compared with: nothing in bytes per second, since none moves: it is a class of its
/// own.
/// Does not show: the copy that the first write to a shared block will make.
pub(crate) static REFLINK: Entry<Copies> = Entry {
    needs: "both files on one btrfs, bcachefs or xfs with reflink=1",
    since: Some(KernelVersion::new(4, 5, 0)),
    one_thread: Some("one call clones the whole file"),
    ..engine(
        Way::Shared,
        "reflink",
        "one FICLONE for the whole file: no bytes move, blocks are shared",
        "no bytes move: the blocks of the source are shared",
        Copies {
            class: Class::Shares,
            instead: Some("copy_file_range, which shares blocks where it can and copies elsewhere"),
            open: |setup| Ok(Box::new(Reflink { setup, moved: Moved::default() })),
        },
    )
};

struct Reflink {
    setup: Setup,
    moved: Moved,
}

impl Copier for Reflink {
    fn run(&mut self, budget: &Budget) -> Result<Span, Broken> {
        let Setup { source, destination, .. } = &self.setup;
        let between = Between { from: source.as_fd(), to: destination.as_fd() };
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        // What the blocks of the budget are is not asked: it is all of them.
        while budget.take().is_some() {}
        loop {
            match clone_file(between) {
                Ok(()) => break,
                Err(errno) => self.moved.nothing(Call::both("FICLONE"), errno)?,
            }
        }
        self.moved.calls += 1;
        self.moved.blocks += self.setup.part.blocks();
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn moved(&self) -> Moved {
        self.moved
    }
}

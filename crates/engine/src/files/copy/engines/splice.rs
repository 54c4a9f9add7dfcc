//! `splice`: splice(2) from the source into a pipe and from there into the
//! destination, block by block.
//!
//! Path through the kernel: `filemap_splice_read` puts references to the source's
//! pages into the pipe; `iter_file_splice_write` copies what they hold into the page
//! cache of the destination. One copy, two calls and more: a pipe holds 16 pages, or
//! what `F_SETPIPE_SZ` gave it.
//! Needs: nothing.
//! Compared with: `sendfile`, which does the same within one call.
//! Does not show: zero-copy between files, which the kernel does not have.

use std::os::fd::AsFd;

use iolens_sys::errno::Errno;
use iolens_sys::splice::Pipe;

use crate::files::copy::drive::{Blocks, Copier, Piecewise};
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::{Broken, Call, Moved};
use crate::files::part::Place;
use crate::op::Fact;

const TAKE: Call = Call::source("splice from the source");
const GIVE: Call = Call::destination("splice into the destination");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "splice",
    summary: "splice(2) of each block into a pipe and out of it",
    needs: "files that can be spliced",
    since: None,
    path: "page cache → pipe (references) → page cache: copied once by the kernel",
    class: Class::Copies,
    is_direct: false,
    one_thread: None,
    instead: Some("read_write"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
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
        let taken = match self.pipe.take_from(from, piece.offset, piece.bytes) {
            Ok(n) => n,
            Err(errno) => {
                moved.nothing(TAKE, errno)?;
                return Err(Broken { call: TAKE, errno });
            }
        };
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
        let size = size.map(|bytes| iolens_model::units::Bytes(bytes as u64).to_string());
        vec![("pipe", size.unwrap_or_else(|why| why))]
    }
}

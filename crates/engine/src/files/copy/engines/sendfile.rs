//! `sendfile`: one sendfile(2) for each block, between two files.
//!
//! Path through the kernel: `do_splice_direct`: pages of the source go through a pipe
//! of the kernel's own, 16 pages at a time, and are copied into the page cache of
//! the destination (`iter_file_splice_write`).
//! Needs: Linux 2.6.33 for a destination that is no socket.
//! Compared with: `splice`, which has the pipe in the program's hands;
//! `copy_file_range`, which asks the file system first.
//! Does not show: zero-copy, whatever its name: the copy is made by the kernel.

use std::os::fd::AsFd;

use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::{file, splice};

use crate::files::copy::drive::{Blocks, Copier, Piecewise};
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::{Broken, Call, Moved};
use crate::files::part::Place;

const CALL: Call = Call::both("sendfile");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "sendfile",
    summary: "sendfile(2) of each block: the kernel copies by way of a pipe",
    needs: "a destination that can be spliced into",
    since: Some(KernelVersion::new(2, 6, 33)),
    path: "page cache → pipe (references) → page cache: copied once by the kernel",
    class: Class::Copies,
    is_direct: false,
    one_thread: None,
    instead: Some("read_write"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    Ok(Box::new(Blocks::of(setup.part, Sendfile(setup), CALL)))
}

/// It writes where the destination stands.
struct Sendfile(Setup);

impl Piecewise for Sendfile {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let (to, from) = (self.0.destination.as_fd(), self.0.source.as_fd());
        let failed = |errno| Broken { call: CALL, errno };
        match splice::sendfile(to, from, piece.offset, piece.bytes) {
            Ok(n) => {
                moved.call(piece.bytes, n);
                Ok(n)
            }
            Err(errno) => {
                moved.nothing(CALL, errno)?;
                Err(failed(Errno::EINTR))
            }
        }
    }

    fn begin(&mut self, offset: u64) -> Result<(), Broken> {
        let seek = file::read::seek(self.0.destination.as_fd(), offset);
        seek.map_err(|errno| Broken { call: Call::destination("lseek"), errno })
    }
}

//! `read_write`: read(2) into one buffer and write(2) from it, block by block, as
//! `dd` and most programs do.
//!
//! Path through the kernel: read(2) copies from the page cache of the source,
//! write(2) into that of the destination: two copies, by way of memory that stays in
//! the processor's caches if the block is small enough.
//! Needs: nothing.
//! Compared with: everything else.
//! Does not show: what a program gains that looks at the bytes on their way.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::tune::Way;
use iolens_sys::file::{read, write};
use iolens_sys::pages::Pages;

use crate::files::copy::drive::{Blocks, Copier, Piecewise};
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::{Broken, Call, Moved, write_all};
use crate::files::part::Place;

const READ: Call = Call::source("read");
const WRITE: Call = Call::destination("write");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "read_write",
    summary: "read(2) and write(2) of each block through one buffer",
    needs: "nothing",
    since: None,
    path: "page cache → buffer → page cache: copied twice by the kernel",
    class: Class::Copies,
    is_direct: false,
    way: Way::Called,
    one_thread: None,
    instead: None,
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    let Setup { source, destination, part } = setup;
    let buffer = super::entry::buffer(&part)?;
    Ok(Box::new(Blocks::of(part, ReadWrite { source, destination, buffer }, READ)))
}

struct ReadWrite {
    source: OwnedFd,
    destination: OwnedFd,
    buffer: Pages,
}

impl Piecewise for ReadWrite {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let read = match read::read(self.source.as_fd(), &mut self.buffer[..piece.bytes]) {
            Ok(n) => n,
            Err(errno) => {
                moved.nothing(READ, errno)?;
                return Err(Broken { call: READ, errno });
            }
        };
        moved.calls += 1;
        moved.short_calls += u64::from(read < piece.bytes);
        let to = self.destination.as_fd();
        let bytes = &self.buffer[..read];
        write_all(bytes, piece.offset, WRITE, moved, |bytes, _| write::write(to, bytes))?;
        Ok(read)
    }

    /// Both files are read and written where they stand.
    fn begin(&mut self, offset: u64) -> Result<(), Broken> {
        for (file, call) in
            [(&self.source, Call::source("lseek")), (&self.destination, Call::destination("lseek"))]
        {
            read::seek(file.as_fd(), offset).map_err(|errno| Broken { call, errno })?;
        }
        Ok(())
    }
}

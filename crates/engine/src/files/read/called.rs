//! Reading with one call for each block into one buffer: what the engines that do so
//! share.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::{How, preadv2, seek};
use iolens_sys::pages::{PageKind, Pages};

use super::consume::Consume;
use super::drive::{Fetch, Reader, Setup, Sink, Tally, assemble, fill};
use crate::files::part::{Part, Place};
use crate::files::subject::Subject;

/// What a call brought.
pub(crate) type Got = Result<usize, Errno>;

/// One way to call.
pub(crate) trait Call: Send {
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

struct Called<K> {
    file: OwnedFd,
    buffer: Pages,
    /// Where the next call reads from, for one that moves.
    position: u64,
    call: PhantomData<K>,
}

/// Makes one thread's reading.
pub(crate) fn open<K: Call + 'static>(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    K::check(setup.subject, &file)?;
    let called = Called::<K> { file, buffer: buffer(&setup.part)?, position: 0, call: PhantomData };
    Ok(assemble(&setup, called))
}

impl<K: Call> Fetch for Called<K> {
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

/// A buffer for one block, every page of which is there.
///
/// Errors: how much memory there is not.
pub(crate) fn buffer(part: &Part) -> Result<Pages, String> {
    let bytes = usize::try_from(part.block_bytes).unwrap_or(usize::MAX);
    Pages::new(bytes, PageKind::Plain)
        .map_err(|errno| format!("cannot have a buffer of {bytes} bytes: {errno}"))
}

/// Whether kernel and file system know a flag of preadv2(2): asked behind the end of
/// the file, where no read brings anything into the page cache.
///
/// Errors: what the system said.
pub(crate) fn knows(subject: &Subject, file: &OwnedFd, how: How, name: &str) -> Result<(), String> {
    let behind = subject.bytes().next_multiple_of(1 << 16);
    match preadv2(file.as_fd(), &mut [0], behind, how) {
        Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
        Err(errno) => Err(format!("cannot read with {name} on {}: {errno}", subject.file_system())),
    }
}

//! Writers that make one call for a block, and some a second one that brings it to
//! the device: what differs is the calls.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::read::seek;
use iolens_sys::file::write;
use iolens_sys::pages::Pages;

use super::lane::{self, Lane, LaneSetup, Put, Stamp, memory};
use crate::files::moved::{Broken, Call as Named, Moved, write_all};
use crate::files::part::Place;
use crate::files::write::engines::entry::{Setup, Writer};
use crate::op::Span;

/// One way to call.
pub(super) trait Call: Send + 'static {
    /// What it is called in messages.
    const NAME: Named;

    /// Whether it writes where the last call ended, and so has to be moved to where it
    /// did not.
    const MOVES: bool = false;

    /// Calls once.
    ///
    /// Errors: what the system said.
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], at: u64, block_bytes: usize) -> Result<usize, Errno>;

    /// What brings a block to the device once it is whole; null where nothing does.
    const SYNC: Option<Sync> = None;
}

/// What follows a write(2), by engine.
pub(super) trait After: Send + 'static {
    /// As [`Call::SYNC`].
    const SYNC: Option<Sync> = None;
}

/// write(2) where the last one ended, and what follows it.
pub(super) struct Written<A>(PhantomData<A>);

impl<A: After> Call for Written<A> {
    const NAME: Named = Named::destination("write");
    const MOVES: bool = true;
    const SYNC: Option<Sync> = A::SYNC;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], _at: u64, _block: usize) -> Result<usize, Errno> {
        write::write(fd, bytes)
    }
}

/// A call that brings a file to its device.
#[derive(Clone, Copy)]
pub(super) struct Sync {
    pub(super) name: Named,
    pub(super) call: fn(BorrowedFd<'_>) -> Result<(), Errno>,
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
pub(super) fn open<K: Call>(setup: Setup<'_>) -> Result<Box<dyn Writer + '_>, String> {
    let buffer = memory(setup.slice_bytes())?;
    Ok(Box::new(Plain::<K> {
        file: setup.file,
        buffer,
        block: setup.block_bytes,
        at: 0,
        moved: Moved::default(),
        call: PhantomData,
    }))
}

/// The state of such a writer.
struct Plain<'a, K> {
    file: BorrowedFd<'a>,
    buffer: Pages,
    block: usize,
    at: u64,
    moved: Moved,
    call: PhantomData<K>,
}

impl<K: Call> Writer for Plain<'_, K> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let Plain { file, buffer, block: block_bytes, at, moved, .. } = self;
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
pub(super) fn lane<'a, K: Call>(setup: LaneSetup<'a>) -> Result<Box<dyn Lane + 'a>, String> {
    let block = setup.block()?;
    let put = Called::<K> { source: memory(block)?, block, position: None, call: PhantomData };
    lane::assemble(setup, put)
}

struct Called<K> {
    source: Pages,
    /// Bytes of a block; the source is whole pages.
    block: usize,
    /// Where the descriptor stands, for a call that moves it; null before the first.
    position: Option<u64>,
    call: PhantomData<K>,
}

impl<K: Call> Put for Called<K> {
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

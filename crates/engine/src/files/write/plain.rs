//! Writers that make one call for a block: what differs is the call.

use iolens_model::units::Bytes;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::pages::{PageKind, Pages};

use crate::files::moved::{Broken, Call, Moved, write_all};
use crate::files::write::engines::{Setup, Writer};
use crate::op::Span;

/// A writer that hands every block to `write`, with the place where it belongs.
///
/// Errors: no memory.
pub(super) fn open<'a>(
    setup: Setup<'a>,
    call: Call,
    write: impl FnMut(&[u8], u64) -> Result<usize, Errno> + 'a,
) -> Result<Box<dyn Writer + 'a>, String> {
    let buffer = memory(setup.slice_bytes())?;
    let plain = Plain { buffer, block: setup.block_bytes, at: 0, moved: Moved::default() };
    Ok(Box::new(With { plain, call, write }))
}

/// Pages to write from.
///
/// Errors: there are not so many.
pub(super) fn memory(bytes: usize) -> Result<Pages, String> {
    Pages::new(bytes, PageKind::Plain).map_err(|errno| {
        format!("cannot have {} of memory to write from: {errno}", Bytes(bytes as u64))
    })
}

/// The state of such a writer.
struct Plain {
    buffer: Pages,
    block: usize,
    at: u64,
    moved: Moved,
}

struct With<C> {
    plain: Plain,
    call: Call,
    write: C,
}

impl<C: FnMut(&[u8], u64) -> Result<usize, Errno>> Writer for With<C> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.plain.buffer
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let Plain { buffer, block, at, moved } = &mut self.plain;
        let first_call_ns = clock::monotonic_ns();
        for block in buffer[..bytes].chunks(*block) {
            write_all(block, *at, self.call, moved, &mut self.write)?;
            *at += block.len() as u64;
            moved.blocks += 1;
        }
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn moved(&self) -> Moved {
        self.plain.moved
    }
}

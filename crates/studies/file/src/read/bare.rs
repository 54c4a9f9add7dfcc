//! The plainest loop of read(2) that a program could have: what the engine `read` is
//! held against, as an arm of the same trials. Hidden: found by its id, in no list.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::tune::Way;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::at::{read, seek};
use iolens_sys::file::open::Caching;
use iolens_sys::pages::Pages;

use super::consume::{Consumer, Digest};
use super::drive::{Reader, Setup, Tally};
use super::engine::{Entry, Reads};
use crate::part::{Part, Pattern};
use crate::ways::{COPIED_OUT, engine, memory};
use iolens_harness::op::{Budget, Fact, Span};

/// The loop, by its id.
pub(crate) fn find(id: &str) -> Option<&'static Entry> {
    (id == ENTRY.id).then_some(&ENTRY)
}

static ENTRY: Entry = Entry {
    needs: "consumer none, sequential",
    ..engine(
        Way::Called,
        "bare_read",
        "the calls of `read` in a bare loop, to check the harness",
        COPIED_OUT,
        Reads { open },
    )
};

struct Bare {
    file: OwnedFd,
    buffer: Pages,
    /// Bytes of a block; the buffer is whole pages.
    block: usize,
    part: Part,
    offset: u64,
    blocks: u64,
    bytes: u64,
    calls: u64,
    seeks: u64,
}

fn open<'a>(setup: Setup<'a>) -> Result<Box<dyn Reader + 'a>, String> {
    if setup.consumer != Consumer::None || setup.pattern != Pattern::Sequential {
        return Err("the bare loop reads in order and does nothing with the bytes".to_owned());
    }
    let part = setup.part;
    let block = usize::try_from(part.block_bytes).map_err(|e| e.to_string())?;
    let buffer = memory(part.block_bytes)?;
    let file = setup.subject.reopen(Caching::Buffered)?;
    let offset = part.start + setup.first * part.block_bytes;
    seek(file.as_fd(), offset).map_err(|errno| format!("cannot seek: {errno}"))?;
    Ok(Box::new(Bare {
        file,
        buffer,
        block,
        part,
        offset,
        blocks: 0,
        bytes: 0,
        calls: 0,
        seeks: 0,
    }))
}

impl Reader for Bare {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        while let Some(blocks) = budget.take() {
            for _ in 0..blocks {
                if self.offset == self.part.end {
                    seek(self.file.as_fd(), self.part.start)?;
                    self.offset = self.part.start;
                    self.calls += 1;
                    self.seeks += 1;
                }
                let n = read(self.file.as_fd(), &mut self.buffer[..self.block])?;
                self.calls += 1;
                if n != self.block {
                    // What a loop without patience does with it.
                    return Err(Errno::ENODATA);
                }
                self.offset += n as u64;
                self.bytes += n as u64;
                self.blocks += 1;
            }
        }
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn tally(&self) -> Tally {
        let Bare { blocks, bytes, calls, seeks, .. } = *self;
        Tally { blocks, bytes, calls, seeks, ..Tally::default() }
    }

    fn digest(&self) -> Digest {
        Consumer::None.of_nothing()
    }

    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}

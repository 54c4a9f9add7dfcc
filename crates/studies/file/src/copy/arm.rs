//! An engine that copies, as an arm of a trial. A message is a whole file; a slice is
//! some of them, each into a file of its own that is made, opened and given its buffers
//! before the clock starts.

use std::fs::File;
use std::os::fd::AsFd;

use iolens_model::cell::Cell;
use iolens_model::copy::CopySync;
use iolens_model::file::FileCounts;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::create::{self, How};

use super::drive::Copier;
use super::engine::{Class, Entry, Setup};
use super::site::{Site, fsync};
use crate::failure::Ends;
use crate::moved::{Broken, Call, Moved};
use crate::part::Part;
use iolens_harness::op::{Budget, Fact, Sender, Span, Tally, Trouble};

/// One thread's part of an engine's copies.
pub(crate) struct Engine<'a> {
    site: &'a Site<'a>,
    entry: &'static Entry,
    part: Part,
    /// The thread that makes, checks and removes what all write to.
    is_first: bool,
    /// The copies of the slice.
    open: Vec<Open>,
    moved: Moved,
    copies: u64,
    broken: Option<Broken>,
    is_compared: bool,
    facts: Vec<Fact>,
}

/// One copy, ready to be made.
struct Open {
    copier: Box<dyn Copier>,
    /// What is synced, where that belongs to the time.
    synced: Option<File>,
}

impl<'a> Engine<'a> {
    /// A thread's part of what the engine copies at a site.
    ///
    /// Errors: the file has fewer blocks than threads.
    pub(crate) fn new(
        site: &'a Site<'a>,
        entry: &'static Entry,
        cell: &Cell,
        thread: usize,
    ) -> Result<Engine<'a>, Trouble> {
        let (bytes, block) = (site.source().bytes(), site.setting.block_bytes);
        let parts = entry.parts(bytes, block.0, cell.threads);
        let part = parts.get(thread).copied().ok_or_else(|| {
            let (blocks, threads) = (bytes.div_ceil(block.0.max(1)), cell.threads_in_words());
            Trouble::refused(format!("the file has {blocks} blocks of {block} for {threads}"))
        })?;
        Ok(Engine {
            site,
            entry,
            part,
            is_first: thread == 0,
            open: Vec::new(),
            moved: Moved::default(),
            copies: 0,
            broken: None,
            is_compared: false,
            facts: Vec::new(),
        })
    }

    /// Opens one copy; descriptors of this thread's own have positions of its own.
    fn open(&self, number: usize) -> Result<Open, Trouble> {
        let entry = self.entry;
        let (caching, how) = entry.opened();
        let again = |how| {
            let file = self.site.with_copy(number, |file| create::reopen(file.as_fd(), how));
            let file = file.ok_or_else(|| Trouble::failed("there is no file to copy into"))?;
            file.map_err(|errno| {
                Trouble::refused(format!("cannot open the copy for {}: {errno}", entry.id))
            })
        };
        let source = self.site.source().reopen(caching).map_err(Trouble::refused)?;
        let synced = match self.site.setting.sync {
            CopySync::Fsync => Some(again(How::WRITES)?),
            CopySync::None => None,
        };
        let setup = Setup { source, destination: again(how)?.into(), part: self.part };
        Ok(Open { copier: entry.start(setup).map_err(Trouble::refused)?, synced })
    }

    /// Every copy of the slice, one after the other.
    fn copy(&mut self) -> Result<(), Broken> {
        let blocks = self.part.blocks().max(1);
        for Open { copier, synced } in &mut self.open {
            copier.run(&Budget::messages(blocks, 1))?;
            if let Some(file) = synced {
                fsync(file).map_err(|errno| Broken { call: FSYNC, errno })?;
            }
        }
        Ok(())
    }
}

const FSYNC: Call = Call::destination("fsync");

impl Sender for Engine<'_> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        let done = self.copy();
        let last_call_ns = clock::monotonic_ns();
        done.map_err(|broken| {
            self.broken = Some(broken);
            broken.errno
        })?;
        Ok(Span { first_call_ns, last_call_ns })
    }

    fn prepare(&mut self, messages: u64) -> Result<(), Trouble> {
        let copies = usize::try_from(messages).unwrap_or(usize::MAX);
        if self.is_first {
            self.site.make(copies)?;
        }
        self.open = (0..copies).map(|number| self.open(number)).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn conclude(&mut self) -> Result<(), Trouble> {
        for Open { copier, synced } in &self.open {
            self.moved.add(&copier.moved());
            self.moved.calls += u64::from(synced.is_some());
        }
        if let Some(first) = self.open.first().filter(|_| self.facts.is_empty()) {
            self.facts = first.copier.facts();
        }
        let copies = self.open.len();
        self.open.clear();
        if !self.is_first {
            return Ok(());
        }
        self.copies += copies as u64;
        self.site.measure()?;
        if !std::mem::replace(&mut self.is_compared, true) {
            let (shared, class) = (self.site.compare()?, self.entry.own.class);
            class.check_known(shared, self.site.file_system()).map_err(Trouble::refused)?;
            let shared = shared.filter(|&bytes| bytes > 0 && class == Class::MayShare);
            if let Some(bytes) = shared {
                return Err(Trouble::refused(format!(
                    "reflinked: {bytes} bytes of the copy are blocks of its source, and did not \
                     move; `reflink` is the arm for that"
                )));
            }
        }
        self.site.clear(copies)
    }

    fn explain(&mut self) -> Option<Trouble> {
        let broken = self.broken.take()?;
        let place = self.site.place(0);
        let ends = Ends {
            source: Some(self.site.source()),
            destination: &place,
            file_system: self.site.file_system(),
            instead: self.entry.own.instead,
        };
        let what = ends.explain(broken, self.moved.bytes);
        // What these calls cannot do here, they have not failed at.
        let is_refused = matches!(
            broken.errno,
            Errno::EXDEV | Errno::EOPNOTSUPP | Errno::ENOTTY | Errno::EINVAL | Errno::ENOSYS
        );
        Some(Trouble { what, is_refused })
    }

    fn tally(&self) -> Tally {
        let file = FileCounts { short_reads: self.moved.short_calls, ..FileCounts::default() };
        Tally {
            messages: self.copies,
            bytes: self.moved.bytes,
            calls: self.moved.calls,
            file: Some(file),
            ..Tally::default()
        }
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts.clone()
    }
}

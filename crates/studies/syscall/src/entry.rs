//! What the list of calls is made of: a call, and the loop that repeats it.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use iolens_model::arm::Role;
use iolens_model::call::{CallFacts, CallKind};
use iolens_model::cell::Cell;
use iolens_model::host::KernelVersion;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::tcp::SetupError;

use iolens_harness::op::{Budget, Sender, Span, Tally, drive_batch};

/// Calls of one slice and thread that use up what was prepared.
pub(super) const MOST: u32 = 1000;

/// One call.
#[derive(Debug)]
pub struct Entry {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// What it is listed with.
    pub kind: CallKind,
    /// What is done, in one line.
    pub summary: &'static str,
    /// System calls of one unit; 0 where the kernel is not called.
    pub calls: u32,
    /// Bytes that one unit moves between the program and the kernel where a cell asks for no
    /// other number; 0 where there is nothing to ask for.
    pub bytes: u32,
    /// What it does to a file of the user's, where a run has one.
    pub of_file: OfFile,
    /// Whether it only shows what a part costs.
    pub control: bool,
    /// Units that a thread's slice has at most, where each uses something up
    /// that is made before the slice, or takes milliseconds; `None` where there is
    /// no end.
    pub most: Option<u32>,
    /// The same by what a thread has room for, which larger blocks use up sooner.
    pub(super) holds: Option<Holds>,
    /// Descriptors that a thread of it has open, at most.
    pub descriptors: u32,
    /// The first kernel that has what it needs; `None` where every one has.
    pub since: Option<KernelVersion>,
    /// Time of a unit before anything was measured, ns.
    pub guess_ns: f64,
    /// Makes one thread's end of an arm.
    ///
    /// Errors: what it needs was refused.
    pub open: Open,
}

/// How a thread's end of an arm is made.
pub(super) type Open = fn(&Setup<'_>) -> Result<Box<dyn Sender>, SetupError>;

/// How many units there is room for.
pub(super) type Holds = fn(Asked) -> u64;

/// What a call does to a file of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfFile {
    /// It is about something else.
    Nothing,
    /// It reads it, or asks about it.
    Reads,
    /// It would write to it, and has a file of ours alone.
    Writes,
}

impl OfFile {
    /// The word of lists.
    pub fn word(self) -> Option<&'static str> {
        match self {
            OfFile::Nothing => None,
            OfFile::Reads => Some("reads"),
            OfFile::Writes => Some("writes"),
        }
    }
}

/// What a cell asks of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Threads that share the work of a slice.
    pub threads: u32,
    /// Bytes that each call moves, if it moves any; at least 1.
    pub block: Bytes,
    /// The size of the user's file; `None` where it is ours.
    pub file: Option<Bytes>,
}

impl Asked {
    /// What one thread asks for where a cell has no size.
    pub const LEAST: Asked = Asked { threads: 1, block: Bytes(1), file: None };

    /// What a cell asks for.
    pub fn by(cell: &Cell, file: Option<Bytes>) -> Asked {
        Asked { threads: cell.threads, block: Bytes(cell.size.0.max(1)), file }
    }
}

/// One system call that moves nothing and uses nothing up; what an entry has else
/// stands in its file.
pub(super) const fn call(
    id: &'static str,
    kind: CallKind,
    summary: &'static str,
    guess_ns: f64,
    open: Open,
) -> Entry {
    Entry {
        id,
        kind,
        summary,
        calls: 1,
        bytes: 0,
        of_file: OfFile::Nothing,
        control: false,
        most: None,
        holds: None,
        descriptors: 0,
        since: None,
        guess_ns,
        open,
    }
}

/// What a thread's end of an arm is made from.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Units that this thread may have to do in one slice, where the entry has a
    /// limit: its own and those of threads that lost their CPU.
    pub most: usize,
    /// Bytes that each call moves, if it moves any.
    pub block: usize,
    /// The user's file; `None` for one of ours.
    pub file: Option<UsersFile<'a>>,
}

/// A file of the user's, which is only read.
#[derive(Debug, Clone, Copy)]
pub struct UsersFile<'a> {
    /// Where it is, as bytes.
    pub path: &'a [u8],
    /// It, open.
    pub fd: BorrowedFd<'a>,
}

impl UsersFile<'_> {
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path))
    }
}

impl Entry {
    /// What a run keeps of the entry.
    pub fn facts(&self) -> CallFacts {
        CallFacts {
            id: self.id.to_owned(),
            kind: self.kind,
            summary: self.summary.to_owned(),
            calls: self.calls,
            bytes: self.bytes,
            most: self.most,
        }
    }

    /// The part an arm of this call plays against `baseline`.
    pub fn role(&self, baseline: &str) -> Role {
        Role::against(self.id == baseline, self.control)
    }

    /// Units that a thread's slice has at most where a cell asks for this; `None` where there is
    /// no end.
    pub fn most_of(&self, asked: Asked) -> Option<u32> {
        let holds = self.holds.map(|holds| u32::try_from(holds(asked)).unwrap_or(u32::MAX));
        self.most.into_iter().chain(holds).min()
    }

    /// What a thread's end of an arm of it is made from.
    pub fn setup(&self, asked: Asked) -> Setup<'static> {
        let most = self.most_of(asked).unwrap_or(0).saturating_mul(asked.threads);
        Setup {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            block: usize::try_from(asked.block.0).unwrap_or(usize::MAX),
            file: None,
        }
    }

    /// Whether slices of it can be as a cell wants them, with a file of the user's or without;
    /// `is_sliced` where an arm has many slices.
    ///
    /// Errors: why not, with the arithmetic.
    pub fn allow(&self, cell: &Cell, file: Option<Bytes>, is_sliced: bool) -> Result<(), String> {
        let asked = Asked::by(cell, file);
        self.allow_on(file.is_some())?;
        let Some(most) = self.most_of(asked) else { return Ok(()) };
        if most == 0 {
            return Err(self.no_room(asked));
        }
        let calls = if most == 1 { "call" } else { "calls" };
        let of = if cell.size.0 > 1 { format!(" of {}", cell.size) } else { String::new() };
        let limit = format!("a slice of `{}` has {most} {calls}{of} at most", self.id);
        match (cell.syscall().and_then(|setting| setting.in_a_row), is_sliced) {
            (_, false) => Err(format!("{limit}, and one arm after another has a single slice")),
            (Some(calls), true) if calls > u64::from(most) => {
                Err(format!("{limit}, fewer than the {calls} in a row that are asked for"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it leaves a file as it is, where that is the user's.
    ///
    /// Errors: it would write to it.
    pub fn allow_on(&self, is_theirs: bool) -> Result<(), String> {
        match self.of_file {
            OfFile::Writes if is_theirs => {
                Err("it would write, and --file is only read".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Why not even one call fits.
    fn no_room(&self, Asked { threads, block, file }: Asked) -> String {
        let each = if threads == 1 { String::new() } else { format!(" for {threads} threads") };
        let what = match (file, self.of_file) {
            (Some(bytes), _) => format!("the file has {bytes}"),
            (None, OfFile::Nothing) => "a pipe holds 1 MiB at most".to_owned(),
            (None, _) => "the test file has 64 MiB at most".to_owned(),
        };
        format!("{what}, too little for a block of {block}{each}")
    }

    /// Tries one call here.
    ///
    /// Errors: what was tried and what the system said.
    pub fn try_here(&self) -> Result<(), String> {
        let mut call = (self.open)(&self.setup(Asked::LEAST)).map_err(|error| error.to_string())?;
        call.touch();
        let done = call.run(&Budget::messages(1, 1));
        done.map(drop).map_err(|errno| format!("cannot do it once: {errno}"))
    }
}

/// One call; what the files of this folder implement.
pub(crate) trait Call: Send {
    /// Does it once and checks what it said.
    ///
    /// Errors: what the system said; `EBADMSG` or `ENODATA` for a result that is
    /// not the one expected, `ENOBUFS` where what was prepared is used up.
    fn call(&mut self) -> Result<(), Errno>;

    /// Makes what the calls of a slice use up, outside the clock.
    ///
    /// Errors: what the system said.
    fn prepare(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// A call without anything to prepare.
impl<F: FnMut() -> Result<(), Errno> + Send> Call for F {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        self()
    }
}

/// A call over and over, with its account.
struct Repeated<C> {
    entry: &'static Entry,
    /// Bytes of a unit.
    bytes: u64,
    call: C,
    tally: Tally,
    prepared: Result<(), Errno>,
}

/// An arm's thread that makes these calls, which move nothing.
pub(super) fn repeated(entry: &'static Entry, call: impl Call + 'static) -> Box<dyn Sender> {
    Box::new(Repeated { entry, bytes: 0, call, tally: Tally::default(), prepared: Ok(()) })
}

/// The same of calls that move a block each.
pub(super) fn moving(
    entry: &'static Entry,
    setup: &Setup<'_>,
    call: impl Call + 'static,
) -> Box<dyn Sender> {
    let (bytes, tally) = (setup.block as u64, Tally::default());
    Box::new(Repeated { entry, bytes, call, tally, prepared: Ok(()) })
}

/// An error of what an entry needs.
pub(super) fn at(tried: &str) -> impl Fn(Errno) -> SetupError {
    move |errno| SetupError { tried: tried.to_owned(), errno }
}

impl<C: Call> Sender for Repeated<C> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        self.prepared?;
        let (call, mut done) = (&mut self.call, 0u64);
        let span = drive_batch(
            || {
                call.call()?;
                done += 1;
                Ok(())
            },
            budget,
        );
        self.tally.messages += done;
        self.tally.calls += done * u64::from(self.entry.calls);
        self.tally.bytes += done * self.bytes;
        span
    }

    fn touch(&mut self) {
        self.prepared = self.call.prepare();
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

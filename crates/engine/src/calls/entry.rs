//! What the list of calls is made of: a call, and the loop that repeats it.

use iolens_model::arm::Role;
use iolens_model::call::{CallFacts, CallKind};
use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;

use crate::entry::SetupError;
use crate::op::{Budget, Sender, Span, Tally, drive_batch};

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
    /// Bytes that one unit moves between the program and the kernel.
    pub bytes: u32,
    /// Whether it only shows what a part costs.
    pub control: bool,
    /// Units that a thread's slice has at most, where each uses something up
    /// that is made before the slice, or takes milliseconds; null where there is
    /// no end.
    pub most: Option<u32>,
    /// Descriptors that a thread of it has open, at most.
    pub descriptors: u32,
    /// The first kernel that has what it needs; null where every one has.
    pub since: Option<KernelVersion>,
    /// Time of a unit before anything was measured, ns.
    pub guess_ns: f64,
    /// Makes one thread's end of an arm.
    ///
    /// Errors: what it needs was refused.
    pub open: Open,
}

/// How a thread's end of an arm is made.
pub(super) type Open = fn(&Setup) -> Result<Box<dyn Sender>, SetupError>;

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
        control: false,
        most: None,
        descriptors: 0,
        since: None,
        guess_ns,
        open,
    }
}

/// What a thread's end of an arm is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Units that this thread may have to do in one slice, where the entry has a
    /// limit: its own and those of threads that lost their CPU.
    pub most: usize,
}

impl Entry {
    /// What a run keeps of the entry.
    #[must_use]
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
    #[must_use]
    pub fn role(&self, baseline: &str) -> Role {
        Role::against(self.id == baseline, self.control)
    }

    /// What a thread's end of an arm of it is made from, where `threads` of them
    /// share the work of a slice.
    #[must_use]
    pub fn setup(&self, threads: u32) -> Setup {
        let most = self.most.unwrap_or(0).saturating_mul(threads);
        Setup { most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// Tries one call here.
    ///
    /// Errors: what was tried and what the system said.
    pub fn try_here(&self) -> Result<(), String> {
        let mut call = (self.open)(&self.setup(1)).map_err(|error| error.to_string())?;
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
    call: C,
    tally: Tally,
    prepared: Result<(), Errno>,
}

/// An arm's thread that makes these calls.
pub(super) fn repeated(entry: &'static Entry, call: impl Call + 'static) -> Box<dyn Sender> {
    Box::new(Repeated { entry, call, tally: Tally::default(), prepared: Ok(()) })
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
        self.tally.bytes += done * u64::from(self.entry.bytes);
        span
    }

    fn touch(&mut self) {
        self.prepared = self.call.prepare();
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

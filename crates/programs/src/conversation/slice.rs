//! A slice of a program that speaks the loop protocol: asked for, timed and charged.

use iolens_sys::{clock, usage};

use super::{Beside, Conversation, Request};
use crate::charged::Charged;
use crate::charged::TreeCharged;
use crate::fault::ProgramFault;
use crate::protocol::Answer;

/// How long a program may run on behind its answer before its CPU time is read.
const SETTLING_NS: u64 = 1_000_000;

/// What is read around a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// What the process is charged.
    Process,
    /// What it and its children are charged. Where one of them came or went, nothing is known of
    /// the slice.
    Tree,
}

/// A slice that was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// From before the request is written to the return of the read with its answer.
    pub took_ns: u64,
    /// CPU time in it, of what was read; `None` where that has gone.
    pub cpu_ns: Option<u64>,
    /// The same since its slice before; `None` for the first.
    pub idle_cpu_ns: Option<u64>,
    /// That of the process alone, whatever its children did.
    pub own_idle_cpu_ns: Option<u64>,
    /// What the kernel counted.
    pub charged: Charged,
    /// What the program told.
    pub answer: Answer,
}

/// What a program was charged before a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeSlice {
    charged: Charged,
    cpu_ns: Option<u64>,
    /// CPU time since the slice before.
    own_idle_cpu_ns: Option<u64>,
    /// The same with its children, which may not be known; `None` where that is not wanted.
    tree: Option<Option<TreeCharged>>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Before the request was written, on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// From then to the return of the read with the answer.
    pub took_ns: u64,
    /// What the program told.
    pub answer: Answer,
}

fn in_slice(number: u64, request: &Request) -> String {
    format!("in slice {number} of {} operations", request.operations)
}

impl Conversation {
    /// Has it do a slice.
    ///
    /// Errors: it does not, or says something else.
    pub fn slice(
        &mut self,
        request: &Request,
        around: Around,
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Reading, ProgramFault> {
        let before = self.prepare(request, around, limit_ns, interrupted)?;
        let answered = self.ask(request, limit_ns, interrupted)?;
        Ok(self.account(before, answered))
    }

    /// What it and its children were charged so far; `None` where that cannot be read.
    pub fn charged_with_children(&self) -> Option<TreeCharged> {
        TreeCharged::of(self.process.id())
    }

    /// Gets ready for a slice, before its clock, and reads what it was charged so far.
    ///
    /// Errors: it says something, or does not get ready.
    pub fn prepare(
        &mut self,
        request: &Request,
        around: Around,
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<BeforeSlice, ProgramFault> {
        let number = self.slices;
        self.slices += 1;
        self.stray_bytes = 0;
        self.must_be_quiet(&format!("before slice {number}"), number > 0)?;
        if self.ready.prepares {
            let when = || in_slice(number, request);
            self.exchange(&request.prepare, limit_ns, interrupted, &when)?;
            self.must_be_quiet(&format!("before slice {number}"), true)?;
        }
        let charged = self.account.read();
        let cpu_ns = usage::cpu_ns_of(self.process.id()).ok();
        let own_idle_cpu_ns = cpu_ns.zip(self.cpu_after_ns).map(|(b, a)| b.saturating_sub(a));
        let tree = (around == Around::Tree).then(|| self.charged_with_children());
        Ok(BeforeSlice { charged, cpu_ns, own_idle_cpu_ns, tree })
    }

    /// The slice itself, for which it was prepared.
    ///
    /// Errors: as [`Self::slice`].
    pub fn ask(
        &mut self,
        request: &Request,
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Answered, ProgramFault> {
        let number = self.slices - 1;
        self.exchange(&request.line, limit_ns, interrupted, &|| in_slice(number, request))
    }

    /// What it was charged in a slice, behind its clock.
    pub fn account(&mut self, before: BeforeSlice, answered: Answered) -> Reading {
        self.settle();
        self.cpu_after_ns = usage::cpu_ns_of(self.process.id()).ok();
        let cpu_ns = self.cpu_after_ns.zip(before.cpu_ns).map(|(a, b)| a.saturating_sub(b));
        let charged = self.account.read().since(&before.charged);
        let Answered { took_ns, answer, .. } = answered;
        let idle_cpu_ns = before.own_idle_cpu_ns;
        let own_idle_cpu_ns = idle_cpu_ns;
        let own = Reading { took_ns, cpu_ns, idle_cpu_ns, own_idle_cpu_ns, charged, answer };
        match before.tree {
            None => own,
            Some(tree_before) => self.with_children(own, tree_before.as_ref()),
        }
    }

    /// The reading of a slice that is charged with what its children did.
    fn with_children(&mut self, own: Reading, tree_before: Option<&TreeCharged>) -> Reading {
        let now = self.charged_with_children();
        let last = std::mem::replace(&mut self.tree_after, now);
        let since = |now: Option<&TreeCharged>, then: Option<&TreeCharged>| now?.since(then?);
        let spent = since(self.tree_after.as_ref(), tree_before);
        Reading {
            cpu_ns: spent.map(|spent| spent.cpu_ns),
            idle_cpu_ns: since(tree_before, last.as_ref()).map(|spent| spent.cpu_ns),
            charged: Charged {
                faults: spent.map(|spent| spent.faults),
                ticks: spent.map(|spent| spent.ticks),
                ..Charged::default()
            },
            ..own
        }
    }

    /// Waits for the program to sleep, not long: what it does behind its answer is not to fall into
    /// the turn of another arm, and of one that runs the kernel knows what it had spent at its last
    /// tick.
    fn settle(&mut self) {
        let deadline_ns = clock::monotonic_ns() + SETTLING_NS;
        while self.account.runs() && clock::monotonic_ns() < deadline_ns {
            match self.beside {
                Beside::SameCpu => std::thread::yield_now(),
                Beside::OtherCpus => std::hint::spin_loop(),
            }
        }
    }
}

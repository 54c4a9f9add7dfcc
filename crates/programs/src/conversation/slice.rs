//! A slice of a program that speaks the loop protocol: asked for, timed and charged.

use iolens_sys::{clock, usage};

use super::{Beside, Conversation, Request};
use crate::charged::Charged;
use crate::fault::ProgramFault;
use crate::protocol::Answer;
use crate::tree::TreeCharged;

/// How long a program may run on behind its answer before its CPU time is read.
const SETTLING_NS: u64 = 1_000_000;

/// A slice that was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// From before the request is written to the return of the read with its answer.
    pub took_ns: u64,
    /// CPU time of the process in it; `None` where it has gone.
    pub cpu_ns: Option<u64>,
    /// CPU time of the process since its slice before; `None` for the first.
    pub idle_cpu_ns: Option<u64>,
    /// What the kernel counted.
    pub charged: Charged,
    /// What the program told.
    pub answer: Answer,
}

/// What a program was charged before a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeforeSlice {
    charged: Charged,
    cpu_ns: Option<u64>,
    /// CPU time since the slice before.
    idle_cpu_ns: Option<u64>,
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
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Reading, ProgramFault> {
        let before = self.prepare(request, limit_ns, interrupted)?;
        let answered = self.ask(request, limit_ns, interrupted)?;
        Ok(self.account(before, answered))
    }

    /// Has it do a slice, which is charged with what its children do. Where one of them came or
    /// went, nothing is known of it.
    ///
    /// Errors: as [`Self::slice`].
    pub fn slice_with_children(
        &mut self,
        request: &Request,
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Reading, ProgramFault> {
        let before = self.prepare(request, limit_ns, interrupted)?;
        let tree_before = TreeCharged::of(self.process.id());
        let answered = self.ask(request, limit_ns, interrupted)?;
        let reading = self.account(before, answered);
        let last = std::mem::replace(&mut self.tree_after, TreeCharged::of(self.process.id()));
        let since = |now: &Option<TreeCharged>, then: &Option<TreeCharged>| {
            now.as_ref().zip(then.as_ref()).and_then(|(now, then)| now.since(then))
        };
        let spent = since(&self.tree_after, &tree_before);
        Ok(Reading {
            cpu_ns: spent.map(|spent| spent.cpu_ns),
            idle_cpu_ns: since(&tree_before, &last).map(|spent| spent.cpu_ns),
            charged: Charged {
                faults: spent.map(|spent| spent.faults),
                ticks: spent.map(|spent| spent.ticks),
                ..Charged::default()
            },
            ..reading
        })
    }

    /// What it and its children were charged so far; `None` where that cannot be read.
    pub fn charged_with_children(&self) -> Option<TreeCharged> {
        TreeCharged::of(self.process.id())
    }

    /// Gets ready for a slice, before its clock.
    ///
    /// Errors: it says something, or does not get ready.
    pub fn prepare(
        &mut self,
        request: &Request,
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
        let idle_cpu_ns = cpu_ns.zip(self.cpu_after_ns).map(|(b, a)| b.saturating_sub(a));
        Ok(BeforeSlice { charged, cpu_ns, idle_cpu_ns })
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
        Reading { took_ns, cpu_ns, idle_cpu_ns: before.idle_cpu_ns, charged, answer }
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

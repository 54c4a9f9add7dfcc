//! A slice of a program that speaks the loop protocol: asked for, timed and charged.

use iolens_sys::kin::Tree;
use iolens_sys::proc::Root;
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
    /// For how long of it the program, or the thread that asked, was ready to run and waited for a
    /// processor; `None` where that was not asked for, or the kernel does not count it.
    pub delayed_ns: Option<u64>,
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

impl Reading {
    /// What it would have taken with the processor to itself, as far as is known. Of a program
    /// with several threads the kernel tells how long the first of them waited.
    pub fn alone_ns(&self) -> u64 {
        let least_ns = self.cpu_ns.unwrap_or(0).min(self.took_ns);
        self.took_ns.saturating_sub(self.delayed_ns.unwrap_or(0)).max(least_ns)
    }
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
        self.slice_with(request, around, limit_ns, interrupted, &|_| None)
    }

    /// The same, and how long of it was waiting for a processor. It takes longer: two files are
    /// opened on either side of the slice.
    ///
    /// Errors: as [`Self::slice`].
    pub fn slice_with_delay(
        &mut self,
        request: &Request,
        around: Around,
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Reading, ProgramFault> {
        let delayed_ns = |own: &Conversation| own.delayed_ns(around);
        self.slice_with(request, around, limit_ns, interrupted, &delayed_ns)
    }

    /// A slice, with what is read of waiting right before it and right behind it.
    fn slice_with(
        &mut self,
        request: &Request,
        around: Around,
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
        delayed_ns: &dyn Fn(&Conversation) -> Option<u64>,
    ) -> Result<Reading, ProgramFault> {
        let before = self.prepare(request, around, limit_ns, interrupted)?;
        let then_ns = delayed_ns(self);
        let answered = self.ask(request, limit_ns, interrupted)?;
        let now_ns = delayed_ns(self);
        let delayed_ns = now_ns.zip(then_ns).map(|(now, then)| now.saturating_sub(then));
        Ok(Reading { delayed_ns, ..self.account(before, answered) })
    }

    /// How long it and this thread have been ready to run and waited for a processor so far.
    fn delayed_ns(&self, around: Around) -> Option<u64> {
        let root = Root::real();
        let processes = match around {
            Around::Process => vec![self.process.id()],
            Around::Tree => Tree::below(&root, self.process.id()).processes,
        };
        let theirs = processes.into_iter().map(|pid| root.task_delay_ns(&pid.to_string()));
        Some(root.task_delay_ns("thread-self")? + theirs.sum::<Option<u64>>()?)
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
        let own = Reading {
            took_ns,
            delayed_ns: None,
            cpu_ns,
            idle_cpu_ns,
            own_idle_cpu_ns,
            charged,
            answer,
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_processor_is_not_the_work_of_a_slice() {
        let alone_ns = |took_ns, delayed_ns, cpu_ns| {
            Reading { took_ns, delayed_ns, cpu_ns, ..Reading::default() }.alone_ns()
        };
        assert_eq!(alone_ns(500, None, Some(400)), 500);
        assert_eq!(alone_ns(4500, Some(4000), Some(400)), 500);
        // Several that waited at the same time.
        assert_eq!(alone_ns(4500, Some(8000), Some(400)), 400);
        // Several that worked at the same time.
        assert_eq!(alone_ns(4500, Some(1000), Some(9000)), 4500);
        assert_eq!(alone_ns(4500, Some(8000), None), 0);
    }
}

//! Slices that are charged with what children of the program do.

use super::{Conversation, Reading, Request};
use crate::charged::Charged;
use crate::fault::ProgramFault;
use crate::tree::TreeCharged;

impl Conversation {
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
}

//! What a program with all its processes has spent.

use iolens_sys::kin::{self, Tree};
use iolens_sys::proc::Root;
use iolens_sys::usage;

/// What the processes of a program were charged so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeCharged {
    processes: Vec<u32>,
    cpu_ns: u64,
    /// Of those that have ended.
    buried_ticks: u64,
}

impl TreeCharged {
    /// Of a process and all that it has started; `None` where one of them cannot be read.
    pub(super) fn of(pid: u32) -> Option<TreeCharged> {
        let root = Root::real();
        // Of one that has ended the tree is empty, and its clock is still there.
        let mut processes = Tree::below(&root, pid).processes;
        if processes.is_empty() {
            processes.push(pid);
        }
        let cpu_ns =
            processes.iter().map(|&pid| usage::cpu_ns_of(pid).ok()).sum::<Option<u64>>()?;
        let buried = |&pid: &u32| kin::whole(&root, pid).map(|whole| whole.children_ticks);
        let buried_ticks = processes.iter().map(buried).sum::<Option<u64>>()?;
        Some(TreeCharged { processes, cpu_ns, buried_ticks })
    }

    /// CPU time since an earlier reading, ns; `None` where processes came or went, whose part is
    /// not known.
    pub(super) fn since(&self, earlier: &TreeCharged) -> Option<u64> {
        let same = |of: &TreeCharged| (of.processes.clone(), of.buried_ticks);
        (same(self) == same(earlier)).then(|| self.cpu_ns.saturating_sub(earlier.cpu_ns))
    }
}

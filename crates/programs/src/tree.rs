//! What a program with all its processes has spent.

use iolens_sys::kin::{self, Tree, Whole};
use iolens_sys::proc::Root;
use iolens_sys::usage;

/// What the processes of a program were charged so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeCharged {
    processes: Vec<u32>,
    spent: TreeSpent,
    /// CPU time and page faults of those that have ended.
    buried: [u64; 2],
}

/// What they were charged in a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeSpent {
    /// CPU time.
    pub cpu_ns: u64,
    /// Page faults without I/O, and with.
    pub faults: [u64; 2],
    /// CPU time in user mode and in the kernel, in ticks.
    pub ticks: [u64; 2],
}

impl TreeCharged {
    /// Of a process and all that it has started; `None` where one of them cannot be read.
    #[must_use]
    pub fn of(pid: u32) -> Option<TreeCharged> {
        let root = Root::real();
        // Of one that has ended the tree is empty, and its clock is still there.
        let mut processes = Tree::below(&root, pid).processes;
        if processes.is_empty() {
            processes.push(pid);
        }
        let cpu_ns =
            processes.iter().map(|&pid| usage::cpu_ns_of(pid).ok()).sum::<Option<u64>>()?;
        let all = processes.iter().map(|&pid| kin::whole(&root, pid));
        let all = all.collect::<Option<Vec<Whole>>>()?;
        let sum = |of: fn(&Whole) -> u64| all.iter().map(of).sum();
        let spent = TreeSpent {
            cpu_ns,
            faults: [sum(|one| one.faults()[0]), sum(|one| one.faults()[1])],
            ticks: [sum(|one| one.ticks[0]), sum(|one| one.ticks[1])],
        };
        let buried = [sum(|one| one.children_ticks), sum(|one| one.children_faults)];
        Some(TreeCharged { processes, spent, buried })
    }

    /// What came on top since an earlier reading; `None` where processes came or went, whose part
    /// is not known.
    #[must_use]
    pub fn since(&self, earlier: &TreeCharged) -> Option<TreeSpent> {
        let is_same = self.processes == earlier.processes && self.buried == earlier.buried;
        let (now, then) = (&self.spent, &earlier.spent);
        let between = |now: [u64; 2], then: [u64; 2]| {
            [now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])]
        };
        is_same.then(|| TreeSpent {
            cpu_ns: now.cpu_ns.saturating_sub(then.cpu_ns),
            faults: between(now.faults, then.faults),
            ticks: between(now.ticks, then.ticks),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_came_and_went_leaves_a_trace() {
        let pid = std::process::id();
        let before = TreeCharged::of(pid).unwrap();
        assert_eq!(before.since(&before), Some(TreeSpent::default()));
        // It takes less than a tick.
        Command::new("true").status().unwrap();
        let after = TreeCharged::of(pid).unwrap();
        assert_eq!(after.since(&before), None);
        assert_eq!(TreeCharged::of(u32::MAX), None);
    }
}

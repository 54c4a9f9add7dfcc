//! What the kernel has charged to a process so far, read again and again.

use iolens_sys::kin::{self, Tree, Whole};
use iolens_sys::proc::{ProcFile, Root, io_number};
use iolens_sys::usage;

/// Room for the text of either file; /proc/PID/status is the longer one.
const BUFFER_BYTES: usize = 4096;

/// What was charged to a process, its children left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charged {
    /// Page faults without I/O, and with.
    pub faults: Option<[u64; 2]>,
    /// Context switches because it waited, and because the scheduler took the CPU; `None` where
    /// it has several threads: the kernel tells of the first alone.
    pub switches: Option<[u64; 2]>,
    /// CPU time in user mode and in the kernel, in ticks.
    pub ticks: Option<[u64; 2]>,
    /// Page faults of children that it has waited for: whatever was executed has some.
    pub children_faults: u64,
}

impl Charged {
    /// What came on top since `earlier`.
    pub fn since(&self, earlier: &Charged) -> Charged {
        let between = |now: Option<[u64; 2]>, then: Option<[u64; 2]>| {
            let (now, then) = (now?, then?);
            Some([now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])])
        };
        Charged {
            faults: between(self.faults, earlier.faults),
            switches: between(self.switches, earlier.switches),
            ticks: between(self.ticks, earlier.ticks),
            children_faults: self.children_faults.saturating_sub(earlier.children_faults),
        }
    }
}

/// The files that tell of a process.
#[derive(Debug)]
pub struct Account {
    stat: ProcFile,
    status: ProcFile,
}

impl Account {
    /// Of a process of ours.
    ///
    /// Errors: the file and what the system said.
    pub fn of(pid: u32) -> Result<Account, String> {
        let open = |file: &str| ProcFile::open(&format!("/proc/{pid}/{file}"), BUFFER_BYTES);
        Ok(Account { stat: open("stat")?, status: open("status")? })
    }

    /// What it tells now. Allocates nothing.
    pub fn read(&mut self) -> Charged {
        let (mut charged, threads) = self.stat.read().and_then(of_stat).unwrap_or_default();
        let switches = |text: &str| {
            let number = |name| io_number(text, name);
            Some([number("voluntary_ctxt_switches")?, number("nonvoluntary_ctxt_switches")?])
        };
        if threads == 1 {
            charged.switches = self.status.read().and_then(switches);
        }
        charged
    }

    /// Whether its first thread runs or wants to; false where that cannot be read.
    pub fn runs(&mut self) -> bool {
        let state = |text: &str| text.rsplit_once(") ")?.1.chars().next();
        self.stat.read().and_then(state) == Some('R')
    }
}

/// From the text of /proc/PID/stat, with the number of threads.
///
/// Source: proc_pid_stat(5).
fn of_stat(stat: &str) -> Option<(Charged, u64)> {
    let mut numbers = [0u64; 20];
    // Behind the name comes the third field.
    let fields = stat.rsplit_once(") ")?.1.split_whitespace();
    for (number, field) in numbers[2..].iter_mut().zip(fields) {
        *number = field.parse().unwrap_or(0);
    }
    let field = |number: usize| numbers[number - 1];
    let charged = Charged {
        faults: Some([field(10), field(12)]),
        switches: None,
        ticks: Some([field(14), field(15)]),
        children_faults: field(11) + field(13),
    };
    Some((charged, field(20)))
}

/// Memory that no other process has, bytes, from the text of /proc/PID/status: what is not a file,
/// and files in memory. `None` where the kernel does not tell.
///
/// Source: proc_pid_status(5); fs/proc/task_mmu.c.
pub(crate) fn own_memory_bytes(status: &str) -> Option<u64> {
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    bytes("RssAnon")?.checked_add(bytes("RssShmem")?)
}

// What a program with all its processes has spent.

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
    fn memory_of_its_own_is_what_is_no_file_on_a_disk() {
        let status = "VmRSS:\t    9000 kB\nRssAnon:\t    3000 kB\nRssFile:\t    5000 kB\n\
                      RssShmem:\t    1000 kB\n";
        assert_eq!(own_memory_bytes(status), Some(4_096_000));
        assert_eq!(own_memory_bytes("VmRSS: 1 kB"), None);
        let now = || own_memory_bytes(&std::fs::read_to_string("/proc/self/status").unwrap());
        let before = now().unwrap();
        let block = std::hint::black_box(vec![1u8; 8 << 20]);
        assert!(now().unwrap() >= before + (4 << 20));
        drop(block);
    }

    #[test]
    fn a_process_is_charged_what_it_does() {
        let mut account = Account::of(std::process::id()).unwrap();
        let before = account.read();
        std::hint::black_box(vec![1u8; 4 << 20]);
        let spent = account.read().since(&before);
        assert!(spent.faults.unwrap()[0] > 0 && before.ticks.is_some());
        assert!(Account::of(u32::MAX).is_err());
    }

    #[test]
    fn fields_stand_where_the_manual_says() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 10 11 12 13 14 15 16 17 20 0 1 0 99 0 0";
        let (charged, threads) = of_stat(stat).unwrap();
        assert_eq!((charged.faults, charged.ticks), (Some([10, 12]), Some([14, 15])));
        assert_eq!((charged.children_faults, threads), (24, 1));
        assert_eq!(of_stat(""), None);
    }

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

//! The counts of one end as a row of numbers, each with its name: what is stored of them,
//! and the form in which many are kept.

use super::{Counts, KernelCounts, MultishotCounts, PmuCounts, ZerocopyCounts};
use crate::file::FileCounts;

/// Makes the rows: each column with where it is read, and the counts made of the columns again.
macro_rules! columns {
    ($counts:ident: $($name:ident = $read:expr;)+ => $back:expr) => {
        /// Columns that are no counts of the PMU and not the kernel's own.
        const ACCOUNTS: &[&str] = &[$(stringify!($name)),+];

        fn accounts($counts: &Counts) -> [Option<u64>; PMU_AT] {
            [$($read),+]
        }

        /// Counts whose PMU and kernel counted nothing; `None` where a column is missing that is
        /// always counted, alone or beside the others of its kind.
        fn of_accounts(row: [Option<u64>; PMU_AT]) -> Option<Counts> {
            let [$($name),+] = row;
            Some($back)
        }
    };
}

columns! {
    c:
    messages = Some(c.messages);
    bytes = Some(c.bytes);
    calls = c.calls;
    time_ns = Some(c.time_ns);
    task_clock_ns = c.task_clock_ns;
    voluntary_switches = c.voluntary_switches;
    involuntary_switches = c.involuntary_switches;
    migrations = c.migrations;
    minor_faults = c.minor_faults;
    major_faults = c.major_faults;
    retransmits = c.retransmits;
    softirq_ticks = c.softirq_ticks;
    run_delay_ns = c.run_delay_ns;
    zerocopy_sends = c.zerocopy.map(|z| z.sends);
    zerocopy_completions = c.zerocopy.map(|z| z.completions);
    zerocopy_copied = c.zerocopy.and_then(|z| z.copied);
    enobufs = c.zerocopy.map(|z| z.enobufs);
    segments_out = c.segments_out;
    mapped_bytes = c.mapped_bytes;
    zerocopy_notifications = c.zerocopy.map(|z| z.notifications);
    rearms = c.multishot.map(|m| m.rearms);
    ring_enobufs = c.multishot.map(|m| m.enobufs);
    resident_before_bytes = c.file.and_then(|file| file.resident_before_bytes);
    resident_after_bytes = c.file.and_then(|file| file.resident_after_bytes);
    device_bytes = c.file.and_then(|file| file.device_bytes);
    short_reads = c.file.map(|file| file.short_reads);
    would_block = c.file.map(|file| file.would_block);
    dirty_before_bytes = c.file.and_then(|file| file.dirty_before_bytes);
    dirty_after_bytes = c.file.and_then(|file| file.dirty_after_bytes);
    size_error_bytes = c.file.and_then(|file| file.size_error_bytes);
    => Counts {
        messages: messages?,
        bytes: bytes?,
        calls,
        time_ns: time_ns?,
        task_clock_ns,
        voluntary_switches,
        involuntary_switches,
        migrations,
        minor_faults,
        major_faults,
        retransmits,
        softirq_ticks,
        run_delay_ns,
        zerocopy: match zerocopy_sends {
            None => None,
            Some(sends) => Some(ZerocopyCounts {
                sends,
                completions: zerocopy_completions?,
                notifications: zerocopy_notifications?,
                copied: zerocopy_copied,
                enobufs: enobufs?,
            }),
        },
        segments_out,
        mapped_bytes,
        multishot: match rearms {
            None => None,
            Some(rearms) => Some(MultishotCounts { rearms, enobufs: ring_enobufs? }),
        },
        file: match short_reads {
            None => None,
            Some(short_reads) => Some(FileCounts {
                resident_before_bytes,
                resident_after_bytes,
                device_bytes,
                short_reads,
                would_block: would_block?,
                dirty_before_bytes,
                dirty_after_bytes,
                size_error_bytes,
            }),
        },
        ..Counts::default()
    }
}

/// Where the PMU's counts begin, and where the kernel's do.
const PMU_AT: usize = ACCOUNTS.len();
const KERNEL_AT: usize = PMU_AT + PmuCounts::COUNT;

impl Counts {
    /// How many counts there are.
    pub const COUNT: usize = KERNEL_AT + KernelCounts::COUNT;

    /// Names of the counts as columns have them, in the order of [`Counts::values`].
    pub const NAMES: [&'static str; Self::COUNT] = {
        let mut names = [""; Self::COUNT];
        let mut at = 0;
        while at < Self::COUNT {
            names[at] = if at < PMU_AT {
                ACCOUNTS[at]
            } else if at < KERNEL_AT {
                PmuCounts::NAMES[at - PMU_AT]
            } else {
                KernelCounts::NAMES[at - KERNEL_AT]
            };
            at += 1;
        }
        names
    };

    /// The counts in the order of [`Counts::NAMES`].
    pub fn values(&self) -> [Option<u64>; Self::COUNT] {
        // In three pieces: one by one takes several times as long, and a long run has a million.
        let mut all = [None; Self::COUNT];
        all[..PMU_AT].copy_from_slice(&accounts(self));
        all[PMU_AT..KERNEL_AT].copy_from_slice(&self.pmu.values());
        all[KERNEL_AT..].copy_from_slice(&self.kernel.values());
        all
    }

    /// Counts from values in the order of [`Counts::NAMES`]; `None` where one is missing that
    /// is always counted, alone or beside the others of its kind.
    pub fn from_values(values: &[Option<u64>; Self::COUNT]) -> Option<Counts> {
        Some(Counts {
            pmu: PmuCounts::from_values(std::array::from_fn(|at| values[PMU_AT + at])),
            kernel: KernelCounts::from_values(std::array::from_fn(|at| values[KERNEL_AT + at])),
            ..of_accounts(std::array::from_fn(|at| values[at]))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_comes_back_under_its_name() {
        let numbers: [Option<u64>; Counts::COUNT] = std::array::from_fn(|at| Some(at as u64));
        let counts = Counts::from_values(&numbers).expect("nothing is missing");
        assert_eq!(counts.values(), numbers);
        let at = |name: &str| Counts::NAMES.iter().position(|known| *known == name);
        assert_eq!(at("zerocopy_notifications").map(|at| at as u64), {
            counts.zerocopy.map(|zerocopy| zerocopy.notifications)
        });
        assert_eq!(at("cycles_user").map(|at| at as u64), counts.pmu.cycles_user);
        assert_eq!(at("sys_enter").map(|at| at as u64), counts.kernel.sys_enter);
    }

    #[test]
    fn half_of_what_belongs_together_is_nothing() {
        let few = |at: &[usize]| {
            let mut values = [None; Counts::COUNT];
            at.iter().for_each(|&at| values[at] = Some(7));
            Counts::from_values(&values)
        };
        assert_eq!(few(&[0, 1]), None, "a slice without a time");
        let least = few(&[0, 1, 3]).expect("what is always counted");
        assert_eq!((least.messages, least.calls, least.zerocopy), (7, None, None));
        assert_eq!(few(&[0, 1, 3, 13, 14]), None, "zero-copy sends without ENOBUFS");
        assert!(few(&[0, 1, 3, 13, 14, 16, 19]).is_some_and(|counts| counts.zerocopy.is_some()));
        assert_eq!(few(&[0, 1, 3, 20]), None);
        assert_eq!(few(&[0, 1, 3, 25]), None);
    }
}

//! The counts of one end as a row of numbers, each with its name: what is stored of them,
//! and the form in which many are kept.

use super::{Counts, KernelCounts, MultishotCounts, PmuCounts, ZerocopyCounts};
use crate::file::FileCounts;

/// Counts that no other list names. Of the first four, all but the calls of programs are
/// always counted.
const ACCOUNTS: [&str; 30] = [
    "messages",
    "bytes",
    "calls",
    "time_ns",
    "task_clock_ns",
    "voluntary_switches",
    "involuntary_switches",
    "migrations",
    "minor_faults",
    "major_faults",
    "retransmits",
    "softirq_ticks",
    "run_delay_ns",
    "zerocopy_sends",
    "zerocopy_completions",
    "zerocopy_copied",
    "enobufs",
    "segments_out",
    "mapped_bytes",
    "zerocopy_notifications",
    "rearms",
    "ring_enobufs",
    "resident_before_bytes",
    "resident_after_bytes",
    "device_bytes",
    "short_reads",
    "would_block",
    "dirty_before_bytes",
    "dirty_after_bytes",
    "size_error_bytes",
];

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
    #[must_use]
    pub fn values(&self) -> [Option<u64>; Self::COUNT] {
        let accounts = [
            Some(self.messages),
            Some(self.bytes),
            self.calls,
            Some(self.time_ns),
            self.task_clock_ns,
            self.voluntary_switches,
            self.involuntary_switches,
            self.migrations,
            self.minor_faults,
            self.major_faults,
            self.retransmits,
            self.softirq_ticks,
            self.run_delay_ns,
            self.zerocopy.map(|z| z.sends),
            self.zerocopy.map(|z| z.completions),
            self.zerocopy.and_then(|z| z.copied),
            self.zerocopy.map(|z| z.enobufs),
            self.segments_out,
            self.mapped_bytes,
            self.zerocopy.map(|z| z.notifications),
            self.multishot.map(|m| m.rearms),
            self.multishot.map(|m| m.enobufs),
            self.file.and_then(|file| file.resident_before_bytes),
            self.file.and_then(|file| file.resident_after_bytes),
            self.file.and_then(|file| file.device_bytes),
            self.file.map(|file| file.short_reads),
            self.file.map(|file| file.would_block),
            self.file.and_then(|file| file.dirty_before_bytes),
            self.file.and_then(|file| file.dirty_after_bytes),
            self.file.and_then(|file| file.size_error_bytes),
        ];
        // In three pieces: one by one takes several times as long, and a long run has a million.
        let mut all = [None; Self::COUNT];
        all[..PMU_AT].copy_from_slice(&accounts);
        all[PMU_AT..KERNEL_AT].copy_from_slice(&self.pmu.values());
        all[KERNEL_AT..].copy_from_slice(&self.kernel.values());
        all
    }

    /// Counts from values in the order of [`Counts::NAMES`]; null where one is missing that
    /// is always counted, alone or beside the others of its kind.
    #[must_use]
    pub fn from_values(values: &[Option<u64>; Self::COUNT]) -> Option<Counts> {
        let v = values;
        Some(Counts {
            messages: v[0]?,
            bytes: v[1]?,
            calls: v[2],
            time_ns: v[3]?,
            task_clock_ns: v[4],
            voluntary_switches: v[5],
            involuntary_switches: v[6],
            migrations: v[7],
            minor_faults: v[8],
            major_faults: v[9],
            retransmits: v[10],
            softirq_ticks: v[11],
            run_delay_ns: v[12],
            zerocopy: match v[13] {
                Some(sends) => Some(ZerocopyCounts {
                    sends,
                    completions: v[14]?,
                    notifications: v[19]?,
                    copied: v[15],
                    enobufs: v[16]?,
                }),
                None => None,
            },
            segments_out: v[17],
            mapped_bytes: v[18],
            multishot: match v[20] {
                Some(rearms) => Some(MultishotCounts { rearms, enobufs: v[21]? }),
                None => None,
            },
            file: match v[25] {
                Some(short_reads) => Some(FileCounts {
                    resident_before_bytes: v[22],
                    resident_after_bytes: v[23],
                    device_bytes: v[24],
                    short_reads,
                    would_block: v[26]?,
                    dirty_before_bytes: v[27],
                    dirty_after_bytes: v[28],
                    size_error_bytes: v[29],
                }),
                None => None,
            },
            pmu: PmuCounts::from_values(std::array::from_fn(|at| v[PMU_AT + at])),
            kernel: KernelCounts::from_values(std::array::from_fn(|at| v[KERNEL_AT + at])),
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

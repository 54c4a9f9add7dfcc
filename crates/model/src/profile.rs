//! Where CPU time went: samples of the stacks of an end's threads, taken in
//! trials of their own. Counts of stacks, by the names of their functions:
//! addresses mean nothing after the next boot.

use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::outcome::Counts;
use crate::reading::NotMeasured;
use crate::reading::Status;
pub use crate::trial::Sampling;

/// The samples of one end of one arm.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Samples {
    /// How often each stack was seen, most frequent first.
    pub stacks: Vec<Stack>,
    /// Samples that the kernel took and could not hand over.
    pub lost: u64,
    /// CPU time of the threads that were sampled, by their own clocks, in the same slices. What
    /// an arm has the kernel's threads or other processes do is not in it. `None` in files of an
    /// iolens that did not note it.
    pub cpu_ns: Option<u64>,
}

impl Samples {
    /// All samples that were handed over.
    pub fn total(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).sum()
    }
}

/// A stack and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Functions from the outermost to the one that ran, with `;` between
    /// them and [`KERNEL_MARK`] behind those of the kernel: the folded form
    /// that tools for flame graphs read.
    pub folded: String,
    /// Samples.
    pub samples: u64,
}

/// Stands behind the name of a function of the kernel, as
/// stackcollapse-perf.pl writes it.
pub const KERNEL_MARK: &str = "_[k]";

/// Stands for the kernel's function that returns from a system call, in samples of the
/// instruction behind the call.
pub const SYSCALL_EXIT: &str = "[syscall_exit]";

/// The name of what has no name: code without symbols.
pub const UNNAMED: &str = "[unknown]";

/// A function in a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its name.
    pub symbol: &'a str,
    /// Whether it is the kernel's.
    pub kernel: bool,
}

impl Stack {
    /// Functions, from the outermost to the one that ran.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = Frame<'_>> {
        self.folded.split(';').filter(|name| !name.is_empty()).map(|name| {
            match name.strip_suffix(KERNEL_MARK) {
                Some(symbol) => Frame { symbol, kernel: true },
                None => Frame { symbol: name, kernel: false },
            }
        })
    }
}

/// One sampled trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileTrial {
    /// Number of the trial in its `explain`, from 1.
    pub number: u32,
    /// The setting of the axes.
    pub cell: Cell,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// How the trial ended.
    pub status: Status,
    /// Why, for every status but `ok`.
    pub reason: Option<String>,
    /// From one sample to the next.
    pub sampling: Sampling,
    /// Both ends of every arm.
    pub ends: Vec<ProfileEnd>,
    /// The A/A arm, which took its turns among them unsampled; `None` without it.
    pub unsampled: Option<Unsampled>,
    /// What could not be sampled, and why.
    pub not_measured: Vec<NotMeasured>,
}

/// The work of a sampled arm in slices of their own that were not sampled: what
/// sampling costs is the difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsampled {
    /// Label of the sampled arm.
    pub arm: String,
    /// Messages of the measured slices.
    pub messages: u64,
    /// Time of the measured slices.
    pub time_ns: u64,
}

/// One end of one arm in a sampled trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileEnd {
    /// Label of the arm.
    pub arm: String,
    /// Id of its registry entry.
    pub primitive: String,
    /// Whether this is the sending end.
    pub sends: bool,
    /// Whether the kernel was sampled too.
    pub kernel: bool,
    /// Counts of the measured slices, summed.
    pub counts: Counts,
    /// The samples of the same slices.
    pub samples: Samples,
}

impl ProfileEnd {
    /// Which end it is, in a word.
    pub fn side(&self) -> &'static str {
        if self.sends { "sender" } else { "receiver" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_stack_is_its_functions() {
        let stack = Stack { folded: "main;send;tcp_sendmsg_[k]".to_owned(), samples: 3 };
        let frames: Vec<_> = stack.frames().map(|f| (f.symbol, f.kernel)).collect();
        assert_eq!(frames, [("main", false), ("send", false), ("tcp_sendmsg", true)]);
        let empty = Stack { folded: String::new(), samples: 1 };
        assert_eq!(empty.frames().count(), 0);
    }
}

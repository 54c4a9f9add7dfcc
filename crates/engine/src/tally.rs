//! What an arm's thread has done.

use iolens_model::file::FileCounts;
use iolens_model::outcome::ZerocopyCounts;

/// What an arm's thread has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Messages sent whole.
    pub messages: u64,
    /// Bytes the kernel accepted (for controls: bytes handled).
    pub bytes: u64,
    /// System calls that moved or tried to move payload.
    pub calls: u64,
    /// Zero-copy sends; `None` for arms that make none.
    pub zerocopy: Option<ZerocopyCounts>,
    /// What its processes spent; `None` for arms that start none.
    pub children: Option<Children>,
    /// Reads of a file that were not as asked for; `None` for all others.
    pub file: Option<FileCounts>,
}

impl Tally {
    /// What came on top since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Tally) -> Tally {
        Tally {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            calls: self.calls - earlier.calls,
            zerocopy: self.zerocopy.zip(earlier.zerocopy).map(|(now, then)| now.since(&then)),
            children: self.children.zip(earlier.children).map(|(now, then)| now.since(&then)),
            file: self.file.zip(earlier.file).map(|(now, then)| now.since(&then)),
        }
    }
}

/// What processes spent that an arm has started and waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Children {
    /// CPU time, user and kernel.
    pub cpu_ns: u64,
    /// Context switches because they waited.
    pub voluntary_switches: u64,
    /// Context switches because the scheduler took the CPU.
    pub involuntary_switches: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

impl Children {
    fn since(&self, earlier: &Children) -> Children {
        Children {
            cpu_ns: self.cpu_ns - earlier.cpu_ns,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
        }
    }
}

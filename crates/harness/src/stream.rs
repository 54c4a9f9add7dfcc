//! What one thread of an arm sends and has done: its ring of messages, whose turn it is, its counts
//! and its times.

use hdrhistogram::Histogram as Recorder;
use iolens_model::axes::Iovec;
use iolens_model::file::FileCounts;
use iolens_model::outcome::ZerocopyCounts;
use iolens_model::reading::Histogram;
use iolens_sys::ring::{Layout, MessageRing};

/// The messages of one arm and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Messages in the ring.
    pub messages: usize,
    /// Bytes of each.
    pub message_bytes: usize,
    /// Fields of each.
    pub fields: usize,
    /// When the iovec is built.
    pub iovec: Iovec,
}

/// A ring that is walked round and round.
#[derive(Debug)]
pub struct Stream {
    /// Its messages.
    pub ring: MessageRing,
    /// What was sent so far.
    pub tally: Tally,
    /// Index of the message whose turn it is.
    pub next: usize,
}

impl Stream {
    /// A fresh ring of these messages.
    pub fn new(shape: &Shape, layout: Layout) -> Stream {
        let ring = MessageRing::new(shape.messages, shape.message_bytes, shape.fields, layout);
        Stream { ring, tally: Tally::default(), next: 0 }
    }

    /// The message whose turn comes after so many others, fewer than there are.
    #[inline]
    pub fn ahead(&self, others: usize) -> usize {
        let place = self.next + others;
        if place < self.ring.messages() { place } else { place - self.ring.messages() }
    }

    /// The message whose turn it is; the next call has the next one.
    #[inline]
    pub fn turn(&mut self) -> usize {
        let now = self.next;
        self.next = if now + 1 == self.ring.messages() { 0 } else { now + 1 };
        now
    }
}

// What an arm's thread has done.

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

/// What processes spent that an arm has started. `None` is what is not known of some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Children {
    /// CPU time, user and kernel.
    pub cpu_ns: Option<u64>,
    /// Context switches because they waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because the scheduler took the CPU.
    pub involuntary_switches: Option<u64>,
    /// Page faults served without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for I/O.
    pub major_faults: Option<u64>,
}

/// Nothing was spent so far.
impl Default for Children {
    fn default() -> Children {
        Children {
            cpu_ns: Some(0),
            voluntary_switches: Some(0),
            involuntary_switches: Some(0),
            minor_faults: Some(0),
            major_faults: Some(0),
        }
    }
}

impl Children {
    /// Of whose processes only CPU time is known, if that.
    pub fn of_cpu(cpu_ns: Option<u64>) -> Children {
        Children {
            cpu_ns,
            voluntary_switches: None,
            involuntary_switches: None,
            minor_faults: None,
            major_faults: None,
        }
    }

    /// What `more` spent on top.
    pub fn add(&mut self, more: &Children) {
        *self = self.joined(more, u64::saturating_add);
    }

    fn since(&self, earlier: &Children) -> Children {
        self.joined(earlier, u64::saturating_sub)
    }

    fn joined(&self, other: &Children, join: fn(u64, u64) -> u64) -> Children {
        let join = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| join(a, b));
        Children {
            cpu_ns: join(self.cpu_ns, other.cpu_ns),
            voluntary_switches: join(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: join(self.involuntary_switches, other.involuntary_switches),
            minor_faults: join(self.minor_faults, other.minor_faults),
            major_faults: join(self.major_faults, other.major_faults),
        }
    }
}

// The recorder of times of one thread.

/// Longer times count as this one: a stall limit is shorter, so the trial has failed by then.
const LONGEST_NS: u64 = 60_000_000_000;

/// Times of one thread. All of its memory is there before the first one.
pub struct Times(Recorder<u64>);

impl Default for Times {
    /// Room for times from 1 ns to a minute with three significant digits.
    fn default() -> Times {
        // The bounds are constants that the recorder accepts.
        Times(Recorder::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!()))
    }
}

impl Times {
    /// Records one; a longer one than a minute counts as that.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// What was recorded, bucket by bucket.
    pub fn histogram(&self) -> Histogram {
        let buckets = self.0.iter_recorded();
        Histogram {
            buckets: buckets
                .map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
                .collect(),
        }
    }
}

//! The study `file`: its axes, what a run knew of its file and its engines, and
//! what is counted around a slice that reads.

use serde::{Deserialize, Serialize};

use crate::axes::axis;
use crate::units::{Bytes, Nanos};

axis! {
    /// What of the file is in the page cache when a slice begins.
    CacheState {
        /// All of it.
        Warm = "warm",
        /// Nothing: each slice is preceded by the file's eviction, outside of its
        /// clock. In a virtual machine the host may have it still: "guest-cold".
        Cold = "cold",
    }
}

axis! {
    /// In which order blocks are visited.
    Pattern {
        /// One after the other.
        Sequential = "sequential",
        /// Each once, in an order that looks like chance and follows from a seed.
        Random = "random",
    }
}

axis! {
    /// What becomes of the bytes that were read.
    Consumer {
        /// Nothing: the read alone.
        None = "none",
        /// Every 8-byte word is looked at.
        Scan = "scan",
        /// Every 8-byte word goes into a hash of the file.
        Hash = "hash",
    }
}

/// One setting of the axes that `file` alone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileSetting {
    /// What is in the page cache before.
    pub cache: CacheState,
    /// The order of blocks.
    pub pattern: Pattern,
    /// What becomes of the bytes.
    pub consumer: Consumer,
    /// Reads under way at once in each thread, of engines that can have several.
    pub depth: u32,
}

impl FileSetting {
    /// Reads under way at once, where a plan states nothing.
    pub const DEPTH: u32 = 1;

    /// `depth 8`.
    #[must_use]
    pub fn depth_in_words(&self) -> String {
        format!("depth {}", self.depth)
    }
}

/// The axes of `file`, and the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAxes {
    /// What is in the page cache before.
    pub cache: Vec<CacheState>,
    /// Orders of blocks.
    pub pattern: Vec<Pattern>,
    /// What becomes of the bytes.
    pub consumer: Vec<Consumer>,
    /// Reads under way at once in each thread.
    pub depth: Vec<u32>,
    /// The user's file, which is only read; null for one of ours.
    pub file: Option<String>,
    /// The folder where ours is made; null with a file of the user's.
    pub dir: Option<String>,
    /// Size of ours; null for what the machine's memory and caches suggest.
    pub file_bytes: Option<Bytes>,
    /// Whether the user's file may be evicted from the page cache, of which other
    /// processes that use it hear.
    pub evict: bool,
}

/// An engine as a run knew it, whatever a later build says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineFacts {
    /// Id of the registry entry.
    pub id: String,
    /// What it does, in one line.
    pub summary: String,
    /// The way of the bytes.
    pub path: String,
    /// Whether it reads around the page cache.
    pub is_direct: bool,
    /// Whether several of its reads can be under way at once.
    pub has_depth: bool,
    /// Of a program that copies, its argument list; null for engines of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Vec<String>>,
}

/// The file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The user's file, or the folder of ours.
    pub place: String,
    /// Whether it is ours.
    pub is_ours: bool,
    /// Its size.
    pub bytes: Bytes,
    /// Why it is as large, of ours.
    pub size_reason: String,
    /// The file system.
    pub file_system: String,
    /// The first pass over it after it was written and evicted, from end to end:
    /// never paired with a later one, because a host or a device may know the bytes
    /// from then on. Null where it could not be evicted, and for the user's file,
    /// whose first pass was before us.
    pub first_pass: Option<Nanos>,
    /// What makes it unfit to be timed, a sentence each: holes, extents that were
    /// never written, zeros.
    pub warnings: Vec<String>,
    /// Where it is copied to; null in other studies than `copy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<DestinationFacts>,
}

/// Where copies are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationFacts {
    /// The folder in which ours was made.
    pub place: String,
    /// Its file system.
    pub file_system: String,
}

/// What is found around a slice that reads a file, outside its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileCounts {
    /// Bytes of the file in the page cache when the slice began, in whole pages; null
    /// where the kernel does not say, here and below.
    pub resident_before_bytes: Option<u64>,
    /// And when it had ended.
    pub resident_after_bytes: Option<u64>,
    /// Bytes that storage delivered to the process meanwhile (`read_bytes` of
    /// /proc/self/io).
    pub device_bytes: Option<u64>,
    /// Reads that brought less than was asked for.
    pub short_reads: u64,
    /// Reads that would have had to wait (`EAGAIN`), and were made again.
    pub would_block: u64,
}

impl FileCounts {
    /// What reads came on top since `earlier`; what was found of the file is that of
    /// a slice, and stays.
    #[must_use]
    pub fn since(&self, earlier: &FileCounts) -> FileCounts {
        FileCounts {
            short_reads: self.short_reads - earlier.short_reads,
            would_block: self.would_block - earlier.would_block,
            ..*self
        }
    }

    /// Of several slices: what storage delivered in all of them, and the most that
    /// was resident around one; null where one is.
    #[must_use]
    pub fn and_later(&self, later: &FileCounts) -> FileCounts {
        let most = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        FileCounts {
            resident_before_bytes: most(self.resident_before_bytes, later.resident_before_bytes),
            resident_after_bytes: most(self.resident_after_bytes, later.resident_after_bytes),
            device_bytes: self
                .device_bytes
                .zip(later.device_bytes)
                .map(|(a, b)| a.saturating_add(b)),
            short_reads: self.short_reads.saturating_add(later.short_reads),
            would_block: self.would_block.saturating_add(later.would_block),
        }
    }

    /// Both together: of two threads, one of which has looked at the file.
    #[must_use]
    pub fn plus(&self, other: &FileCounts) -> FileCounts {
        FileCounts {
            resident_before_bytes: self.resident_before_bytes.or(other.resident_before_bytes),
            resident_after_bytes: self.resident_after_bytes.or(other.resident_after_bytes),
            device_bytes: self.device_bytes.or(other.device_bytes),
            short_reads: self.short_reads + other.short_reads,
            would_block: self.would_block + other.would_block,
        }
    }
}

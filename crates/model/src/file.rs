//! The studies `file` and `write`: their axes, what a run knew of its file and its
//! engines, and what is counted around a slice that reads or writes.

use serde::{Deserialize, Serialize};

use crate::axes::{axis, crossed, several};
use crate::external::External;
use crate::units::{Bytes, Nanos};

axis! {
    /// What of the file is in the page cache when a slice begins.
    CacheState {
        /// All of it.
        Warm = "warm",
        /// Nothing: each slice is preceded by the file's eviction, outside of its
        /// clock. In a virtual machine the host may have it still: "guest-cold".
        Cold = "cold",
        /// Nothing, and nothing of any other file, nor of the names and the data about
        /// files: each slice is preceded by dropping the caches of the whole system.
        Dropped = "dropped",
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

axis! {
    /// What is there already of what a slice writes.
    Destination {
        /// All of it: every block is allocated and was written before.
        Existing = "existing",
        /// Nothing: the file is empty, and the file system finds room for each block.
        New = "new",
    }
}

/// One setting of the axes that `write` alone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WriteSetting {
    /// What is there already.
    pub destination: Destination,
    /// The order of blocks.
    pub pattern: Pattern,
    /// Writes under way at once in each thread, of engines that can have several.
    pub depth: u32,
}

impl WriteSetting {
    /// `depth 8`, where it is not as it is where a plan states nothing.
    pub fn unusual(&self) -> Option<String> {
        (self.depth != FileSetting::DEPTH).then(|| self.depth_in_words())
    }

    /// `depth 8`.
    pub fn depth_in_words(&self) -> String {
        format!("depth {}", self.depth)
    }
}

/// The axes of `write`, and where its file is. The file is always ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteAxes {
    /// What is there already.
    pub destination: Vec<Destination>,
    /// Orders of blocks.
    pub pattern: Vec<Pattern>,
    /// Writes under way at once in each thread.
    pub depth: Vec<u32>,
    /// The folder where the file is made; `None` for that of temporary files.
    pub dir: Option<String>,
    /// Bytes of the region that each arm of a trial writes to; `None` for what sizes
    /// and memory suggest.
    pub file_bytes: Option<Bytes>,
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

impl CacheState {
    /// Whether the page cache holds nothing of the file when a slice begins.
    pub fn is_cold(self) -> bool {
        match self {
            CacheState::Warm => false,
            CacheState::Cold | CacheState::Dropped => true,
        }
    }
}

axis! {
    /// What is dropped of the whole system's caches (proc_sys_vm(5), `drop_caches`).
    DropMode {
        /// The page cache.
        Pages = "1",
        /// Dentries and inodes: names, and what is known about files.
        Slab = "2",
        /// Both.
        Both = "3",
    }
}

impl DropMode {
    /// What it drops, in words.
    pub fn what(self) -> &'static str {
        match self {
            DropMode::Pages => "pages",
            DropMode::Slab => "dentries and inodes",
            DropMode::Both => "both",
        }
    }
}

impl FileSetting {
    /// Reads under way at once, where a plan states nothing.
    pub const DEPTH: u32 = 1;

    /// `depth 8`.
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
    /// The user's file, which is only read; `None` for one of ours.
    pub file: Option<String>,
    /// The folder where ours is made; `None` with a file of the user's.
    pub dir: Option<String>,
    /// Size of ours; `None` for what the machine's memory and caches suggest.
    pub file_bytes: Option<Bytes>,
    /// Whether the user's file may be evicted from the page cache, of which other
    /// processes that use it hear.
    pub evict: bool,
    /// What of the whole system's caches may be dropped, and is before the passes, to
    /// see what each is worth; nothing without consent.
    pub drop_caches: Vec<DropMode>,
    /// Programs of the user's that are arms; they speak the loop protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<External>,
}

/// The fact of a program that reads ([`ArmFact`](crate::outcome::ArmFact)) which says how many
/// bytes its system calls have read for each block.
pub const PROGRAM_READ_BYTES: &str = "bytes read by system calls, per block";

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
    /// Whether several of its reads, or writes, can be under way at once.
    pub has_depth: bool,
    /// Whether each block is on the device, as far as that says, before the next one
    /// begins.
    pub is_durable: bool,
    /// Of a program that copies, its argument list; `None` for engines of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// from then on. `None` where it could not be evicted, and for the user's file,
    /// whose first pass was before us.
    pub first_pass: Option<Nanos>,
    /// What makes it unfit to be timed, a sentence each: holes, extents that were
    /// never written, zeros.
    pub warnings: Vec<String>,
    /// What writing to it is about; `None` where it is only read.
    pub writing: Option<WritingFacts>,
    /// What came after dropping caches of the whole system; empty without consent.
    pub dropped: Vec<AfterDrop>,
    /// Where it is copied to; `None` in other studies than `copy`.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// What came after caches of the whole system were dropped, or nothing was, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterDrop {
    /// What was dropped; `None` for nothing, which the others are compared with.
    pub mode: Option<DropMode>,
    /// The first read of a page of the file.
    pub page: Nanos,
    /// The first read of what follows it, a MiB or what there is.
    pub mib: Nanos,
    /// open(2), fstat(2) and close(2) of every file of a folder of ours, which are
    /// empty.
    pub names: Nanos,
    /// Of the file's first MiB and page, the bytes in the page cache before; `None`
    /// where the kernel does not say, here and below.
    pub resident_bytes: Option<u64>,
    /// The page cache (`Cached` of /proc/meminfo) after the drop, over that before, in
    /// thousandths.
    pub cached_permille: Option<u64>,
    /// Dentries that nobody uses (the second number of /proc/sys/fs/dentry-state)
    /// after the drop, over those before, in thousandths.
    pub unused_dentries_permille: Option<u64>,
}

/// What a run that writes knew of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritingFacts {
    /// Bytes of a region of the file: each arm of a trial writes to one of its own.
    pub region: Bytes,
    /// Regions of the file.
    pub regions: u32,
    /// Dirty memory from which on the kernel writes back by itself
    /// (`nr_dirty_background_threshold` of /proc/vmstat), when the run began; `None`
    /// where it does not say.
    pub dirty_background: Option<Bytes>,
    /// How long it took to write a page of the file and bring it to the device with
    /// fdatasync(2), each time, in the order in which it was tried.
    pub flushes: Vec<Nanos>,
}

impl WritingFacts {
    /// The median time of writing a page and bringing it to the device; `None` where
    /// it was not tried.
    pub fn flush(&self) -> Option<Nanos> {
        let mut flushes = self.flushes.clone();
        flushes.sort_unstable();
        flushes.get(flushes.len() / 2).copied()
    }
}

impl FileAxes {
    /// Every setting, in the order of the axes.
    pub(crate) fn settings(&self) -> Vec<FileSetting> {
        let first = FileSetting {
            cache: CacheState::Warm,
            pattern: Pattern::Sequential,
            consumer: Consumer::None,
            depth: FileSetting::DEPTH,
        };
        let all = crossed(vec![first], &self.cache, |one, &cache| one.cache = cache);
        let all = crossed(all, &self.pattern, |one, &pattern| one.pattern = pattern);
        let all = crossed(all, &self.consumer, |one, &consumer| one.consumer = consumer);
        crossed(all, &self.depth, |one, &depth| one.depth = depth)
    }

    /// How many values each axis has.
    pub(crate) fn lengths(&self) -> [usize; 4] {
        [self.cache.len(), self.pattern.len(), self.consumer.len(), self.depth.len()]
    }

    pub(crate) fn told_apart(&self, file: &FileSetting) -> Vec<String> {
        let rows = [
            (self.cache.len(), file.cache.to_string()),
            (self.pattern.len(), file.pattern.to_string()),
            (self.consumer.len(), format!("consumer {}", file.consumer)),
            (self.depth.len(), file.depth_in_words()),
        ];
        several(rows)
    }
}

impl WriteAxes {
    /// Every setting, in the order of the axes.
    pub(crate) fn settings(&self) -> Vec<WriteSetting> {
        let first = WriteSetting {
            destination: Destination::Existing,
            pattern: Pattern::Sequential,
            depth: FileSetting::DEPTH,
        };
        let all = crossed(vec![first], &self.destination, |one, &place| one.destination = place);
        let all = crossed(all, &self.pattern, |one, &pattern| one.pattern = pattern);
        crossed(all, &self.depth, |one, &depth| one.depth = depth)
    }

    /// How many values each axis has.
    pub(crate) fn lengths(&self) -> [usize; 3] {
        [self.destination.len(), self.pattern.len(), self.depth.len()]
    }

    pub(crate) fn told_apart(&self, write: &WriteSetting) -> Vec<String> {
        several([
            (self.destination.len(), write.destination.to_string()),
            (self.pattern.len(), write.pattern.to_string()),
            (self.depth.len(), write.depth_in_words()),
        ])
    }
}

/// What is found around a slice that reads or writes a file, outside its clock: of
/// the whole file that is read, of the arm's region of the one that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileCounts {
    /// Bytes of the file in the page cache when the slice began, in whole pages; `None`
    /// where the kernel does not say, here and below.
    pub resident_before_bytes: Option<u64>,
    /// And when it had ended.
    pub resident_after_bytes: Option<u64>,
    /// Bytes that storage delivered to the process meanwhile (`read_bytes` of
    /// /proc/self/io).
    pub device_bytes: Option<u64>,
    /// Reads that brought less than was asked for, and writes that took less.
    pub short_reads: u64,
    /// Reads that would have had to wait (`EAGAIN`), and were made again.
    pub would_block: u64,
    /// Bytes in the page cache that were not on the device when the slice began, in
    /// whole pages: dirty, or under write-back; `None` where the file is only read, here
    /// and below.
    pub dirty_before_bytes: Option<u64>,
    /// And when it had ended: what is brought to the device outside of its clock.
    pub dirty_after_bytes: Option<u64>,
    /// By how much the size of the file then was not what it should be.
    pub size_error_bytes: Option<u64>,
}

impl FileCounts {
    /// What reads came on top since `earlier`; what was found of the file is that of
    /// a slice, and stays.
    pub fn since(&self, earlier: &FileCounts) -> FileCounts {
        FileCounts {
            short_reads: self.short_reads - earlier.short_reads,
            would_block: self.would_block - earlier.would_block,
            ..*self
        }
    }

    /// Of several slices: what storage delivered in all of them, and the most that
    /// was resident around one; `None` where one is.
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
            dirty_before_bytes: most(self.dirty_before_bytes, later.dirty_before_bytes),
            dirty_after_bytes: most(self.dirty_after_bytes, later.dirty_after_bytes),
            size_error_bytes: most(self.size_error_bytes, later.size_error_bytes),
        }
    }

    /// Both together: of two threads, one of which has looked at the file.
    pub fn plus(&self, other: &FileCounts) -> FileCounts {
        let device_bytes = match (self.device_bytes, other.device_bytes) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        FileCounts {
            resident_before_bytes: self.resident_before_bytes.or(other.resident_before_bytes),
            resident_after_bytes: self.resident_after_bytes.or(other.resident_after_bytes),
            device_bytes,
            short_reads: self.short_reads + other.short_reads,
            would_block: self.would_block + other.would_block,
            dirty_before_bytes: self.dirty_before_bytes.or(other.dirty_before_bytes),
            dirty_after_bytes: self.dirty_after_bytes.or(other.dirty_after_bytes),
            size_error_bytes: self.size_error_bytes.or(other.size_error_bytes),
        }
    }
}

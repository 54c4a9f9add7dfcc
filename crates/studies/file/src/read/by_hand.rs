//! One reading of a file by hand: some threads, each with a range of it, and what
//! was found before and after.

use iolens_model::tune::Extent;
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::errno::Errno;
use iolens_sys::proc::{self, Root};
use serde::{Deserialize, Serialize};

use super::consume::{Consumer, Digest};
use super::drive::{Setup, Tally};
use super::engine::Entry;
use crate::examine::examine;
use crate::file_path::FilePath;
use crate::part::{Part, Pattern};
use crate::part::{Together, duration, timed, together};
use crate::residency::{self, REMAINDER_MAX, Residency};
use crate::subject::Subject;
use iolens_harness::host;
use iolens_harness::op::{Budget, Fact, Span};

/// What is to be read, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The file.
    pub path: FilePath,
    /// The engine's id.
    pub engine: String,
    /// Bytes of a block; at least 1.
    pub block_bytes: u64,
    /// What of the file; `None` for all. For trials: on a command line it is `count`.
    pub extent: Option<Extent>,
    /// Blocks from its beginning; `None` for all.
    pub count: Option<u64>,
    /// How many times each thread reads its range, on one clock; at least 1.
    pub loops: u32,
    /// Threads, each with a range of its own; at least 1.
    pub threads: u32,
    /// Reads under way at once in each thread; 1 for engines that can have no more.
    pub depth: u32,
    /// The order of blocks in each range.
    pub pattern: Pattern,
    /// What a random order follows from.
    pub seed: u64,
    /// What becomes of the bytes.
    pub consumer: Consumer,
    /// Whether the file is brought out of the page cache first.
    pub evict: bool,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The file system of the file.
    pub file_system: String,
    /// Size of the file at the beginning.
    pub file_bytes: u64,
    /// Threads that read: no more than there are blocks.
    pub threads: u32,
    /// What all threads did.
    pub tally: Tally,
    /// Whether one byte of each page was touched, and the others were not read.
    pub only_touched: bool,
    /// From the first call of the first thread to the last one of the last.
    pub time: Nanos,
    /// The hash of what was read; `None` if it was not asked for.
    pub checksum: Option<u64>,
    /// The XOR; `None` if it was not asked for.
    pub xor: Option<u32>,
    /// What of the range was in the page cache before.
    pub resident_before: Residency,
    /// And after.
    pub resident_after: Residency,
    /// Bytes that storage delivered to this process meanwhile (`read_bytes` of
    /// /proc/self/io); `None` where the kernel does not say.
    pub device_bytes: Option<u64>,
    /// CPU time of the process while it read, user and kernel; `None` where it cannot be read.
    pub cpu: Option<(Nanos, Nanos)>,
    /// What the engine says about itself: names and values.
    pub facts: Vec<(String, String)>,
    /// What a reader of these numbers should know, a sentence each.
    pub notes: Vec<String>,
    /// Why not all was read that was to be; `None` where all was.
    pub failure: Option<String>,
}

/// Reads a file.
///
/// Errors: why nothing was read: what was tried and what the system said.
pub fn read(wish: &Wish) -> Result<Done, String> {
    let entry = crate::engines::that_reads(&wish.engine)
        .ok_or_else(|| format!("this build has no engine `{}`", wish.engine))?;
    let subject = Subject::open(&wish.path.path())?;
    let asked = wish.count.map_or(u64::MAX, |count| count.saturating_mul(wish.block_bytes));
    let all = Extent { offset: 0, bytes: subject.bytes() };
    let extent = wish.extent.unwrap_or(all);
    let start = extent.offset.min(subject.bytes());
    let bytes = (subject.bytes() - start).min(extent.bytes).min(asked);
    let parts = Part::split(bytes, wish.block_bytes, wish.threads);
    let parts: Vec<Part> = parts.into_iter().map(|part| part.moved(start)).collect();
    check_memory(wish, parts.len())?;
    let mut notes = Vec::new();
    if wish.evict {
        notes.extend(evict(&subject)?);
    }
    let resident_before = Residency::of(&subject, start, bytes);
    let delivered = delivered_bytes();
    let outcome = read_parts(entry, &subject, wish, &parts)?;
    let device_bytes =
        delivered.zip(delivered_bytes()).map(|(before, after)| after.saturating_sub(before));
    let resident_after = Residency::of(&subject, start, bytes);
    if entry.is_direct {
        notes.extend(fallen_back(&resident_before, &resident_after));
        notes.extend(from_memory(&subject, outcome.tally.bytes, device_bytes));
    }
    let failure = outcome.failure.map(|errno| broke_off(&subject, errno));
    notes.extend(grown(&subject));
    notes.extend(examine(&subject).map_or_else(|why| vec![why], |findings| findings.warnings()));
    let digest = outcome.digest;
    Ok(Done {
        file_system: subject.file_system().to_owned(),
        file_bytes: subject.bytes(),
        threads: u32::try_from(parts.len().max(1)).unwrap_or(u32::MAX),
        time: outcome.time,
        checksum: digest.checksum.map(|checksum| checksum.value(outcome.tally.bytes)),
        xor: digest.xor.map(|xor| xor.value()),
        tally: outcome.tally,
        only_touched: entry.only_touches(wish.consumer != Consumer::None),
        resident_before,
        resident_after,
        device_bytes,
        cpu: outcome.cpu,
        facts: outcome.facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        notes,
        failure,
    })
}

/// Buffers may take half of the machine's memory.
fn check_memory(wish: &Wish, threads: usize) -> Result<(), String> {
    let needed =
        wish.block_bytes.saturating_mul(u64::from(wish.depth)).saturating_mul(threads as u64);
    match host::memory(&Root::real()).value() {
        Some(memory) if needed > memory.0 / 2 => Err(format!(
            "buffers of {} for {} reads in each of {threads} threads need {} of memory, more than \
             half of {memory}: fewer threads, a smaller depth or smaller blocks are possible",
            Bytes(wish.block_bytes),
            wish.depth,
            Bytes(needed)
        )),
        _ => Ok(()),
    }
}

/// Evicts, and says if that is not known to have worked.
fn evict(subject: &Subject) -> Result<Option<String>, String> {
    let left = residency::evict(subject)?;
    Ok(match (&left, left.share()) {
        (Residency::Unknown(why), _) => {
            Some(format!("whether the file was evicted is not known: {why}"))
        }
        (_, Some(share)) if share > REMAINDER_MAX => Some(match subject.file_system() {
            "tmpfs" | "ramfs" => {
                format!("{} is memory: nothing can be evicted from it", subject.file_system())
            }
            _ => format!(
                "not all of the file was evicted, {:.1}% stayed: the kernel keeps pages that a \
                 process has mapped or locked, or that are being written",
                share * 100.0
            ),
        }),
        _ => None,
    })
}

/// What came of all threads.
struct Outcome {
    tally: Tally,
    digest: Digest,
    time: Nanos,
    cpu: Option<(Nanos, Nanos)>,
    facts: Vec<Fact>,
    failure: Option<Errno>,
}

/// What came of one.
struct Share {
    span: Span,
    failure: Option<Errno>,
    tally: Tally,
    digest: Digest,
    facts: Vec<Fact>,
}

/// Reads every part on a thread of its own.
fn read_parts(
    entry: &Entry,
    subject: &Subject,
    wish: &Wish,
    parts: &[Part],
) -> Result<Outcome, String> {
    let Wish { loops, pattern, seed, depth, consumer, .. } = *wish;
    let blocks = |part: Part| part.blocks().saturating_mul(u64::from(loops));
    let open =
        |part| entry.start(Setup { subject, part, pattern, first: 0, seed, depth, consumer });
    let read = together(parts, open, |reader, part| {
        let (span, failure) = timed(|| reader.run(&Budget::messages(blocks(part), 1)));
        let (tally, digest, facts) = (reader.tally(), reader.digest(), reader.facts());
        Share { span, failure, tally, digest, facts }
    })?;
    Ok(add_up(consumer, read))
}

fn add_up(consumer: Consumer, read: Together<Share>) -> Outcome {
    let Together { each: shares, cpu } = read;
    let failure = shares.iter().find_map(|share| share.failure);
    let mut digest = consumer.of_nothing();
    shares.iter().for_each(|share| digest.merge(&share.digest));
    Outcome {
        tally: shares.iter().fold(Tally::default(), |sum, share| sum.and(share.tally)),
        digest,
        time: duration(shares.iter().map(|share| share.span)),
        cpu,
        facts: shares.into_iter().next().map_or_else(Vec::new, |share| share.facts),
        failure,
    }
}

/// What storage has delivered to this process so far.
pub(crate) fn delivered_bytes() -> Option<u64> {
    proc::io_number(&Root::real().read("proc/self/io").ok()?, "read_bytes")
}

/// What is to be said of direct I/O that filled the page cache: it was none.
pub(crate) fn fallen_back(before: &Residency, after: &Residency) -> Option<String> {
    match (before, after) {
        (Residency::Known { cached, .. }, Residency::Known { cached: now, .. }) => (now > cached)
            .then(|| {
                format!(
                    "the page cache grew by {} pages: the file system went through it, although \
                     it had accepted O_DIRECT",
                    now - cached
                )
            }),
        _ => Some(
            "whether the file system went through the page cache after all is not known: \
             cachestat(2) does not say"
                .to_owned(),
        ),
    }
}

/// A direct reading that the device did not deliver came from somewhere else.
fn from_memory(subject: &Subject, bytes: u64, device_bytes: Option<u64>) -> Option<String> {
    let delivered = device_bytes.filter(|&delivered| delivered < bytes)?;
    let from = match subject.file_system() {
        "tmpfs" | "ramfs" => "it is memory, which O_DIRECT reads with a copy",
        "fuse" | "nfs" | "9p" | "virtiofs" | "cifs" | "smb2" => {
            "a process or another machine serves the file system"
        }
        _ => "the rest is holes, or the file system had it in memory",
    };
    Some(format!("{delivered} of {bytes} bytes came from a device: {from}"))
}

/// Why a reading ended early.
pub(crate) fn broke_off(subject: &Subject, errno: Errno) -> String {
    let now = subject.about_now().map(|about| about.bytes).ok();
    match (errno, now) {
        (Errno::ENODATA, Some(now)) if now < subject.bytes() => format!(
            "{} was truncated while it was read: it had {} bytes at the beginning and has {now} now",
            subject.name(),
            subject.bytes()
        ),
        (Errno::ENODATA, _) => format!(
            "{} ended before its {} bytes were read: it changed meanwhile",
            subject.name(),
            subject.bytes()
        ),
        (Errno::EIO, _) => format!(
            "cannot read {}: {errno}: its device or file system failed; `dmesg` may say more",
            subject.name()
        ),
        _ => format!("cannot read {}: {errno}", subject.name()),
    }
}

/// A file that grew is read as far as it was.
fn grown(subject: &Subject) -> Option<String> {
    let now = subject.about_now().ok()?.bytes;
    (now > subject.bytes()).then(|| {
        format!("the file grew by {} bytes meanwhile, which were not read", now - subject.bytes())
    })
}

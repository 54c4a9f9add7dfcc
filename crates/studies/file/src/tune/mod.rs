//! What `tune` needs besides readings and copyings by hand: what is known of a file
//! before it is timed, memory as a bound, programs of others, and what happened to
//! the machine meanwhile.

pub mod facts;
pub mod program;

use std::os::fd::AsFd;

use iolens_harness::op::Span;
use iolens_harness::{environment, host};
use iolens_model::tune::LimitKind;
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::clock;
use iolens_sys::file::mapping::Mapping;
use iolens_sys::pages::{HUGE_PAGE_BYTES, PageKind, Pages};
use iolens_sys::proc::Root;
use iolens_sys::scan::scan;
use serde::{Deserialize, Serialize};

use self::facts::huge_mapped_share;
use crate::file_path::FilePath;
use crate::part::{Part, duration, together};
use crate::residency::{self, REMAINDER_MAX};
use crate::subject::Subject;

// Memory of our own, read or copied by some threads: what bounds everybody who has
// to read or copy as much. Huge pages where the kernel has them, so that it is the
// memory that bounds and not its tables; nothing but the one pass is timed.

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitWish {
    /// Read, or copied.
    pub kind: LimitKind,
    /// Threads, each with a part of it; at least 1.
    pub threads: u32,
    /// Bytes that are read, or copied, once.
    pub bytes: u64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitFound {
    /// From the first thread's beginning to the last one's end.
    pub time: Nanos,
    /// CPU time, user and kernel, with that of filling the memory; `None` where it cannot
    /// be read.
    pub cpu: Option<(Nanos, Nanos)>,
}

/// Reads or copies memory.
///
/// Errors: there is not so much, or the kind is no memory.
pub fn measure_limit(wish: &LimitWish) -> Result<LimitFound, String> {
    let copies = match wish.kind {
        LimitKind::Scan => false,
        LimitKind::Copy => true,
        other => return Err(format!("`{other}` is not a memory limit")),
    };
    let needed = wish.bytes.saturating_mul(if copies { 2 } else { 1 });
    let room = host::memory_room(&Root::real());
    if let Some((room, words)) = room.iter().find(|(room, _)| needed > room.0 / 2) {
        return Err(format!(
            "reading {} of memory needs more than half of the {room} that is {words}",
            Bytes(needed)
        ));
    }
    let parts = Part::split(wish.bytes, HUGE_PAGE_BYTES as u64, wish.threads);
    let open = |part: Part| {
        let bytes = usize::try_from(part.bytes()).unwrap_or(usize::MAX);
        let pages = || {
            let made = Pages::new(bytes, PageKind::Huge);
            made.map_err(|errno| format!("cannot allocate {}: {errno}", Bytes(part.bytes())))
        };
        Ok((pages()?, if copies { Some(pages()?) } else { None }, bytes))
    };
    let done = together(&parts, open, |(source, target, bytes), _| {
        let first_call_ns = clock::monotonic_ns();
        match target {
            Some(target) => {
                target[..*bytes].copy_from_slice(std::hint::black_box(&source[..*bytes]));
                std::hint::black_box(target);
            }
            None => {
                std::hint::black_box(scan(&source[..*bytes]));
            }
        }
        Span { first_call_ns, last_call_ns: clock::monotonic_ns() }
    })?;
    Ok(LimitFound { time: duration(done.each.into_iter()), cpu: done.cpu })
}

// What happened to the machine while something was measured.

/// A tick of the counters of /proc/stat: `USER_HZ`, which is 100 on all Linux.
const TICK_NS: u64 = 10_000_000;

/// Watches from its beginning on.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    before: environment::Before,
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Time that a hypervisor took, over all processors; `None` where it is not told.
    pub stolen: Option<Nanos>,
    /// Whether a quota held this process, or one beside it, back.
    pub was_throttled: bool,
}

impl Watch {
    /// Begins.
    pub fn begin() -> Watch {
        let root = Root::real();
        Watch { before: environment::Before::read(&root), root }
    }

    /// Ends.
    pub fn end(self) -> Seen {
        let environment = self.before.after(&self.root);
        let stolen = environment.steal_ticks.value().map(|ticks| Nanos(ticks * TICK_NS));
        let throttled = environment.throttled.value();
        Seen { stolen, was_throttled: throttled.is_some_and(|held| held.periods > 0) }
    }
}

// The cure for a file that is in the page cache in small pieces: it is dropped from there and
// read again by faults of a mapping that asks for huge pages (`MADV_HUGEPAGE`), for which the
// kernel reads, and keeps, folios as large where the file system can.

/// Mapped at a time: a whole number of huge pages.
const WINDOW_BYTES: u64 = 1 << 30;

/// What is to be cured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CureWish {
    /// The file, all of which is in the page cache.
    pub source: FilePath,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cured {
    /// Of dropping the file and reading it again.
    pub time: Nanos,
    /// Share of the file that huge pages map before; `None` where it is not told.
    pub huge_before_share: Option<f64>,
    /// And after.
    pub huge_after_share: Option<f64>,
}

/// Drops a file from the page cache and reads it again in pieces as large as can be.
///
/// Errors: why it could not be dropped, or read.
pub fn cure(wish: &CureWish) -> Result<Cured, String> {
    let subject = Subject::open(&wish.source.path())?;
    let root = Root::real();
    let huge_before_share = huge_mapped_share(&subject, &root);
    let begin_ns = clock::monotonic_ns();
    let left = residency::evict(&subject)?;
    if let Some(share) = left.share().filter(|share| *share > REMAINDER_MAX) {
        let stayed = 100.0 * share;
        return Err(format!("{stayed:.1}% of {} stayed in the page cache", subject.name()));
    }
    read_in_huge_pages(&subject)?;
    let time = Nanos(clock::monotonic_ns() - begin_ns);
    Ok(Cured { time, huge_before_share, huge_after_share: huge_mapped_share(&subject, &root) })
}

fn read_in_huge_pages(subject: &Subject) -> Result<(), String> {
    let file = subject.reopen_unnoticed().map_err(|e| format!("cannot open it again: {e}"))?;
    let mut offset = 0;
    while offset < subject.bytes() {
        let bytes = (subject.bytes() - offset).min(WINDOW_BYTES);
        let length = usize::try_from(bytes).map_err(|_| "it is too large to be mapped")?;
        let mapping = Mapping::of_file(file.as_fd(), offset, length)
            .map_err(|errno| format!("cannot map {}: {errno}", subject.name()))?;
        mapping
            .prefer_huge_pages()
            .map_err(|errno| format!("cannot ask for huge pages (MADV_HUGEPAGE): {errno}"))?;
        mapping
            .populate(0..length)
            .map_err(|errno| format!("cannot read {} again: {errno}", subject.name()))?;
        offset += bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_copied_by_one_and_more() {
        for kind in [LimitKind::Scan, LimitKind::Copy] {
            for threads in [1, 2] {
                let wish = LimitWish { kind, threads, bytes: 5 << 20 };
                let done = measure_limit(&wish).expect("a few megabytes");
                assert!(done.time.0 > 0, "{done:?}");
            }
        }
    }

    #[test]
    fn too_much_and_no_memory_are_refused() {
        let wish = LimitWish { kind: LimitKind::Scan, threads: 1, bytes: u64::MAX / 4 };
        let why = measure_limit(&wish).unwrap_err();
        assert!(why.contains("more than half"), "{why}");
        let wish = LimitWish { kind: LimitKind::Device, threads: 1, bytes: 1 };
        assert!(measure_limit(&wish).unwrap_err().contains("`device` is not a memory limit"));
    }

    #[test]
    fn nothing_happens_in_no_time() {
        let seen = Watch::begin().end();
        // Half a second of a machine that had none to itself.
        assert!(seen.stolen.is_none_or(|stolen| stolen.0 < 500_000_000), "{seen:?}");
    }

    #[test]
    fn a_cured_file_is_there_again_and_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let bytes: Vec<u8> = (0..5_000_003_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        match cure(&CureWish { source: FilePath::new(&path) }) {
            Ok(done) => assert!(done.time.0 > 0),
            // What is in memory alone cannot be dropped, nor hinted at by kernels without it.
            Err(why) => assert!(why.contains("stayed") || why.contains("MADV_HUGEPAGE"), "{why}"),
        }
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

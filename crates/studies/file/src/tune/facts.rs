//! What is known of a file, its folder and the machine before anything is timed, and
//! which engines can work on them.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iolens_model::file::Consumer;
use iolens_model::tune::{Candidate, Facts, Pruned, Way};
use iolens_model::units::Bytes;
use iolens_sys::file::mapping::Mapping;
use iolens_sys::pages::page_bytes;
use iolens_sys::proc::Root;
use iolens_sys::{calls, clock, cpuid, process, storage};
use serde::{Deserialize, Serialize};

use crate::destination::{Destination, Existing};
use crate::engines::{COPYING, READING};
use crate::examine::examine;
use crate::file_path::FilePath;
use crate::residency::{REMAINDER_MAX, Residency};
use crate::subject::Subject;
use crate::ways::Entry;
use crate::ways::ring::locked_bytes_max;
use iolens_harness::cgroup;
use iolens_harness::host;
use iolens_harness::surroundings;

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The file.
    pub source: FilePath,
    /// The folder of copies; `None` for reading.
    pub folder: Option<FilePath>,
    /// What becomes of the bytes of a reading.
    pub consumer: Consumer,
    /// Whether the file will be out of the page cache.
    pub is_cold: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What is known.
    pub facts: Facts,
    /// Engines that work, simplest first.
    pub candidates: Vec<Candidate>,
    /// Engines that do not, and why.
    pub pruned: Vec<Pruned>,
    /// Free bytes of the folder's file system; `None` for reading.
    pub free_bytes: Option<u64>,
}

/// Finds out.
///
/// Errors: why the file cannot be read, or no copy made in the folder.
pub fn find(wish: &Wish) -> Result<Done, String> {
    let subject = Subject::open(&wish.source.path())?;
    if subject.bytes() == 0 {
        return Err(format!("{} is empty: there is nothing to read", subject.name()));
    }
    let folder = wish.folder.as_ref().map(FilePath::path);
    let placed = folder.as_deref().map(|folder| place(folder, &subject)).transpose()?;
    let (candidates, pruned) = match &folder {
        None => readers(&subject, wish),
        Some(folder) => copiers(&subject, folder, wish.is_cold),
    };
    let facts = facts(&subject, &wish.source.path(), placed)?;
    let free_bytes = folder.and_then(|folder| storage::free_bytes(&folder).ok());
    Ok(Done { facts, candidates, pruned, free_bytes })
}

/// The folder and its file system, if a copy may be made there.
fn place(folder: &Path, source: &Subject) -> Result<(String, String), String> {
    match std::fs::metadata(folder) {
        Ok(about) if !about.is_dir() => {
            return Err(format!(
                "cannot make copies in {}: it is not a folder\n  name the folder that a copy would \
                 be made in",
                folder.display()
            ));
        }
        _ => {}
    }
    let path = folder.join(format!("iolens-tune-{}", process::id()));
    let destination = Destination::check(&path, Existing::Refuse, Some(source))?;
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Ok((whole.display().to_string(), destination.file_system()?))
}

/// What is known.
fn facts(
    subject: &Subject,
    path: &Path,
    folder: Option<(String, String)>,
) -> Result<Facts, String> {
    let root = Root::real();
    let limits = host::limits(&root)?;
    let guest = surroundings::guest(&root, cpuid::hypervisor().as_deref());
    let resident_share = Residency::of(subject, 0, subject.bytes()).share();
    let (major, minor) = subject.about().device;
    let mut warnings = examine(subject)?.warnings();
    warnings.extend(cgroup::device_limits(&root, (major, minor)));
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let changed = std::fs::metadata(&whole).ok();
    let changed_ns = changed.and_then(|about| {
        let seconds = u64::try_from(about.mtime()).ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(about.mtime_nsec().cast_unsigned())
    });
    let [_, kernel, ..] = process::uname();
    let model = host::keyed(&root, "proc/cpuinfo", "model name", ':');
    Ok(Facts {
        file: whole.display().to_string(),
        file_bytes: subject.bytes(),
        changed_ns,
        file_system: subject.file_system().to_owned(),
        device: format!("{major}:{minor}"),
        direct_alignment_bytes: subject.about().direct.map(|alignment| alignment.offset),
        resident_share,
        huge_mapped_share: resident_share
            .filter(|&share| share >= 1.0 - REMAINDER_MAX)
            .and_then(|_| huge_mapped_share(subject, &root)),
        folder,
        kernel,
        cpu: model.value().cloned().unwrap_or_else(|| "unknown".to_owned()),
        cpus: u32::try_from(limits.cpus.len()).unwrap_or(u32::MAX),
        memory_bytes: limits.memory.value().map(|bytes| bytes.0),
        cgroup_cpus: cgroup::cpu_limit(&root).ok().and_then(|limit| limit.cpus),
        hypervisor: guest.is_virtual().then(|| guest.words()),
        crossing_ns: crossing_ns(),
        warnings,
    })
}

/// One crossing into the kernel and back, the fastest of several repetitions.
fn crossing_ns() -> f64 {
    const CALLS: u32 = 50_000;
    let once = || {
        let begin_ns = clock::monotonic_ns();
        for _ in 0..CALLS {
            std::hint::black_box(calls::parent_id());
        }
        (clock::monotonic_ns() - begin_ns) as f64 / f64::from(CALLS)
    };
    (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Share of a cached file that a mapping of all of it maps with huge pages: those
/// parts whose folios in the page cache are as large.
pub(crate) fn huge_mapped_share(subject: &Subject, root: &Root) -> Option<f64> {
    const MOST: u64 = 4 << 30;
    let bytes = subject.bytes().min(MOST);
    let file = subject.reopen_unnoticed().ok()?;
    let length = usize::try_from(bytes).ok()?;
    let kib = || {
        let text = root.read("proc/self/smaps").ok()?;
        let lines = text.lines().filter_map(|line| line.strip_prefix("FilePmdMapped:"));
        lines.map(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).sum()
    };
    let before: Option<u64> = kib();
    let mapping = Mapping::of_file(file.as_fd(), 0, length).ok()?;
    mapping.populate(0..length).ok()?;
    let mapped = kib()?.saturating_sub(before?) * 1024;
    let whole = bytes.next_multiple_of(page_bytes() as u64);
    Some((mapped as f64 / whole as f64).min(1.0))
}

/// Sorts candidates from simple to less so: by class, and within one those first
/// that every kernel has.
fn simplest_first<K: Ord>(candidates: &mut [(Candidate, K)]) {
    candidates.sort_by(|(a, since_a), (b, since_b)| {
        (a.way, since_a, &a.engine).cmp(&(b.way, since_b, &b.engine))
    });
}

/// Why an engine is left out that would work.
fn senseless(id: &str, way: Way, wish: &Wish) -> Option<String> {
    match way {
        Way::Mapped if wish.consumer == Consumer::None => Some(
            "nobody looks at the bytes (--consumer none), so a mapped file would not be read"
                .to_owned(),
        ),
        Way::Called if SAME.contains(&id) => {
            Some("the same path as read: where the position stands makes no difference".to_owned())
        }
        _ if id == NO_TRACE && !wish.is_cold => Some(
            "it leaves alone what is in the page cache already: --cache cold compares it"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Engines that take the path of `read` by another call.
const SAME: [&str; 2] = ["pread", "readv"];

/// The engine that leaves nothing in the page cache.
const NO_TRACE: &str = "preadv2_dontcache";

/// What is left out where no more than so much may be locked.
fn beyond(most: u64) -> Pruned {
    let limit = Bytes(process::memlock_limit_bytes());
    let what = format!("registered buffers of more than {}", Bytes(most));
    let why = format!(
        "RLIMIT_MEMLOCK is {limit} of this user's processes together: ulimit -l in the shell \
         that starts iolens raises it"
    );
    Pruned { what, why }
}

fn readers(subject: &Subject, wish: &Wish) -> (Vec<Candidate>, Vec<Pruned>) {
    let locked = locked_bytes_max();
    let (candidates, mut pruned) = candidates(READING, wish.is_cold, locked, |entry| {
        senseless(entry.id, entry.way, wish).or_else(|| entry.try_on(subject).err())
    });
    if candidates.iter().any(|candidate| candidate.locked_bytes_max.is_some()) {
        pruned.extend(locked.map(beyond));
    }
    (candidates, pruned)
}

fn copiers(subject: &Subject, folder: &Path, is_cold: bool) -> (Vec<Candidate>, Vec<Pruned>) {
    candidates(COPYING, is_cold, None, |entry| entry.try_on(subject, folder).err())
}

/// The engines that can work on the file, those first that ask for least, and the others.
fn candidates<O>(
    engines: &[&Entry<O>],
    is_cold: bool,
    locked: Option<u64>,
    unfit: impl Fn(&Entry<O>) -> Option<String>,
) -> (Vec<Candidate>, Vec<Pruned>) {
    let (mut good, mut pruned) = (Vec::new(), Vec::new());
    for entry in engines {
        match unfit(entry).or_else(|| cached(entry.is_direct, is_cold)) {
            Some(why) => pruned.push(Pruned { what: entry.id.to_owned(), why }),
            None => good.push((
                Candidate {
                    engine: entry.id.to_owned(),
                    way: entry.way,
                    has_depth: entry.has_depth,
                    is_shared: entry.one_thread.is_none(),
                    calls: entry.summary.to_owned(),
                    locked_bytes_max: locked.filter(|_| entry.locks_memory),
                },
                entry.since,
            )),
        }
    }
    simplest_first(&mut good);
    (good.into_iter().map(|(candidate, _)| candidate).collect(), pruned)
}

/// Direct reads of what is in memory anyway.
fn cached(is_direct: bool, is_cold: bool) -> Option<String> {
    (is_direct && !is_cold).then(|| {
        "it reads from the device what is in the page cache: --cache cold compares it".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(source: &Path, folder: Option<&Path>) -> Wish {
        Wish {
            source: FilePath::new(source),
            folder: folder.map(FilePath::new),
            consumer: Consumer::Scan,
            is_cold: false,
        }
    }

    #[test]
    fn a_file_is_known_and_every_engine_is_tried_or_pruned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, vec![7u8; 100_000]).unwrap();
        let read = find(&wish(&path, None)).unwrap();
        assert_eq!(read.facts.file_bytes, 100_000);
        assert!(read.facts.crossing_ns > 1.0 && read.facts.cpus > 0, "{:?}", read.facts);
        let engines =
            read.pruned.iter().filter(|pruned| crate::engines::that_reads(&pruned.what).is_some());
        assert_eq!(read.candidates.len() + engines.count(), READING.len());
        assert_eq!(read.candidates[0].engine, "read", "the simplest");
        assert!(read.pruned.iter().any(|pruned| pruned.what == "direct"), "{:?}", read.pruned);
        let none = Wish { consumer: Consumer::None, ..wish(&path, None) };
        let none = find(&none).unwrap();
        assert!(none.pruned.iter().any(|p| p.what == "mmap" && p.why.contains("nobody looks")));
        let copy = find(&wish(&path, Some(folder.path()))).unwrap();
        assert_eq!(copy.candidates.len() + copy.pruned.len(), COPYING.len());
        assert!(copy.free_bytes.is_some() && copy.facts.folder.is_some());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn what_cannot_be_read_or_copied_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("f"), "abc").unwrap();
        std::fs::write(path("empty"), "").unwrap();
        let check = |wish: &Wish, expect: &str| {
            let why = find(wish).unwrap_err();
            assert!(why.contains(expect), "{why}");
        };
        check(&wish(&path("none"), None), "ENOENT");
        check(&wish(&path("empty"), None), "is empty: there is nothing to read");
        check(&wish(folder.path(), None), "it is a directory");
        check(&wish(&path("f"), Some(&path("f"))), "it is not a folder");
        check(&wish(&path("f"), Some(&path("none"))), "there is no folder");
    }
}

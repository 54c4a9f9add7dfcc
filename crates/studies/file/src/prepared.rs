//! The file of a run: the user's, looked at and otherwise left alone, or one of
//! ours, large enough that no processor's cache holds it, and gone with the run.

use std::path::{Path, PathBuf};

use iolens_model::file::{FileAxes, FileFacts};
use iolens_model::host::HostFacts;
use iolens_model::trial::TrialFile;
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::clock;

use super::drop_caches;
use super::examine::examine;
use super::file_path::FilePath;
use super::residency::{REMAINDER_MAX, evict};
use super::subject::Subject;
use super::test_file::{Room, TestFile};

/// Ours is at least as large: what is read again was long ago.
const BYTES_MIN: Bytes = Bytes(256 << 20);

/// And so many times the last-level cache.
const CACHES: u64 = 4;

/// And takes no more than one part in so many of the memory.
const MEMORY_PART: u64 = 8;

/// A file that is ready to be read.
#[derive(Debug)]
pub struct Prepared {
    /// Ours is there as long as this is.
    _made: Option<TestFile>,
    facts: FileFacts,
    path: FilePath,
}

/// The folder of files of ours.
pub(crate) fn folder_of(dir: Option<&str>) -> PathBuf {
    dir.map_or_else(std::env::temp_dir, PathBuf::from)
}

impl Prepared {
    /// Makes ours, or looks at the user's. `stop` is asked while ours is written.
    ///
    /// Errors: what was tried and what the system said, or that it was stopped.
    pub fn of(
        axes: &FileAxes,
        host: &HostFacts,
        seed: u64,
        stop: impl Fn() -> bool,
    ) -> Result<Prepared, String> {
        let folder = folder_of(axes.dir.as_deref());
        let mut made = match &axes.file {
            Some(file) => Prepared::theirs(Path::new(file)),
            None => ours(&folder, axes.file_bytes, host, seed, &stop),
        }?;
        if !axes.drop_caches.is_empty() {
            let subject = Subject::open(&made.path.path())?;
            let found = drop_caches::measure(&axes.drop_caches, &subject, &folder, seed, &stop);
            made.facts.dropped = found?;
        }
        Ok(made)
    }

    /// What a run keeps of it.
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// It as a trial names it.
    pub fn of_trial(&self, seed: u64) -> TrialFile {
        let (path, bytes) = (self.path.clone().into_bytes(), Some(self.facts.bytes.0));
        TrialFile { path, bytes, seed, regions: None }
    }

    /// Looks at a file of the user's.
    ///
    /// Errors: what it is instead, or what the system said.
    pub(crate) fn theirs(path: &Path) -> Result<Prepared, String> {
        let subject = Subject::open(path)?;
        if subject.bytes() == 0 {
            return Err(format!("{} is empty: there is nothing to read", subject.name()));
        }
        let facts = FileFacts {
            place: subject.name().to_owned(),
            is_ours: false,
            bytes: Bytes(subject.bytes()),
            size_reason: "the file is the user's".to_owned(),
            destination: None,
            file_system: subject.file_system().to_owned(),
            first_pass: None,
            warnings: examine(&subject)?.warnings(),
            writing: None,
            dropped: Vec::new(),
        };
        // Trials open it from wherever they are.
        let whole =
            path.canonicalize().map_err(|e| format!("cannot find {}: {e}", path.display()))?;
        Ok(Prepared { _made: None, facts, path: FilePath::new(&whole) })
    }
}

fn ours(
    folder: &Path,
    asked: Option<Bytes>,
    host: &HostFacts,
    seed: u64,
    stop: impl Fn() -> bool,
) -> Result<Prepared, String> {
    let (bytes, size_reason) = match asked {
        Some(bytes) => (bytes, "as asked for".to_owned()),
        None => suggested(host),
    };
    Room::of(folder)?.check(folder, bytes)?;
    let mut made = TestFile::make(folder, seed)?;
    made.resize(bytes.0, stop).map_err(|stopped| stopped.to_string())?;
    let subject = made.subject()?;
    let facts = FileFacts {
        place: folder.display().to_string(),
        is_ours: true,
        bytes,
        size_reason,
        file_system: subject.file_system().to_owned(),
        first_pass: first_pass(&subject)?,
        destination: None,
        warnings: examine(&subject)?.warnings(),
        writing: None,
        dropped: Vec::new(),
    };
    let path = FilePath::new(Path::new(&made.path_for_others()));
    Ok(Prepared { _made: Some(made), facts, path })
}

/// A size that no cache of a processor holds and that leaves memory to others, and
/// why.
fn suggested(host: &HostFacts) -> (Bytes, String) {
    let caches = host.llc.value().map(|llc| Bytes(llc.0.saturating_mul(CACHES)));
    let wanted = caches.unwrap_or(BYTES_MIN).max(BYTES_MIN);
    let most = host.memory.value().map(|memory| Bytes(memory.0 / MEMORY_PART));
    match (most, caches) {
        (Some(most), _) if most < wanted => {
            (most, format!("an eighth of the memory, less than the {wanted} that would be better"))
        }
        (_, Some(caches)) if caches == wanted => {
            (wanted, format!("{CACHES} times the last-level cache"))
        }
        _ => (wanted, "more than any cache of a processor here".to_owned()),
    }
}

/// Reads a file for the first time, if it can be evicted.
fn first_pass(subject: &Subject) -> Result<Option<Nanos>, String> {
    let left = evict(subject)?;
    if left.share().is_none_or(|share| share > REMAINDER_MAX) {
        return Ok(None);
    }
    let begin_ns = clock::monotonic_ns();
    subject.read_through()?;
    Ok(Some(Nanos(clock::monotonic_ns() - begin_ns)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use iolens_model::file::{CacheState, Consumer, Pattern};
    use iolens_model::reading::Reading;

    use super::*;

    fn axes() -> FileAxes {
        FileAxes {
            cache: vec![CacheState::Warm],
            pattern: vec![Pattern::Sequential],
            consumer: vec![Consumer::None],
            depth: vec![1],
            file: None,
            dir: None,
            file_bytes: None,
            evict: false,
            drop_caches: Vec::new(),
            external: Vec::new(),
        }
    }

    fn host(llc: u64, memory: u64) -> HostFacts {
        let exact = |bytes| Reading::Exact(Bytes(bytes));
        HostFacts {
            cores: Vec::new(),
            cpus: vec![0],
            l1d: Reading::not_measured("not here"),
            l2: Reading::not_measured("not here"),
            llc: exact(llc),
            memory: exact(memory),
            descriptors_max: Reading::not_measured("not here"),
            changed: Vec::new(),
            facts: Vec::new(),
        }
    }

    #[test]
    fn the_size_follows_from_caches_and_memory() {
        let mib = 1 << 20;
        assert_eq!(suggested(&host(32 * mib, 1 << 40)).0, Bytes(256 * mib));
        assert_eq!(suggested(&host(100 * mib, 1 << 40)).0, Bytes(400 * mib));
        let (little, why) = suggested(&host(32 * mib, 1 << 30));
        assert!(little == Bytes(128 * mib) && why.contains("less than the 256 MiB"), "{why}");
    }

    #[test]
    fn ours_is_whole_and_gone_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Some(folder.path().display().to_string());
        let wanted = FileAxes { dir, file_bytes: Some(Bytes(70_000)), ..axes() };
        let made = Prepared::of(&wanted, &host(1, 1 << 30), 1, || false).unwrap();
        assert_eq!((made.facts().bytes, made.facts().is_ours), (Bytes(70_000), true));
        let path = FilePath::from_bytes(made.of_trial(3).path).path();
        let file = std::fs::metadata(&path).unwrap();
        // Without a name it goes with its last descriptor.
        assert_eq!((file.len(), file.nlink()), (70_000, 0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(made);
        let stopped = Prepared::of(&wanted, &host(1, 1 << 30), 1, || true).unwrap_err();
        assert!(stopped.contains("stopped"), "{stopped}");
    }

    #[test]
    fn theirs_is_looked_at_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![0; 9000]).unwrap();
        let wanted = FileAxes { file: Some(path.display().to_string()), ..axes() };
        let found = Prepared::of(&wanted, &host(1, 1 << 30), 1, || false).unwrap();
        assert!(!found.facts().is_ours && found.facts().first_pass.is_none());
        assert!(found.facts().warnings[0].contains("zeros"), "{:?}", found.facts());
        drop(found);
        assert_eq!(std::fs::read(&path).unwrap(), vec![0; 9000]);
        std::fs::write(&path, "").unwrap();
        let empty = Prepared::of(&wanted, &host(1, 1 << 30), 1, || false).unwrap_err();
        assert!(empty.contains("is empty"), "{empty}");
    }
}

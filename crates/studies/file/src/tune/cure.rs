//! The cure for a file that is in the page cache in small pieces: it is dropped from there and
//! read again by faults of a mapping that asks for huge pages (`MADV_HUGEPAGE`), for which the
//! kernel reads, and keeps, folios as large where the file system can.

use std::os::fd::AsFd;

use iolens_model::units::Nanos;
use iolens_sys::clock;
use iolens_sys::file::mapping::Mapping;
use iolens_sys::proc::Root;
use serde::{Deserialize, Serialize};

use super::facts::huge_mapped_share;
use crate::file_path::FilePath;
use crate::residency::{self, REMAINDER_MAX};
use crate::subject::Subject;

/// Mapped at a time: a whole number of huge pages.
const WINDOW_BYTES: u64 = 1 << 30;

/// What is to be cured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The file, all of which is in the page cache.
    pub source: FilePath,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Done {
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
pub fn apply(wish: &Wish) -> Result<Done, String> {
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
    Ok(Done { time, huge_before_share, huge_after_share: huge_mapped_share(&subject, &root) })
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
    fn a_cured_file_is_there_again_and_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let bytes: Vec<u8> = (0..5_000_003_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        match apply(&Wish { source: FilePath::new(&path) }) {
            Ok(done) => assert!(done.time.0 > 0),
            // What is in memory alone cannot be dropped, nor hinted at by kernels without it.
            Err(why) => assert!(why.contains("stayed") || why.contains("MADV_HUGEPAGE"), "{why}"),
        }
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

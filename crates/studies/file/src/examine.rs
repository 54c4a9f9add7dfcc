//! What makes a file unfit to be timed, found out before: bytes that no device has
//! and that read as zeros without any I/O.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::units::{Bytes, three_digits};
use iolens_sys::errno::Errno;
use iolens_sys::file::at::pread;
use iolens_sys::file::cache::{self, Advice};
use iolens_sys::file::extents;
use serde::{Deserialize, Serialize};

use crate::residency::sync;
use crate::subject::Subject;

/// What was found, in bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Findings {
    /// Its size.
    pub file_bytes: u64,
    /// In holes; `None` where the file system cannot tell.
    pub hole_bytes: Option<u64>,
    /// Allocated and never written, as by fallocate(2); `None` where the file system
    /// has no map of extents, here and below.
    pub unwritten_bytes: Option<u64>,
    /// Not on the device yet.
    pub delayed_bytes: Option<u64>,
    /// Shared with other files (reflinks, snapshots).
    pub shared_bytes: Option<u64>,
    /// Compressed or encrypted on the device.
    pub encoded_bytes: Option<u64>,
    /// Pieces of 4 KiB, from all over the file, that were looked at; the search ends
    /// with the first that is not all zeros.
    pub pieces: u64,
    /// Whether all of them were zeros.
    pub is_zeros: bool,
}

/// Pieces that are looked at for something else than zeros, at most.
const PIECES: u64 = 64;
const PIECE_BYTES: usize = 4096;

/// Examines a file. Reads up to 64 pages of it, and no more than one of a file that
/// is not all zeros at its beginning, without readahead.
///
/// Errors: what the system said when it was read.
pub fn examine(subject: &Subject) -> Result<Findings, String> {
    let bytes = subject.bytes();
    let mut findings = Findings { file_bytes: bytes, ..Findings::default() };
    // A descriptor of its own: the search for holes moves the position.
    let file = subject.reopen_unnoticed()?;
    map(&file, &mut findings);
    if findings.unwritten_bytes.is_some_and(|bytes| bytes > 0) {
        // What is on its way to the device counts as unwritten until it has arrived.
        // Where it cannot be waited for, it is told as it is.
        let _ = sync(subject);
        map(&file, &mut findings);
    }
    if findings.hole_bytes.is_none() {
        findings.hole_bytes = extents::hole_bytes(file.as_fd(), bytes).ok();
    }
    // Only a hint: without it a few pages more are read.
    let _ = cache::advise(file.as_fd(), 0, 0, Advice::Random);
    let pieces = bytes.div_ceil(PIECE_BYTES as u64).min(PIECES);
    for number in 0..pieces {
        // From the first to the last that there is.
        let last = bytes.saturating_sub(PIECE_BYTES as u64);
        let offset = u128::from(last) * u128::from(number) / u128::from((pieces - 1).max(1));
        let offset = u64::try_from(offset).unwrap_or(last);
        findings.pieces += 1;
        let is_zeros = is_zeros(&file, offset)
            .map_err(|errno| format!("cannot read {}: {errno}", subject.name()))?;
        if !is_zeros {
            return Ok(findings);
        }
    }
    findings.is_zeros = pieces > 0;
    Ok(findings)
}

/// Fills in what the map of extents says, if there is one.
fn map(file: &OwnedFd, findings: &mut Findings) {
    let bytes = findings.file_bytes;
    let (mut covered, mut unwritten, mut delayed, mut shared, mut encoded) = (0, 0, 0, 0, 0);
    let seen = extents::extents(file.as_fd(), |extent| {
        // An extent may go on behind the end of the file.
        let end = (extent.offset + extent.bytes).min(bytes);
        let within = end.saturating_sub(extent.offset);
        covered += within;
        for (is_it, sum) in [
            (extent.unwritten, &mut unwritten),
            (extent.delayed, &mut delayed),
            (extent.shared, &mut shared),
            (extent.encoded, &mut encoded),
        ] {
            *sum += if is_it { within } else { 0 };
        }
    });
    if seen.is_ok() {
        findings.hole_bytes = Some(bytes.saturating_sub(covered));
        findings.unwritten_bytes = Some(unwritten);
        findings.delayed_bytes = Some(delayed);
        findings.shared_bytes = Some(shared);
        findings.encoded_bytes = Some(encoded);
    }
}

fn is_zeros(file: &OwnedFd, offset: u64) -> Result<bool, Errno> {
    let mut piece = [0; PIECE_BYTES];
    loop {
        match pread(file.as_fd(), &mut piece, offset) {
            Ok(n) => return Ok(piece[..n].iter().all(|&byte| byte == 0)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl Findings {
    /// What a reader of its times should know, a sentence each; nothing of a file
    /// whose bytes are all on a device.
    pub fn warnings(&self) -> Vec<String> {
        let share = |part: Option<u64>| {
            let part = part.filter(|&part| part > 0)?;
            let percent = three_digits(part as f64 / self.file_bytes.max(1) as f64 * 100.0);
            Some(format!("{} of the file ({percent}%)", Bytes(part)))
        };
        let mut warnings = Vec::new();
        let mut warn = |part: Option<u64>, what: &str| {
            warnings.extend(share(part).map(|share| format!("{share} {what}")));
        };
        warn(self.hole_bytes, "is holes, which read as zeros without any I/O");
        warn(
            self.unwritten_bytes,
            "was allocated and never written (fallocate), which reads as zeros without any I/O",
        );
        warn(self.encoded_bytes, "is compressed or encrypted on the device");
        if self.is_zeros && self.hole_bytes == Some(0) && self.unwritten_bytes.unwrap_or(0) == 0 {
            let n = self.pieces;
            let pieces = if n == 1 { "the one piece" } else { "all of the pieces" };
            warnings.push(format!(
                "{pieces} of 4 KiB that were looked at ({n}, from all over the file) are zeros: \
                 what compresses or removes duplicates on the way stores next to nothing"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;
    use crate::skip;

    fn examined(make: impl FnOnce(&File)) -> Findings {
        let file = iolens_sys::file::in_folder(&std::env::temp_dir()).unwrap();
        make(&file);
        file.sync_all().unwrap();
        examine(&Subject::of(file, "a file".to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn a_file_of_data_has_nothing_to_warn_of() {
        let data: Vec<u8> = (0..1 << 20).map(|at| iolens_sys::ring::content(1, at)).collect();
        let findings = examined(|file| file.write_all_at(&data, 0).unwrap());
        assert_eq!(findings.file_bytes, 1 << 20);
        assert_eq!((findings.pieces, findings.is_zeros), (1, false));
        assert_eq!(findings.hole_bytes.unwrap_or(0), 0, "{findings:?}");
        let warnings = findings.warnings();
        assert!(warnings.iter().all(|warning| warning.contains("compressed")), "{warnings:?}");
    }

    #[test]
    fn holes_are_flagged() {
        let mut blocks = 0;
        let findings = examined(|file| {
            file.set_len(1 << 20).unwrap();
            file.write_all_at(&[1; 4096], 0).unwrap();
            file.sync_all().unwrap();
            blocks = file.metadata().unwrap().blocks();
        });
        if blocks * 512 >= 1 << 20 {
            let name = "examine::tests::holes_are_flagged";
            return skip::note(name, "the file system has no holes");
        }
        assert_eq!(findings.hole_bytes, Some((1 << 20) - 4096));
        let warning = findings.warnings().join("\n");
        assert!(warning.contains("1020 KiB of the file (99.6%) is holes"), "{warning}");
    }

    #[test]
    fn zeros_are_flagged_where_they_are_data() {
        let findings = examined(|file| file.write_all_at(&[0; 1 << 20], 0).unwrap());
        assert!(findings.is_zeros && findings.pieces == 64, "{findings:?}");
        let almost = examined(|file| {
            file.write_all_at(&[0; 1 << 20], 0).unwrap();
            file.write_all_at(&[1], (1 << 20) - 1).unwrap();
        });
        assert!(!almost.is_zeros, "the last byte is looked at");
        let tiny = examined(|file| file.write_all_at(&[0; 3], 0).unwrap());
        assert!(tiny.is_zeros && tiny.pieces == 1);
        let warnings = Findings { hole_bytes: Some(0), ..tiny }.warnings();
        assert!(warnings[0].starts_with("the one piece of 4 KiB"), "{warnings:?}");
        assert_eq!(examined(|_| ()).warnings(), [""; 0]);
    }

    #[test]
    fn what_was_allocated_and_never_written_is_flagged() {
        let mut allocated = Ok(());
        let findings = examined(|file| {
            file.write_all_at(&[1; 4096], 0).unwrap();
            allocated = iolens_sys::file::allocate(file, 1 << 20);
        });
        if allocated.is_err() || findings.unwritten_bytes.is_none() {
            let name = "examine::tests::what_was_allocated_and_never_written_is_flagged";
            return skip::note(name, "the file system has no fallocate(2) or no FIEMAP");
        }
        assert_eq!(findings.unwritten_bytes, Some((1 << 20) - 4096), "{findings:?}");
        let warning = findings.warnings().join("\n");
        assert!(warning.contains("(99.6%) was allocated and never written"), "{warning}");
    }
}

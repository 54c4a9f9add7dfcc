//! How much of a file is in the page cache, and bringing it out of there.

use std::os::fd::AsFd;
use std::time::Duration;

use iolens_sys::errno::Errno;
use iolens_sys::file::cache::{self, Advice};
use iolens_sys::pages::page_bytes;
use serde::{Deserialize, Serialize};

use crate::subject::Subject;

/// What of a range of a file is in the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Residency {
    /// As cachestat(2) counts it.
    Known {
        /// Pages in the page cache.
        cached: u64,
        /// Pages of the range.
        pages: u64,
    },
    /// The kernel does not say, and why.
    Unknown(String),
}

impl Residency {
    /// Of the `bytes` of a file from `offset` on.
    pub fn of(subject: &Subject, offset: u64, bytes: u64) -> Residency {
        if is_stacked(subject.file_system()) {
            return Residency::Unknown(format!(
                "the pages belong to the file below {}, which cachestat(2) does not look at",
                subject.file_system()
            ));
        }
        match cache::cached(subject.fd(), offset, bytes) {
            Ok(cached) => {
                let pages = pages_of(offset, bytes, page_bytes() as u64);
                Residency::Known { cached: cached.pages, pages }
            }
            Err(errno) => Residency::Unknown(unknown(errno)),
        }
    }

    /// The share, 0 to 1; `None` where it is not known, and for a range of nothing.
    pub fn share(&self) -> Option<f64> {
        match self {
            Residency::Known { cached, pages: pages @ 1.. } => {
                Some((*cached as f64 / *pages as f64).min(1.0))
            }
            _ => None,
        }
    }
}

/// Pages that a range has a part of.
fn pages_of(offset: u64, bytes: u64, page_bytes: u64) -> u64 {
    let pages = (offset + bytes).div_ceil(page_bytes) - offset / page_bytes;
    if bytes == 0 { 0 } else { pages }
}

/// Why cachestat(2) says nothing.
fn unknown(errno: Errno) -> String {
    match errno {
        Errno::EPERM => {
            "cachestat(2) answers only the file's owner and users who may write it".to_owned()
        }
        Errno::ENOSYS => "cachestat(2) is in Linux from 6.5 on".to_owned(),
        errno => format!("cachestat(2): {errno}"),
    }
}

/// File systems whose files are those of another one: cachestat(2) counts the pages
/// of the file on top, which has none.
const STACKED: [&str; 1] = ["overlay"];

/// Whether a file system is one of these.
pub(crate) fn is_stacked(file_system: &str) -> bool {
    STACKED.contains(&file_system)
}

/// Pauses after which it is tried again to evict: pages that were busy are free soon, and
/// what is being read ahead is locked until it has come, which for the 8 MiB of some
/// devices takes tens of milliseconds.
const PAUSES_MS: [u64; 7] = [0, 0, 1, 4, 16, 64, 256];

/// Share of a file that may stay for it to count as evicted.
pub const REMAINDER_MAX: f64 = 0.001;

/// Brings what is dirty to the device and asks the kernel to drop every page of the
/// file (`POSIX_FADV_DONTNEED`), which other processes that use it pay for too.
/// Returns what is still there; the kernel keeps pages that somebody has mapped or
/// locked, and those of a file system in memory.
///
/// Errors: what the system refused.
pub fn evict(subject: &Subject) -> Result<Residency, String> {
    let cannot = |what: &str, errno: Errno| format!("cannot {what} {}: {errno}", subject.name());
    let once = || {
        sync(subject).map_err(|errno| cannot("sync", errno))?;
        cache::advise(subject.fd(), 0, 0, Advice::DontNeed)
            .map_err(|errno| cannot("evict", errno))?;
        Ok(Residency::of(subject, 0, subject.bytes()))
    };
    persistently(once, |left| left.share().is_none_or(|share| share <= REMAINDER_MAX))
}

/// Tries until it is done or the pauses are used up; returns what the last attempt did.
pub(crate) fn persistently<T>(
    mut attempt: impl FnMut() -> Result<T, String>,
    is_done: impl Fn(&T) -> bool,
) -> Result<T, String> {
    let mut last = attempt()?;
    for pause_ms in PAUSES_MS {
        if is_done(&last) {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(pause_ms));
        last = attempt()?;
    }
    Ok(last)
}

/// fdatasync(2), which a descriptor for reading may do too.
pub(crate) fn sync(subject: &Subject) -> Result<(), Errno> {
    let file = subject.fd().as_fd().try_clone_to_owned()?;
    Ok(std::fs::File::from(file).sync_data()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::skip;

    fn subject_of(bytes: &[u8]) -> Subject {
        let file = iolens_sys::file::in_folder(&std::env::temp_dir()).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        Subject::of(file, "a file".to_owned()).unwrap()
    }

    #[test]
    fn what_was_just_written_is_resident_until_it_is_evicted() {
        let subject = subject_of(&[7; 1 << 20]);
        let before = Residency::of(&subject, 0, subject.bytes());
        if let Residency::Unknown(why) = &before {
            let name = "residency::tests::what_was_just_written_is_resident_until_it_is_evicted";
            return skip::note(name, why);
        }
        let pages = (1 << 20) / page_bytes() as u64;
        assert_eq!(before, Residency::Known { cached: pages, pages });
        assert_eq!(Residency::of(&subject, 4097, 1), Residency::Known { cached: 1, pages: 1 });
        assert_eq!(Residency::of(&subject, 0, 0).share(), None);
        let after = evict(&subject).unwrap();
        match subject.file_system() {
            // Memory is where it is.
            "tmpfs" => assert_eq!(after.share(), Some(1.0)),
            _ => assert!(after.share().unwrap() <= REMAINDER_MAX, "{after:?}"),
        }
    }

    #[test]
    fn a_range_has_pages_of_any_size() {
        let pages = |page| {
            [(0, 1 << 20), (4097, 1), (4095, 2), (1 << 16, 1 << 16), (5, 0)]
                .map(|(offset, bytes)| pages_of(offset, bytes, page))
        };
        assert_eq!(pages(4096), [256, 1, 2, 16, 0]);
        assert_eq!(pages(1 << 16), [16, 1, 1, 1, 0]);
    }

    #[test]
    fn a_reason_is_given_where_the_kernel_says_nothing() {
        assert!(unknown(Errno::EPERM).contains("the file's owner"));
        assert!(unknown(Errno::ENOSYS).contains("6.5"));
        assert!(unknown(Errno::EOPNOTSUPP).contains("EOPNOTSUPP"));
        assert_eq!(Residency::Unknown(String::new()).share(), None);
    }
}

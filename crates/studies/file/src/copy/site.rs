//! Where a trial copies: its source, the folder of its copies, and what is asked of a
//! copy once its slice has ended.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use iolens_model::copy::CopySetting;
use iolens_model::external::External;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::file::{create, extents};

use super::by_hand::checksum;
use crate::arm::ReadGround;
use crate::subject::Subject;
use iolens_harness::op::Trouble;

/// The files of a trial that copies.
#[derive(Debug)]
pub struct Site<'a> {
    pub(crate) ground: &'a ReadGround,
    pub(crate) setting: CopySetting,
    pub(crate) empty: PathBuf,
    folder: PathBuf,
    file_system: String,
    checksum: u64,
    pub(super) programs: Vec<External>,
    /// The copies of the slice that runs, in the hands of all its threads. Only threads
    /// that stand between two slices lock it.
    copies: Mutex<Vec<File>>,
}

/// A path that came as bytes.
fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

impl<'a> Site<'a> {
    /// The site of a trial; `None` for one of another study.
    pub fn of(trial: &Trial, ground: Option<&'a ReadGround>) -> Option<Site<'a>> {
        let (copies, setting) = trial.copies.as_ref().zip(trial.cell.copy())?;
        let folder = path(&copies.folder);
        remove_copies(&folder);
        let of_folder = File::open(&folder).map_err(Errno::from);
        let file_system =
            of_folder.and_then(|folder| iolens_sys::file::file_system(folder.as_fd()));
        Some(Site {
            file_system: file_system.unwrap_or_else(|_| "an unknown file system".to_owned()),
            ground: ground?,
            setting,
            empty: path(&copies.empty),
            folder,
            checksum: copies.checksum,
            programs: copies.programs.clone(),
            copies: Mutex::default(),
        })
    }

    /// The file system that is copied to.
    pub(crate) fn file_system(&self) -> &str {
        &self.file_system
    }

    /// The source.
    pub(crate) fn source(&self) -> &Subject {
        self.ground.subject()
    }

    /// Where the copy of this number of a slice is made.
    pub(crate) fn place(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{COPY}{number}"))
    }

    /// Makes the files that a slice's copies are written into.
    ///
    /// Errors: what the system said.
    pub(crate) fn make(&self, copies: usize) -> Result<(), Trouble> {
        let make = |number| {
            let place = self.place(number);
            create::exclusive(&place).map_err(|errno| cannot("make", &place, errno))
        };
        let made = (0..copies).map(make).collect::<Result<Vec<File>, Trouble>>()?;
        *self.copies.lock().unwrap_or_else(PoisonError::into_inner) = made;
        Ok(())
    }

    /// Looks at one that was made, to open it again.
    pub(crate) fn with_copy<T>(&self, number: usize, look: impl FnOnce(&File) -> T) -> Option<T> {
        let copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        copies.get(number).map(look)
    }

    /// Opens the copies that a program has made.
    ///
    /// Errors: one that is not there, or is no file.
    pub(crate) fn find(&self, copies: usize) -> Result<(), Trouble> {
        let find = |number| {
            let place = self.place(number);
            Subject::open(&place).map_err(Trouble::failed)?;
            File::open(&place).map_err(|e| cannot("open", &place, e.into()))
        };
        let found = (0..copies).map(find).collect::<Result<Vec<File>, Trouble>>()?;
        *self.copies.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    }

    /// Bytes of each copy of the slice.
    ///
    /// Errors: one that is shorter or longer than the source.
    pub(crate) fn measure(&self) -> Result<u64, Trouble> {
        let copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self.source().bytes();
        let mut all = 0;
        for (number, file) in copies.iter().enumerate() {
            let about = file.metadata();
            let bytes = about.map_err(|e| cannot("ask about", &self.place(number), e.into()))?;
            let bytes = bytes.len();
            if bytes != wanted {
                let what = if bytes < wanted { "only " } else { "" };
                return Err(Trouble::failed(match self.source_has_now() {
                    Ok(now) if now != wanted => changed(wanted, now),
                    _ => format!("the copy has {what}{bytes} bytes, its source has {wanted}"),
                }));
            }
            all += bytes;
        }
        Ok(all)
    }

    /// Bytes of the source, which somebody may have changed.
    fn source_has_now(&self) -> Result<u64, Errno> {
        self.source().about_now().map(|about| about.bytes)
    }

    /// Reads the first copy of the slice and compares it with the source; returns how
    /// many of its bytes are in blocks of other files too, where the file system tells.
    ///
    /// Errors: other bytes than the source has.
    pub(crate) fn compare(&self) -> Result<Option<u64>, Trouble> {
        let Some(file) = self.with_copy(0, File::try_clone) else { return Ok(None) };
        let file = file.map_err(|e| cannot("keep", &self.place(0), e.into()))?;
        let copy = Subject::of(file, "the copy".to_owned()).map_err(Trouble::failed)?;
        let found = checksum(&copy, u64::MAX).map_err(Trouble::failed)?;
        if found != self.checksum {
            let now = checksum(self.source(), u64::MAX).map_err(Trouble::failed)?;
            if now != self.checksum {
                return Err(Trouble::failed("its source has other bytes than when the run began"));
            }
            return Err(Trouble::failed(format!(
                "the copy has other bytes than its source: the checksums are {found:016x} and \
                 {:016x}",
                self.checksum
            )));
        }
        // Without bringing anything to the device, as a thorough look would.
        let mut shared = 0;
        let told = extents::extents(copy.fd(), |extent| {
            shared += if extent.shared { extent.bytes } else { 0 };
        });
        Ok(told.ok().map(|()| shared))
    }

    /// Takes the slice's copies away, and with their last descriptors whatever of them
    /// was dirty: nothing of it is written back while the next slice runs. What is
    /// being written back already is waited for by the kernel as it gives up the pages.
    ///
    /// Errors: what the system said.
    pub(crate) fn clear(&self, copies: usize) -> Result<(), Trouble> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).clear();
        (0..copies).map(|number| self.place(number)).try_for_each(|place| remove(&place))
    }
}

/// The beginning of every copy's name.
const COPY: &str = "copy-";

/// Removes the copies that a trial has left which did not come to its end.
fn remove_copies(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let is_copy = |name: &OsString| name.as_encoded_bytes().starts_with(COPY.as_bytes());
    for entry in entries.flatten().filter(|entry| is_copy(&entry.file_name())) {
        // One that stays is in the way of the next, which says so.
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Removes a copy, if it is there.
pub(crate) fn remove(place: &Path) -> Result<(), Trouble> {
    match std::fs::remove_file(place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("remove", place, e.into()))
        }
        _ => Ok(()),
    }
}

/// What to say of a source whose size is another one now.
fn changed(had: u64, now: u64) -> String {
    format!("its source had {had} bytes when the run began and has {now} now")
}

fn cannot(what: &str, place: &Path, errno: Errno) -> Trouble {
    Trouble::failed(format!("cannot {what} {}: {errno}", place.display()))
}

/// Brings a file to its device.
pub(crate) fn fsync(file: &impl AsFd) -> Result<(), Errno> {
    iolens_sys::file::fsync(file.as_fd())
}

#[cfg(test)]
mod tests;

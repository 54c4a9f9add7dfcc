//! A file that is read and never written: opened once, and opened again for every
//! thread that reads it, whatever becomes of its name.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::about::{About, Kind, about};
use iolens_sys::file::at::pread;
use iolens_sys::file::open::{self, Caching, Links};
use iolens_sys::pages::{PageKind, Pages};

/// File systems whose files are text of the kernel's.
const MADE_WHEN_READ: [&str; 2] = ["proc", "sysfs"];

/// An open file, and what the kernel said of it then.
#[derive(Debug)]
pub struct Subject {
    name: String,
    file: File,
    about: About,
    file_system: String,
}

impl Subject {
    /// Opens a regular file for reading. What is none is not opened at all: a FIFO
    /// could wait for ever, and a device do something.
    ///
    /// Errors: what it is instead, or what the system said.
    pub fn open(path: &Path) -> Result<Subject, String> {
        let name = path.display().to_string();
        let cannot = |errno: Errno| format!("cannot open {name}: {errno}");
        regular(&name, open::kind(path).map_err(cannot)?)?;
        let file = open::read_only(path, Caching::Buffered, Links::Follow).map_err(cannot)?;
        Subject::of(file, name)
    }

    /// A file that is open already, under a name for messages.
    ///
    /// Errors: as [`Self::open`].
    pub fn of(file: File, name: String) -> Result<Subject, String> {
        let told = about(file.as_fd()).map_err(|e| format!("cannot query {name}: {e}"))?;
        regular(&name, told.kind)?;
        let file_system = file::file_system(file.as_fd())
            .map_err(|e| format!("cannot find out the file system of {name}: {e}"))?;
        if MADE_WHEN_READ.contains(&file_system.as_str()) {
            return Err(format!(
                "cannot read {name}: a file of {file_system} is made while it is read, and has no \
                 size"
            ));
        }
        Ok(Subject { name, file, about: told, file_system })
    }

    /// The same under another name for messages.
    #[must_use]
    pub(crate) fn called(self, name: &str) -> Subject {
        Subject { name: name.to_owned(), ..self }
    }

    /// Its first bytes, as many as it had once: what it grew by is not read.
    ///
    /// Errors: it has fewer now.
    pub(crate) fn limited_to(mut self, bytes: u64) -> Result<Subject, String> {
        let now = self.about.bytes;
        if now < bytes {
            let (name, had) = (&self.name, Bytes(bytes));
            return Err(format!(
                "{name} was truncated: it had {had} when the run began and has {} now",
                Bytes(now)
            ));
        }
        self.about.bytes = bytes;
        Ok(self)
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size when it was opened; nothing beyond is read.
    pub fn bytes(&self) -> u64 {
        self.about.bytes
    }

    /// What the kernel said of it when it was opened.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What it says now.
    ///
    /// Errors: see statx(2).
    pub fn about_now(&self) -> Result<About, Errno> {
        about(self.file.as_fd())
    }

    /// The name of its file system.
    pub fn file_system(&self) -> &str {
        &self.file_system
    }

    /// The descriptor that it was opened with, which nothing is read from.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Opens it again, as programs do: with `O_NOATIME`, which only the owner may have,
    /// each call would be spared a look at the access time, 0.1 of the 0.76 µs that one
    /// of 512 B takes (docs/journal). A bare descriptor, whose number is read without a call.
    ///
    /// Errors: what the system said; for a direct one on which file system.
    pub fn reopen(&self, caching: Caching) -> Result<OwnedFd, String> {
        open::again(self.fd(), caching).map(OwnedFd::from).map_err(|errno| match caching {
            Caching::Buffered => format!("cannot open {} again: {errno}", self.name),
            Caching::Direct => {
                format!("cannot open {} with O_DIRECT: {errno}, on {}", self.name, self.file_system)
            }
        })
    }

    /// Opens it again for what is not timed: without changing its access time where that
    /// is ours to say.
    ///
    /// Errors: as [`Self::reopen`].
    pub fn reopen_unnoticed(&self) -> Result<OwnedFd, String> {
        match open::again_without_atime(self.fd(), Caching::Buffered) {
            Ok(file) => Ok(file.into()),
            Err(_) => self.reopen(Caching::Buffered),
        }
    }

    /// Reads it from end to end through the page cache.
    ///
    /// Errors: what the system said.
    pub(crate) fn read_through(&self) -> Result<(), String> {
        self.read_range(0, self.bytes())
    }

    /// The same of a range of it.
    ///
    /// Errors: as [`Subject::read_through`].
    pub(crate) fn read_range(&self, start: u64, end: u64) -> Result<(), String> {
        let file = self.reopen(Caching::Buffered)?;
        match self.read_pieces(&file, start..end, |_, _| ())? {
            reached if reached < end => Err(format!("{} has become shorter", self.name())),
            _ => Ok(()),
        }
    }

    /// Has `look` see a range piece by piece, or as much of it as there is; where that ends.
    ///
    /// Errors: what the system said.
    pub(crate) fn read_pieces(
        &self,
        file: &OwnedFd,
        range: Range<u64>,
        mut look: impl FnMut(u64, &[u8]),
    ) -> Result<u64, String> {
        const PIECE_BYTES: usize = 1 << 20;
        let mut piece = Pages::new(PIECE_BYTES, PageKind::Plain)
            .map_err(|e| format!("cannot allocate a buffer of {PIECE_BYTES} bytes: {e}"))?;
        let mut offset = range.start;
        while offset < range.end {
            let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(PIECE_BYTES);
            match pread(file.as_fd(), &mut piece[..left], offset) {
                Ok(0) => break,
                Ok(n) => {
                    look(offset, &piece[..n]);
                    offset += n as u64;
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(format!("cannot read {}: {errno}", self.name())),
            }
        }
        Ok(offset)
    }
}

fn regular(name: &str, kind: Kind) -> Result<(), String> {
    match kind {
        Kind::Regular => Ok(()),
        other => Err(format!("cannot read {name}: it is {}, not a regular file", other.words())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "abc").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        for name in ["file", "link"] {
            let subject = Subject::open(&path(name)).unwrap();
            assert_eq!(subject.bytes(), 3);
            assert!(!subject.file_system().is_empty());
            subject.reopen(Caching::Buffered).unwrap();
        }
        let _listener = UnixListener::bind(path("socket")).unwrap();
        let check = |path: &Path, expect: &str| {
            let why = Subject::open(path).unwrap_err();
            assert!(why.contains(expect) && why.contains(&path.display().to_string()), "{why}");
        };
        check(folder.path(), "it is a directory, not a regular file");
        check(&path("socket"), "it is a socket");
        check(Path::new("/dev/null"), "it is a character device");
        check(Path::new("/proc/self/maps"), "is made while it is read");
        check(&path("none"), "ENOENT (no such file or directory)");
        check(&path("file/below"), "ENOTDIR");
    }

    #[test]
    fn a_file_has_as_many_bytes_as_it_had_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        let open = || Subject::open(&path).unwrap();
        assert_eq!(open().limited_to(2).unwrap().bytes(), 2);
        assert_eq!(open().limited_to(3).unwrap().bytes(), 3);
        let why = open().limited_to(4).unwrap_err();
        assert!(why.ends_with("file was truncated: it had 4 B when the run began and has 3 B now"));
    }

    #[test]
    fn a_file_is_the_same_whatever_becomes_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        let subject = Subject::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "others").unwrap();
        let again = subject.reopen(Caching::Buffered).unwrap();
        assert_eq!(std::io::read_to_string(File::from(again)).unwrap(), "abc");
    }
}

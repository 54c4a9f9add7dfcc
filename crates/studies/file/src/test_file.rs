//! Our own file to read: its bytes can be neither compressed nor found twice, all
//! of them are on the device before anybody reads, and it has no name, so that it
//! is gone with the process that made it, however that ends.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::path_for_others;
use iolens_sys::pages::{PageKind, Pages};
use iolens_sys::{file, storage};

use crate::failure::said_of_writing;
use crate::part::stir;
use crate::subject::Subject;

/// Bytes that are written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Room that stays free at least, whatever is asked for.
const RESERVE_MIN: u64 = Bytes::GIB;

/// Of what is free, one part in so many stays free.
const RESERVE_PART: u64 = 10;

/// The room in a folder for a file of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Free for this user.
    pub free: Bytes,
    /// What is to stay free.
    pub reserve: Bytes,
}

impl Room {
    /// Of a folder, as statvfs(3) tells.
    ///
    /// Errors: that no file can be made there, or what the system said.
    pub fn of(folder: &Path) -> Result<Room, String> {
        storage::may_write(folder).map_err(|errno| {
            let (name, why) = (folder.display(), no_files(errno));
            format!("cannot create a file in {name}: {errno}{why}\n  name another folder")
        })?;
        let free = storage::free_bytes(folder).map_err(|errno| {
            format!("cannot find out the free space of {}: {errno}", folder.display())
        })?;
        Ok(Room::of_free(free))
    }

    fn of_free(free: u64) -> Room {
        let reserve = (free / RESERVE_PART).max(RESERVE_MIN);
        Room { free: Bytes(free), reserve: Bytes(reserve) }
    }

    /// Whether a file of so many bytes fits.
    ///
    /// Errors: that it does not, and what to do.
    pub fn check(self, folder: &Path, bytes: Bytes) -> Result<(), String> {
        if bytes <= self.usable() {
            return Ok(());
        }
        Err(format!(
            "a file of {bytes} does not fit into {}: {self}\n  --dir names another folder, \
             --file-size another size",
            folder.display()
        ))
    }

    /// What a file may take.
    pub fn usable(self) -> Bytes {
        Bytes(self.free.0.saturating_sub(self.reserve.0))
    }
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} are free there, and {} are to stay free", self.free, self.reserve)
    }
}

/// Why a folder takes no files, as the end of a message.
pub(crate) fn no_files(errno: Errno) -> &'static str {
    match errno {
        Errno::EROFS => ": its file system is mounted read-only",
        Errno::EACCES | Errno::EPERM => ": this user may not make files there",
        _ => "",
    }
}

/// A file of ours.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    folder: PathBuf,
    bytes: u64,
    seed: u64,
    piece: Pages,
}

/// Why a file did not become what it was to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// The caller wanted it.
    Wanted,
    /// What was tried and what the system said.
    Failed(String),
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stopped::Wanted => write!(f, "stopped before the file was complete"),
            Stopped::Failed(why) => write!(f, "{why}"),
        }
    }
}

impl TestFile {
    /// An empty one in a folder.
    ///
    /// Errors: what the system said.
    pub fn make(folder: &Path, seed: u64) -> Result<TestFile, String> {
        let file = file::in_folder(folder)
            .map_err(|e| format!("cannot create a file in {}: {e}", folder.display()))?;
        TestFile::of(file, folder, seed)
    }

    /// An empty one under a name from the beginning, in a folder of ours.
    ///
    /// Errors: what the system said.
    pub(crate) fn named(folder: &Path, name: &str, seed: u64) -> Result<TestFile, String> {
        let path = folder.join(name);
        let file = file::create::exclusive(&path)
            .map_err(|e| format!("cannot create {}: {e}", path.display()))?;
        TestFile::of(file, folder, seed)
    }

    fn of(file: File, folder: &Path, seed: u64) -> Result<TestFile, String> {
        let piece = Pages::new(PIECE_BYTES, PageKind::Plain)
            .map_err(|e| format!("cannot allocate a buffer of {PIECE_BYTES} bytes: {e}"))?;
        Ok(TestFile { file, folder: folder.to_owned(), bytes: 0, seed, piece })
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where other processes of this user find it while this one lives.
    pub fn path_for_others(&self) -> String {
        path_for_others(&self.file)
    }

    /// Makes it longer or shorter, and brings it to the device. `stop` is asked after
    /// each piece.
    ///
    /// Errors: what the system said, such as `ENOSPC`; or that it was stopped.
    pub fn resize(&mut self, bytes: u64, stop: impl Fn() -> bool) -> Result<(), Stopped> {
        let folder = self.folder.display();
        let cannot = |what: &str, errno: Errno| {
            let file_system = file::file_system(self.file.as_fd());
            let said = said_of_writing(errno, file_system.as_deref().unwrap_or("unknown"));
            let advice = match errno {
                Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => "\n  ask for less, or elsewhere",
                _ => "",
            };
            Stopped::Failed(format!("cannot {what} a file in {folder}: {said}{advice}"))
        };
        if bytes < self.bytes {
            self.file.set_len(bytes).map_err(|e| cannot("shorten", e.into()))?;
            self.bytes = bytes;
        }
        while self.bytes < bytes {
            if stop() {
                return Err(Stopped::Wanted);
            }
            let left = usize::try_from(bytes - self.bytes).unwrap_or(usize::MAX);
            let piece = &mut self.piece[..left.min(PIECE_BYTES)];
            fill(self.seed, self.bytes, piece);
            self.file.write_all_at(piece, self.bytes).map_err(|e| cannot("write", e.into()))?;
            self.bytes += piece.len() as u64;
        }
        self.file.sync_all().map_err(|e| cannot("sync", e.into()))
    }

    /// As something to read.
    ///
    /// Errors: what the system said.
    pub fn subject(&self) -> Result<Subject, String> {
        let file = self.file.try_clone().map_err(|e| {
            format!("cannot duplicate the descriptor of the test file: {}", Errno::from(e))
        })?;
        Subject::of(file, format!("the test file in {}", self.folder.display()))
    }

    /// Gives it a name in its folder, under which it stays.
    ///
    /// Errors: `EEXIST` for a name that is taken, `ENOENT` where the file system has
    /// no files without names to begin with; in words.
    pub fn keep(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        match file::give_name(&self.file, &path) {
            Ok(()) => Ok(path),
            Err(Errno::ENOENT) => Err(format!(
                "cannot keep the file: the file system of {} has no O_TMPFILE, so that a file \
                 there has a name from the beginning or never",
                self.folder.display()
            )),
            Err(errno) => Err(format!("cannot give the file the name {}: {errno}", path.display())),
        }
    }
}

/// The bytes of a test file from `offset` on: 64-bit words, each from its place and
/// the seed, as SplitMix64 makes them. No two words of a file are the same by more
/// than chance.
pub fn fill(seed: u64, offset: u64, bytes: &mut [u8]) {
    let word_at = |word: u64| stir(seed.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let mut word = offset / 8;
    let mut bytes = bytes;
    let within = (offset % 8) as usize;
    if within > 0 {
        let (head, rest) = bytes.split_at_mut(bytes.len().min(8 - within));
        head.copy_from_slice(&word_at(word).to_le_bytes()[within..within + head.len()]);
        (word, bytes) = (word + 1, rest);
    }
    let (words, tail) = bytes.as_chunks_mut::<8>();
    for place in words {
        *place = word_at(word).to_le_bytes();
        word += 1;
    }
    let last = word_at(word).to_le_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::examine::examine;

    proptest! {
        #[test]
        fn bytes_follow_from_their_place(from in 0usize..2000, length in 0usize..2000) {
            let mut whole = vec![0; 4000];
            fill(3, 0, &mut whole);
            let mut part = vec![0; length];
            fill(3, from as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[from..from + length]);
        }
    }

    #[test]
    fn no_word_repeats_and_every_byte_is_as_likely() {
        let mut bytes = vec![0; 1 << 20];
        fill(1, 0, &mut bytes);
        let (words, _) = bytes.as_chunks::<8>();
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
        let mut counts = [0u32; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        // 4096 expected, with a standard deviation of 64.
        assert!(counts.iter().all(|n| n.abs_diff(4096) < 6 * 64), "{counts:?}");
        let mut other = vec![0; 1 << 20];
        fill(2, 0, &mut other);
        assert!(bytes.iter().zip(&other).filter(|(a, b)| a == b).count() < 1 << 14);
    }

    #[test]
    fn it_grows_and_shrinks_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let mut made = TestFile::make(folder.path(), 5).unwrap();
        for bytes in [0, 1, 5000, (1 << 20) + 3, 70_000, 80_000] {
            made.resize(bytes, || false).unwrap();
            let subject = made.subject().unwrap();
            assert_eq!((subject.bytes(), made.bytes()), (bytes, bytes));
            let read = std::fs::read(made.path_for_others()).unwrap();
            let mut expect = vec![0; read.len()];
            fill(5, 0, &mut expect);
            assert!(read == expect && read.len() as u64 == bytes);
            let findings = examine(&subject).unwrap();
            assert_eq!((findings.is_zeros, findings.unwritten_bytes.unwrap_or(0)), (false, 0));
            assert_eq!(findings.hole_bytes.unwrap_or(0), 0);
        }
        assert_eq!(made.resize(1 << 30, || true), Err(Stopped::Wanted));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(TestFile::make(&folder.path().join("none"), 1).unwrap_err().contains("ENOENT"));
    }

    #[test]
    fn it_stays_under_a_name_that_nobody_has() {
        let folder = tempfile::tempdir().unwrap();
        let mut made = TestFile::make(folder.path(), 5).unwrap();
        made.resize(100, || false).unwrap();
        std::fs::write(folder.path().join("taken"), "theirs").unwrap();
        assert!(made.keep("taken").unwrap_err().contains("EEXIST"));
        match made.keep("ours") {
            Ok(path) => assert_eq!(std::fs::metadata(path).unwrap().len(), 100),
            Err(why) => assert!(why.contains("has no O_TMPFILE"), "{why}"),
        }
        assert_eq!(std::fs::read(folder.path().join("taken")).unwrap(), b"theirs");
    }

    #[test]
    fn some_room_always_stays() {
        let gib = Bytes::GIB;
        assert_eq!(Room::of_free(100 * gib).usable(), Bytes(90 * gib));
        assert_eq!(Room::of_free(5 * gib).usable(), Bytes(4 * gib));
        let little = Room::of_free(gib / 2);
        assert_eq!(little.usable(), Bytes(0));
        let why = little.check(Path::new("here"), Bytes(1)).unwrap_err();
        assert!(why.contains("512 MiB are free there, and 1 GiB are to stay free"), "{why}");
        assert!(Room::of(&std::env::temp_dir()).unwrap().free.0 > 0);
    }
}

//! What is started: the file of a program, what its name means, the fresh copy that each process
//! runs, how long it may take, and how it ended.
//!
//! Two files of the same bytes may differ by several percent for as long as the page cache keeps
//! them, by where their pages lie; a copy for each process draws that anew. It is a file in memory:
//! it needs no place that may be executed from, is gone with its last user however iolens ends, and
//! no other process holds it open for writing (`ETXTBSY`). In return it has no name: who looks for
//! files beside its own (`$ORIGIN`, /proc/self/exe) finds none, and must run in place.
//!
//! What is no ELF file runs in place always: of a script it is the interpreter's pages that run,
//! and a script knows itself by its path.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use iolens_model::ab::AbProgramFacts;
use iolens_sys::errno::Errno;
use iolens_sys::launch::numbered_apart;
use iolens_sys::{file, signal, storage};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The largest file that is copied: each process has one in memory.
const COPY_BYTES_MAX: u64 = 512 << 20;

/// Why a program cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramFileError {
    /// There are no words.
    #[error("a command is empty: name a program")]
    Empty,
    /// Nothing of that name can be started.
    #[error("{0}: name a file, with a `/` in it, or a program in PATH")]
    NotFound(String),
    /// It is there and cannot be run.
    #[error("cannot run {path}: {what}")]
    NotExecutable {
        /// The file.
        path: String,
        /// Why.
        what: String,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {errno}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        errno: Errno,
    },
    /// No copy of it could be made.
    #[error("cannot make a fresh copy of {path}: {what}; --in-place runs the file itself")]
    NoCopy {
        /// The file.
        path: String,
        /// What the system said.
        what: String,
    },
}

/// The file of a program: what starting it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Where it is.
    pub path: String,
    /// Whether it is an ELF file, and no script.
    pub is_elf: bool,
}

impl ProgramFile {
    /// The file of a command.
    ///
    /// Errors: it cannot be run or read.
    pub fn of(argv: &[String]) -> Result<ProgramFile, ProgramFileError> {
        opened(argv).map(|(file, _)| file)
    }
}

impl From<&AbProgramFacts> for ProgramFile {
    fn from(facts: &AbProgramFacts) -> ProgramFile {
        ProgramFile { path: facts.path.clone(), is_elf: facts.is_elf }
    }
}

/// Looks at the file of a command and all that is in it.
///
/// Errors: it cannot be run or read.
pub fn facts(argv: &[String]) -> Result<AbProgramFacts, ProgramFileError> {
    let (ProgramFile { path, is_elf }, mut file) = opened(argv)?;
    match sha256_of(&mut file) {
        Ok(sha256) => Ok(AbProgramFacts { path, sha256, is_elf, links: Vec::new() }),
        Err(errno) => Err(ProgramFileError::Unreadable { path, errno }),
    }
}

fn opened(argv: &[String]) -> Result<(ProgramFile, File), ProgramFileError> {
    let name = argv.first().filter(|name| !name.is_empty()).ok_or(ProgramFileError::Empty)?;
    let found = find_program(name).map_err(ProgramFileError::NotFound)?;
    let path = found.display().to_string();
    let cannot = |what: String| ProgramFileError::NotExecutable { path: path.clone(), what };
    let about = std::fs::metadata(&found).map_err(|e| cannot(Errno::from(e).to_string()))?;
    if !about.is_file() {
        return Err(cannot("it is not a file".to_owned()));
    }
    may_start(&found).map_err(|errno| cannot(format!("{errno}; chmod +x makes it a program")))?;
    match File::open(&found).and_then(|file| Ok((begins_as_elf(&file)?, file))) {
        Ok((is_elf, file)) => Ok((ProgramFile { path, is_elf }, file)),
        Err(error) => Err(ProgramFileError::Unreadable { path, errno: error.into() }),
    }
}

/// The bytes with which an ELF file begins; see elf(5).
const ELF: &[u8] = b"\x7fELF";

fn begins_as_elf(file: &File) -> std::io::Result<bool> {
    let mut magic = [0; ELF.len()];
    Ok(file.read_at(&mut magic, 0)? == ELF.len() && magic == ELF)
}

/// SHA-256 of a file from its beginning, in hexadecimal.
///
/// Errors: what the system said.
pub fn sha256_of(file: &mut File) -> Result<String, Errno> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    file.rewind()?;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(n) => hash.update(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a process executes.
#[derive(Debug)]
pub(crate) struct Executable {
    path: PathBuf,
    /// Keeps a copy alive until it is executed.
    copy: Option<File>,
}

impl Executable {
    /// The file itself.
    pub(crate) fn in_place(file: &ProgramFile) -> Executable {
        Executable { path: file.path.clone().into(), copy: None }
    }

    /// A copy of the file, or the file itself where that is not what runs.
    ///
    /// Errors: there is no room, or the system forbids it.
    pub(crate) fn fresh(program: &ProgramFile) -> Result<Executable, ProgramFileError> {
        if !program.is_elf {
            return Ok(Executable::in_place(program));
        }
        let cannot = |what: String| ProgramFileError::NoCopy { path: program.path.clone(), what };
        let failed = |errno: Errno| cannot(errno.to_string());
        let mut from = File::open(&program.path).map_err(|e| failed(e.into()))?;
        let bytes = from.metadata().map_err(|e| failed(e.into()))?.len();
        if bytes > COPY_BYTES_MAX {
            let most = COPY_BYTES_MAX >> 20;
            return Err(cannot(format!("it has {} MiB, at most {most} are copied", bytes >> 20)));
        }
        let name = Path::new(&program.path).file_name().unwrap_or_default().to_string_lossy();
        // What is longer than the kernel takes is cut (memfd_create(2): 249 bytes).
        let name: String = name.chars().take(32).collect();
        let mut copy = file::executable_in_memory(&name).map_err(failed)?;
        std::io::copy(&mut from, &mut copy).map_err(|e| failed(e.into()))?;
        let copy = numbered_apart(copy).map_err(failed)?;
        // The child has the descriptor under the same number until it executes.
        let path = format!("/proc/self/fd/{}", copy.as_raw_fd()).into();
        Ok(Executable { path, copy: Some(copy) })
    }

    /// Where it is; good while this lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a copy.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy.is_some()
    }
}

// What is started, from which file, and how long it may take.

/// A program, ready for one cell: its arguments have no placeholders any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserProgram {
    /// The arm's name.
    pub name: String,
    /// Its words, of which the first is how it sees itself called.
    pub argv: Vec<String>,
    /// Its file.
    pub file: ProgramFile,
}

/// What each process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramPlace {
    /// A copy of the file of its own.
    FreshCopy,
    /// The file where it lies.
    InPlace,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLimits {
    /// From the start of a program to its `ready`, and for a first operation.
    pub start_ns: u64,
    /// A slice, or a run of a command, at least: twenty times what is expected may be more.
    pub slice_ns: u64,
    /// A command's first run, of which nothing is known.
    pub first_run_ns: u64,
    /// From the end of its input to a program's end.
    pub end_ns: u64,
    /// From SIGTERM to SIGKILL.
    pub term_ns: u64,
}

impl ProgramLimits {
    /// What the protocol promises.
    pub const USUAL: ProgramLimits = ProgramLimits {
        start_ns: 30_000_000_000,
        slice_ns: 5_000_000_000,
        first_run_ns: 600_000_000_000,
        end_ns: 5_000_000_000,
        term_ns: 2_000_000_000,
    };

    /// The limit of something that is expected to take so long.
    pub fn of_slice(&self, expected_ns: u64) -> u64 {
        self.slice_ns.max(expected_ns.saturating_mul(20))
    }
}

// Which file a program's name means, and how one ended, in words.

/// Whether this process may start the program of a file: a file system may be mounted `noexec`.
///
/// Errors: see [`storage::may_execute`].
pub fn may_start(program: &Path) -> Result<(), Errno> {
    storage::may_execute(program)
}

/// The file of a program.
///
/// Errors: there is none in `PATH`.
pub fn find_program(name: impl AsRef<OsStr>) -> Result<PathBuf, String> {
    let name = Path::new(name.as_ref());
    found(name).ok_or_else(|| format!("there is no program `{}` in PATH", name.display()))
}

/// The file of a program's name.
fn found(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return Some(name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(name));
    places.find(|place| may_start(place).is_ok() && place.is_file())
}

/// How a process ended, in words.
pub fn describe_end(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal::BUS), _) => {
            "was killed by SIGBUS: a mapped file had lost a page or had no room for one, or its device \
             failed"
                .to_owned()
        }
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn words(argv: &[&str]) -> Vec<String> {
        argv.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_program_is_found_and_known_by_its_bytes() {
        let found = facts(&words(&["sh", "-c", ":"])).unwrap();
        assert!(found.path.ends_with("/sh") && found.is_elf && found.sha256.len() == 64);
        assert_eq!(facts(&words(&[&found.path])).unwrap(), found);
        assert_eq!(ProgramFile::of(&words(&["sh"])).unwrap(), ProgramFile::from(&found));
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "abc").unwrap();
        let name = script.to_str().unwrap();
        let why = facts(&words(&[name])).unwrap_err().to_string();
        assert!(why.contains(name) && why.contains("chmod +x"), "{why}");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
        let found = facts(&words(&[name])).unwrap();
        assert!(!found.is_elf);
        // FIPS 180-2, appendix B.1.
        let expect = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(found.sha256, expect);
        assert!(!Executable::fresh(&(&found).into()).unwrap().is_copy());
    }

    #[test]
    fn what_is_no_program_is_refused_by_name() {
        let check = |argv: &[&str], expect: &str| {
            let why = facts(&words(argv)).unwrap_err().to_string();
            assert!(why.contains(expect), "{why}");
        };
        check(&[], "a command is empty");
        check(&[""], "a command is empty");
        check(&["no-such-program"], "there is no program `no-such-program` in PATH");
        check(&["/no/such/program"], "cannot run /no/such/program: ENOENT");
        check(&["/"], "it is not a file");
    }

    #[test]
    fn a_copy_has_the_same_bytes_in_another_file() {
        let found = facts(&words(&["sh"])).unwrap();
        let program = ProgramFile::from(&found);
        let (one, two) =
            (Executable::fresh(&program).unwrap(), Executable::fresh(&program).unwrap());
        let inode = |path: &Path| {
            use std::os::unix::fs::MetadataExt;
            let about = std::fs::metadata(path).unwrap();
            (about.dev(), about.ino())
        };
        let all = [one.path(), two.path(), Path::new(&found.path)].map(inode);
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
        let sum = |path: &Path| sha256_of(&mut File::open(path).unwrap()).unwrap();
        assert_eq!([sum(one.path()), sum(two.path())], [found.sha256.clone(), found.sha256]);
    }
}

//! A program of others that reads or copies the same bytes: `dd` and `cp`. It makes its
//! destination itself, in a folder of ours that goes with it, as a user would have it do: of a
//! file that is there and is opened with `O_TRUNC`, ext4 begins to write the blocks back when
//! it is closed (`auto_da_alloc`, ext4(5)), which would be in the program's time.

use std::path::Path;
use std::time::Duration;

use iolens_model::command_line;
use iolens_model::units::Nanos;
use iolens_sys::usage::children_cpu;
use iolens_sys::{clock, process};
use serde::{Deserialize, Serialize};

use crate::destination::{Destination, Existing};
use crate::examine::examine;
use crate::file_path::FilePath;
use crate::leftover::Leftovers;
use crate::part::spent;
use crate::residency::Residency;
use crate::subject::Subject;
use iolens_programs::spawn;

/// What stands in an argument for the path of the source.
pub const SOURCE: &str = "{src}";
/// And of the destination.
pub const DESTINATION: &str = "{dst}";

/// What a copy is called in its folder.
const COPY: &str = "copy";

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The program and its arguments, with [`SOURCE`] and [`DESTINATION`] in them.
    pub arguments: Vec<String>,
    /// The file, which is only read.
    pub source: FilePath,
    /// The bytes of it that the arguments name, from the beginning.
    pub bytes: u64,
    /// The folder of the destination; `None` for a program that only reads.
    pub folder: Option<FilePath>,
    /// Whether the source is brought out of the page cache first.
    pub evict: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// By the program's own clock where it prints one, as dd does; else its life.
    pub time: Nanos,
    /// From its start to its end.
    pub life: Nanos,
    /// CPU time of it, user and kernel; `None` where it cannot be read.
    pub cpu: Option<(Nanos, Nanos)>,
    /// What of the source was in the page cache before.
    pub resident_before: Residency,
    /// And after.
    pub resident_after: Residency,
}

/// Runs it.
///
/// Errors: what was run and how it failed, or that it has not done what it was to do.
pub fn run(wish: &Wish) -> Result<Done, String> {
    let source = Subject::open(&wish.source.path())?;
    let folder = wish.folder.as_ref().map(|parent| {
        let parent = parent.path();
        let place = parent.join(format!("iolens-tune-{}", process::id()));
        let place = Destination::check(&place, Existing::Refuse, Some(&source))?;
        place.check_room(wish.bytes)?;
        Leftovers::here().make_folder(&parent)
    });
    let folder = folder.transpose()?;
    let copy = folder.as_ref().map(|folder| folder.path().join(COPY));
    let destination = copy.as_deref().map(named).transpose()?.unwrap_or("/dev/null");
    let fill = |argument: &String| {
        argument.replace(SOURCE, source.name()).replace(DESTINATION, destination)
    };
    let arguments: Vec<String> = wish.arguments.iter().map(fill).collect();
    if wish.evict {
        crate::residency::evict(&source)?;
    }
    let resident_before = Residency::of(&source, 0, wish.bytes);
    let (before, begin_ns) = (children_cpu().ok(), clock::monotonic_ns());
    let said = spawn::run_to_end(&arguments)?;
    let life = Nanos(clock::monotonic_ns() - begin_ns);
    let cpu = before.zip(children_cpu().ok()).map(|(before, after)| spent(before, after));
    if let Some(copy) = &copy {
        check_copy(&Subject::open(copy)?, wish.bytes, &arguments)?;
    }
    Ok(Done {
        time: own_clock(&said).unwrap_or(life),
        life,
        cpu,
        resident_before,
        resident_after: Residency::of(&source, 0, wish.bytes),
    })
}

/// How long a program takes that does nothing: its start and its end.
///
/// Errors: how it failed.
pub fn start_up(program: &str) -> Result<Nanos, String> {
    let begin_ns = clock::monotonic_ns();
    spawn::run_to_end(&[program.to_owned(), "--version".to_owned()])?;
    Ok(Nanos(clock::monotonic_ns() - begin_ns))
}

/// A path as a word of a command.
fn named(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| {
        format!("{} is not UTF-8, as a command must be: name another folder", path.display())
    })
}

/// Whether a copy has as many bytes as it should, and blocks of its own.
fn check_copy(copy: &Subject, bytes: u64, arguments: &[String]) -> Result<(), String> {
    let command = command_line::join(arguments);
    if copy.bytes() != bytes {
        return Err(format!("`{command}` copied {} of {bytes} bytes", copy.bytes()));
    }
    let shared = examine(copy).ok().and_then(|found| found.shared_bytes).unwrap_or(0);
    match shared {
        0 => Ok(()),
        _ => Err(format!("`{command}` shared {shared} bytes instead of copying them")),
    }
}

/// dd's last line: `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.11821 s, 9.1 GB/s`.
fn own_clock(said: &str) -> Option<Nanos> {
    let line = said.lines().last()?;
    let (_, after) = line.split_once(" copied, ")?;
    let seconds: f64 = after.split_once(" s")?.0.trim().parse().ok()?;
    // Between a nanosecond and a century; no time is no measurement.
    let is_time = (1e-9..3e9).contains(&seconds);
    is_time
        .then(|| Duration::from_secs_f64(seconds))
        .map(|time| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(folder: &Path, arguments: &[&str], copies: bool) -> Wish {
        std::fs::write(folder.join("f"), vec![7u8; 300_000]).unwrap();
        Wish {
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
            source: FilePath::new(&folder.join("f")),
            bytes: 300_000,
            folder: copies.then(|| FilePath::new(folder)),
            evict: false,
        }
    }

    #[test]
    fn programs_read_and_copy_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let read = run(&wish(folder.path(), &["dd", "if={src}", "of={dst}", "bs=128K"], false));
        let read = read.unwrap();
        assert!(read.time.0 > 0 && read.time < read.life, "dd has a clock: {read:?}");
        let copied = run(&wish(folder.path(), &["cp", "{src}", "{dst}"], true)).unwrap();
        assert_eq!(copied.time, copied.life);
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_program_that_fails_or_copies_too_little_is_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let check = |arguments: &[&str], expect: &str| {
            let why = run(&wish(folder.path(), arguments, true)).unwrap_err();
            assert!(why.contains(expect), "{why}");
        };
        check(&["dd", "if={src}", "of={dst}", "bs=1000", "count=1"], "copied 1000 of 300000 bytes");
        check(&["dd", "if={src}x", "of={dst}"], "exited with status 1");
        // Nothing is there for it to truncate.
        check(&["test", "-e", "{dst}"], "exited with status 1");
        // By its path: a PATH may have folders that not every user may search (EACCES).
        let nowhere = folder.path().join("no-such-program").display().to_string();
        check(&[&nowhere], "no-such-program: ENOENT");
    }

    #[test]
    fn the_clock_of_dd_is_read() {
        let said = "8+0 records in\n8+0 records out\n1048576 bytes (1.0 MB, 1.0 MiB) copied, \
                    0.000211 s, 5.0 GB/s";
        assert_eq!(own_clock(said), Some(Nanos(211_000)));
        assert_eq!(own_clock("12 bytes copied, 3.1e-05 s, 387 kB/s"), Some(Nanos(31_000)));
        for none in ["", "0 bytes copied, 0 s, Infinity B/s", "bytes copied, x s"] {
            assert_eq!(own_clock(none), None, "{none}");
        }
    }
}

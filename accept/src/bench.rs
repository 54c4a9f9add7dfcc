//! What every line gets: the built tool, and a directory for what it makes.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::check::{Check, Res};
use crate::process::{Finished, Job};

/// The tool, with a directory where it works and keeps its files, results included.
#[derive(Clone)]
pub struct Bench {
    /// The release build.
    pub tool: PathBuf,
    /// Where peers that are built or written here are.
    pub peers: PathBuf,
    /// Where other benches have their directories.
    scratch: PathBuf,
    home: PathBuf,
    /// What the line has found so far.
    check: Check,
}

/// A line tells its bench what it finds.
impl Deref for Bench {
    type Target = Check;

    fn deref(&self) -> &Check {
        &self.check
    }
}

impl Bench {
    /// Builds the tool, unless the variable names one. The directory, which others may enter, goes
    /// with the second.
    pub fn new() -> Res<(Bench, TempDir)> {
        let tool = match std::env::var_os("IOLENS_TEST_BIN") {
            Some(tool) => PathBuf::from(tool),
            None => {
                Job::cargo("build --release --bin iolens").success()?;
                target().join("release/iolens")
            }
        };
        let all = fs::Permissions::from_mode(0o755);
        let scratch = tempfile::Builder::new().prefix("iolens-accept-").permissions(all).tempdir();
        let scratch = scratch.map_err(|e| format!("no temporary directory: {e}"))?;
        let [path, peers] = [scratch.path().to_owned(), scratch.path().join("peers")];
        create(&peers)?;
        let check = Check::default();
        Ok((Bench { tool, peers, home: path.clone(), scratch: path, check }, scratch))
    }

    /// The same bench for evidence of its own.
    pub fn telling(&self, check: &Check) -> Bench {
        Bench { check: check.clone(), ..self.clone() }
    }

    /// The same tool with another directory, which is made where it is not there.
    pub fn room(&self, name: &str) -> Res<Bench> {
        let home = self.scratch.join(name);
        create(&home.join("tmp"))?;
        Ok(Bench { home, ..self.clone() })
    }

    /// A path in the directory, or its own.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.home.clone() } else { self.home.join(name) }
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Res {
        fs::write(self.path(name), content).map_err(|e| format!("cannot write {name}: {e}"))
    }

    pub fn read(&self, name: &str) -> Res<String> {
        read(&self.path(name))
    }

    /// A command of the tool.
    pub fn iolens(&self, words: impl AsRef<str>) -> Job {
        self.at_home(Job::new(&self.tool).words(words))
    }

    /// The same, started by another command.
    pub fn under(&self, job: Job, words: impl AsRef<str>) -> Job {
        self.at_home(job.arg(&self.tool).words(words))
    }

    /// A command that works in the directory, and runs the tool maybe.
    pub fn at_home(&self, job: Job) -> Job {
        let job = job.directory(&self.home).env("XDG_DATA_HOME", &self.home);
        job.env("TMPDIR", self.path("tmp")).env("NO_COLOR", "1")
    }

    /// A command of the tool that is to succeed.
    pub fn run(&self, words: impl AsRef<str>) -> Res<Finished> {
        self.iolens(words).success()
    }

    pub fn json(&self, words: impl AsRef<str>) -> Res<Value> {
        self.run(words)?.json()
    }

    /// The JSON of the last run.
    pub fn last(&self) -> Res<Value> {
        self.json("show last --json")
    }

    /// A copy of the tool in the directory.
    pub fn copy_tool(&self, name: &str) -> Res<PathBuf> {
        let copy = self.path(name);
        let made = fs::copy(&self.tool, &copy);
        made.map(|_| copy).map_err(|e| format!("cannot copy the tool: {e}"))
    }

    /// The slices of the last run.
    pub fn slices(&self) -> Res<Value> {
        self.json("export last --format json --rows slices")
    }
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}

fn create(directory: &Path) -> Res {
    fs::create_dir_all(directory).map_err(|e| format!("cannot create {}: {e}", directory.display()))
}

pub fn read(path: &Path) -> Res<String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

//! What every line gets: the built tool, and a directory for what it makes.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::prelude::*;
use crate::process::Finished;

/// What is asked of a document: name, filter and condition of each figure, by what it is.
pub type Asks = BTreeMap<String, Vec<[String; 3]>>;

/// The tool, with a directory where it works and keeps its files, results included.
#[derive(Clone, Default)]
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
    /// What it asks of documents.
    asks: Asks,
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
        let all = Permissions::from_mode(0o755);
        let scratch =
            tempfile::Builder::new().prefix("iolens-accept-").permissions(all).tempdir()?;
        let [path, peers] = [scratch.path().to_owned(), scratch.path().join("peers")];
        fs::create_dir_all(&peers)?;
        let bench = Bench { tool, peers, home: path.clone(), scratch: path, ..Bench::default() };
        Ok((bench, scratch))
    }

    /// The same bench for a line, with evidence of its own.
    pub fn of_line(&self, check: &Check, asks: &Asks) -> Bench {
        Bench { check: check.clone(), asks: asks.clone(), ..self.clone() }
    }

    /// The same for evidence alone.
    pub fn telling(&self, check: &Check) -> Bench {
        self.of_line(check, &self.asks)
    }

    /// Asks a document, and beside it another, what the table of the line has under this name.
    pub fn ask(&self, what: &str, json: &Value, beside: &Value) {
        let all = self.asks.get(what).map_or(&[][..], Vec::as_slice);
        self.expect(!all.is_empty(), what, "nothing is asked");
        all.iter().for_each(|one| ask(self, [json, beside], one.each_ref().map(String::as_str)));
    }

    /// The same tool with another directory, which is made where it is not there.
    pub fn room(&self, name: &str) -> Res<Bench> {
        let home = self.scratch.join(name);
        fs::create_dir_all(home.join("tmp"))?;
        Ok(Bench { home, ..self.clone() })
    }

    /// A path in the directory, or its own.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.home.clone() } else { self.home.join(name) }
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Res {
        Ok(fs::write(self.path(name), content)?)
    }

    pub fn read(&self, name: &str) -> Res<String> {
        Ok(fs::read_to_string(self.path(name))?)
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
        fs::copy(&self.tool, &copy)?;
        Ok(copy)
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

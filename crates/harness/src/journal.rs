//! The journal: what a run changes that outlives its processes, written down
//! before it is changed, so that whoever starts next can put it back. One file
//! in one fixed place, which only root may write, as only root may change what
//! it is about; see [`Journal`]. What is changed and put back is `sysctl`'s.

use std::fmt;
use std::path::PathBuf;

use iolens_model::host::SysctlChange;
use iolens_sys::lock::{self, Attempt, Lock, LockedBy};
use iolens_sys::proc::{self, Root, RunState};
use iolens_sys::{durable, process};
use serde::{Deserialize, Serialize};

/// Where the journal is, below the root. /run is root's alone and does not
/// outlive a boot, as sysctls do not.
const FOLDER: &str = "run";
const FILE: &str = "iolens.journal";

/// What one process has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Who has changed it.
    pub(crate) owner: Owner,
    /// In the order in which they are made.
    pub(crate) sysctls: Vec<SysctlChange>,
}

/// A process, so that no other one is taken for it: ids are used again, and
/// start times after a boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    pid: u32,
    /// Clock ticks since boot, from /proc/PID/stat.
    start_ticks: u64,
    /// `kernel.random.boot_id`.
    boot_id: String,
    /// The inode of its PID namespace, in which `pid` is its id. None without
    /// /proc/self/ns: then it is taken for the one of who looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid_namespace: Option<u64>,
}

/// What has become of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Or it cannot be told: it is of another PID namespace, whose processes cannot be seen.
    Alive,
    /// There is no such process any more.
    Dead,
    /// Dead, and what it had changed too: the machine was started since.
    OfAnotherBoot,
}

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

impl Owner {
    /// This process.
    ///
    /// Errors: what /proc does not tell.
    pub fn own(root: &Root) -> Result<Owner, String> {
        let stat = root.read("proc/self/stat")?;
        let (_, start_ticks) = proc::process_start(&stat)
            .ok_or_else(|| format!("/proc/self/stat tells no start time: `{stat}`"))?;
        let (pid, pid_namespace) = (process::id(), pid_namespace(root));
        Ok(Owner { pid, start_ticks, boot_id: root.read(BOOT_ID)?, pid_namespace })
    }

    /// What has become of it.
    pub fn fate(&self, root: &Root) -> Fate {
        if root.read(BOOT_ID).is_ok_and(|boot_id| boot_id != self.boot_id) {
            return Fate::OfAnotherBoot;
        }
        if self.is_elsewhere(root) {
            return Fate::Alive;
        }
        let stat = root.read(&format!("proc/{}/stat", self.pid)).unwrap_or_default();
        match proc::process_start(&stat) {
            Some((RunState::Running, start_ticks)) if start_ticks == self.start_ticks => {
                Fate::Alive
            }
            _ => Fate::Dead,
        }
    }

    /// Whether it is of another PID namespace than who looks.
    pub(crate) fn is_elsewhere(&self, root: &Root) -> bool {
        self.pid_namespace.is_some() && self.pid_namespace != pid_namespace(root)
    }
}

/// The inode of this process's PID namespace: `pid:[4026531836]`, see namespaces(7).
fn pid_namespace(root: &Root) -> Option<u64> {
    root.link("proc/self/ns/pid")?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)
    }
}

/// The journal of a machine.
#[derive(Debug, Clone)]
pub struct Journal {
    root: Root,
    file: PathBuf,
}

impl Journal {
    /// The journal of the machine we run on. Tests bring a folder of their own.
    pub fn here() -> Journal {
        match crate::lock::stated_folder() {
            Some(folder) => Journal { root: Root::real(), file: folder.join(FILE) },
            None => Journal::at(Root::real()),
        }
    }

    /// The journal of the machine that `root` shows.
    pub fn at(root: Root) -> Journal {
        let file = root.path(FOLDER).join(FILE);
        Journal { root, file }
    }

    /// The file system that it is in.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Where it is, for messages.
    pub fn place(&self) -> String {
        self.file.display().to_string()
    }

    /// Keeps others from the journal while something is done with it.
    ///
    /// Errors: `None` if somebody else does; why it cannot be had.
    pub(crate) fn try_hold(&self) -> Result<Option<Lock>, String> {
        let path = self.file.with_extension("journal.lock");
        match lock::try_take(&path, LockedBy::Owner, &format!("pid {}", process::id())) {
            Ok(Attempt::Taken(lock)) => Ok(Some(lock)),
            Ok(Attempt::HeldBy(_)) => Ok(None),
            Ok(Attempt::Odd(why)) => Err(format!("cannot lock {}: {why}", path.display())),
            Err(errno) => Err(format!("cannot lock {}: {errno}", path.display())),
        }
    }

    /// What is written down; nothing if there is nothing.
    ///
    /// Errors: why it cannot be read. What was torn was not ours: a record of
    /// ours is there whole before anything is changed.
    pub(crate) fn load(&self) -> Result<Option<Record>, String> {
        let cannot =
            |why: &dyn fmt::Display| format!("cannot read the journal {}: {why}", self.place());
        let text = match std::fs::read_to_string(&self.file) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(cannot(&iolens_sys::errno::Errno::from(e))),
            Ok(text) => text,
        };
        serde_json::from_str(&text).map(Some).map_err(|e| cannot(&format!("{e} in `{text}`")))
    }

    /// Writes down what this process is about to change, and brings it to the
    /// device.
    ///
    /// Errors: why it cannot; then nothing may be changed.
    pub(crate) fn begin(&self, sysctls: Vec<SysctlChange>) -> Result<Record, String> {
        let record = Record { owner: Owner::own(&self.root)?, sysctls };
        let text = serde_json::to_string_pretty(&record)
            .map_err(|e| format!("cannot write the journal {}: {e}", self.place()))?;
        durable::write(&self.file, &text)
            .map_err(|errno| format!("cannot write the journal {}: {errno}", self.place()))?;
        Ok(record)
    }

    /// Forgets what was put back.
    ///
    /// Errors: why the file stays.
    pub(crate) fn end(&self) -> Result<(), String> {
        durable::remove(&self.file)
            .map_err(|errno| format!("cannot remove the journal {}: {errno}", self.place()))
    }
}

#[cfg(test)]
pub(crate) mod tests;

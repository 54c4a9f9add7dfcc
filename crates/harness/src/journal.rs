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
    #[must_use]
    pub fn here() -> Journal {
        match crate::lock::stated_folder() {
            Some(folder) => Journal { root: Root::real(), file: folder.join(FILE) },
            None => Journal::at(Root::real()),
        }
    }

    /// The journal of the machine that `root` shows.
    #[must_use]
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
pub(crate) mod tests {
    use super::*;
    use crate::scripted::Machine;

    /// /proc/PID/stat of a process that was started at `start_ticks`.
    pub(crate) fn stat(state: &str, start_ticks: u64) -> String {
        format!("77 (iolens) {state} {}{start_ticks} 0 0", "0 ".repeat(18))
    }

    /// A machine on which this process runs.
    pub(crate) fn machine() -> Machine {
        let machine = Machine::with(&[(BOOT_ID, "boot-1\n"), ("proc/self/stat", &stat("R", 500))]);
        machine.write(&format!("proc/{}/stat", process::id()), stat("R", 500));
        std::fs::create_dir(machine.path().join(FOLDER)).unwrap();
        machine
    }

    fn change() -> SysctlChange {
        SysctlChange { name: "net.core.x".into(), before: "0".into(), value: "1".into() }
    }

    #[test]
    fn a_record_is_there_until_it_is_ended() {
        let machine = machine();
        let journal = Journal::at(machine.root());
        assert_eq!(journal.load(), Ok(None));
        let record = journal.begin(vec![change()]).unwrap();
        assert_eq!(journal.load(), Ok(Some(record.clone())));
        assert_eq!(record.owner.fate(&machine.root()), Fate::Alive);
        journal.end().unwrap();
        assert_eq!(journal.load(), Ok(None));
        assert_eq!(std::fs::read_dir(machine.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn nobody_else_may_open_the_lock() {
        use std::os::unix::fs::PermissionsExt;

        let machine = machine();
        let journal = Journal::at(machine.root());
        let lock = journal.try_hold().unwrap().unwrap();
        let path = machine.path().join("run/iolens.journal.lock");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(journal.try_hold().unwrap().is_none());
        drop(lock);
    }

    #[test]
    fn an_owner_is_known_by_id_start_and_boot() {
        let machine = machine();
        let owner = Owner::own(&machine.root()).unwrap();
        let own = format!("proc/{}/stat", process::id());
        let fate = |text: &str| {
            machine.write(&own, text);
            owner.fate(&machine.root())
        };
        assert_eq!(fate(&stat("S", 500)), Fate::Alive);
        assert_eq!(fate(&stat("Z", 500)), Fate::Dead, "it waits for its parent");
        assert_eq!(fate(&stat("S", 501)), Fate::Dead, "another process has its id");
        machine.remove(&own);
        assert_eq!(owner.fate(&machine.root()), Fate::Dead);
        machine.write(BOOT_ID, "boot-2\n");
        assert_eq!(owner.fate(&machine.root()), Fate::OfAnotherBoot);
    }

    #[test]
    fn an_owner_of_another_pid_namespace_is_left_alone() {
        const NAMESPACE: &str = "proc/self/ns/pid";
        let machine = machine();
        machine.link(NAMESPACE, "pid:[4026531836]");
        let owner = Owner::own(&machine.root()).unwrap();
        let text = serde_json::to_string(&owner).unwrap();
        machine.remove(&format!("proc/{}/stat", process::id()));
        assert_eq!(owner.fate(&machine.root()), Fate::Dead);
        machine.remove(NAMESPACE);
        machine.link(NAMESPACE, "pid:[4026532201]");
        assert_eq!(owner.fate(&machine.root()), Fate::Alive, "ids there are not those here");
        machine.write(BOOT_ID, "boot-2\n");
        assert_eq!(owner.fate(&machine.root()), Fate::OfAnotherBoot);
        machine.write(BOOT_ID, "boot-1\n");
        // One without /proc/self/ns says nothing of namespaces.
        let mut unnamed: serde_json::Value = serde_json::from_str(&text).unwrap();
        unnamed.as_object_mut().unwrap().remove("pid_namespace");
        let unnamed: Owner = serde_json::from_value(unnamed).unwrap();
        assert_eq!(unnamed.fate(&machine.root()), Fate::Dead);
    }

    #[test]
    fn what_is_no_record_is_quoted() {
        let machine = machine();
        let journal = Journal::at(machine.root());
        for text in ["", "{\"owner\": {\"pid\"", "{}", "[1]"] {
            machine.write("run/iolens.journal", text);
            let why = journal.load().unwrap_err();
            assert!(why.starts_with("cannot read the journal "), "{why}");
            assert!(why.ends_with(&format!("in `{text}`")), "{why}");
        }
    }

    #[test]
    fn where_nothing_can_be_written_down_nothing_begins() {
        let machine = machine();
        std::fs::remove_dir(machine.path().join(FOLDER)).unwrap();
        let why = Journal::at(machine.root()).begin(vec![change()]).unwrap_err();
        assert!(why.starts_with("cannot write the journal ") && why.contains("ENOENT"), "{why}");
        machine.remove("proc/self/stat");
        assert!(Journal::at(machine.root()).begin(Vec::new()).is_err());
    }
}

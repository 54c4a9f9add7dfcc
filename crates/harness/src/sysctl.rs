//! Sysctls of the whole machine that a run changes with the user's consent and
//! puts back. Each is written down in the [`journal`](crate::journal) before it
//! is changed: at the end of the run the one who changed it puts it back; if he
//! was killed, the next start that looks does. What somebody else has changed
//! meanwhile is his, and stays.

use std::time::Duration;

use iolens_model::host::SysctlChange;
use iolens_sys::errno::Errno;
use iolens_sys::lock::Lock;
use iolens_sys::proc::Root;
use iolens_sys::sysctl;

use crate::journal::{Fate, Journal, Record};

/// A sysctl and the value that something needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its dotted name.
    pub name: &'static str,
    /// What it is to be.
    pub value: &'static str,
}

/// Lets a copying send fill pages that stand alone instead of blocks of 32 KiB
/// (`skb_page_frag_refill`, net/core/sock.c): only those can be mapped
/// (`can_map_frag`, net/ipv4/tcp.c). Since Linux 5.3.
pub const SINGLE_PAGES: Setting = Setting { name: "net.core.high_order_alloc_disable", value: "1" };

/// Every one there is: nothing else is ever written, whatever a journal says.
const SETTINGS: &[Setting] = &[SINGLE_PAGES];

/// Whether these can be set here, as far as they are not already. Changes
/// nothing.
///
/// Errors: what was tried, what the system said, what to do.
pub fn check(root: &Root, settings: &[Setting]) -> Result<(), String> {
    let other =
        |setting: &&Setting| sysctl::read(root, setting.name).as_deref() != Ok(setting.value);
    settings.iter().filter(other).try_for_each(|setting| {
        sysctl::try_write(root, setting.name).map_err(|errno| refusal(*setting, errno))
    })
}

fn refusal(Setting { name, value }: Setting, errno: Errno) -> String {
    let why = match errno {
        Errno::ENOENT => {
            "this kernel or network namespace does not have it (Linux does since 5.3, in the \
             machine's own network namespace)\n  run outside the container, or leave \
             --allow-sysctl out"
                .to_owned()
        }
        Errno::EROFS => format!(
            "/proc/sys is mounted read-only, as in containers\n  run outside the container, set it \
             there yourself (`sudo sysctl {name}={value}`), or leave --allow-sysctl out"
        ),
        Errno::EACCES | Errno::EPERM => "only the machine's root may\n  run iolens as root, or \
             leave --allow-sysctl out"
            .to_owned(),
        _ => "leave --allow-sysctl out".to_owned(),
    };
    format!("cannot set {name} to {value}, which --allow-sysctl asks for: {errno}: {why}")
}

/// Sysctls that are changed now; put back by [`Changed::undo`], or when dropped.
#[derive(Debug)]
pub struct Changed {
    journal: Journal,
    record: Option<Record>,
}

/// Changes what is not yet as it is to be, and what the journal's last owner
/// left is put back first; the sentences are about that. `None` if there was
/// nothing to change.
///
/// Errors: why nothing was changed.
pub fn change(
    journal: Journal,
    settings: &[Setting],
) -> Result<(Option<Changed>, Vec<String>), String> {
    let held = hold(&journal)?;
    let notes = sweep_held(&journal);
    if let Some(record) = journal.load()? {
        return Err(match record.owner.fate(journal.root()) {
            Fate::Alive if record.owner.is_elsewhere(journal.root()) => format!(
                "an iolens of another PID namespace, such as that of a container, has changed {} \
                 and puts it back when it ends; whether it lives cannot be told from here\n  wait \
                 for it, or, if it is gone, put back what it changed (`{}`) and remove {}",
                list(&record.sysctls),
                remedy(&record.sysctls),
                journal.place()
            ),
            Fate::Alive => format!(
                "another iolens ({}) has changed {} and puts it back when it ends: wait for that",
                record.owner,
                list(&record.sysctls)
            ),
            _ => format!("what a killed run changed cannot be put back: {}", notes.join("; ")),
        });
    }
    let mut changes = Vec::new();
    for setting in settings {
        let before =
            sysctl::read(journal.root(), setting.name).map_err(|errno| refusal(*setting, errno))?;
        if before != setting.value {
            let (name, value) = (setting.name.to_owned(), setting.value.to_owned());
            changes.push(SysctlChange { name, before, value });
        }
    }
    if changes.is_empty() {
        return Ok((None, notes));
    }
    let record = journal.begin(changes)?;
    let changed = Changed { journal, record: Some(record) };
    for change in changed.changes() {
        // An error undoes what was changed before it, when `changed` is dropped;
        // that needs the journal.
        if let Err(why) = set(changed.journal.root(), &change.name, &change.value) {
            drop(held);
            return Err(why);
        }
    }
    Ok((Some(changed), notes))
}

impl Changed {
    /// What was changed.
    pub fn changes(&self) -> &[SysctlChange] {
        self.record.as_ref().map_or(&[], |record| &record.sysctls)
    }

    /// Puts everything back. The sentences are about what could not be, or was
    /// not as it had been left.
    #[must_use]
    pub fn undo(mut self) -> Vec<String> {
        self.put_back()
    }

    fn put_back(&mut self) -> Vec<String> {
        let Some(record) = self.record.take() else { return Vec::new() };
        // Whoever holds the journal only looks: this record's owner is alive.
        let held = hold(&self.journal);
        let mut notes: Vec<String> = held.as_ref().err().cloned().into_iter().collect();
        let (done, said) = restore(self.journal.root(), &record);
        notes.extend(said.into_iter().filter_map(Restored::unexpected));
        // Who cannot see our process may have taken it for dead, and the journal.
        if done && self.journal.load() == Ok(Some(record)) {
            notes.extend(self.journal.end().err());
        }
        notes
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// Puts back what a run that was killed has left, if one has. The sentences say
/// what was done, and what could not be.
#[must_use]
pub fn sweep(journal: &Journal) -> Vec<String> {
    let is_left = |record: &Record| record.owner.fate(journal.root()) != Fate::Alive;
    match journal.load() {
        Ok(None) => return Vec::new(),
        Ok(Some(record)) if !is_left(&record) => return Vec::new(),
        _ => {}
    }
    match journal.try_hold() {
        Ok(Some(_held)) => sweep_held(journal),
        // Somebody else is about to.
        Ok(None) => Vec::new(),
        // Who may not write there may not write sysctls either.
        Err(_) => match leftover(journal) {
            Ok(Leftover::Left(changes)) => vec![format!(
                "a run that was killed has left {}: {}",
                list(&changes),
                remedy(&changes)
            )],
            Ok(_) => Vec::new(),
            Err(why) => vec![why],
        },
    }
}

/// The same by who holds the journal.
fn sweep_held(journal: &Journal) -> Vec<String> {
    let record = match journal.load() {
        Ok(None) => return Vec::new(),
        Ok(Some(record)) => record,
        Err(why) => {
            return vec![format!("{why}\n  remove it, once the sysctls are as they should be")];
        }
    };
    let (done, mut notes) = match record.owner.fate(journal.root()) {
        Fate::Alive => return Vec::new(),
        // The boot has put everything back.
        Fate::OfAnotherBoot => (true, Vec::new()),
        Fate::Dead => {
            let (done, said) = restore(journal.root(), &record);
            (done, said.into_iter().map(|said| said.words(&record)).collect())
        }
    };
    if done {
        notes.extend(journal.end().err());
    }
    notes
}

/// What a record says that is still in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing.
    Nothing,
    /// A run that goes on has changed these.
    InUse(Vec<SysctlChange>),
    /// A run that was killed has left these changed.
    Left(Vec<SysctlChange>),
}

/// Looks, and changes nothing.
///
/// Errors: why the journal cannot be read.
pub fn leftover(journal: &Journal) -> Result<Leftover, String> {
    let Some(record) = journal.load()? else { return Ok(Leftover::Nothing) };
    let fate = record.owner.fate(journal.root());
    if fate == Fate::OfAnotherBoot {
        return Ok(Leftover::Nothing);
    }
    let in_force =
        |c: &SysctlChange| sysctl::read(journal.root(), &c.name).is_ok_and(|v| v == c.value);
    let changes: Vec<SysctlChange> = record.sysctls.into_iter().filter(in_force).collect();
    Ok(match (changes.is_empty(), fate) {
        (true, _) => Leftover::Nothing,
        (false, Fate::Alive) => Leftover::InUse(changes),
        (false, _) => Leftover::Left(changes),
    })
}

/// `net.core.high_order_alloc_disable=1 (0 before)`.
pub fn list(changes: &[SysctlChange]) -> String {
    let one = |change: &SysctlChange| format!("{change} ({} before)", change.before);
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The command that puts them back.
pub fn remedy(changes: &[SysctlChange]) -> String {
    let one = |change: &SysctlChange| format!("{}={}", change.name, change.before);
    format!("sudo sysctl {}", changes.iter().map(one).collect::<Vec<_>>().join(" "))
}

/// How often, and how far apart, a journal is asked for that somebody holds, who
/// only writes a few lines.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Keeps others from the journal.
///
/// Errors: why it cannot be had.
fn hold(journal: &Journal) -> Result<Lock, String> {
    for _ in 0..TRIES {
        if let Some(lock) = journal.try_hold()? {
            return Ok(lock);
        }
        std::thread::park_timeout(PAUSE);
    }
    Err(format!("another process keeps the journal {} to itself", journal.place()))
}

/// What became of one change.
#[derive(Debug)]
enum Restored {
    PutBack(SysctlChange),
    /// It was what it had been before already.
    AsBefore(SysctlChange),
    /// Somebody else had set it to this.
    Foreign(SysctlChange, String),
    /// It could not be.
    Failed(String),
}

impl Restored {
    /// What to say after one's own run.
    fn unexpected(self) -> Option<String> {
        match self {
            Restored::PutBack(_) => None,
            Restored::AsBefore(SysctlChange { name, before, value }) => Some(format!(
                "{name} was set back to {before} by somebody else while the run went on, which had \
                 set it to {value}"
            )),
            Restored::Foreign(change, now) => Some(format!(
                "{} was set to {now} by somebody else while the run went on, and is left so; the \
                 run had set it to {}, and it was {} before",
                change.name, change.value, change.before
            )),
            Restored::Failed(why) => Some(why),
        }
    }

    /// What to say of a run that was killed.
    fn words(self, record: &Record) -> String {
        match self {
            Restored::PutBack(SysctlChange { name, before, value }) => format!(
                "{name} is {before} again: a run that was killed ({}) had left it at {value}",
                record.owner
            ),
            Restored::AsBefore(SysctlChange { name, before, .. }) => format!(
                "{name} is {before}, as it was before a run that was killed ({})",
                record.owner
            ),
            other => other.unexpected().unwrap_or_default(),
        }
    }
}

/// Puts back what a record says, the last first, and whether there is nothing
/// left to do.
fn restore(root: &Root, record: &Record) -> (bool, Vec<Restored>) {
    let restored: Vec<Restored> =
        record.sysctls.iter().rev().map(|change| restore_one(root, change)).collect();
    (!restored.iter().any(|restored| matches!(restored, Restored::Failed(_))), restored)
}

fn restore_one(root: &Root, change: &SysctlChange) -> Restored {
    let SysctlChange { name, before, value } = change;
    if !SETTINGS.iter().any(|setting| setting.name == name) {
        return Restored::Failed(format!(
            "the journal names {name}, which no iolens of this build changes: it is left alone"
        ));
    }
    match sysctl::read(root, name) {
        Ok(now) if now == *value => match set(root, name, before) {
            Ok(()) => Restored::PutBack(change.clone()),
            Err(why) => Restored::Failed(format!("{why}\n  sudo sysctl {name}={before}")),
        },
        Ok(now) if now == *before => Restored::AsBefore(change.clone()),
        Ok(now) => Restored::Foreign(change.clone(), now),
        Err(errno) => Restored::Failed(format!("cannot read {name} to put it back: {errno}")),
    }
}

/// Sets a sysctl and reads it back.
fn set(root: &Root, name: &str, value: &str) -> Result<(), String> {
    sysctl::write(root, name, value)
        .map_err(|errno| format!("cannot set {name} to {value}: {errno}"))?;
    match sysctl::read(root, name) {
        Ok(now) if now == value => Ok(()),
        Ok(now) => Err(format!("{name} was set to {value} and is {now}")),
        Err(errno) => Err(format!("cannot read {name} after setting it: {errno}")),
    }
}

#[cfg(test)]
mod tests;

//! The journal on a machine that is laid out in a folder.

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

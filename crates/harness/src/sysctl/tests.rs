//! Changing and putting back on machines laid out in folders.

use super::*;
use crate::journal::tests::{machine, stat};
use crate::scripted::Machine;

const FILE: &str = "proc/sys/net/core/high_order_alloc_disable";
const JOURNAL: &str = "run/iolens.journal";

/// A machine whose sysctl is 0.
fn at_zero() -> Machine {
    let machine = machine();
    machine.write(FILE, "0\n");
    machine
}

fn journal(machine: &Machine) -> Journal {
    Journal::at(machine.root())
}

fn value(machine: &Machine) -> String {
    machine.root().read(FILE).unwrap()
}

fn is_written_down(machine: &Machine) -> bool {
    machine.path().join(JOURNAL).exists()
}

/// Changes it as a run does.
fn changed(machine: &Machine) -> Changed {
    let (changed, notes) = change(journal(machine), SETTINGS).unwrap();
    assert_eq!((value(machine).as_str(), notes), ("1", Vec::new()));
    assert!(is_written_down(machine));
    changed.unwrap()
}

/// Changes it as a run does that is killed.
fn killed(machine: &Machine) {
    std::mem::forget(changed(machine));
    machine.remove(&format!("proc/{}/stat", std::process::id()));
}

fn check_sweep(machine: &Machine, expect: &[&str]) {
    let notes = sweep(&journal(machine));
    assert_eq!(notes.len(), expect.len(), "{notes:?}");
    for (note, expect) in notes.iter().zip(expect) {
        assert!(note.contains(expect), "{note}");
    }
}

#[test]
fn what_is_changed_is_put_back() {
    let machine = at_zero();
    let change = changed(&machine);
    assert_eq!(list(change.changes()), "net.core.high_order_alloc_disable=1 (0 before)");
    assert_eq!(change.undo(), [""; 0]);
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("0", false));
    // An end by an error says nothing, and does it too.
    drop(changed(&machine));
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("0", false));
}

#[test]
fn nothing_is_changed_that_was_not_written_down_before() {
    let machine = at_zero();
    // Who changes it cannot be written down.
    machine.remove("proc/self/stat");
    let why = change(journal(&machine), SETTINGS).unwrap_err();
    assert!(why.contains("proc/self/stat"), "{why}");
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("0", false));
}

#[test]
fn what_is_as_needed_is_left_alone() {
    let machine = machine();
    machine.write(FILE, "1\n");
    let (changed, notes) = change(journal(&machine), SETTINGS).unwrap();
    assert!(changed.is_none() && notes.is_empty() && !is_written_down(&machine));
    machine.write(FILE, "0\n");
    assert!(change(journal(&machine), &[]).unwrap().0.is_none());
    assert_eq!(value(&machine), "0");
}

#[test]
fn a_change_that_does_not_take_is_an_error_and_forgotten() {
    let machine = machine();
    std::fs::create_dir_all(machine.path().join(FILE).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/null", machine.path().join(FILE)).unwrap();
    let why = change(journal(&machine), SETTINGS).unwrap_err();
    assert_eq!(why, "net.core.high_order_alloc_disable was set to 1 and is ");
    assert!(!is_written_down(&machine));
}

#[test]
fn the_next_start_puts_back_what_a_killed_run_left() {
    let machine = at_zero();
    killed(&machine);
    let left = Leftover::Left(vec![SysctlChange {
        name: SINGLE_PAGES.name.into(),
        before: "0".into(),
        value: "1".into(),
    }]);
    assert_eq!(leftover(&journal(&machine)), Ok(left));
    check_sweep(&machine, &["net.core.high_order_alloc_disable is 0 again: a run that was killed"]);
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("0", false));
    check_sweep(&machine, &[]);
    assert_eq!(leftover(&journal(&machine)), Ok(Leftover::Nothing));
}

#[test]
fn a_run_that_changes_it_again_puts_back_first_what_was_left() {
    let machine = at_zero();
    killed(&machine);
    machine.write(&format!("proc/{}/stat", std::process::id()), stat("R", 900));
    machine.write("proc/self/stat", stat("R", 900));
    let (changed, notes) = change(journal(&machine), SETTINGS).unwrap();
    assert!(notes[0].contains("is 0 again"), "{notes:?}");
    assert_eq!(changed.unwrap().undo(), [""; 0]);
    assert_eq!(value(&machine), "0", "what was before is not what the killed run had set");
}

#[test]
fn a_run_that_goes_on_keeps_what_it_has_changed() {
    let machine = at_zero();
    let change = changed(&machine);
    check_sweep(&machine, &[]);
    assert_eq!(value(&machine), "1");
    assert!(matches!(leftover(&journal(&machine)), Ok(Leftover::InUse(_))));
    let why = super::change(journal(&machine), SETTINGS).unwrap_err();
    assert!(why.starts_with("another iolens (pid "), "{why}");
    assert_eq!(change.undo(), [""; 0]);
}

#[test]
fn what_was_changed_in_another_pid_namespace_is_left_with_what_to_do() {
    const NAMESPACE: &str = "proc/self/ns/pid";
    let machine = at_zero();
    machine.link(NAMESPACE, "pid:[4026532201]");
    let change = changed(&machine);
    machine.remove(NAMESPACE);
    machine.link(NAMESPACE, "pid:[4026531836]");
    // No process here has its id.
    let stat = format!("proc/{}/stat", std::process::id());
    let text = machine.root().read(&stat).unwrap();
    machine.remove(&stat);
    check_sweep(&machine, &[]);
    assert_eq!(value(&machine), "1");
    machine.write(&stat, text);
    let why = super::change(journal(&machine), SETTINGS).unwrap_err();
    for part in ["another PID namespace", "sudo sysctl ", "and remove "] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    assert_eq!(change.undo(), [""; 0]);
}

#[test]
fn what_somebody_else_has_set_is_his() {
    let machine = at_zero();
    let change = changed(&machine);
    machine.write(FILE, "2\n");
    let notes = change.undo();
    assert!(notes[0].contains("was set to 2 by somebody else"), "{notes:?}");
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("2", false));
    machine.write(FILE, "0\n");
    killed(&machine);
    machine.write(FILE, "2\n");
    check_sweep(&machine, &["was set to 2 by somebody else"]);
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("2", false));
}

#[test]
fn what_is_as_before_already_is_said_and_forgotten() {
    let machine = at_zero();
    let change = changed(&machine);
    machine.write(FILE, "0\n");
    let notes = change.undo();
    assert!(notes[0].contains("was set back to 0 by somebody else while"), "{notes:?}");
    killed(&machine);
    // Also what a run leaves that is killed between its record and its change.
    machine.write(FILE, "0\n");
    check_sweep(&machine, &["is 0, as it was before a run that was killed"]);
    assert!(!is_written_down(&machine));
}

#[test]
fn a_boot_has_put_everything_back() {
    let machine = at_zero();
    killed(&machine);
    machine.write("proc/sys/kernel/random/boot_id", "boot-2\n");
    assert_eq!(leftover(&journal(&machine)), Ok(Leftover::Nothing));
    check_sweep(&machine, &[]);
    // Whoever has set it to 1 since then was not that run.
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("1", false));
}

#[test]
fn a_journal_that_is_no_record_is_said_and_left() {
    let machine = at_zero();
    machine.write(JOURNAL, "{\"owner\":");
    check_sweep(&machine, &["cannot read the journal"]);
    let why = change(journal(&machine), SETTINGS).unwrap_err();
    assert!(why.starts_with("cannot read the journal"), "{why}");
    assert_eq!((value(&machine).as_str(), is_written_down(&machine)), ("0", true));
    assert!(leftover(&journal(&machine)).is_err());
}

#[test]
fn a_journal_cannot_make_us_write_anything_else() {
    let machine = at_zero();
    killed(&machine);
    machine.write("proc/sys/kernel/x", "1\n");
    let text = machine.root().read(JOURNAL).unwrap();
    machine.write(JOURNAL, text.replace("net.core.high_order_alloc_disable", "kernel.x"));
    check_sweep(&machine, &["the journal names kernel.x, which no iolens"]);
    assert_eq!(machine.root().read("proc/sys/kernel/x").unwrap(), "1");
    let why = change(journal(&machine), SETTINGS).unwrap_err();
    assert!(why.contains("what a killed run changed cannot be put back: the journal"), "{why}");
}

#[test]
fn a_refusal_says_what_to_do() {
    let check = |errno, expect: &str| {
        let said = refusal(SINGLE_PAGES, errno);
        assert!(said.starts_with("cannot set net.core.high_order_alloc_disable to 1"), "{said}");
        assert!(said.contains(expect), "{said}");
    };
    check(Errno::EACCES, "EACCES (permission denied): only the machine's root may");
    check(Errno::EROFS, "mounted read-only, as in containers");
    check(Errno::ENOENT, "in the machine's own network namespace");
    check(Errno::EIO, "leave --allow-sysctl out");
    let machine = machine();
    let why = super::check(&machine.root(), SETTINGS).unwrap_err();
    assert!(why.contains("ENOENT"), "{why}");
    for now in ["0\n", "1\n"] {
        machine.write(FILE, now);
        assert_eq!(super::check(&machine.root(), SETTINGS), Ok(()));
        assert_eq!(machine.root().read(FILE).unwrap(), now.trim(), "checking changes nothing");
    }
}

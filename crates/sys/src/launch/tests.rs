//! Programs that are started, on the real kernel.

use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;

use super::*;
use crate::fork::{self, Patience};
use crate::shared::SharedNumbers;

fn shell(script: &str) -> (Result<Ended, Errno>, String) {
    let folder = std::env::temp_dir();
    let mut errors = crate::file::in_folder(&folder).unwrap();
    let words = ["sh", "-c", script].map(|word| word.as_bytes().to_vec());
    let program = Program::new("/bin/sh".as_ref(), &words, errors.try_clone().unwrap());
    let ended = program.unwrap().run();
    let mut text = String::new();
    errors.rewind().unwrap();
    errors.read_to_string(&mut text).unwrap();
    (ended, text)
}

#[test]
fn it_ends_as_it_says_and_its_errors_are_kept() {
    let (ended, text) = shell("echo lost; echo kept >&2; exit 3");
    assert_eq!(ExitStatus::from_raw(ended.unwrap().status).code(), Some(3));
    assert_eq!(text, "kept\n");
    let (killed, _) = shell("kill -9 $$");
    assert_eq!(ExitStatus::from_raw(killed.unwrap().status).signal(), Some(9));
}

#[test]
fn it_inherits_no_descriptor_of_ours_and_no_blocked_signal() {
    let _ours = File::open("/dev/zero").unwrap();
    let (ended, text) = shell("grep SigBlk /proc/self/status >&2; ls -l /proc/self/fd >&2; read x");
    // Nothing to read: its input is empty.
    assert_ne!(ExitStatus::from_raw(ended.unwrap().status).code(), Some(0), "{text}");
    assert!(text.contains("SigBlk:\t0000000000000000"), "{text}");
    assert!(text.contains("0 -> /dev/null") && !text.contains("/dev/zero"), "{text}");
}

#[test]
fn it_has_the_files_it_is_given_under_their_numbers() {
    let file = || crate::file::in_folder(&std::env::temp_dir()).unwrap();
    let (null, mut out, errors) = (File::open("/dev/null").unwrap(), file(), file());
    // Numbers that the program's own files get are taken by ours.
    let files = [&null, &out, &errors, &out, &errors].map(AsFd::as_fd);
    let script = "echo a; echo b >&3; for fd in /proc/self/fd/*; do echo ${fd##*/}; done >&4";
    let words = ["sh", "-c", script].map(|word| word.as_bytes().to_vec());
    let mut program = Program::with_files("/bin/sh".as_ref(), &words, &[], &files).unwrap();
    assert_eq!(program.begin_in_group().unwrap().wait().unwrap().status, 0);
    let mut text = String::new();
    out.rewind().unwrap();
    out.read_to_string(&mut text).unwrap();
    assert_eq!(text, "a\nb\n");
    let many = vec![null.as_fd(); 11];
    let refused = Program::with_files("/bin/sh".as_ref(), &words, &[], &many);
    assert_eq!(refused.unwrap_err(), Errno::EINVAL);
}

#[test]
fn a_file_is_executed_by_its_number_whatever_files_the_program_has() {
    let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
    let mut shell = File::open("/bin/sh").unwrap();
    let mut copy = crate::file::executable_in_memory("sh").unwrap();
    std::io::copy(&mut shell, &mut copy).unwrap();
    let copy = numbered_apart(copy).unwrap();
    let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
    assert!(copy.as_raw_fd() >= OWN_NUMBERS);
    let words = ["sh", "-c", "exit 3"].map(|word| word.as_bytes().to_vec());
    let files = vec![errors.as_fd(); 10];
    let mut program = Program::with_files(path.as_ref(), &words, &[], &files).unwrap();
    let ended = program.begin().unwrap().wait().unwrap();
    assert_eq!(ExitStatus::from_raw(ended.status).code(), Some(3));
}

#[test]
fn what_it_spends_is_counted() {
    let (ended, _) = shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    let ended = ended.unwrap();
    assert!(ended.cpu > Duration::from_millis(1) && ended.minor_faults > 0, "{ended:?}");
}

#[test]
fn one_that_goes_on_is_killed_with_what_it_started() {
    let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
    let words = ["sh", "-c", "cat /dev/zero >/dev/null & wait"];
    let words = words.map(|word| word.as_bytes().to_vec());
    let begun = Program::new("/bin/sh".as_ref(), &words, errors).unwrap().begin().unwrap();
    let root = crate::proc::Root::real();
    let namespace = |id: u32| root.link(&format!("proc/{id}/ns/pid"));
    let apart = namespace(begun.id()) != namespace(std::process::id());
    assert!(apart || crate::process::effective_uid() != 0);
    let tree = || crate::kin::Tree::below(&root, begun.id());
    while tree().processes.len() < 2 {
        std::thread::yield_now();
    }
    let started = tree().processes.get(1).copied();
    begun.kill();
    let ended = begun.wait().unwrap();
    assert_eq!(ExitStatus::from_raw(ended.status).signal(), Some(9));
    assert_eq!(begun.ended(), Some(ended));
    begun.kill();
    // With its namespace it has ended before; with its group alone, soon.
    let lives = |id: u32| {
        let stat = root.read(&format!("proc/{id}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while started.is_some_and(lives) {
        assert!(!apart, "it ended with it");
        std::thread::yield_now();
    }
}

fn program(script: &str, environment: &[(&str, &str)]) -> (Program, File) {
    let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
    let words = ["sh", "-c", script].map(|word| word.as_bytes().to_vec());
    let copy = errors.try_clone().unwrap();
    (Program::with("/bin/sh".as_ref(), &words, copy, environment).unwrap(), errors)
}

#[test]
fn one_that_takes_too_long_is_killed() {
    let (mut program, _) = program("cat /dev/zero >/dev/null & wait", &[]);
    let limit = Duration::from_millis(1);
    assert_eq!(program.run_within(limit), Err(Errno::ETIMEDOUT));
    let (mut program, mut errors) = self::program("echo $PATH $MINE >&2", &[("MINE", "yes")]);
    let ended = program.run_within(Duration::from_secs(60)).unwrap();
    assert!(ExitStatus::from_raw(ended.status).success());
    let mut text = String::new();
    errors.rewind().unwrap();
    errors.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("yes\n"), "{text}");
}

/// In a pid namespace of its own the id of a parent tells nothing.
#[test]
fn one_whose_parent_has_ended_is_not_started() {
    let child = crate::fork::start(|| 0).unwrap();
    let id = Pid::from_raw(child.cast_signed()).unwrap();
    let fd = pidfd_open(id, PidfdFlags::empty()).unwrap();
    let (mut program, _) = program("exit 0", &[]);
    while !matches!(crate::fork::ended(crate::fork::Patience::Waits), Ok(Some(_))) {}
    let parent = Parent { fd: Some(fd), ..Parent::by_id() };
    for apart in [0, libc::CLONE_NEWPID] {
        let started = program.start(&parent, Start { apart, leads: false, holds: false });
        let refused = if apart == 0 { Errno::ESRCH } else { Errno::EPERM };
        match started {
            Err(errno) if errno == Errno::ESRCH || errno == refused => {}
            started => panic!("{started:?}"),
        }
    }
}

#[test]
fn what_cannot_be_executed_is_an_error_and_not_an_end() {
    let errors = || crate::file::in_folder(&std::env::temp_dir()).unwrap();
    let run = |path: &str| Program::new(path.as_ref(), &[b"x".to_vec()], errors())?.run();
    assert_eq!(run("/no/such/program"), Err(Errno::ENOENT));
    assert_eq!(run("/"), Err(Errno::EACCES));
    assert_eq!(run("a\0b"), Err(Errno::EINVAL));
}

/// A program in a group of its own, without a namespace, and what it has started.
#[test]
fn what_one_started_is_killed_with_who_started_it() {
    const PROGRAM: usize = 0;
    let told = SharedNumbers::new(1).unwrap();
    let number = |at: usize| &told.rows()[0][at];
    let starter = fork::start(|| {
        stand_by();
        let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
        let words = ["sh", "-c", "tail -f /dev/null & wait"].map(|word| word.as_bytes().to_vec());
        let mut program = Program::new("/bin/sh".as_ref(), &words, errors).unwrap();
        // One that has ended leaves its place to the next.
        let ends = ["sh", "-c", "exit"].map(|word| word.as_bytes().to_vec());
        let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
        let mut first = Program::new("/bin/sh".as_ref(), &ends, errors).unwrap();
        first.begin_in_group().unwrap().wait().unwrap();
        let begun = program.begin_in_group().unwrap();
        number(PROGRAM).store(begun.id().into(), Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    });
    let root = crate::proc::Root::real();
    let tree = || {
        let program = u32::try_from(number(PROGRAM).load(Ordering::SeqCst)).unwrap();
        crate::kin::Tree::below(&root, program).processes
    };
    let found = std::iter::repeat_with(tree).find(|found| found.len() == 2).unwrap();
    fork::kill(starter.unwrap()).unwrap();
    while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
    let lives = |id: u32| {
        let stat = root.read(&format!("proc/{id}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    let deadline_ns = monotonic_ns() + 60_000_000_000;
    while found.iter().any(|&id| lives(id)) {
        if monotonic_ns() > deadline_ns {
            let _ = fork::kill_group(found[0]);
            panic!("{found:?} outlive who started them");
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_guardian_is_no_child_that_anybody_waits_for_and_goes_with_its_thread() {
    let thread = std::thread::spawn(|| {
        stand_by();
        let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
        let words = ["sh", "-c", "exit 3"].map(|word| word.as_bytes().to_vec());
        let mut program = Program::new("/bin/sh".as_ref(), &words, errors).unwrap();
        let ended = program.begin_in_group().unwrap().wait().unwrap();
        assert_eq!(ExitStatus::from_raw(ended.status).code(), Some(3));
        assert_eq!(fork::ended(Patience::Looks), Err(Errno::from_raw(libc::ECHILD)));
        guardian::own().unwrap()
    });
    let guardian = thread.join().unwrap();
    let root = crate::proc::Root::real();
    let name = root.read(&format!("proc/{guardian}/comm"));
    assert!(name.is_err(), "it has been waited for: {name:?}");
}

//! Every engine in the slices of a trial: what it finds, what it leaves, and whether
//! what it wrote is there.

use std::os::unix::fs::FileExt;

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::{Cell, Setting};
use iolens_model::file::Pattern;
use iolens_model::plan::{NetworkOptions, Probes, SocketOptions};
use iolens_model::units::{Bytes, Nanos};

use super::*;
use crate::engines::WRITING;
use crate::open;
use crate::skip;
use crate::test_file::TestFile;
use crate::write::destinations::REGION_MULTIPLE;
use iolens_harness::op::{Budget, Tally};

const REGION: u64 = REGION_MULTIPLE;

/// The file of a trial: written where it is to exist, else empty.
fn file(destination: Destination) -> TestFile {
    let mut file = TestFile::make(&std::env::temp_dir(), 3).unwrap();
    if destination == Destination::Existing {
        file.resize(2 * REGION, || false).unwrap();
    }
    file
}

fn trial(file: &TestFile, id: &str, setting: WriteSetting, threads: u32, size: u64) -> Trial {
    let arm = |role| Arm { label: id.to_owned(), primitive: id.to_owned(), role };
    Trial {
        pass: 1,
        position: 0,
        isolated: false,
        cell: Cell { setting: Setting::Write(setting), threads, size: Bytes(size) },
        arms: vec![arm(Role::Baseline), arm(Role::SelfCheck)],
        slices: Vec::new(),
        socket: SocketOptions::default(),
        network: NetworkOptions::default(),
        hosts: None,
        probes: Probes::default(),
        file: Some(TrialFile {
            path: file.path_for_others().into_bytes(),
            bytes: None,
            seed: 7,
            regions: Some(TrialRegions { bytes: REGION, count: 2 }),
        }),
        copies: None,
        programs: Vec::new(),
        programs_loop: false,
        servers: None,
        tx_cpus: Vec::new(),
        rx_cpus: Vec::new(),
        ring_messages: 0,
        sampling: None,
        stall_limit: Nanos::SECOND,
        trial_limit: Nanos::SECOND,
    }
}

/// One slice of one thread.
fn slice(
    ground: &dyn Ground,
    trial: &Trial,
    sender: &mut dyn Sender,
    blocks: u64,
) -> (Tally, FileCounts) {
    sender.touch();
    let before = ground.before(trial, 0).unwrap();
    let tally = sender.tally();
    sender.run(&Budget::messages(blocks, 1)).unwrap();
    let counts = ground.after(trial, 0, &before);
    (sender.tally().since(tally), counts)
}

/// What is refused here and not everywhere.
fn is_lacking(entry: &Entry, why: &str) -> bool {
    (entry.has_depth && why.contains("io_uring")) || (entry.is_direct && why.contains("O_DIRECT"))
}

#[test]
fn every_engine_begins_clean_and_writes_what_it_should_where_it_should() {
    const TEST: &str = "every_engine_begins_clean_and_writes_what_it_should_where_it_should";
    for entry in WRITING {
        for &destination in Destination::ALL {
            for &pattern in Pattern::ALL {
                let setting = WriteSetting { destination, pattern, depth: 3 };
                let file = file(destination);
                let trial = trial(&file, entry.id, setting, 1, 4096);
                let ground = open(&trial).unwrap().expect("the trial has a file");
                let mut sender = match ground.arm(&trial, 0, 0) {
                    Ok(sender) => sender,
                    Err(why) => {
                        assert!(is_lacking(entry, &why), "{}: {why}", entry.id);
                        skip::note(&format!("write::ground::tests::{TEST}"), &why);
                        continue;
                    }
                };
                let case = format!("{} {destination} {pattern}", entry.id);
                for blocks in [5, 11, 64] {
                    let (done, found) = slice(&*ground, &trial, &mut *sender, blocks);
                    assert_eq!((done.messages, done.bytes), (blocks, blocks * 4096), "{case}");
                    sender.check().unwrap_or_else(|why| panic!("{case}: {why}"));
                    assert_eq!(found.size_error_bytes, Some(0), "{case}");
                    // `None` where the kernel or the file system does not say.
                    let Some(dirty) = found.dirty_before_bytes else { continue };
                    assert_eq!(dirty, 0, "{case}");
                    let is_device = !["tmpfs", "ramfs"].contains(&file_system(&file).as_str());
                    let cached = match (destination, entry.is_direct && is_device) {
                        (Destination::Existing, false) => REGION,
                        _ => 0,
                    };
                    assert_eq!(found.resident_before_bytes, Some(cached), "{case}");
                    if entry.is_direct && is_device {
                        assert_eq!(found.resident_after_bytes, Some(0), "{case}");
                    }
                    if entry.is_durable || (entry.is_direct && is_device) {
                        assert_eq!(found.dirty_after_bytes, Some(0), "{case}");
                    }
                }
            }
        }
    }
}

fn file_system(file: &TestFile) -> String {
    file.subject().unwrap().file_system().to_owned()
}

#[test]
fn blocks_of_any_size_are_told_from_what_was_there() {
    for size in [1, 7, 8, 4097, 65_536] {
        for id in ["write", "mmap", "writev"] {
            let (destination, pattern) = (Destination::Existing, Pattern::Random);
            let file = file(destination);
            let setting = WriteSetting { destination, pattern, depth: 1 };
            let trial = trial(&file, id, setting, 1, size);
            let ground = open(&trial).unwrap().expect("the trial has a file");
            let mut sender = ground.arm(&trial, 0, 0).unwrap();
            slice(&*ground, &trial, &mut *sender, 4);
            sender.check().unwrap_or_else(|why| panic!("{id} {size}: {why}"));
        }
    }
}

#[test]
fn what_somebody_changes_is_found() {
    let destination = Destination::Existing;
    let file = file(destination);
    let setting = WriteSetting { destination, pattern: Pattern::Sequential, depth: 1 };
    let trial = trial(&file, "pwrite", setting, 1, 512);
    let ground = open(&trial).unwrap().expect("the trial has a file");
    let mut sender = ground.arm(&trial, 0, 0).unwrap();
    slice(&*ground, &trial, &mut *sender, 8);
    sender.check().unwrap();
    // The regions of pass 1 are shifted by one: the first arm has the second.
    let theirs = std::fs::File::options().write(true).open(file.path_for_others()).unwrap();
    theirs.write_all_at(b"x", REGION + 3 * 512 + 100).unwrap();
    let why = sender.check().unwrap_err();
    assert!(why.contains(&format!("at offset {}", REGION + 3 * 512)), "{why}");
}

#[test]
fn threads_write_their_own_parts_and_a_new_file_is_as_long_as_they_came() {
    let destination = Destination::New;
    let file = file(destination);
    let setting = WriteSetting { destination, pattern: Pattern::Sequential, depth: 1 };
    let trial = trial(&file, "pwrite", setting, 2, 4096);
    let ground = open(&trial).unwrap().expect("the trial has a file");
    let mut senders = [0, 1].map(|thread| ground.arm(&trial, 0, thread).unwrap());
    senders.iter_mut().for_each(|sender| sender.touch());
    let before = ground.before(&trial, 0).unwrap();
    for (sender, blocks) in senders.iter_mut().zip([5, 3]) {
        sender.run(&Budget::messages(blocks, 1)).unwrap();
    }
    let found = ground.after(&trial, 0, &before);
    assert_eq!(found.size_error_bytes, Some(0));
    let bytes = std::fs::metadata(file.path_for_others()).unwrap().len();
    assert_eq!(bytes, REGION / 2 + 3 * 4096);
    senders.iter().for_each(|sender| sender.check().unwrap());
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let file = file(Destination::New);
    let setting =
        WriteSetting { destination: Destination::New, pattern: Pattern::Sequential, depth: 1 };
    let check = |id: &str, threads: u32, size: u64, expect: &str| {
        let trial = trial(&file, id, setting, threads, size);
        let ground = open(&trial).unwrap().expect("the trial has a file");
        let why = ground.arm(&trial, 0, 0).err().or_else(|| ground.arm(&trial, 0, 1).err());
        let why = why.unwrap_or_default();
        assert!(why.contains(expect), "{id}: {why}");
    };
    check("write", 2, REGION, "has 1 whole blocks");
    check("rite", 1, 512, "no engine `rite`");
    check("direct", 1, 1000, "direct writes to");
}

#[test]
fn nothing_is_allocated_while_a_slice_is_written() {
    for entry in WRITING {
        let destination = Destination::Existing;
        let file = file(destination);
        let setting = WriteSetting { destination, pattern: Pattern::Random, depth: 2 };
        let trial = trial(&file, entry.id, setting, 1, 4096);
        let ground = open(&trial).unwrap().expect("the trial has a file");
        let Ok(mut sender) = ground.arm(&trial, 0, 0) else { continue };
        for _ in 0..2 {
            sender.touch();
            let budget = Budget::messages(4, 1);
            let allocated = allocation_counter::measure(|| {
                sender.run(&budget).unwrap();
            });
            assert_eq!(allocated.count_total, 0, "{}", entry.id);
        }
    }
}

#[test]
fn a_slice_that_breaks_off_says_what_is_used_up() {
    let file = file(Destination::Existing);
    let setting =
        WriteSetting { destination: Destination::Existing, pattern: Pattern::Random, depth: 1 };
    let trial = trial(&file, "write", setting, 1, 4096);
    let ground = open(&trial).unwrap().expect("the trial has a file");
    let said = |errno| ground.explain("write", errno).unwrap_or_default();
    let begin = "cannot write to the run's own file: ";
    for (errno, why) in [
        (Errno::ENOSPC, "ENOSPC (no space left on device): its file system ("),
        (Errno::EDQUOT, "EDQUOT (disk quota exceeded): a disk quota, of the user, the group"),
        (Errno::EIO, "EIO (input/output error): the device or its file system failed"),
    ] {
        assert!(said(errno).starts_with(&format!("{begin}{why}")), "{}", said(errno));
    }
    // What a call returned that it should not is said where calls are.
    assert_eq!(said(Errno::EBADMSG), "");
}

//! Every arm of the study, engines and programs, through slices at smoke size; and
//! programs that do not what they should.

use std::fs;
use std::os::unix::fs::FileExt;

use iolens_model::cell::{Cell, Setting};
use iolens_model::copy::CopySync;
use iolens_model::file::CacheState;
use iolens_model::trial::TrialFile;
use iolens_model::units::Bytes;

use super::*;
use crate::copy::copiers::PROGRAMS;
use crate::copy::engine::Class;
use crate::copy::open;
use crate::engines::COPYING;
use crate::file_path::FilePath;
use crate::skip;
use crate::test_file::fill;
use iolens_harness::op::{Budget, Sender, Tally};

const BYTES: usize = (64 << 10) + 5;
const BLOCK: u64 = 4096;

/// A folder with a source.
struct Place {
    folder: tempfile::TempDir,
    ground: ReadGround,
}

impl Place {
    fn new() -> Place {
        Place::within(tempfile::tempdir().unwrap())
    }

    fn within(folder: tempfile::TempDir) -> Place {
        let mut content = vec![0; BYTES];
        fill(3, 0, &mut content);
        let source = folder.path().join("source");
        fs::write(&source, content).unwrap();
        fs::write(folder.path().join("empty"), "").unwrap();
        let path = FilePath::new(&source).into_bytes();
        let file = TrialFile { path, bytes: Some(BYTES as u64), seed: 0, regions: None };
        Place { ground: ReadGround::open(&file).unwrap(), folder }
    }

    fn site(&self, sync: CopySync, programs: Vec<External>) -> Site<'_> {
        let setting = CopySetting { block_bytes: Bytes(BLOCK), cache: CacheState::Warm, sync };
        Site {
            ground: &self.ground,
            setting,
            empty: self.folder.path().join("empty"),
            folder: self.folder.path().to_owned(),
            file_system: "a file system".to_owned(),
            checksum: checksum(self.ground.subject(), u64::MAX).unwrap(),
            programs,
            copies: Mutex::default(),
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn cell(site: &Site<'_>, threads: u32) -> Cell {
    Cell { setting: Setting::Copy(site.setting), threads, size: Bytes(BYTES as u64) }
}

/// One slice of some copies.
fn slice(arm: &mut dyn Sender, copies: u64) -> Result<(), Trouble> {
    arm.prepare(copies)?;
    match arm.run(&Budget::messages(copies, 1)) {
        Ok(span) => assert!(span.last_call_ns > span.first_call_ns),
        Err(errno) => return Err(arm.explain().unwrap_or_else(|| panic!("{errno}"))),
    }
    arm.conclude()
}

/// Whether an arm is there; where this machine lacks what it needs it says so.
fn is_here<T>(name: &str, result: Result<T, Trouble>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(trouble) if trouble.is_refused => {
            skip::note(name, &trouble.what);
            None
        }
        Err(trouble) => panic!("{trouble:?}"),
    }
}

#[test]
fn every_engine_copies_whole_files_and_leaves_none() {
    const NAME: &str = "copy::site::tests::every_engine_copies_whole_files_and_leaves_none";
    for sync in [CopySync::None, CopySync::Fsync] {
        for entry in COPYING {
            let place = Place::new();
            let site = place.site(sync, Vec::new());
            let Some(mut arm) = is_here(NAME, open(&site, entry.id, &cell(&site, 1), 0)) else {
                continue;
            };
            if is_here(NAME, slice(arm.as_mut(), 1)).is_none() {
                continue;
            }
            assert_eq!(place.names(), ["empty", "source"], "{}", entry.id);
            slice(arm.as_mut(), 3).unwrap();
            assert_eq!(place.names(), ["empty", "source"], "{}", entry.id);
            let tally = arm.tally();
            let bytes = if entry.own.class == Class::Shares { 0 } else { 4 * BYTES as u64 };
            assert_eq!((tally.messages, tally.bytes), (4, bytes), "{}", entry.id);
            let synced = if sync == CopySync::Fsync { 4 } else { 0 };
            assert!(tally.calls >= 4 + synced && tally.children.is_none(), "{}", entry.id);
        }
    }
}

#[test]
fn an_engine_that_may_share_is_refused_where_nobody_tells() {
    const NAME: &str = "copy::site::tests::an_engine_that_may_share_is_refused_where_nobody_tells";
    // Memory has no map of extents, as OpenZFS has none.
    let place = match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => Place::within(folder),
        Err(why) => return skip::note(NAME, &format!("/dev/shm: {why}")),
    };
    if place.ground.subject().file_system() != "tmpfs" {
        return skip::note(NAME, "/dev/shm is no tmpfs");
    }
    for (name, is_copy) in [("zfs", false), ("tmpfs", true)] {
        for entry in COPYING.iter().filter(|entry| entry.own.class == Class::MayShare) {
            let site = Site { file_system: name.to_owned(), ..place.site(CopySync::None, vec![]) };
            let mut arm = open(&site, entry.id, &cell(&site, 1), 0).ok().unwrap();
            let why = slice(arm.as_mut(), 1).err();
            assert_eq!(why.is_none(), is_copy, "{} on {name}: {why:?}", entry.id);
            let expect = "cannot tell whether blocks were shared on zfs";
            assert!(why.is_none_or(|why| why.is_refused && why.what.starts_with(expect)));
            drop(arm);
            site.clear(1).unwrap();
        }
    }
}

#[test]
fn threads_share_each_copy() {
    let place = Place::new();
    let site = place.site(CopySync::None, Vec::new());
    let mut arms: Vec<_> = (0..3)
        .map(|thread| open(&site, "read_write", &cell(&site, 3), thread).ok().unwrap())
        .collect();
    // As a worker does: the first makes what all open, and takes it away after them.
    arms.iter_mut().for_each(|arm| arm.prepare(2).unwrap());
    for arm in &mut arms {
        arm.run(&Budget::messages(2, 1)).unwrap();
    }
    arms.iter_mut().rev().for_each(|arm| arm.conclude().unwrap());
    let tallies: Vec<Tally> = arms.iter().map(|arm| arm.tally()).collect();
    assert_eq!(tallies.iter().map(|tally| tally.messages).collect::<Vec<_>>(), [2, 0, 0]);
    assert_eq!(tallies.iter().map(|tally| tally.bytes).sum::<u64>(), 2 * BYTES as u64);
    drop(arms);
    let few = open(&site, "read_write", &cell(&site, 99), 50).err().unwrap();
    assert!(few.is_refused && few.what.contains("17 blocks of 4 KiB for 99 threads"), "{few:?}");
}

fn program(name: &str, argv: &[&str]) -> External {
    External { name: name.into(), argv: argv.iter().map(|&word| word.to_owned()).collect() }
}

#[test]
fn programs_copy_and_are_counted_as_what_they_spend() {
    const NAME: &str = "copy::site::tests::programs_copy_and_are_counted_as_what_they_spend";
    let own = program("own", &["sh", "-c", "cat \"$0\" > \"$1\"", "{src}", "{dst}"]);
    for external in PROGRAMS.iter().map(|known| known.external()).chain([own]) {
        for sync in [CopySync::None, CopySync::Fsync] {
            let place = Place::new();
            let site = place.site(sync, vec![external.clone()]);
            let arm = open(&site, &external.name, &cell(&site, 1), 0);
            let Some(mut arm) = is_here(NAME, arm) else { continue };
            for copies in [1, 2] {
                slice(arm.as_mut(), copies).unwrap();
                assert_eq!(place.names(), ["empty", "source"], "{}", external.name);
            }
            let tally = arm.tally();
            assert_eq!((tally.messages, tally.bytes), (3, 3 * BYTES as u64));
            // What it called, nobody counts.
            assert_eq!(tally.calls, 0);
            let spent = tally.children.unwrap();
            assert!(spent.cpu_ns > Some(0) && spent.minor_faults > Some(0), "{spent:?}");
            let start = arm.start().unwrap();
            assert!(start.runs >= 21 && 0 < start.min_ns, "{start:?}");
            assert!(start.min_ns <= start.median_ns && start.median_ns <= start.max_ns);
        }
    }
}

/// What becomes of a program that is given as a script: `$0` is the source, `$1` the
/// destination.
fn trouble_of(script: &str) -> Trouble {
    let place = Place::new();
    let external = program("mine", &["sh", "-c", script, "{src}", "{dst}"]);
    let site = place.site(CopySync::None, vec![external]);
    let done = open(&site, "mine", &cell(&site, 1), 0).and_then(|mut arm| slice(arm.as_mut(), 1));
    done.unwrap_err()
}

#[test]
fn a_program_that_does_not_copy_has_failed_and_it_is_said_how() {
    let check = |script: &str, expect: &str| {
        let trouble = trouble_of(script);
        assert!(!trouble.is_refused && trouble.what.contains(expect), "{trouble:?}");
    };
    // An empty file is copied well by all of them, so that it is the copy which fails.
    let only_empty = |rest: &str| format!("test -s \"$0\" || {{ : > \"$1\"; exit 0; }}; {rest}");
    check(
        &only_empty("echo first >&2; echo 'no, thank you' >&2; exit 1"),
        "`mine` exited with status 1: no, thank you",
    );
    check(&only_empty("exit 3"), "`mine` exited with status 3, and said nothing");
    check(&only_empty("kill -9 $$"), "`mine` was killed by signal 9");
    check(&only_empty("exit 0"), "what `mine` left is no copy: cannot open");
    check(&only_empty(": > \"$1\""), "the copy has only 0 bytes, its source has 65541");
    check(&only_empty("cat \"$0\" \"$0\" > \"$1\""), "the copy has 131082 bytes");
    check(
        &only_empty("tr '\\000-\\377' '\\001-\\377\\000' < \"$0\" > \"$1\""),
        "the copy has other bytes than its source",
    );
    check("exit 1", "an empty file, to see what a start takes: `mine` exited with status 1");
}

#[test]
fn a_program_that_is_not_there_is_skipped() {
    let place = Place::new();
    let site = place.site(CopySync::None, vec![program("x", &["no-such-program", "{src}{dst}"])]);
    let trouble = open(&site, "x", &cell(&site, 1), 0).err().unwrap();
    assert!(trouble.is_refused, "{trouble:?}");
    assert_eq!(trouble.what, "there is no program `no-such-program` in PATH");
}

#[test]
fn a_source_that_somebody_changes_is_what_has_changed() {
    let check = |change: &dyn Fn(&fs::File), ids: &[&str], expect: &str| {
        for id in ids {
            let place = Place::new();
            let cat = program("cat", &["sh", "-c", "cat \"$0\" > \"$1\"", "{src}", "{dst}"]);
            let site = place.site(CopySync::None, vec![cat]);
            let source = place.folder.path().join("source");
            change(&fs::File::options().write(true).open(source).unwrap());
            let mut arm = open(&site, id, &cell(&site, 1), 0).ok().unwrap();
            let trouble = slice(arm.as_mut(), 1).unwrap_err();
            assert!(!trouble.is_refused && trouble.what.contains(expect), "{id}: {trouble:?}");
        }
    };
    let half = BYTES as u64 / 2;
    let shorter = |file: &fs::File| file.set_len(half).unwrap();
    check(&shorter, &["read_write"], "source was truncated while it was copied: it had 65541");
    check(&shorter, &["cat"], "its source had 65541 bytes when the run began and has 32770 now");
    let longer = |file: &fs::File| file.set_len(2 * BYTES as u64).unwrap();
    check(&longer, &["cat"], "its source had 65541 bytes when the run began and has 131082 now");
    let other = |file: &fs::File| file.write_all_at(b"other", half).unwrap();
    check(&other, &["read_write", "cat"], "its source has other bytes than when the run began");
}

//! Every engine that writes, through the same checks.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iolens_sys::file::create::{self, How};

use super::by_hand::{Done, Syncing, Wish, write};
use super::engine::{Entry, Setup};
use crate::checksum::Checksum;
use crate::engines::WRITING;
use crate::file_path::FilePath;
use crate::skip;
use crate::test_file::fill;

fn wish(engine: &str, path: &Path, block_bytes: u64, count: u64) -> Wish {
    Wish {
        path: FilePath::new(path),
        engine: engine.to_owned(),
        block_bytes,
        count,
        syncing: Syncing::None,
        overwrite: false,
        seed: 7,
    }
}

/// Engines that have a word by hand.
fn by_hand() -> impl Iterator<Item = &'static Entry> {
    WRITING.iter().copied().filter(|entry| entry.own.by_hand.is_none())
}

/// What a file of so many bytes holds.
fn content(bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    fill(7, 0, &mut content);
    content
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Whether an engine can do this in the test `name` here; where the machine has no
/// rings or the file system no direct I/O that is said.
fn can(name: &str, entry: &Entry, result: &Result<Done, String>) -> bool {
    let Err(why) = result else { return true };
    let lacks_ring = entry.id == "uring_fixed" && why.contains("io_uring");
    let lacks_direct = entry.is_direct && why.contains("EINVAL");
    assert!(lacks_ring || lacks_direct, "{}: {why}", entry.id);
    skip::note(&format!("write::tests::{name}"), why.lines().next().unwrap_or_default());
    false
}

#[test]
fn every_engine_writes_every_byte_once() {
    let folder = tempfile::tempdir().unwrap();
    // The last two: blocks of one byte that fill several slices, and one that is
    // larger than a slice.
    let cases = [(1, 1), (1, 5000), (4096, 300), (1 << 20, 2), (7, 3), (1, 600_001), (300_000, 3)];
    for entry in by_hand() {
        // Hundreds of thousands of waits for the device would take minutes.
        let few = |&(_, count): &(u64, u64)| !entry.is_durable || count < 100;
        for (block, count) in cases.into_iter().filter(few) {
            let path = folder.path().join(format!("{}-{block}-{count}", entry.id));
            let written = write(&wish(entry.id, &path, block, count));
            if entry.is_direct && !block.is_multiple_of(4096) {
                let why = written.unwrap_err();
                assert!(why.contains("direct writes to"), "{why}");
                assert!(!path.exists());
                continue;
            }
            if !can("every_engine_writes_every_byte_once", entry, &written) {
                break;
            }
            let done = written.unwrap();
            let bytes = block * count;
            let case = format!("{} {block} {count}", entry.id);
            assert_eq!(done.failure, None, "{case}");
            assert_eq!((done.moved.bytes, done.moved.blocks), (bytes, count), "{case}");
            let read = std::fs::read(&path).unwrap();
            assert!(read == content(read.len()) && read.len() as u64 == bytes, "{case}");
            let mut checksum = Checksum::new();
            checksum.take(0, &read[..]);
            assert_eq!(done.checksum, Some(checksum.value(bytes)), "{case}");
            match entry.id {
                "mmap" => assert_eq!(done.moved.calls, 0, "{case}"),
                "uring_fixed" => assert!((1..=count).contains(&done.moved.calls), "{case}"),
                "write_fsync" | "write_fdatasync" => {
                    assert_eq!(done.moved.calls, 2 * count + done.moved.short_calls, "{case}");
                }
                _ => assert_eq!(done.moved.calls, count + done.moved.short_calls, "{case}"),
            }
            std::fs::remove_file(&path).unwrap();
        }
    }
    assert_eq!(names(folder.path()), 0);
}

#[test]
fn every_sync_is_made_and_timed_apart() {
    let folder = tempfile::tempdir().unwrap();
    for entry in by_hand() {
        for &syncing in Syncing::ALL {
            let path = folder.path().join(format!("{}-{}", entry.id, syncing.word()));
            let wish = Wish { syncing, ..wish(entry.id, &path, 4096, 3) };
            let written = write(&wish);
            if let (Syncing::Dsync, Some(why)) = (syncing, entry.own.ignores_dsync) {
                assert!(written.unwrap_err().contains(why));
                continue;
            }
            if !can("every_sync_is_made_and_timed_apart", entry, &written) {
                break;
            }
            let done = written.unwrap();
            let synced = matches!(syncing, Syncing::Fsync | Syncing::Fdatasync);
            assert_eq!(done.sync_time.is_some(), synced, "{}", path.display());
            assert_eq!(std::fs::read(&path).unwrap(), content(3 * 4096));
        }
    }
}

#[test]
fn a_cut_is_synced_too_where_only_the_writes_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let syncing = Syncing::Dsync;
    let wish = Wish { syncing, overwrite: true, ..wish("write", &path, 4096, 2) };
    // Nothing is cut but what is longer.
    for (bytes, is_synced) in [(8192, false), (8193, true), (20_000, true), (100, false)] {
        std::fs::write(&path, vec![9; bytes]).unwrap();
        let done = write(&wish).unwrap();
        assert_eq!(done.failure, None);
        assert_eq!(done.sync_time.is_some(), is_synced, "{bytes}");
        assert_eq!(std::fs::read(&path).unwrap(), content(8192));
    }
}

#[test]
fn an_existing_file_is_written_in_place_with_consent_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("file"), folder.path().join("link"));
    for entry in by_hand() {
        std::fs::write(&path, vec![9; 20_000]).unwrap();
        let _ = std::fs::remove_file(&link);
        std::fs::hard_link(&path, &link).unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let wish = wish(entry.id, &path, 4096, 2);
        let why = write(&wish).unwrap_err();
        assert!(why.contains("it exists already") && why.contains("--overwrite"), "{why}");
        assert_eq!(std::fs::read(&path).unwrap(), vec![9; 20_000]);
        let written = write(&Wish { overwrite: true, ..wish });
        if !can("an_existing_file_is_written_in_place_with_consent_alone", entry, &written) {
            continue;
        }
        let done = written.unwrap();
        assert!(done.was_there && done.resident_before.is_some());
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode, "{}", entry.id);
        // Shorter than it was, and the same by its other name.
        assert_eq!(std::fs::read(&link).unwrap(), content(8192), "{}", entry.id);
    }
}

#[test]
fn more_than_a_file_can_have_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let check = |block: u64, count: u64, expect: &str| {
        let why = write(&wish("write", &path, block, count)).unwrap_err();
        assert!(why.contains(expect), "{why}");
        assert_eq!(names(folder.path()), 0);
    };
    check(1 << 40, 1 << 40, "more than any file can have");
    check(1 << 20, 1 << 42, "free");
    let why = write(&wish("write_dsync", &path, 1, 1)).unwrap_err();
    assert!(why.contains("--engine write --sync dsync") && names(folder.path()) == 0, "{why}");
    let why = write(&wish("nothing", &path, 1, 1)).unwrap_err();
    assert!(why.contains("no engine `nothing`"), "{why}");
}

#[test]
fn nothing_is_allocated_while_a_slice_is_written() {
    for entry in WRITING {
        let file = iolens_sys::file::in_folder(&std::env::temp_dir()).unwrap();
        let how = How { direct: entry.is_direct, ..How::WRITES };
        let Ok(file) = create::reopen(file.as_fd(), how) else { continue };
        let setup = Setup {
            file: file.as_fd(),
            block_bytes: 4096,
            total_bytes: 16 * 4096,
            slice_blocks: 8,
        };
        let mut writer = match entry.start(setup) {
            Ok(writer) => writer,
            Err(why) => {
                assert!(why.contains("io_uring"), "{}: {why}", entry.id);
                continue;
            }
        };
        for _ in 0..2 {
            let allocated = allocation_counter::measure(|| {
                writer.run(8 * 4096).unwrap();
            });
            assert_eq!(allocated.count_total, 0, "{}", entry.id);
        }
        assert_eq!(writer.moved().bytes, 16 * 4096, "{}", entry.id);
    }
}

//! Every engine that copies, through the same checks.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use iolens_sys::errno::Errno;

use super::by_hand::{Done, Wish, copy};
use super::engine::{Class, Entry, Setup};
use crate::engines::COPYING;
use crate::file_path::FilePath;
use crate::part::Part;
use crate::skip;
use crate::test_file::fill;
use iolens_harness::op::Budget;

/// A folder with a source, and where copies go.
struct Place {
    folder: tempfile::TempDir,
    source: PathBuf,
}

impl Place {
    fn with(content: &[u8]) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        std::fs::write(&source, content).unwrap();
        Place { folder, source }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wish(&self, engine: &str, to: &Path, block_bytes: u64) -> Wish {
        Wish {
            source: FilePath::new(&self.source),
            destination: FilePath::new(to),
            engine: engine.to_owned(),
            block_bytes,
            threads: 1,
            overwrite: false,
            verify: true,
            fsync: false,
            bytes_max: None,
            keep: true,
        }
    }
}

fn content(bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    fill(3, 0, &mut content);
    content
}

/// Whether an engine can do this in the test `name` here: there may be no rings, no
/// direct I/O, no shared blocks.
fn can(name: &str, entry: &Entry, result: &Result<Done, String>) -> bool {
    let why = match result {
        Ok(done) => done.failure.as_deref(),
        Err(why) => Some(why.as_str()),
    };
    let Some(why) = why else { return true };
    let lacks_ring = entry.id == "uring_copy" && why.contains("io_uring");
    let lacks_direct = entry.is_direct && why.contains("EINVAL");
    let lacks_clones = entry.own.class == Class::Shares
        && ["EOPNOTSUPP", "ENOTTY", "EINVAL"].iter().any(|errno| why.contains(errno));
    assert!(lacks_ring || lacks_direct || lacks_clones, "{}: {why}", entry.id);
    if lacks_clones {
        assert!(why.contains("there is no") && why.contains("use --engine"), "{why}");
    }
    let reason = format!("{}: {}", entry.id, why.lines().next().unwrap_or_default());
    skip::note(&format!("copy::tests::{name}"), &reason);
    false
}

#[test]
fn every_engine_copies_every_byte() {
    for bytes in [0, 1, 4096, (1 << 20) + 3] {
        let place = Place::with(&content(bytes));
        for entry in COPYING {
            for block in [1, 4096, 1 << 20] {
                // A million calls of each are too many for a test; some thousand do.
                if block == 1 && bytes > 4096 && !["read_write", "splice"].contains(&entry.id) {
                    continue;
                }
                let to = place.path(&format!("{}-{block}", entry.id));
                let copied = copy(&place.wish(entry.id, &to, block));
                if entry.is_direct && block == 1 && bytes > 0 {
                    assert!(copied.unwrap_err().contains("direct writes to"));
                    assert!(!to.exists());
                    continue;
                }
                if !can("every_engine_copies_every_byte", entry, &copied) {
                    assert!(!to.exists());
                    break;
                }
                let done = copied.unwrap();
                check(entry, &done, bytes as u64, block);
                assert!(std::fs::read(&to).unwrap() == content(bytes), "{} {block}", entry.id);
            }
        }
        assert!(std::fs::read(&place.source).unwrap() == content(bytes), "only read");
    }
}

fn check(entry: &Entry, done: &Done, bytes: u64, block: u64) {
    let case = format!("{} {bytes} {block}", entry.id);
    assert_eq!(done.failure, None, "{case}");
    let blocks = bytes.div_ceil(block);
    let moved = &done.moved;
    if entry.own.class == Class::Shares {
        assert_eq!((moved.bytes, moved.calls), (0, 1), "{case}");
        return;
    }
    assert_eq!((moved.bytes, moved.blocks), (bytes, blocks), "{case}");
    match entry.id {
        "copy_file_range" | "sendfile" | "mmap_write" => {
            assert_eq!(moved.calls, blocks + moved.short_calls, "{case}");
        }
        "read_write" => assert_eq!(moved.calls, 2 * blocks + moved.short_calls, "{case}"),
        "direct" => {
            let cut = u64::from(!bytes.is_multiple_of(512));
            assert_eq!(moved.calls, 2 * blocks + cut + moved.short_calls, "{case}");
        }
        // As many as the pipe's size takes, or as requests come together.
        _ => assert!(moved.calls <= 2 * blocks.max(bytes.div_ceil(4096)) + 2, "{case}"),
    }
    assert!(done.checksum.is_some(), "{case}");
}

#[test]
fn threads_share_the_file_where_the_engine_lets_them() {
    let bytes = (1 << 20) + 3;
    let place = Place::with(&content(bytes));
    for entry in COPYING {
        let to = place.path(entry.id);
        let wish = Wish { threads: 5, ..place.wish(entry.id, &to, 4096) };
        let copied = copy(&wish);
        if let Some(why) = entry.one_thread {
            assert!(copied.unwrap_err().contains(why));
            continue;
        }
        if !can("threads_share_the_file_where_the_engine_lets_them", entry, &copied) {
            continue;
        }
        let done = copied.unwrap();
        assert_eq!((done.threads, done.moved.blocks), (5, 257), "{}", entry.id);
        assert!(std::fs::read(&to).unwrap() == content(bytes), "{}", entry.id);
    }
    let few = Wish { threads: 5, ..place.wish("read_write", &place.path("few"), 1 << 20) };
    assert_eq!(copy(&few).unwrap().threads, 2, "no more than there are blocks");
}

#[test]
fn an_existing_copy_is_written_in_place_and_cut() {
    let place = Place::with(&content(10_000));
    let to = place.path("copy");
    for entry in COPYING {
        std::fs::write(&to, vec![9; 30_000]).unwrap();
        let inode = std::fs::metadata(&to).unwrap().ino();
        let wish = place.wish(entry.id, &to, 4096);
        assert!(copy(&wish).unwrap_err().contains("it exists already"));
        assert_eq!(std::fs::read(&to).unwrap(), vec![9; 30_000]);
        let copied = copy(&Wish { overwrite: true, fsync: true, ..wish });
        match copied.as_ref().map(|done| &done.failure) {
            Ok(None) => {
                assert!(std::fs::read(&to).unwrap() == content(10_000), "{}", entry.id);
                assert!(copied.unwrap().sync_time.is_some());
            }
            Ok(Some(why)) => assert!(why.contains("is left as it is now"), "{why}"),
            Err(why) => assert!(why.contains("io_uring") || why.contains("EINVAL"), "{why}"),
        }
        assert_eq!(std::fs::metadata(&to).unwrap().ino(), inode, "{}", entry.id);
    }
}

#[test]
fn a_file_that_the_kernel_makes_is_no_copy_and_said_to_be_none() {
    let place = Place::with(b"");
    for entry in COPYING {
        let to = place.path(entry.id);
        let wish = Wish {
            source: FilePath::new(Path::new("/proc/self/status")),
            ..place.wish(entry.id, &to, 4096)
        };
        let why = match copy(&wish) {
            Ok(done) => done.failure.unwrap(),
            Err(why) => why,
        };
        assert!(!to.exists(), "{}", entry.id);
        // Where it was not refused before: its size says that it is empty.
        let known = ["has no size", "`cat` copies", "FICLONE", "O_DIRECT"];
        assert!(known.iter().any(|words| why.contains(words)), "{}: {why}", entry.id);
    }
}

/// A copy of an engine is begun, and the source is shortened before it goes on.
#[test]
fn a_source_that_shrinks_meanwhile_is_an_error_with_every_engine() {
    const BYTES: usize = 64 << 10;
    for entry in COPYING.iter().filter(|entry| entry.own.class != Class::Shares && !entry.is_direct)
    {
        let place = Place::with(&content(BYTES));
        let source = File::options().read(true).write(true).open(&place.source).unwrap();
        let destination = iolens_sys::file::in_folder(place.folder.path()).unwrap();
        let part = Part { block_bytes: 4096, start: 0, end: BYTES as u64 };
        let setup = Setup {
            source: source.try_clone().unwrap().into(),
            destination: destination.try_clone().unwrap().into(),
            part,
        };
        let mut copier = match entry.start(setup) {
            Ok(copier) => copier,
            Err(why) => {
                assert!(why.contains("io_uring"), "{why}");
                continue;
            }
        };
        copier.run(&Budget::messages(4, 1)).unwrap();
        assert_eq!(copier.moved().bytes, 4 * 4096, "{}", entry.id);
        source.set_len(4096).unwrap();
        let broken = copier.run(&Budget::messages(12, 1)).unwrap_err();
        let ended = [Errno::ENODATA, Errno::EFAULT].contains(&broken.errno);
        assert!(ended, "{}: {broken:?}", entry.id);
    }
}

#[test]
fn a_part_is_copied_again_from_its_beginning() {
    const BYTES: usize = 20_000;
    for entry in COPYING.iter().filter(|entry| entry.own.class != Class::Shares && !entry.is_direct)
    {
        let place = Place::with(&content(BYTES));
        let source = File::open(&place.source).unwrap();
        let destination = iolens_sys::file::in_folder(place.folder.path()).unwrap();
        let part = Part { block_bytes: 4096, start: 0, end: BYTES as u64 };
        let setup = Setup {
            source: source.try_clone().unwrap().into(),
            destination: destination.try_clone().unwrap().into(),
            part,
        };
        let mut copier = match entry.start(setup) {
            Ok(copier) => copier,
            Err(why) => {
                assert!(why.contains("io_uring"), "{}: {why}", entry.id);
                continue;
            }
        };
        // Twice, in slices that end anywhere.
        for blocks in [3, 4, 1, 2] {
            let budget = Budget::messages(blocks, 1);
            let allocated = allocation_counter::measure(|| {
                copier.run(&budget).unwrap();
            });
            assert_eq!(allocated.count_total, 0, "{}", entry.id);
        }
        assert_eq!(copier.moved().bytes, 2 * BYTES as u64, "{}", entry.id);
        let mut bytes = vec![0; BYTES];
        destination.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes == content(BYTES), "{}", entry.id);
        assert_eq!(destination.metadata().unwrap().len(), BYTES as u64, "{}", entry.id);
    }
}

#[test]
fn what_became_of_holes_is_said() {
    let place = Place::with(b"");
    let file = File::options().write(true).open(&place.source).unwrap();
    file.set_len(1 << 20).unwrap();
    file.write_all_at(b"end", (1 << 20) - 3).unwrap();
    let done = copy(&place.wish("read_write", &place.path("copy"), 65_536)).unwrap();
    assert_eq!(done.failure, None);
    match std::fs::metadata(&place.source).unwrap().blocks() * 512 {
        few if few < 1 << 20 => {
            let said = done.notes.iter().any(|note| note.contains("of holes: they were"));
            assert!(said, "{:?}", done.notes);
        }
        // A file system without holes.
        _ => assert_eq!(done.notes, [""; 0]),
    }
}

//! Every engine through the same checks.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use iolens_sys::errno::Errno;

use super::consume::{Consumer, Digest};
use super::drive::{Setup, Sink, Tally, fill};
use super::engine::Entry;
use crate::checksum::{Checksum, Xor};
use crate::engines::{READING, that_reads};
use crate::part::{Part, Pattern, Place};
use crate::skip;
use crate::subject::Subject;
use crate::test_file;
use iolens_harness::op::Budget;

/// A file with a name of its own.
struct Made {
    _folder: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn made(bytes: usize) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read-me");
    let mut content = vec![0; bytes];
    test_file::fill(7, 0, &mut content);
    std::fs::write(&path, &content).unwrap();
    Made { _folder: folder, path, bytes: content }
}

impl Made {
    fn subject(&self) -> Subject {
        Subject::open(&self.path).unwrap()
    }

    /// Descriptors and mappings of it in this process.
    fn open_ends(&self) -> usize {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let links = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        links.filter(|target| *target == self.path).count() + self.mappings()
    }

    fn mappings(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = self.path.to_str().unwrap();
        maps.lines().filter(|line| line.contains(path)).count()
    }

    fn digest(&self) -> (u64, u32) {
        let (mut checksum, mut xor) = (Checksum::new(), Xor::default());
        checksum.take(0, &self.bytes[..]);
        xor.take(0, &self.bytes[..]);
        (checksum.value(self.bytes.len() as u64), xor.value())
    }
}

/// The engines that work here; the others are skipped by name.
fn engines(test: &str, subject: &Subject) -> Vec<&'static Entry> {
    let works = |entry: &&&Entry| match entry.try_on(subject) {
        Ok(()) => true,
        Err(why) => {
            skip::note(&format!("read::tests::{test}"), &why);
            false
        }
    };
    READING.iter().filter(works).copied().collect()
}

/// Reads all of a file with some threads, one after the other.
fn read(
    entry: &Entry,
    subject: &Subject,
    block_bytes: u64,
    threads: u32,
    pattern: Pattern,
) -> Result<(Tally, Digest), String> {
    let consumer = Consumer::HashAndXor;
    let (mut tally, mut digest) = (Tally::default(), consumer.of_nothing());
    for part in Part::split(subject.bytes(), block_bytes, threads) {
        // Other tests of this user lock memory too.
        let depth = if block_bytes > 1 << 16 { 2 } else { 5 };
        let setup = Setup { subject, part, pattern, first: 0, seed: 3, depth, consumer };
        let mut reader = entry.start(setup)?;
        let span = reader.run(&Budget::messages(part.blocks(), 1)).unwrap();
        assert!(span.last_call_ns > span.first_call_ns);
        tally = tally.and(reader.tally());
        digest.merge(&reader.digest());
    }
    Ok((tally, digest))
}

/// Whether the calls of a reading are as many as its engine makes.
fn check_calls(entry: &Entry, tally: &Tally, parts: u64, pattern: Pattern) {
    let Tally { blocks, calls, .. } = *tally;
    let retried = tally.short_reads + tally.interrupted;
    let expect = match (entry.id, pattern) {
        ("pread" | "direct" | "preadv2_dontcache", _) => blocks + retried..=blocks + retried,
        ("preadv2_nowait", _) => blocks + tally.would_block..=blocks + tally.would_block + retried,
        // A move to the beginning of each part but the first.
        ("read" | "readv", Pattern::Sequential) => {
            blocks + parts - 1..=blocks + parts - 1 + retried
        }
        // A move before each block that is not the next one.
        ("read" | "readv", Pattern::Random) => blocks..=2 * blocks + retried,
        ("mmap", _) => 2 * parts..=2 * parts,
        ("mmap_populate", _) => 2 * parts..=2 * parts + blocks + retried + tally.would_block,
        // Five are handed over at once, and each could be waited for.
        ("uring_sqpoll", _) => 0..=2 * blocks + parts,
        _ => blocks / 5..=blocks + parts,
    };
    assert!(expect.contains(&calls), "{}: {calls} calls for {tally:?}", entry.id);
}

#[test]
fn every_engine_reads_every_byte_once() {
    for file_bytes in [(1 << 20) + 3, 100_003, 1] {
        let made = made(file_bytes);
        let subject = made.subject();
        let blocks: &[u64] = match file_bytes {
            // A call for each byte of a megabyte takes too long for every engine.
            1_048_579 => &[511, 4096, 1 << 20],
            _ => &[1, 4096],
        };
        for entry in engines("every_engine_reads_every_byte_once", &subject) {
            for (&block, &pattern) in
                blocks.iter().flat_map(|block| Pattern::ALL.iter().map(move |p| (block, p)))
            {
                let about = format!("{} at {block} of {file_bytes}, {pattern:?}", entry.id);
                let (tally, digest) = match read(entry, &subject, block, 3, pattern) {
                    Ok(done) => done,
                    Err(why) if entry.is_direct && block < 4096 => {
                        assert!(why.contains("direct reads from "), "{about}: {why}");
                        continue;
                    }
                    Err(why) => panic!("{about}: {why}"),
                };
                let length = file_bytes as u64;
                let value = digest.checksum.unwrap().value(length);
                assert_eq!((value, digest.xor.unwrap().value()), made.digest(), "{about}");
                assert_eq!(
                    (tally.bytes, tally.blocks),
                    (length, length.div_ceil(block)),
                    "{about}"
                );
                let parts = Part::split(length, block, 3).len() as u64;
                check_calls(entry, &tally, parts, pattern);
            }
        }
        drop(subject);
        assert_eq!(made.open_ends(), 0, "nothing is left open or mapped");
    }
}

#[test]
fn a_slice_goes_on_where_the_last_one_ended_and_round_again() {
    let made = made(10 * 4096 + 5);
    let subject = made.subject();
    for entry in engines("a_slice_goes_on_where_the_last_one_ended_and_round_again", &subject) {
        for &pattern in Pattern::ALL {
            let part = Part { block_bytes: 4096, start: 0, end: subject.bytes() };
            let consumer = Consumer::Hash;
            let setup =
                Setup { subject: &subject, part, pattern, first: 0, seed: 1, depth: 3, consumer };
            let mut reader = entry.start(setup).unwrap();
            for slice in [4, 1, 6] {
                reader.run(&Budget::messages(slice, 1)).unwrap();
                assert_eq!(made.mappings(), 0, "{}: mapped pages cannot be evicted", entry.id);
            }
            let once = (reader.tally(), reader.digest());
            assert_eq!((once.0.blocks, once.0.bytes), (11, subject.bytes()), "{}", entry.id);
            let value = once.1.checksum.unwrap().value(subject.bytes());
            assert_eq!(value, made.digest().0, "{} {pattern:?}", entry.id);
            reader.run(&Budget::messages(11, 1)).unwrap();
            let both = reader.tally();
            assert_eq!((both.blocks, both.bytes), (22, 2 * subject.bytes()), "{}", entry.id);
        }
    }
}

#[test]
fn every_consumer_works_with_every_engine() {
    let made = made(50_000);
    let subject = made.subject();
    for entry in engines("every_consumer_works_with_every_engine", &subject) {
        for &consumer in Consumer::ALL {
            let part = Part { block_bytes: 8192, start: 0, end: subject.bytes() };
            let pattern = Pattern::Sequential;
            let setup =
                Setup { subject: &subject, part, pattern, first: 0, seed: 1, depth: 2, consumer };
            let mut reader = entry.start(setup).unwrap();
            reader.run(&Budget::messages(part.blocks(), 1)).unwrap();
            assert_eq!(reader.tally().bytes, 50_000, "{} {consumer:?}", entry.id);
            let digest = reader.digest();
            let expect = consumer.of_nothing();
            assert_eq!(digest.checksum.is_some(), expect.checksum.is_some());
            assert_eq!(digest.xor.map(|xor| xor.value()), expect.xor.map(|_| made.digest().1));
        }
    }
}

#[test]
fn an_empty_file_has_no_parts() {
    let made = made(0);
    let subject = made.subject();
    for entry in READING {
        assert_eq!(entry.try_on(&subject), Ok(()));
        let (tally, digest) = read(entry, &subject, 4096, 4, Pattern::Sequential).unwrap();
        assert_eq!(tally, Tally::default());
        assert_eq!((digest.checksum.unwrap().value(0), digest.xor.unwrap().value()), (0, 0));
    }
}

#[test]
fn a_file_that_shrinks_ends_early_and_is_counted() {
    let shrunk = 4 * 4096 + 2048;
    let probe = made(4096);
    for entry in engines("a_file_that_shrinks_ends_early_and_is_counted", &probe.subject()) {
        // What touches a page that the file has lost does not live to say so.
        if entry.id == "mmap" {
            continue;
        }
        let made = made(10 * 4096);
        let subject = made.subject();
        let part = Part { block_bytes: 4096, start: 0, end: subject.bytes() };
        let (pattern, consumer) = (Pattern::Sequential, Consumer::Hash);
        let setup =
            Setup { subject: &subject, part, pattern, first: 0, seed: 1, depth: 4, consumer };
        let mut reader = entry.start(setup).unwrap();
        File::options().write(true).open(&made.path).unwrap().set_len(shrunk).unwrap();
        let end = reader.run(&Budget::messages(part.blocks(), 1));
        assert_eq!(end.unwrap_err(), Errno::ENODATA, "{}", entry.id);
        let tally = reader.tally();
        if entry.id == "mmap_populate" {
            // Of a page, all is mapped.
            assert_eq!((tally.bytes, tally.blocks), (5 * 4096, 5));
            continue;
        }
        assert_eq!((tally.bytes, tally.blocks), (shrunk, 4), "{}", entry.id);
        let mut checksum = Checksum::new();
        checksum.take(0, &made.bytes[..usize::try_from(shrunk).unwrap()]);
        assert_eq!(reader.digest().checksum.unwrap().value(shrunk), checksum.value(shrunk));
    }
}

#[test]
fn a_file_that_grows_is_read_as_far_as_it_was() {
    let probe = made(4096);
    for entry in engines("a_file_that_grows_is_read_as_far_as_it_was", &probe.subject()) {
        let made = made(9000);
        let subject = made.subject();
        File::options()
            .write(true)
            .open(&made.path)
            .unwrap()
            .write_all_at(&[9; 9000], 9000)
            .unwrap();
        let (tally, digest) = read(entry, &subject, 4096, 1, Pattern::Sequential).unwrap();
        assert_eq!((tally.bytes, tally.blocks), (9000, 3), "{}", entry.id);
        assert_eq!(digest.checksum.unwrap().value(9000), made.digest().0, "{}", entry.id);
    }
}

#[test]
fn calls_that_are_cut_short_are_made_again_and_counted() {
    let content: Vec<u8> = (0..100).collect();
    let place = Place { offset: 40, bytes: 60 };
    let run = |answers: &[Result<usize, Errno>]| {
        let mut answers = answers.iter().copied();
        let (mut buffer, mut sink) = ([0; 60], Sink::<Checksum>::default());
        let call = |bytes: &mut [u8], offset: u64, _: &mut Tally| {
            let n = answers.next().unwrap()?.min(bytes.len());
            let at = usize::try_from(offset).unwrap();
            bytes[..n].copy_from_slice(&content[at..at + n]);
            Ok(n)
        };
        let end = fill(60, &mut buffer, place, &mut sink, call);
        let Sink { consumer: checksum, tally } = sink;
        let mut expect = Checksum::new();
        expect.take(40, &content[40..40 + usize::try_from(tally.bytes).unwrap()]);
        assert_eq!(checksum.value(0), expect.value(0));
        (end, tally)
    };
    let whole = Tally { blocks: 1, bytes: 60, calls: 1, ..Tally::default() };
    assert_eq!(run(&[Ok(60)]), (Ok(()), whole));
    let (end, tally) = run(&[Err(Errno::EINTR), Ok(1), Ok(58), Err(Errno::EINTR), Ok(1)]);
    assert_eq!((end, tally), (Ok(()), Tally { calls: 5, short_reads: 2, interrupted: 2, ..whole }));
    let cut = Tally { blocks: 0, bytes: 20, calls: 2, short_reads: 1, ..Tally::default() };
    assert_eq!(run(&[Ok(20), Ok(0)]), (Err(Errno::ENODATA), cut));
    assert_eq!(run(&[Ok(20), Err(Errno::EIO)]), (Err(Errno::EIO), cut));
}

#[test]
fn nothing_is_allocated_within_a_slice() {
    let made = made(64 * 4096);
    let subject = made.subject();
    for entry in engines("nothing_is_allocated_within_a_slice", &subject) {
        for &pattern in Pattern::ALL {
            let part = Part { block_bytes: 4096, start: 0, end: subject.bytes() };
            let consumer = Consumer::HashAndXor;
            let setup =
                Setup { subject: &subject, part, pattern, first: 0, seed: 1, depth: 4, consumer };
            let mut reader = entry.start(setup).unwrap();
            let budget = Budget::messages(100, 1);
            let allocated = allocation_counter::measure(|| {
                let _ = reader.run(&budget).unwrap();
            });
            assert_eq!(allocated.count_total, 0, "{} {pattern:?}", entry.id);
        }
    }
}

#[test]
fn the_bare_loop_makes_the_calls_of_read() {
    let subject = made(40).subject();
    let part = Part { block_bytes: 10, start: 10, end: 40 };
    let (pattern, consumer) = (Pattern::Sequential, Consumer::None);
    let setup = Setup { subject: &subject, part, pattern, first: 0, seed: 0, depth: 1, consumer };
    let tally = |id: &str| {
        let mut reader = that_reads(id).unwrap().start(setup).unwrap();
        // Twice over the end of the range, and on from within it.
        for blocks in [4, 4] {
            reader.run(&Budget::messages(blocks, 1)).unwrap();
        }
        reader.tally()
    };
    assert_eq!(tally("bare_read").blocks, 8);
    let Tally { calls, seeks, .. } = tally("read");
    // Where the range does not begin with the file, ours moves there within the clock.
    let but_one = Tally { calls: calls - 1, seeks: seeks - 1, ..tally("read") };
    assert_eq!(but_one, tally("bare_read"));
    assert!(!READING.iter().any(|entry| entry.id == "bare_read"));
    let scanned = Setup { consumer: Consumer::Scan, ..setup };
    assert!(that_reads("bare_read").unwrap().start(scanned).is_err());
}

//! `iolens file read` and `iolens file size`, as a user meets them.

use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{
    Place, a_child_has_mapped, children, entries, is_alive, number, wait_until_gone,
};
use crate::skip;

/// A megabyte and three bytes, none of them like its neighbours.
const FILE_BYTES: usize = (1 << 20) + 3;

fn content(bytes: usize) -> Vec<u8> {
    let mixed = |at: usize| (at as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..bytes).map(|at| mixed(at).to_be_bytes()[1]).collect()
}

/// The checksum as the help defines it, made of nothing of ours.
fn checksum(bytes: &[u8]) -> String {
    const P: u128 = (1 << 61) - 1;
    let mut h = 0u128;
    for word in bytes.chunks(8).rev() {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        h = (h + u128::from(u64::from_le_bytes(padded))) * 0x1e37_79b9_7f4a_7c1a % P;
    }
    format!("{:016x}", (h + bytes.len() as u128) % P)
}

fn xor(bytes: &[u8]) -> String {
    let word =
        |word: &[u8]| word.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    format!("{:08x}", bytes.chunks(4).fold(0, |xor, bytes| xor ^ word(bytes)))
}

/// A place with a file `f` in it.
fn with_file(bytes: &[u8]) -> Place {
    let place = Place::new();
    place.write("f", bytes);
    place
}

fn read(place: &Place, options: &str) -> Value {
    place.json(&format!("file read PLACE/f {options} --json"))
}

#[test]
fn the_bytes_the_count_and_the_checksum_are_right() {
    let bytes = content(FILE_BYTES);
    let place = with_file(&bytes);
    for (block, blocks) in [("1", FILE_BYTES), ("4096", 257), ("1MiB", 2)] {
        let done = read(&place, &format!("--block-size {block} --checksum --xor"));
        assert_eq!(number(&done, "bytes"), FILE_BYTES as u64, "{done}");
        assert_eq!(number(&done, "blocks"), blocks as u64);
        assert_eq!(number(&done, "calls"), blocks as u64, "one call for each block");
        assert_eq!(
            (&done["checksum"], &done["xor"]),
            (&checksum(&bytes).into(), &xor(&bytes).into())
        );
        assert!(number(&done, "time_ns") > 0 && done["bytes_per_s"].as_f64().unwrap() > 0.0);
        assert_eq!(done["failure"], Value::Null);
    }
}

#[test]
fn every_engine_gives_the_same_checksum() {
    let bytes = content(FILE_BYTES);
    let place = with_file(&bytes);
    let listed = place.listed("engines");
    let readers = listed.iter().filter(|engine| engine["task"] == "read");
    assert!(readers.clone().count() >= 12, "{listed:?}");
    for (index, engine) in readers.enumerate() {
        let name = engine["name"].as_str().unwrap();
        if engine["available"] != true {
            assert!(engine["unavailable_reason"].is_string());
            continue;
        }
        let pattern = ["sequential", "random"][index % 2];
        let options = format!(
            "--engine {name} --block-size 64KiB --threads 3 --pattern {pattern} --checksum --seed 9"
        );
        let done = read(&place, &options);
        assert_eq!(done["checksum"], checksum(&bytes).as_str(), "{done}");
        assert_eq!((&done["engine"], &done["threads"]), (&engine["name"], &3.into()));
        let depth = if engine["has_depth"] == true { 8 } else { 1 };
        assert_eq!(done["depth"], depth);
    }
}

#[test]
fn a_short_file_ends_at_its_end() {
    let bytes = content(10_000);
    let place = with_file(&bytes);
    let done = read(&place, "--block-size 4096 --count 100 --checksum");
    assert_eq!((number(&done, "bytes"), number(&done, "blocks")), (10_000, 3));
    let done = read(&place, "--block-size 4096 --count 2 --checksum");
    assert_eq!((number(&done, "bytes"), number(&done, "blocks")), (8192, 2));
    assert_eq!(done["checksum"], checksum(&bytes[..8192]).as_str());
    assert_eq!(number(&done, "file_bytes"), 10_000);
    let empty = with_file(&[]);
    let done = read(&empty, "--block-size 4096 --checksum --xor --threads 4");
    assert_eq!((number(&done, "bytes"), number(&done, "calls")), (0, 0));
    assert_eq!(done["checksum"], "0000000000000000");
}

#[test]
fn a_file_is_read_again_on_one_clock() {
    let place = with_file(&content(10_000));
    for (engine, threads) in [("read", 1), ("pread", 3), ("mmap", 2), ("mmap_populate", 1)] {
        let options = format!("--block-size 4096 --loops 5 --engine {engine} --threads {threads}");
        let done = read(&place, &options);
        assert_eq!(number(&done, "bytes"), 50_000, "{done}");
        assert_eq!((number(&done, "blocks"), number(&done, "loops")), (15, 5), "{done}");
    }
    place
        .run("file read PLACE/f --block-size 4096 --loops 5")
        .prints("50000 (48.8 KiB), all of the file 5 times");
    // The same bytes at the same places again have another sum.
    for sum in ["--checksum", "--xor"] {
        let line = format!("file read PLACE/f --block-size 4096 --loops 2 {sum}");
        place.refuses(&line, 2, "cannot be used with");
    }
}

#[test]
fn a_seek_is_no_read() {
    let place = with_file(&content(32 << 10));
    let done = read(&place, "--block-size 1KiB --threads 2 --engine read");
    let counts = ["blocks", "calls", "seeks"].map(|key| number(&done, key));
    assert_eq!(counts, [32, 33, 1], "the second thread begins in the middle: {done}");
    let text = place.run("file read PLACE/f --block-size 1KiB --threads 2 --engine read").stdout;
    let expect = "  calls       32, 1 KiB per call; 1 more moved the position (lseek)\n";
    assert!(text.contains(expect), "{text}");
}

#[test]
fn a_person_sees_a_line_for_each_thing() {
    let place = with_file(&content(FILE_BYTES));
    let done = place.run("file read PLACE/f --block-size 4KiB --engine pread --checksum").ended(0);
    for expect in [
        "pread: read ",
        "in blocks of 4 KiB, sequential, 1 thread\n",
        "  bytes       1048579 (1.00 MiB), all of the file\n",
        "  calls       257, 3.98 KiB per call\n",
        "  checksum    ",
        "  resident    ",
        "  from device ",
        "  file system ",
    ] {
        done.prints(expect);
    }
    assert_eq!(done.stderr, "");
    place.run("list engines").prints("uring_sqpoll").prints("needs ");
}

#[test]
fn what_is_no_readable_file_is_refused() {
    let place = with_file(&content(100));
    place.make_folder("folder");
    let _listener = UnixListener::bind(place.path("socket")).unwrap();
    let fifo = Command::new("mkfifo").arg(place.path("fifo")).status().unwrap();
    assert!(fifo.success());
    let read = |what: &str| format!("file read {what} --block-size 4096");
    for (what, expect) in [
        ("PLACE/none", "/none: ENOENT (no such file or directory)"),
        ("PLACE/f/below", "ENOTDIR"),
        ("PLACE/folder", "folder: it is a directory, not a regular file"),
        ("PLACE/socket", "it is a socket"),
        // Nobody writes to it, and nobody waits for that.
        ("PLACE/fifo", "it is a FIFO"),
        ("/dev/null", "it is a character device"),
    ] {
        place.refuses(&read(what), 4, expect);
    }
    std::fs::set_permissions(place.path("f"), PermissionsExt::from_mode(0o000)).unwrap();
    if File::open(place.path("f")).is_ok() {
        return skip::note(
            "file_read::what_is_no_readable_file_is_refused",
            "root reads all files",
        );
    }
    place.refuses(&read("PLACE/f"), 4, "EACCES (permission denied)");
}

#[test]
fn what_cannot_be_asked_for_is_a_usage_error() {
    let place = with_file(&content(100));
    for (options, expect) in [
        ("--block-size 0", "a block of 0 bytes moves nothing"),
        ("--block-size 65MiB", "the largest is 64 MiB"),
        ("--block-size 12parsecs", "is not a size"),
        ("--block-size 1 --count 0", "at least 1"),
        ("--block-size 1 --threads 0", "at least 1"),
        ("--block-size 1 --threads 2000", "the largest number is 1024"),
        ("--block-size 1 --pattern up", "choose from: sequential, random"),
        ("--block-size 1 --engine reed", "did you mean `read`? choose from: direct, "),
        (
            "--block-size 1 --engine pread --queue-depth 4",
            "`pread` has one read under way at a time: --queue-depth is for uring, ",
        ),
    ] {
        place.refuses(&format!("file read PLACE/f {options}"), 2, expect);
    }
    place.refuses("file read PLACE/f", 2, "--block-size");
    place.refuses("file", 2, "Usage");
    place.refuses("file size PLACE --block-size 4096 --time 5s", 2, "like 5s..15s");
    place.refuses("file size PLACE --block-size 4096 --time 5s..1s", 2, "the shorter one first");
    place.refuses("file size PLACE/none --block-size 4096", 4, "ENOENT");
    place.refuses("file size PLACE/f --block-size 4096", 4, "ENOTDIR");
}

#[test]
fn direct_reads_want_whole_sectors() {
    let place = with_file(&content(100_000));
    let listed = place.listed("engines");
    let works = |engine: &&Value| {
        engine["name"] == "direct" && engine["task"] == "read" && engine["available"] == true
    };
    if !listed.iter().any(|engine| works(&engine)) {
        return skip::note("file_read::direct_reads_want_whole_sectors", "no O_DIRECT here");
    }
    for engine in ["direct", "uring_direct"] {
        let line = format!("file read PLACE/f --block-size 511 --engine {engine}");
        place.refuses(&line, 4, "are of multiples of");
    }
}

#[test]
fn an_eviction_is_verified_and_comes_only_when_asked_for() {
    let place = with_file(&content(1 << 20));
    let warm = read(&place, "--block-size 64KiB");
    let name = "file_read::an_eviction_is_verified_and_comes_only_when_asked_for";
    if let Some(why) = warm["resident_unknown_reason"].as_str() {
        return skip::note(name, why);
    }
    assert_eq!(warm["resident_before_share"], 1.0);
    let cold = read(&place, "--block-size 64KiB --evict");
    if ["tmpfs", "ramfs"].contains(&cold["file_system"].as_str().unwrap()) {
        assert!(cold["notes"][0].as_str().unwrap().contains("is memory"), "{cold}");
        return skip::note(name, "the folder for temporary files is in memory");
    }
    assert!(cold["resident_before_share"].as_f64().unwrap() <= 0.001, "{cold}");
    assert_eq!(cold["resident_after_share"], 1.0, "it was read into the page cache");
    assert!(number(&cold, "device_bytes") >= 1 << 20, "{cold}");
    assert_eq!(number(&read(&place, "--block-size 64KiB"), "device_bytes"), 0);
}

#[test]
fn what_reads_without_any_device_is_noted() {
    let place = with_file(&[]);
    File::options().write(true).open(place.path("f")).unwrap().set_len(1 << 20).unwrap();
    let done = read(&place, "--block-size 4096");
    let notes = done["notes"].to_string();
    assert!(notes.contains("is holes") || notes.contains("are zeros"), "{done}");
}

/// Waits until the worker of a reading has mapped its file.
fn wait_until_mapped(tool: u32, path: &Path) {
    while !a_child_has_mapped(tool, path) {
        assert!(is_alive(tool), "it ended before it had mapped the file");
        std::thread::yield_now();
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_mapped_is_said_so() {
    // A hole: as much to read as takes a while, byte by byte, and nothing on a device.
    let place = with_file(&[1]);
    let path = place.path("f");
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(4 << 30).unwrap();
    let line = format!("file read {} --block-size 1 --engine mmap --scan", path.display());
    let running = place.start(&line);
    wait_until_mapped(running.child.id(), &path);
    file.set_len(0).unwrap();
    let done = running.finish().ended(4);
    done.says("the file was truncated while it was mapped (SIGBUS)");
    assert_eq!(done.stdout, "");
}

#[test]
fn an_interrupt_ends_the_worker() {
    let place = with_file(&[1]);
    let path = place.path("f");
    File::options().write(true).open(&path).unwrap().set_len(4 << 30).unwrap();
    let running = place.start("file read PLACE/f --block-size 1 --engine mmap --scan");
    wait_until_mapped(running.child.id(), &path);
    let worker = children(running.child.id())[0];
    running.interrupted().says("interrupted");
    assert!(!is_alive(worker));
}

#[test]
fn a_size_is_found_and_the_file_is_gone() {
    let place = Place::new();
    let folder = place.folder.path().display().to_string();
    let found = place.json(&format!("file size {folder} --block-size 512 --time 5ms..5s --json"));
    if found["limit"] == "space" {
        return skip::note("file_read::a_size_is_found_and_the_file_is_gone", "no free space");
    }
    assert!(number(&found, "bytes").is_multiple_of(512), "{found}");
    assert!((5_000_000..=5_000_000_000).contains(&number(&found, "time_ns")), "{found}");
    assert_eq!(found["kept"], Value::Null);
    assert_eq!(entries(&folder), 0);
}

#[test]
fn a_file_that_is_kept_has_the_size_and_no_holes() {
    let place = Place::new();
    let folder = place.folder.path().display().to_string();
    let line = format!("file size {folder} --block-size 4096 --time 1us..2m --keep --json");
    let done = place.run(&line);
    if done.stderr.contains("has no O_TMPFILE") {
        let name = "file_read::a_file_that_is_kept_has_the_size_and_no_holes";
        return skip::note(name, "the file system has no O_TMPFILE");
    }
    let found: Value = done.json();
    let kept = found["kept"].as_str().unwrap();
    let bytes = std::fs::read(kept).unwrap();
    assert_eq!(bytes.len() as u64, number(&found, "bytes"));
    assert!(kept.contains(&bytes.len().to_string()));
    assert!(bytes.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
    let read = place.json(&format!("file read {kept} --block-size 4096 --checksum --json"));
    assert_eq!(
        (&read["checksum"], &read["notes"]),
        (&checksum(&bytes).into(), &Value::Array(vec![]))
    );
}

#[test]
fn nothing_is_left_of_a_search_that_is_ended() {
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let place = Place::new();
        let folder = place.folder.path().display().to_string();
        let mut running =
            place.start(&format!("file size {folder} --block-size 4096 --time 100s..200s --keep"));
        // The first size was tried, and the next one is being written.
        running.wait_for("1 MiB: ");
        let worker = children(running.child.id())[0];
        running.signal(signal);
        assert_eq!(running.finish().code, code);
        wait_until_gone(&[worker]);
        assert_eq!(entries(&folder), 0, "{signal}");
    }
}

#[test]
fn what_grows_is_read_as_far_as_it_was() {
    let place = with_file(&[1]);
    let path = place.path("f");
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    let line = format!("file read {} --block-size 1 --engine mmap --json", path.display());
    let running = place.start(&line);
    wait_until_mapped(running.child.id(), &path);
    file.write_all_at(&[1; 4096], 64 << 20).unwrap();
    let done: Value = serde_json::from_str(&running.finish().stdout).unwrap();
    assert_eq!(number(&done, "bytes"), 64 << 20, "{done}");
    assert!(done["notes"].to_string().contains("the file grew by 4096 bytes"), "{done}");
}

#[test]
fn a_file_that_has_fewer_blocks_than_were_asked_for_is_said_to() {
    let place = with_file(&content(1024 * 4096));
    let done = read(&place, "--block-size 4096 --count 4096 --loops 2");
    assert_eq!((number(&done, "blocks"), number(&done, "blocks_asked")), (2048, 8192), "{done}");
    assert_eq!(done["failure"], Value::Null, "all that there was came");
    place
        .run("file read PLACE/f --block-size 4096 --count 4096")
        .ended(0)
        .prints("1024 of the 4096 asked for: the file has no more");
    let done = read(&place, "--block-size 4096 --count 1024");
    assert_eq!(number(&done, "blocks_asked"), 1024);
    assert_eq!(read(&place, "--block-size 4096")["blocks_asked"], Value::Null);
}

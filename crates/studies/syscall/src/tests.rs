//! Every call through the same checks: its result is the right one each time, its
//! account is true, and what it uses up is made anew before each slice.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use iolens_model::call::CallKind;
use iolens_model::cell::{Cell, Setting, SyscallSetting};
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;

use super::entry::{Call, repeated};
use super::*;
use iolens_harness::op::Budget;

#[test]
fn ids_are_sorted_and_each_is_itself() {
    let ids: Vec<&str> = CALLS.iter().map(|entry| entry.id).collect();
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    for entry in CALLS {
        assert!(std::ptr::eq(find(entry.id).unwrap(), *entry));
        assert!(!entry.summary.is_empty() && entry.guess_ns > 0.0, "{}", entry.id);
        // What does not enter the kernel is no way to enter it.
        let faults = entry.kind == CallKind::Memory;
        assert_eq!(entry.control, entry.calls == 0 && !faults, "{}", entry.id);
    }
}

#[test]
fn what_is_used_up_is_refused_and_made_again() {
    for entry in CALLS.iter().filter(|entry| entry.most.is_some()) {
        // Of these no call fails, however many come: a slow one, and files that go on.
        if ["fsync", "read_file", "write_file"].contains(&entry.id) {
            continue;
        }
        let most = 3;
        let mut call = (entry.open)(&Setup { most, block: 1, file: None }).unwrap();
        for _ in 0..2 {
            call.touch();
            let whole = call.run(&Budget::messages(most as u64, 1));
            assert!(whole.is_ok(), "{}: {whole:?}", entry.id);
            let more = call.run(&Budget::messages(1, 1));
            assert_eq!(more.unwrap_err(), Errno::ENOBUFS, "{}", entry.id);
        }
        assert_eq!(call.tally().messages, 2 * most as u64, "{}", entry.id);
    }
}

#[test]
fn a_pipe_that_is_never_emptied_stays_open_for_more() {
    let most = 2000;
    let mut call =
        (find("read_pipe").unwrap().open)(&Setup { most, block: 1, file: None }).unwrap();
    // Many more bytes than a page, a few at a time.
    for _ in 0..30 {
        call.touch();
        call.run(&Budget::messages(999, 1)).unwrap();
    }
    assert_eq!(call.tally().bytes, 30 * 999);
}

#[test]
fn a_slice_that_could_not_be_prepared_says_so() {
    struct Hopeless;
    impl Call for Hopeless {
        fn call(&mut self) -> Result<(), Errno> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<(), Errno> {
            Err(Errno::ENOSPC)
        }
    }
    let mut call = repeated(find("getppid").unwrap(), Hopeless);
    call.touch();
    assert_eq!(call.run(&Budget::messages(1, 1)).unwrap_err(), Errno::ENOSPC);
}

/// What the kernel says that this thread has read and written by system calls, without what
/// asking for it read.
fn told() -> Option<[u64; 2]> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
    // It is asked before the text is read.
    Some([of("rchar: ")? + text.len() as u64, of("wchar: ")?])
}

#[test]
fn a_call_moves_as_many_bytes_as_are_asked_for() {
    const CALLS_OF_A_SLICE: u64 = 3;
    for entry in CALLS.iter().filter(|entry| entry.bytes > 0) {
        for block in [1, 512, 4096, 5000, 65_536] {
            let asked = Asked { block: Bytes(block), ..Asked::LEAST };
            let most = entry.most_of(asked).map_or(CALLS_OF_A_SLICE, u64::from);
            let calls = most.min(CALLS_OF_A_SLICE);
            let mut call = (entry.open)(&entry.setup(asked)).unwrap();
            for slice in 1..=2 {
                call.touch();
                let before = told();
                call.run(&Budget::messages(calls, 1)).unwrap();
                let after = told();
                let bytes = calls * block;
                assert_eq!(call.tally().bytes, slice * bytes, "{} of {block}", entry.id);
                let Some(([read, written], [read_now, written_now])) = before.zip(after) else {
                    continue;
                };
                let asking = fs::read_to_string("/proc/thread-self/io").unwrap().len() as u64;
                let text = read_now - read;
                let (in_bytes, out_bytes) = (text.saturating_sub(asking), written_now - written);
                let writes = entry.id.contains("write") || entry.id == "fsync";
                let expected = if writes { [0, bytes] } else { [bytes, 0] };
                // The text that is asked for may have grown by a digit or two.
                let near = in_bytes.abs_diff(expected[0]) <= 8;
                assert!(near && out_bytes == expected[1], "{} of {block}: {text}", entry.id);
            }
        }
    }
}

/// A cell of one thread, of blocks of a size, or without one.
fn cell(block: u64, in_a_row: Option<u64>) -> Cell {
    let setting = Setting::Syscall(SyscallSetting { in_a_row });
    Cell { setting, threads: 1, size: Bytes(block) }
}

#[test]
fn a_slice_has_as_many_blocks_as_there_is_room_for() {
    let allowed = |id: &str, cell: &Cell, file: Option<u64>| {
        find(id).unwrap().allow(cell, file.map(Bytes), true)
    };
    let most = |id: &str, threads, block| {
        find(id).unwrap().most_of(Asked { threads, block: Bytes(block), file: None }).unwrap()
    };
    assert_eq!((most("read_file", 1, 1), most("read_pipe", 1, 1)), (1 << 17, 1000));
    assert_eq!((most("read_file", 1, 65_536), most("write_pipe", 1, 65_536)), (256, 15));
    assert_eq!((most("read_file", 4, 65_536), most("write_pipe", 4, 65_536)), (64, 3));
    assert_eq!(most("write_pipe", 1, 1 << 20), 1);
    let pipe = allowed("read_pipe", &cell(2 << 20, None), None).unwrap_err();
    assert_eq!(pipe, "a pipe holds 1 MiB at most, too little for a block of 2 MiB");
    let row = allowed("read_pipe", &cell(65_536, Some(100)), None).unwrap_err();
    assert!(row.starts_with("a slice of `read_pipe` has 15 calls of 64 KiB at most"), "{row}");
    let short = allowed("pread", &cell(4096, None), Some(100)).unwrap_err();
    assert_eq!(short, "the file has 100 B, too little for a block of 4 KiB");
    assert_eq!(allowed("read_file", &cell(100, None), Some(100)), Ok(()));
}

/// The user's file as a trial has it.
fn theirs<'a>(path: &'a Path, file: &'a File) -> UsersFile<'a> {
    UsersFile { path: path.as_os_str().as_bytes(), fd: file.as_fd() }
}

#[test]
fn a_file_of_the_users_is_read_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs");
    let content: Vec<u8> = (0..300_000u32).map(|n| n.to_le_bytes()[0] ^ 0x5a).collect();
    fs::write(&path, &content).unwrap();
    let before = fs::metadata(&path).unwrap();
    let opened = File::open(&path).unwrap();
    let theirs = theirs(&path, &opened);
    let (mut read, mut refused) = (Vec::new(), Vec::new());
    for entry in CALLS.iter().filter(|entry| entry.of_file != OfFile::Nothing) {
        for block in [0, 1, 4096] {
            let file = Some(Bytes(content.len() as u64));
            if let Err(why) = entry.allow(&cell(block, None), file, true) {
                assert_eq!(why, "it would write, and --file is only read");
                refused.push(entry.id);
                break;
            }
            let setup = entry.setup(Asked::by(&cell(block, None), file));
            let mut call = (entry.open)(&Setup { file: Some(theirs), ..setup }).unwrap();
            for _ in 0..2 {
                call.touch();
                call.run(&Budget::messages(2, 1)).unwrap_or_else(|e| panic!("{}: {e}", entry.id));
            }
            read.push(entry.id);
        }
    }
    read.dedup();
    let expected = "close dup fault_file fstat lseek open open_close pread read_file stat statx";
    assert_eq!(read, expected.split(' ').collect::<Vec<_>>());
    assert_eq!(refused, ["fsync", "pwrite", "write_file"]);
    // Those that would write have no file but their own, whoever asks.
    for id in refused {
        let setup = Setup { file: Some(theirs), ..find(id).unwrap().setup(Asked::LEAST) };
        let mut call = (find(id).unwrap().open)(&setup).unwrap();
        call.touch();
        call.run(&Budget::messages(1, 1)).unwrap();
    }
    assert!(fs::read(&path).unwrap() == content, "its bytes are what they were");
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
}

#[test]
fn it_is_the_users_file_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs");
    fs::write(&path, [7; 8192]).unwrap();
    let opened = File::open(&path).unwrap();
    let theirs = theirs(&path, &opened);
    let asked = Asked::by(&cell(4096, None), Some(Bytes(8192)));
    let mut calls = ["pread", "read_file", "stat"].map(|id| {
        let entry = find(id).unwrap();
        (entry.open)(&Setup { file: Some(theirs), ..entry.setup(asked) }).unwrap()
    });
    let mut once = |nth: usize| {
        calls[nth].touch();
        calls[nth].run(&Budget::messages(1, 1)).map(drop)
    };
    assert_eq!([once(0), once(1), once(2)], [Ok(()); 3]);
    fs::write(&path, [7; 100]).unwrap();
    assert_eq!([once(0), once(1)], [Err(Errno::EBADMSG); 2], "it is shorter than a block now");
    fs::remove_file(&path).unwrap();
    assert_eq!(once(2), Err(Errno::ENOENT));
}

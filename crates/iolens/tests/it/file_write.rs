//! `iolens file write` and `iolens file copy`: what they say they do, what they
//! refuse, and what is there when they did not come to their end.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{
    Finished, Place, children, finished, send_signal, started_by, wait_until_gone,
};
use crate::skip;
use crate::storage::in_tmpfs;

/// A folder of a test's own for files, apart from what the tool keeps.
fn folder(place: &Place) -> PathBuf {
    let folder = place.path("files");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs in the folder of files.
fn run(place: &Place, line: &str) -> Finished {
    let output = place.command(line).current_dir(folder(place)).output();
    finished(output.unwrap())
}

fn source(place: &Place, bytes: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..bytes as u64).map(|at| (at * at % 251) as u8).collect();
    std::fs::write(folder(place).join("src"), &content).unwrap();
    content
}

#[test]
fn what_was_written_is_what_is_read() {
    let place = Place::new();
    let written =
        run(&place, "file write new --block-size 4096 --count 257 --fsync --json").ended(0);
    let written: serde_json::Value = written.json();
    assert_eq!((&written["bytes"], &written["calls"]), (&(4096 * 257).into(), &257.into()));
    assert!(written["sync_time_ns"].as_u64().unwrap() > 0);
    assert_eq!(written["resident_before_share"], serde_json::Value::Null);
    let read = run(&place, "file read new --block-size 1MiB --checksum --json");
    let read: serde_json::Value = read.json();
    assert_eq!(written["checksum"], read["checksum"]);
    let text = run(&place, "file write other --block-size 1MiB --count 1 --engine pwrite").stdout;
    for words in ["pwrite: wrote other", "1048576 (1 MiB)", "seconds", "rate", "resident"] {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(names(&folder(&place)), ["new", "other"]);
}

/// What one thread spends in a time is no more than that time: not the making of the content, which
/// takes about as long.
#[test]
fn the_cpu_time_of_a_writing_is_of_its_seconds() {
    let place = Place::new();
    let line = "file write new --block-size 64KiB --count 512 --json";
    let written: serde_json::Value = run(&place, line).ended(0).json();
    let ns = |key: &str| written[key].as_f64().unwrap();
    assert!(ns("cpu_ns") > 0.0 && ns("cpu_ns") < 1.1 * ns("time_ns"), "{written}");
    let text = run(&place, "file write other --block-size 4096 --count 1 --fsync").stdout;
    assert!(text.contains(", without making the content, with the fsync\n"), "{text}");
}

#[test]
fn a_copy_is_the_source_at_every_block_size() {
    let place = Place::new();
    let content = source(&place, (1 << 20) + 3);
    for (block, engine) in [("1", "read_write"), ("4096", "copy_file_range"), ("1MiB", "sendfile")]
    {
        let line =
            format!("file copy src copy-{block} --block-size {block} --engine {engine} --verify");
        run(&place, &line).ended(0).prints("of both");
        assert!(std::fs::read(folder(&place).join(format!("copy-{block}"))).unwrap() == content);
    }
    assert!(std::fs::read(folder(&place).join("src")).unwrap() == content, "only read");
}

#[test]
fn every_engine_that_is_listed_as_working_works() {
    let place = Place::new();
    let content = source(&place, 300_003);
    for engine in place.listed("engines") {
        let (name, task) = (engine["name"].as_str().unwrap(), engine["task"].as_str().unwrap());
        let line = match task {
            "write" => format!("file write write-{name} --block-size 64KiB --count 3"),
            "copy" => format!("file copy src copy-{name} --block-size 64KiB --verify"),
            _ => continue,
        };
        let mut done = run(&place, &format!("{line} --engine {name}"));
        // What is a way to open the file by hand is refused with the words for it.
        if let Some((_, words)) = done.stderr.split_once("by the words ") {
            done = run(&place, &format!("{line} {words}"));
        }
        let made = folder(&place).join(format!("{task}-{name}"));
        assert_eq!(engine["available"] == true, made.exists(), "{name}: {}", done.stderr);
        if task == "copy" && made.exists() {
            assert!(std::fs::read(&made).unwrap() == content, "{name}");
        }
    }
    assert!(names(&folder(&place)).len() > 8, "{:?}", names(&folder(&place)));
}

#[test]
fn every_refusal_is_one_clear_message_and_changes_nothing() {
    let place = Place::new();
    let content = source(&place, 5000);
    let path = |name: &str| folder(&place).join(name);
    std::fs::write(path("old"), "precious").unwrap();
    std::fs::hard_link(path("src"), path("hard")).unwrap();
    std::fs::create_dir(path("dir")).unwrap();
    symlink("old", path("link")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    let before = names(&folder(&place));
    let long = "x".repeat(300);
    let refusals = [
        ("old", "", "it exists already"),
        ("link", "--overwrite", "it is a symbolic link to old"),
        ("dangling", "--overwrite", "which does not exist"),
        ("fifo", "--overwrite", "it is a FIFO"),
        ("dir", "--overwrite", "it is a directory"),
        ("dir/", "--overwrite", "names a directory"),
        ("/dev/null", "--overwrite", "devices are never written to"),
        ("none/new", "", "there is no folder none"),
        ("old/new", "", "ENOTDIR"),
        (long.as_str(), "", "ENAMETOOLONG"),
    ];
    for (to, flag, expect) in refusals {
        for line in [
            format!("file write {to} {flag} --block-size 4096 --count 2"),
            format!("file copy src {to} {flag} --block-size 4096"),
        ] {
            refused(&place, &line, 4, expect);
        }
    }
    for (line, code, expect) in [
        ("file copy src src --block-size 1 --overwrite", 4, "that is the source itself"),
        ("file copy src hard --block-size 1 --overwrite", 4, "it is the same file as src"),
        ("file copy none new --block-size 1", 4, "ENOENT"),
        ("file copy dir new --block-size 1", 4, "it is a directory"),
        ("file copy fifo new --block-size 1", 4, "it is a FIFO"),
        ("file copy src new --block-size 1 --engine reed_write", 2, "did you mean `read_write`"),
        ("file copy src new --block-size 1 --engine reflink --threads 2", 2, "one call clones"),
        ("file copy src new --block-size 100 --engine direct", 4, "multiples of"),
        ("file copy src new --block-size 0", 2, "moves nothing"),
        ("file copy src new --block-size 128MiB", 2, "the largest is 64 MiB"),
        ("file write new --block-size 1 --count 0", 2, "count"),
        (
            "file write new --block-size 1 --count 1 --engine mmap --sync dsync",
            4,
            "--sync fdatasync",
        ),
        ("file write new --block-size 1 --count 1 --sync often", 2, "dsync"),
        ("file write new --block-size 64MiB --count 99999999", 4, "free"),
    ] {
        refused(&place, line, code, expect);
    }
    assert_eq!(names(&folder(&place)), before);
    assert_eq!(std::fs::read_to_string(path("old")).unwrap(), "precious");
    assert!(std::fs::read(path("src")).unwrap() == content);
}

fn refused(place: &Place, line: &str, code: i32, expect: &str) {
    let done = run(place, line).ended(code);
    done.says(expect);
    assert_eq!(done.stdout, "", "{line}");
}

#[test]
fn what_is_mounted_over_is_not_written_to() {
    let place = Place::new();
    let script = "cd $DIR/small; echo src >src; echo old >old; echo x >over; \
                  mount --bind old over; mount --bind src old; \
                  for line in 'copy src over' 'copy src old' 'write over --count 1'; do \
                  $TOOL file $line --block-size 4096 --overwrite; echo code $?; done; cat src";
    let test = "file_write::what_is_mounted_over_is_not_written_to";
    let Some(done) = in_tmpfs(test, &place, "1m", script) else { return };
    assert_eq!(done.stdout, "code 4\ncode 4\ncode 4\nsrc\n", "{}", done.stderr);
    for words in ["it is a mount point", "it is the same file as src"] {
        done.says(words);
    }
}

#[test]
fn a_full_file_system_is_said_before_and_when_it_happens() {
    let place = Place::new();
    // A file whose blocks are where none is written counts as room before.
    let script = "cd $DIR/small; $TOOL file write new --block-size 4096 --count 300; echo code $?; ls; \
                  for engine in write mmap uring_fixed; do rm -f old; \
                  dd if=/dev/zero of=old bs=4096 seek=1000 count=230 2>/dev/null; \
                  $TOOL file write old --overwrite --block-size 4096 --count 200 --engine $engine >&2; \
                  echo code $?; stat -c %s old; done; ls";
    let test = "file_write::a_full_file_system_is_said_before_and_when_it_happens";
    let Some(done) = in_tmpfs(test, &place, "1m", script) else { return };
    let kept = format!("code 4\n{}\n", 1230 * 4096);
    assert_eq!(done.stdout, format!("code 4\n{}old\n", kept.repeat(3)), "{}", done.stderr);
    for words in ["1.17 MiB to new", "ENOSPC", "is full", "is left as it is now", "SIGBUS"] {
        done.says(words);
    }
}

#[test]
fn a_limit_of_the_process_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    source(&place, 100_000);
    for task in ["write new --count 99", "copy src new", "copy src new --engine sendfile"] {
        let words = ["sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"];
        let copy = place.command(&format!("file {task} --block-size 4096"));
        let output = started_by(&words, &copy).current_dir(folder(&place)).output();
        finished(output.unwrap()).ended(4).says("EFBIG").says("ulimit -f");
        assert_eq!(names(&folder(&place)), ["src"]);
    }
}

#[test]
fn what_is_interrupted_or_killed_leaves_nothing() {
    let place = Place::new();
    // Long enough to be interrupted on any machine: each block goes to the device.
    let line = "file write new --block-size 512 --count 1000000 --sync dsync";
    for signal in ["INT", "TERM", "KILL"] {
        let mut command = place.command(line);
        command.current_dir(folder(&place)).stderr(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::null());
        let tool = command.spawn().unwrap();
        let worker = loop {
            if let [worker] = children(tool.id())[..] {
                break worker;
            }
            std::thread::yield_now();
        };
        send_signal(tool.id(), signal);
        let done = finished(tool.wait_with_output().unwrap());
        wait_until_gone(&[worker]);
        if signal != "KILL" {
            done.assert_code(130);
            done.says("nothing was left behind");
        }
        assert_eq!(names(&folder(&place)), [""; 0], "{signal}");
    }
}

#[test]
fn an_existing_file_keeps_its_inode_and_loses_its_end() {
    let place = Place::new();
    let content = source(&place, 5000);
    let old = folder(&place).join("old");
    std::fs::write(&old, vec![1; 9000]).unwrap();
    let inode = std::fs::metadata(&old).unwrap().ino();
    run(&place, "file copy src old --overwrite --block-size 4096 --verify")
        .ended(0)
        .prints("copied over an existing file");
    assert!(std::fs::read(&old).unwrap() == content);
    assert_eq!(std::fs::metadata(&old).unwrap().ino(), inode);
}

#[test]
fn between_two_kinds_of_file_system_nothing_falls_back() {
    let place = Place::new();
    let script = "cd $DIR; head -c 10000 /dev/zero >src; \
                  for engine in copy_file_range reflink; do \
                  $TOOL file copy src small/new --block-size 4096 --engine $engine; echo code $?; done; \
                  $TOOL file copy src small/new --block-size 4096 --verify >/dev/null; echo code $?; \
                  stat -f -c %T src small";
    let test = "file_write::between_two_kinds_of_file_system_nothing_falls_back";
    let Some(done) = in_tmpfs(test, &place, "1m", script) else { return };
    if done.stdout.ends_with("tmpfs\ntmpfs\n") {
        return skip::note(test, "temporary files are on a tmpfs");
    }
    done.prints("code 4\ncode 4\ncode 0\n");
    for words in ["EXDEV", "use --engine read_write", "there is no small/new"] {
        done.says(words);
    }
}

//! The programs of the guide (docs/ab) run as they are printed, speak the loop protocol, and are
//! counted. A toolchain that is not there is a skip.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use iolens_ab::calls::count_calls_of_loop;
use iolens_ab::calls_error::CallsError;
use iolens_sys::launch::Program;
use rustix::io::ioctl_fionread;

#[path = "../../../../tests/support/skip.rs"]
mod skip;

/// Where the examples and their chapter are.
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs");

/// An example that can be started.
struct Example {
    /// The program of its first word.
    path: PathBuf,
    /// Its words, to which an amount of work is added.
    words: Vec<String>,
    /// Where it was built, until it has been used.
    _folder: tempfile::TempDir,
}

/// Builds what is built, from a copy beside which nothing is left. `None` where the tool is not
/// there, which is noted for the test of this name.
fn example(test: &str, tool: &str, arguments: &[&str], file: &str) -> Option<Example> {
    let Some(path) = find(tool) else {
        skip::note(test, &format!("no {tool}"));
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(file);
    std::fs::copy(Path::new(DOCS).join("ab").join(file), &source).unwrap();
    if arguments.is_empty() {
        let words = vec![tool.to_owned(), source.to_str().unwrap().to_owned()];
        return Some(Example { path, words, _folder: folder });
    }
    let mut build = Command::new(&path);
    let build = build.args(arguments).current_dir(&folder).env("GOCACHE", folder.path());
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(Example {
        path: folder.path().join("bench"),
        words: vec!["bench".into()],
        _folder: folder,
    })
}

/// A program in PATH that works: a name may be no more than a promise to install it.
fn find(tool: &str) -> Option<PathBuf> {
    let version = if tool == "go" { "version" } else { "--version" };
    let works = Command::new(tool).arg(version).stdin(Stdio::null()).output();
    let works = works.is_ok_and(|output| output.status.success());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join(tool));
    found.find(|path| works && path.is_file())
}

/// Three slices, asked for byte by byte, and the end.
fn speaks(example: &Example) {
    let mut command = Command::new(&example.path);
    command.args(&example.words[1..]).arg("3").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut requests = program.stdin.take().unwrap();
    let mut answers = BufReader::new(program.stdout.take().unwrap()).lines();
    assert_eq!(answers.next().unwrap().unwrap(), "ready");
    for line in ["1\n", "7\n", "40\n"] {
        for byte in line.as_bytes() {
            requests.write_all(&[*byte]).unwrap();
            while ioctl_fionread(&requests).unwrap() > 0 {
                assert_eq!(program.try_wait().unwrap(), None, "it ended early");
                std::thread::yield_now();
            }
        }
        assert_eq!(answers.next().unwrap().unwrap(), "ok");
    }
    drop(requests);
    assert!(answers.next().is_none(), "it says no more than it is asked");
    assert!(program.wait().unwrap().success());
}

/// Calls of pread(2) per operation; `None` where nothing may be traced, which is noted.
fn preads(test: &str, example: &Example, amount: &str) -> Option<f64> {
    let words = example.words.iter().map(|word| word.clone().into_bytes());
    let words: Vec<_> = words.chain([amount.into()]).collect();
    let errors = tempfile::tempfile().unwrap();
    let mut program = Program::new(&example.path, &words, errors).unwrap();
    match count_calls_of_loop(&mut program, 4, Duration::from_secs(120), None, &|| false) {
        Err(why @ CallsError::Refused { .. }) => {
            skip::note(test, &why.to_string());
            None
        }
        counted => {
            let counted = counted.unwrap();
            let pread = counted.calls.iter().find(|calls| calls.name == "pread64");
            Some(pread.unwrap().per_operation())
        }
    }
}

fn check(test: &str, tool: &str, arguments: &[&str], file: &str) {
    let Some(example) = example(test, tool, arguments, file) else { return };
    speaks(&example);
    for (amount, expect) in [("20", 20.0), ("21", 21.0)] {
        let Some(preads) = preads(test, &example, amount) else { return };
        assert_eq!(preads, expect);
    }
}

#[test]
fn the_example_in_c_runs() {
    check("the_example_in_c_runs", "cc", &["-O2", "-o", "bench", "bench.c"], "bench.c");
}

#[test]
fn the_example_in_go_runs() {
    check("the_example_in_go_runs", "go", &["build", "bench.go"], "bench.go");
}

#[test]
fn the_example_in_node_runs() {
    check("the_example_in_node_runs", "node", &[], "bench.js");
}

#[test]
fn the_example_in_python_runs() {
    check("the_example_in_python_runs", "python3", &[], "bench.py");
}

#[test]
fn the_example_in_rust_runs() {
    check("the_example_in_rust_runs", "rustc", &["-O", "bench.rs"], "bench.rs");
}

#[test]
fn the_chapter_prints_the_examples_as_they_are() {
    let read = |path: &str| std::fs::read_to_string(Path::new(DOCS).join(path)).unwrap();
    let chapter = read("ab.md");
    for (language, path) in [("c", "ab/bench.c"), ("python", "ab/bench.py")] {
        let block = format!("```{language}\n{}```\n", read(path));
        assert!(chapter.contains(&block), "docs/ab.md does not print docs/{path} as it is");
    }
}

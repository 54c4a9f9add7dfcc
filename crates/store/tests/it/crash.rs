//! SIGKILL while trials are appended: none that was committed is lost.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use iolens_store::Store;

use crate::sample;

/// Names the file in the process that is to be killed.
const VICTIM: &str = "IOLENS_STORE_TEST_VICTIM";
const THIS_TEST: &str = "crash::a_killed_writer_loses_no_committed_trial";
const LINE: &str = "committed ";

#[test]
fn a_killed_writer_loses_no_committed_trial() {
    if let Some(path) = std::env::var_os(VICTIM) {
        return append_for_ever(Path::new(&path));
    }
    for commits_seen in [1, 2, 17, 60] {
        check_kill_after(commits_seen);
    }
}

/// Appends until it is killed, and says so after every commit. The number is
/// bounded, so that a parent that dies does not leave a writer behind.
fn append_for_ever(path: &Path) {
    let mut store = Store::open(path).expect("it opens");
    store.begin_run(&sample::header("0000000a")).expect("the run begins");
    for pass in 1..100_000 {
        store.append_trial("0000000a", &sample::trial(pass, 0)).expect("it is stored");
        // Past libtest's capture; fails, and ends this process, without a reader.
        writeln!(std::io::stdout(), "\n{LINE}{pass}").expect("the parent reads");
    }
}

fn check_kill_after(commits_seen: usize) {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    let mut victim = Command::new(std::env::current_exe().expect("tests have a path"))
        .args(["--exact", THIS_TEST, "--nocapture"])
        .env(VICTIM, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test binary starts again");
    let output = BufReader::new(victim.stdout.take().expect("it was piped"));
    let mut commits =
        output.lines().map(|line| line.expect("the victim prints text")).filter_map(|line| {
            line.strip_prefix(LINE).map(|pass| pass.parse::<u32>().expect("a pass"))
        });
    commits.by_ref().take(commits_seen).for_each(drop);
    victim.kill().expect("SIGKILL is delivered");
    victim.wait().expect("the victim is reaped");
    // What it said between our last look and its death is still in the pipe.
    let last = commits.last().unwrap_or(u32::try_from(commits_seen).expect("a small number"));

    let store = Store::open(&path).expect("it opens after the kill");
    let trials = store.load("0000000a").expect("it loads after the kill").trials;
    let passes: Vec<u32> = trials.iter().map(|trial| trial.pass).collect();
    let expected: Vec<u32> = (1..=u32::try_from(passes.len()).expect("a small number")).collect();
    assert_eq!(passes, expected, "trials are there in order and without gaps");
    // One more may have been committed and not yet reported.
    assert!((last..=last + 1).contains(&u32::try_from(passes.len()).expect("small")), "{last}");
    assert!(trials.iter().all(|trial| *trial == sample::trial(trial.pass, 0)));
    assert_eq!(store.runs().expect("it reads")[0].ended(), "killed or still running");
}

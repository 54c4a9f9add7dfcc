//! Trials of small programs, good ones and bad ones, on the real kernel.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod faults;
mod loops;
#[path = "../../../../../tests/support/skip.rs"]
mod skip;

use std::sync::atomic::{AtomicU64, Ordering};

use iolens_ab::{
    AB_SLICE_NS, AbCopies, AbExit, AbLayout, AbPlacement, AbProgramLayout, AbSetup, AbTrial,
};
use iolens_model::ab::AbMode;
use iolens_programs::{Around, ProgramFile, ProgramLimits, ProgramPlace, UserProgram};
use iolens_sys::{affinity, clock};

/// Speaks the protocol, and does nothing in a slice.
const GOOD: &str = "echo ready; while read n; do echo ok; done";

/// Longer than anything takes on a busy machine.
const LONG_NS: u64 = 60_000_000_000;

/// A word that no other process has.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("iolens-ab-test-{}-{count}.", std::process::id())
}

/// A script, which sees its mark as `$0`.
fn script(name: &str, text: &str, mark: &str) -> UserProgram {
    let words = ["sh", "-c", text, mark].map(str::to_owned);
    UserProgram {
        name: name.to_owned(),
        file: ProgramFile::of(&words).unwrap(),
        argv: words.to_vec(),
    }
}

/// A word list as a program.
fn words(name: &str, argv: &[&str]) -> UserProgram {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    UserProgram { name: name.to_owned(), file: ProgramFile::of(&argv).unwrap(), argv }
}

fn setup(mode: AbMode, programs: Vec<UserProgram>) -> AbSetup {
    AbSetup {
        mode,
        programs,
        place: ProgramPlace::FreshCopy,
        exit: AbExit::MustBeZero,
        input: None,
        prepare: None,
        cpus: affinity::thread_cpus().unwrap(),
        slice_ns: AB_SLICE_NS,
        warm_up_ns: None,
        anew_ns: LONG_NS,
        limits: ProgramLimits {
            start_ns: LONG_NS,
            slice_ns: LONG_NS,
            first_run_ns: LONG_NS,
            end_ns: LONG_NS,
            term_ns: LONG_NS,
        },
    }
}

/// A few rounds of a few operations.
fn layout(setup: &AbSetup, operations: u64) -> AbLayout {
    let own = AbProgramLayout { operations, ..AbProgramLayout::default() };
    AbLayout {
        operations,
        rounds: 4,
        warm_slices: 1,
        copies: AbCopies::OfBaseline,
        placement: AbPlacement::OneCpu,
        around: Around::Process,
        programs: vec![own; setup.programs.len()],
        true_ns: None,
    }
}

/// What ended each arm, in words.
fn faults(trial: &AbTrial) -> Vec<Option<String>> {
    trial.arms.iter().map(|one| one.fault.as_ref().map(ToString::to_string)).collect()
}

/// Processes that have a mark among their words.
fn marked(mark: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_mark = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    pids.filter(has_mark).collect()
}

/// What was killed may take a moment to go.
fn nothing_is_left_of(mark: &str) {
    let deadline_ns = clock::monotonic_ns() + LONG_NS;
    while !marked(mark).is_empty() {
        assert!(clock::monotonic_ns() < deadline_ns, "{:?} of {mark} still run", marked(mark));
        std::thread::yield_now();
    }
}

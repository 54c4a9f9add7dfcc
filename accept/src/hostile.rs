//! What goes wrong and who means harm: faults, kills, strangers, planted files, fuzzing.

mod clients;
mod kill;

use std::fs;

use crate::prelude::*;
use crate::process::{Finished, tests};
use crate::remote;

pub const LINES: &[Line] = &[
    line(
        "kill",
        "ten SIGKILLs at random moments lose no committed trial and leave no process or file once \
         the tool has started again",
        &[],
        |bench| kill::check(bench, "loopback"),
    ),
    line(
        "kill-veth",
        "ten SIGKILLs during veth runs leave no namespace, device, process or file and lose no \
         committed trial",
        &[],
        |bench| kill::check(bench, "veth"),
    ),
    line(
        "clients",
        "port in use, ports that run out, a backlog that overflows, clients that die, vanish, do \
         not read, send garbage or too much: a clear message or a counted outcome, and the others \
         are served on",
        &["root", "python3", "unshare", "nsenter", "ip"],
        clients::check,
    ),
    line(
        "faults",
        "a database that is locked, cut off, foreign, of a later version or without room, a plan \
         with a typo, a reader that goes, a terminal without UTF-8 or colours: a clear message, \
         nothing lost",
        &[],
        faults,
    ),
    line(
        "fuzzing",
        "fuzzing whatever reads what others wrote (plans, databases, workers, servers, tables, the \
         machine) for a minute each finds nothing",
        &["cargo-fuzz"],
        fuzzing,
    ),
    line(
        "planted",
        "an ordinary user plants plans with programs, ids that are paths, links, lock files that \
         are none, old and damaged runs, and calls every socket: no command of root's takes a \
         second longer, and nothing changes but root's own runs",
        &["root", "unshare", "python3"],
        planted,
    ),
    line(
        "strangers",
        "strangers that connect, send garbage or flood the data port during a trial change no byte \
         count, and the trial is invalid and says so",
        remote::NEEDS,
        remote::strangers,
    ),
];

/// The tests of each fault.
fn faults(bench: &Bench) -> Res {
    for module in ["database::", "storage::", "mistakes::", "terminal::", "faults::"] {
        tests(bench, &format!("--package iolens --test it {module}"))?;
    }
    tests(bench, "--package iolens --lib plan_file::").map(drop)
}

/// Targets, each with what its seeds are, from the root of the workspace.
const TARGETS: [(&str, &str); 14] = [
    ("plan", "plans"),
    ("arguments", "fuzz/seeds/arguments"),
    ("tables", "crates/audit/fixtures"),
    ("frames", "fuzz/seeds/frames"),
    ("replies", "fuzz/seeds/replies"),
    ("import", "fuzz/seeds/import"),
    ("host", "fuzz/seeds/host"),
    ("kernel", "fuzz/seeds/kernel"),
    ("stored", "fuzz/seeds/stored"),
    ("bootstrap", "fuzz/seeds/bootstrap"),
    ("lock", "fuzz/seeds/lock"),
    ("journal", "fuzz/seeds/journal"),
    // Both make their database themselves; the bytes say what is done to it.
    ("pages", ""),
    ("rows", ""),
];

/// Bytes that somebody else wrote, for a minute at each door (`fuzz/`). A single input that takes
/// long is a find.
fn fuzzing(bench: &Bench) -> Res {
    for (target, seeds) in TARGETS {
        let corpus = format!("fuzz/corpus/{target}");
        let made = fs::create_dir_all(crate::root().join(&corpus));
        made.map_err(|e| format!("cannot create {corpus}: {e}"))?;
        // The nightly cargo: the sanitizer's options are its alone.
        let job = format!(
            "rustup run nightly cargo fuzz run {target} {corpus} {seeds} -- -max_total_time=60 \
             -timeout=20 -print_final_stats=1"
        );
        let done = Job::of(&job).directory(&crate::root()).run()?;
        bench.judge(target, done.status.success(), found(&done));
    }
    Ok(())
}

/// How many inputs a target met, or what it found.
fn found(done: &Finished) -> String {
    if done.status.success() {
        return format!("nothing, {}", done.noted("stat::number_of_executed_units:"));
    }
    let parts = ["panicked at", "ERROR:", "error:", "fuzz/artifacts/"];
    parts.map(|part| done.noted(part)).join("\n").trim().to_owned()
}

/// What a stranger plants, all of it at once, and root's commands beside it. Mounts and sockets
/// are seen by nobody else, and end with the script.
fn planted(bench: &Bench) -> Res {
    // The stranger uses it too, and the build directory may be closed to him.
    let tool = bench.copy_tool("iolens")?;
    let apart = "unshare --mount --net --propagation private --kill-child --fork python3 -c";
    let job = Job::of(apart).arg(include_str!("hostile/planted.py"));
    let done = job.arg(&tool).arg(bench.path("")).minutes(5).run()?;
    let said = done.stdout();
    let (ok, others): (Vec<&str>, Vec<&str>) = said.lines().partition(|l| l.starts_with("ok "));
    others.iter().filter(|line| !line.starts_with("-- ")).for_each(|line| bench.note("-", line));
    bench.within("commands of root's that ended as they should", ok.len(), 1..);
    bench.judge("the stranger", done.status.success(), done.stderr());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::process::names;

    #[test]
    fn every_target_is_run_and_has_its_seeds() {
        let files = names(crate::root().join("fuzz/fuzz_targets"));
        let files: BTreeSet<&str> = files.iter().map(|name| name.trim_end_matches(".rs")).collect();
        assert_eq!(files, TARGETS.map(|(name, _)| name).into());
        let manifest = fs::read_to_string(crate::root().join("fuzz/Cargo.toml"))
            .expect("the workspace of the targets is there");
        for (name, seeds) in TARGETS {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            assert!(crate::root().join(seeds).is_dir(), "{name}");
        }
    }
}

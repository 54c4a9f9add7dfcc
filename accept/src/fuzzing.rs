//! Issue 8: bytes that somebody else wrote, for a minute at each door (`fuzz/`).

use super::process::{Finished, Job};
use super::{Bench, Judged, Outcome};

/// Targets, each with what its seeds are, from the root of the workspace.
const TARGETS: [(&str, Option<&str>); 14] = [
    ("plan", Some("plans")),
    ("arguments", Some("fuzz/seeds/arguments")),
    ("tables", Some("crates/audit/fixtures")),
    ("frames", Some("fuzz/seeds/frames")),
    ("replies", Some("fuzz/seeds/replies")),
    ("import", Some("fuzz/seeds/import")),
    ("host", Some("fuzz/seeds/host")),
    ("kernel", Some("fuzz/seeds/kernel")),
    ("stored", Some("fuzz/seeds/stored")),
    ("bootstrap", Some("fuzz/seeds/bootstrap")),
    ("lock", Some("fuzz/seeds/lock")),
    ("journal", Some("fuzz/seeds/journal")),
    // Both make their database themselves; the bytes say what is done to it.
    ("pages", None),
    ("rows", None),
];

/// How long a target runs, and how long a single input may take; a hang is a find.
const LIMITS: [&str; 3] = ["-max_total_time=60", "-timeout=20", "-print_final_stats=1"];

pub(crate) fn check(_: &Bench) -> Judged {
    if let Err(missing) = install() {
        return Ok(Outcome::Skip(missing));
    }
    let (mut evidence, mut passes) = (Vec::new(), true);
    for (target, seeds) in TARGETS {
        let corpus = format!("fuzz/corpus/{target}");
        let made = crate::root().join(&corpus);
        std::fs::create_dir_all(&made)
            .map_err(|e| format!("cannot create {}: {e}", made.display()))?;
        let folders = [Some(&*corpus), seeds];
        let words: Vec<&str> = ["fuzz", "run", target]
            .into_iter()
            .chain(folders.into_iter().flatten())
            .chain(["--"])
            .chain(LIMITS)
            .collect();
        let done = nightly(&words).limit_minutes(20).run()?;
        let words = format!("{target}: {}", outcome(&done));
        eprintln!("   {words}");
        passes &= done.status.success();
        evidence.push(words);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// The nightly cargo, in the root of the workspace: the sanitizer's options are its alone.
fn nightly(args: &[&str]) -> Job {
    let all: Vec<&str> = ["run", "nightly", "cargo"].iter().chain(args).copied().collect();
    Job::new("rustup").args(&all).directory(&crate::root())
}

/// A nightly compiler and cargo-fuzz, installed where they are missing.
fn install() -> Result<(), String> {
    let works = |job: Job| job.run().is_ok_and(|done| done.status.success());
    if !works(nightly(&["--version"])) {
        let args = ["toolchain", "install", "nightly", "--profile", "minimal"];
        Job::new("rustup").args(&args).limit_minutes(10).run()?.success()?;
    }
    if !works(nightly(&["fuzz", "--version"])) {
        Job::cargo(&["install", "--locked", "cargo-fuzz"]).limit_minutes(15).run()?.success()?;
    }
    Ok(())
}

/// How many inputs a target met, or what it found.
fn outcome(done: &Finished) -> String {
    let said = done.stderr();
    let number = |name: &str| said.lines().find_map(|line| Some(line.split_once(name)?.1.trim()));
    if done.status.success() {
        let inputs = number("stat::number_of_executed_units:").unwrap_or("?");
        return format!("nothing in {inputs} inputs");
    }
    let found = ["panicked at", "ERROR:", "error:"];
    let line = said.lines().find(|line| found.iter().any(|part| line.contains(part)));
    let input = said.lines().find(|line| line.contains("fuzz/artifacts/")).unwrap_or("");
    format!("{}\n{}", line.unwrap_or("it failed").trim(), input.trim())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TARGETS;

    #[test]
    fn every_target_is_run_and_has_its_seeds() {
        let folder = crate::root().join("fuzz/fuzz_targets");
        let files = std::fs::read_dir(folder).expect("the targets are there");
        let stem = |entry: std::fs::DirEntry| entry.path().file_stem().map(|stem| stem.to_owned());
        let files: BTreeSet<_> = files.flatten().filter_map(stem).collect();
        let listed: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).into()).collect();
        assert_eq!(listed, files);
        let manifest = std::fs::read_to_string(crate::root().join("fuzz/Cargo.toml"))
            .expect("the workspace of the targets is there");
        for (name, seeds) in TARGETS {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            assert!(seeds.is_none_or(|seeds| crate::root().join(seeds).is_dir()), "{name}");
        }
    }
}

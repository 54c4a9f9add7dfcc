//! What goes wrong and who means harm: faults, kills, strangers, planted files, fuzzing.

mod clients;
mod kill;

use crate::prelude::*;
use crate::process::Finished;
use crate::remote;

pub const FUNCTIONS: Functions = &[
    ("kill", |bench| kill::check(bench, "loopback")),
    ("kill-veth", |bench| kill::check(bench, "veth")),
    ("clients", clients::check),
    ("fuzzing", fuzzing),
    ("planted", planted),
    ("strangers", remote::strangers),
];

/// Targets, each with what its seeds are, from the root of the workspace.
const TARGETS: [(&str, &str); 16] = [
    ("plan", "plans"),
    ("ab_plan", "fuzz/seeds/ab_plan"),
    ("loop_lines", "fuzz/seeds/loop_lines"),
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
        fs::create_dir_all(crate::root().join(&corpus))?;
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

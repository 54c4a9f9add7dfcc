//! Simulations: tests that are always run, here with the rates that they print.

use super::process::Job;
use super::{Judged, Outcome};

/// Runs the tests of a crate whose names have this in them; they must pass, and print as many
/// rates of each kind as are named.
pub(super) fn rates(package: &str, tests: &str, kinds: &[(&str, usize)]) -> Judged {
    /// What stands behind each number of a rate.
    const RATE: &str = " %";
    let args = ["test", "--package", package, "--lib", tests, "--", "--nocapture"];
    let done = Job::cargo(&args).limit_minutes(15).run()?.success()?;
    let text = done.stdout();
    let rates: Vec<&str> = text.lines().filter(|line| line.contains(RATE)).collect();
    let passed = text.lines().find(|line| line.starts_with("test result:")).unwrap_or("");
    let evidence = format!("{}\n{passed}", rates.join("\n"));
    let of = |kind: &str| rates.iter().filter(|rate| rate.contains(kind)).count();
    let is_whole = kinds.iter().all(|(kind, least)| of(kind) >= *least);
    Ok(if is_whole && passed.contains(" 0 failed") {
        Outcome::Pass(evidence)
    } else {
        Outcome::Fail(evidence)
    })
}

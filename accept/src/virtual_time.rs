//! The client's books in virtual time: the tests that are always run, here with what
//! they found.

use super::process::Job;
use super::{Bench, Judged, Outcome};

/// What the tests print in front of each of their figures.
const FIGURE: &str = "figure: ";

pub(crate) fn check(_: &Bench) -> Judged {
    let args = ["test", "--package", "iolens-engine", "--lib", "load::", "--", "--nocapture"];
    let done = Job::cargo(&args).limit_minutes(15).run()?.success()?;
    let text = done.stdout();
    // A test's name may stand in front of its first line.
    let figures: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once(FIGURE)?.1)).collect();
    let passed = text.lines().find(|line| line.starts_with("test result:")).unwrap_or("");
    let of = |what: &str| figures.iter().filter(|figure| figure.contains(what)).count();
    let evidence = format!("{}\n{passed}", figures.join("\n"));
    let is_whole = of("M/D/1") == 4 && of("Kolmogorov") == 4 && of("stall") == 2;
    Ok(if is_whole && passed.contains(" 0 failed") {
        Outcome::Pass(evidence)
    } else {
        Outcome::Fail(evidence)
    })
}

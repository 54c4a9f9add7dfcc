//! What it costs to build the tool and to start it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::process::{Finished, Job};
use super::{Bench, Judged, Outcome};

const BUILD_LIMIT: Duration = Duration::from_secs(4 * 60);
const DEPENDENCIES_LIMIT: Duration = Duration::from_secs(2 * 60);
const HELP_LIMIT: Duration = Duration::from_millis(50);
const HELP_RUNS: usize = 20;

/// A release build into an empty directory.
pub(crate) fn check_clean_build(bench: &Bench) -> Judged {
    let args = ["build", "--release", "-p", "iolens", "--message-format=json-render-diagnostics"];
    let target = bench.scratch.path().join("clean-build");
    let built = Job::cargo(&args).env("CARGO_TARGET_DIR", &target).limit_minutes(20).run()?;
    let built = built.success()?;
    let dependencies = dependencies_done(&built, &crate::root());
    let evidence = format!(
        "{:.0} s in all, the last dependency done after {:.0} s, on {} CPUs",
        built.elapsed.as_secs_f64(),
        dependencies.as_secs_f64(),
        std::thread::available_parallelism().map_or(0, usize::from),
    );
    let passes = built.elapsed < BUILD_LIMIT && dependencies < DEPENDENCIES_LIMIT;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// When the last package from outside of the workspace was compiled.
fn dependencies_done(built: &Finished, root: &Path) -> Duration {
    let is_dependency = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap_or(Value::Null);
        let manifest = Path::new(message["manifest_path"].as_str().unwrap_or("")).to_owned();
        message["reason"] == "compiler-artifact" && !manifest.starts_with(root)
    };
    let lines = built.stdout_lines().iter();
    lines.filter(|(_, line)| is_dependency(line)).map(|(at, _)| *at).max().unwrap_or_default()
}

/// `iolens --help`, from start to end.
pub(crate) fn check_help(bench: &Bench) -> Judged {
    let mut times = Vec::new();
    for _ in 0..HELP_RUNS {
        times.push(bench.iolens("help", &["--help"])?.run()?.success()?.elapsed);
    }
    times.sort();
    let median = (times[(HELP_RUNS - 1) / 2] + times[HELP_RUNS / 2]) / 2;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let evidence = format!(
        "median of {HELP_RUNS}: {:.1} ms, from {:.1} to {:.1} ms (to within 5 ms, the poll of its end)",
        milliseconds(median),
        milliseconds(times[0]),
        milliseconds(times[HELP_RUNS - 1]),
    );
    Ok(if median < HELP_LIMIT { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_what_lies_outside() {
        let script =
            r#"echo '{"reason":"compiler-artifact","manifest_path":"/r/serde/Cargo.toml"}'"#;
        let built = Job::new("sh").args(&["-c", script]).run().expect("it runs");
        assert!(dependencies_done(&built, Path::new("/w")) > Duration::ZERO);
        assert_eq!(dependencies_done(&built, Path::new("/r")), Duration::ZERO);
    }
}

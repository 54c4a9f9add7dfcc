//! What a user meets: the first run, pages, how long one waits, tests, building.

mod families;
mod speed;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::bench::read;
use crate::page;
use crate::pairs::Median;
use crate::prelude::*;
use crate::process::{Finished, Said};
use crate::query::ask;

pub const FUNCTIONS: Functions = &[
    ("first-run", first_run),
    ("tests", cargo_tests),
    ("clean-build", clean_build),
    ("help", help),
    ("families", families::check),
    ("speed", speed::check),
];

fn first_run(bench: &Bench) -> Res {
    // The promise is about the run; another line is about the build.
    let build = Job::cargo("build --release --bin iolens").success()?;
    bench.note("built before in seconds", build.seconds());
    let job = Job::cargo("run --release -- run net --quick").env("NO_COLOR", "1");
    let run = job.env("XDG_DATA_HOME", bench.path("")).success()?;
    bench.within("seconds", run.seconds(), ..=45.0);
    let stdout = run.stdout();
    let rows = stdout.lines().filter(|line| line.contains("send_staged")).count();
    let looks = stdout.lines().filter(|line| line.starts_with("quick look: ")).count();
    bench.same("quick looks", looks, 1);
    bench.within("lines with send_staged", rows, 1..);
    let page = stdout.split_whitespace().rfind(|word| word.ends_with(".html"));
    let page = page.ok_or("the output names no page")?.trim_start_matches("file://");
    let html = read(page.as_ref())?;
    bench.note("KiB of page", html.len() / 1024);
    bench.same("references", page::references(&html).len(), 0);
    let json = bench.last()?;
    bench.same("network", json.word("cells/0/topology"), "veth");
    for size in [1 << 10, 16 << 10, 256 << 10] {
        let filter = format!("classic_ranked({size})");
        ask(bench, [&json, &Value::Null], [&format!("ahead at {size} B"), &filter, "!= []"]);
    }
    Ok(())
}

fn cargo_tests(bench: &Bench) -> Res {
    for task in ["test", "test-unprivileged"] {
        let run = Job::cargo(format!("run --quiet --package xtask -- {task}")).success()?;
        let words = format!("{} passed in {:.0} s", passed(&run.stdout()), run.seconds());
        bench.judge(task, true, format!("{words}, {}", run.line(" skipped (")));
    }
    Ok(())
}

/// Tests that passed, over all binaries of libtest's output.
fn passed(output: &str) -> u64 {
    let counts = output.lines().filter_map(|line| {
        line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

/// A release build into an empty directory.
fn clean_build(bench: &Bench) -> Res {
    let build = "build --release -p iolens --message-format=json-render-diagnostics";
    let built = Job::cargo(build).env("CARGO_TARGET_DIR", bench.path("clean-build")).success()?;
    bench.note("CPUs", std::thread::available_parallelism().map_or(0, usize::from));
    bench.within("seconds", built.seconds(), ..240.0);
    let dependencies = dependencies_done(&built, &crate::root()).as_secs_f64();
    bench.within("seconds until the last dependency was done", dependencies, ..120.0);
    Ok(())
}

/// When the last package from outside of the workspace was compiled.
fn dependencies_done(built: &Finished, root: &Path) -> Duration {
    let is_dependency = |line: &&Said| {
        let message: Value = serde_json::from_str(&line.text).unwrap_or_default();
        message["reason"] == "compiler-artifact"
            && !Path::new(message.word("manifest_path")).starts_with(root)
    };
    let lines = built.said.iter().filter(is_dependency);
    lines.map(|line| line.after).max().unwrap_or_default()
}

/// `iolens --help`, from start to end.
fn help(bench: &Bench) -> Res {
    let time = |_| Ok(bench.run("--help")?.seconds() * 1e3);
    let times: Vec<f64> = (0..20).map(time).collect::<Res<_>>()?;
    bench.note("to within 5 ms, the poll of its end", format!("{times:.1?}"));
    bench.within("ms, median", Median::of(times).value, ..50.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_summed_over_binaries() {
        let output =
            "test result: ok. 22 passed; 0 failed\nx\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(passed(output), 25);
    }

    #[test]
    fn dependencies_are_what_lies_outside() {
        let script =
            r#"echo '{"reason":"compiler-artifact","manifest_path":"/r/serde/Cargo.toml"}'"#;
        let built = Job::shell(script).run().expect("it runs");
        assert!(dependencies_done(&built, Path::new("/w")) > Duration::ZERO);
        assert_eq!(dependencies_done(&built, Path::new("/r")), Duration::ZERO);
    }
}

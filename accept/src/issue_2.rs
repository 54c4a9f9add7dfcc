//! Issue 2: the first run of `net`, from command to page.

use std::fs;
use std::time::Duration;

use super::process::Job;
use super::{Bench, Judged, Line, Outcome, build_lines, iperf, kill, page, results};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 2,
        id: "a",
        promise: "`cargo run --release -- run net --quick` ends within 45 s in indicative \
                  sentences, a table and the path of a page without network references",
        check: check_quick_run,
    },
    Line {
        issue: 2,
        id: "b",
        promise: "`cargo test` passes as root and as an ordinary user, all skips expected",
        check: check_tests,
    },
    Line {
        issue: 2,
        id: "c",
        promise: "over 256 B, 4, 16, 64 KiB × 1 and 4 threads the A/A half-width is under 4 % in \
                  at least 6 of 8 cells within 15 s a cell, and no A/A arm is FASTER or SLOWER",
        check: check_noise_floor,
    },
    Line {
        issue: 2,
        id: "d",
        promise: "with reno, 64 KiB and one flow our goodput is at least 0.97 of iperf3's (median \
                  of paired ratios)",
        check: iperf::check,
    },
    Line {
        issue: 2,
        id: "e",
        promise: "ten SIGKILLs at random moments lose no committed trial and leave no process or \
                  file once the tool has started again",
        check: kill::check,
    },
    Line {
        issue: 2,
        id: "f1",
        promise: "our `send` is EQUIVALENT (δ = 3 %) to a bare loop of the same calls",
        check: check_bare_loop,
    },
    Line {
        issue: 2,
        id: "f2",
        promise: "a clean release build takes under 4 minutes, its dependencies under 2",
        check: build_lines::check_clean_build,
    },
    Line {
        issue: 2,
        id: "f3",
        promise: "`iolens --help` takes under 50 ms (median)",
        check: build_lines::check_help,
    },
];

const QUICK_LIMIT: Duration = Duration::from_secs(45);

fn check_quick_run(bench: &Bench) -> Judged {
    let home = bench.scratch.path().join("quick");
    fs::create_dir_all(&home).map_err(|e| format!("cannot create {}: {e}", home.display()))?;
    // The promise is about the run; line f2 is about the build.
    let build = ["build", "--release", "--bin", "iolens"];
    let built = Job::cargo(&build).limit_minutes(20).run()?.success()?.elapsed;
    let job = Job::cargo(&["run", "--release", "--", "run", "net", "--quick"]);
    let run =
        job.env("XDG_DATA_HOME", &home).env("NO_COLOR", "1").limit_minutes(5).run()?.success()?;
    let stdout = run.stdout();
    let looks = stdout.lines().filter(|line| line.starts_with("quick look: ")).count();
    let page = stdout.split_whitespace().rfind(|word| word.ends_with(".html"));
    let page = page.ok_or("the output names no page")?;
    let html = fs::read_to_string(page.trim_start_matches("file://"))
        .map_err(|e| format!("cannot read the page {page}: {e}"))?;
    let references = page::references(&html);
    let rows = stdout.lines().filter(|line| line.contains("send_staged")).count();
    let evidence = format!(
        "{:.1} s (built before in {:.0} s); {rows} lines with `send_staged`, a page of {} KiB with {} \
         references {}",
        run.elapsed.as_secs_f64(),
        built.as_secs_f64(),
        html.len() / 1024,
        references.len(),
        references.join(", "),
    );
    let passes = run.elapsed <= QUICK_LIMIT && looks == 1 && rows > 0 && references.is_empty();
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

fn check_tests(_: &Bench) -> Judged {
    if super::process::own_user()? != 0 {
        return Ok(Outcome::Skip("needs root to test as root and as somebody else".to_owned()));
    }
    let mut evidence = Vec::new();
    for task in ["test", "test-unprivileged"] {
        let args = ["run", "--quiet", "--package", "xtask", "--", task];
        let run = Job::cargo(&args).limit_minutes(20).run()?.success()?;
        let stdout = run.stdout();
        let (passed, skipped) = (passed(&stdout), last_line_with(&stdout, " skipped ("));
        let seconds = run.elapsed.as_secs_f64();
        evidence.push(format!("{task}: {passed} passed in {seconds:.0} s, {skipped}"));
    }
    Ok(Outcome::Pass(evidence.join("\n")))
}

/// Tests that passed, over all binaries of libtest's output.
fn passed(output: &str) -> u64 {
    let counts = output.lines().filter_map(|line| {
        line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

fn last_line_with<'a>(output: &'a str, part: &str) -> &'a str {
    output.lines().rev().find(|line| line.contains(part)).unwrap_or("no count of skips")
}

const HALF_WIDTH_MAX: f64 = 0.04;
const NARROW_CELLS_MIN: usize = 6;
const CELLS: usize = 8;
const CELL_SECONDS: f64 = 15.0;

fn check_noise_floor(bench: &Bench) -> Judged {
    let args = "run net --sizes 256,4KiB,16KiB,64KiB --threads 1,4 \
                --methods send_staged,sendmsg_iov --budget 2m --json";
    let args: Vec<&str> = args.split_whitespace().collect();
    let answer = bench.iolens_json("noise", &args, 5)?;
    let mut arms = results::arms(&answer.json);
    arms.retain(|arm| arm.role == "self_check");
    let seconds = answer.finished.elapsed.as_secs_f64();
    let is_narrow = |width: Option<f64>| width.is_some_and(|width| width < HALF_WIDTH_MAX);
    let narrow = arms.iter().filter(|arm| is_narrow(arm.half_width)).count();
    let is_wrong = |verdict: &str| matches!(verdict, "FASTER" | "SLOWER");
    let wrong = arms.iter().filter(|arm| is_wrong(&arm.verdict)).count();
    let mut evidence = format!(
        "{narrow} of {} cells under 4 %, {wrong} A/A arms FASTER or SLOWER, {seconds:.0} s",
        arms.len()
    );
    for arm in &arms {
        let width = arm.half_width.map_or("none".to_owned(), |w| format!("±{:.1} %", 100.0 * w));
        evidence += &format!("\n{}: {width}, {}", arm.cell, arm.verdict);
    }
    let in_time = seconds <= CELL_SECONDS * CELLS as f64;
    let passes = arms.len() == CELLS && narrow >= NARROW_CELLS_MIN && wrong == 0 && in_time;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

fn check_bare_loop(bench: &Bench) -> Judged {
    let args = "run net --methods send,bare_send --baseline send --sizes 1,4KiB,64KiB \
                --threads 1 --threshold 3% --precision 1% --budget 5m --json";
    let args: Vec<&str> = args.split_whitespace().collect();
    let answer = bench.iolens_json("bare", &args, 10)?;
    let mut arms = results::arms(&answer.json);
    arms.retain(|arm| arm.primitive == "bare_send");
    let equivalent = arms.iter().filter(|arm| arm.verdict == "EQUIVALENT").count();
    let mut evidence = format!("{equivalent} of {} cells EQUIVALENT", arms.len());
    for arm in &arms {
        let width = arm.half_width.map_or("none".to_owned(), |w| format!("±{:.1} %", 100.0 * w));
        evidence += &format!("\n{}: {}, {width}", arm.cell, arm.verdict);
    }
    let passes = equivalent == arms.len() && arms.len() == 3;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_summed_over_binaries() {
        let output =
            "test result: ok. 22 passed; 0 failed\nx\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(passed(output), 25);
        assert_eq!(
            last_line_with("1 tests skipped (root)\nx", " skipped ("),
            "1 tests skipped (root)"
        );
    }
}

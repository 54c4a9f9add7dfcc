//! Issue 8: how long one waits for what is stored, and for the first line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::process::Job;
use super::{Bench, Judged, Outcome};

/// The shape of the trials: two arms and the hidden one, a slice each.
const FEW: &str = "run net --methods send,sendmsg_iov --sizes 1KiB,64KiB --threads 1 \
                   --network loopback --sequential-messages 2000 --passes 2 --progress none";

/// An ordinary run, to be shown.
const ORDINARY: &str = "run net --quick --network loopback --progress none";

const TRIALS: &str = "100000";

const REPORT_LIMIT: Duration = Duration::from_secs(2);

const REPORT_MIB_MAX: f64 = 200.0;

/// A wait that is not felt.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The fastest of so many: on a shared machine any one may be held up.
const TIMES: usize = 5;

/// The same of what takes seconds: such a machine has slow ones of these, several in a row.
const REPORT_TIMES: usize = 20;

pub(crate) fn check(bench: &Bench) -> Judged {
    let home = bench.home("speed")?;
    let many = many_trials(bench, &home)?;
    let page = home.join("page.html").display().to_string();
    let report = ["report", "last", "--db", &many, "-o", &page, "--overwrite"];
    let (elapsed, mib) = fastest(bench, &report, REPORT_TIMES)?;
    let size = fs::metadata(&page).map_or(0, |page| page.len());
    let mut parts = vec![(
        elapsed < REPORT_LIMIT && mib < REPORT_MIB_MAX && size > 0,
        format!("report of {TRIALS} trials: {elapsed:.2?}, {mib:.0} MiB, page of {size} bytes"),
    )];
    let ordinary: Vec<&str> = ORDINARY.split_whitespace().collect();
    bench.iolens("speed", &ordinary)?.limit_minutes(3).run()?.success()?;
    let (elapsed, mib) = fastest(bench, &["show", "last"], TIMES)?;
    let words = format!("show last: {elapsed:.1?}, {mib:.0} MiB");
    parts.push((elapsed < AT_ONCE, words));
    for line in ["run net --quick --network loopback", "run net --quick --dry-run", "runs"] {
        let elapsed = first_line(bench, line)?;
        parts.push((elapsed < AT_ONCE, format!("first line of `{line}`: {elapsed:.1?}")));
    }
    parts.iter().for_each(|(_, words)| eprintln!("   {words}"));
    let passes = parts.iter().all(|(is_good, _)| *is_good);
    let evidence: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// A database with very many trials, made of a few that were measured.
fn many_trials(bench: &Bench, home: &Path) -> Result<String, String> {
    let few = home.join("few.db").display().to_string();
    let many = home.join("many.db").display().to_string();
    let args: Vec<&str> = FEW.split_whitespace().chain(["--db", &few]).collect();
    bench.iolens("speed", &args)?.limit_minutes(3).run()?.success()?;
    let multiply = ["run", "--release", "--package", "iolens-store", "--example", "multiply", "--"];
    let args: Vec<&str> = multiply.into_iter().chain([&*few, &*many, TRIALS]).collect();
    Job::cargo(&args).limit_minutes(15).run()?.success()?;
    Ok(many)
}

/// The shortest time of a command and the most memory it had.
fn fastest(bench: &Bench, args: &[&str], times: usize) -> Result<(Duration, f64), String> {
    super::process::need("time", "time")?;
    let (mut least, mut most_kib) = (Duration::MAX, 0.0_f64);
    for _ in 0..times {
        let tool = bench.tool.display().to_string();
        let words: Vec<&str> = ["-f", "peak %M", &*tool].iter().chain(args).copied().collect();
        let job = Job::new("time").args(&words).limit_minutes(3);
        let done = bench.at_home("speed", job)?.run()?.success()?;
        let said = done.stderr();
        let peak = said.lines().find_map(|line| line.strip_prefix("peak ")?.parse::<f64>().ok());
        most_kib = most_kib.max(peak.ok_or("`time` named no peak")?);
        least = least.min(done.elapsed);
    }
    Ok((least, most_kib / 1024.0))
}

/// How long it takes until a command has said anything, on either output.
fn first_line(bench: &Bench, line: &str) -> Result<Duration, String> {
    let args: Vec<&str> = line.split_whitespace().collect();
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let done = bench.iolens("speed", &args)?.limit_minutes(3).run()?.success()?;
        let firsts = [done.stdout_lines().first(), done.stderr_lines().first()];
        let first = firsts.into_iter().flatten().map(|(elapsed, _)| *elapsed).min();
        least = least.min(first.ok_or(format!("`iolens {line}` said nothing"))?);
    }
    Ok(least)
}

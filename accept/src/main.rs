//! `cargo xtask accept`: what an issue promises, as functions that measure it.
//!
//! A line passes, fails, or is skipped because something is missing; a skip
//! counts as a failure, since nothing was shown. The table goes to stdout and
//! to `accept-<issue>.md` in the build directory, with the numbers each line rests on.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program for people: it prints, waits for other programs and exits"
)]

mod agreement;
mod audit;
mod bare_loops;
mod block_sizes;
mod build_lines;
mod by_hand;
mod crowd;
mod doctor;
mod echo_rivals;
mod equal_time;
mod explain;
mod families;
mod file_rivals;
mod file_systems;
mod fresh_copies;
mod fuzzing;
mod groups;
mod handicap;
mod hostile;
mod hosts;
mod iperf;
mod issue_2;
mod issue_25;
mod issue_26;
mod issue_3;
mod issue_4;
mod issue_5;
mod issue_6;
mod issue_7;
mod issue_8;
mod issue_9;
mod kill;
mod launchers;
mod liburing;
mod mapped;
mod memory;
mod neighbours;
mod oracle;
mod overhead;
#[path = "../../crates/report/src/lint/references.rs"]
mod page;
mod paired;
mod process;
mod recompute;
mod repetitions;
mod results;
mod search;
mod server_faults;
mod server_limits;
mod server_runs;
mod serving;
mod simulated;
mod slow_link;
mod speed;
mod thread_cpu;
mod throttle;
mod top2;
mod tune;
mod tune_finals;
mod virtual_time;
mod wrk;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use process::{Finished, Job};

/// What became of a line, with its evidence.
enum Outcome {
    Pass(String),
    Fail(String),
    /// Not tried, and why.
    Skip(String),
}

/// `Err` ends a line early: something it needs did not work.
type Judged = Result<Outcome, String>;

/// One promise of an issue.
struct Line {
    issue: u32,
    /// Names the line within its issue.
    id: &'static str,
    /// The promise in words.
    promise: &'static str,
    check: fn(&Bench) -> Judged,
}

/// Every line there is, by issue.
fn all_lines() -> impl Iterator<Item = &'static Line> {
    let first = issue_2::LINES.iter().chain(issue_3::LINES).chain(issue_4::LINES);
    let later = issue_5::LINES.iter().chain(issue_6::LINES).chain(issue_7::LINES);
    let last = issue_8::LINES.iter().chain(issue_9::LINES);
    first.chain(later).chain(last).chain(issue_25::LINES).chain(issue_26::LINES)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("accept: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace; the variable lets tests run on a copy.
fn root() -> PathBuf {
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Runs the lines of an issue, one line, or all there are.
fn run(args: &[&str]) -> Result<(), String> {
    let (list, args): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| **arg == "--list");
    let (issue, id) = match args.as_slice() {
        [] => (None, None),
        [issue] => (Some(*issue), None),
        [issue, id] => (Some(*issue), Some(*id)),
        _ => return Err("usage: cargo xtask accept [ISSUE [LINE]] [--list]".to_owned()),
    };
    let is_meant = |line: &&Line| {
        issue.is_none_or(|issue| line.issue.to_string() == issue)
            && id.is_none_or(|id| line.id == id)
    };
    let lines: Vec<&Line> = all_lines().filter(is_meant).collect();
    if lines.is_empty() {
        return Err("no such line; `cargo xtask accept --list` names them".to_owned());
    }
    if !list.is_empty() {
        lines.iter().for_each(|line| println!("{} {}  {}", line.issue, line.id, line.promise));
        return Ok(());
    }
    let bench = Bench::new()?;
    let mut issues: Vec<u32> = lines.iter().map(|line| line.issue).collect();
    issues.dedup();
    let mut open = 0;
    for issue in issues {
        let lines: Vec<&Line> = lines.iter().filter(|line| line.issue == issue).copied().collect();
        let (table, not_passed) = judge(&bench, &lines);
        open += not_passed;
        print!("{table}");
        // One line alone does not replace the table of all.
        let name = id.map_or_else(|| format!("{issue}.md"), |id| format!("{issue}-{id}.md"));
        let path = bench.target.join(format!("accept-{name}"));
        fs::write(&path, table).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        eprintln!("written to {}", path.display());
    }
    if open == 0 { Ok(()) } else { Err(format!("{open} lines did not pass")) }
}

/// The table of some lines, and how many of them did not pass.
fn judge(bench: &Bench, lines: &[&Line]) -> (String, usize) {
    let mut table =
        String::from("| line | result | promise | evidence | s |\n|---|---|---|---|---|\n");
    let mut not_passed = 0;
    for line in lines {
        eprintln!("== {} {}: {}", line.issue, line.id, line.promise);
        let begin = Instant::now();
        let outcome = (line.check)(bench).unwrap_or_else(Outcome::Fail);
        let seconds = begin.elapsed().as_secs_f64();
        let (word, evidence) = match &outcome {
            Outcome::Pass(evidence) => ("pass", evidence),
            Outcome::Fail(evidence) => ("FAIL", evidence),
            Outcome::Skip(reason) => ("SKIP", reason),
        };
        eprintln!("   {word}: {evidence}");
        not_passed += usize::from(!matches!(outcome, Outcome::Pass(_)));
        let (promise, evidence) = (cell(line.promise), cell(evidence));
        table += &format!("| {} | {word} | {promise} | {evidence} | {seconds:.0} |\n", line.id);
    }
    (table, not_passed)
}

/// Text as it may stand in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', "<br>")
}

/// What all lines share: the built tool and a directory for what they make.
pub(crate) struct Bench {
    /// Build directory, where tables go.
    target: PathBuf,
    /// The release build of the tool.
    tool: PathBuf,
    /// Everything lines make; removed at the end.
    scratch: tempfile::TempDir,
}

impl Bench {
    fn new() -> Result<Bench, String> {
        let args =
            ["build", "--release", "--bin", "iolens", "--message-format=json-render-diagnostics"];
        let built = Job::cargo(&args).limit_minutes(20).run()?.success()?;
        let tool = built.executable("iolens").ok_or("cargo named no executable `iolens`")?;
        let target = tool.parent().and_then(|release| release.parent());
        let target = target.ok_or("the tool stands in no build directory")?.to_owned();
        // Other users enter it.
        let scratch = tempfile::Builder::new()
            .prefix("iolens-accept-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .map_err(|e| format!("no temporary directory: {e}"))?;
        Ok(Bench { target, tool, scratch })
    }

    /// A command of the tool that keeps its files, results included, in the
    /// scratch directory `name`.
    fn iolens(&self, name: &str, args: &[&str]) -> Result<Job, String> {
        self.at_home(name, Job::new(&self.tool).args(args))
    }

    /// A command that runs the tool, and its files in the same place.
    fn at_home(&self, name: &str, job: Job) -> Result<Job, String> {
        let home = self.home(name)?;
        let tmp = home.join("tmp");
        fs::create_dir_all(&tmp).map_err(|e| format!("cannot create {}: {e}", tmp.display()))?;
        let job = job.directory(&home);
        Ok(job.env("XDG_DATA_HOME", &home).env("TMPDIR", &tmp).env("NO_COLOR", "1"))
    }

    /// A directory in the scratch directory.
    fn home(&self, name: &str) -> Result<PathBuf, String> {
        let home = self.scratch.path().join(name);
        fs::create_dir_all(&home).map_err(|e| format!("cannot create {}: {e}", home.display()))?;
        Ok(home)
    }

    /// The JSON that a command of the tool prints.
    fn iolens_json(&self, name: &str, args: &[&str], minutes: u64) -> Result<Answer, String> {
        let finished = self.iolens(name, args)?.limit_minutes(minutes).run()?.success()?;
        let json = serde_json::from_str(&finished.stdout())
            .map_err(|e| format!("`iolens {}` printed no JSON: {e}", args.join(" ")))?;
        Ok(Answer { json, finished })
    }
}

/// A command's JSON and what else is known of it.
struct Answer {
    json: serde_json::Value,
    finished: Finished,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_once() {
        let names: Vec<_> = all_lines().map(|line| (line.issue, line.id)).collect();
        assert!(names.is_sorted());
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_page_of_evidence_names_lines_that_exist() {
        let page = fs::read_to_string(crate::root().join("docs/evidence.md")).unwrap();
        let quoted = page.split('`').skip(1).step_by(2);
        let is_line = |word: &&str| {
            word.len() <= 4 && word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(' ')
        };
        let named: Vec<&str> = quoted.filter(is_line).collect();
        assert!(named.len() >= 20, "{named:?}");
        for name in named {
            let is_it = |line: &Line| format!("{} {}", line.issue, line.id) == name;
            assert!(all_lines().any(is_it), "no line `{name}`");
        }
    }

    /// What was promised of right numbers and of strangers is said where evidence is looked for.
    #[test]
    fn every_line_of_issues_25_and_26_has_a_row_in_the_page_of_evidence() {
        let page = fs::read_to_string(crate::root().join("docs/evidence.md")).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        let mut lines = 0;
        for line in all_lines().filter(|line| [25, 26].contains(&line.issue)) {
            let name = format!("`{} {}`", line.issue, line.id);
            assert!(rows.iter().any(|row| row.contains(&name)), "no row has {name}");
            lines += 1;
        }
        assert!(lines >= 8, "{lines}");
    }

    #[test]
    fn evidence_fits_a_table() {
        assert_eq!(cell("a | b\nc\n"), "a \\| b<br>c");
    }
}

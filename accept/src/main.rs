//! `cargo xtask accept`: what iolens promises, measured, by subject.
//!
//! A line passes, fails, or is skipped because something is missing; a skip
//! counts as a failure, since nothing was shown. The table goes to stdout and
//! to `accept-SUBJECT.md` in the build directory, with the numbers each line rests on.

#![forbid(unsafe_code)]
#![expect(unreachable_pub, reason = "nothing of a program can be reached from outside")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program for people: it prints, waits for other programs and exits"
)]

mod bench;
mod check;
mod files;
mod hostile;
mod json;
mod network;
#[path = "../../crates/report/src/lint/references.rs"]
mod page;
mod pairs;
mod peers;
mod process;
mod remote;
mod report;
mod servers;
mod truth;

/// What every line uses.
mod prelude {
    pub use crate::bench::Bench;
    pub use crate::check::{Check, Line, Res, line};
    pub use crate::json::Json;
    pub use crate::process::Job;
}

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use bench::Bench;
use check::{Check, Line, Res, State};

const HELP: &str = "\
cargo xtask accept [SUBJECT [LINE]]   measures what was promised: all, a subject, or one line
cargo xtask accept --list             subjects and lines with their promises
cargo xtask accept --peers            the programs compared with: their versions and sources";

const SUBJECTS: [(&str, &[Line]); 7] = [
    ("network", network::LINES),
    ("files", files::LINES),
    ("servers", servers::LINES),
    ("truth", truth::LINES),
    ("hostile", hostile::LINES),
    ("remote", remote::LINES),
    ("report", report::LINES),
];

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

fn run(args: &[&str]) -> Res {
    let (options, named): (Vec<&str>, Vec<&str>) = args.iter().partition(|a| a.starts_with('-'));
    let (subject, name) = match named.as_slice() {
        [] => (None, None),
        [subject] => (Some(*subject), None),
        [subject, name] => (Some(*subject), Some(*name)),
        _ => return Err(HELP.to_owned()),
    };
    let is_meant = |line: &&Line| name.is_none_or(|name| line.name == name);
    let meant = SUBJECTS.iter().filter(|(word, _)| subject.is_none_or(|subject| *word == subject));
    let mut meant: Vec<(&str, Vec<&Line>)> =
        meant.map(|(word, lines)| (*word, lines.iter().filter(is_meant).collect())).collect();
    meant.retain(|(_, lines)| !lines.is_empty());
    if meant.is_empty() {
        return Err("no such line; `cargo xtask accept --list` names them".to_owned());
    }
    match options.as_slice() {
        [] => measure(&meant, name),
        ["--list"] => {
            for (subject, lines) in &meant {
                lines.iter().for_each(|line| println!("{subject} {}  {}", line.name, line.promise));
            }
            Ok(())
        }
        ["--peers"] => {
            let directory = tempfile::tempdir().map_err(|e| format!("no directory: {e}"))?;
            println!("{}", peers::listed(directory.path()));
            Ok(())
        }
        _ => Err(HELP.to_owned()),
    }
}

fn measure(meant: &[(&str, Vec<&Line>)], name: Option<&str>) -> Res {
    let (bench, _scratch) = Bench::new()?;
    let mut open = 0;
    for (subject, lines) in meant {
        let (table, not_passed) = judge(&bench, subject, lines)?;
        open += not_passed;
        print!("{table}");
        // One line alone does not replace the table of all.
        let name = name.map_or_else(String::new, |name| format!("-{name}"));
        let path = bench.target().join(format!("accept-{subject}{name}.md"));
        fs::write(&path, table).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        eprintln!("written to {}", path.display());
    }
    if open == 0 { Ok(()) } else { Err(format!("{open} lines did not pass")) }
}

/// The table of some lines, and how many of them did not pass.
fn judge(bench: &Bench, subject: &str, lines: &[&Line]) -> Res<(String, usize)> {
    let mut table =
        String::from("| line | result | promise | evidence | s |\n|---|---|---|---|---|\n");
    let mut not_passed = 0;
    for Line { name, promise, needs, check: measure } in lines {
        eprintln!("== {subject} {name}: {promise}");
        let (begin, mut check) = (Instant::now(), Check::default());
        let room = bench.room(&format!("{subject}-{name}"))?;
        match peers::provide(needs, &bench.peers) {
            Err(missing) => check.missing(missing),
            Ok(versions) => {
                if !versions.is_empty() {
                    check.note("with", versions);
                }
                if let Err(why) = measure(&room, &mut check) {
                    check.judge("ended early", false, why);
                }
            }
        }
        let word = match check.state() {
            State::Good => "pass",
            State::Bad => "FAIL",
            State::Note | State::Missing => "SKIP",
        };
        not_passed += usize::from(check.state() != State::Good);
        let (seconds, [promise, evidence]) =
            (begin.elapsed().as_secs(), [promise, check.evidence().as_str()].map(cell));
        eprintln!("   {word}");
        table += &format!("| {name} | {word} | {promise} | {evidence} | {seconds} |\n");
    }
    Ok((table, not_passed))
}

/// Text as it may stand in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was promised of right numbers and of strangers is said where evidence is looked for.
    const IN_EVIDENCE: [&str; 8] = [
        "hostile planted",
        "truth equal-time",
        "truth fresh-copies",
        "truth groups",
        "truth neighbours",
        "truth recompute",
        "truth thread-cpu",
        "truth tune-finals",
    ];

    fn names() -> Vec<String> {
        let of = |(subject, lines): &(&str, &[Line])| {
            lines.iter().map(|line| format!("{subject} {}", line.name)).collect::<Vec<_>>()
        };
        SUBJECTS.iter().flat_map(of).collect()
    }

    #[test]
    fn lines_are_named_once() {
        let mut names = names();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all >= 65, "{all}");
    }

    #[test]
    fn the_page_of_evidence_names_lines_that_exist_and_those_that_it_has_to() {
        let page = fs::read_to_string(root().join("docs/evidence.md")).unwrap();
        let is_line = |word: &&str| {
            let (subject, name) = word.split_once(' ').unwrap_or(("", ""));
            SUBJECTS.iter().any(|(word, _)| *word == subject) && !name.contains(' ')
        };
        let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_line).collect();
        assert!(quoted.len() >= 40, "{quoted:?}");
        let names = names();
        for line in quoted {
            assert!(names.iter().any(|name| name == line), "no line `{line}`");
        }
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        for line in IN_EVIDENCE {
            assert!(rows.iter().any(|row| row.contains(&format!("`{line}`"))), "no row has {line}");
        }
    }

    #[test]
    fn evidence_fits_a_table() {
        assert_eq!(cell("a | b\nc\n"), "a \\| b<br>c");
    }
}

//! `cargo xtask accept`: what iolens promises, measured, by subject.
//!
//! A line passes, fails, or is skipped because something is missing; a skip
//! counts as a failure, since nothing was shown. The table goes to stdout and
//! to `accept-SUBJECT-LINE.md` in the build directory, with the numbers each line rests on.

#![forbid(unsafe_code)]
#![expect(unreachable_pub, reason = "nothing of a program can be reached from outside")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program for people: it prints, waits for other programs and exits"
)]

mod ab;
mod bench;
mod check;
mod files;
mod hostile;
mod json;
mod lines;
mod network;
#[path = "../../crates/report/src/tests/lint/references.rs"]
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
    pub use std::time::Duration;

    pub use anyhow::{Context, bail, ensure};
    pub use fs_err as fs;
    pub use serde_json::{Value, json};

    pub use crate::bench::Bench;
    pub use crate::check::{Check, Res};
    pub use crate::json::{Json, ask, query};
    pub use crate::lines::Functions;
    pub use crate::process::{Job, names};
}

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use check::State;
use lines::Line;
use prelude::*;

const HELP: &str = "\
cargo xtask accept [SUBJECT [LINE]]   measures what was promised: all, a subject, or one line
cargo xtask accept --list             subjects and lines with their promises
cargo xtask accept --peers            the programs compared with: their versions and sources";

const SUBJECTS: [(&str, &str, Functions); 8] = [
    ("network", include_str!("../lines/network.toml"), network::FUNCTIONS),
    ("files", include_str!("../lines/files.toml"), files::FUNCTIONS),
    ("servers", include_str!("../lines/servers.toml"), servers::FUNCTIONS),
    ("truth", include_str!("../lines/truth.toml"), truth::FUNCTIONS),
    ("hostile", include_str!("../lines/hostile.toml"), hostile::FUNCTIONS),
    ("ab", include_str!("../lines/ab.toml"), ab::FUNCTIONS),
    ("remote", include_str!("../lines/remote.toml"), remote::FUNCTIONS),
    ("report", include_str!("../lines/report.toml"), report::FUNCTIONS),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("accept: {why:#}");
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
    // One line alone does not replace the table of all.
    let table = ["accept"].iter().chain(&named).copied().collect::<Vec<_>>().join("-");
    let is_meant = |line: &Line| {
        let own = [line.subject, &line.name];
        named.len() <= own.len() && named.iter().zip(own).all(|(named, own)| *named == own)
    };
    let lines: Vec<Line> = lines().into_iter().filter(is_meant).collect();
    if lines.is_empty() {
        bail!("no such line; `cargo xtask accept --list` names them");
    }
    match options.as_slice() {
        [] => measure(&lines, &table),
        ["--list"] => {
            lines.iter().for_each(|Line { subject, name, promise, .. }| {
                println!("{subject} {name}  {promise}");
            });
            Ok(())
        }
        ["--peers"] => {
            let directory = tempfile::tempdir()?;
            println!("{}", peers::listed(directory.path())?);
            Ok(())
        }
        _ => bail!(HELP),
    }
}

/// Every line there is.
fn lines() -> Vec<Line> {
    let of = |&(subject, text, functions): &(_, _, _)| lines::of(subject, text, functions);
    SUBJECTS.iter().flat_map(of).collect()
}

fn measure(lines: &[Line], name: &str) -> Res {
    let (bench, _scratch) = Bench::new()?;
    let mut table =
        String::from("| line | result | promise | evidence | s |\n|---|---|---|---|---|\n");
    let mut open = 0;
    for line in lines {
        let name = format!("{} {}", line.subject, line.name);
        eprintln!("== {name}: {}", line.promise);
        let (begin, check) = (Instant::now(), judge(&bench, &name, line));
        let word = match check.state() {
            State::Good => "pass",
            State::Bad => "FAIL",
            State::Note | State::Missing => "SKIP",
        };
        eprintln!("   {word}");
        open += usize::from(word != "pass");
        let seconds = begin.elapsed().as_secs().to_string();
        let cells = [&name, word, &line.promise, &check.evidence(), &seconds].map(cell);
        table += &format!("| {} |\n", cells.join(" | "));
    }
    print!("{table}");
    let path = bench::target().join(format!("{name}.md"));
    fs::write(&path, table)?;
    eprintln!("written to {}", path.display());
    ensure!(open == 0, "{open} lines did not pass");
    Ok(())
}

/// What a line finds, in a directory of its own.
fn judge(bench: &Bench, name: &str, line: &Line) -> Check {
    let check = Check::default();
    match peers::provide(&line.needs, &bench.peers) {
        Err(missing) => check.missing(format!("{missing:#}")),
        Ok(versions) => {
            check.note("with", versions);
            let room = bench.of_line(&check, &line.asks).room(&name.replace(' ', "-"));
            if let Err(why) = room.and_then(|room| line.check(&room)) {
                check.judge("ended early", false, format!("{why:#}"));
            }
        }
    }
    check
}

/// Text as it may stand in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was promised of right numbers and of strangers is said where evidence is looked for.
    const IN_EVIDENCE: [&str; 10] = [
        "ab no-op",
        "ab planted",
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
        lines().iter().map(|line| format!("{} {}", line.subject, line.name)).collect()
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
            SUBJECTS.iter().any(|(word, ..)| *word == subject) && !name.contains(' ')
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

//! A terminal: its width, its letters, what it knows of colours.

use std::process::Command;

use crate::harness::{Finished, Place, finished, list};
use crate::pty::Pty;
use crate::sample;

/// A place with one stored run.
fn place() -> Place {
    let place = Place::new();
    let mut store = place.with_runs(&[sample::header("ab000001")]);
    for pass in 2..=3 {
        store.append_trial("ab000001", &sample::trial(pass, 0)).unwrap();
    }
    place
}

/// What a terminal of 80 × 24 is sent by a command in this environment.
fn on_terminal(place: &Place, line: &str, environment: &[(&str, &str)]) -> String {
    let mut command = place.command(line);
    for name in ["LC_ALL", "LC_CTYPE", "LANG", "TERM", "COLUMNS", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    // Where a build runs is no reason to colour what has no colours.
    command.env("CI", "true").envs(environment.iter().copied());
    let (mut pty, mut child) = Pty::start(command, false);
    pty.rest();
    assert!(child.wait().unwrap().code().is_some());
    pty.said
}

const UTF_8: (&str, &str) = ("LANG", "C.UTF-8");
const XTERM: (&str, &str) = ("TERM", "xterm-256color");

/// Every command whose output has tables, sentences or colours.
const LINES: [&str; 5] =
    ["show last", "show last --all", "runs", "list methods", "run net --sizes 0"];

#[test]
fn lines_fit_a_terminal_of_80_columns() {
    let place = place();
    for line in ["show last", "show last --all", "show last --cell 1", "runs"] {
        let said = on_terminal(&place, line, &[UTF_8, XTERM, ("NO_COLOR", "1")]);
        let longest = said.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.trim_end().chars().count() <= 80, "{line}: {longest}");
    }
}

#[test]
fn a_terminal_without_utf_8_is_sent_ascii() {
    let place = place();
    assert!(!place.run("show last").stdout.is_ascii(), "a pipe is sent UTF-8");
    for locale in [&[("LANG", "C")][..], &[], &[UTF_8, ("LC_ALL", "POSIX")]] {
        for line in LINES {
            let environment = [locale, &[XTERM]].concat();
            let said = on_terminal(&place, line, &environment);
            assert!(said.is_ascii(), "{locale:?}: {line}: {said}");
            let said = said.replace("CAN I TRUST IT?", "");
            // A mark stands by itself, a letter that has no other form within a word.
            let is_mark = |at: usize| {
                let around = [said[..at].chars().next_back(), said[at + 1..].chars().next()];
                around[0].is_none_or(|c| c == ' ' || c == ']')
                    && around[1].is_none_or(char::is_whitespace)
            };
            assert!(
                said.match_indices('?').all(|(at, _)| is_mark(at)),
                "{locale:?}: {line}: {said}"
            );
        }
    }
    assert!(!on_terminal(&place, "show last", &[UTF_8, XTERM]).is_ascii());
}

#[test]
fn no_escape_sequence_is_sent_where_none_is_wanted() {
    let place = place();
    assert!(on_terminal(&place, "show last", &[UTF_8, XTERM]).contains('\x1b'));
    for refusal in [&[XTERM, ("NO_COLOR", "1")][..], &[("TERM", "dumb")], &[]] {
        for line in LINES {
            let environment = [refusal, &[UTF_8]].concat();
            let said = on_terminal(&place, line, &environment);
            assert!(!said.contains('\x1b'), "{refusal:?}: {line}: {said:?}");
        }
    }
}

const SMALL: &str = "run net --methods send --sizes 1KiB --threads 1 --network loopback --quick \
                     --passes 2";

#[test]
fn off_a_terminal_each_pass_has_a_line_and_each_trial_only_if_asked_for() {
    for (how, has_trials) in [("", false), ("--progress bar", false), ("--progress plain", true)] {
        let done = Place::new().run(&format!("{SMALL} {how}"));
        done.assert_ended();
        let heads = done.stderr.lines().filter(|line| line.starts_with("pass "));
        let heads: Vec<&str> = heads.filter_map(|line| line.split(" · ").next()).collect();
        assert_eq!(heads, ["pass 1 of 2", "pass 2 of 2"], "{how}: {}", done.stderr);
        done.says(" left · widest ").says(", noise ");
        let mut trials = done.stderr.lines().filter(|line| line.starts_with("committed: "));
        let is_sound = |line: &str| line.contains(": ok, ");
        match has_trials {
            true => assert!(trials.clone().count() >= 2, "{}", done.stderr),
            false => assert!(!trials.any(is_sound), "{how}: {}", done.stderr),
        }
    }
}

#[test]
fn a_dumb_terminal_is_sent_whole_lines_of_progress() {
    let place = Place::new();
    let said = on_terminal(&place, SMALL, &[("TERM", "dumb")]);
    assert!(said.is_ascii(), "{said}");
    assert!(said.contains("pass 2 of 2; ") && !said.contains('\x1b'), "{said}");
    assert!(!said.replace("\r\n", "\n").contains('\r'), "no line is drawn twice: {said:?}");
}

/// Runs a command whose stdout nobody reads any more.
fn unread(mut command: Command) -> Finished {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    finished(command.stdout(writer).output().unwrap())
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let place = Place::new();
    place.with_runs(&[sample::header("ab000001")]);
    for line in [
        "list methods",
        "list methods --json",
        "list metrics",
        "runs",
        "runs --json",
        "completions bash",
        "--help",
        "run --help",
        "--version",
        "run net --print-plan",
        "run net --dry-run --network loopback",
        "show last",
        "show last --json",
        "export last --format csv",
        "report last",
    ] {
        let expect = place.run(line).code;
        let done = unread(place.command(line));
        assert_eq!((done.code, &*done.stderr), (expect, ""), "{line}");
    }
}

#[test]
fn a_run_whose_answer_nobody_reads_is_stored() {
    const RUN: &str = "run net --methods send --sizes 1KiB --threads 1 --network loopback \
                       --quick --passes 1 --progress none";
    let place = Place::new();
    for line in [RUN.to_owned(), format!("{RUN} --json")] {
        let done = unread(place.command(&line)).ended(0);
        assert!(!done.stderr.contains("panicked") && !done.stderr.contains("roken pipe"));
    }
    let runs = place.json("runs --json");
    let ends: Vec<bool> = list(&runs).iter().map(|run| run["end"].is_null()).collect();
    assert_eq!(ends, [false, false]);
}

#[test]
fn neither_output_being_read_is_no_panic() {
    let place = Place::new();
    for (line, expect) in [("list methods", 0), ("show last", 4), ("run net --sizes 0", 2)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(line);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        assert_eq!(command.status().unwrap().code(), Some(expect), "{line}");
    }
}

//! `iolens` alone: a menu on a terminal, help anywhere else.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::{Finished, Place, finished};
use crate::skip;

/// The tool on a terminal of its own, by script(1), with these keys typed; null without it.
fn on_a_terminal(place: &Place, term: &str, keys: &str) -> Option<Finished> {
    let tool = place.command("");
    let program = tool.get_program().to_str().unwrap();
    let mut script = Command::new("script");
    script.args(["-qec", program, "/dev/null"]);
    for (name, value) in tool.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    script.env("TERM", term).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
    Some(finished(child.wait_with_output().unwrap()))
}

#[test]
fn without_a_terminal_it_is_help() {
    let done = Place::new().run("");
    assert_eq!(done.code, Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("Usage: iolens") && done.stderr.contains("Start with: "));
}

#[test]
fn a_plain_terminal_is_asked_line_by_line_and_shown_the_command() {
    let place = Place::new();
    // Messages, on loopback, quick, and no: seven keys and Enter.
    let Some(done) = on_a_terminal(&place, "dumb", "1\n2\n1\n2\n") else {
        return skip::note(
            "menu::a_plain_terminal_is_asked_line_by_line_and_shown_the_command",
            "needs script(1)",
        );
    };
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    let command = "iolens run net --topologies loopback --quick";
    assert!(done.stdout.contains(command), "{}", done.stdout);
    assert!(!done.stdout.contains('\u{1b}'), "it draws nothing: {}", done.stdout);
    assert!(!place.path("data").exists(), "nothing is measured");
}

#[test]
fn a_value_that_cannot_be_is_asked_for_again() {
    let place = Place::new();
    let Some(done) = on_a_terminal(&place, "dumb", "2\n12 parsecs\n12KiB\n40\n3\n\n2\n2\n") else {
        return skip::note("menu::a_value_that_cannot_be_is_asked_for_again", "needs script(1)");
    };
    assert!(done.stdout.contains("is not a size"), "{}", done.stdout);
    let command = "iolens ask --size 12KiB --connections 40 --fields 3 --mode stream --topology \
                   loopback";
    assert!(done.stdout.contains(command), "{}", done.stdout);
}

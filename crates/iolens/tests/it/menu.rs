//! `iolens` alone: a menu on a terminal, help anywhere else.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::LocalModes;

use crate::harness::{Finished, Place, finished};
use crate::pty::Pty;
use crate::skip;

/// The tool on a terminal of its own, by script(1), with these keys typed; null without it.
fn on_a_terminal(place: &Place, term: &str, keys: &str) -> Option<Finished> {
    let tool = place.command("");
    let program = tool.get_program().to_str().unwrap();
    let mut script = Command::new("script");
    script.args(["-qec", program, "/dev/null"]).env_remove("NO_COLOR");
    script.envs(tool.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("TERM", term).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    child.stdin.take().unwrap().write_all(keys.as_bytes()).unwrap();
    Some(finished(child.wait_with_output().unwrap()))
}

#[test]
fn without_a_terminal_it_is_help() {
    let done = Place::new().run("").ended(2);
    done.says("Usage: iolens").says("Start here:  iolens run net --quick");
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
    done.assert_code(0);
    let command = "iolens run net --network loopback --quick";
    done.prints(command);
    assert!(!done.stdout.contains('\u{1b}'), "it draws nothing: {}", done.stdout);
    assert!(!place.path("data").exists(), "nothing is measured");
}

#[test]
fn a_value_that_cannot_be_is_asked_for_again() {
    let place = Place::new();
    let Some(done) = on_a_terminal(&place, "dumb", "2\n12 parsecs\n12KiB\n40\n3\n\n2\n2\n") else {
        return skip::note("menu::a_value_that_cannot_be_is_asked_for_again", "needs script(1)");
    };
    done.prints("is not a size");
    let command = "iolens ask --size 12KiB --connections 40 --fields 3 --mode stream --network \
                   loopback";
    done.prints(command);
}

/// The menu on a terminal that can draw, waiting for its first answer.
fn drawn(place: &Place) -> (Pty, Child) {
    let mut command = place.command("");
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let (mut pty, child) = Pty::start(command, true);
    pty.until_asked(FIRST, 1);
    (pty, child)
}

/// Whether the terminal's settings are those before the menu.
fn is_as_it_was(pty: &Pty) -> bool {
    let shown = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    pty.settings().local_modes.contains(shown)
}

const FIRST: &str = "What do you want to know?";

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let place = Place::new();
        let (pty, mut child) = drawn(&place);
        let _held = pty.held_open();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
        assert!(is_as_it_was(&pty), "{signal:?}");
    }
}

#[test]
fn going_back_leaves_nothing_of_what_was_answered() {
    let place = Place::new();
    let (mut pty, mut child) = drawn(&place);
    let first = pty.screen();
    pty.press("1");
    pty.until_asked("Where?", 1);
    pty.press("\u{7f}");
    pty.until_asked(FIRST, 2);
    assert_eq!(pty.screen(), first);
    // To the command and back over it, and over values that were typed.
    pty.press("2");
    let typed = [
        ("How large", 1, "12 parsecs"),
        ("How large", 2, "12KiB"),
        ("How many connections", 1, ""),
    ];
    for (question, times, value) in typed.into_iter().chain([("How many separate", 1, "")]) {
        pty.until_asked(question, times);
        pty.press(&format!("{value}\r"));
    }
    pty.until_asked("One-way stream", 1);
    pty.press("1");
    pty.until_asked("Where?", 2);
    let before = pty.screen();
    pty.press("\r");
    pty.until_asked("Run it?", 1);
    pty.press("\u{7f}");
    pty.until_asked("Where?", 3);
    assert_eq!(pty.screen(), before);
    pty.press("q");
    pty.rest();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn esc_leaves_a_question_whose_answer_is_typed() {
    let place = Place::new();
    let (mut pty, mut child) = drawn(&place);
    let held = pty.held_open();
    pty.press("2");
    pty.until_asked("How large", 1);
    pty.press("12KiX\u{7f}B\r");
    pty.until_asked("How many connections", 1);
    assert!(!pty.said.contains("is not a size"), "the X was taken back: {:?}", pty.said);
    pty.press("7\u{1b}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(is_as_it_was(&pty));
    drop(held);
    assert!(!pty.rest().contains("^["), "{:?}", pty.said);
}

#[test]
fn a_signal_while_a_value_is_typed_puts_the_terminal_back() {
    let place = Place::new();
    let (mut pty, mut child) = drawn(&place);
    let _held = pty.held_open();
    pty.press("2");
    pty.until_asked("How large", 1);
    pty.press("12");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    assert!(is_as_it_was(&pty));
}

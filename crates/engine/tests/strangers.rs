//! Programs that are not our worker, started as one: each makes one failed
//! trial that says what is wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/support/small.rs"]
mod small;

use iolens_engine::trial::run;
use iolens_engine::worker::protocol::PROTOCOL_VERSION;
use iolens_model::outcome::Status;
use iolens_model::units::Nanos;
use iolens_programs::spawn::Launch;

fn reason(program: &str, arguments: &[&str]) -> String {
    let arguments = arguments.iter().map(|&a| a.to_owned()).collect();
    let outcome = run(
        &small::trial("send", Nanos::SECOND),
        &Launch { program: program.into(), arguments },
        None,
    );
    assert_eq!(outcome.status, Status::Failed);
    assert!(outcome.slices.is_empty());
    outcome.reason.unwrap()
}

#[test]
fn a_program_that_is_not_there() {
    let reason = reason("/nowhere/iolens", &[]);
    assert_eq!(reason, "cannot start /nowhere/iolens: ENOENT (no such file or directory)");
}

#[test]
fn a_worker_that_ends_at_once() {
    assert!(reason("/bin/sh", &["-c", "exit 3"]).contains("worker exited with status 3"));
}

#[test]
fn a_worker_of_another_protocol_is_refused() {
    let hello = r#"{"hello":{"protocol":99,"build":"0.0.9"}}"#;
    let script = format!(r"printf '\{:03o}\000\000\000{hello}'; cat >/dev/null", hello.len());
    let reason = reason("/bin/sh", &["-c", &script]);
    assert!(reason.contains("(build 0.0.9) speaks protocol 99, this iolens (build "), "{reason}");
    assert!(reason.contains(&format!(") speaks {PROTOCOL_VERSION}: use builds")), "{reason}");
}

#[test]
fn a_worker_that_speaks_nonsense() {
    let reason = reason("/bin/sh", &["-c", r"printf '\004\000\000\000what'; cat >/dev/null"]);
    assert!(reason.contains("sent what is not our protocol"), "{reason}");
}

#[test]
fn a_worker_that_says_nothing_after_hello() {
    let hello = format!(r#"{{"hello":{{"protocol":{PROTOCOL_VERSION},"build":"x"}}}}"#);
    let script = format!(r"printf '\{:03o}\000\000\000{hello}'; cat >/dev/null", hello.len());
    let reason = reason("/bin/sh", &["-c", &script]);
    assert!(reason.contains("did not end within its time limit"), "{reason}");
}

//! Programs that do what they should not: each is named, and leaves nothing running.

use iolens_ab::{AbExit, AbSetup, AbTrial, AbTurn, trial};
use iolens_model::ab::AbMode;
use iolens_model::reading::Status;
use iolens_programs::ProgramFault;

use crate::{GOOD, faults, layout, mark, nothing_is_left_of, script, setup};

/// A good program and another one, whose limits may be changed.
fn beside_good(text: &str, change: impl FnOnce(&mut AbSetup)) -> AbTrial {
    let mark = mark();
    let programs = vec![script("good", GOOD, &mark), script("bad", text, &mark)];
    let mut setup = setup(AbMode::Loop, programs);
    change(&mut setup);
    let mut layout = layout(&setup, 3);
    // However busy the machine is, the good one has the time.
    layout.programs[0].expected_ns = crate::LONG_NS;
    let done = trial(&setup, &layout, AbTurn::of(7), &|| false);
    nothing_is_left_of(&mark);
    done
}

/// The bad one fails with these words, and the good one and its copy go on to the end.
fn check(text: &str, change: impl FnOnce(&mut AbSetup), expect: &[&str]) -> AbTrial {
    let done = beside_good(text, change);
    let found = faults(&done);
    assert_eq!(found[..2], [None, None], "{found:?}");
    let why = found[2].clone().unwrap_or_else(|| panic!("`{text}` did not fail"));
    for words in expect {
        assert!(why.contains(words), "`{text}`: {why}");
    }
    let good = done.slices.iter().filter(|slice| slice.arm < 2).count();
    assert_eq!(good, 8, "{why}");
    let (status, reason) = done.status();
    assert_eq!((status, reason), (Status::Failed, Some(format!("`bad` {why}"))));
    done
}

/// For whom every limit is as it is.
fn usual(_: &mut AbSetup) {}

/// For one that is not to answer.
fn impatient(setup: &mut AbSetup) {
    setup.limits.slice_ns = 200_000_000;
}

#[test]
fn one_that_dies_in_its_set_up() {
    check("echo no data >&2; exit 3", usual, &["before `ready`", "status 3", "no data"]);
    check("kill -SEGV $$; exit 3", usual, &["before `ready`"]);
    check("echo ready; echo gone >&2; exit 4", usual, &["status 4", "gone"]);
}

#[test]
fn one_that_dies_in_a_slice() {
    let text = "echo ready; read n; echo ok; read n; echo ok; read n; \
                echo line one >&2; echo broken >&2; exit 5";
    check(text, usual, &["in slice 2 of 3 operations", "status 5", "line one\nbroken"]);
}

#[test]
fn one_that_hangs() {
    let text = "echo ready; read n; tail -f /dev/null";
    let expect = ["in slice 0", "did not answer within 200 ms", "printed nothing"];
    let done = check(text, impatient, &expect);
    assert!(done.arms[2].fault.as_ref().is_some_and(ProgramFault::ends_the_arm));
}

#[test]
fn one_that_prints_junk() {
    let text = "echo ready; read n; echo banana; tail -f /dev/null";
    check(text, impatient, &["slice 0", "`banana`"]);
    let text = "echo ready; read n; printf ok; tail -f /dev/null";
    check(text, impatient, &["slice 0", "`ok` and no newline"]);
    check("echo ready; read n; echo 50%ok; read n", usual, &["`50%ok`", "before its `ok`"]);
    check("echo ready; read n; echo ok ns=x; read n", usual, &["`ok ns=x`", "nanoseconds"]);
    let long = "echo ready; read n; head -c 5000 /dev/zero | tr '\\0' a; read n";
    check(long, usual, &["`aaaa", "1024 bytes"]);
    let much = "echo ready; read n; while :; do echo 123456789; done";
    check(much, usual, &["more than 64 KiB", "`123456789`"]);
    check("echo ready v=2; read n", usual, &["`ready v=2`", "v=1"]);
    check("echo error no such table; read n", usual, &["it says `error no such table`"]);
    check("echo ready; read n; echo error lost it; read n", usual, &["`error lost it`"]);
}

#[test]
fn one_that_never_says_ready() {
    let words = ["did not print `ready` within 300 ms", "`loading`", "working on it"];
    let text = "echo loading; echo working on it >&2; read n";
    // The others have no such limit: they are started by themselves.
    let mark = mark();
    let mut setup = setup(AbMode::Loop, vec![script("bad", text, &mark)]);
    setup.limits.start_ns = 300_000_000;
    let done = trial(&setup, &layout(&setup, 3), AbTurn::of(7), &|| false);
    let why = faults(&done)[0].clone().unwrap();
    assert!(words.iter().all(|words| why.contains(words)), "{why}");
    nothing_is_left_of(&mark);
}

#[test]
fn one_that_answers_twice_or_early() {
    check("echo ready; while read n; do echo ok; echo ok; done", usual, &["twice", "`ok`"]);
    check("echo ready; while read n; do printf 'ok\\nok\\n'; done", usual, &["twice", "`ok`"]);
    let late = "echo ready; read n; echo ok; echo done; while read n; do echo ok; done";
    check(late, usual, &["`done`", "before it was asked"]);
    check("printf 'ready\\nok\\n'; while read n; do echo ok; done", usual, &["`ok`", "asked"]);
    check("echo ok; read n", usual, &["`ok`", "before it was asked"]);
}

#[test]
fn one_that_closes_its_output() {
    let text = "echo ready; read n; exec >&-; tail -f /dev/null >&2";
    check(text, usual, &["in slice 0", "closed its output and goes on"]);
    let text = "echo ready; read n; echo ok; exec </dev/null; tail -f /dev/null";
    check(text, usual, &["closed its input and goes on"]);
}

#[test]
fn one_that_leaves_a_child() {
    let text = "sh -c 'while :; do tail -f /dev/null; done' $0 & \
                echo ready; while read n; do echo ok; done";
    let done = beside_good(text, usual);
    assert_eq!(faults(&done), [None, None, None]);
    let facts: Vec<_> = done.arm_facts.iter().map(|fact| (fact.arm, &*fact.name)).collect();
    assert_eq!(facts, [(2, "hidden copy"), (2, "children")]);
    assert_eq!(done.status(), (Status::Ok, None));
}

#[test]
fn one_that_ends_and_leaves_its_output_to_a_child() {
    let text = "tail -f /dev/null & echo ready; read n; exit 6";
    check(text, usual, &["slice 0", "status 6"]);
}

#[test]
fn one_that_ignores_the_end_of_its_input() {
    let text = "trap '' TERM; echo ready; while :; do read n && echo ok; done";
    let mark = mark();
    let mut setup = setup(AbMode::Loop, vec![script("bad", text, &mark)]);
    (setup.limits.end_ns, setup.limits.term_ns) = (400_000_000, 100_000_000);
    let done = trial(&setup, &layout(&setup, 3), AbTurn::of(7), &|| false);
    let why = faults(&done)[0].clone().unwrap();
    assert!(why.starts_with("did not end within 400 ms of the end of its input"), "{why}");
    nothing_is_left_of(&mark);
}

#[test]
fn one_that_ends_with_another_status() {
    let text = format!("{GOOD}; exit 9");
    check(&text, usual, &["must exit with status 0 at the end of its input", "status 9"]);
    let done = beside_good(&text, |setup| setup.exit = AbExit::Ignored);
    assert_eq!(faults(&done), [None, None, None]);
}

#[test]
fn one_that_is_not_there_any_more() {
    let mark = mark();
    let mut programs = vec![script("good", GOOD, &mark), script("bad", GOOD, &mark)];
    programs[1].file.path = "/no/such/file".to_owned();
    let setup = setup(AbMode::Loop, programs);
    let done = trial(&setup, &layout(&setup, 3), AbTurn::of(7), &|| false);
    let why = faults(&done)[2].clone().unwrap();
    assert!(why.contains("fresh copy of /no/such/file: ENOENT"), "{why}");
    assert_eq!(done.slices.len(), 8);
}

//! Trials of whole commands.

use std::io::Write;

use iolens_ab::calls_error::CallsError;
use iolens_ab::{AbError, AbExit, AbPlacement, AbTurn, calibrate, count_calls, trial};
use iolens_model::ab::AbMode;
use iolens_model::reading::Status;

use crate::{faults, layout, mark, nothing_is_left_of, script, setup, skip, words};

/// A file of so many lines, in which every seventh has an x.
fn lines(count: usize) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for at in 0..count {
        writeln!(file, "{}", if at % 7 == 0 { "an x" } else { "nothing" }).unwrap();
    }
    file.flush().unwrap();
    file
}

#[test]
fn output_is_kept_and_compared() {
    // To /dev/null grep(1) would stop at the first line.
    let file = lines(700);
    let path = file.path().to_str().unwrap();
    let programs = vec![
        words("a", &["grep", "-c", "x", path]),
        words("same", &["grep", "-c", "an x", path]),
        words("other", &["grep", "-c", "nothing", path]),
        words("count", &["sh", "-c", "echo 100"]),
    ];
    let setup = setup(AbMode::Command, programs);
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false);
    assert_eq!(faults(&done), vec![None; 5]);
    let sums: Vec<_> = done.arms.iter().map(|one| one.ab.output_sha256.clone().unwrap()).collect();
    let [a, copy, same, other, count] = &sums[..] else { panic!("{sums:?}") };
    assert!(a == copy && a == same && a == count, "{sums:?}");
    assert_ne!(a, other);
    assert_eq!(done.slices.len(), 4 * 5);
    for slice in &done.slices {
        assert!(slice.tx.messages == 1 && slice.tx.time_ns > 0);
        assert!(slice.tx.task_clock_ns.is_some() && slice.tx.minor_faults > Some(0));
        assert!(slice.tx.voluntary_switches.is_some());
    }
    assert_eq!(done.status(), (Status::Ok, None));
}

#[test]
fn a_trial_past_its_time_runs_each_command_once() {
    let setup = setup(AbMode::Command, vec![words("a", &["true"]), words("b", &["true"])]);
    let turn = AbTurn { deadline_ns: 0, ..AbTurn::of(4) };
    let done = trial(&setup, &layout(&setup, 1), turn, &|| false);
    assert_eq!((faults(&done), done.slices.len()), (vec![None; 3], 3));
}

#[test]
fn a_long_run_is_split_into_user_and_kernel_time() {
    let mark = mark();
    let kernel = "dd if=/dev/zero of=/dev/null bs=64k count=40000 2>/dev/null";
    let user = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let programs = [("kernel", kernel), ("user", user), ("short", "true")];
    let programs = programs.map(|(name, text)| script(name, text, &mark)).to_vec();
    let setup = setup(AbMode::Command, programs);
    let mut layout = layout(&setup, 1);
    layout.rounds = 1;
    let done = trial(&setup, &layout, AbTurn::of(4), &|| false);
    assert_eq!(faults(&done), vec![None; 4]);
    let [kernel, _, user, short] = &done.arms[..] else { panic!("{done:?}") };
    for (arm, is_kernel) in [(kernel, true), (user, false)] {
        // On a fast machine it may take less than ten ticks.
        let Some([user, kernel]) = arm.ab.ticks else { continue };
        assert_eq!(kernel > user, is_kernel, "{arm:?}");
    }
    assert_eq!(short.ab.ticks, None);
    nothing_is_left_of(&mark);
}

#[test]
fn input_comes_from_its_file_each_time() {
    let file = lines(70);
    let mut setup = setup(AbMode::Command, vec![words("a", &["grep", "-c", "x"])]);
    setup.input = Some(file.path().to_str().unwrap().to_owned());
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false);
    assert_eq!(faults(&done), vec![None; 2]);
    setup.input = None;
    // Nothing is found in nothing.
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false);
    let why = faults(&done)[0].clone().unwrap();
    assert!(why.contains("in run 0: it exited with status 1"), "{why}");
    setup.input = Some("/no/such/input".to_owned());
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false);
    let why = faults(&done)[0].clone().unwrap();
    assert!(why.contains("cannot open its input /no/such/input: ENOENT"), "{why}");
}

#[test]
fn a_command_that_fails_is_named_and_the_others_go_on() {
    let mark = mark();
    let bad = "sh -c 'tail -f /dev/null; exit' $0 & echo broken >&2; exit 3";
    let programs = vec![words("good", &["sh", "-c", ":"]), script("bad", bad, &mark)];
    let mut setup = setup(AbMode::Command, programs);
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false);
    let found = faults(&done);
    assert_eq!(found[..2], [None, None]);
    let why = found[2].clone().unwrap();
    assert!(why.contains("status 3") && why.contains("broken"), "{why}");
    assert!(why.contains("--ignore-exit"), "{why}");
    assert_eq!(done.slices.len(), 8);
    nothing_is_left_of(&mark);
    setup.exit = AbExit::Ignored;
    assert_eq!(faults(&trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false)), vec![None; 3]);
    nothing_is_left_of(&mark);
    // A signal is no status.
    setup.programs[1] = script("bad", "kill -9 $$", &mark);
    let why =
        faults(&trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false))[2].clone().unwrap();
    assert!(why.contains("killed by signal 9"), "{why}");
}

#[test]
fn a_command_that_does_not_end_is_killed() {
    let mark = mark();
    let programs = vec![
        words("good", &["sh", "-c", ":"]),
        script("bad", "while :; do tail -f /dev/null; done", &mark),
    ];
    let mut setup = setup(AbMode::Command, programs);
    setup.limits.slice_ns = 100_000_000;
    let mut layout = layout(&setup, 1);
    layout.programs[0].expected_ns = crate::LONG_NS;
    let done = trial(&setup, &layout, AbTurn::of(4), &|| false);
    let found = faults(&done);
    assert_eq!(found[..2], [None, None]);
    let why = found[2].clone().unwrap();
    assert!(why.contains("within 100 ms") && why.contains("--loop"), "{why}");
    nothing_is_left_of(&mark);
}

#[test]
fn what_is_too_short_is_refused() {
    let short = vec![words("short", &["true"])];
    // On a machine that is busy enough every run of it may take a millisecond.
    match calibrate(&setup(AbMode::Command, short), 1, &|| false) {
        Err(AbError::TooShort { name, .. }) => assert_eq!(name, "short"),
        Err(why) => panic!("{why}"),
        Ok(found) => assert!(found.programs[0].expected_ns >= 1_000_000, "{found:?}"),
    }
}

#[test]
fn a_command_is_known_before_its_trials() {
    let busy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo $i";
    let programs = vec![words("a", &["sh", "-c", busy]), words("b", &["sh", "-c", busy])];
    let setup = setup(AbMode::Command, programs);
    let found = calibrate(&setup, 1, &|| false).unwrap();
    assert!(found.programs.iter().all(|own| own.expected_ns > 1_000_000), "{found:?}");
    assert!(found.true_ns.is_some_and(|ns| ns > 0) && found.operations == 1, "{found:?}");
    assert!((1..=10).contains(&found.rounds), "{found:?}");
    assert_eq!(found.placement, AbPlacement::OneCpu);
}

#[test]
fn something_may_run_before_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("there");
    let path = place.to_str().unwrap();
    let takes = words("takes", &["rm", path]);
    let mut setup = setup(AbMode::Command, vec![takes]);
    setup.prepare = Some(["touch", path].map(str::to_owned).to_vec());
    let done = trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false);
    assert_eq!(faults(&done), vec![None; 2]);
    setup.prepare = Some(["sh", "-c", "echo no >&2; exit 2"].map(str::to_owned).to_vec());
    let why =
        faults(&trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false))[0].clone().unwrap();
    assert!(why.contains("--prepare `sh -c 'echo no >&2; exit 2'` exited with status 2"), "{why}");
    setup.prepare = Some(vec!["no-such-program".to_owned()]);
    let why =
        faults(&trial(&setup, &layout(&setup, 1), AbTurn::of(4), &|| false))[0].clone().unwrap();
    assert!(why.contains("there is no program `no-such-program`"), "{why}");
}

#[test]
fn calls_are_those_of_a_run_that_is_prepared_and_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("there");
    let path = place.to_str().unwrap();
    let mut setup = setup(AbMode::Command, vec![words("takes", &["rm", path])]);
    let fails = match count_calls(&setup, 0, 1, &|| false) {
        Err(why @ CallsError::Refused { .. }) => {
            let test = "commands::calls_are_those_of_a_run_that_is_prepared_and_succeeds";
            return skip::note(test, &why.to_string());
        }
        counted => counted.unwrap_err().to_string(),
    };
    let expect = "it ended in a run while its system calls were counted: exit status 1";
    assert_eq!(fails, expect);
    setup.exit = AbExit::Ignored;
    assert!(count_calls(&setup, 0, 1, &|| false).is_ok());
    setup.exit = AbExit::MustBeZero;
    setup.prepare = Some(["touch", path].map(str::to_owned).to_vec());
    for _ in 0..2 {
        count_calls(&setup, 0, 1, &|| false).unwrap();
        assert!(!place.exists());
    }
    setup.prepare = Some(vec!["false".to_owned()]);
    let why = count_calls(&setup, 0, 1, &|| false).unwrap_err().to_string();
    let expect = "cannot count its system calls: --prepare `false` exited with status 1";
    assert!(why.starts_with(expect), "{why}");
    // A signal is no status.
    (setup.prepare, setup.exit) = (None, AbExit::Ignored);
    setup.programs = vec![words("dies", &["sh", "-c", "kill -9 $$"])];
    let why = count_calls(&setup, 0, 1, &|| false).unwrap_err().to_string();
    assert!(why.ends_with("counted: signal 9"), "{why}");
}

#[test]
fn a_loop_program_is_not_taken_for_a_command() {
    let programs = vec![words("loop", &["sh", "-c", "echo ready unit=row; cat"])];
    let why = calibrate(&setup(AbMode::Command, programs), 1, &|| false).unwrap_err();
    assert!(matches!(why, AbError::SpeaksLoop { .. }), "{why}");
    let programs = vec![words("other", &["sh", "-c", "echo ready; echo steady; sleep 0.002"])];
    assert!(calibrate(&setup(AbMode::Command, programs), 1, &|| false).is_ok());
}

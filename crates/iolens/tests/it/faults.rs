//! What goes wrong while a run goes on: workers that die or hang, users who
//! interrupt or kill, a second run.

use crate::harness::{Place, Running, list, wait_until_gone};

/// Long enough that something can happen to it, with a trial of half a second.
const LONG: &str = "run net --methods send,sendmsg_iov --sizes 4KiB --threads 1 --network loopback \
     --passes 400 --progress plain";

fn trials(place: &Place) -> usize {
    let runs = place.json("runs --json");
    usize::try_from(runs[0]["trials"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_killed_worker_is_one_failed_trial() {
    let by_default = LONG.replace(" --progress plain", "");
    // What goes wrong is said in either case, and what goes well.
    for (which, line, sound) in [(0, LONG, ": ok,"), (1, &by_default, "pass ")] {
        let place = Place::new();
        let mut run = place.start(line);
        run.wait_for("pass 1");
        let failed = run.hit_until_it_fails("KILL", |run| run.workers()[which]);
        assert!(failed.starts_with("committed: pass "), "{failed}");
        assert!(failed.contains("was killed by signal 9"), "{failed}");
        run.wait_for(sound);
        run.interrupted();
        place.run("export last --format csv").prints(",failed,").prints(",ok,");
    }
}

#[test]
fn a_hung_worker_is_one_failed_trial() {
    let place = Place::new();
    let mut run = place.start(LONG);
    run.wait_for("committed: pass 1");
    let failed = run.hit_until_it_fails("STOP", Running::worker_at_work);
    // Stopped in a slice, or in the instant before the first one.
    let reasons = ["did not move within the time limit", "did not end within its time limit"];
    assert!(reasons.iter().any(|reason| failed.contains(reason)), "{failed}");
    run.wait_for(": ok,");
    run.interrupted();
}

#[test]
fn an_interrupted_run_answers_with_what_it_has() {
    let place = Place::new();
    let mut run = place.start(LONG);
    run.wait_for("committed: pass 3");
    run.interrupted().prints("Report ");
    assert_eq!(place.json("runs --json")[0]["end"]["stopped_by"], "interrupted");
}

#[test]
fn a_killed_run_loses_no_committed_trial_and_leaves_nothing() {
    let place = Place::new();
    let mut run = place.start(LONG);
    run.wait_for("committed: pass 2");
    let workers = run.workers();
    let last = run.wait_for("committed: pass 3");
    let later = run.workers();
    run.killed();
    assert!(trials(&place) >= 3, "{last}");
    wait_until_gone(&[workers, later].concat());
    let begin = std::time::Instant::now();
    // A worker that was just being started holds the lock until it becomes one, or dies.
    while place.path("iolens.lock").exists() {
        assert!(begin.elapsed().as_secs() < 60, "the next start sweeps");
        assert!(trials(&place) >= 3, "{last}");
    }
    place
        .run(
            "run net --methods send --sizes 1KiB --threads 1 --network loopback --quick --passes 1",
        )
        .ended(0);
    let runs = place.json("runs --json");
    assert_eq!((list(&runs).len(), runs[0]["end"].is_null()), (2, true));
}

#[test]
fn a_second_run_is_told_who_measures() {
    let place = Place::new();
    let mut first = place.start(LONG);
    first.wait_for("committed: pass 1");
    let second = place.run("run net --methods send --quick").ended(4);
    let holder = format!("pid {}", first.child.id());
    second.says(&holder).says("--wait");
    let mut third =
        place.start("run net --methods send --sizes 1KiB --threads 1 --network loopback --quick --passes 1 --wait");
    third.wait_for("waiting for another run");
    first.interrupted();
    third.finish().ended(0);
}

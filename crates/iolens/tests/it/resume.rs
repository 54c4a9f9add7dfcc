//! Going on with a run that was cut short: the same run, more passes.

use serde_json::Value;

use crate::harness::{Place, Running};

const LONG: &str = "run net --methods send,sendmsg_iov --baseline send --sizes 1KiB,4KiB \
                    --threads 1 --network loopback --rounds 5 --seed 7 --progress plain \
                    --passes 6 --threshold 50% --precision 0.1%";

fn only_run(place: &Place) -> Value {
    assert_eq!(place.runs(), 1);
    place.json("runs --json")[0].clone()
}

/// Every measured slice.
fn slices(place: &Place) -> Vec<[String; 4]> {
    place.rows("slices", ["pass", "message_bytes", "arm", "tx_messages"])
}

fn cut_short(place: &Place, how: &str) -> Running {
    let mut run = place.start(LONG);
    run.wait_for("committed: pass 3");
    run.signal(how);
    run
}

/// Resumes and looks at what came of it.
fn goes_on(place: &Place) {
    let before = only_run(place);
    assert!(before["trials"].as_u64().unwrap() >= 3);
    let resumed = place.run("resume last --progress plain").ended(0);
    resumed.says("continuing run");
    assert!(!resumed.stderr.contains("committed: pass 1,"), "{}", resumed.stderr);
    let after = only_run(place);
    assert_eq!(after["id"], before["id"]);
    assert_eq!(after["end"]["stopped_by"], "passes");
    assert!(after["trials"].as_u64() > before["trials"].as_u64());

    let slices = slices(place);
    assert_eq!(slices.iter().map(|slice| &*slice[0]).max(), Some("6"));
    // A slice of an arm is the same work in every pass, unless slices had drifted apart: then
    // it changes by a fifth at least. That of the baseline never does.
    for first in &slices {
        let same = slices.iter().filter(|slice| slice[1..3] == first[1..3]);
        let work: Vec<u64> = same.map(|slice| slice[3].parse().unwrap()).collect();
        let is_kept = |pair: &[u64]| {
            let change = pair[1] as f64 / pair[0] as f64;
            pair[0] == pair[1] || (first[2] != "send" && !(0.81..1.24).contains(&change))
        };
        assert!(work.windows(2).all(is_kept), "{first:?}: {work:?}");
    }
    // The contrasts rest on one trial of each of the six passes.
    let answer = place.json("show last --json").to_string();
    assert!(answer.contains("\"n\":6") && !answer.contains("\"n\":7"), "{answer}");
    place.fails("resume last", 2, "is complete (passes); there is nothing to resume");
}

#[test]
fn an_interrupted_run_goes_on() {
    let place = Place::new();
    let run = cut_short(&place, "INT");
    run.finish().ended(130);
    goes_on(&place);
}

#[test]
fn a_killed_run_goes_on() {
    let place = Place::new();
    let mut run = cut_short(&place, "KILL");
    run.child.wait().unwrap();
    assert!(only_run(&place)["end"].is_null());
    goes_on(&place);
}

#[test]
fn the_plan_of_a_stored_run_cannot_be_changed() {
    let place = Place::new();
    let run = cut_short(&place, "INT");
    run.finish().ended(130);
    let refused = place.run("resume last --sizes 4KiB").ended(2);
    assert!(
        refused
            .stderr
            .contains("resume has no --sizes: a run continues with the plan it began with"),
        "{}",
        refused.stderr
    );
    place.fails("resume last --budget 1us", 2, "shorter than one pass");
    place.run("resume ffffffffff").ended(2);
}

/// As by Ctrl-Z and fg: clocks run on, and the workers stand still.
#[test]
fn a_trial_in_which_it_was_stopped_is_refused_and_made_again() {
    let place = Place::new();
    let mut run = place.start(LONG);
    run.wait_for("committed: pass 1");
    run.worker_at_work();
    run.signal("STOP");
    run.signal("CONT");
    run.finish().ended(0);
    let arms = place.rows("arms", ["pass", "status", "reason"]);
    let stopped = |arm: &&[String; 3]| arm[1] == "invalid" && arm[2].contains("was stopped");
    let pass = arms.iter().find(stopped).map(|arm| arm[0].clone()).expect("one was refused");
    let again = arms.iter().filter(|arm| arm[0] == pass && arm[1] == "ok").count();
    assert!(again > 0, "pass {pass} has no other trial: {arms:?}");
}

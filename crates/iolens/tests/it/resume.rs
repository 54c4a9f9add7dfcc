//! Going on with a run that was cut short: the same run, more passes.

use serde_json::Value;

use crate::harness::{Place, Running};

const LONG: &str = "run net --methods send,sendmsg_iov --baseline send --sizes 1KiB,4KiB \
                    --threads 1 --network loopback --rounds 5 --seed 7 --progress plain \
                    --passes 6 --threshold 50% --precision 0.1%";

fn only_run(place: &Place) -> Value {
    let runs = place.json("runs --json");
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    runs[0].clone()
}

/// (pass, message_bytes, arm, messages of a slice) of every measured slice.
fn slices(place: &Place) -> Vec<(u32, String, String, u64)> {
    let csv = place.run("export last --format csv --rows slices").stdout;
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let columns = ["pass", "message_bytes", "arm", "tx_messages"].map(at);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [pass, size, arm, messages] = columns.map(|column| fields[column].to_owned());
        (pass.parse().unwrap(), size, arm, messages.parse().unwrap())
    };
    lines.map(row).collect()
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
    let resumed = place.run("resume last --progress plain");
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("going on with run"), "{}", resumed.stderr);
    assert!(!resumed.stderr.contains("committed: pass 1,"), "{}", resumed.stderr);
    let after = only_run(place);
    assert_eq!(after["id"], before["id"]);
    assert_eq!(after["end"]["stopped_by"], "passes");
    assert!(after["trials"].as_u64() > before["trials"].as_u64());

    let slices = slices(place);
    assert_eq!(slices.iter().map(|slice| slice.0).max(), Some(6));
    // A slice of an arm is the same work in every pass, unless slices had drifted apart: then
    // it changes by a fifth at least. That of the baseline never does.
    for first in &slices {
        let same =
            |slice: &&(u32, String, String, u64)| (&slice.1, &slice.2) == (&first.1, &first.2);
        let work: Vec<u64> = slices.iter().filter(same).map(|slice| slice.3).collect();
        let is_kept = |pair: &[u64]| {
            let change = pair[1] as f64 / pair[0] as f64;
            pair[0] == pair[1] || (first.2 != "send" && !(0.81..1.24).contains(&change))
        };
        assert!(work.windows(2).all(is_kept), "{first:?}: {work:?}");
    }
    // The contrasts rest on one trial of each of the six passes.
    let answer = place.json("show last --json").to_string();
    assert!(answer.contains("\"n\":6") && !answer.contains("\"n\":7"), "{answer}");
    let again = place.run("resume last");
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(
        again.stderr.contains("is complete (passes); there is nothing to resume"),
        "{}",
        again.stderr
    );
}

#[test]
fn an_interrupted_run_goes_on() {
    let place = Place::new();
    let run = cut_short(&place, "INT");
    assert_eq!(run.finish().code, Some(130));
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
    assert_eq!(run.finish().code, Some(130));
    let refused = place.run("resume last --sizes 4KiB");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("resume has no --sizes: a run continues with the plan it began with"),
        "{}",
        refused.stderr
    );
    let refused = place.run("resume last --budget 1us");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("shorter than one pass"), "{}", refused.stderr);
    assert_eq!(place.run("resume ffffffffff").code, Some(2));
}

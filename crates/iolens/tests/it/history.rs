//! `iolens history`, as a user meets it: short runs of shell loops beside a kept one.

use serde_json::Value;

use crate::ab::{LOOP, ab, program, with_programs};
use crate::harness::{Place, list};

/// A run of a second or so that tells once from thrice: the program does so many times its work.
fn measured(place: &Place, times: u32, name: &str, command: &str) {
    program(place, "loop", &LOOP.replace("n * $1", &format!("{times} * n * $1")));
    let flags = format!(
        "--loop --judge cpu --threshold 30% --budget 20s --no-calls --against v1 --names {name}"
    );
    let code = ab(place, &flags, &[command]).code;
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
}

fn of_runs(series: &Value, of: impl Fn(&Value) -> Value) -> Vec<Value> {
    list(&series["runs"]).iter().map(of).collect()
}

#[test]
fn the_run_that_became_slower_is_found_beside_a_kept_program() {
    let place = with_programs();
    place.refuses("history", 4, "there are no results yet");
    place.run("keep PLACE/loop --as v1").ended(0);
    // The only program of a run is itself whatever it is called.
    for (times, name) in [(1, "monday"), (1, "tuesday"), (3, "wednesday")] {
        measured(&place, times, name, "PLACE/loop 20");
    }
    place.refuses("history v2", 2, "no program is kept as v2: there is: v1");
    place.refuses("history --arm friday", 2, "monday, tuesday, wednesday");
    place.refuses("history --arm monday", 4, "1 run with a baseline");
    place.refuses("history --quantity time", 4, "3 runs that did not judge this");
    place.refuses("history --last 1", 2, "--last");
    measured(&place, 1, "other", "PLACE/loop 21");

    let result = place.json("history v1 --json");
    assert_eq!((&result["schema"], &result["claims"]), (&"iolens-ab-history/1".into(), &3.into()));
    let [series] = list(&result["series"]) else { panic!("{result}") };
    assert_eq!((&series["baseline"]["name"], &series["quantity"]), (&"v1".into(), &"cpu".into()));
    let names = of_runs(series, |run| run["arm"].clone());
    assert_eq!(names, ["monday", "tuesday", "wednesday"]);
    let same = of_runs(series, |run| run["step"]["same_file"].clone());
    assert_eq!(same, [Value::Null, true.into(), false.into()]);
    let last = &series["runs"][2]["step"];
    assert_eq!((&last["verdict"], &last["since"]), (&"SLOWER".into(), &series["runs"][1]["id"]));
    let change = last["change"].as_f64().unwrap();
    assert!((1.0..3.0).contains(&change), "{last}");
    assert_eq!(result["left_out"][0]["why"], "alone");

    let screen = place.run("history v1");
    screen.prints("wednesday became SLOWER by more than 30%");
    screen.prints("1 run with a baseline, arguments or settings of its own");
    let hash = &series["baseline"]["sha256"].as_str().unwrap()[..8];
    place.run(&format!("history {hash} --last 2")).ended(0).prints("1 older not shown");
    place.run("history --markdown=PLACE/history.md").ended(0).prints("Verdict");
    assert!(place.read("history.md").contains("| SLOWER |"));
    place.refuses("history --markdown=PLACE/history.md", 2, "exists");
}

#[test]
fn runs_that_follow_each_other_are_a_chain() {
    let place = with_programs();
    for (nth, times) in [(1, 1), (2, 3)] {
        let text = LOOP.replace("n * $1", &format!("{times} * n * $1")) + &format!("# {nth}\n");
        program(&place, &format!("loop{nth}"), &text);
    }
    let flags = "--loop --judge cpu --threshold 30% --budget 20s --no-calls --names base,head";
    let follow = |base: &str, head: &str| {
        let commands = [base, head].map(|name| format!("PLACE/{name} 20"));
        let code = ab(&place, flags, &[&commands[0], &commands[1]]).code;
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
    };
    follow("loop", "loop1");
    place.refuses("history --chain", 4, "no run has the program of an earlier one");
    follow("loop1", "loop2");
    let result = place.json("history --chain --json");
    let [series] = list(&result["series"]) else { panic!("{result}") };
    assert_eq!((&series["chain"], &result["claims"]), (&true.into(), &3.into()));
    let verdicts = of_runs(series, |run| run["step"]["verdict"].clone());
    assert_eq!(verdicts, ["EQUIVALENT", "SLOWER"]);
    place.run("history --chain").ended(0).prints("all steps together: +");
    place.refuses("history v1 --chain", 2, "cannot be used with");
}

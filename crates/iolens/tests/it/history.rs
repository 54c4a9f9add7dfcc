//! `iolens history`, as a user meets it: short runs of shell scripts beside a kept one, and stored
//! runs of other machines.

use iolens_model::ab::{AbArm, AbAxes, AbMode, AbProgramFacts, AbQuantity};
use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::external::External;
use iolens_model::host::{Fact, HostFacts};
use iolens_model::origin::HOST_NAME;
use iolens_model::outcome::{Counts, SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::{Axes, Plan};
use iolens_model::reading::Reading;
use iolens_model::run::RunHeader;
use iolens_model::trial::SliceKind;
use iolens_model::units::Nanos;
use iolens_store::Store;
use serde_json::Value;

use crate::ab::{LOOP, ab, program, with_programs};
use crate::harness::{Place, list};
use crate::sample;

/// A whole command, which has no slices that a busy machine could make longer.
const WORK: &str = "#!/bin/sh
i=$((TIMES * $1))
while [ $i -gt 0 ]; do i=$((i - 1)); done
";

/// A run of a second or so that tells once from thrice: the program does so many times its work.
fn measured(place: &Place, times: u32, name: &str, command: &str) {
    program(place, "work", &WORK.replace("TIMES", &times.to_string()));
    let flags =
        format!("--judge cpu --threshold 30% --budget 20s --no-calls --against v1 --names {name}");
    let code = ab(place, &flags, &[command]).code;
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
}

fn of_runs(series: &Value, of: impl Fn(&Value) -> Value) -> Vec<Value> {
    list(&series["runs"]).iter().map(of).collect()
}

#[test]
fn the_run_that_became_slower_is_found_beside_a_kept_program() {
    let place = Place::new();
    place.refuses("history", 4, "there are no results yet");
    program(&place, "work", &WORK.replace("TIMES", "1"));
    place.run("keep PLACE/work --as v1").ended(0);
    // The only program of a run is itself whatever it is called.
    for (times, name) in [(1, "monday"), (1, "tuesday"), (3, "wednesday")] {
        measured(&place, times, name, "PLACE/work 20000");
    }
    place.refuses("history v2", 2, "no program is kept as v2: kept: v1");
    place.refuses("history --arm friday", 2, "monday, tuesday, wednesday");
    place.refuses("history --arm monday", 4, "1 run with a baseline");
    place.refuses("history --quantity time", 4, "3 runs that did not judge this");
    place.refuses("history --last 1", 2, "--last");
    measured(&place, 1, "other", "PLACE/work 20001");

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

fn plan_of_programs() -> Plan {
    let program = |name: &str| External { name: name.to_owned(), argv: vec![format!("./{name}")] };
    Plan {
        axes: Axes::Ab(AbAxes {
            judged: vec![AbQuantity::Time],
            ..AbAxes::of(AbMode::Loop, vec![program("main"), program("pr")])
        }),
        primitives: vec!["main".to_owned(), "pr".to_owned()],
        baseline: "main".to_owned(),
        sizes: Vec::new(),
        threads: vec![1],
        ..sample::header("0000000a").plan
    }
}

/// A run of a machine: the day, and the digit of the hash of `pr`, whose baseline is one file in
/// all.
fn of_programs(id: &str, host: &str, day: u64, digit: &str) -> RunHeader {
    let facts = |digit: &str| AbProgramFacts {
        path: "/src/bench".to_owned(),
        sha256: digit.repeat(64),
        is_elf: false,
        links: Vec::new(),
    };
    let sample = sample::header(id);
    let name = Fact {
        group: HOST_NAME.0.to_owned(),
        name: HOST_NAME.1.to_owned(),
        value: Reading::Exact(host.to_owned()),
    };
    RunHeader {
        started_unix_ns: sample.started_unix_ns + day * 86_400_000_000_000,
        plan: plan_of_programs(),
        host: HostFacts { facts: vec![name], ..sample.host },
        programs: vec![facts("a"), facts(digit)],
        ..sample
    }
}

/// A trial in which an operation of `pr` takes so many ns, and one of `main` 26 140 ns.
fn trial_of_programs(plan: &Plan, pass: u32, pr_ns: u64) -> TrialOutcome {
    const ROUNDS: u32 = 5;
    let arms = [
        ("main", Role::Baseline, 26_140),
        ("main", Role::SelfCheck, 26_140),
        ("pr", Role::Compared, pr_ns),
        ("pr", Role::SelfCheck, pr_ns),
    ];
    let outcome = |(name, role, _): (&str, Role, u64)| {
        let arm = Arm { label: name.to_owned(), primitive: name.to_owned(), role };
        let ab = Some(Box::new(AbArm::default()));
        ArmOutcome { ab, ..ArmOutcome::of(arm, Status::Ok, None) }
    };
    let slice = |seq: u32| {
        let (round, arm) = (seq / 4, seq as usize % 4);
        // The machine wanders, and each process is a little off in each trial.
        let off = u64::from((pass + round) % 3 * 10 + (pass + seq) % 4);
        let took = Nanos(20 * arms[arm].2 * (1000 + off) / 1000);
        SliceOutcome {
            seq,
            round,
            kind: SliceKind::Measured,
            arm,
            all_active_ns: took.0,
            tx: Counts::of_process(20, took, Some(took), None, None),
            rx: None,
        }
    };
    TrialOutcome {
        cell: plan.cells().remove(0),
        arms: arms.map(outcome).into(),
        slices: (0..4 * ROUNDS).map(slice).collect(),
        ..sample::trial(pass, 0)
    }
}

/// Stores runs, each with what an operation of its `pr` takes, ns.
fn stored(place: &Place, file: &str, runs: &[(RunHeader, u64)]) {
    let mut store = Store::open(&place.path(file)).unwrap();
    for (header, pr_ns) in runs {
        store.begin_run(header).unwrap();
        for pass in 1..=12 {
            let trial = trial_of_programs(&header.plan, pass, *pr_ns);
            store.append_trial(&header.id, &trial).unwrap();
        }
        store.end_run(&header.id, &sample::end()).unwrap();
    }
}

#[test]
fn runs_of_another_machine_stand_beside_ones_own() {
    let place = Place::new();
    stored(&place, "data/iolens/iolens.db", &[(of_programs("aa000001", "alpha", 0, "b"), 26_140)]);
    let far = [
        (of_programs("bb000002", "beta", 1, "b"), 26_140),
        (of_programs("bb000003", "beta", 2, "c"), 28_230),
    ];
    stored(&place, "far.db", &far);
    place.refuses("history", 4, "1 run with a baseline");
    place.run("import PLACE/far.db").ended(0).prints("imported 2 runs");

    let result = place.json("history aaaaaaaa --json");
    let [series] = list(&result["series"]) else { panic!("{result}") };
    let told = |key: &'static str| of_runs(series, move |run| run[key].clone());
    assert_eq!(told("id"), ["aa000001", "bb000002", "bb000003"]);
    assert_eq!(told("host"), ["alpha", "beta", "beta"]);
    let verdicts = of_runs(series, |run| run["step"]["verdict"].clone());
    assert_eq!(verdicts, [Value::Null, "EQUIVALENT".into(), "SLOWER".into()], "{series}");
    assert_eq!(series["runs"][2]["step"]["since"], "bb000002");

    let screen = place.run("history");
    screen.prints("pr became SLOWER by more than 3%");
    screen.prints("these are runs of 2 machines (alpha and beta)");
    // What is there already is not imported twice.
    place.run("import PLACE/far.db").ended(0);
    assert_eq!(place.json("history --json")["series"], result["series"]);
}

//! A question about one message: answered from a run that is stored, or from a short one.

use iolens_harness::host::{Root, read};
use iolens_model::run::RunHeader;
use iolens_model::tuning::TuningAxes;
use rusqlite::Connection;

use crate::harness::{Place, list};
use crate::sample;

const ARMS: &str = "--methods send_staged,sendmsg_iov";

/// A place with one run of a message of 1 KiB in three fields, which can be believed: beside other
/// tests a run may not be, says so, and is measured again elsewhere.
fn with_a_run() -> Place {
    let run = format!(
        "run net --sizes 1KiB --fields 3 --threads 1 --network loopback --quick --passes 5 \
         --rounds 3 --progress none {ARMS}"
    );
    let stored = format!("ask --size 1KiB --fields 3 --network loopback {ARMS} --stored");
    for _ in 0..4 {
        let place = Place::new();
        place.run(&run).ended(0);
        let answer = place.run(&stored);
        if answer.code == Some(0) {
            return place;
        }
        answer.says("without usable numbers of it: ");
    }
    panic!("no run of four can be believed");
}

#[test]
fn a_stored_run_answers_about_its_very_message() {
    let place = with_a_run();
    let id = place.json("runs --json")[0]["id"].as_str().unwrap().to_owned();
    let question = format!("ask --size 1KiB --fields 3 --network loopback {ARMS}");
    let done = place.run(&question).ended(0);
    assert!(done.stdout.starts_with("ask · 1 KiB · 3 fields · 1 connection · "), "{}", done.stdout);
    done.prints(format!("from run {id} (quick look) of "));
    assert_eq!(place.runs(), 1, "nothing was measured");
    let named = place.json(&format!("{question} --run last --json"));
    let stored = place.json(&format!("{question} --stored --json"));
    assert_eq!((&stored["run"], &stored["stored"]), (&id.into(), &true.into()));
    assert_eq!((&stored["answer"], &stored["asked"]), (&named["answer"], &named["asked"]));
    assert_eq!(stored["asked"]["message_bytes"], 1024);
    assert!(stored["by_cpu"][1]["cpu_ratio"].is_number(), "{stored}");
}

#[test]
fn what_is_not_stored_is_refused_where_nothing_may_be_measured() {
    Place::new()
        .run("ask --size 1KiB --network loopback --stored")
        .ended(4)
        .says("no stored run answers about 1 KiB");
    let place = with_a_run();
    let asked = |line: &str| place.run(&format!("ask --network loopback {ARMS} {line}"));
    let check = |line: &str, code: i32, expect: &str| {
        asked(line).ended(code).says(expect);
    };
    let other = "1 run without this message, threads and topology";
    check("--size 1KiB --fields 3 --connections 2 --stored", 4, other);
    check("--size 2KiB --fields 3 --stored", 4, other);
    check("--size 2KiB --fields 3 --run last", 2, "it has:\n  1 KiB × 1 thread, loopback");
    check("--size 1KiB --connections 5000", 2, "a thread of its own at either end");
    check("--size 1KiB --run last --fresh", 2, "cannot be used with");
    assert_eq!(place.runs(), 1);
}

/// A run of this machine that is asked about a message of 64 B in eight fields, with one trial
/// that cannot be read.
#[test]
fn a_damaged_run_is_passed_over() {
    let place = Place::new();
    let known = sample::header("aa000001");
    let mut header = RunHeader { host: read(&Root::real()).unwrap(), ..known };
    header.plan.net_mut().unwrap().tuning = TuningAxes::default();
    drop(place.with_runs(&[header]));
    let question = format!("ask --size 64 --fields 8 --network loopback {ARMS} --stored");
    let unusable = "without usable numbers of it: aa000001";
    place.fails(&question, 4, unusable);
    let edited = Connection::open(place.path("data/iolens/iolens.db")).unwrap();
    assert_eq!(edited.execute("UPDATE trial SET trial_json = '{}'", []).unwrap(), 1);
    edited.close().unwrap();
    place.fails(&question, 4, unusable);
}

#[test]
fn a_named_run_answers_only_about_what_it_has() {
    let place = Place::new();
    drop(place.with_runs(&[sample::header("aa000001")]));
    let check = |flags: &str, expect: &str| {
        place.refuses(&format!("ask --size 64 --fields 8 --run last {flags}"), 2, expect);
    };
    check(
        "--network veth",
        "did not measure messages of 64 B in 8 fields (--mode stream --network",
    );
    check("--methods send_staged,send", "run aa000001 did not compare send; it has: send_staged,");
    check("--methods sendd", "unknown method `sendd`");
}

#[test]
fn a_short_run_measures_the_message_and_those_beside_it() {
    let place = Place::new();
    let question = format!("ask --size 4KiB --network loopback {ARMS} --budget 2s --progress none");
    let answer = place.json(&format!("{question} --json"));
    assert_eq!((&answer["stored"], &answer["indicative"]), (&false.into(), &true.into()));
    let beside = list(&answer["beside"]);
    let sizes: Vec<u64> = beside.iter().map(|b| b["message_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [1024, 16_384]);
    let run = answer["run"].as_str().unwrap();
    let runs = place.json("runs --json");
    assert_eq!((&runs[0]["id"], &runs[0]["cells"]), (&run.into(), &3.into()));
    // The next time it is there; so short a run may be one that cannot be believed, which is
    // said then.
    let again = place.run(&question.replace("--budget 2s", "--stored"));
    let said = match again.code {
        Some(0) => &again.stdout,
        _ => &again.stderr,
    };
    assert!(said.contains(run) && matches!(again.code, Some(0 | 4)), "{said}");
}

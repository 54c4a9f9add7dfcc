//! Names of runs, removing runs, giving room back: what a user sees of a
//! database, which here is written and not measured.

use std::fs::File;
use std::path::PathBuf;

use iolens_model::run::RunHeader;
use iolens_store::Store;

use crate::harness::{Place, list};
use crate::storage::in_tmpfs;
use crate::{sample, skip};

/// Three runs in the default place: two of one name, which hold trials, and one
/// that was killed before its first.
fn three_runs() -> (Place, PathBuf) {
    let place = Place::new();
    let path = place.path("data/iolens/iolens.db");
    let mut store = Store::open(&path).unwrap();
    for (id, name) in [("ab000001", Some("night")), ("ab000002", Some("night")), ("cd000003", None)]
    {
        let name = name.map(str::to_owned);
        store.begin_run(&RunHeader { name, ..sample::header(id) }).unwrap();
    }
    for id in ["ab000001", "ab000002"] {
        store.append_trial(id, &sample::trial(1, 0)).unwrap();
        store.append_search(id, &sample::phase()).unwrap();
        store.end_run(id, &sample::end()).unwrap();
    }
    (place, path)
}

fn ids(place: &Place) -> Vec<String> {
    let runs = place.json("runs --json");
    let id = |run: &serde_json::Value| run["id"].as_str().unwrap().to_owned();
    list(&runs).iter().map(id).collect()
}

/// Runs a line that must fail with `expect` and change nothing.
fn refused(place: &Place, line: &str, code: i32, expect: &str) {
    let before = ids(place);
    place.fails(line, code, expect);
    assert_eq!(ids(place), before, "{line}");
}

#[test]
fn a_name_stands_for_its_run_and_for_no_two() {
    let (place, _) = three_runs();
    refused(&place, "show night", 2, "`night` may be any of ab000001, ab000002");
    refused(&place, "rm night --yes", 2, "`night` may be any of ab000001, ab000002");
    refused(&place, "show nigh", 2, "no run `nigh`");
    place.run("rm ab000001 --yes").ended(0);
    assert_eq!(place.json("show night --json")["run"]["id"], "ab000002");
    let listed = place.run("runs").stdout;
    assert!(listed.lines().any(|l| l.contains("ab000002") && l.ends_with("night")), "{listed}");
    place.run("report night -o page.html --db none.db").ended(4);
    place.run("report night -o PLACE/page.html").ended(0);
    assert!(place.read("page.html").contains("<code>ab000002</code> · night"));
}

#[test]
fn names_that_could_not_be_used_are_refused() {
    for (name, why) in [
        ("last", "began last"),
        ("ab000001", "an id may begin so"),
        ("b", "an id may begin so"),
        ("x\u{7}", "cannot be seen"),
        ("", "1 to 60 characters"),
    ] {
        let place = Place::new();
        let done = place.command("run net --quick").arg(format!("--name={name}")).output().unwrap();
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{name}: {stderr}");
        assert!(stderr.contains(why), "{name}: {stderr}");
    }
    let place = Place::new();
    place.write("x.toml", "study = \"net\"\nname = \"last\"");
    place.fails("run PLACE/x.toml --dry-run", 2, "x.toml:2:8: name: `last` cannot name a run");
}

#[test]
fn runs_are_removed_with_their_pages_and_only_with_consent() {
    let (place, path) = three_runs();
    let page = PathBuf::from(place.run("report ab000001").stdout.trim());
    assert!(page.exists());
    refused(&place, "rm ab000001", 2, "with --yes");
    refused(&place, "rm ab000001 ff --yes", 2, "no run `ff`");
    refused(&place, "rm ab --yes", 2, "may be any of ab000001, ab000002");
    refused(&place, "rm", 2, "required");
    let done = place.run("rm ab000001 ab000001 cd --yes").ended(0);
    let expect = "removed ab000001 (night), cd000003: 1 trial, 2 slices, 1 phase, 1 page; ";
    assert!(done.stdout.starts_with(expect), "{}", done.stdout);
    done.says("iolens gc");
    assert_eq!(ids(&place), ["ab000002"]);
    assert!(!page.exists());
    let json = place.json("rm last --yes --json");
    assert_eq!((&json["removed"][0]["id"], &json["trials"]), (&"ab000002".into(), &1.into()));
    assert!(json["freed_bytes"].is_u64() && list(&json["pages"]).is_empty());
    place.fails("rm last --yes", 2, "there are no runs in");
    assert!(path.exists());
}

#[test]
fn nothing_is_removed_while_a_run_measures() {
    let (place, _) = three_runs();
    let lock = File::create(place.path("iolens.lock")).unwrap();
    lock.lock().unwrap();
    refused(&place, "rm cd --yes", 4, "another run is measuring here");
    refused(&place, "gc", 4, "wait for it with --wait");
    assert_eq!(place.json("gc --dry-run --json")["empty"][0]["id"], "cd000003");
    drop(lock);
    place.run("rm cd --yes").ended(0);
}

#[test]
fn room_is_given_back_and_old_runs_go_when_told() {
    let (place, _) = three_runs();
    let plan = place.run("gc --dry-run --keep 2 --older-than 30d").ended(0);
    assert!(plan.stdout.starts_with("would remove 1 run: ab000001 (night)\n"), "{}", plan.stdout);
    refused(&place, "gc --keep 2", 2, "with --yes");
    refused(&place, "gc --keep 0", 2, "--keep");
    refused(&place, "gc --older-than 30", 2, "is not an age");
    let first = place.json("gc --json");
    assert_eq!(first["empty"][0]["id"], "cd000003");
    assert_eq!((&first["outdated"], &first["after"]["runs"]), (&[(); 0].into(), &2.into()));
    assert_eq!(
        (&first["after"]["free_bytes"], &first["after"]["log_bytes"]),
        (&0.into(), &0.into())
    );
    let done = place.run("gc --older-than 1d --keep 1 --yes").ended(0);
    assert!(done.stdout.starts_with("removed 1 run: ab000001 (night)\n"), "{}", done.stdout);
    assert!(done.stdout.contains("before, ") && done.stdout.ends_with("after, 1 run\n"));
    assert_eq!(ids(&place), ["ab000002"]);
}

#[test]
fn what_is_no_database_of_ours_is_left_alone() {
    for line in ["rm last --yes", "gc", "gc --dry-run"] {
        let place = Place::new();
        place.fails(line, 4, "there are no results yet");
        place.write("notes.txt", "precious");
        place.run(&format!("{line} --db PLACE/notes.txt")).ended(4);
        assert_eq!(place.read("notes.txt"), "precious");
    }
}

#[test]
fn a_database_that_may_not_be_written_keeps_its_runs() {
    let (place, path) = three_runs();
    let script = format!(
        "cp {} $DB; mount -o remount,ro $DIR/small || {{ echo refused; exit; }}; \
         $TOOL rm last --yes --db $DB; echo code $?; $TOOL gc --db $DB; echo code $?; \
         $TOOL doctor --json --db $DB",
        path.display()
    );
    let test = "upkeep::a_database_that_may_not_be_written_keeps_its_runs";
    let Some(done) = in_tmpfs(test, &place, "64m", &script) else { return };
    if done.stdout.ends_with("refused\n") {
        return skip::note(test, "a user namespace may not make a tmpfs read-only here");
    }
    let doctor = done.stdout.strip_prefix("code 4\ncode 4\n").unwrap_or_default();
    let doctor: serde_json::Value = serde_json::from_str(doctor).unwrap_or_default();
    assert_eq!(doctor["stored"]["runs"], 3, "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stderr.matches("must be writable").count(), 2, "{}", done.stderr);
}

#[test]
fn the_doctor_counts_what_is_stored_and_leaves_no_trace() {
    let (place, path) = three_runs();
    let beside = || {
        let entries = path.parent().unwrap().read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let before = beside();
    let json = place.json("doctor --json");
    assert_eq!(json["stored"]["runs"], 3);
    assert_eq!(json["stored"]["file_bytes"], path.metadata().unwrap().len());
    assert!(place.run("doctor").stdout.contains("stored runs     3 in "));
    assert_eq!(beside(), before);
    std::fs::write(&path, "not a database").unwrap();
    place.run("doctor").ended(0).prints("✗ stored runs");
}

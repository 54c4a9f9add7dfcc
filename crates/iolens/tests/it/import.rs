//! Runs of other machines: imported with their labels, shown and reported with them.

use std::path::PathBuf;

use iolens_model::host::{Fact, HostFacts};
use iolens_model::origin::HOST_NAME;
use iolens_model::reading::Reading;
use iolens_model::run::RunHeader;

use crate::harness::{Place, entries, list};
use crate::sample;

/// Hosts, their CPU models and the ids of their runs.
const HOSTS: [(&str, &str, &str); 3] = [
    ("alpha", "Model A", "aa000001"),
    ("beta", "Model B", "bb000002"),
    ("gamma", "Model C", "cc000003"),
];

fn host(name: &str, model: &str) -> HostFacts {
    let fact = |group: &str, name: &str, value: &str| Fact {
        group: group.to_owned(),
        name: name.to_owned(),
        value: Reading::Exact(value.to_owned()),
    };
    let facts = vec![
        fact("cpu", "model", model),
        fact("kernel", "release", "6.18.0"),
        fact(HOST_NAME.0, HOST_NAME.1, name),
    ];
    HostFacts { facts, ..sample::header("0000000a").host }
}

/// A database of a host, with one run.
fn database(place: &Place, (name, model, id): (&str, &str, &str)) -> PathBuf {
    let header = RunHeader { host: host(name, model), ..sample::header(id) };
    let file = format!("{name}.db");
    let mut store = place.with_runs_in(&file, &[header]);
    for pass in 2..=3 {
        store.append_trial(id, &sample::trial(pass, 0)).unwrap();
    }
    place.path(&file)
}

/// A place with the databases of three hosts, all imported.
fn three_hosts() -> (Place, String) {
    let place = Place::new();
    let files: Vec<String> =
        HOSTS.iter().map(|&host| database(&place, host).display().to_string()).collect();
    let files = files.join(" ");
    place.run(&format!("import {files}")).ended(0).prints("imported 3 runs: ");
    (place, files)
}

/// Runs a line that must fail with this code and these words.
fn refused(place: &Place, line: &str, code: i32, parts: &[&str]) {
    let done = place.run(line).ended(code);
    let said = done.stdout + &done.stderr;
    for part in parts {
        assert!(said.contains(part), "{line}: no `{part}` in {said}");
    }
}

#[test]
fn databases_of_three_hosts_merge_and_the_report_keeps_each_rows_origin() {
    let (place, _) = three_hosts();
    let ids = HOSTS.map(|(.., id)| id).join(" ");
    place.run(&format!("report {ids} -o PLACE/all.html")).ended(0);
    let page = place.read("all.html");
    assert!(page.contains("3 runs of 3 hosts") && page.contains("not judged here"));
    let contrasts = &page[page.find("<h2 id=\"numbers\"").unwrap()..];
    let body = contrasts.split("</table>").next().unwrap().split("<tbody").nth(1).unwrap();
    let rows: Vec<&str> = body.split("<tr").skip(1).collect();
    assert!(rows.len() >= HOSTS.len(), "{body}");
    for row in &rows {
        let whose = HOSTS.iter().filter(|(host, _, id)| row.contains(host) && row.contains(id));
        assert_eq!(whose.count(), 1, "{row}");
    }
    for (host, model, id) in HOSTS {
        assert!(page.contains(&format!("{host} · run {id}")) && page.contains(model), "{host}");
        assert!(page.contains(&format!("{host}.db on 2")), "{host}: no file");
    }
    let csv = place.run(&format!("export {ids} --format csv --rows cells")).stdout;
    let (first, rows) = csv.split_once('\n').unwrap();
    assert!(first.ends_with(",host"), "{first}");
    for row in rows.lines() {
        let own = HOSTS.iter().find(|(.., id)| row.starts_with(id)).unwrap();
        assert!(row.ends_with(&format!(",{}", own.0)), "{row}");
    }
    let json = place.json(&format!("export {ids} --format json"));
    assert_eq!(json["runs"][1]["host"], "beta");
    assert_eq!(list(&json["arms"]).last().unwrap()["host"], "gamma");
}

#[test]
fn an_import_is_said_run_by_run_and_done_once() {
    let (place, files) = three_hosts();
    let again = place.json(&format!("import {files} --json"));
    assert_eq!((&again["imported"], &again["already_there"]), (&0.into(), &3.into()));
    assert_eq!(again["files"][0]["runs"][0]["fate"], "already_there");
    let listed = place.run("runs").stdout;
    for (host, _, id) in HOSTS {
        assert!(
            listed.lines().any(|l| l.trim_start().starts_with(&format!("{id}  {host} "))),
            "{listed}"
        );
        assert_eq!(place.json(&format!("show {id} --json"))["host"], host);
        place.run(&format!("show {id}")).prints(format!("Measured on {host} (imported from "));
    }
    assert_eq!(place.json("runs --json")[2]["origin"]["host"], "gamma");
    refused(&place, "show last", 2, &["all were imported"]);
    place.run("rm bb000002 --yes").ended(0);
    place.run(&format!("import {files} --dry-run")).prints("would import 1 run, 2 already there: ");
    assert_eq!(place.runs(), 2);
    assert!(place.run(&format!("import {files}")).stdout.contains("imported 1 run, 2 already"));
}

#[test]
fn a_dry_run_makes_no_database() {
    let place = Place::new();
    let file = database(&place, HOSTS[0]);
    place
        .run(&format!("import {} --dry-run", file.display()))
        .ended(0)
        .prints("would import 1 run: ");
    assert!(!place.path("data").exists());
}

#[test]
fn a_whole_run_goes_through_a_file_without_loss() {
    let (place, _) = three_hosts();
    let line = "export aa000001 --format json --rows all";
    let text = place.run(line).stdout;
    assert!(text.starts_with("{\"format\":\"iolens-run\",\"version\":2,"), "{text}");
    let file = place.path("moved.jsonl");
    place.write("moved.jsonl", &text);
    place.run("import PLACE/moved.jsonl --db PLACE/other.db").ended(0);
    assert_eq!(place.run(&format!("{line} --db PLACE/other.db")).stdout, text);
    assert_eq!(place.json("runs --json --db PLACE/other.db")[0]["host"], "alpha");
    refused(&place, "export aa000001 --format csv --rows all", 2, &["--format json"]);
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let line = format!("import {} --db {}", file.display(), place.path("new.db").display());
    refused(&place, &line, 4, &["moved.jsonl: line ", "nothing of it was imported"]);
    let both = place.run("export aa000001 bb000002 --format json --rows all").stdout;
    std::fs::write(&file, both).unwrap();
    assert!(place.run(&line).stdout.contains("imported 2 runs"));
}

#[test]
fn what_is_refused_is_named_and_others_go_on() {
    let (place, _) = three_hosts();
    let twin = Place::new();
    let file = database(&twin, ("alpha", "Another model", "dd000004"));
    let file = file.display();
    refused(&place, &format!("import {file}"), 4, &["refused", "CPU model: ", "--host NAME"]);
    let fresh = database(&twin, ("delta", "Model D", "ee000005"));
    let noise = twin.path("noise.bin");
    std::fs::write(&noise, [0xff, 0, 1]).unwrap();
    let line = format!("import {} {} {file}", noise.display(), fresh.display());
    refused(&place, &line, 4, &["noise.bin", "imported 1 run, 1 refused"]);
    place.run(&format!("import --host alpha-2 {file}")).ended(0);
    assert_eq!(place.json("show dd000004 --json")["run"]["origin"]["host"], "alpha-2");
    refused(&place, &format!("import --host {} {file}", "x".repeat(65)), 2, &["1 to 64"]);
    refused(&place, "import none.db", 4, &["none.db"]);
    let own = place.path("data/iolens/iolens.db");
    refused(&place, &format!("import {}", own.display()), 2, &["it is the database itself"]);
}

#[test]
fn nothing_is_measured_for_a_run_of_another_machine() {
    let (place, _) = three_hosts();
    for line in ["resume aa000001", "confirm aa000001", "explain aa000001"] {
        refused(&place, line, 2, &["aa000001", "it was measured on alpha and imported from "]);
    }
    refused(&place, "report aa000001 aa000001", 2, &["named twice"]);
    place.run("compare aa000001 bb000002").prints("A: aa000001 on alpha");
}

#[test]
fn an_import_waits_for_a_run_that_measures() {
    let place = Place::new();
    let file = database(&place, HOSTS[0]);
    let lock = std::fs::File::create(place.path("iolens.lock")).unwrap();
    lock.lock().unwrap();
    let line = format!("import {}", file.display());
    refused(&place, &line, 4, &["another run is measuring here", "wait for it with --wait"]);
    place.run(&format!("{line} --dry-run")).ended(0);
    drop(lock);
    place.run(&line).ended(0);
}

/// The format is part of what users rely on: its version stands in the documents.
#[test]
fn the_format_of_a_whole_run_is_documented_with_its_version() {
    let docs = include_str!("../../../../docs/export.md");
    let (format, version) = (iolens_store::FORMAT, iolens_store::FORMAT_VERSION);
    assert!(docs.contains(&format!("{{\"format\":\"{format}\",\"version\":{version},")));
}

/// An import that is killed leaves its copy, and the next one removes it.
#[test]
fn what_a_killed_import_left_goes_with_the_next_one() {
    let place = Place::new();
    let file = database(&place, HOSTS[0]);
    // A log without its index: the file is copied before it is read. The log is a hole that
    // takes a while to copy.
    let log = std::fs::File::create(format!("{}-wal", file.display())).unwrap();
    log.set_len(2 << 30).unwrap();
    let temporary = place.make_folder("temporary");
    let import = || {
        let mut command = place.command(&format!("import {}", file.display()));
        command.env("TMPDIR", &temporary);
        command
    };
    let left = || entries(&temporary);

    let mut killed = import().spawn().unwrap();
    while left() == 0 {
        assert!(killed.try_wait().unwrap().is_none(), "it ended before it copied anything");
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 1);

    log.set_len(32).unwrap();
    let done = import().output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(left(), 0);
}

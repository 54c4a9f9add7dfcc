//! `iolens audit` from outside: files, exit codes, what it prints.

use crate::harness::{Finished, Place};

/// A file of the fixtures of the crate that audits.
fn fixture(name: &str) -> String {
    format!("{}/../audit/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(line: &str) -> Finished {
    Place::new().run(line)
}

#[test]
fn impossible_rows_are_exit_code_1_and_possible_ones_are_0() {
    let planted = run(&format!("audit {}", fixture("planted.csv")));
    assert_eq!(planted.code, Some(1), "{}", planted.stderr);
    assert!(planted.stdout.contains("gate 1 (clock)"), "{}", planted.stdout);
    assert!(planted.stdout.contains("--clock-max"), "{}", planted.stdout);
    let sound = run(&format!("audit {}", fixture("perf_possible.txt")));
    assert_eq!(sound.code, Some(0), "{}", sound.stdout);
    let bounded = run(&format!("audit {} --clock-max 2GHz", fixture("perf_possible.txt")));
    assert_eq!(bounded.code, Some(1), "{}", bounded.stdout);
}

#[test]
fn several_files_are_one_json() {
    let place = Place::new();
    let files = ["perf_possible.txt", "planted_files.csv", "planted_server.csv"];
    let files: Vec<String> = files.iter().map(|name| fixture(name)).collect();
    let json = place.json(&format!("audit --json {}", files.join(" ")));
    let impossible: Vec<Option<u64>> =
        json["files"].as_array().unwrap().iter().map(|file| file["impossible"].as_u64()).collect();
    assert_eq!(impossible, [Some(0), Some(3), Some(1)]);
    assert_eq!(json["files"][1]["findings"][0]["severity"], "impossible");
    assert!(json["bounds"].as_array().is_some_and(|bounds| bounds.len() == 6));
}

#[test]
fn columns_can_be_named() {
    let place = Place::new();
    let file = place.path("net.csv");
    std::fs::write(&file, "Nachricht,Fluss,threads\n64,6000,1\n").unwrap();
    let audit = |options: &str| place.run(&format!("audit {} {options}", file.display()));
    let unknown = audit("");
    assert_eq!(unknown.code, Some(0), "{}", unknown.stderr);
    let words: Vec<&str> = unknown.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("1 not checked"), "{}", unknown.stdout);
    assert!(unknown.stdout.contains("Nachricht, Fluss (name not known)"), "{}", unknown.stdout);
    let named = audit("--map message_bytes=Nachricht --map throughput:MB/s=Fluss");
    assert_eq!(named.code, Some(1), "{}{}", named.stdout, named.stderr);
    assert!(named.stdout.contains("gate 3 (cost of a call)"), "{}", named.stdout);
    let nowhere = audit("--map threads=Faden");
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("no column `Faden`"), "{}", nowhere.stderr);
}

//! `iolens audit` from outside: files, exit codes, what it prints.

use crate::harness::{Finished, Place, list};

/// A file of the fixtures of the crate that audits.
fn fixture(name: &str) -> String {
    format!("{}/../audit/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(line: &str) -> Finished {
    Place::new().run(line)
}

#[test]
fn impossible_rows_are_exit_code_1_and_possible_ones_are_0() {
    run(&format!("audit {}", fixture("planted.csv")))
        .ended(1)
        .prints("gate 1 (clock)")
        .prints("--clock-max");
    run(&format!("audit {}", fixture("perf_possible.txt"))).ended(0);
    run(&format!("audit {} --clock-max 2GHz", fixture("perf_possible.txt"))).ended(1);
}

#[test]
fn several_files_are_one_json() {
    let place = Place::new();
    let files = ["perf_possible.txt", "planted_files.csv", "planted_server.csv"];
    let files: Vec<String> = files.iter().map(|name| fixture(name)).collect();
    let json = place.json(&format!("audit --json {}", files.join(" ")));
    let impossible: Vec<Option<u64>> =
        list(&json["files"]).iter().map(|file| file["impossible"].as_u64()).collect();
    assert_eq!(impossible, [Some(0), Some(2), Some(1)]);
    assert_eq!(json["files"][1]["findings"][0]["severity"], "impossible");
    assert!(json["bounds"].as_array().is_some_and(|bounds| bounds.len() == 6));
}

#[test]
fn columns_can_be_named() {
    let place = Place::new();
    place.write("net.csv", "Nachricht,Fluss,threads\n64,6000,1\n");
    let audit = |options: &str| place.run(&format!("audit PLACE/net.csv {options}"));
    let unknown = audit("").ended(0);
    let words: Vec<&str> = unknown.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("1 not checked"), "{}", unknown.stdout);
    unknown.prints("Nachricht, Fluss (name not known)");
    audit("--map message_bytes=Nachricht --map throughput:MB/s=Fluss")
        .ended(1)
        .prints("gate 3 (cost of a call)");
    audit("--map threads=Faden").ended(2).says("no column `Faden`");
}

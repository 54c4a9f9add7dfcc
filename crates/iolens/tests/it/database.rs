//! Databases that cannot be used: locked, cut off, of something else, of a later version.
//! Each command says what it tried, on what, what the system said and what to do.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::harness::{Place, finished};
use crate::sample;

/// Commands that need the database.
const COMMANDS: [&str; 9] = [
    "runs",
    "show last",
    "show last --json",
    "report last",
    "export last --format csv",
    "compare last last",
    "rm last --yes",
    "gc --yes",
    "run net --methods send --sizes 1KiB --network loopback --quick --progress none",
];

/// A database with one run.
fn database(place: &Place) {
    place.with_runs_in("x.db", &[sample::header("ab000001")]);
}

/// Every command refuses the database with exit code 4 and all of these parts, and leaves
/// it as it is.
fn check_refused(place: &Place, path: &Path, parts: &[&str]) {
    let before = fs::read(path).unwrap();
    for command in COMMANDS {
        let done = place.run(&format!("{command} --db {}", path.display())).ended(4);
        assert_eq!(done.stdout, "", "{command}");
        assert!(!done.stderr.contains("panicked"), "{command}: {}", done.stderr);
        assert!(done.stderr.starts_with("iolens: "), "{command}: {}", done.stderr);
        for part in parts.iter().chain(&[path.to_str().unwrap()]) {
            done.says(part);
        }
    }
    assert!(fs::read(path).unwrap() == before, "it was touched");
}

#[test]
fn a_file_of_a_later_version_is_refused_with_both_versions() {
    let (place, path) = with_database();
    // `user_version` stands at byte 60 of the file, big-endian.
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&4711_u32.to_be_bytes(), 60).unwrap();
    check_refused(&place, &path, &["schema version 4711", "up to ", "use the newer iolens"]);
}

#[test]
fn a_file_of_an_earlier_build_is_refused_with_what_to_do() {
    let (place, path) = with_database();
    // What marks a file as ours stands at byte 68.
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"ioLn", 68).unwrap();
    file.write_all_at(&17_u32.to_be_bytes(), 60).unwrap();
    let parts = ["an earlier build of iolens (schema 17)", "reads schema 1\n", "--db FILE"];
    check_refused(&place, &path, &parts);
}

#[test]
fn a_file_that_was_cut_off_is_called_damaged() {
    let (place, path) = with_database();
    let whole = fs::metadata(&path).unwrap().len();
    for bytes in [5000, whole / 2 / 4096 * 4096, whole - 4096] {
        database_cut_to(&place, &path, bytes);
        check_refused(&place, &path, &["malformed", ".recover"]);
    }
    // Less than the header of a database is none.
    database_cut_to(&place, &path, 60);
    check_refused(&place, &path, &["is not a file of results", "--db FILE"]);
}

/// A place with a database in it.
fn with_database() -> (Place, PathBuf) {
    let place = Place::new();
    database(&place);
    let path = place.path("x.db");
    (place, path)
}

fn database_cut_to(place: &Place, path: &Path, bytes: u64) {
    let _ = fs::remove_file(path);
    database(place);
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_file_without_its_tables_is_called_damaged() {
    let (place, path) = with_database();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DROP TABLE trial").unwrap();
    connection.close().unwrap();
    let before = fs::read(&path).unwrap();
    for command in ["runs", "show last", "report last", "export last --format csv"] {
        let done = place.run(&format!("{command} --db {}", path.display())).ended(4);
        for part in ["x.db: no such table: ", "trial\n", "damaged or was edited", "--db FILE"] {
            done.says(part);
        }
    }
    assert!(fs::read(&path).unwrap() == before, "it was touched");
}

#[test]
fn a_database_that_another_process_writes_to_is_read_all_the_same() {
    let (place, path) = with_database();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE run SET name = 'half written'").unwrap();
    for command in ["runs", "show last", "export last --format csv"] {
        let done = place.run(&format!("{command} --db {}", path.display())).ended(0);
        assert!(!done.stdout.contains("half written"), "{command}: {}", done.stdout);
    }
}

#[test]
fn a_result_that_finds_no_room_is_not_lost_in_silence() {
    let (place, path) = with_database();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for line in ["show last", "show last --json", "export last --format csv"] {
        let mut command = place.command(&format!("{line} --db {}", path.display()));
        let done = finished(command.stdout(full()).output().unwrap()).ended(4);
        let parts = ["cannot write the result to stdout", "No space left", "make room"];
        assert!(parts.iter().all(|part| done.stderr.contains(part)), "{line}: {}", done.stderr);
    }
    place.fails(
        &format!("report last -o /dev/full --overwrite --db {}", path.display()),
        4,
        "cannot write /dev/full: No space left",
    );
    for line in ["--help", "run net --help", "export -h", "--version"] {
        let done = finished(place.command(line).stdout(full()).output().unwrap()).ended(4);
        assert!(done.stderr.contains("No space left"), "{line}: {}", done.stderr);
    }
}

#[test]
fn only_a_table_replaces_the_reasons_of_another() {
    let (place, path) = with_database();
    let export = |file: &str, flags: &str| {
        let db = path.display();
        place.run(&format!("export last -o PLACE/{file} --overwrite {flags} --db {db}")).ended(0)
    };
    place.write("rows.reasons.csv", "of another table");
    export("rows.json", "");
    export("rows.json", "--rows all");
    export("rows.csv", "--format json --rows slices");
    assert_eq!(place.read("rows.reasons.csv"), "of another table");
    export("rows.csv", "--columns arm").says("rows.reasons.csv says why fields are empty");
    assert_eq!(place.read("rows.reasons.csv"), "");
}

#[test]
fn an_export_of_nothing_is_no_line_and_says_so() {
    let (place, path) = with_database();
    let line = format!("export last --rows phases --db {}", path.display());
    let done = place.run(&line).ended(0);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("no rows: what is stored has no phases"), "{}", done.stderr);
}

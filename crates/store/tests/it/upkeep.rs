//! What room a file takes, what is taken out of it, and what it gives back.

use std::path::{Path, PathBuf};

use iolens_model::run::{RunEnd, RunHeader, StoppedBy};
use iolens_model::units::Bytes;
use iolens_store::{APPLICATION_ID, SCHEMA_VERSION, Store, StoreError};
use rusqlite::Connection;

use crate::{sample, small_run};

/// A file with two runs of one trial each.
fn two_runs() -> (tempfile::TempDir, PathBuf, Store) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results %.db");
    let mut store = Store::open(&path).unwrap();
    ["0000000a", "0000000b"].iter().for_each(|id| small_run(&mut store, id));
    (directory, path, store)
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

fn rows(path: &Path, table: &str) -> u64 {
    let connection = Connection::open(path).unwrap();
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// Everything in the directory of a file, by name.
fn beside(path: &Path) -> Vec<String> {
    let entries = path.parent().and_then(|folder| folder.read_dir().ok()).unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.flatten().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_removed_run_takes_all_that_is_its_own() {
    let (_directory, path, mut store) = two_runs();
    let removed = store.remove(&ids(&["0000000a"])).unwrap();
    assert_eq!((removed.trials, removed.slices, removed.phases, removed.profiles), (1, 2, 1, 0));
    assert_eq!(store.run_ids().unwrap(), ["0000000b"]);
    drop(store);
    for table in ["run", "run_end", "trial", "arm", "search_phase"] {
        assert_eq!(rows(&path, table), 1, "{table}");
    }
    assert_eq!(rows(&path, "slice"), 2);
}

#[test]
fn the_run_after_a_removed_one_keeps_all_its_counts() {
    let (_directory, _, mut store) = two_runs();
    store.remove(&ids(&["0000000b"])).unwrap();
    store.begin_run(&sample::header("0000000c")).unwrap();
    store.append_trial("0000000c", &sample::trial(1, 0)).unwrap();
    assert_eq!(store.load("0000000c").unwrap().trials, [sample::trial(1, 0)]);
}

#[test]
fn of_several_runs_all_are_removed_or_none() {
    let (_directory, _, mut store) = two_runs();
    let refused = store.remove(&ids(&["0000000a", "0000000c"]));
    assert!(matches!(refused, Err(StoreError::NoSuchRun { .. })), "{refused:?}");
    assert_eq!(store.run_ids().unwrap().len(), 2);
    let removed = store.remove(&ids(&["0000000a", "0000000b"])).unwrap();
    assert_eq!(removed.trials, 2);
    assert!(store.runs().unwrap().is_empty());
}

#[test]
fn only_runs_that_were_cut_short_with_nothing_are_empty() {
    let (_directory, _, mut store) = two_runs();
    for (id, stopped_by) in [
        ("0000000c", None),
        ("0000000d", Some(StoppedBy::Interrupted)),
        ("0000000e", Some(StoppedBy::NothingUsable)),
    ] {
        store.begin_run(&sample::header(id)).unwrap();
        let end = stopped_by.map(|stopped_by| RunEnd { stopped_by, ..sample::end() });
        end.iter().for_each(|end| store.end_run(id, end).unwrap());
    }
    assert_eq!(store.empty_runs().unwrap(), ["0000000c", "0000000d"]);
}

#[test]
fn room_that_is_free_is_given_back_and_the_rest_stays() {
    let (_directory, path, mut store) = two_runs();
    let long = RunHeader { command: vec!["x".repeat(1 << 20)], ..sample::header("0000000c") };
    store.begin_run(&long).unwrap();
    let before = store.load("0000000b").unwrap();
    assert!(store.compact().unwrap());
    let full = store.extent().unwrap();
    let removed = store.remove(&ids(&["0000000c"])).unwrap();
    assert!(removed.freed >= Bytes(1 << 20), "{removed:?}");
    assert_eq!(store.extent().unwrap().free_bytes, removed.freed);
    assert!(store.compact().unwrap());
    let small = store.extent().unwrap();
    assert_eq!((small.runs, small.log_bytes, small.free_bytes), (2, Bytes(0), Bytes(0)));
    assert!(small.total().0 + (1 << 20) <= full.total().0, "{small:?} {full:?}");
    assert_eq!(store.load("0000000b").unwrap(), before);
    drop(store);
    let connection = Connection::open(&path).unwrap();
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    assert_eq!(pragma("application_id").unwrap(), APPLICATION_ID);
    assert_eq!(pragma("user_version").unwrap(), SCHEMA_VERSION);
}

#[test]
fn to_look_leaves_nothing_and_sees_what_is_only_in_the_log() {
    let (_directory, path, mut store) = two_runs();
    let seen = || Store::look(&path).unwrap().unwrap();
    store.begin_run(&sample::header("0000000c")).unwrap();
    assert_eq!(seen(), store.extent().unwrap());
    assert_eq!(seen().runs, 3);
    drop(store);
    assert_eq!(beside(&path), ["results %.db"]);
    assert_eq!((seen().runs, seen().log_bytes), (3, Bytes(0)));
    assert_eq!(beside(&path), ["results %.db"], "looking makes no file");
    let nowhere = path.with_file_name("nothing");
    assert_eq!(Store::look(&nowhere).unwrap(), None);
    assert!(!nowhere.exists());
}

//! Which run is meant.

use iolens_model::run::RunHeader;
use iolens_store::{Store, StoreError};

use crate::sample;

fn store(ids: &[&str]) -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let mut store = Store::open(&directory.path().join("results.db")).expect("it opens");
    for id in ids {
        store.begin_run(&sample::header(id)).expect("the run begins");
    }
    (directory, store)
}

fn check(ids: &[&str], wanted: &str, expect: Result<&str, &str>) {
    let (_directory, store) = store(ids);
    match (store.find(wanted), expect) {
        (Ok(id), Ok(expected)) => assert_eq!(id, expected),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
        (found, _) => panic!("{wanted}: {found:?}, expected {expect:?}"),
    }
}

#[test]
fn a_run_is_found_by_id_by_prefix_and_as_the_last() {
    let ids = ["ab00cd00", "ab11cd11", "0f000000"];
    check(&ids, "ab00cd00", Ok("ab00cd00"));
    check(&ids, "ab1", Ok("ab11cd11"));
    check(&ids, "0", Ok("0f000000"));
    check(&ids, "last", Ok("0f000000"));
}

#[test]
fn a_run_that_is_not_there_is_named() {
    check(&["ab00cd00"], "c", Err("no run `c`"));
    check(&["ab00cd00"], "", Err("no run ``"));
    check(&["ab00cd00"], "%", Err("no run `%`"));
    check(&[], "last", Err("there are no runs"));
}

#[test]
fn an_ambiguous_prefix_names_its_candidates() {
    let (_directory, store) = store(&["ab11cd11", "0f000000", "ab00cd00"]);
    match store.find("ab") {
        Err(StoreError::Ambiguous { candidates, .. }) => {
            assert_eq!(candidates, ["ab11cd11", "ab00cd00"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_stands_for_the_one_run_that_has_it() {
    let (_directory, mut store) = store(&[]);
    // The last name is of an older file: a new run may not have it.
    for (id, name) in
        [("ab11cd11", "before"), ("0f000000", "after"), ("cd000000", "after"), ("ee000000", "ab1")]
    {
        let header = RunHeader { name: Some(name.to_owned()), ..sample::header(id) };
        store.begin_run(&header).expect("the run begins");
    }
    assert_eq!(store.find("before").expect("one has it"), "ab11cd11");
    assert_eq!(store.find("ab1").expect("ids go before names"), "ab11cd11");
    assert!(matches!(store.find("befor"), Err(StoreError::NoSuchRun { .. })));
    match store.find("after") {
        Err(StoreError::Ambiguous { candidates, .. }) => {
            assert_eq!(candidates, ["0f000000", "cd000000"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_list_counts_cells_and_trials() {
    let (_directory, mut store) = store(&["0000000a", "0000000b"]);
    for (pass, position) in [(1, 0), (1, 1), (2, 0)] {
        store.append_trial("0000000a", &sample::trial(pass, position)).expect("it is stored");
    }
    let runs = store.runs().expect("it reads");
    let counts: Vec<_> = runs.iter().map(|run| (run.id.as_str(), run.cells, run.trials)).collect();
    assert_eq!(counts, [("0000000a", 2, 3), ("0000000b", 0, 0)]);
    assert_eq!(runs[0].study, "net");
    let headers = ["0000000a", "0000000b"].map(|id| store.load(id).expect("it loads").header);
    assert_eq!(store.headers().expect("it reads"), headers);
}

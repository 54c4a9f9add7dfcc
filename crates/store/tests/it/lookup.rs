//! Which run is meant.

use iolens_model::run::RunHeader;
use iolens_store::{Store, StoreError};

use crate::{results, sample, small_run};

fn check(ids: &[&str], wanted: &str, expect: Result<&str, &str>) {
    let (_directory, _, store) = results(ids);
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
    let (_directory, _, store) = results(&["ab11cd11", "0f000000", "ab00cd00"]);
    match store.find("ab") {
        Err(StoreError::Ambiguous { candidates, .. }) => {
            assert_eq!(candidates, ["ab11cd11", "ab00cd00"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_stands_for_the_one_run_that_has_it() {
    let (_directory, _, mut store) = results(&[]);
    // The last name is of somebody else's file: a run of ours may not have it.
    for (id, name) in
        [("ab11cd11", "before"), ("0f000000", "after"), ("cd000000", "after"), ("ee000000", "ab1")]
    {
        let header = RunHeader { name: Some(name.to_owned()), ..sample::header(id) };
        store.begin_run(&header).unwrap();
    }
    assert_eq!(store.find("before").unwrap(), "ab11cd11");
    assert_eq!(store.find("ab1").unwrap(), "ab11cd11");
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
    let (_directory, _, mut store) = results(&["0000000a", "0000000b"]);
    for (pass, position) in [(1, 0), (1, 1), (2, 0)] {
        store.append_trial("0000000a", &sample::trial(pass, position)).unwrap();
    }
    let runs = store.runs().unwrap();
    let counts: Vec<_> = runs.iter().map(|run| (run.id.as_str(), run.cells, run.trials)).collect();
    assert_eq!(counts, [("0000000a", 2, 3), ("0000000b", 0, 0)]);
    assert_eq!(runs[0].study, "net");
    let headers = ["0000000a", "0000000b"].map(|id| store.load(id).unwrap().header);
    assert_eq!(store.headers().unwrap(), headers);
}

#[test]
fn a_damaged_run_says_so_and_the_others_are_there() {
    let (directory, path, mut store) = results(&[]);
    for id in ["0000000a", "0000000b", "0000000c", "0000000d", "0000000e", "0000000f"] {
        small_run(&mut store, id);
    }
    let edited = rusqlite::Connection::open(&path).unwrap();
    edited
        .execute_batch(
            "UPDATE run_end SET run_end_json = json_set(run_end_json, '$.stopped_by', 'x') \
             WHERE run = 1; \
             UPDATE run SET run_json = '{' WHERE run = 2; \
             UPDATE run SET id = '/etc/victim' WHERE run = 3; \
             UPDATE run SET name = CAST(x'ff' AS TEXT) WHERE run = 5; \
             UPDATE run SET id = CAST(x'1bff' AS TEXT) WHERE run = 6",
        )
        .unwrap();
    let runs = store.runs().unwrap();
    let ended: Vec<(&str, &str)> = runs.iter().map(|run| (&*run.id, run.ended())).collect();
    assert_eq!(ended[..3].iter().map(|run| run.1).collect::<Vec<_>>(), ["damaged"; 3], "{runs:?}");
    assert_eq!((runs[3].id.as_str(), &runs[3].damaged), ("0000000d", &None));
    assert_eq!(ended[4..], [("0000000e", "damaged"), ("\u{fffd}\u{fffd}", "damaged")]);
    assert_eq!(store.find("0000000d").unwrap(), "0000000d");
    assert_eq!(store.find("0000000e").unwrap(), "0000000e");
    let odd = store.find("\u{fffd}\u{fffd}").unwrap();
    assert_eq!(store.find("last").unwrap(), odd);
    let refused = store.header(&odd).unwrap_err().to_string();
    assert!(refused.contains("its id is not one"), "{refused}");
    assert!(runs[2].damaged.as_deref().is_some_and(|why| why.contains("its id is not one")));
    let known = store.headers().unwrap();
    assert_eq!(known.iter().map(|header| &*header.id).collect::<Vec<_>>(), ["0000000d"]);
    let refused = store.header("/etc/victim").unwrap_err().to_string();
    assert!(refused.contains("its id is not one"), "{refused}");

    let mut other = Store::open(&directory.path().join("other.db")).unwrap();
    let source = iolens_store::Source::open(&path).unwrap();
    let how = iolens_store::Importing {
        host: Some("stranger"),
        here: &sample::header("0000000f").host,
        now_unix_ns: 7,
    };
    let imported = other.import(&source, &how).unwrap();
    let came: Vec<&str> = imported
        .iter()
        .filter(|run| run.fate == iolens_store::Fate::Imported)
        .map(|run| &*run.id)
        .collect();
    assert_eq!(came, ["0000000d"], "{imported:?}");

    one_here_is_damaged_that_a_file_has_whole(directory.path(), &mut store, &how);

    let gone = ["0000000a", "0000000b", "/etc/victim", "0000000e", &odd].map(str::to_owned);
    store.remove(&gone).unwrap();
    assert_eq!(store.run_ids().unwrap(), ["0000000d"]);
}

/// The other way round.
fn one_here_is_damaged_that_a_file_has_whole(
    directory: &std::path::Path,
    store: &mut Store,
    how: &iolens_store::Importing<'_>,
) {
    let mut whole = Store::open(&directory.join("whole.db")).unwrap();
    for id in ["00000001", "0000000b", "00000002"] {
        small_run(&mut whole, id);
    }
    let source = iolens_store::Source::open(whole.path()).unwrap();
    let imported = store.import(&source, how).unwrap();
    let came: Vec<bool> =
        imported.iter().map(|run| run.fate == iolens_store::Fate::Imported).collect();
    assert_eq!(came, [true, false, true], "{imported:?}");
    let iolens_store::Fate::Refused(why) = &imported[1].fate else { panic!("{imported:?}") };
    assert!(why.contains("cannot be read") && why.contains("`iolens rm 0000000b`"), "{why}");
    store.remove(&["00000001", "00000002"].map(str::to_owned)).unwrap();
}

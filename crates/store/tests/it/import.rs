//! Runs of other files: all of them or none, once, from files that are left alone.

use std::fs;
use std::path::{Path, PathBuf};

use iolens_model::host::{Fact, HostFacts};
use iolens_model::origin::HOST_NAME;
use iolens_model::outcome::TrialOutcome;
use iolens_model::reading::Reading;
use iolens_model::run::{Run, RunHeader};
use iolens_store::{Fate, Imported, Importing, Source, Store, StoreError};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::refusal::contents;
use crate::round_trip::append;
use crate::round_trip::end;
use crate::{arbitrary, sample};

const NOW: u64 = 1_790_000_000_000_000_000;

fn scratch() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A machine with this name and CPU model; `None` tells no name.
fn host(name: Option<&str>, model: &str) -> HostFacts {
    let fact = |group: &str, name: &str, value: &str| Fact {
        group: group.to_owned(),
        name: name.to_owned(),
        value: Reading::Exact(value.to_owned()),
    };
    let mut facts = vec![fact("cpu", "model", model)];
    facts.extend(name.map(|name| fact(HOST_NAME.0, HOST_NAME.1, name)));
    HostFacts { facts, ..sample::header("0000000a").host }
}

/// A database with one run of everything that small runs have.
fn database(path: &Path, id: &str, host: HostFacts) {
    let mut store = Store::open(path).unwrap();
    store.begin_run(&RunHeader { host, ..sample::header(id) }).unwrap();
    for pass in 1..=2 {
        let (tx, rx) = (Some(end(pass.into(), "cubic")), Some(end(1, "bbr")));
        let trial = TrialOutcome { tx, rx, ..sample::trial(pass, 0) };
        store.append_trial(id, &trial).unwrap();
    }
    store.append_search(id, &sample::phase()).unwrap();
    store.end_run(id, &sample::end()).unwrap();
}

/// A file with one run of the machine `alpha`, in a folder for the test.
fn source() -> (TempDir, PathBuf) {
    let directory = scratch();
    let path = directory.path().join("x.db");
    database(&path, "0000000a", host(Some("alpha"), "X"));
    (directory, path)
}

/// Results into which runs are imported.
fn merged(directory: &TempDir) -> Store {
    Store::open(&directory.path().join("all.db")).unwrap()
}

fn import_as(
    store: &mut Store,
    path: &Path,
    label: Option<&str>,
) -> Result<Vec<Imported>, StoreError> {
    let here = host(Some("here"), "Ours");
    let how = Importing { host: label, here: &here, now_unix_ns: NOW };
    store.import(&Source::open(path)?, &how)
}

fn import(store: &mut Store, path: &Path) -> Vec<Imported> {
    import_as(store, path, None).unwrap()
}

fn exported(store: &Store, id: &str) -> String {
    let mut text = String::new();
    store.lines(id, |line| text.push_str(line)).unwrap();
    text
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Through lines and back, and through the database itself.
    #[test]
    fn a_run_of_any_kind_comes_back_byte_for_byte(run in arbitrary::run()) {
        let directory = scratch();
        let path = directory.path().join("source.db");
        let mut store = Store::open(&path).unwrap();
        append(&mut store, &run);
        let id = &run.header.id;
        let text = exported(&store, id);
        drop(store);
        let lines = directory.path().join("run.jsonl");
        fs::write(&lines, &text).unwrap();
        for (name, from) in [("a.db", &path), ("b.db", &lines)] {
            let mut other = Store::open(&directory.path().join(name)).unwrap();
            let came = import(&mut other, from);
            prop_assert_eq!(&came[0].fate, &Fate::Imported);
            prop_assert_eq!(exported(&other, id), text.clone());
            let Run { header, trials, profiles, searches } = other.load(id).unwrap();
            prop_assert_eq!(header.origin.as_ref().map(|o| o.imported_unix_ns), Some(NOW));
            let header = RunHeader { origin: None, ..header };
            prop_assert_eq!(&Run { header, trials, profiles, searches }, &run);
            prop_assert_eq!(&import(&mut other, from)[0].fate, &Fate::AlreadyThere);
        }
    }
}

#[test]
fn three_hosts_keep_their_labels() {
    let directory = scratch();
    let of = |name: &str| directory.path().join(name);
    database(&of("1.db"), "0000000a", host(Some("alpha"), "X"));
    database(&of("2.db"), "0000000b", host(Some("beta"), "X"));
    database(&of("node 3.db"), "0000000c", host(None, "Z"));
    let mut store = Store::open(&of("all.db")).unwrap();
    store.begin_run(&sample::header("0000000d")).unwrap();
    for (file, label) in [("1.db", "alpha"), ("2.db", "beta"), ("node 3.db", "node-3")] {
        let came = import(&mut store, &of(file));
        assert_eq!((came[0].host.as_str(), &came[0].fate), (label, &Fate::Imported));
        assert_eq!((came[0].trials, came[0].phases, came[0].profiles), (2, 1, 0));
    }
    let runs = store.runs().unwrap();
    let labels: Vec<_> = runs.iter().map(|run| run.host.as_deref()).collect();
    assert_eq!(labels, [None, Some("alpha"), Some("beta"), Some("node-3")]);
    assert!(runs[0].origin.is_none());
    let path = runs[3].origin.as_ref().map(|origin| origin.path.clone());
    assert_eq!(path, Some(of("node 3.db").display().to_string()));
    assert_eq!(store.find("last").unwrap(), "0000000d");
    // Whoever imports the merged file keeps the labels.
    let mut next = Store::open(&of("next.db")).unwrap();
    drop(store);
    import(&mut next, &of("all.db"));
    let labels: Vec<_> = next.runs().unwrap().into_iter().map(|run| run.host).collect();
    assert_eq!(labels[1..], ["alpha", "beta", "node-3"].map(|label| Some(label.to_owned())));
    let none = next.find("last").unwrap_err();
    assert!(matches!(none, StoreError::NoOwnRuns { .. }), "{none}");
}

#[test]
fn two_machines_never_have_one_label() {
    let directory = scratch();
    let of = |name: &str| directory.path().join(name);
    database(&of("1.db"), "0000000a", host(Some("localhost"), "X"));
    database(&of("2.db"), "0000000b", host(Some("localhost"), "Y"));
    database(&of("3.db"), "0000000c", host(Some("here"), "Not ours"));
    let mut store = Store::open(&of("all.db")).unwrap();
    assert_eq!(import(&mut store, &of("1.db"))[0].fate, Fate::Imported);
    for (file, who) in [("2.db", "run 0000000a"), ("3.db", "this machine")] {
        let Fate::Refused(why) = &import(&mut store, &of(file))[0].fate else {
            panic!("{file} was imported")
        };
        assert!(why.contains(who) && why.contains("CPU model: "), "{why}");
        assert!(why.contains("--host NAME"), "{why}");
    }
    assert_eq!(store.run_ids().unwrap(), ["0000000a"]);
    let other = import_as(&mut store, &of("2.db"), Some("second")).unwrap();
    assert_eq!((other[0].host.as_str(), &other[0].fate), ("second", &Fate::Imported));
    let taken = import_as(&mut store, &of("3.db"), Some("second")).unwrap();
    assert!(matches!(taken[0].fate, Fate::Refused(_)), "{taken:?}");
    // Nor does a run begin under the label of another machine.
    let begin =
        |model| RunHeader { host: host(Some("second"), model), ..sample::header("0000000d") };
    let refused = store.begin_run(&begin("Z")).unwrap_err();
    assert!(matches!(refused, StoreError::LabelTaken { .. }), "{refused}");
    assert!(refused.to_string().contains("that of run 0000000b (CPU model: "), "{refused}");
}

#[test]
fn a_run_with_other_content_is_refused_and_others_go_on() {
    let directory = scratch();
    let (source, path) = (directory.path().join("1.db"), directory.path().join("all.db"));
    database(&source, "0000000a", host(Some("alpha"), "X"));
    let mut store = Store::open(&path).unwrap();
    import(&mut store, &source);
    let before = exported(&store, "0000000a");
    let mut theirs = Store::open(&source).unwrap();
    theirs.append_trial("0000000a", &sample::trial(3, 0)).unwrap();
    let beta = RunHeader { host: host(Some("alpha"), "X"), ..sample::header("0000000b") };
    theirs.begin_run(&beta).unwrap();
    drop(theirs);
    let came = import(&mut store, &source);
    let Fate::Refused(why) = &came[0].fate else { panic!("{came:?}") };
    assert!(why.contains("with 2 trials, and the file has 3"), "{why}");
    assert_eq!(came[1].fate, Fate::Imported);
    assert_eq!(exported(&store, "0000000a"), before);
    store.remove(&["0000000a".to_owned()]).unwrap();
    assert_eq!(import(&mut store, &source)[0].fate, Fate::Imported);
}

/// A count that is new in this build has no column in a file of a build before it.
#[test]
fn counts_that_a_file_has_no_column_for_are_no_matter() {
    let (directory, path) = source();
    let text = exported(&Store::open(&path).unwrap(), "0000000a");
    let other = Connection::open(&path).unwrap();
    let lacks = "ALTER TABLE slice DROP COLUMN tx_softirq_ticks; PRAGMA journal_mode = DELETE";
    other.execute_batch(lacks).unwrap();
    drop(other);
    let before = contents(directory.path());
    let reader = Store::open_read_only(&path).unwrap();
    assert_eq!(exported(&reader, "0000000a"), text);
    assert_eq!(reader.load("0000000a").unwrap().trials.len(), 2);
    drop(reader);
    let source = Source::open(&path).unwrap();
    assert!(contents(directory.path()) == before, "it was touched");
    let mut store = merged(&directory);
    let how = Importing { host: None, here: &host(Some("here"), "Ours"), now_unix_ns: NOW };
    assert_eq!(store.import(&source, &how).unwrap()[0].fate, Fate::Imported);
    let mut trial = sample::trial(3, 0);
    trial.slices[0].tx.softirq_ticks = Some(7);
    let mut writer = Store::open(&path).unwrap();
    writer.append_trial("0000000a", &trial).unwrap();
    assert_eq!(writer.load("0000000a").unwrap().trials[2], trial);
    store.append_trial("0000000a", &trial).unwrap();
    assert_eq!(import(&mut store, &path)[0].fate, Fate::AlreadyThere);
}

#[test]
fn a_count_of_a_later_build_is_not_passed_over() {
    let (_directory, path) = source();
    let other = Connection::open(&path).unwrap();
    let later = "ALTER TABLE slice ADD COLUMN tx_new INTEGER; \
                 INSERT INTO run_count (run, name) VALUES (1, 'tx_new')";
    other.execute_batch(later).unwrap();
    let store = Store::open(&path).unwrap();
    let refused = store.load("0000000a").unwrap_err().to_string();
    assert!(refused.contains("this build has no count `tx_new`"), "{refused}");
    let refused = Source::open(&path).unwrap_err().to_string();
    assert!(refused.contains("its table `slice` is not that"), "{refused}");
}

#[test]
fn a_trial_that_shares_what_is_not_there_is_damaged() {
    let (_directory, path) = source();
    let other = Connection::open(&path).unwrap();
    for sql in ["UPDATE trial SET cell = 99", "UPDATE trial SET cell = 0, rx = NULL"] {
        other.execute_batch(sql).unwrap();
        let refused = Store::open(&path).unwrap().load("0000000a").unwrap_err();
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
    }
}

/// A file that a run writes to, one whose writer was killed, and one that came without its
/// index: what is only in the log comes along, and nothing appears beside the file.
#[test]
fn what_is_only_in_the_log_is_imported_and_nothing_is_left_beside_it() {
    let directory = scratch();
    let live = directory.path().join("live");
    let copied = directory.path().join("copied");
    for folder in [&live, &copied] {
        fs::create_dir(folder).unwrap();
    }
    let path = live.join("x.db");
    database(&path, "0000000a", host(Some("alpha"), "X"));
    let mut writer = Store::open(&path).unwrap();
    writer.append_trial("0000000a", &sample::trial(3, 0)).unwrap();
    for suffix in ["", "-wal"] {
        let from = live.join(format!("x.db{suffix}"));
        fs::copy(from, copied.join(format!("x.db{suffix}"))).unwrap();
    }
    for folder in [&live, &copied] {
        let names = || contents(folder).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        let (before, main) = (names(), fs::read(folder.join("x.db")).unwrap());
        let mut store = Store::open(&folder.join("../all.db")).unwrap();
        let came = import(&mut store, &folder.join("x.db"));
        assert_eq!(came[0].trials, 3, "{}", folder.display());
        assert_eq!(names(), before);
        assert!(fs::read(folder.join("x.db")).unwrap() == main, "it was touched");
        drop(store);
        fs::remove_file(folder.join("../all.db")).unwrap();
    }
    writer.append_trial("0000000a", &sample::trial(4, 0)).unwrap();
    drop(writer);
    let before = contents(&live);
    let mut store = merged(&directory);
    assert_eq!(import(&mut store, &path)[0].trials, 4);
    assert!(contents(&live) == before, "it was touched");
}

#[test]
fn a_source_that_another_process_keeps_locked_is_read_all_the_same() {
    let (directory, path) = source();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE run SET name = 'half'").unwrap();
    let mut store = merged(&directory);
    assert_eq!(import(&mut store, &path)[0].name, None);
    other.execute_batch("COMMIT").unwrap();
}

/// Importing this is refused with all of these parts, and leaves no run.
fn check_refused(name: &str, bytes: &[u8], parts: &[&str]) {
    let directory = scratch();
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    let mut store = merged(&directory);
    let message = import_as(&mut store, &path, None).unwrap_err().to_string();
    for part in parts.iter().chain(&[name]) {
        assert!(message.contains(part), "no `{part}` in {message}");
    }
    assert_eq!(store.run_ids().unwrap(), Vec::<String>::new());
    assert!(fs::read(&path).unwrap() == bytes, "it was touched");
}

#[test]
fn what_is_no_run_is_refused() {
    check_refused("x.txt", b"things to remember\n", &["line 1: it is not a run", "nothing of it"]);
    check_refused("x.bin", &[0xff, 0xfe, 0, 7], &["line 1: it is not UTF-8 text"]);
    check_refused("x.json", b"", &["it is empty"]);
    check_refused("x.json", b"{\"format\":\"other\",\"version\":2,\"schema\":1}", &["line 1"]);
    let newer = b"{\"format\":\"iolens-run\",\"version\":9,\"schema\":1}";
    check_refused("x.json", newer, &["its version is 9", "newer iolens"]);
    let earlier = b"{\"format\":\"iolens-run\",\"version\":1,\"schema\":17}";
    check_refused("x.json", earlier, &["line 1: its version is 1, this", "earlier build"]);
    let deep = format!("{{\"format\":{}", "[".repeat(1 << 20));
    check_refused("x.json", deep.as_bytes(), &["line 1"]);
    let directory = scratch();
    let foreign = directory.path().join("y.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    check_refused("y.db", &fs::read(&foreign).unwrap(), &["of another program"]);
    let path = directory.path().join("z.db");
    database(&path, "0000000a", host(None, "X"));
    let bytes = fs::read(&path).unwrap();
    check_refused("z.db", &bytes[..bytes.len() / 2 / 4096 * 4096], &["malformed"]);
    Connection::open(&path).unwrap().execute_batch("ALTER TABLE arm ADD COLUMN x TEXT").unwrap();
    check_refused("z.db", &fs::read(&path).unwrap(), &["its table `arm` is not that"]);
}

#[test]
fn lines_that_are_no_run_are_refused_by_their_number() {
    let (_directory, path) = source();
    let text = exported(&Store::open(&path).unwrap(), "0000000a");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "run, two trials, a phase, the end");
    let check = |lines: &[&str], parts: &[&str]| {
        check_refused("x.jsonl", lines.join("\n").as_bytes(), parts);
    };
    check(&lines[..4], &["line 4: the file was cut off", "export it again"]);
    check(&lines[1..], &["line 1: it is not a run"]);
    check(&[lines[0], lines[1], lines[3], lines[2], lines[4]], &["line 4", "cannot follow"]);
    check(&[lines[0], lines[1], lines[3], lines[4]], &["line 4", "of `arm`"]);
    check(&[&lines[..], &lines[1..2]].concat(), &["line 6: it is not a run"]);
    check(&[&lines[..], &lines[..]].concat(), &["line 6", "UNIQUE"]);
    let other = text.replace("0000000a", "../../xx");
    check_refused("x.jsonl", other.as_bytes(), &["line 1: its id is not one"]);
    let with = |at: usize, from: &str, to: &str, parts: &[&str]| {
        assert!(lines[at].contains(from), "{}", lines[at]);
        let changed = lines[at].replacen(from, to, 1);
        let mut lines = lines.clone();
        lines[at] = &changed;
        check(&lines, parts);
    };
    with(0, "\"id\":\"0000000a\"", "\"id\":\"../../../x\"", &["line 5"]);
    with(0, "\"study\":\"net\"", "\"unknown\":7", &["line 1: `run` has no column `unknown`"]);
    with(1, "\"seq\":1", "\"seq\":99999999999999999999", &["line 2", "64-bit integer"]);
    with(1, "\"pass\":1", "\"pass\":99999999999999999999", &["line 2"]);
    with(1, "\"pass\":1", "\"pass\":null", &["line 2"]);
    with(0, "\"threads\":1", "\"threads\":-1", &["line 2"]);
    with(1, "\"cell\":0", "\"cell\":7", &["line 2", "not there"]);
    with(1, "\"arm\":0", "\"arm\":7", &["line 2", "FOREIGN KEY"]);
    with(2, "\"status\":\"ok\"", "\"status\":\"fine\"", &["line 3"]);
    with(2, "\"slice\":[", "\"slice\":{", &["line 3"]);
    with(2, "{\"trial\":", "{\"trail\":", &["line 3: it is not a line of a run"]);
}

/// What the fuzzer of imports begins with: an export like ours, made anew where `IOLENS_DOCS` is
/// set to `write`.
#[test]
fn the_seed_of_the_fuzzer_is_imported() {
    let directory = scratch();
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, PathBuf::from);
    let seed = package.join("../../fuzz/seeds/import/run.jsonl");
    if std::env::var_os("IOLENS_DOCS").is_some_and(|wish| wish == "write") {
        let path = directory.path().join("x.db");
        database(&path, "0000000a", host(Some("alpha"), "X"));
        let text = exported(&Store::open(&path).unwrap(), "0000000a");
        fs::create_dir_all(seed.parent().unwrap()).unwrap();
        fs::write(&seed, text).unwrap();
    }
    let mut store = merged(&directory);
    assert_eq!(import(&mut store, &seed)[0].fate, Fate::Imported);
}

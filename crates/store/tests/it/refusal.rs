//! What the store refuses, and that it leaves alone what it refuses.

use std::fs;
use std::path::Path;

use iolens_model::outcome::TrialOutcome;
use iolens_model::plan::Plan;
use iolens_model::run::RunHeader;
use iolens_model::units::Bytes;
use iolens_store::{APPLICATION_ID, SCHEMA_VERSION, Source, Store, StoreError};
use rusqlite::Connection;

use crate::{results, sample, skip};

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Everything in a directory, by name.
pub(crate) fn contents(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Both ways to open `path` are refused with `part` in the message, and
/// nothing in its directory changes by a byte.
fn check_refused_untouched(path: &Path, part: &str) {
    let directory = path.parent().unwrap();
    let before = contents(directory);
    for refused in [Store::open(path), Store::open_read_only(path)] {
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
    assert!(contents(directory) == before, "{} was touched", path.display());
}

#[test]
fn a_text_file_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "things to remember\n".repeat(20)).unwrap();
    check_refused_untouched(&path, "not an SQLite database");
    fs::write(&path, "short").unwrap();
    check_refused_untouched(&path, "not an SQLite database");
}

#[test]
fn a_file_that_defines_more_than_tables_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    let with = |sql: &str, part: &str| {
        let _ = fs::remove_file(&path);
        Store::open(&path).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch(sql).unwrap();
        other.pragma_update(None, "journal_mode", "delete").unwrap();
        drop(other);
        check_refused_untouched(&path, part);
        let imported = Source::open(&path).unwrap_err().to_string();
        assert!(imported.contains(part), "{imported}");
    };
    let endless = "DROP TABLE profile; CREATE VIEW profile AS \
                   WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
                   SELECT x AS profile, x AS run FROM n";
    with(endless, "it defines a view");
    let trigger = "CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END";
    with(trigger, "it defines a trigger");
    with("ALTER TABLE run ADD COLUMN x INTEGER AS (1 + 1)", "it defines a computed column");
    with("CREATE INDEX i ON run (id || id)", "it defines an index of an expression");
    // SQLite itself writes a statement in one way, an editor in any.
    let odd = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = \
               'create/**/virtual table origin using fts5(x)' WHERE name = 'origin'";
    with(odd, "it defines a virtual table, or an odd one");
}

#[test]
fn what_lies_beside_a_file_is_neither_followed_nor_waited_for() {
    for suffix in ["-wal", "-journal", "-shm"] {
        let (directory, path, _) = results(&[]);
        let log = directory.path().join(format!("results.db{suffix}"));
        let elsewhere = directory.path().join("elsewhere");
        fs::write(&elsewhere, "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &log).unwrap();
        check_refused_untouched(&path, "beside it is not a regular file");
        fs::remove_file(&log).unwrap();
        fs::hard_link(&elsewhere, &log).unwrap();
        check_refused_untouched(&path, "beside it is not a regular file with one name");
        let imported = Source::open(&path).unwrap_err().to_string();
        assert!(imported.contains("with one name"), "{imported}");
        assert_eq!(Store::look(&path).unwrap_err().to_string(), imported);
        fs::remove_file(&log).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&log).status().unwrap();
        assert!(made.success());
        for refused in [Store::open(&path), Store::open_read_only(&path)] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("beside it is not a regular file"), "{message}");
        }
        let imported = Source::open(&path).unwrap_err().to_string();
        assert!(imported.contains("beside it is not a regular file"), "{imported}");
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("history.sqlite");
    // Open and in WAL mode with a row that is only in the log, as a browser
    // leaves it: opening it with SQLite would already recover the log.
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        .unwrap();
    check_refused_untouched(&path, "of another program");
    drop(other);
    check_refused_untouched(&path, "of another program");
}

/// With a row that is only in the log, which to open it would recover.
#[test]
fn a_file_of_an_earlier_build_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "application_id", u32::from_be_bytes(*b"ioLn")).unwrap();
    other.pragma_update(None, "user_version", 17).unwrap();
    other
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE run (id TEXT, plan_json TEXT)")
        .unwrap();
    for part in [
        "was written by an earlier build of iolens (schema 17); this build reads schema 1\n",
        "\n  keep the build that wrote it",
        "--db FILE",
    ] {
        check_refused_untouched(&path, part);
    }
    let words = Store::open(&path).unwrap_err().to_string();
    assert_eq!(Store::look(&path).unwrap_err().to_string(), words);
    assert_eq!(Source::open(&path).unwrap_err().to_string(), words);
    drop(other);
    check_refused_untouched(&path, "schema 17");
}

#[test]
fn a_file_of_ours_without_a_version_is_refused_and_untouched() {
    let (_directory, path, _) = results(&[]);
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 0).unwrap();
    connection.close().unwrap();
    check_refused_untouched(&path, "its schema version is 0");
}

#[test]
fn a_newer_schema_is_refused_and_both_versions_named() {
    let (_directory, path, _) = results(&[]);
    let newer = SCHEMA_VERSION + 6;
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", newer).unwrap();
    connection.close().unwrap();
    check_refused_untouched(&path, &format!("schema version {newer}"));
    check_refused_untouched(&path, &format!("up to {SCHEMA_VERSION}"));
}

#[test]
fn a_newer_schema_is_seen_while_it_is_only_in_the_log() {
    let (_directory, path, _) = results(&[]);
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    for refused in [Store::open(&path), Store::open_read_only(&path)] {
        assert!(matches!(refused, Err(StoreError::Newer { .. })), "{refused:?}");
    }
}

#[test]
fn our_files_carry_our_mark() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    // An empty file is nobody's: `mktemp` makes one.
    fs::write(&path, "").unwrap();
    drop(Store::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    assert_eq!(pragma("application_id").unwrap(), APPLICATION_ID);
    assert_eq!(pragma("user_version").unwrap(), SCHEMA_VERSION);
}

#[test]
fn reading_makes_no_file() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    let missing = Store::open_read_only(&path);
    assert!(matches!(missing, Err(StoreError::Missing { .. })), "{missing:?}");
    assert!(!path.exists());
}

#[test]
fn a_path_that_cannot_be_is_named() {
    let directory = scratch();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let below = Store::open(&file.join("results.db")).unwrap_err();
    assert!(matches!(below, StoreError::Directory { .. }), "{below:?}");
    assert!(below.to_string().contains("--db"), "{below}");
    let itself = Store::open(directory.path()).unwrap_err();
    assert!(itself.to_string().contains("it is a directory"), "{itself}");
}

#[test]
fn an_unwritable_directory_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let directory = scratch();
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        let name = "refusal::an_unwritable_directory_is_named";
        return skip::note(name, "this user may write to read-only directories");
    }
    let refused = Store::open(&locked.join("results.db")).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("unable to open") && message.contains("must be writable"),
        "{message}"
    );
    let refused = Store::open(&locked.join("deeper/results.db")).unwrap_err();
    assert!(matches!(refused, StoreError::Directory { .. }), "{refused:?}");
}

/// Gates hold numbers against it, and a file of somebody else's may lack it.
#[test]
fn a_run_without_calibration_is_refused_unless_it_is_of_ab() {
    let (_directory, path, store) = results(&["0000000a"]);
    drop(store);
    let connection = Connection::open(&path).unwrap();
    let without = "UPDATE run SET run_json = json_remove(run_json, '$.calibration')";
    assert_eq!(connection.execute(without, []).unwrap(), 1);
    connection.close().unwrap();
    let loaded = Store::open_read_only(&path).and_then(|store| store.load("0000000a"));
    let message = loaded.unwrap_err().to_string();
    assert!(message.contains("missing field `calibration`"), "{message}");
}

/// A few kilobytes of axes make more cells than memory holds.
#[test]
fn a_run_of_too_many_cells_is_damaged() {
    let (_directory, path, mut store) = results(&["0000000a"]);
    let known = sample::header("0000000b");
    let plan = Plan { sizes: vec![Bytes(64); 5000], threads: vec![1; 5000], ..known.plan.clone() };
    store.begin_run(&RunHeader { plan, ..known }).unwrap();
    drop(store);
    let store = Store::open_read_only(&path).unwrap();
    let refused = store.header("0000000b").unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains("its axes make more than 1000000 cells"), "{message}");
    let headers = store.headers().unwrap();
    assert_eq!(headers.iter().map(|header| &*header.id).collect::<Vec<_>>(), ["0000000a"]);
}

/// On a file system without shared memory a change has a journal, which stays where its writer
/// is killed.
#[test]
fn an_unfinished_change_beside_a_file_is_named_with_what_takes_it_back() {
    let (directory, path, store) = results(&["0000000a"]);
    drop(store);
    let writer = Connection::open(&path).unwrap();
    writer.pragma_update(None, "journal_mode", "delete").unwrap();
    // So small a cache is written to the file before the end of the change.
    writer
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN; UPDATE run SET name = 'unfinished'; CREATE TABLE t (x); \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
             INSERT INTO t SELECT zeroblob(4000) FROM n",
        )
        .unwrap();
    let killed = directory.path().join("killed.db");
    fs::copy(&path, &killed).unwrap();
    fs::copy(directory.path().join("results.db-journal"), killed.with_extension("db-journal"))
        .unwrap();
    let message = Store::open_read_only(&killed).unwrap_err().to_string();
    assert!(message.contains("lies in the -journal") && message.contains("gc"), "{message}");
    // What it says helps.
    let imported = Source::open(&killed).unwrap().into_store();
    assert_eq!(imported.header("0000000a").unwrap().name, None);
    drop(Store::open(&killed).unwrap());
    let store = Store::open_read_only(&killed).unwrap();
    assert_eq!(store.header("0000000a").unwrap().name, None);
}

#[test]
fn a_damaged_file_is_named_as_such() {
    let (_directory, path, store) = results(&["0000000a"]);
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection.execute("UPDATE run SET run_json = '{}'", []).unwrap();
    connection.close().unwrap();
    let message = Store::open_read_only(&path)
        .and_then(|store| store.load("0000000a"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("column run_json: missing field"), "{message}");

    let pages = fs::read(&path).unwrap();
    fs::write(&path, &pages[..5000]).unwrap();
    let message = Store::open(&path).and_then(|store| store.runs()).unwrap_err().to_string();
    assert!(message.contains("malformed") && message.contains(".recover"), "{message}");
}

/// Appending `trial` to a fresh run is refused with `part`, and stores nothing.
fn check_not_stored(trial: &TrialOutcome, part: &str) {
    let (_directory, _, mut store) = results(&["0000000a"]);
    let message = store.append_trial("0000000a", trial).unwrap_err().to_string();
    assert!(message.contains(part), "{message}");
    assert!(store.load("0000000a").unwrap().trials.is_empty());
}

#[test]
fn a_trial_with_a_value_that_would_not_come_back_is_stored_not_at_all() {
    let mut trial = sample::trial(1, 0);
    trial.slices[1].tx.bytes = u64::MAX;
    check_not_stored(&trial, "cannot store bytes: 18446744073709551615");

    let mut trial = sample::trial(1, 0);
    trial.arms[0].copies_sender = Some(f64::NAN);
    check_not_stored(&trial, "cannot store an arm: it does not read back as it was");

    let mut trial = sample::trial(1, 0);
    trial.slices[1].arm = 9;
    check_not_stored(&trial, "FOREIGN KEY");
}

#[test]
fn a_run_begins_once_and_before_its_trials() {
    let (_directory, _, mut store) = results(&[]);
    let early = store.append_trial("0000000a", &sample::trial(1, 0));
    assert!(matches!(early, Err(StoreError::NoSuchRun { .. })), "{early:?}");
    store.begin_run(&sample::header("0000000a")).unwrap();
    let again = store.begin_run(&sample::header("0000000a")).unwrap_err();
    assert!(again.to_string().contains("UNIQUE"), "{again}");
    let mut header = sample::header("0000000b");
    header.calibration.as_mut().unwrap().loop_ns = u64::MAX;
    store.begin_run(&header).unwrap();
    header.id = "0000000c".to_owned();
    header.calibration.as_mut().unwrap().empty_call_ns = f64::NAN;
    let refused = store.begin_run(&header).unwrap_err();
    assert!(matches!(refused, StoreError::NotStorable { .. }), "{refused:?}");
}

#[test]
fn an_empty_file_is_not_one_that_does_not_exist() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    fs::write(&path, "").unwrap();
    let message = Store::open_read_only(&path).unwrap_err().to_string();
    assert!(message.contains("the file is empty") && message.contains("--db"), "{message}");
    assert!(!message.contains("does not exist"), "{message}");
}

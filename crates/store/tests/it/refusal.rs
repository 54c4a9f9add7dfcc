//! What the store refuses, and that it leaves alone what it refuses.

use std::fs;
use std::path::Path;

use iolens_model::outcome::TrialOutcome;
use iolens_store::{APPLICATION_ID, SCHEMA_VERSION, Source, Store, StoreError};
use rusqlite::Connection;

use crate::{sample, skip};

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

/// Everything in a directory, by name.
pub(crate) fn contents(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("it lists");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("it lists").path())
        .map(|path| (path.clone(), fs::read(path).expect("it reads")))
        .collect();
    files.sort();
    files
}

/// Both ways to open `path` are refused with `part` in the message, and
/// nothing in its directory changes by a byte.
fn check_refused_untouched(path: &Path, part: &str) {
    let directory = path.parent().expect("a file has a directory");
    let before = contents(directory);
    for refused in [Store::open(path), Store::open_read_only(path)] {
        let message = refused.expect_err("it is not ours").to_string();
        assert!(message.contains(part), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
    assert!(contents(directory) == before, "{} was touched", path.display());
}

#[test]
fn a_text_file_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "things to remember\n".repeat(20)).expect("it writes");
    check_refused_untouched(&path, "not an SQLite database");
    fs::write(&path, "short").expect("it writes");
    check_refused_untouched(&path, "not an SQLite database");
}

#[test]
fn a_file_that_defines_more_than_tables_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    let with = |sql: &str, part: &str| {
        let _ = fs::remove_file(&path);
        Store::open(&path).expect("it opens");
        let other = Connection::open(&path).expect("it opens");
        other.execute_batch(sql).expect("it is defined");
        other.pragma_update(None, "journal_mode", "delete").expect("no log stays");
        drop(other);
        check_refused_untouched(&path, part);
        let imported = Source::open(&path).expect_err("it is not imported").to_string();
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
        let directory = scratch();
        let path = directory.path().join("results.db");
        drop(Store::open(&path).expect("it opens"));
        let log = directory.path().join(format!("results.db{suffix}"));
        let elsewhere = directory.path().join("elsewhere");
        fs::write(&elsewhere, "precious").expect("it writes");
        std::os::unix::fs::symlink(&elsewhere, &log).expect("a link is made");
        check_refused_untouched(&path, "beside it is no regular file");
        fs::remove_file(&log).expect("it goes");
        fs::hard_link(&elsewhere, &log).expect("a second name is given");
        check_refused_untouched(&path, "beside it is no regular file with one name");
        let imported = Source::open(&path).expect_err("it is somebody else's").to_string();
        assert!(imported.contains("with one name"), "{imported}");
        assert_eq!(Store::look(&path).expect_err("nor is it looked at").to_string(), imported);
        fs::remove_file(&log).expect("it goes");
        let made = std::process::Command::new("mkfifo").arg(&log).status().expect("coreutils");
        assert!(made.success());
        for refused in [Store::open(&path), Store::open_read_only(&path)] {
            let message = refused.expect_err("nobody waits").to_string();
            assert!(message.contains("beside it is no regular file"), "{message}");
        }
        let imported = Source::open(&path).expect_err("nobody waits").to_string();
        assert!(imported.contains("beside it is no regular file"), "{imported}");
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("history.sqlite");
    // Open and in WAL mode with a row that is only in the log, as a browser
    // leaves it: opening it with SQLite would already recover the log.
    let other = Connection::open(&path).expect("it opens");
    other
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        .expect("it writes");
    check_refused_untouched(&path, "of another program");
    drop(other);
    check_refused_untouched(&path, "of another program");
}

/// With a row that is only in the log, which to open it would recover.
#[test]
fn a_file_of_an_earlier_build_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    let other = Connection::open(&path).expect("it opens");
    other.pragma_update(None, "application_id", u32::from_be_bytes(*b"ioLn")).expect("marked");
    other.pragma_update(None, "user_version", 17).expect("it writes");
    other
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE run (id TEXT, plan_json TEXT)")
        .expect("it writes");
    for part in [
        "was written by an earlier build of iolens (schema 17); this build reads schema 1\n",
        "\n  keep the build that wrote it",
        "--db FILE",
    ] {
        check_refused_untouched(&path, part);
    }
    let words = Store::open(&path).expect_err("it is refused").to_string();
    assert_eq!(Store::look(&path).expect_err("nor is it looked at").to_string(), words);
    assert_eq!(Source::open(&path).expect_err("nor imported").to_string(), words);
    drop(other);
    check_refused_untouched(&path, "schema 17");
}

#[test]
fn a_file_of_ours_without_a_version_is_refused_and_untouched() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    drop(Store::open(&path).expect("it opens"));
    let connection = Connection::open(&path).expect("it opens");
    connection.pragma_update(None, "user_version", 0).expect("it writes");
    connection.close().expect("it closes");
    check_refused_untouched(&path, "its schema version is 0");
}

#[test]
fn a_newer_schema_is_refused_and_both_versions_named() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    drop(Store::open(&path).expect("it opens"));
    let newer = SCHEMA_VERSION + 6;
    let connection = Connection::open(&path).expect("it opens");
    connection.pragma_update(None, "user_version", newer).expect("it writes");
    connection.close().expect("it closes");
    check_refused_untouched(&path, &format!("schema version {newer}"));
    check_refused_untouched(&path, &format!("up to {SCHEMA_VERSION}"));
}

#[test]
fn a_newer_schema_is_seen_while_it_is_only_in_the_log() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    drop(Store::open(&path).expect("it opens"));
    let connection = Connection::open(&path).expect("it opens");
    connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("it writes");
    for refused in [Store::open(&path), Store::open_read_only(&path)] {
        assert!(matches!(refused, Err(StoreError::Newer { .. })), "{refused:?}");
    }
}

#[test]
fn our_files_carry_our_mark() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    // An empty file is nobody's: `mktemp` makes one.
    fs::write(&path, "").expect("it writes");
    drop(Store::open(&path).expect("it opens"));
    let connection = Connection::open(&path).expect("it is SQLite");
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    assert_eq!(pragma("application_id").expect("it reads"), APPLICATION_ID);
    assert_eq!(pragma("user_version").expect("it reads"), SCHEMA_VERSION);
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
    fs::write(&file, "").expect("it writes");
    let below = Store::open(&file.join("results.db")).expect_err("no file below a file");
    assert!(matches!(below, StoreError::Directory { .. }), "{below:?}");
    assert!(below.to_string().contains("--db"), "{below}");
    let itself = Store::open(directory.path()).expect_err("a directory is no file");
    assert!(itself.to_string().contains("it is a directory"), "{itself}");
}

#[test]
fn an_unwritable_directory_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let directory = scratch();
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).expect("it is made");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("it is locked");
    if fs::write(locked.join("probe"), "").is_ok() {
        let name = "refusal::an_unwritable_directory_is_named";
        return skip::note(name, "this user may write to read-only directories");
    }
    let refused = Store::open(&locked.join("results.db")).expect_err("it is read-only");
    let message = refused.to_string();
    assert!(
        message.contains("unable to open") && message.contains("must be writable"),
        "{message}"
    );
    let refused = Store::open(&locked.join("deeper/results.db")).expect_err("it is read-only");
    assert!(matches!(refused, StoreError::Directory { .. }), "{refused:?}");
}

#[test]
fn a_damaged_file_is_named_as_such() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    let mut store = Store::open(&path).expect("it opens");
    store.begin_run(&sample::header("0000000a")).expect("the run begins");
    drop(store);
    let connection = Connection::open(&path).expect("it opens");
    connection.execute("UPDATE run SET run_json = '{}'", []).expect("it is edited");
    connection.close().expect("it closes");
    let message = Store::open_read_only(&path)
        .and_then(|store| store.load("0000000a"))
        .expect_err("the plan is gone")
        .to_string();
    assert!(message.contains("column run_json: missing field"), "{message}");

    let pages = fs::read(&path).expect("it reads");
    fs::write(&path, &pages[..5000]).expect("it is cut");
    let message =
        Store::open(&path).and_then(|store| store.runs()).expect_err("pages are gone").to_string();
    assert!(message.contains("malformed") && message.contains(".recover"), "{message}");
}

/// Appending `trial` to a fresh run is refused with `part`, and stores nothing.
fn check_not_stored(trial: &TrialOutcome, part: &str) {
    let directory = scratch();
    let mut store = Store::open(&directory.path().join("results.db")).expect("it opens");
    store.begin_run(&sample::header("0000000a")).expect("the run begins");
    let message = store.append_trial("0000000a", trial).expect_err("it is refused").to_string();
    assert!(message.contains(part), "{message}");
    assert!(store.load("0000000a").expect("it loads").trials.is_empty());
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
    let directory = scratch();
    let mut store = Store::open(&directory.path().join("results.db")).expect("it opens");
    let early = store.append_trial("0000000a", &sample::trial(1, 0));
    assert!(matches!(early, Err(StoreError::NoSuchRun { .. })), "{early:?}");
    store.begin_run(&sample::header("0000000a")).expect("the run begins");
    let again = store.begin_run(&sample::header("0000000a")).expect_err("it has begun");
    assert!(again.to_string().contains("UNIQUE"), "{again}");
    let mut header = sample::header("0000000b");
    header.calibration.loop_ns = u64::MAX;
    store.begin_run(&header).expect("JSON holds every u64");
    header.id = "0000000c".to_owned();
    header.calibration.empty_call_ns = f64::NAN;
    let refused = store.begin_run(&header).expect_err("JSON has no NaN");
    assert!(matches!(refused, StoreError::NotStorable { .. }), "{refused:?}");
}

#[test]
fn an_empty_file_is_not_one_that_does_not_exist() {
    let directory = scratch();
    let path = directory.path().join("results.db");
    fs::write(&path, "").expect("it writes");
    let message = Store::open_read_only(&path).expect_err("nothing is in it").to_string();
    assert!(message.contains("the file is empty") && message.contains("--db"), "{message}");
    assert!(!message.contains("does not exist"), "{message}");
}

//! A file that an older build wrote opens, keeps what it has, and takes what
//! is new.

use std::path::Path;

use iolens_model::outcome::{KernelCounts, PmuCounts};
use iolens_store::{SCHEMA_VERSION, Store, StoreError};
use rusqlite::{Connection, params};

use crate::{sample, skip};

/// The tables of version 1, as that build made them.
const VERSION_1: &str = include_str!("../../src/schema_1.sql");

/// A file of version 1 with one run, whose JSON lacks what came later.
fn version_1(path: &Path) {
    let connection = Connection::open(path).expect("it opens");
    connection.execute_batch(VERSION_1).expect("the tables are made");
    let header = sample::header("0000000a");
    let without = |json: serde_json::Value, key: &str| {
        let mut json = json;
        json.as_object_mut().expect("an object").remove(key).expect("the key is new");
        json.to_string()
    };
    // A plan named one receiver.
    let one_receiver =
        |plan: String| plan.replace(r#""receivers":["recv"]"#, r#""receiver":"recv""#);
    let json = |value: serde_json::Result<serde_json::Value>| value.expect("it is JSON");
    let values = params![
        "0000000a",
        "net",
        json(serde_json::to_value(&header.command)).to_string(),
        one_receiver(without(json(serde_json::to_value(&header.plan)), "probes")),
        json(serde_json::to_value(&header.host)).to_string(),
        without(json(serde_json::to_value(&header.calibration)), "costs"),
    ];
    let sql = "INSERT INTO run (id, started_unix_ns, build, study, command_json, plan_json, \
               primitives_json, host_json, calibration_json) VALUES (?1, 7, 'iolens 0.1.0', ?2, \
               ?3, ?4, '[]', ?5, ?6)";
    connection.execute(sql, values).expect("the run begins");
    let environment = json(serde_json::to_value(sample::trial(1, 0).environment)).to_string();
    let sql = "INSERT INTO trial (run, pass, position, isolated, topology, mode, working_set, \
               fields, iovec, receiver, threads, message_bytes, started_unix_ns, duration_ns, \
               status, environment_json) VALUES (1, 1, 0, 0, 'loopback', 'stream', 'hot', 8, \
               'per_message', 'recv', 1, 64, 8, 9, 'ok', ?)";
    connection.execute(sql, [environment]).expect("the trial is appended");
    let rows = "INSERT INTO arm (trial, arm, label, primitive, role, status) \
                VALUES (1, 0, 'send_staged', 'send_staged', 'baseline', 'ok'); \
                INSERT INTO slice (trial, seq, round, kind, arm, all_active_ns, tx_messages, \
                tx_bytes, tx_calls, tx_time_ns, tx_cycles_user) \
                VALUES (1, 0, 0, 'measured', 0, 5, 100, 6400, 100, 6, 4711);";
    connection.execute_batch(rows).expect("the slice is appended");
    connection.pragma_update(None, "application_id", iolens_store::APPLICATION_ID).expect("ours");
    connection.pragma_update(None, "user_version", 1).expect("version 1");
}

fn check_old_run(store: &Store) {
    let run = store.load("0000000a").expect("the old run loads");
    assert_eq!(run.header.calibration.costs, None);
    assert_eq!(run.header.plan, sample::header("0000000a").plan, "new keys have their defaults");
    let slice = &run.trials[0].slices[0];
    assert_eq!((slice.tx.messages, slice.tx.pmu.cycles_user), (100, Some(4711)));
    let later = (slice.tx.pmu.branches, slice.tx.run_delay_ns, slice.tx.segments_out);
    assert_eq!(later, (None, None, None));
    assert_eq!(slice.tx.kernel, KernelCounts::default());
}

#[test]
fn a_file_of_version_1_is_brought_up_to_date_by_a_run() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    version_1(&path);
    let mut store = Store::open(&path).expect("it migrates");
    check_old_run(&store);
    // And it takes what version 1 had no column for.
    let mut trial = sample::trial(2, 0);
    let tx = &mut trial.slices[0].tx;
    tx.pmu = PmuCounts { stalled_cycles_backend: Some(3), ..PmuCounts::default() };
    tx.kernel = KernelCounts { cpu_context_switches: Some(5), ..KernelCounts::default() };
    tx.run_delay_ns = Some(7);
    tx.segments_out = Some(11);
    store.append_trial("0000000a", &trial).expect("it appends");
    assert_eq!(store.load("0000000a").expect("it loads").trials[1], trial);
}

#[test]
fn a_file_of_version_1_is_read_by_who_only_reads() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    version_1(&path);
    let store = Store::open_read_only(&path).expect("it migrates first");
    check_old_run(&store);
    let connection = Connection::open(&path).expect("it is SQLite");
    let version: u32 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it reads");
    assert_eq!(version, SCHEMA_VERSION);
}

#[test]
fn a_file_of_version_1_that_may_not_be_written_says_so() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    version_1(&path);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).expect("locked");
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        let name = "migration::a_file_of_version_1_that_may_not_be_written_says_so";
        return skip::note(name, "this user may write to read-only files");
    }
    let refused = Store::open_read_only(&path).expect_err("it cannot be migrated");
    assert!(matches!(refused, StoreError::Older { found: 1, .. }), "{refused:?}");
    assert!(refused.to_string().contains("cannot bring the file up to date"), "{refused}");
}

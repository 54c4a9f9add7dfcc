//! A file that an older build wrote opens, keeps what it has, and takes what
//! is new.

use std::path::Path;

use iolens_model::axes::IpVersion;
use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{EndFacts, KernelCounts, PmuCounts};
use iolens_model::plan::{NetworkAxes, Plan};
use iolens_model::run::RunHeader;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use iolens_store::{SCHEMA_VERSION, Store, StoreError};
use rusqlite::{Connection, params};

use crate::round_trip::end;
use crate::{sample, skip};

/// The tables of each version before this one, as its build made them.
const STEPS: [&str; SCHEMA_VERSION as usize - 1] = [
    include_str!("../../src/schema_1.sql"),
    include_str!("../../src/schema_2.sql"),
    include_str!("../../src/schema_3.sql"),
    include_str!("../../src/schema_4.sql"),
    include_str!("../../src/schema_5.sql"),
    include_str!("../../src/schema_6.sql"),
    include_str!("../../src/schema_7.sql"),
    include_str!("../../src/schema_8.sql"),
    include_str!("../../src/schema_9.sql"),
    include_str!("../../src/schema_10.sql"),
    include_str!("../../src/schema_11.sql"),
    include_str!("../../src/schema_12.sql"),
    include_str!("../../src/schema_13.sql"),
    include_str!("../../src/schema_14.sql"),
    include_str!("../../src/schema_15.sql"),
    include_str!("../../src/schema_16.sql"),
];

/// A plan as builds before version 7 wrote it: of most axes it named one value,
/// and of some none.
fn older_plan(header: &RunHeader) -> String {
    let mut plan = serde_json::to_value(&header.plan).expect("it is JSON");
    for one in ["/fields", "/iovec", "/socket/buffer_bytes", "/socket/receive_bytes"] {
        let list = plan.pointer_mut(one).expect("the plan has it");
        *list = list[0].take();
    }
    let object = plan.as_object_mut().expect("an object");
    object["network"] = serde_json::json!({ "ip": "ipv6", "mtu_bytes": 9000 });
    for (key, was) in [("receivers", Some("receiver")), ("probes", None), ("batches", None)] {
        let value = object.remove(key).expect("the key is new");
        if let Some(was) = was {
            object.insert(was.to_owned(), value[0].clone());
        }
    }
    plan.to_string()
}

/// The same plan as this build has it.
fn older_plan_now() -> Plan {
    let mut plan = sample::header("0000000a").plan;
    let net = plan.net_mut().expect("it is of net");
    net.network = NetworkAxes { ip: vec![IpVersion::V6], mtu_bytes: vec![9000] };
    plan
}

fn version_1(path: &Path) {
    of_version(path, 1);
}

/// A file of an older version with one run, whose JSON lacks what came later.
pub(crate) fn of_version(path: &Path, version: usize) {
    let connection = Connection::open(path).expect("it opens");
    for step in &STEPS[..version] {
        connection.execute_batch(step).expect("the tables are made");
    }
    let header = sample::header("0000000a");
    let without = |json: serde_json::Value, key: &str| {
        let mut json = json;
        json.as_object_mut().expect("an object").remove(key).expect("the key is new");
        json.to_string()
    };
    let json = |value: serde_json::Result<serde_json::Value>| value.expect("it is JSON");
    let values = params![
        "0000000a",
        "net",
        json(serde_json::to_value(&header.command)).to_string(),
        older_plan(&header),
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
    connection.pragma_update(None, "user_version", version).expect("its version");
}

pub(crate) fn check_old_run(store: &Store) {
    let run = store.load("0000000a").expect("the old run loads");
    assert_eq!(run.header.calibration.costs, None);
    assert_eq!(run.header.plan, older_plan_now(), "new keys have their defaults");
    assert_eq!(run.trials[0].cell, older_plan_now().cells()[0]);
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
fn what_a_run_had_one_of_each_of_is_read_from_its_plan() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    of_version(&path, 6);
    let connection = Connection::open(&path).expect("it opens");
    let mut cell = serde_json::to_value(&older_plan_now().cells()[0]).expect("it is JSON");
    cell.as_object_mut().expect("an object").remove("tuning").expect("the key is new");
    let sql = "INSERT INTO profile (run, number, cell_json, started_unix_ns, status, period_ns, \
               not_measured_json) VALUES (1, 1, ?, 7, 'ok', 1000000, '[]')";
    connection.execute(sql, [cell.to_string()]).expect("a sampled trial is appended");
    let store = Store::open(&path).expect("it migrates");
    check_old_run(&store);
    let run = store.load("0000000a").expect("the old run loads");
    let expected = Tuning {
        ip: IpVersion::V6,
        mtu_bytes: None, // over loopback it was not that of the plan
        socket_buffer: Bytes(4 << 20),
        ..Tuning::DEFAULT
    };
    assert_eq!(run.trials[0].cell.net().expect("of net").tuning, expected);
    assert_eq!(run.profiles[0].cell, run.trials[0].cell);
}

#[test]
fn the_trials_of_version_7_keep_their_keys_arms_and_slices() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    of_version(&path, 7);
    let connection = Connection::open(&path).expect("it opens");
    let later = "UPDATE trial SET ip = 'ipv6', socket_buffer = 4194304, uring_depth = 1, \
                 uring_batch = 1, receive_size = 131072";
    connection.execute_batch(later).expect("what version 7 has");
    drop(connection);
    let mut store = Store::open(&path).expect("it migrates");
    check_old_run(&store);
    // What refers to a trial still goes with it, and nothing else does.
    store.append_trial("0000000a", &sample::trial(2, 0)).expect("it appends");
    let connection = Connection::open(&path).expect("it opens");
    connection.pragma_update(None, "foreign_keys", true).expect("as every build has it");
    let count = |table: &str| -> u32 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).expect("it counts")
    };
    let before = ["trial", "arm", "slice"].map(count);
    connection.execute("DELETE FROM trial WHERE trial = 1", []).expect("it goes");
    let after = ["trial", "arm", "slice"].map(count);
    assert_eq!(std::array::from_fn(|i| before[i] - after[i]), [1, 1, 1]);
    assert_eq!(after[0], 1);
}

#[test]
fn no_calls_of_a_program_are_none_that_anybody_counted() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    of_version(&path, 10);
    let connection = Connection::open(&path).expect("it opens");
    let copies = "INSERT INTO run (id, started_unix_ns, build, study, command_json, plan_json, \
                  primitives_json, host_json, calibration_json) \
                  VALUES ('0000000b', 7, 'iolens 0.1.0', 'copy', '[]', '{}', '[]', '{}', '{}'); \
                  INSERT INTO trial (run, pass, position, isolated, threads, cell_json, \
                  started_unix_ns, duration_ns, status, environment_json) \
                  VALUES (2, 1, 0, 0, 1, '{}', 8, 9, 'ok', '{}'); \
                  INSERT INTO arm (trial, arm, label, primitive, role, status) VALUES \
                  (2, 0, 'read_write', 'read_write', 'baseline', 'ok'), \
                  (2, 1, 'dd', 'dd', 'compared', 'ok'); \
                  INSERT INTO slice (trial, seq, round, kind, arm, all_active_ns, tx_messages, \
                  tx_bytes, tx_calls, tx_time_ns) VALUES \
                  (1, 1, 0, 'measured', 0, 5, 1, 10, 0, 6), \
                  (2, 0, 0, 'measured', 0, 5, 1, 10, 4, 6), \
                  (2, 1, 0, 'measured', 1, 5, 1, 10, 0, 6);";
    connection.execute_batch(copies).expect("a run of copies is appended");
    check_old_run(&Store::open(&path).expect("it migrates"));
    let mut rows = connection.prepare("SELECT tx_calls FROM slice ORDER BY trial, seq").unwrap();
    let calls = rows.query_map([], |row| row.get(0)).unwrap();
    let calls: Vec<Option<u64>> = calls.collect::<Result<_, _>>().expect("the rows are read");
    assert_eq!(calls, [Some(100), Some(0), Some(4), None]);
}

/// What the ends of trials said is told apart into what many share and what each has, without
/// loss, and as a build that stores it so does.
#[test]
fn what_the_ends_of_version_16_said_is_what_they_say() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let (old, new) = (directory.path().join("old.db"), directory.path().join("new.db"));
    of_version(&old, 16);
    let mut trials: Vec<_> = (2..6).map(|pass| sample::trial(pass, 0)).collect();
    for (trial, said) in trials.iter_mut().zip(1..) {
        let tx = trial.tx.insert(end(u64::MAX >> said, "cubic"));
        tx.starts =
            vec![ProgramStart { arm: 1, runs: 2, median_ns: said, min_ns: said, max_ns: 1 << 40 }];
        tx.mss_bytes = Some(said % 2);
        let rx = trial.rx.insert(end(said, "bbr"));
        rx.strangers = (said > 2).then_some(said);
        rx.min_round_trip_ns = Some(said);
    }
    trials[3].rx = None;
    let connection = Connection::open(&old).expect("it opens");
    let json = |facts: &Option<EndFacts>| facts.as_ref().map(|f| serde_json::to_string(f).unwrap());
    for trial in &trials {
        let sql = "INSERT INTO trial (run, pass, position, isolated, topology, mode, working_set, \
                   fields, iovec, receiver, threads, message_bytes, started_unix_ns, \
                   duration_ns, status, environment_json, tx_json, rx_json) VALUES (1, ?, 0, 0, \
                   'loopback', 'stream', 'hot', 8, 'per_message', 'recv', 1, 64, 8, 9, 'ok', ?, \
                   ?, ?)";
        let environment = serde_json::to_string(&trial.environment).unwrap();
        let values = params![trial.pass, environment, json(&trial.tx), json(&trial.rx)];
        connection.execute(sql, values).expect("it is appended");
    }
    drop(connection);
    let run = Store::open(&old).expect("it migrates").load("0000000a").expect("it loads");
    assert_eq!((&run.trials[0].tx, &run.trials[0].rx), (&None, &None));
    for (migrated, trial) in run.trials[1..].iter().zip(&trials) {
        assert_eq!((&migrated.tx, &migrated.rx), (&trial.tx, &trial.rx));
    }
    let mut store = Store::open(&new).expect("it opens");
    store.begin_run(&sample::header("0000000a")).expect("it begins");
    for trial in &trials {
        store.append_trial("0000000a", trial).expect("it appends");
    }
    let stored = |path: &Path| -> Vec<[String; 4]> {
        let connection = Connection::open(path).expect("it opens");
        let sql = "SELECT ifnull(tx.facts_json, ''), ifnull(tx_own_json, ''), \
                   ifnull(rx.facts_json, ''), ifnull(rx_own_json, '') FROM trial \
                   LEFT JOIN end_facts AS tx ON tx.run = trial.run AND tx.number = tx_facts \
                   LEFT JOIN end_facts AS rx ON rx.run = trial.run AND rx.number = rx_facts \
                   WHERE pass > 1 ORDER BY trial";
        let mut rows = connection.prepare(sql).expect("it reads");
        let rows =
            rows.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
        rows.expect("it reads").collect::<Result<_, _>>().expect("it reads")
    };
    assert_eq!(stored(&old), stored(&new));
    let connection = Connection::open(&old).expect("it opens");
    let count = "SELECT count(*), max(number) FROM end_facts";
    let texts: (u32, u32) =
        connection.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("it reads");
    assert_eq!(texts, (3, 2), "two of the sending end, one of the receiving one");
}

/// Damage in one run is met when that is read, and does not keep the file from the others.
#[test]
fn what_is_no_json_in_version_16_is_left_to_be_met() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("results.db");
    of_version(&path, 16);
    let connection = Connection::open(&path).expect("it opens");
    connection.execute("UPDATE trial SET tx_json = '{\"bracket_ns\":1'", []).expect("damaged");
    let store = Store::open(&path).expect("it migrates");
    let refused = store.load("0000000a").expect_err("it is damaged").to_string();
    assert!(refused.contains("tx_own_json"), "{refused}");
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

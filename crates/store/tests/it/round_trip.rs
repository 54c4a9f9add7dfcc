//! What goes in comes out, also after the file was closed, and while it grows.

use iolens_model::outcome::{EndFacts, TrialOutcome};
use iolens_model::run::{Run, RunEnd, RunHeader, StoppedBy};
use iolens_store::Store;
use proptest::prelude::*;

use crate::{arbitrary, results, sample};

pub(crate) fn append(store: &mut Store, run: &Run) {
    store.begin_run(&run.header).unwrap();
    for trial in &run.trials {
        store.append_trial(&run.header.id, trial).unwrap();
    }
    for profile in &run.profiles {
        store.append_profile(&run.header.id, profile).unwrap();
    }
    for phase in &run.searches {
        store.append_search(&run.header.id, phase).unwrap();
    }
    if let Some(end) = &run.header.end {
        store.end_run(&run.header.id, end).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_run_comes_out_as_it_went_in(run in arbitrary::run()) {
        let (_directory, path, mut store) = results(&[]);
        append(&mut store, &run);
        prop_assert_eq!(&store.load(&run.header.id).unwrap(), &run);
        drop(store);
        let store = Store::open_read_only(&path).unwrap();
        prop_assert_eq!(&store.load(&run.header.id).unwrap(), &run);
        let begun = RunHeader { end: None, ..run.header.clone() };
        prop_assert_eq!(&store.header(&run.header.id).unwrap(), &begun);
    }
}

/// An end that read counters for so long.
pub(crate) fn end(bracket_ns: u64, congestion: &str) -> EndFacts {
    EndFacts {
        build: "0.1.0".to_owned(),
        message_bytes: 1024,
        threads: 1,
        thread_cpus: vec![vec![0]],
        congestion: Some(congestion.to_owned()),
        bracket_ns,
        ..EndFacts::default()
    }
}

/// Columns that no slice has are not read: which ones those are changes while a run grows.
#[test]
fn what_only_a_later_slice_has_is_read_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut wanted = [1, 2, 3].map(|pass| sample::trial(pass, 0));
    wanted[1].slices[1].tx.softirq_ticks = Some(7);
    wanted[2].slices[0].rx = Some(wanted[2].slices[0].tx);
    wanted[2].slices[1].tx.pmu.cycles_user = Some(1_000);
    let header = sample::header("0000000a");
    Store::open(&path).unwrap().begin_run(&header).unwrap();
    for (index, trial) in wanted.iter().enumerate() {
        let mut store = Store::open(&path).unwrap();
        store.append_trial("0000000a", trial).unwrap();
        assert_eq!(store.load("0000000a").unwrap().trials, wanted[..=index]);
    }
}

#[test]
fn trials_are_shown_one_by_one_and_let_go() {
    let (_directory, _, mut store) = results(&["0000000a", "0000000b"]);
    // Of two runs in turn, and what their ends say in every way in which it may change.
    let mut wanted = Vec::new();
    for pass in 1..=8 {
        let mut trial = sample::trial(pass, 0);
        trial.tx = Some(end(pass.into(), "reno"));
        match pass {
            2 => trial.tx = None,
            4 | 6 => trial.tx = Some(end(pass.into(), "bbr")),
            5 => trial.slices.clear(),
            7 => {
                trial.slices.clear();
                trial.arms.clear();
            }
            _ => {}
        }
        let id = if pass == 3 { "0000000b" } else { "0000000a" };
        store.append_trial(id, &trial).unwrap();
        if id == "0000000a" {
            wanted.push(trial);
        }
    }
    let see = |passes: &mut Vec<u32>, header: &RunHeader, trial: &TrialOutcome| {
        assert_eq!(header.id, "0000000a");
        passes.push(trial.pass);
    };
    let (run, stretches) = store.load_folded("0000000a", see).unwrap();
    assert_eq!(run.trials, []);
    assert_eq!(stretches, [vec![1, 2, 4, 5, 6, 7, 8]]);
    assert_eq!(store.load("0000000a").unwrap().trials, wanted);
    assert_eq!(store.load("0000000b").unwrap().trials.len(), 1);
}

/// By two readers at once, beside another run whose trials lie between.
#[test]
fn a_long_run_comes_in_stretches() {
    let (_directory, _, mut store) = results(&["0000000a", "0000000b"]);
    let short = |pass: u32| TrialOutcome {
        tx: Some(end(pass.into(), "reno")),
        slices: Vec::new(),
        ..sample::trial(pass, 0)
    };
    let wanted: Vec<TrialOutcome> = (1..=1001).map(short).collect();
    for trial in &wanted {
        let id = if trial.pass % 10 == 0 { "0000000b" } else { "0000000a" };
        store.append_trial(id, trial).unwrap();
        if id == "0000000b" {
            store.append_trial("0000000a", trial).unwrap();
        }
    }
    let see = |passes: &mut Vec<u32>, _: &RunHeader, trial: &TrialOutcome| {
        passes.push(trial.pass);
    };
    let (_, stretches) = store.load_folded("0000000a", see).unwrap();
    // Of 1101 keys, a hundred are of the other run.
    assert_eq!(stretches, [(1..=500).collect::<Vec<_>>(), (501..=1001).collect()]);
    let run = store.load("0000000a").unwrap();
    assert!(run.trials == wanted, "{} trials", run.trials.len());
}

/// A run that is gone on with has no end as long as it goes on.
#[test]
fn a_phase_that_came_after_the_end_of_a_run_takes_it_back() {
    let (_directory, _, mut store) = results(&["0000000a"]);
    let phase = sample::phase();
    store.append_search("0000000a", &phase).unwrap();
    let end = RunEnd {
        finished_unix_ns: 1,
        stopped_by: StoppedBy::Budget,
        unmet: Vec::new(),
        paused_ns: 0,
    };
    store.end_run("0000000a", &end).unwrap();
    let run = store.load("0000000a").unwrap();
    assert_eq!((&run.searches[..], run.header.end), (&[phase.clone()][..], Some(end.clone())));
    assert_eq!(store.headers().unwrap()[0].end, Some(end.clone()));
    assert_eq!(store.runs().unwrap()[0].end, Some(end));
    store.append_search("0000000a", &phase).unwrap();
    assert_eq!(store.load("0000000a").unwrap().header.end, None);
    assert_eq!(store.runs().unwrap()[0].end, None);
}

#[test]
fn the_directory_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("not/yet/there/results.db");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.path(), path);
    assert!(store.runs().unwrap().is_empty());
}

#[test]
fn a_reader_sees_whole_trials_while_a_writer_appends() {
    let (_directory, path, mut writer) = results(&[]);
    writer.begin_run(&sample::header("0000000a")).unwrap();
    let reader = Store::open_read_only(&path).unwrap();
    for appended in 1..=20 {
        writer.append_trial("0000000a", &sample::trial(appended, 0)).unwrap();
        let run = reader.load("0000000a").unwrap();
        assert_eq!(run.trials.len(), appended as usize);
        assert!(run.trials.iter().all(|trial| trial.slices.len() == 2));
    }
}

#[test]
fn two_writers_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let ids = ["0000000a", "0000000b"];
    std::thread::scope(|scope| {
        for id in ids {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::open(path).unwrap();
                store.begin_run(&sample::header(id)).unwrap();
                for pass in 1..=20 {
                    store.append_trial(id, &sample::trial(pass, 0)).unwrap();
                }
            });
        }
    });
    let store = Store::open_read_only(&path).unwrap();
    for id in ids {
        assert_eq!(store.load(id).unwrap().trials.len(), 20);
    }
}

#[test]
fn the_end_of_a_run_holds_until_a_trial_follows_it() {
    let (_directory, _, mut store) = results(&[]);
    let ended = |store: &Store| store.runs().unwrap().remove(0).ended();
    store.begin_run(&sample::header("0000000a")).unwrap();
    assert_eq!(ended(&store), "killed or still running");
    store.append_trial("0000000a", &sample::trial(1, 0)).unwrap();
    let interrupted = RunEnd { stopped_by: StoppedBy::Interrupted, ..sample::end() };
    store.end_run("0000000a", &interrupted).unwrap();
    assert_eq!(ended(&store), "interrupted");
    store.append_trial("0000000a", &sample::trial(1, 1)).unwrap();
    assert_eq!(ended(&store), "killed or still running");
    assert_eq!(store.load("0000000a").unwrap().header.end, None);
    store.end_run("0000000a", &sample::end()).unwrap();
    assert_eq!(store.load("0000000a").unwrap().header.end, Some(sample::end()));
}

#[test]
fn a_new_file_is_its_users_alone_and_an_old_one_stays_as_open_as_it_was() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let mode = |suffix: &str| {
        let path = folder.path().join(format!("results.db{suffix}"));
        path.metadata().unwrap().permissions().mode() & 0o777
    };
    let store = Store::open(&path).unwrap();
    store.runs().unwrap();
    assert_eq!([mode(""), mode("-wal"), mode("-shm")], [0o600; 3]);
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let store = Store::open(&path).unwrap();
    store.runs().unwrap();
    assert_eq!([mode(""), mode("-wal"), mode("-shm")], [0o640; 3]);
}

#[test]
fn who_only_reads_leaves_the_file_and_what_lies_beside_it_as_they_were() {
    let (folder, path, store) = results(&["0000000a"]);
    let beside = || -> Vec<(String, Vec<u8>)> {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap());
        let mut all: Vec<_> = files
            .map(|file| (file.file_name(), std::fs::read(file.path()).unwrap()))
            .map(|(name, bytes)| (name.into_string().unwrap(), bytes))
            .collect();
        all.sort();
        all
    };
    let read = || Store::open_read_only(&path).unwrap().load("0000000a").unwrap();
    let (names, while_written): (Vec<String>, Vec<_>) = beside().into_iter().unzip();
    assert_eq!(names, ["results.db", "results.db-shm", "results.db-wal"]);
    let run = read();
    let after: Vec<Vec<u8>> = beside().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!([&after[0], &after[2]], [&while_written[0], &while_written[2]]);
    drop(store);
    let closed = beside();
    assert_eq!(closed.len(), 1);
    let reader = Store::open_read_only(&path).unwrap();
    assert_eq!(reader.load("0000000a").unwrap(), run);
    let mut refused = Store::open_read_only(&path).unwrap();
    assert!(refused.remove(&["0000000a".to_owned()]).is_err(), "it was opened to read");
    drop((reader, refused));
    assert_eq!(read(), run);
    assert_eq!(beside(), closed);
}

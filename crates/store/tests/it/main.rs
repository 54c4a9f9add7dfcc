//! The store through its public face: what goes in comes out, nothing that is
//! not ours is touched, and nothing committed is lost.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arbitrary;
mod crash;
mod endless;
mod import;
mod lookup;
mod refusal;
mod round_trip;
mod sample;
#[path = "../../../../tests/support/skip.rs"]
mod skip;
mod upkeep;

use std::path::PathBuf;

use iolens_store::Store;
use tempfile::TempDir;

/// A folder for the test, and a new file of results in it in which these runs have begun.
fn results(ids: &[&str]) -> (TempDir, PathBuf, Store) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let mut store = Store::open(&path).unwrap();
    ids.iter().for_each(|id| store.begin_run(&sample::header(id)).unwrap());
    (directory, path, store)
}

/// A run of one trial and one phase, from its begin to its end.
fn small_run(store: &mut Store, id: &str) {
    store.begin_run(&sample::header(id)).unwrap();
    store.append_trial(id, &sample::trial(1, 0)).unwrap();
    store.append_search(id, &sample::phase()).unwrap();
    store.end_run(id, &sample::end()).unwrap();
}

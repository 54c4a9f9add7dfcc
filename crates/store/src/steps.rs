//! A limit on what an operation may cost. SQLite follows the pages of a file wherever they
//! lead: where many of them lead to the same one, a small file has more rows than anybody has
//! time for.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use crate::beside::beside;

/// Steps of SQLite's virtual machine between two looks at how many there were.
const EVERY: u16 = 10_000;

/// Steps that any operation may take: a fraction of a second.
const ANY: u64 = 1_000_000;

/// Steps that it may take besides, for each byte of the file. An import, which reads all of it
/// several times, takes less than one (see the tests).
const PER_BYTE: u64 = 20;

/// Steps that were taken since an operation began.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps(Arc<AtomicU64>);

impl Steps {
    /// Interrupts what takes more steps on this connection than a file of so many `bytes` needs.
    ///
    /// Errors: what SQLite says.
    pub(crate) fn limit(
        connection: &mut Connection,
        bytes: impl Fn() -> u64 + Send + 'static,
    ) -> rusqlite::Result<Steps> {
        let steps = Steps::default();
        let taken = steps.clone();
        let is_too_much = move || {
            let taken = taken.0.fetch_add(EVERY.into(), Ordering::Relaxed) + u64::from(EVERY);
            taken > ANY && taken - ANY > bytes().saturating_mul(PER_BYTE)
        };
        connection.progress_handler(EVERY.into(), Some(is_too_much))?;
        Ok(steps)
    }

    /// Begins an operation.
    pub(crate) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// How many there were, about.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes of a file and the log beside it, as they are when it is asked.
pub(crate) fn bytes_of(path: &Path) -> impl Fn() -> u64 + Send + 'static {
    let files: [PathBuf; 2] = [path.to_owned(), beside(path, "-wal")];
    move || files.iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum()
}

#[cfg(test)]
#[allow(dead_code, reason = "it is of other tests too")]
#[path = "../tests/it/sample.rs"]
mod sample;

#[cfg(test)]
mod tests {
    use iolens_model::outcome::SliceOutcome;

    use super::*;
    use crate::{Importing, Source, Store};

    /// Steps of an operation for each byte of the file.
    fn per_byte(store: &Store, bytes: u64, operation: impl FnOnce(&Store)) -> f64 {
        store.steps.begin();
        operation(store);
        store.steps.taken() as f64 / bytes as f64
    }

    #[test]
    fn a_sound_file_takes_a_fraction_of_the_steps_that_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        let mut store = Store::open(&path).unwrap();
        for run in 0..40_u32 {
            let id = format!("{run:08x}");
            store.begin_run(&sample::header(&id)).unwrap();
            // Many runs of a few trials, and one of many.
            for pass in 1..=if run == 7 { 300 } else { 3 } {
                let mut trial = sample::trial(pass, 0);
                // Of all rows those of slices are the shortest.
                let slices = trial.slices.clone().into_iter().cycle();
                trial.slices =
                    (0..80).zip(slices).map(|(seq, slice)| SliceOutcome { seq, ..slice }).collect();
                store.append_trial(&id, &trial).unwrap();
            }
            store.end_run(&id, &sample::end()).unwrap();
        }
        store.compact().unwrap();
        let bytes = bytes_of(&path)();
        let mut all = vec![
            ("load", per_byte(&store, bytes, |store| drop(store.load("00000007").unwrap()))),
            ("runs", per_byte(&store, bytes, |store| drop(store.runs().unwrap()))),
            ("headers", per_byte(&store, bytes, |store| drop(store.headers().unwrap()))),
            ("find", per_byte(&store, bytes, |store| drop(store.find("last").unwrap()))),
        ];
        let source = Source::open(&path).unwrap();
        let mut other = Store::open(&folder.path().join("other.db")).unwrap();
        let here = sample::header("0000000f").host;
        let how = Importing { host: Some("other"), here: &here, now_unix_ns: 7 };
        assert_eq!(other.import(&source, &how).unwrap().len(), 40);
        all.push(("import", source.store.steps.taken() as f64 / bytes as f64));
        let ids = store.run_ids().unwrap();
        store.remove(&ids).unwrap();
        all.push(("remove", store.steps.taken() as f64 / bytes as f64));
        println!("{bytes} bytes: {all:.3?}");
        for (operation, per_byte) in all {
            assert!(per_byte < PER_BYTE as f64 / 4.0, "{operation}: {per_byte}");
        }
    }
}

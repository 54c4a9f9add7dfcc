//! Runs that are stored, by what names them.

use std::path::{Path, PathBuf};
use std::thread;

use iolens_model::origin::told_apart;
use iolens_model::run::{Run, RunHeader};
use iolens_stats::Fold;
use iolens_stats::analysis::Analysis;
use iolens_store::{Store, StoreError};

use crate::failure::Failure;
use crate::{output, places};

/// Opens the database without changing it.
pub(crate) fn open(db: Option<&Path>) -> Result<(Store, PathBuf), Failure> {
    let path = places::existing_database(db)?;
    let store = Store::open_read_only(&path)?;
    Ok((store, path))
}

/// What `read` finds of a run by its id, the beginning of it, its name, or `last`; and the
/// database.
fn found<T>(
    db: Option<&Path>,
    wanted: &str,
    read: impl FnOnce(&Store, &str) -> Result<T, StoreError>,
) -> Result<(T, PathBuf), Failure> {
    let (store, path) = open(db)?;
    let id = store.find(wanted).map_err(Failure::usage)?;
    Ok((read(&store, &id)?, path))
}

/// A whole run, and its database.
pub(crate) fn load(db: Option<&Path>, wanted: &str) -> Result<(Run, PathBuf), Failure> {
    found(db, wanted, Store::load)
}

/// What was known of a run when it began.
pub(crate) fn header(db: Option<&Path>, wanted: &str) -> Result<RunHeader, Failure> {
    Ok(found(db, wanted, Store::header)?.0)
}

/// A run without its trials, with its analysis, and its database: what pages are made of.
pub(crate) fn summed(db: Option<&Path>, wanted: &str) -> Result<(Run, Analysis, PathBuf), Failure> {
    let ((run, analysis), path) = found(db, wanted, summed_in)?;
    Ok((run, analysis, path))
}

/// A run without its trials, with its analysis, and what runs that confirm it have found. One of
/// those that is damaged, or of another machine, takes nothing from the run and adds nothing.
pub(crate) fn summed_in(store: &Store, id: &str) -> Result<(Run, Analysis), StoreError> {
    let (run, mut analysis) = folded(store, id)?;
    for confirming in store.confirming(id)? {
        let of_sizes = store.header(&confirming).and_then(|fresh| {
            match of_another_machine(&run.header, &fresh) {
                None => Ok(Ok(folded(store, &confirming)?.1)),
                Some(why) => Ok(Err(why)),
            }
        });
        let why = match of_sizes {
            Ok(Ok(of_sizes)) => {
                analysis.confirm(&of_sizes);
                continue;
            }
            Ok(Err(why)) | Err(StoreError::Damaged { why, .. }) => why,
            Err(other) => return Err(other),
        };
        output::note(&format!(
            "note: run {confirming}, which confirms run {id}, is left out: {why}"
        ));
    }
    Ok((run, analysis))
}

/// Why a run does not speak for the machine of the one that it confirms: who wrote a file that
/// was imported chose what its runs confirm.
fn of_another_machine(run: &RunHeader, confirming: &RunHeader) -> Option<String> {
    let [own, fresh] = [run, confirming]
        .map(|header| header.origin.as_ref().map(|origin| format!("on {}", origin.host)));
    if own == fresh {
        let why = told_apart(&run.sighting(), &confirming.sighting())?;
        return Some(format!("it is of another machine ({why})"));
    }
    let [own, fresh] = [own, fresh].map(|place| place.unwrap_or_else(|| "here".to_owned()));
    Some(format!("it was measured {fresh}, and that run {own}"))
}

/// A run without its trials, with its analysis: each trial is folded into that as it is read.
fn folded(store: &Store, id: &str) -> Result<(Run, Analysis), StoreError> {
    type Part = (Option<RunHeader>, Fold);
    let (run, parts) = store.load_folded(id, |(whole, fold): &mut Part, header, trial| {
        fold.add(whole.get_or_insert_with(|| header.clone()), trial);
    })?;
    let mut fold = Fold::default();
    parts.into_iter().for_each(|(_, part)| fold.append(part));
    let analysis = fold.analysis(&run.header);
    // To free very many trials takes longer than to draw a page. Without a thread it is done here.
    let _ = thread::Builder::new().spawn(move || drop(fold));
    Ok((run, analysis))
}

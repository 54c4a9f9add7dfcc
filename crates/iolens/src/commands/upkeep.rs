//! `iolens rm` and `iolens gc`: what is taken out of the database, and the room
//! that is given back. Both hold the machine's lock while they write: a run that
//! measures is none to remove, and would measure the writing too.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolens_engine::clock;
use iolens_harness::lock::MachineLock;
use iolens_model::run::Extent;
use iolens_model::units::Nanos;
use iolens_report::json::SCHEMA;
use iolens_report::text::{self, RunRow};
use iolens_report::upkeep::{self, Collected};
use iolens_store::{RunSummary, Store};
use serde_json::json;

use crate::args;
use crate::args::Consent;
use crate::commands::run::take_lock;
use crate::commands::show::row;
use crate::failure::Failure;
use crate::output::style;
use crate::writing::remove_page;
use crate::{output, places};

/// Why upkeep waits for a run.
const BUSY: &str = "its run may be one of those that are to go, and it would measure the writing";

/// Removes runs.
pub(crate) fn rm(args: &args::Rm) -> Result<ExitCode, Failure> {
    let path = places::existing_database(args.result.db.as_deref())?;
    let mut store = Store::open(&path)?;
    let runs = named(&store, &args.runs)?;
    let Some(_lock) = allowed(&runs, &args.consent)? else { return Ok(ExitCode::SUCCESS) };
    let removed = store.remove(&ids(&runs))?;
    let pages = remove_pages(&path, &runs);
    if args.result.json {
        let object = json!({
            "schema": SCHEMA,
            "removed": runs,
            "trials": removed.trials,
            "slices": removed.slices,
            "phases": removed.phases,
            "profiles": removed.profiles,
            "freed_bytes": removed.freed,
            "pages": pages,
        });
        output::result(&format!("{object:#}"));
    } else {
        let counts = [
            (removed.trials, "trial"),
            (removed.slices, "slice"),
            (removed.phases, "phase"),
            (removed.profiles, "sampled trial"),
            (pages.len() as u64, "page"),
        ];
        output::result(&upkeep::removed(&rows(&runs), &counts, removed.freed));
        output::note("`iolens gc` gives free room back to the file system");
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes what holds nothing, and what the flags name; then gives room back.
pub(crate) fn gc(args: &args::Gc) -> Result<ExitCode, Failure> {
    let path = places::existing_database(args.result.db.as_deref())?;
    if args.dry_run {
        let store = Store::open_read_only(&path)?;
        let before = store.extent()?;
        let outdated = outdated(&store, args)?;
        let empty = empty(&store, &outdated)?;
        show(args, &path, &Done { outdated, empty, before, after: None });
        return Ok(ExitCode::SUCCESS);
    }
    let mut store = Store::open(&path)?;
    let outdated = outdated(&store, args)?;
    let Some(_lock) = allowed(&outdated, &args.consent)? else { return Ok(ExitCode::SUCCESS) };
    let before = store.extent()?;
    // Not before the lock is held: a run that has just begun holds nothing yet.
    let empty = empty(&store, &outdated)?;
    store.remove(&[ids(&outdated), ids(&empty)].concat())?;
    remove_pages(&path, &outdated);
    remove_pages(&path, &empty);
    if !store.compact()? {
        output::note("note: another process reads the database: its log stays until that ends");
    }
    let after = Some(store.extent()?);
    show(args, &path, &Done { outdated, empty, before, after });
    Ok(ExitCode::SUCCESS)
}

/// The runs that are named, each once.
fn named(store: &Store, wanted: &[String]) -> Result<Vec<RunSummary>, Failure> {
    let find = |wanted: &String| store.find(wanted).map_err(Failure::usage);
    let ids: Vec<String> = wanted.iter().map(find).collect::<Result<_, _>>()?;
    let mut runs = store.runs()?;
    runs.retain(|run| ids.contains(&run.id));
    Ok(runs)
}

/// The runs that the flags of `gc` name.
fn outdated(store: &Store, args: &args::Gc) -> Result<Vec<RunSummary>, Failure> {
    let runs = store.runs()?;
    let now_unix_ns = clock::unix_ns();
    let mut selected = select(runs, args.keep, args.older_than, now_unix_ns);
    selected.retain(|run| {
        let budget = store.header(&run.id).map_or(Nanos(u64::MAX), |header| header.plan.budget);
        !may_go_on(run, budget, now_unix_ns)
    });
    Ok(selected)
}

/// Whether a run without an end may be one that another machine measures into this file at this
/// moment: within its budget, and an hour for what it began beforehand.
fn may_go_on(run: &RunSummary, budget: Nanos, now_unix_ns: u64) -> bool {
    let longest = budget.0.saturating_add(AN_HOUR.0);
    run.end.is_none() && run.origin.is_none() && now_unix_ns.abs_diff(run.started_unix_ns) < longest
}

const AN_HOUR: Nanos = Nanos(3600 * Nanos::SECOND.0);

/// The runs that are not of the latest `keep` of this machine and began more than `older_than`
/// before `now_unix_ns`, oldest first; none where neither is given. Only a run of this machine
/// counts among the latest, and only it goes for want of room among them: the order in which
/// runs were imported says nothing. What is damaged goes by `rm` alone, as its time may be wrong.
fn select(
    mut runs: Vec<RunSummary>,
    keep: Option<u64>,
    older_than: Option<Nanos>,
    now_unix_ns: u64,
) -> Vec<RunSummary> {
    if keep.is_none() && older_than.is_none() {
        return Vec::new();
    }
    runs.retain(|run| run.damaged.is_none() && (keep.is_none() || run.origin.is_none()));
    runs.sort_by_key(|run| run.started_unix_ns);
    let keep = keep.map_or(0, |keep| usize::try_from(keep).unwrap_or(usize::MAX));
    let others = runs.len().saturating_sub(keep);
    let age = |run: &RunSummary| now_unix_ns.saturating_sub(run.started_unix_ns);
    let is_old = |run: &RunSummary| older_than.is_none_or(|limit| age(run) > limit.0);
    runs.into_iter().take(others).filter(is_old).collect()
}

/// Whether a run that holds nothing yet may be one that another machine measures into this
/// file: this machine's lock says nothing of it.
fn may_have_begun(run: &RunSummary, now_unix_ns: u64) -> bool {
    run.end.is_none() && now_unix_ns.abs_diff(run.started_unix_ns) < AN_HOUR.0
}

/// The runs that hold nothing, besides others that go.
fn empty(store: &Store, others: &[RunSummary]) -> Result<Vec<RunSummary>, Failure> {
    let ids = store.empty_runs()?;
    let mut runs = store.runs()?;
    let now_unix_ns = clock::unix_ns();
    runs.retain(|run| {
        ids.contains(&run.id)
            && !may_have_begun(run, now_unix_ns)
            && others.iter().all(|other| other.id != run.id)
    });
    Ok(runs)
}

fn ids(runs: &[RunSummary]) -> Vec<String> {
    runs.iter().map(|run| run.id.clone()).collect()
}

/// The machine's lock, under which these runs may go; null, with a word, where the user
/// says no.
fn allowed(runs: &[RunSummary], consent: &Consent) -> Result<Option<MachineLock>, Failure> {
    if may_remove(runs, consent)? {
        return take_lock(consent.wait, BUSY).map(Some);
    }
    output::note("nothing was removed");
    Ok(None)
}

/// Whether these runs may go: by `--yes`, or by who sits at the terminal.
fn may_remove(runs: &[RunSummary], consent: &Consent) -> Result<bool, Failure> {
    if runs.is_empty() || consent.yes {
        return Ok(true);
    }
    if !output::can_ask() {
        return Err(Failure::usage(
            "cannot ask whether these runs may be removed: this is not a terminal\n  \
             remove without being asked with --yes",
        ));
    }
    output::styled_note(&text::runs(&rows(runs), clock::unix_ns(), &style()));
    Ok(output::ask("remove what is listed, for good?"))
}

/// Removes the pages that iolens wrote of these runs; returns those that were
/// there. One that stays is said, and stops nothing. A run whose id is none has no page.
fn remove_pages(database: &Path, runs: &[RunSummary]) -> Vec<PathBuf> {
    let with_page = runs.iter().filter(|run| iolens_store::is_id(&run.id));
    let pages = with_page.map(|run| places::page(database, &run.id));
    pages
        .filter(|page| {
            remove_page(page).unwrap_or_else(|errno| {
                output::note(&format!("note: cannot remove {}: {errno}", page.display()));
                false
            })
        })
        .collect()
}

/// What `gc` did, or would do.
struct Done {
    outdated: Vec<RunSummary>,
    empty: Vec<RunSummary>,
    before: Extent,
    /// Null where nothing was done.
    after: Option<Extent>,
}

fn show(args: &args::Gc, path: &Path, done: &Done) {
    if args.result.json {
        let object = json!({
            "schema": SCHEMA,
            "database": path,
            "outdated": done.outdated,
            "empty": done.empty,
            "before": done.before,
            "after": done.after,
        });
        return output::result(&format!("{object:#}"));
    }
    output::result(&upkeep::collected(&Collected {
        database: &path.display().to_string(),
        outdated: &rows(&done.outdated),
        empty: &rows(&done.empty),
        before: done.before,
        after: done.after,
    }));
}

fn rows(runs: &[RunSummary]) -> Vec<RunRow> {
    runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use iolens_model::origin::Origin;

    use super::*;

    const DAY: Nanos = Nanos(86_400 * Nanos::SECOND.0);

    /// Runs that began at these days, with the day in the id.
    fn runs(days: &[u64]) -> Vec<RunSummary> {
        let run = |day: &u64| RunSummary {
            confirms: None,
            id: format!("{day:08x}"),
            name: None,
            started_unix_ns: day * DAY.0,
            build: String::new(),
            study: "net".to_owned(),
            cells: 2,
            trials: 4,
            end: None,
            host: None,
            origin: None,
            damaged: None,
        };
        days.iter().map(run).collect()
    }

    #[test]
    fn runs_go_where_every_flag_says_so() {
        let check = |keep, days: Option<u64>, expect: &[u64]| {
            let older_than = days.map(|days| Nanos(days * DAY.0));
            let chosen = select(runs(&[1, 2, 5, 9]), keep, older_than, 10 * DAY.0);
            assert_eq!(chosen, runs(expect), "{keep:?} {days:?}");
        };
        check(None, None, &[]);
        check(Some(3), None, &[1]);
        check(Some(4), None, &[]);
        check(Some(u64::MAX), None, &[]);
        check(None, Some(5), &[1, 2]);
        check(None, Some(1), &[1, 2, 5]);
        check(Some(3), Some(5), &[1]);
        check(Some(1), Some(9), &[]);
        // Runs of other machines came later, and one came into the file before it began.
        let imported = |day: u64| RunSummary {
            origin: Some(Origin {
                host: "other".to_owned(),
                path: String::new(),
                imported_unix_ns: 9 * DAY.0,
            }),
            ..runs(&[day]).remove(0)
        };
        let mixed = || [runs(&[9, 5]), vec![imported(1), imported(10)]].concat();
        assert_eq!(select(mixed(), Some(1), None, 10 * DAY.0), runs(&[5]));
        assert_eq!(select(mixed(), None, Some(Nanos(6 * DAY.0)), 10 * DAY.0), [imported(1)]);
        let torn = RunSummary { damaged: Some("torn".to_owned()), ..runs(&[1]).remove(0) };
        assert_eq!(select(vec![torn], None, Some(DAY), 10 * DAY.0), []);
        // Without an end, it may be of another host's run that has just begun.
        let new = RunSummary { started_unix_ns: 10 * DAY.0 - 1, ..runs(&[1]).remove(0) };
        assert!(may_have_begun(&new, 10 * DAY.0) && !may_have_begun(&runs(&[9])[0], 10 * DAY.0));
        // Nor does one go that is within its budget, of whatever host, unless it has ended.
        let goes_on = |run: &RunSummary, hours: u64| {
            may_go_on(run, Nanos(2 * AN_HOUR.0), run.started_unix_ns + hours * AN_HOUR.0)
        };
        let [run] = &runs(&[5])[..] else { panic!("one was asked for") };
        assert!(goes_on(run, 0) && goes_on(run, 2) && !goes_on(run, 3));
        assert!(!goes_on(&imported(5), 0), "it is measured elsewhere");
        let end = iolens_model::run::RunEnd {
            finished_unix_ns: 0,
            stopped_by: iolens_model::run::StoppedBy::Budget,
            unmet: Vec::new(),
            paused_ns: 0,
        };
        assert!(!goes_on(&RunSummary { end: Some(end), ..run.clone() }, 0));
        // A clock that was set back makes nothing old.
        assert_eq!(select(runs(&[5]), None, Some(DAY), DAY.0), []);
    }
}

//! `iolens ask`: which way to send is cheapest for one message, from a run that is stored or
//! from a short one.

use std::path::Path;
use std::process::ExitCode;

use iolens_engine::stage;
use iolens_engine::worker::protocol::BUILD;
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::plan::Plan;
use iolens_model::run::{Change, Run};
use iolens_report::ask::{Answer, Source};
use iolens_stats::analysis::Analysis;
use iolens_stats::asked::{self, Asked, Unfit};
use iolens_store::{Store, StoreError};

use crate::args::Ask;
use crate::commands::run::{How, check_here, conducted, exit_code, paged, random, said_of};
use crate::failure::{Failure, NOTHING_USABLE, this_host, unusable, usage};
use crate::output::style;
use crate::request::asked as request;
use crate::stored::load;
use crate::values::Stand;
use crate::{output, places, runner};

/// Stored runs that are read to see whether they can be believed about the cell.
const RUNS_READ_MAX: usize = 4;

/// Answers.
pub(crate) fn ask(args: &Ask, typed: &[String]) -> Result<ExitCode, Failure> {
    let host = this_host()?;
    if let Some(wanted) = &args.run {
        return answer_from(args, wanted, &host);
    }
    let check = |plan: &Plan| check_here(plan, &host);
    let seed = random() >> 16;
    let planned = request::plan_of(args, host.cpus.len(), seed, &stage::available, &check)?;
    let database = places::database(args.result.db.as_deref())?;
    let question = request::question(args, &planned.plan)
        .ok_or_else(|| Failure::usage("the plan of the short run lacks the message"))?;
    if !args.fresh {
        let looked = stored(&database, &question, &host)?;
        match looked.found {
            Some(found) => return Ok(shown(args, &found, None)),
            None if args.stored => return Err(nothing_stored(&looked, &question.cell, &database)),
            None => {}
        }
    }
    output::notes(&planned.notes);
    let look = runner::first_look(&planned.plan, &host);
    let progress = args.progress;
    let how = How { typed, database: &database, wait: args.wait, progress, perf: None };
    let run = conducted(planned, (host, None), &look, &how, runner::measure)?;
    let analysis = iolens_stats::analyse_for_both(&run);
    let place = said_of(&paged(&run, &analysis, &database));
    let found = Found { run, analysis, cell: question.cell, source: Source::Measured };
    Ok(shown(args, &found, Some(&place)))
}

/// A run that has the cell.
struct Found {
    run: Run,
    analysis: Analysis,
    cell: Cell,
    source: Source,
}

/// What a look at the stored runs has found.
struct Looked {
    found: Option<Found>,
    /// Why the others do not answer, and how many each.
    unfit: Vec<(Unfit, usize)>,
    /// Those that fit and cannot be believed about the cell.
    unusable: Vec<String>,
}

/// The stored run that answers, if there is one.
fn stored(database: &Path, question: &Asked, host: &HostFacts) -> Result<Looked, Failure> {
    let mut looked = Looked { found: None, unfit: Vec::new(), unusable: Vec::new() };
    if !database.exists() {
        return Ok(looked);
    }
    let store = Store::open_read_only(database)?;
    let mut fit = Vec::new();
    for header in store.headers()? {
        match question.fits(&header, host) {
            Ok(()) => fit.push(header),
            Err(why) => match looked.unfit.iter_mut().find(|(known, _)| *known == why) {
                Some((_, runs)) => *runs += 1,
                None => looked.unfit.push((why, 1)),
            },
        }
    }
    for header in asked::by_preference(fit).into_iter().take(RUNS_READ_MAX) {
        let run = match store.load(&header.id) {
            Ok(run) => run,
            Err(StoreError::Damaged { .. }) => {
                looked.unusable.push(header.id);
                continue;
            }
            Err(other) => return Err(other.into()),
        };
        let analysis = iolens_stats::analyse_for_both(&run);
        if !asked::is_usable(&analysis, &question.cell) {
            looked.unusable.push(header.id);
            continue;
        }
        let source = source(&run, host);
        looked.found = Some(Found { run, analysis, cell: question.cell.clone(), source });
        break;
    }
    Ok(looked)
}

fn source(run: &Run, host: &HostFacts) -> Source {
    let changes = run.header.changes(BUILD, host);
    Source::Stored(changes.into_iter().map(|Change { part, .. }| part).collect())
}

/// Answers from the run that was named, whatever machine it is of.
fn answer_from(args: &Ask, wanted: &str, host: &HostFacts) -> Result<ExitCode, Failure> {
    let (run, _) = load(args.result.db.as_deref(), wanted)?;
    let Some(cell) = request::cell_in(args, &run.header.plan) else {
        return Err(not_in(args, &run));
    };
    let missing = request::lacking(args, &run.header.plan)?;
    if !missing.is_empty() {
        return Err(usage!(
            "run {} did not compare {}; it has: {}\n  name methods that it has, or leave out --run: \
             a short run measures them",
            run.header.id,
            missing.join(", "),
            run.header.plan.primitives.join(", ")
        ));
    }
    let analysis = iolens_stats::analyse_for_both(&run);
    let source = source(&run, host);
    Ok(shown(args, &Found { run, analysis, cell, source }, None))
}

/// Prints the answer, and where the page of the run is.
fn shown(args: &Ask, found: &Found, place: Option<&str>) -> ExitCode {
    let Found { run, analysis, cell, source } = found;
    let Some(cell) = asked::find(analysis, cell) else {
        // The cells of an analysis are those of the plan, of which it is one.
        return ExitCode::from(NOTHING_USABLE);
    };
    let answer = Answer { run, analysis, cell, source };
    if args.result.json {
        output::result(&iolens_report::ask::json(&answer));
        place.into_iter().for_each(output::note);
    } else {
        output::result(&iolens_report::ask::text(&answer, &style()));
        place.into_iter().for_each(output::result);
    }
    let alone = Analysis { cells: vec![cell.clone()], ..analysis.clone() };
    match source {
        Source::Measured => ExitCode::from(exit_code(false, run, &alone)),
        // How a run ended that somebody stopped some day is not how this command ended.
        Source::Stored(_) if alone.is_usable() => ExitCode::SUCCESS,
        Source::Stored(_) => ExitCode::from(NOTHING_USABLE),
    }
}

/// That a run has another message only, and which ones it has.
fn not_in(args: &Ask, run: &Run) -> Failure {
    /// Cells that are named; a run may have hundreds.
    const NAMED: usize = 12;
    let cells = run.header.plan.cells();
    let mut known: Vec<String> =
        cells.iter().take(NAMED).map(|cell| format!("\n  {cell}")).collect();
    if cells.len() > NAMED {
        known.push(format!("\n  and {} more", cells.len() - NAMED));
    }
    let fields = if args.fields == 1 { "field" } else { "fields" };
    if run.header.plan.net().is_none() {
        let study = run.header.plan.study();
        return usage!("run {} is of `{study}`; ask needs a run of `net`", run.header.id);
    }
    let network = match args.network {
        Stand::Auto => String::new(),
        Stand::At(topology) => format!(" --network {topology}"),
    };
    let connections = if args.connections == 1 { "connection" } else { "connections" };
    usage!(
        "run {} did not measure messages of {} in {} {fields} (--mode {}{network}) over {} \
         {connections}; it has:{}\n  without --run, a short run measures it",
        run.header.id,
        args.size,
        args.fields,
        args.mode,
        args.connections,
        known.concat()
    )
}

fn nothing_stored(looked: &Looked, cell: &Cell, database: &Path) -> Failure {
    let mut why: Vec<String> = looked
        .unfit
        .iter()
        .map(|(unfit, runs)| {
            format!("\n  {runs} {} {}", if *runs == 1 { "run" } else { "runs" }, unfit.word())
        })
        .collect();
    if !looked.unusable.is_empty() {
        let ids = looked.unusable.join(", ");
        why.push(format!("\n  without usable numbers of it: {ids} (`iolens show` says why)"));
    }
    unusable!(
        "no stored run answers about {cell} on this machine\n  looked in {}{}\n  without --stored, \
         a short run measures it",
        database.display(),
        why.concat()
    )
}

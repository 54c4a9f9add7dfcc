//! `iolens ab`: programs of the user's, compared.

use std::path::PathBuf;
use std::process::ExitCode;

use iolens_engine::clock;
use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader, StoppedBy};
use iolens_report::ab;
use iolens_report::screen::After;
use iolens_stats::ab::AbAnalysis;

use crate::args::{Ab, FormedResultArgs, Run as RunArgs, Show};
use crate::commands::run::{Session, header, random, said_of};
use crate::commands::{keep, run};
use crate::failure::{
    FOUND, Failure, INTERRUPTED, NOTHING_USABLE, UNDECIDED, this_host, unusable, usage,
};
use crate::progress::Progress;
use crate::request::ab::AbBesides;
use crate::request::{self, Request};
use crate::runner::{self, AbMeans};
use crate::writing::{self, write_new};
use crate::{output, places, plan_file};

/// Measures, judges, prints.
pub(crate) fn ab(args: &Ab, typed: &[String]) -> Result<ExitCode, Failure> {
    if args.server {
        return servers(args, typed);
    }
    let database = places::database(args.result.db.as_deref())?;
    let kept = |name| keep::path(&database, name).map(|path| (name, path));
    let kept = args.against.as_deref().map(kept).transpose()?;
    let file = request::ab::file(args)?;
    let plan = request::ab::plan(args, file.as_ref(), kept, random() >> 16)?;
    let besides = request::ab::besides(args, file.as_ref());
    if args.plan_only {
        return print_file(&plan, besides, args.result.json.is_some());
    }
    let programs = plan.ab().map(runner::ab_facts).transpose()?.unwrap_or_default();
    refuse_forms(&args.result)?;
    output::notes(request::ab::unfilled(&plan));
    let mut session = Session::open(&database, args.wait)?;
    let begin_ns = clock::monotonic_ns();
    let host = this_host()?;
    runner::check_cpus(plan.cpus.as_deref().unwrap_or_default(), &host.cpus)?;
    let request = Request { plan, name: besides.name, notes: Vec::new() };
    let header = RunHeader { programs, ..header(request, typed, host) };
    let trials = header.plan.passes.minimum as usize * header.plan.cells().len();
    let mut progress = Progress::new(args.progress, trials);
    let Session { store, interrupts, .. } = &mut session;
    let means = AbMeans {
        store,
        interrupts,
        progress: &mut progress,
        counts_calls: !besides.no_calls,
        start_limit: besides.start_limit,
        begin_ns,
    };
    let run = runner::measure_ab(header, means)?;
    let analysis = analysed(&run)?;
    let page = places::page(&database, &run.header.id);
    let page = writing::replace(&page, &ab::page(&run, &analysis)).map(|()| page);
    let page = page.map_err(|failure| failure.message);
    print(args, &run, &analysis, &page)?;
    Ok(ExitCode::from(exit_code(args.strict, &run, &analysis)))
}

/// Servers are a study of their own.
fn servers(args: &Ab, typed: &[String]) -> Result<ExitCode, Failure> {
    if let Some(Some(file)) = &args.result.json {
        return Err(usage!(
            "--json={} does not apply to --server\n  write --json > {}",
            file.display(),
            file.display()
        ));
    }
    run::run(RunArgs::Study(Box::new(request::ab::servers(args)?)), typed)
}

/// Prints the plan so that it can be run again.
fn print_file(plan: &Plan, besides: AbBesides, json: bool) -> Result<ExitCode, Failure> {
    let file = request::ab::as_file(plan, besides);
    output::result(&match file {
        Some(file) if !json => plan_file::ab::write(&file),
        _ => serde_json::to_string_pretty(plan).map_err(Failure::usage)?,
    });
    Ok(ExitCode::SUCCESS)
}

/// Refuses, before anything is measured, files that cannot be written at its end, and two forms
/// of a result on one output.
pub(crate) fn refuse_forms(wanted: &FormedResultArgs) -> Result<(), Failure> {
    if let (Some(None), Some(None)) = (&wanted.json, &wanted.markdown) {
        return Err(Failure::usage(
            "--json and --markdown both print to standard output\n  name a file for one of them: \
             --json=FILE",
        ));
    }
    let mut files = [&wanted.json, &wanted.markdown].into_iter().flatten().flatten();
    files.try_for_each(|file| writing::refuse_unwritable(file))?;
    match (&wanted.json, &wanted.markdown) {
        (Some(Some(json)), Some(Some(markdown))) if writing::is_same_place(json, markdown) => {
            Err(usage!(
                "--json and --markdown both write {}\n  name another file for one of them",
                json.display()
            ))
        }
        _ => Ok(()),
    }
}

pub(crate) fn analysed(run: &Run) -> Result<AbAnalysis, Failure> {
    let cannot = || unusable!("run {} is not of `ab`", run.header.id);
    iolens_stats::ab::analyse(run).ok_or_else(cannot)
}

fn print(
    args: &Ab,
    run: &Run,
    analysis: &AbAnalysis,
    page: &Result<PathBuf, String>,
) -> Result<(), Failure> {
    let (json, markdown) = (|| ab::json(run, analysis), || ab::markdown(run, analysis));
    if !formed(&args.result, &json, &markdown)? {
        let shown = page.as_ref().ok().map(|page| page.display().to_string());
        let after = After { page: shown.as_deref(), full_run: None };
        output::result(&ab::first(run, analysis, Some(after), &output::style()));
        if args.verbose {
            output::result(&format!("\n{}", ab::text(run, analysis, &output::style())));
        }
        if page.is_ok() {
            return Ok(());
        }
    }
    output::note(&said_of(page));
    Ok(())
}

/// Writes the forms that are to be in files, and prints the first that is to be printed instead of
/// a screen, if one is.
pub(crate) fn formed(
    wanted: &FormedResultArgs,
    json: &dyn Fn() -> String,
    markdown: &dyn Fn() -> String,
) -> Result<bool, Failure> {
    let forms = [(&wanted.json, json), (&wanted.markdown, markdown)];
    for (form, text) in forms {
        if let Some(Some(file)) = form {
            let text = text();
            write_new(file, format!("{}\n", text.trim_end_matches('\n')).as_bytes(), false)?;
        }
    }
    let printed = forms.into_iter().find(|(form, _)| matches!(form, Some(None)));
    if let Some((_, text)) = printed {
        output::result(&text());
    }
    Ok(printed.is_some())
}

/// Shows a stored run.
pub(crate) fn show(run: &Run, args: &Show) -> Result<ExitCode, Failure> {
    let analysis = analysed(run)?;
    output::result(&match args.result.json {
        true => ab::json(run, &analysis),
        false => {
            let first = ab::first(run, &analysis, None, &output::style());
            format!("{first}\n{}", ab::text(run, &analysis, &output::style()))
        }
    });
    Ok(ExitCode::SUCCESS)
}

fn exit_code(strict: bool, run: &Run, analysis: &AbAnalysis) -> u8 {
    match run.header.end.as_ref().map(|end| end.stopped_by) {
        Some(StoppedBy::Interrupted) => INTERRUPTED,
        _ if analysis.is_useless() => NOTHING_USABLE,
        _ if analysis.has_slower() => FOUND,
        _ if strict && analysis.is_undecided() => UNDECIDED,
        _ => 0,
    }
}

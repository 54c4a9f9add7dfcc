//! `iolens runs` and `show`.

use std::fmt::Display;
use std::io::IsTerminal;
use std::process::ExitCode;

use iolens_engine::clock;
use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use iolens_report::{json, text};
use iolens_stats::analysis::Analysis;
use iolens_store::RunSummary;

use crate::args;
use crate::commands::ab;
use crate::failure::{Failure, usage};
use crate::output;
use crate::output::style;
use crate::stored::{header, load, open, summed};

/// Lists the runs.
pub(crate) fn runs(args: &args::Runs) -> Result<ExitCode, Failure> {
    let (store, _) = open(args.result.db.as_deref())?;
    let runs = store.runs()?;
    if args.result.json {
        let json = serde_json::to_string_pretty(&runs).map_err(Failure::unusable)?;
        output::result(&json);
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        output::result("no runs yet; start with: iolens run net --quick");
        return Ok(ExitCode::SUCCESS);
    }
    // Newest first, as `last` means it.
    let mut rows: Vec<text::RunRow> = runs.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.started_unix_ns));
    output::result(&text::runs(&rows, clock::unix_ns(), &style()));
    let count = if rows.len() == 1 { "1 run".to_owned() } else { format!("{} runs", rows.len()) };
    if std::io::stdout().is_terminal() {
        output::note(&format!(
            "{count}, newest first · iolens show last · iolens resume ID · iolens rm ID"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// A run as a line of the list.
pub(crate) fn row(run: &RunSummary) -> text::RunRow {
    text::RunRow {
        host: run.host.clone(),
        id: run.id.clone(),
        name: run.name.clone(),
        started_unix_ns: run.started_unix_ns,
        took_ns: run.end.as_ref().map(|end| end.took_ns(run.started_unix_ns)),
        study: run.study.clone(),
        cells: run.cells,
        trials: run.trials,
        ended: match &run.confirms {
            Some(other) => format!("{}; confirms {other}", run.ended()),
            None => run.ended().to_owned(),
        },
    }
}

/// Leaves of a run the sizes and thread counts that are asked for.
fn narrow(
    header: &mut RunHeader,
    analysis: &mut Analysis,
    args: &args::Show,
) -> Result<(), Failure> {
    fn keep<T: PartialEq + Display>(
        flag: &str,
        all: &mut Vec<T>,
        wanted: &[T],
    ) -> Result<(), Failure> {
        if let Some(wrong) = wanted.iter().find(|one| !all.contains(one)) {
            let all: Vec<String> = all.iter().map(T::to_string).collect();
            return Err(match all.as_slice() {
                [] => usage!("{flag} does not apply to this run"),
                all => usage!("{flag} {wrong}: the run has none\n  it has {}", all.join(", ")),
            });
        }
        all.retain(|one| wanted.is_empty() || wanted.contains(one));
        Ok(())
    }
    keep("--size", &mut header.plan.sizes, &args.size)?;
    keep("--threads", &mut header.plan.threads, &args.threads)?;
    let plan = &header.plan;
    let is_meant = |cell: &Cell| {
        (args.size.is_empty() || plan.sizes.contains(&cell.size))
            && (args.threads.is_empty() || plan.threads.contains(&cell.threads))
    };
    *analysis = analysis.narrowed(is_meant);
    Ok(())
}

const OF_PROGRAMS: &str =
    "a run of `ab` is shown whole\n  iolens export RUN --rows arms has its trials";

/// Shows a run, or every trial of one cell.
pub(crate) fn show(args: &args::Show) -> Result<ExitCode, Failure> {
    let db = args.result.db.as_deref();
    if header(db, &args.run)?.plan.study() == Study::Ab {
        if args.cell.is_some() || !(args.size.is_empty() && args.threads.is_empty()) {
            return Err(Failure::usage(OF_PROGRAMS));
        }
        return ab::show(&load(db, &args.run)?.0, args);
    }
    let Some(cell) = args.cell else {
        let (mut run, mut analysis, _) = summed(db, &args.run)?;
        if !(args.size.is_empty() && args.threads.is_empty()) {
            narrow(&mut run.header, &mut analysis, args)?;
            output::result(&text::first(&run, &analysis, None, &style()));
            return Ok(ExitCode::SUCCESS);
        }
        output::result(&match args.result.json {
            true => json::run(&run, &analysis),
            false => {
                let first = text::first(&run, &analysis, None, &style());
                let rest = match args.all {
                    true => text::whole(&run, &analysis, &style()),
                    false => text::run(&run, &analysis, &style()),
                };
                format!("{first}\n{rest}")
            }
        });
        if let Some(origin) = text::origin(&run.header).filter(|_| !args.result.json) {
            output::result(&origin);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let (run, _) = load(db, &args.run)?;
    let analysis = iolens_stats::analyse(&run);
    let index = usize::try_from(cell).unwrap_or(usize::MAX);
    let Some(chosen) = index.checked_sub(1).and_then(|index| analysis.cells.get(index)) else {
        return Err(usage!(
            "no setting {cell} in run {}: it has settings 1 to {}",
            run.header.id,
            analysis.cells.len()
        ));
    };
    output::result(&text::show(&run, &analysis, chosen, &style()));
    Ok(ExitCode::SUCCESS)
}

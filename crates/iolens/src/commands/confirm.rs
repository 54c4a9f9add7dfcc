//! `iolens confirm RUN`: sizes inside the bands of a run's crossovers, in fresh trials that are
//! analysed alone. Each curve is a run of its own, which names the one it confirms.

use std::process::ExitCode;

use iolens_engine::far::Far;
use iolens_engine::host;
use iolens_engine::worker::protocol::BUILD;
use iolens_model::host::HostFacts;
use iolens_model::plan::Plan;
use iolens_model::run::{Change, FarFacts, Run, RunHeader};

use crate::args::Confirm;
use crate::commands::again;
use crate::commands::run::{Form, How, answer, check_again, conducted, exit_code, random};
use crate::commands::stored::summed;
use crate::failure::{Failure, INTERRUPTED, NOTHING_USABLE};
use crate::request::{Request, confirm};
use crate::{output, peer, runner, sysctls};

/// Measures, and answers from the run that was meant.
pub(crate) fn confirm(args: &Confirm, typed: &[String]) -> Result<ExitCode, Failure> {
    let db = args.result.db.as_deref();
    let (run, analysis, database) = summed(db, &args.run)?;
    let host = host::read(&host::Root::real());
    again::admit("confirm", &run.header, &run.header.plan, &host, &args.allow)?;
    let plans = confirm::plans(&run.header, &analysis, args.budget, || random() >> 16)?;
    for change in run.header.changes(BUILD, &host) {
        note(&run.header, "here", &change);
    }
    for plan in &plans {
        check_again(plan, &host)?;
        sysctls::check(plan)?;
    }
    let (wait, progress) = (args.wait, args.progress);
    let how = How { typed, database: &database, wait, progress, perf: None };
    let curves = plans.len();
    // That of the curve of which most came.
    let mut code = NOTHING_USABLE;
    for (index, plan) in plans.into_iter().enumerate() {
        output::note(&format!("curve {} of {curves}", index + 1));
        let far = peer::reached(&plan, &args.peer, run.header.far.as_ref())?;
        if let (Some(before), Some((_, now))) = (&run.header.far, &far) {
            before.changes(now).iter().for_each(|change| note(&run.header, "there", change));
        }
        let fresh = measured(plan, (host.clone(), far), &run, &how)?;
        match exit_code(false, &fresh, &iolens_stats::analyse(&fresh)) {
            INTERRUPTED => {
                code = INTERRUPTED;
                break;
            }
            of_curve => code = code.min(of_curve),
        }
    }
    let (run, analysis, _) = summed(db, &run.header.id)?;
    let form = if args.result.json { Form::Json } else { Form::Everything };
    answer(form, &run, &analysis, &database);
    Ok(ExitCode::from(code))
}

fn note(run: &RunHeader, place: &str, change: &Change) {
    output::note(&format!(
        "note: another {} {place} since run {} was measured: the point is that of {} now",
        change.part.word(),
        run.id,
        change.now
    ));
}

fn measured(
    plan: Plan,
    (host, far): (HostFacts, Option<(Far, FarFacts)>),
    run: &Run,
    how: &How<'_>,
) -> Result<Run, Failure> {
    let look = runner::first_look(&plan, &host);
    let request = Request { plan, name: None, notes: Vec::new() };
    conducted(request, (host, far), &look, how, |header, means| {
        let confirms = Some(run.header.id.clone());
        runner::measure(RunHeader { confirms, ..header }, means)
    })
}

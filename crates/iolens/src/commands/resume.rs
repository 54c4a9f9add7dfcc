//! `iolens resume RUN`: goes on with a stored run that was cut short, on
//! the machine and with the build that began it.

use std::process::ExitCode;

use iolens_engine::far::Far;
use iolens_engine::host;
use iolens_engine::worker::protocol::BUILD;
use iolens_model::host::HostFacts;
use iolens_model::plan::{Axes, Plan};
use iolens_model::run::{Change, Run, RunHeader, StoppedBy};

use crate::args;
use crate::commands::again;
use crate::commands::run::{Form, PERF_LIMIT, Session, check_again, conclude, prepared};
use crate::failure::{Failure, unusable, usage};
use crate::progress::Progress;
use crate::runner::Means;
use crate::sysctls::{self, Sysctls};
use crate::{output, peer, places, runner};

/// Goes on with a run.
pub(crate) fn resume(args: &args::Resume) -> Result<ExitCode, Failure> {
    if let Some(perf) = &args.perf_control {
        perf.open(PERF_LIMIT).map_err(Failure::usage)?;
    }
    let database = places::existing_database(args.result.db.as_deref())?;
    // The lock first: a run that still goes on is not one to go on with.
    let mut session = Session::open(&database, args.wait)?;
    let id = session.store.find(&args.run).map_err(Failure::usage)?;
    let run = session.store.load(&id)?;
    let host = host::read(&host::Root::real());
    let plan = without_drops(Plan {
        budget: args.budget.unwrap_or(run.header.plan.budget),
        ..run.header.plan.clone()
    });
    again::admit("resume", &run.header, &plan, &host, &args.allow)?;
    refuse_end(&run.header)?;
    refuse_change(&run.header, BUILD, &host)?;
    check_again(&plan, &host)?;
    sysctls::check(&plan)?;
    let mut far = reached_again(&run.header, &plan, &args.peer)?;
    let sysctls = Sysctls::of_plan(&plan)?;
    output::note(&format!("going on with run {id}, which has {} trials", run.trials.len()));
    let mut progress = Progress::new(args.progress, trials_left(&run, &plan, &host));
    let material = prepared(&plan, &host, &session)?;
    let means = session.means(&mut progress, args.perf_control.as_ref(), material.as_ref());
    let run = runner::resume(run, plan.budget, Means { far: far.as_mut(), ..means })?;
    drop(sysctls);
    Ok(conclude(Form::of(args.result.json, args.verbose), args.strict, &run, &database))
}

/// What dropping caches is worth was measured when the run began.
pub(super) fn without_drops(mut plan: Plan) -> Plan {
    if let Axes::File(axes) = &mut plan.axes {
        axes.drop_caches.clear();
    }
    plan
}

/// Trials that are missing for the shortest run the plan allows, about; at
/// least those of a pass.
fn trials_left(run: &Run, plan: &Plan, host: &HostFacts) -> usize {
    let a_pass = runner::first_look(plan, host).trials;
    (a_pass * plan.passes.minimum as usize).saturating_sub(run.trials.len()).max(a_pass)
}

/// A run that ended by itself has nothing left to do.
fn refuse_end(header: &RunHeader) -> Result<(), Failure> {
    match header.end.as_ref().map(|end| end.stopped_by) {
        None | Some(StoppedBy::Interrupted | StoppedBy::Lost | StoppedBy::Budget) => Ok(()),
        Some(rule) => Err(usage!(
            "run {} is complete ({}); there is nothing to resume\n  for more trials, start a new \
             run with more --passes",
            header.id,
            rule.word()
        )),
    }
}

/// An interval covers one machine, one boot, one kernel, one build (METHOD):
/// a run that spans two of any is two runs.
fn refuse_change(header: &RunHeader, build: &str, host: &HostFacts) -> Result<(), Failure> {
    refuse(header, "here", &header.changes(build, host))
}

/// The other machine of the run, reached anew; nothing where it has none.
fn reached_again(
    header: &RunHeader,
    plan: &Plan,
    peer: &args::Peer,
) -> Result<Option<Far>, Failure> {
    let Some((far, facts)) = peer::reached(plan, peer, header.far.as_ref())? else {
        return Ok(None);
    };
    let before = header.far.iter();
    refuse(header, "there", &before.flat_map(|far| far.changes(&facts)).collect::<Vec<_>>())?;
    Ok(Some(far))
}

fn refuse(header: &RunHeader, place: &str, changes: &[Change]) -> Result<(), Failure> {
    match changes.first() {
        None => Ok(()),
        Some(Change { part, then, now }) => Err(unusable!(
            "cannot resume run {}: it has another {}\n  the run: {then}\n  {place}: {now}\n  \
             results would not be comparable; start a new run",
            header.id,
            part.word()
        )),
    }
}

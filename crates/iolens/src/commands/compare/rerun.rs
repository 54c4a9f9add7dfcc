//! `iolens compare RUN --rerun IOLENS`: the plan of a stored run, measured anew by two builds
//! that take turns, trial by trial. Both new runs are stored, each with its build.

use std::fs;
use std::path::{Path, PathBuf};

use iolens_engine::{host, trial};
use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader, StoppedBy};
use iolens_model::units::Nanos;

use super::Analysed;
use crate::args::Compare;
use crate::commands::run::{How, check_again, conducted, new_id, random};
use crate::commands::{again, stored};
use crate::failure::{Failure, unusable, usage};
use crate::request::Request;
use crate::{output, places, runner, sysctls};

/// What no number of trials takes away.
const RELINKED: &str = "linking one source anew can change its speed by some percent (4.6% was \
                        seen), as code then lies elsewhere: a small difference need not come from \
                        what was changed";

/// Measures the plan of `RUN_A` with this build and with `program`, and returns both runs
/// with what they say.
pub(super) fn measured(
    args: &Compare,
    program: &Path,
    typed: &[String],
) -> Result<[Analysed; 2], Failure> {
    let database = places::existing_database(args.result.db.as_deref())?;
    let header = stored::header(args.result.db.as_deref(), &args.run_a)?;
    let plan = plan(args, &header)?;
    let host = host::read(&host::Root::real());
    again::admit("rerun", &header, &plan, &host, &args.rerun.allow)?;
    refuse_apart(&plan)?;
    sysctls::check(&plan)?;
    let (program, build) = other_build(program)?;
    check_again(&plan, &host)?;
    let mut look = runner::first_look(&plan, &host);
    look.trials *= 2;
    output::note(&format!(
        "each trial is measured twice, in turn, from fresh copies of the programs: B is {build}"
    ));
    output::note(RELINKED);
    let request = Request { plan, name: None, notes: Vec::new() };
    let (wait, progress) = (args.rerun.wait, args.rerun.progress);
    let data = database.parent().unwrap_or(Path::new(""));
    let how = How { typed, database: &database, wait, progress, perf: None };
    let runs = conducted(request, (host, None), &look, &how, |header, means| {
        let of_other = RunHeader { id: new_id(), build, ..header.clone() };
        runner::measure_in_turn(header, (of_other, program), data, means)
    })?;
    let [a, b] = <[Run; 2]>::try_from(runs)
        .map_err(|runs| unusable!("{} runs were stored, not 2", runs.len()))?;
    let is_interrupted = |run: &Run| {
        run.header.end.as_ref().is_some_and(|end| end.stopped_by == StoppedBy::Interrupted)
    };
    if is_interrupted(&a) {
        let message = format!(
            "interrupted; what both builds have measured is stored: `iolens compare {} {}`",
            a.header.id, b.header.id
        );
        return Err(Failure::interrupted(message));
    }
    Ok([a, b].map(|run| {
        let analysis = iolens_stats::analyse(&run);
        (run, analysis)
    }))
}

/// The plan of a stored run, with another order of trials and time for two builds.
fn plan(args: &Compare, header: &RunHeader) -> Result<Plan, Failure> {
    if header.plan.server().is_some_and(|axes| !axes.goals().is_empty()) {
        return Err(usage!(
            "run {} searches for rates, and a search of one build decides what comes next for it \
             alone\n  run its plan without --slo and --knee, and rerun that",
            header.id
        ));
    }
    let budget = args.rerun.budget.unwrap_or(Nanos(header.plan.budget.0.saturating_mul(2)));
    Ok(Plan { seed: random() >> 16, budget, ..header.plan.clone() })
}

/// A program that is another build, where it is, and which.
fn other_build(program: &Path) -> Result<(PathBuf, String), Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        usage!(
            "cannot measure with {}: {why}\n  --rerun takes the path of an iolens of another build",
            program.display()
        )
    };
    let found = fs::canonicalize(program).map_err(|e| cannot(&e))?;
    let build = trial::build_of(&runner::launch(found.clone(), None)).map_err(|e| cannot(&e))?;
    Ok((found, build))
}

/// Of two builds, one would be at the other end too, and which?
fn refuse_apart(plan: &Plan) -> Result<(), Failure> {
    match plan.topologies().iter().any(|topology| topology.is_apart()) {
        true => Err(Failure::usage(
            "--rerun measures two builds on one machine, and this plan goes to another one",
        )),
        false => Ok(()),
    }
}

//! Whatever measures a stored plan: `resume`, `confirm`, `compare --rerun` and, with one door in
//! common, `explain`. A stored run is data, whoever wrote it: its plan is checked as if it had been
//! typed, and what it does besides measuring takes consent from the command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolens_engine::far::Far;
use iolens_engine::trial;
use iolens_engine::worker::protocol::BUILD;
use iolens_model::axes::Study;
use iolens_model::command_line;
use iolens_model::external::External;
use iolens_model::file::CacheState;
use iolens_model::host::HostFacts;
use iolens_model::origin::HOST_NAME;
use iolens_model::plan::{Axes, Plan};
use iolens_model::run::{Change, FarFacts, Run, RunHeader, StoppedBy};
use iolens_model::units::Nanos;
use iolens_report::text;
use iolens_stats::analysis::Analysis;

use crate::args::{self, Allow, Compare, Confirm, Permission};
use crate::commands::run::{
    Form, How, PERF_LIMIT, Session, answer, check_again, conclude, conducted, exit_code, new_id,
    paged, prepared, random, said_of,
};
use crate::failure::{Failure, INTERRUPTED, NOTHING_USABLE, this_host, unusable, usage};
use crate::progress::Progress;
use crate::request::{self, Request};
use crate::runner::{self, Means};
use crate::stored::{self, summed};
use crate::sysctls::Sysctls;
use crate::{output, peer, places};

/// Whether `plan`, which is that of a stored run or made from it, may be measured here.
/// `doing` is the verb of what is about to be done with the run.
pub(crate) fn admit(
    doing: &str,
    header: &RunHeader,
    plan: &Plan,
    host: &HostFacts,
    allow: &Allow,
) -> Result<(), Failure> {
    refuse_imported(doing, header)?;
    refuse_other_machine(doing, header, host)?;
    // Before anything that the plan names is looked at: whether it is there is an answer too.
    refuse_without_consent(doing, header, plan, allow)?;
    request::check_stored(plan).map_err(|why| {
        usage!("cannot {doing} run {}: its plan cannot be measured\n  {}", header.id, why.message)
    })?;
    runner::check_machine(plan, host)
}

/// A run that was imported belongs where it was measured.
fn refuse_imported(doing: &str, header: &RunHeader) -> Result<(), Failure> {
    let Some(origin) = &header.origin else { return Ok(()) };
    Err(usage!(
        "cannot {doing} run {}: it was measured on {} and imported from {}\n  numbers of two \
         machines do not belong in one run: do so where it was measured, or run its plan here \
         (`iolens show {} --json` has the command)",
        header.id,
        origin.host,
        origin.path,
        header.id
    ))
}

/// A database may be of another machine without having been imported. The same boot is the
/// same machine; after another boot, the host name and the CPU model tell.
fn refuse_other_machine(doing: &str, header: &RunHeader, here: &HostFacts) -> Result<(), Failure> {
    let same =
        |(group, name): (&str, &str)| header.host.fact(group, name) == here.fact(group, name);
    if same(("kernel", "boot id")) || (same(HOST_NAME) && same(("cpu", "model"))) {
        return Ok(());
    }
    let of = |host: &HostFacts| {
        format!("{}, {}", host.fact(HOST_NAME.0, HOST_NAME.1), host.fact("cpu", "model"))
    };
    Err(unusable!(
        "cannot {doing} run {}: it was measured on another machine\n  the run: {}\n  here: {}\n  \
         run its plan here instead (`iolens show {} --json` has the command)",
        header.id,
        of(&header.host),
        of(here),
        header.id
    ))
}

fn refuse_without_consent(
    doing: &str,
    header: &RunHeader,
    plan: &Plan,
    allow: &Allow,
) -> Result<(), Failure> {
    let missing: Vec<(Permission, String)> =
        takes(plan).into_iter().filter(|(permission, _)| !allow.allows(*permission)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let deeds: Vec<&str> = missing.iter().map(|(_, deed)| deed.as_str()).collect();
    let mut words: Vec<Permission> = missing.iter().map(|(permission, _)| *permission).collect();
    words.dedup();
    let words: Vec<String> = words.iter().map(Permission::to_string).collect();
    Err(usage!(
        "cannot {doing} run {}: its plan does more than measure: it {}\n  if that is what you \
         want, add --allow {}",
        header.id,
        deeds.join("; it "),
        words.join(",")
    ))
}

/// What a plan does besides measuring, by the permission that it takes.
fn takes(plan: &Plan) -> Vec<(Permission, String)> {
    let asked = request::wishes_of(plan, None);
    let cache = asked.cache.unwrap_or_default();
    let drops = asked.drop_caches.is_some() || cache.contains(&CacheState::Dropped);
    let runs =
        |program: &External| format!("runs `{}`", command_line::redacted(&program.argv).join(" "));
    let mut all: Vec<(Permission, String)> =
        asked.external.iter().map(|program| (Permission::External, runs(program))).collect();
    let (file, evict) = (asked.file.as_ref(), asked.allow_evict);
    let evicted = file.filter(|_| evict && cache.iter().any(|cache| cache.is_cold()));
    let deeds = [
        (Permission::File, file.map(|path| format!("reads {path}"))),
        (Permission::Dir, asked.dir.map(|path| format!("writes files in {path}"))),
        (Permission::Evict, evicted.map(|path| format!("evicts {path} from the page cache"))),
        (Permission::DropCaches, drops.then(|| DROPS.to_owned())),
        (Permission::Sysctl, asked.allow_sysctl.then(|| CHANGES.to_owned())),
    ];
    all.extend(deeds.into_iter().filter_map(|(permission, deed)| Some((permission, deed?))));
    all
}

const DROPS: &str = "drops the page cache of the whole system";
const CHANGES: &str = "changes sysctls of the whole machine";

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
    if run.header.plan.study() == Study::Ab {
        return Err(usage!(
            "cannot resume run {id}: a run of `ab` cannot be continued\n  `iolens show {id}` has \
             its numbers and the command that measures again"
        ));
    }
    let host = this_host()?;
    let plan = without_drops(Plan {
        budget: args.budget.unwrap_or(run.header.plan.budget),
        ..run.header.plan.clone()
    });
    admit("resume", &run.header, &plan, &host, &args.allow)?;
    refuse_end(&run.header)?;
    refuse_change(&run.header, BUILD, &host)?;
    check_again(&plan, &host)?;
    let mut far = reached_again(&run.header, &plan, &args.peer)?;
    let sysctls = Sysctls::of_plan(&plan)?;
    output::note(&format!("continuing run {id}, which has {} trials", run.trials.len()));
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

/// Measures, and answers from the run that was meant.
pub(crate) fn confirm(args: &Confirm, typed: &[String]) -> Result<ExitCode, Failure> {
    let db = args.result.db.as_deref();
    let (run, analysis, database) = summed(db, &args.run)?;
    let host = this_host()?;
    admit("confirm", &run.header, &run.header.plan, &host, &args.allow)?;
    let plans = request::confirm::plans(&run.header, &analysis, args.budget, || random() >> 16)?;
    for change in run.header.changes(BUILD, &host) {
        note(&run.header, "here", &change);
    }
    plans.iter().try_for_each(|plan| check_again(plan, &host))?;
    let (wait, progress) = (args.wait, args.progress);
    let how = How { typed, database: &database, wait, progress, perf: None };
    let curves = plans.len();
    // That of the curve of which most came.
    let mut code = NOTHING_USABLE;
    let mut found = Vec::new();
    for (index, plan) in plans.into_iter().enumerate() {
        output::note(&format!("curve {} of {curves}", index + 1));
        let far = peer::reached(&plan, &args.peer, run.header.far.as_ref())?;
        if let (Some(before), Some((_, now))) = (&run.header.far, &far) {
            before.changes(now).iter().for_each(|change| note(&run.header, "there", change));
        }
        let fresh = measured_anew(plan, (host.clone(), far), &run, &how)?;
        let of_fresh = iolens_stats::analyse(&fresh);
        let of_curve = exit_code(false, &fresh, &of_fresh);
        found.push((Run { trials: Vec::new(), ..fresh }, of_fresh));
        if of_curve == INTERRUPTED {
            code = INTERRUPTED;
            break;
        }
        code = code.min(of_curve);
    }
    let (run, analysis, _) = summed(db, &run.header.id)?;
    if args.result.json {
        answer(Form::Json, &run, &analysis, &database);
        return Ok(ExitCode::from(code));
    }
    let page = paged(&run, &analysis, &database);
    let shown = page.as_ref().ok().map(|page| page.display().to_string());
    for (nth, (fresh, of_fresh)) in found.iter().enumerate() {
        let page = shown.as_deref().filter(|_| nth + 1 == found.len());
        let fresh = (fresh, of_fresh);
        let screen = text::confirmed((&run, &analysis), fresh, page, &output::style());
        output::result(&format!("{}{screen}", if nth > 0 { "\n" } else { "" }));
    }
    if page.is_err() {
        output::note(&said_of(&page));
    }
    Ok(ExitCode::from(code))
}

fn note(run: &RunHeader, place: &str, change: &Change) {
    output::note(&format!(
        "note: the {} {place} is not that of run {}: the crossover is for {} now",
        change.part.word(),
        run.id,
        change.now
    ));
}

fn measured_anew(
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

/// What no number of trials takes away.
const RELINKED: &str = "linking the same source again can change its speed by some percent \
                        (5.9% was seen), because code then lies elsewhere: a small difference may \
                        not come from the change";

/// Measures the plan of `RUN_A` with this build and with `program`, and returns both runs
/// with what they say.
pub(super) fn rerun(
    args: &Compare,
    program: &Path,
    typed: &[String],
) -> Result<[(Run, Analysis); 2], Failure> {
    let database = places::existing_database(args.result.db.as_deref())?;
    let header = stored::header(args.result.db.as_deref(), &args.run_a)?;
    let plan = plan_of_both(args, &header)?;
    let host = this_host()?;
    admit("rerun", &header, &plan, &host, &args.rerun.allow)?;
    refuse_apart(&plan)?;
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
fn plan_of_both(args: &Compare, header: &RunHeader) -> Result<Plan, Failure> {
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
    let found = std::fs::canonicalize(program).map_err(|e| cannot(&e))?;
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

#[cfg(test)]
#[allow(dead_code, reason = "it is of other tests too")]
#[path = "../../../store/tests/it/sample.rs"]
pub(crate) mod sample;

#[cfg(test)]
mod tests {
    use iolens_model::axes::Study;
    use iolens_model::external::External;
    use iolens_model::file::DropMode;

    use super::*;
    use crate::axes::Wishes;

    /// The default of a study.
    fn plan(study: &str) -> Plan {
        let study = Study::from_word(study);
        let asked = Wishes { study, quick: true, ..Wishes::default() };
        let plan = request::plan(request::complete(asked).unwrap(), 1, &|_| Ok(())).unwrap().plan;
        assert_eq!(Some(plan.study()), study);
        plan
    }

    fn file(change: impl FnOnce(&mut iolens_model::file::FileAxes)) -> Plan {
        let mut plan = plan("file");
        let Axes::File(axes) = &mut plan.axes else { panic!("{plan:?}") };
        change(axes);
        plan
    }

    fn copy(change: impl FnOnce(&mut iolens_model::copy::CopyAxes)) -> Plan {
        let mut plan = plan("copy");
        let Axes::Copy(axes) = &mut plan.axes else { panic!("{plan:?}") };
        change(axes);
        plan
    }

    fn somewhere() -> Option<String> {
        Some("/somewhere/else".to_owned())
    }

    /// What a plan takes, in the words of `--allow`.
    #[track_caller]
    fn check(plan: Plan, expect: &[Permission]) {
        let words: Vec<Permission> = takes(&plan).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, expect);
        let header = RunHeader { plan, ..header() };
        let refused = |allow: Vec<Permission>| {
            refuse_without_consent("explain", &header, &header.plan, &Allow { allow }).err()
        };
        assert!(refused(expect.to_vec()).is_none(), "{expect:?}");
        for missing in expect {
            let others = expect.iter().filter(|other| *other != missing).copied().collect();
            let message = refused(others).map(|why| why.message).unwrap_or_default();
            assert!(message.ends_with(&format!("add --allow {missing}")), "{missing}: {message}");
        }
    }

    fn header() -> RunHeader {
        sample::header("0000000a")
    }

    #[test]
    fn each_deed_of_a_plan_takes_its_word() {
        use Permission::{Dir, DropCaches, Evict, External as Program, File, Sysctl};

        let program = || External { name: "x".to_owned(), argv: vec!["touch".to_owned()] };
        for study in ["net", "syscall", "file", "write", "copy", "server"] {
            check(plan(study), &[]);
        }
        check(copy(|axes| axes.external.push(program())), &[Program]);
        let mut server = plan("server");
        let Axes::Server(axes) = &mut server.axes else { panic!("{server:?}") };
        axes.external.push(program());
        check(server, &[Program]);
        check(file(|axes| axes.external.push(program())), &[Program]);
        check(file(|axes| axes.file = somewhere()), &[File]);
        check(copy(|axes| axes.file = somewhere()), &[File]);
        check(file(|axes| axes.dir = somewhere()), &[Dir]);
        check(copy(|axes| axes.dir = somewhere()), &[Dir]);
        let mut write = plan("write");
        let Axes::Write(axes) = &mut write.axes else { panic!("{write:?}") };
        axes.dir = somewhere();
        check(write, &[Dir]);
        let cold = |evict| (somewhere(), vec![CacheState::Cold], evict);
        check(file(|axes| (axes.file, axes.cache, axes.evict) = cold(true)), &[File, Evict]);
        check(copy(|axes| (axes.file, axes.cache, axes.evict) = cold(true)), &[File, Evict]);
        check(file(|axes| (axes.file, axes.cache, axes.evict) = cold(false)), &[File]);
        check(file(|axes| axes.drop_caches = vec![DropMode::Pages]), &[DropCaches]);
        check(file(|axes| axes.cache = vec![CacheState::Dropped]), &[DropCaches]);
        check(copy(|axes| axes.cache = vec![CacheState::Dropped]), &[DropCaches]);
        let mut net = plan("net");
        let Axes::Net(axes) = &mut net.axes else { panic!("{net:?}") };
        axes.allow_sysctl = true;
        check(net, &[Sysctl]);
        let every = copy(|axes| {
            (axes.file, axes.cache, axes.evict) = cold(true);
            (axes.dir, axes.external) = (somewhere(), vec![program()]);
        });
        check(every, &[Program, File, Dir, Evict]);
    }
}

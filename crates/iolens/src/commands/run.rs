//! `iolens run`: check, measure, answer.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use iolens_engine::far::Far;
use iolens_engine::worker::protocol::BUILD;
use iolens_engine::{Interrupts, calibrate, clock, layout, stage};
use iolens_file::copy::copiers;
use iolens_file::leftover::Leftovers;
use iolens_file::material::Material;
use iolens_file::{drop_caches, engines};
use iolens_harness::host;
use iolens_harness::lock::{LockError, MachineLock};
use iolens_harness::perf_control::PerfControl;
use iolens_model::axes::{Study, Topology};
use iolens_model::command_line;
use iolens_model::file::EngineFacts;
use iolens_model::host::HostFacts;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::{Axes, Plan};
use iolens_model::run::{FarFacts, Run, RunEnd, RunHeader, StoppedBy};
use iolens_net::{receivers, registry};
use iolens_report::screen::{After, longer};
use iolens_report::text;
use iolens_stats::analysis::{Analysis, Verdict};
use iolens_store::Store;

use crate::axes::help;
use crate::commands::outlook;
use crate::failure::{FOUND, Failure, INTERRUPTED, NOTHING_USABLE, catch, this_host, unusable};
use crate::progress::Progress;
use crate::request::{self, Request};
use crate::runner::{self, FirstLook, Means};
use crate::sysctls::{self, Sysctls};
use crate::{args, output, peer, places, plan_file, writing};

/// Of pipes that are opened to see whether they can be; nothing is said.
pub(crate) const PERF_LIMIT: Duration = Duration::ZERO;

/// Runs a study or a plan.
pub(crate) fn run(run: args::Run, typed: &[String]) -> Result<ExitCode, Failure> {
    let (asked, flags) = match run {
        args::Run::Study(flags) => ((*flags).clone(), *flags),
        args::Run::Plan(name, words) => {
            let plan = request::file(&name)?;
            let study = plan.study.unwrap_or(Study::Net);
            let flags = args::flags_of(study, words).map_err(|e| help::misread_plan(e, study))?;
            (flags.clone().or(plan), flags)
        }
    };
    if let Some(perf) = &flags.perf_control {
        perf.open(PERF_LIMIT).map_err(Failure::usage)?;
    }
    let asked = request::complete(asked)?;
    let asked = asked.towards_peer(&flags);
    let available = |topology| match (topology, &flags.peer) {
        (Topology::Host, Some(_)) => Ok(()),
        _ => stage::available(topology),
    };
    let request = request::plan(asked, random() >> 16, &available)?;
    output::notes(&request.notes);
    let host = this_host()?;
    check_here(&request.plan, &host)?;
    let look = runner::first_look(&request.plan, &host);
    let database = places::database(flags.db.as_deref())?;
    if flags.print_plan {
        return print_plan(&request, flags.json);
    }
    if flags.dry_run {
        let expected = outlook::Expected::read(&database, &request.plan, &host);
        let taken = calibrate::memory(request.plan.cpus.as_ref().unwrap_or(&host.cpus), &host);
        let text = outlook::dry_run(&request.plan, &look, &expected, taken, flags.json)?;
        output::result(&text);
        return Ok(ExitCode::SUCCESS);
    }
    let how = How {
        typed,
        database: &database,
        wait: flags.wait,
        progress: flags.progress,
        perf: flags.perf_control.as_ref(),
    };
    let far = peer::reached(&request.plan, &flags.peer(), None)?;
    let run = conducted(request, (host, far), &look, &how, runner::measure)?;
    Ok(conclude(Form::of(flags.json, flags.verbose), flags.strict, &run, &database))
}

/// How a plan is measured.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    /// The command line, for who wants to do it again.
    pub(crate) typed: &'a [String],
    pub(crate) database: &'a Path,
    /// Whether to wait for another run to end.
    pub(crate) wait: bool,
    pub(crate) progress: Option<args::ProgressKind>,
    pub(crate) perf: Option<&'a PerfControl>,
}

/// Measures what was planned and checked, from what is known before to what is stored after, and
/// with another machine, where there is one.
pub(crate) fn conducted<T>(
    request: Request,
    (host, far): (HostFacts, Option<(Far, FarFacts)>),
    look: &FirstLook,
    how: &How<'_>,
    measure: impl FnOnce(RunHeader, Means<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut session = Session::open(how.database, how.wait)?;
    output::sentences(&outlook::before(&request.plan, look));
    let (mut far, facts_there) = far.unzip();
    facts_there.iter().for_each(|facts| output::sentences(&peer::in_words(facts)));
    let expected = outlook::Expected::of(&session.store, &request.plan, &host);
    output::sentences(&expected.line(&request.plan, look));
    let trials = look.trials * request.plan.passes.minimum as usize;
    let mut progress = Progress::new(how.progress, trials);
    let sysctls = Sysctls::of_plan(&request.plan)?;
    let material = prepared(&request.plan, &host, &session)?;
    let facts = material.as_ref().map(Material::facts);
    let header = header(request, how.typed, sysctls.seen_in(host));
    let header = RunHeader { file: facts.cloned(), far: facts_there, ..header };
    let means = session.means(&mut progress, how.perf, material.as_ref());
    let measured = measure(header, Means { far: far.as_mut(), ..means })?;
    drop(sysctls);
    Ok(measured)
}

/// Checks what a stored plan needs of the machine, as it is now. Another machine is asked for
/// when it is reached.
pub(crate) fn check_again(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    for &topology in plan.topologies().iter().filter(|topology| !topology.is_apart()) {
        stage::available(topology)
            .map_err(|why| unusable!("cannot use --network {topology}: {why}"))?;
    }
    check_here(plan, host)
}

/// Refuses a plan that this machine is too small for, or that changes what cannot be changed
/// here. Changes nothing.
pub(crate) fn check_here(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    runner::check(plan, host)?;
    sysctls::check(plan)?;
    match plan.file().is_some_and(|axes| !axes.drop_caches.is_empty()) {
        true => drop_caches::check(&host::Root::real()).map_err(Failure::unusable),
        false => Ok(()),
    }
}

/// Prints the plan so that it can be run again.
fn print_plan(request: &Request, json: bool) -> Result<ExitCode, Failure> {
    let text = if json {
        serde_json::to_string_pretty(&request.plan).map_err(Failure::usage)?
    } else {
        plan_file::write(&request::wishes_of(&request.plan, request.name.as_deref()))
    };
    output::result(&text);
    Ok(ExitCode::SUCCESS)
}

/// What is known of a run when it begins.
pub(crate) fn header(request: Request, typed: &[String], host: HostFacts) -> RunHeader {
    let plan = request.plan;
    let cpus = plan.cpus.as_ref().unwrap_or(&host.cpus);
    RunHeader {
        id: new_id(),
        name: request.name,
        started_unix_ns: clock::unix_ns(),
        build: BUILD.to_owned(),
        confirms: None,
        far: None,
        origin: None,
        command: command_line::redacted(typed),
        primitives: plan.net().map_or_else(Vec::new, |net| {
            let entries = plan.primitives.iter().filter_map(|id| registry::find(id));
            entries.map(|entry| entry.facts(&net.topologies)).collect()
        }),
        receivers: plan
            .receivers()
            .iter()
            .filter_map(|id| receivers::find(id).map(receivers::Entry::facts))
            .collect(),
        calls: plan.syscall().map_or_else(Vec::new, |_| {
            let entries = plan.primitives.iter().filter_map(|id| iolens_syscall::find(id));
            entries.map(iolens_syscall::Entry::facts).collect()
        }),
        engines: engines_of(&plan),
        file: None,
        programs: Vec::new(),
        calibration: plan
            .needs_calibration()
            .then(|| calibrate::calibrate(cpus, &host, plan.probes)),
        plan,
        host,
        end: None,
    }
}

/// The engines of a plan, and the programs beside them.
fn engines_of(plan: &Plan) -> Vec<EngineFacts> {
    let ids = plan.primitives.iter();
    match &plan.axes {
        Axes::File(_) => ids.filter_map(|id| Some(engines::that_reads(id)?.facts())).collect(),
        Axes::Write(_) => ids.filter_map(|id| Some(engines::that_writes(id)?.facts())).collect(),
        Axes::Copy(axes) => ids.filter_map(|id| copiers::facts(id, axes)).collect(),
        _ => Vec::new(),
    }
}

/// The files of a plan that needs some. Making them may take a while.
pub(crate) fn prepared(
    plan: &Plan,
    host: &HostFacts,
    session: &Session,
) -> Result<Option<Material>, Failure> {
    // What a killed run left is in nobody's way, but takes room.
    output::notes(Leftovers::here().sweep());
    let stop = || session.interrupts.came();
    let material =
        Material::of(plan, layout::most_arms(plan), host, stop).map_err(|why| match stop() {
            true => Failure::interrupted("interrupted"),
            false => Failure::unusable(why),
        })?;
    for facts in material.iter().map(Material::facts) {
        for warning in &facts.warnings {
            output::note(&format!("note: {}: {warning}", facts.place));
        }
    }
    Ok(material)
}

/// What measuring needs besides a plan: a store, the machine, and an ear for
/// signals.
pub(crate) struct Session {
    pub(crate) store: Store,
    pub(crate) interrupts: Interrupts,
    _lock: MachineLock,
}

impl Session {
    /// Opens the database and takes the machine.
    pub(crate) fn open(database: &Path, wait: bool) -> Result<Session, Failure> {
        let store = Store::open(database)?;
        let lock = take_lock(wait, "two at once would disturb each other")?;
        let interrupts = catch()?;
        Ok(Session { store, interrupts, _lock: lock })
    }

    pub(crate) fn means<'a>(
        &'a mut self,
        progress: &'a mut Progress,
        perf: Option<&'a PerfControl>,
        material: Option<&'a Material>,
    ) -> Means<'a> {
        let Session { store, interrupts, .. } = self;
        Means { store, interrupts, progress, perf, material, far: None }
    }
}

/// Answers from a run that has ended.
pub(crate) fn conclude(form: Form, strict: bool, run: &Run, database: &Path) -> ExitCode {
    let is_interrupted = |end: &RunEnd| end.stopped_by == StoppedBy::Interrupted;
    let ended = |trial: &TrialOutcome| trial.pass > 0 && trial.status != Status::Interrupted;
    if run.header.end.as_ref().is_some_and(is_interrupted)
        && run.searches.is_empty()
        && !run.trials.iter().any(ended)
        && form != Form::Json
    {
        let id = &run.header.id;
        output::note(&format!(
            "interrupted before the first trial ended: nothing was measured\n  \
             `iolens resume {id}` continues it, `iolens rm {id}` deletes it"
        ));
        return ExitCode::from(INTERRUPTED);
    }
    let analysis = iolens_stats::analyse(run);
    answer(form, run, &analysis, database);
    ExitCode::from(exit_code(strict, run, &analysis))
}

/// An id for a run.
pub(crate) fn new_id() -> String {
    format!("{:08x}", random() >> 32)
}

/// 64 random bits, from where the standard library seeds its hashers.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The machine's lock, or `why` it is not to be had; `--wait` tries again until
/// it is free.
pub(crate) fn take_lock(wait: bool, why: &str) -> Result<MachineLock, Failure> {
    let mut told = false;
    loop {
        match MachineLock::try_take() {
            Ok(lock) => return Ok(lock),
            Err(LockError::Unusable(what)) => return Err(Failure::unusable(what)),
            Err(LockError::HeldBy(holder)) if !wait => {
                return Err(unusable!(
                    "another run is measuring here ({holder}); {why}\n  \
                     wait for it with --wait"
                ));
            }
            Err(LockError::HeldBy(holder)) => {
                if !told {
                    output::note(&format!("waiting for another run ({holder})"));
                    told = true;
                }
                std::thread::park_timeout(Duration::from_millis(200));
            }
        }
    }
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One screen.
    Screen,
    /// The screen, and all that `show` has.
    Everything,
    /// For a program.
    Json,
}

impl Form {
    pub(crate) fn of(json: bool, verbose: bool) -> Form {
        match (json, verbose) {
            (true, _) => Form::Json,
            (false, true) => Form::Everything,
            (false, false) => Form::Screen,
        }
    }
}

/// Prints the answer and writes the page; an answer without its page is still
/// an answer.
pub(crate) fn answer(form: Form, run: &Run, analysis: &Analysis, database: &Path) {
    let page = paged(run, analysis, database);
    if form == Form::Json {
        output::result(&iolens_report::json::run(run, analysis));
        output::note(&said_of(&page));
        return;
    }
    let shown = page.as_ref().ok().map(|page| page.display().to_string());
    let full_run = longer(run).and_then(request::budget_of);
    let after = After { page: shown.as_deref(), full_run };
    output::result(&text::first(run, analysis, Some(after), &output::style()));
    if form == Form::Everything {
        output::result(&format!("\n{}", text::run(run, analysis, &output::style())));
    }
    if page.is_err() {
        output::note(&said_of(&page));
    }
}

/// Writes the page beside the database, and returns where it is, or why there is none.
pub(crate) fn paged(run: &Run, analysis: &Analysis, database: &Path) -> Result<PathBuf, String> {
    let page = places::page(database, &run.header.id);
    match writing::write_page(run, analysis, &page) {
        Ok(()) => Ok(page),
        Err(failure) => Err(failure.message),
    }
}

/// Where the page is, as a line of its own.
pub(crate) fn said_of(page: &Result<PathBuf, String>) -> String {
    match page {
        Ok(page) => format!("report: {}", page.display()),
        Err(why) => format!("no report: {why}"),
    }
}

/// The exit code of a run with this analysis, or of some cells of it.
pub(crate) fn exit_code(strict: bool, run: &Run, analysis: &Analysis) -> u8 {
    let undecided = |v: Verdict| matches!(v, Verdict::Invalid | Verdict::Inconclusive);
    match run.header.end.as_ref().map(|end| end.stopped_by) {
        Some(StoppedBy::Interrupted) => INTERRUPTED,
        _ if !analysis.is_usable() => NOTHING_USABLE,
        _ if strict && analysis.verdicts().any(undecided) => FOUND,
        _ => 0,
    }
}

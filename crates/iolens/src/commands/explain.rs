//! `iolens explain RUN [CELL]`: where the CPU time of a cell's arms went, by
//! class of work, from samples of their stacks.

use std::path::Path;
use std::process::ExitCode;

use iolens_engine::stage;
use iolens_file::copy::copiers;
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::plan::{Axes, Plan};
use iolens_model::profile::ProfileEnd;
use iolens_model::run::{Run, RunHeader};
use iolens_report::explain as rendered;
use iolens_stats::analysis::{Analysis, CellAnalysis};
use iolens_stats::attribution::{self, Explanation};
use iolens_store::Store;

use crate::args;
use crate::args::{Allow, Permission};
use crate::commands::again;
use crate::commands::run::{Session, paged, prepared, said_of};
use crate::failure::{Failure, INTERRUPTED, this_host, unusable, usage};
use crate::runner::{self, Question, is_compared};
use crate::stored::load;
use crate::sysctls::Sysctls;
use crate::writing::write_new;
use crate::{output, places};

/// Samples what is not sampled yet, and explains.
pub(crate) fn explain(args: &args::Explain) -> Result<ExitCode, Failure> {
    let database = places::existing_database(args.result.db.as_deref())?;
    // Opened to be written: samples come into it.
    Store::open(&database)?;
    let mut run = load(Some(&database), &args.run)?.0;
    let analysis = iolens_stats::analyse(&run);
    let cell = chosen_cell(&run, &analysis, args.cell)?;
    let arms = chosen_arms(&run.header.plan, cell, &args.arms)?;
    let cell = cell.cell.clone();
    let mut is_interrupted = false;
    if args.again || !is_sampled(&run, &cell, &arms) {
        is_interrupted = sample(args, &run, &cell, &arms, &database)?;
        run = load(Some(&database), &run.header.id)?.0;
    }
    let of_cell: Vec<_> = run.profiles.iter().filter(|t| t.cell == cell).cloned().collect();
    if let Some(path) = &args.folded {
        write_new(path, rendered::folded(&of_cell).as_bytes(), args.overwrite)?;
    }
    let explanation = attribution::explain(&of_cell, &run.header.plan.baseline).pop();
    let explanation = match explanation {
        Some(explanation) if !explanation.attribution.arms.is_empty() => explanation,
        Some(empty) => return nothing(&run, &cell, empty.attribution.left_out, is_interrupted),
        None => return nothing(&run, &cell, Vec::new(), is_interrupted),
    };
    show(args, &run, &explanation, &database);
    Ok(if is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The cell that is meant: by its number, or the one in which data weighs
/// most and threads least.
fn chosen_cell<'a>(
    run: &Run,
    analysis: &'a Analysis,
    number: Option<u64>,
) -> Result<&'a CellAnalysis, Failure> {
    let cells = &analysis.cells;
    let place = match number {
        Some(n) => usize::try_from(n).ok().and_then(|n| n.checked_sub(1)),
        None => (0..cells.len()).min_by_key(|&index| {
            let cell = &cells[index].cell;
            (cell.threads, std::cmp::Reverse(cell.size))
        }),
    };
    place.and_then(|place| cells.get(place)).ok_or_else(|| {
        usage!("no such setting: run {} has settings 1 to {}", run.header.id, cells.len())
    })
}

/// Whether an arm works in processes that it starts, which are not sampled: their CPU time would
/// look like that of starting them and waiting.
fn is_program(plan: &Plan, id: &str) -> bool {
    plan.is_program(id) || plan.copy().is_some_and(|axes| copiers::program(id, axes).is_some())
}

/// Labels of the arms that are meant; programs are not sampled.
fn chosen_arms(
    plan: &Plan,
    cell: &CellAnalysis,
    wanted: &[String],
) -> Result<Vec<String>, Failure> {
    let labels = || cell.arms.iter().map(|arm| arm.arm.label.clone());
    if wanted.is_empty() {
        let compared = cell.arms.iter().filter(|arm| is_compared(arm.arm.role));
        let own = compared.filter(|arm| !is_program(plan, &arm.arm.primitive));
        let own: Vec<String> = own.map(|arm| arm.arm.label.clone()).collect();
        return match own.is_empty() {
            false => Ok(own),
            true => Err(not_sampled(&cell.cell.to_string(), "all that it compares are programs")),
        };
    }
    if let Some(name) = wanted.iter().find(|name| is_program(plan, name)) {
        return Err(not_sampled(&format!("`{name}`"), "it is a program"));
    }
    match wanted.iter().find(|name| !labels().any(|label| label == **name)) {
        None => Ok(wanted.to_vec()),
        Some(unknown) => Err(usage!(
            "there is no arm `{unknown}` in {}: it has {}",
            cell.cell,
            labels().collect::<Vec<_>>().join(", ")
        )),
    }
}

fn not_sampled(what: &str, why: &str) -> Failure {
    usage!(
        "cannot sample {what}: {why}, and iolens samples only its own methods\n  perf record shows \
         where the time of a program goes"
    )
}

/// Whether each arm has samples of which is known whose CPU time they are.
fn is_sampled(run: &Run, cell: &Cell, arms: &[String]) -> bool {
    let good = || run.profiles.iter().filter(|t| t.cell == *cell && t.status == Status::Ok);
    let is_of = |end: &ProfileEnd, arm: &str| end.arm == arm && end.samples.cpu_ns.is_some();
    arms.iter().all(|arm| good().any(|trial| trial.ends.iter().any(|end| is_of(end, arm))))
}

/// Samples on this machine, if it is the run's.
fn sample(
    args: &args::Explain,
    run: &Run,
    cell: &Cell,
    arms: &[String],
    database: &Path,
) -> Result<bool, Failure> {
    let host = this_host()?;
    let plan = sampled_plan(&run.header.plan, &args.allow);
    again::admit("sample for", &run.header, &plan, &host, &args.allow)?;
    refuse_change(&run.header, &host)?;
    if let Some(topology) = cell.topology() {
        stage::available(topology)
            .map_err(|why| unusable!("cannot use --network {topology}: {why}"))?;
    }
    let mut session = Session::open(database, args.wait)?;
    // Put back when this function ends.
    let _sysctls = sysctls(args, &run.header, cell)?;
    output::note(&format!("sampling {} in {cell}", arms.join(", ")));
    let material = prepared(&plan, &host, &session)?;
    let (material, samples) = (material.as_ref(), args.samples);
    let question = Question { run, cell, arms, host: &host, material, samples };
    runner::explain(&question, &mut session.store, &session.interrupts)
}

/// The plan as it is sampled for: what dropping caches is worth was measured already, and no
/// sysctl needs to be changed again.
fn sampled_plan(plan: &Plan, allow: &Allow) -> Plan {
    let mut plan = again::without_drops(plan.clone());
    if let Axes::Net(axes) = &mut plan.axes {
        axes.allow_sysctl &= allow.allows(Permission::Sysctl);
    }
    without_programs(&mut plan);
    plan
}

/// Takes programs out, which are not sampled.
fn without_programs(plan: &mut Plan) {
    let methods = plan.primitives.iter().filter(|id| !is_program(plan, id));
    let methods: Vec<String> = methods.cloned().collect();
    if is_program(plan, &plan.baseline) {
        plan.baseline = methods.first().cloned().unwrap_or_default();
    }
    plan.primitives = methods;
    match &mut plan.axes {
        Axes::Net(axes) => axes.external.clear(),
        Axes::File(axes) => axes.external.clear(),
        Axes::Copy(axes) => axes.external.clear(),
        Axes::Syscall(axes) => axes.external.clear(),
        _ => {}
    }
}

/// What the run was measured under, here again with consent, else said.
fn sysctls(
    args: &args::Explain,
    header: &RunHeader,
    cell: &Cell,
) -> Result<Option<Sysctls>, Failure> {
    if args.allow.allows(Permission::Sysctl) {
        return Sysctls::of_cells(std::slice::from_ref(cell)).map(Some);
    }
    for change in &header.host.changed {
        output::note(&format!(
            "note: run {} was measured with {change}, and what is sampled now may not be: \
             --allow sysctl sets it again",
            header.id
        ));
    }
    Ok(None)
}

/// Another kernel or processor spends its time on other things.
fn refuse_change(header: &RunHeader, host: &HostFacts) -> Result<(), Failure> {
    for (what, group, name) in [("kernel", "kernel", "release"), ("CPU model", "cpu", "model")] {
        let (then, now) = (header.host.fact(group, name), host.fact(group, name));
        if then != now {
            return Err(unusable!(
                "cannot explain run {} here: it has another {what}\n  the run: {then}\n  here: \
                 {now}\n  run the plan here, and explain that run",
                header.id
            ));
        }
    }
    Ok(())
}

/// Why there is nothing to show.
fn nothing(
    run: &Run,
    cell: &Cell,
    left_out: Vec<String>,
    is_interrupted: bool,
) -> Result<ExitCode, Failure> {
    if is_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let trials = || run.profiles.iter().filter(|trial| trial.cell == *cell);
    let reasons = trials().filter_map(|trial| trial.reason.clone());
    let missing = trials().flat_map(|trial| &trial.not_measured).map(|entry| entry.why.clone());
    let why = reasons.chain(missing).chain(left_out).next_back();
    Err(unusable!(
        "no samples of {cell}: {}",
        why.as_deref().unwrap_or("none of its arms can be measured here")
    ))
}

/// Prints the explanation and brings the page up to date.
fn show(args: &args::Explain, run: &Run, explanation: &Explanation, database: &Path) {
    let analysis = iolens_stats::analyse(run);
    if args.result.json {
        output::result(&rendered::json(&run.header.id, explanation, &analysis));
    } else {
        let (id, verbose) = (&run.header.id, args.verbose);
        output::result(&rendered::text(id, explanation, &analysis, &output::style(), verbose));
    }
    if !explanation.attribution.kernel {
        output::note(&advice());
    }
    let page = paged(run, &analysis, database);
    match page.is_ok() && !args.result.json {
        true => output::result(&said_of(&page)),
        false => output::note(&said_of(&page)),
    }
}

/// How kernel stacks can be had.
fn advice() -> String {
    let program = std::env::current_exe()
        .map_or_else(|_| "iolens".to_owned(), |path| path.display().to_string());
    format!(
        "user time only: this user may not sample the kernel, where sending happens\n  \
         sudo setcap cap_perfmon,cap_syslog+ep {program}"
    )
}

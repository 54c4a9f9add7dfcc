//! `iolens run`: check, measure, answer.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use iolens_engine::lock::{LockError, MachineLock};
use iolens_engine::registry::{self, Entry};
use iolens_engine::worker::protocol::BUILD;
use iolens_engine::{Interrupts, calibrate, clock, host};
use iolens_model::arm::Role;
use iolens_model::run::{Run, RunHeader, StoppedBy};
use iolens_stats::analysis::{Analysis, ArmAnalysis, Verdict};
use iolens_store::Store;

use crate::args;
use crate::commands::report;
use crate::failure::{FOUND, Failure, INTERRUPTED, NOTHING_USABLE};
use crate::progress::Progress;
use crate::runner::{self, Means};
use crate::{output, places, request};

/// Runs a study.
pub(crate) fn run(args: &args::Run) -> Result<ExitCode, Failure> {
    let plan = request::plan(args, random() >> 16)?;
    let host = host::read(&host::Root::real());
    runner::check(&plan, &host)?;
    let look = runner::first_look(&plan, &host);
    if args.print_plan {
        let json = serde_json::to_string_pretty(&plan).map_err(Failure::usage)?;
        output::result(&json);
        return Ok(ExitCode::SUCCESS);
    }
    let database = places::database(args.result.db.as_deref())?;
    let mut store = Store::open(&database).map_err(Failure::unusable)?;
    let _lock = take_lock(args.wait)?;
    let interrupts =
        Interrupts::catch().map_err(|e| Failure::unusable(format!("cannot catch signals: {e}")))?;
    output::note(&format!(
        "{} cells, {} trials a pass of about {}; at least {} passes, about {}",
        look.cells, look.trials, look.pass, plan.passes.minimum, look.run
    ));
    let trials = look.trials * plan.passes.minimum as usize;
    let mut progress = Progress::new(args.progress, trials);
    let cpus = plan.cpus.as_ref().unwrap_or(&host.cpus);
    let header = RunHeader {
        id: format!("{:08x}", random() >> 32),
        name: args.name.clone(),
        started_unix_ns: clock::unix_ns(),
        build: BUILD.to_owned(),
        command: std::env::args().collect(),
        primitives: plan
            .primitives
            .iter()
            .filter_map(|id| registry::find(id).map(Entry::facts))
            .collect(),
        calibration: calibrate::calibrate(cpus, host.memory.value().copied()),
        plan,
        host,
        end: None,
    };
    let means = Means { store: &mut store, interrupts: &interrupts, progress: &mut progress };
    let run = runner::measure(header, means)?;
    let analysis = iolens_stats::analyse(&run);
    answer(args, &run, &analysis, &database);
    Ok(ExitCode::from(exit_code(args.strict, &run, &analysis)))
}

/// 64 random bits, from where the standard library seeds its hashers.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The machine's lock; `--wait` tries again until it is free.
fn take_lock(wait: bool) -> Result<MachineLock, Failure> {
    let mut told = false;
    loop {
        match MachineLock::try_take() {
            Ok(lock) => return Ok(lock),
            Err(LockError::Unusable(what)) => return Err(Failure::unusable(what)),
            Err(LockError::HeldBy(holder)) if !wait => {
                return Err(Failure::unusable(format!(
                    "another run measures on this machine ({holder}); two would measure each \
                     other\n  wait for it with --wait"
                )));
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

/// Prints the answer and writes the page; an answer without its page is still
/// an answer.
fn answer(args: &args::Run, run: &Run, analysis: &Analysis, database: &Path) {
    let page = places::page(database, &run.header.id);
    let written = report::write_page(run, analysis, &page);
    let place = match &written {
        Ok(()) => format!("report: {}", page.display()),
        Err(failure) => format!("no report: {}", failure.message),
    };
    if args.result.json {
        output::result(&iolens_report::json::run(run, analysis));
        output::note(&place);
    } else {
        output::result(&iolens_report::text::run(run, analysis, &report::style()));
        output::result(&place);
    }
}

fn exit_code(strict: bool, run: &Run, analysis: &Analysis) -> u8 {
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms);
    // The self-check answers no question of the user's.
    let verdicts: Vec<Verdict> = arms()
        .filter(|arm| arm.arm.role == Role::Compared)
        .filter_map(ArmAnalysis::verdict)
        .collect();
    let usable = if verdicts.is_empty() {
        arms().any(|arm| arm.figures.is_some())
    } else {
        verdicts.iter().any(|&verdict| verdict != Verdict::Invalid)
    };
    let undecided = |v: &Verdict| matches!(v, Verdict::Invalid | Verdict::Inconclusive);
    match run.header.end.as_ref().map(|end| end.stopped_by) {
        Some(StoppedBy::Interrupted) => INTERRUPTED,
        _ if !usable => NOTHING_USABLE,
        _ if strict && verdicts.iter().any(undecided) => FOUND,
        _ => 0,
    }
}

//! One trial, seen from the coordinator: start a worker for each end, give
//! them the trial, wait for their reports or for whatever goes wrong, and
//! leave nothing behind.

mod cpus;
mod pair;
mod profile;
mod servers;
mod workers;

use iolens_model::arm::ArmOutcome;
use iolens_model::cell::Cell;
use iolens_model::data_path::DataPath;
use iolens_model::outcome::{Counts, Environment, SliceOutcome, Status, TrialOutcome};
use iolens_model::profile::ProfileTrial;
use iolens_model::trial::{Slice, SliceKind, Trial};
use iolens_sys::clock;
use iolens_sys::proc::Root;
use iolens_sys::signal::Interrupts;

use self::pair::Pair;
use self::workers::Workers;
use crate::far::Far;
use crate::worker::protocol::{EndReport, EndSamples, EndSlice, Side};
use iolens_harness::environment::Before;
use iolens_net::{receivers, registry};
use iolens_programs::spawn::Launch;

/// Why a trial has no reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Something failed.
    Failed {
        /// The slice that ran, if it is known.
        slice: Option<usize>,
        /// What happened, one clause.
        what: String,
        /// Whether the machine's limits do not allow the arm at all.
        refused: bool,
    },
    /// It took longer than it may.
    TimeUp,
    /// The user wants to stop.
    Interrupted,
}

impl Trouble {
    /// Something failed before the first slice.
    pub(crate) fn failed(what: impl Into<String>) -> Trouble {
        Trouble::Failed { slice: None, what: what.into(), refused: false }
    }
}

/// Runs a trial to its end, whatever that is. To be called on the main
/// thread: workers die with the thread that started them.
pub fn run(trial: &Trial, launch: &Launch, interrupts: Option<&Interrupts>) -> TrialOutcome {
    conduct(trial, launch, None, interrupts).0
}

/// The same of a trial with an end on another machine.
pub fn run_with(
    trial: &Trial,
    launch: &Launch,
    far: &mut Far,
    interrupts: Option<&Interrupts>,
) -> TrialOutcome {
    conduct(trial, launch, Some(far), interrupts).0
}

/// The build that a worker says it is of, which speaks our protocol. It is started, asked,
/// and sent away.
///
/// Errors: what was started and what became of it, or which protocol it speaks.
pub fn build_of(launch: &Launch) -> Result<String, String> {
    let mut workers = Workers::none(None, None);
    let said = workers.start("other", Side::Tx, launch, None).and_then(|()| workers.greet());
    match said {
        Ok(builds) => builds.into_iter().next().ok_or_else(|| "no worker said hello".to_owned()),
        Err(Trouble::Failed { what, .. }) => Err(what),
        Err(Trouble::TimeUp | Trouble::Interrupted) => Err("no worker said hello".to_owned()),
    }
}

/// Runs a trial for the stacks of its threads; the same, to be called as
/// [`run`]. `number` is its place among the trials of its cell, from 1.
pub fn profile(
    trial: &Trial,
    number: u32,
    launch: &Launch,
    interrupts: Option<&Interrupts>,
) -> ProfileTrial {
    let (outcome, samples) = conduct(trial, launch, None, interrupts);
    profile::of(trial, number, outcome, samples)
}

/// What each end sampled, if it was asked to.
type BothSamples = [Option<EndSamples>; 2];

fn conduct(
    trial: &Trial,
    launch: &Launch,
    far: Option<&mut Far>,
    interrupts: Option<&Interrupts>,
) -> (TrialOutcome, BothSamples) {
    let root = Root::real();
    let before = Before::read(&root);
    let (started_unix_ns, begin_ns) = (clock::unix_ns(), clock::monotonic_ns());
    let mut far_environment = None;
    let result = work(trial, launch, (far, &mut far_environment), interrupts);
    let duration_ns = clock::monotonic_ns() - begin_ns;
    let mut outcome = TrialOutcome {
        pass: trial.pass,
        position: trial.position,
        isolated: trial.isolated,
        cell: trial.cell.clone(),
        started_unix_ns,
        duration_ns,
        status: Status::Ok,
        reason: None,
        arms: arms(trial),
        slices: Vec::new(),
        environment: before.after(&root),
        far_environment,
        tx: None,
        rx: None,
    };
    let mut samples = [None, None];
    match result {
        Ok(Done::Servers(mut done)) => {
            servers::hand_out(&mut outcome.arms, &mut done);
            outcome.slices = done.slices;
            (outcome.tx, outcome.rx) = (Some(done.tx), Some(done.rx));
        }
        Ok(Done::Ends(mut tx, mut rx)) => {
            samples = [tx.samples.take(), rx.as_mut().and_then(|rx| rx.samples.take())];
            outcome.slices = slices(trial, &tx, rx.as_deref());
            tell_copies(&mut outcome);
            let latency = rx.as_ref().map_or(&[][..], |rx| &rx.latency);
            for (arm, times) in outcome.arms.iter_mut().zip(latency) {
                arm.latency = (times.total() > 0).then(|| times.clone());
            }
            outcome.tx = Some(tx.facts);
            outcome.rx = rx.map(|rx| rx.facts);
        }
        Err(trouble) => blame(&mut outcome, trial, &trouble),
    }
    (outcome, samples)
}

/// What a trial that came to its end brings home.
enum Done {
    /// The reports of both ends, or of one that is alone.
    Ends(Box<EndReport>, Option<Box<EndReport>>),
    Servers(Box<servers::Outcome>),
}

/// `far` is the other machine, and what is to be known of it around the trial.
fn work(
    trial: &Trial,
    launch: &Launch,
    far: (Option<&mut Far>, &mut Option<Environment>),
    interrupts: Option<&Interrupts>,
) -> Result<Done, Trouble> {
    if trial.servers.is_some() {
        let done = servers::conduct(trial, launch, interrupts)?;
        return Ok(Done::Servers(Box::new(done)));
    }
    let (far, environment) = far;
    let mut pair = Pair::start(trial, launch, far, interrupts)?;
    let reports = pair.conduct(trial);
    *environment = pair.end_there();
    let (tx, rx) = reports?;
    Ok(Done::Ends(Box::new(tx), rx.map(Box::new)))
}

/// Every arm as it is before anything went wrong.
fn arms(trial: &Trial) -> Vec<ArmOutcome> {
    let outcome = |arm: &iolens_model::arm::Arm| {
        // What is copied late or mapped is known only after the trial.
        let path = path(&arm.primitive, &trial.cell).filter(|path| path.is_fixed());
        let copies = path.map(|path| copies(&trial.cell, &path, 0.0, 0.0));
        ArmOutcome {
            arm: arm.clone(),
            status: Status::Ok,
            reason: None,
            copies_sender: copies.map(|[sender, _]| sender),
            copies_end_to_end: copies.map(|[_, end_to_end]| end_to_end),
            latency: None,
            server: None,
            ab: None,
        }
    };
    trial.arms.iter().map(outcome).collect()
}

/// The way of the bytes in a cell: to the primitive's end, and the receiver's
/// from there on.
fn path(primitive: &str, cell: &Cell) -> Option<DataPath> {
    let receiver = receivers::find(cell.receiver()?)?;
    Some(registry::find(primitive)?.data_path().received_by(receiver.hops))
}

/// Copies at the sender and end to end. Without a receiver the path ends at
/// the device.
fn copies(cell: &Cell, path: &DataPath, late: f64, mapped: f64) -> [f64; 2] {
    let sender = path.copies_sender(late);
    match cell.has_receiver() {
        true => [sender, path.copies_end_to_end(late, mapped)],
        false => [sender; 2],
    }
}

/// Fills in the copies of arms whose bytes the kernel may have copied late or
/// mapped, from the shares that it reported.
fn tell_copies(outcome: &mut TrialOutcome) {
    for (index, arm) in outcome.arms.iter_mut().enumerate() {
        let Some(path) = path(&arm.arm.primitive, &outcome.cell) else { continue };
        if path.is_fixed() {
            continue;
        }
        let measured = |s: &&SliceOutcome| s.arm == index && s.kind == SliceKind::Measured;
        let slices: Vec<&SliceOutcome> = outcome.slices.iter().filter(measured).collect();
        let counts = slices.iter().filter_map(|s| s.tx.zerocopy);
        let late = match path.may_copy_late() {
            true => counts.reduce(|a, b| a.plus(&b)).and_then(|sum| sum.copied_share()),
            false => Some(0.0),
        };
        let mapped = if path.may_map() { mapped_share(&slices) } else { Some(0.0) };
        arm.copies_sender = late.map(|late| path.copies_sender(late));
        arm.copies_end_to_end =
            late.zip(mapped).map(|(late, mapped)| copies(&outcome.cell, &path, late, mapped)[1]);
    }
}

/// Share of the bytes received that were mapped; `None` where nothing was
/// received.
fn mapped_share(slices: &[&SliceOutcome]) -> Option<f64> {
    let counts: Vec<&Counts> = slices.iter().filter_map(|slice| slice.rx.as_ref()).collect();
    let mapped: Option<u64> = counts.iter().map(|counts| counts.mapped_bytes).sum();
    let bytes: u64 = counts.iter().map(|counts| counts.bytes).sum();
    mapped.filter(|_| bytes > 0).map(|mapped| mapped as f64 / bytes as f64)
}

/// Both ends' counts of every slice that is stored. In mode `rr` the
/// requesting end has the slice's clock.
fn slices(trial: &Trial, tx: &EndReport, rx: Option<&EndReport>) -> Vec<SliceOutcome> {
    let joined = |(seq, slice): (usize, &Slice)| {
        let mut tx = tx.slices.get(seq).copied().flatten()?;
        let rx: Option<EndSlice> = rx.and_then(|rx| rx.slices.get(seq).copied().flatten());
        if let (true, Some(rx)) = (trial.cell.is_rr(), &rx) {
            tx.counts.time_ns = rx.counts.time_ns;
            tx.all_active_ns = rx.all_active_ns;
        }
        Some(SliceOutcome {
            seq: u32::try_from(seq).unwrap_or(u32::MAX),
            round: slice.round,
            kind: slice.kind,
            arm: slice.arm,
            all_active_ns: tx.all_active_ns,
            tx: tx.counts,
            rx: rx.map(|end| end.counts),
        })
    };
    let stored = trial.slices.iter().enumerate().filter(|(_, s)| s.kind != SliceKind::Warm);
    stored.filter_map(joined).collect()
}

/// Writes down what went wrong: the arm whose slice ran has failed, or was
/// refused what it needs; the others did not get to their end because of it.
fn blame(outcome: &mut TrialOutcome, trial: &Trial, trouble: &Trouble) {
    let (status, slice, reason) = match trouble {
        Trouble::Failed { slice, what, refused: false } => (Status::Failed, *slice, what.clone()),
        Trouble::Failed { slice, what, refused: true } => (Status::Skipped, *slice, what.clone()),
        Trouble::TimeUp => {
            let alone = (trial.arms.len() == 1).then_some(0);
            (Status::Failed, alone, "the trial did not end within its time limit".to_owned())
        }
        Trouble::Interrupted => (Status::Interrupted, None, "interrupted by the user".to_owned()),
    };
    let culprit = slice.and_then(|slice| trial.slices.get(slice)).map(|slice| slice.arm);
    outcome.status = status;
    outcome.reason = Some(match culprit {
        Some(arm) => format!("while `{}` ran: {reason}", trial.arms[arm].label),
        None => reason.clone(),
    });
    for (index, arm) in outcome.arms.iter_mut().enumerate() {
        (arm.status, arm.reason) = match (status, culprit) {
            (Status::Interrupted, _) => (Status::Interrupted, Some(reason.clone())),
            (_, Some(culprit)) if index != culprit => {
                let label = &trial.arms[culprit].label;
                (Status::Skipped, Some(format!("the trial ended while `{label}` ran")))
            }
            _ => (status, Some(reason.clone())),
        };
    }
}

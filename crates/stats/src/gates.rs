//! Gates: what must hold of numbers before they are believed, whatever they
//! say. Each is environmental or physical, applies to every arm alike, and
//! looks at one arm of one trial: at the sums of its measured slices, since
//! one slow slice is noise and a wrong count is wrong in the sum too.
//!
//! A gate is one function and one line in [`GATES`]; its arithmetic and its
//! bounds stand in [`crate::physics`]. Numbers are those of the
//! list in METHOD.md. Gates 7 and 13 look at an arm over all cells
//! ([`across_cells`]); gate 17 (self-checks) needs all trials of a cell and
//! is applied by [`crate::self_check`].

mod across;
mod counters;
mod counts;
mod file;
mod physical;
mod round_trips;
mod scope;
mod servers;
mod zerocopy;

pub(crate) use self::zerocopy::TAPPED;

use std::sync::Arc;

use iolens_model::arm::ArmOutcome;
use iolens_model::axes::{Direction, Topology};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;

use crate::offered::Offered;
use crate::values::{self, Sums};

pub(crate) use across::of as across_cells;
pub(crate) use counters::{cycles, retired as instructions};

/// One arm of a trial, as gates see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) trial: &'a TrialOutcome,
    pub(crate) outcome: &'a ArmOutcome,
    pub(crate) sums: &'a Sums,
}

/// What a gate finds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Check {
    /// Nothing to say, or nothing that could be checked.
    Pass,
    /// Worth a remark; the numbers are used.
    Flag(Flag),
    /// The numbers cannot be used; the reason carries them.
    Invalid(String),
}

/// A remark, in a form that can be summed up over trials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flag {
    /// So many events that should not be: added up.
    Events {
        /// What they are, in the plural.
        what: &'static str,
        /// How many.
        count: u64,
    },
    /// A share that should be larger: the smallest is shown.
    Share {
        /// What it is a share of, such as `of the slices had all threads at work`.
        what: &'static str,
        /// As a fraction.
        share: f64,
    },
    /// A ratio to a bound that should be at most 1: the largest is shown.
    Excess {
        /// What exceeds what.
        what: &'static str,
        /// Value over bound.
        ratio: f64,
    },
    /// What bounded a load on a server: where it did in most trials, the arm gets no
    /// verdict on what it bounds.
    Limit {
        /// What did.
        limit: Limit,
        /// How far, in the unit of the limit.
        value: f64,
    },
    /// Something that is the same in every trial: said once for the run.
    Once(Arc<str>),
}

/// What else than the server a load may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    /// The share of its time in which the client's busiest thread worked.
    ClientBusy,
    /// p99 of how late the client took requests up, ns.
    ClientLate,
    /// Replies in time over requests that were due.
    RateNotKept,
}

/// One line of the table.
struct Gate {
    /// Number in METHOD.md, Gates.
    number: u8,
    /// What must hold, in a few words.
    name: &'static str,
    check: fn(&Case<'_>) -> Check,
}

const fn gate(number: u8, name: &'static str, check: fn(&Case<'_>) -> Check) -> Gate {
    Gate { number, name, check }
}

/// Every gate, in the order in which reasons are looked for.
const GATES: &[Gate] = &[
    gate(1, "clock", counters::clock),
    gate(1, "instructions per cycle", counters::instructions),
    gate(2, "copy bandwidth", physical::copy_bandwidth),
    gate(2, "cycles per byte", counters::cycles_per_byte),
    gate(3, "cost of a call", physical::call_cost),
    gate(4, "median round trip", round_trips::median),
    gate(5, "received bytes", counts::received_bytes),
    gate(5, "replies = requests answered", servers::replies),
    gate(6, "messages × size = bytes", counts::bytes_sent),
    gate(6, "calls × system calls = calls counted", counts::system_calls),
    gate(6, "mapped bytes", counts::mapped_bytes),
    gate(6, "CPU time ≤ wall × threads", counts::cpu_time),
    gate(6, "parts ≤ whole", counts::time_within_trial),
    gate(6, "round trips = messages", round_trips::count),
    gate(6, "mean round trip × rate = connections", round_trips::little),
    gate(6, "requests due = requests ended", servers::outcomes),
    gate(6, "times = requests", servers::times),
    gate(6, "mean time × rate = requests in flight", servers::little),
    gate(8, "cache state", file::state),
    gate(8, "around the page cache", file::direct),
    gate(8, "what is written to", file::written),
    gate(9, "threads at work together", scope::all_active),
    gate(10, "counters that ran", counters::ran),
    gate(10, "accounts that agree", counters::agree),
    gate(12, "zero-copy completions", zerocopy::completions),
    gate(12, "locked memory", zerocopy::refused),
    gate(12, "packet taps", zerocopy::taps),
    gate(14, "parameters as asked", scope::parameters),
    gate(14, "socket buffers as asked", scope::buffers),
    gate(14, "hot rings fit L2", scope::ring_size),
    gate(14, "connections as asked", servers::connections),
    gate(14, "workers as asked", servers::workers),
    gate(15, "pinned threads stay", scope::migrations),
    gate(15, "nobody else at the port", scope::strangers),
    gate(15, "a client with time left", servers::client_busy),
    gate(15, "a client in time", servers::client_late),
    gate(15, "rate as offered", servers::rate),
    gate(16, "retransmits", scope::retransmits),
    gate(16, "major faults", scope::major_faults),
    gate(16, "stolen time", scope::steal),
    gate(16, "stolen time at the other end", scope::steal_there),
    gate(16, "right replies", servers::wrong),
    gate(16, "timeouts", servers::timeouts),
    gate(16, "resets", servers::resets),
    gate(16, "refused connections", servers::refused),
    gate(16, "abandoned requests", servers::abandoned),
    gate(16, "listen overflows", servers::listen_overflows),
    gate(16, "listen drops", servers::listen_drops),
    gate(16, "throttling", servers::throttled),
];

/// What all gates find in one arm.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Findings {
    /// Reasons not to use it, joined; null where there are none.
    pub(crate) invalid: Option<String>,
    /// Remarks.
    pub(crate) flags: Vec<Flag>,
}

/// Asks every gate.
pub(crate) fn examine(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    if case.sums.slices == 0 {
        return findings;
    }
    for gate in GATES {
        match (gate.check)(case) {
            Check::Pass => {}
            Check::Flag(flag) => findings.flags.push(flag),
            Check::Invalid(why) => {
                let reason = format!("gate {} ({}): {why}", gate.number, gate.name);
                findings.invalid = Some(match findings.invalid.take() {
                    Some(before) => format!("{before}; {reason}"),
                    None => reason,
                });
            }
        }
    }
    findings
}

/// The arms of a trial whose numbers a gate refuses, by index, with the
/// reason: the trial may be run again. Arms that did not end as they should
/// are not listed; they carry their own reason.
#[must_use]
pub fn invalid_arms(header: &RunHeader, trial: &TrialOutcome) -> Vec<(usize, String)> {
    let sums = values::sums(trial);
    let arms = trial.arms.iter().zip(&sums).enumerate();
    arms.filter(|(_, (outcome, _))| outcome.status == Status::Ok)
        .filter_map(|(index, (outcome, sums))| {
            let findings = examine(&Case { header, trial, outcome, sums });
            Some((index, findings.invalid?))
        })
        .collect()
}

/// How much faster the machine may have been in this trial than when the run
/// was calibrated, at least 1: the same fixed loop was timed at both moments.
/// Physical bounds give way by as much.
fn speedup(case: &Case<'_>) -> f64 {
    let environment = &case.trial.environment;
    let loops = [&environment.loop_before_ns, &environment.loop_after_ns];
    let fastest = loops.into_iter().filter_map(|reading| reading.value()).min();
    match fastest {
        Some(&now) if now > 0 => (case.header.calibration.loop_ns as f64 / now as f64).max(1.0),
        _ => 1.0,
    }
}

/// Processors of a server and of its client; null in studies whose threads are counted,
/// and where they are not known.
fn parallel(case: &Case<'_>) -> Option<[u32; 2]> {
    let offered = Offered::of(case.trial, case.outcome)?;
    offered.cpus.iter().all(|&cpus| cpus > 0).then_some(offered.cpus)
}

/// Whether a CPU of this machine copies the arm's bytes at least once. Nobody says so of a
/// server, but its replies go to a stream, into which send(2) copies them.
fn copies(case: &Case<'_>) -> bool {
    let ArmOutcome { copies_sender: sender, copies_end_to_end: both, .. } = case.outcome;
    let here = match end_here(case) {
        None => *both,
        Some(Direction::Tx) => *sender,
        Some(Direction::Rx) => both.zip(*sender).map(|(both, sender)| both - sender),
    };
    case.trial.cell.server().is_some() || here.is_some_and(|copies| copies > 0.0)
}

/// The end that is on this machine, of which alone it is known what it can do; null where
/// both are.
fn end_here(case: &Case<'_>) -> Option<Direction> {
    let is_apart = case.trial.cell.topology().is_some_and(Topology::is_apart);
    case.header.far.as_ref().filter(|_| is_apart).map(|far| far.direction)
}

/// Bytes that the sender's and the receiver's socket buffers can hold, all
/// connections together; null where an end did not say.
fn in_flight_bytes(case: &Case<'_>) -> Option<u64> {
    let send = case.trial.tx.as_ref()?.send_buffer_bytes?;
    let receive = case.trial.rx.as_ref()?.receive_buffer_bytes?;
    Some(send.saturating_add(receive).saturating_mul(u64::from(case.trial.cell.threads)))
}

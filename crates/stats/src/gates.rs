//! Gates: what must hold of numbers before they are believed, whatever they
//! say. Each is environmental or physical, applies to every arm alike, and
//! looks at one arm of one trial: at the sums of its measured slices, since
//! one slow slice is noise and a wrong count is wrong in the sum too.
//!
//! A gate is one function and one line in [`GATES`]; its name is a [`Check`], its arithmetic
//! and its bounds stand in [`crate::physics`]. Two look at an arm over all cells
//! ([`across_cells`]); self-checks need all trials of a cell and are applied by
//! [`crate::self_check`].

mod across;
mod checks;
mod counters;
mod counts;
mod file;
mod physical;
mod round_trips;
mod scope;
mod servers;
mod zerocopy;

pub use self::checks::Check;

use std::sync::Arc;

use iolens_model::arm::ArmOutcome;
use iolens_model::axes::{Direction, Topology};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;

use crate::offered::Offered;
use crate::remark::{Circumstance, Event, Excess, Share};
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
pub(crate) enum Ruling {
    /// Nothing to say, or nothing that could be checked.
    Pass,
    /// Worth a remark; the numbers are used.
    Flag(Flag),
    /// The numbers cannot be used; the reason carries them.
    Invalid(String),
}

impl Ruling {
    /// What is the same in every trial.
    fn once(found: Circumstance) -> Ruling {
        Ruling::Flag(Flag::Once(Arc::new(found)))
    }
}

/// A remark, in a form that can be summed up over trials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flag {
    /// Added up.
    Events { what: Event, count: u64 },
    /// The worst is shown.
    Share { what: Share, share: f64 },
    /// A ratio to a bound that should be at most 1: the largest is shown.
    Excess { what: Excess, ratio: f64 },
    /// What bounded a load on a server, and how far in the unit of the limit: where it did in
    /// most trials, the arm gets no verdict on what it bounds.
    Limit { limit: Limit, value: f64 },
    /// Said once for the run.
    Once(Arc<Circumstance>),
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

/// A gate: its name, and what asks.
type Gate = (Check, fn(&Case<'_>) -> Ruling);

/// Every gate, in the order in which reasons are looked for.
const GATES: &[Gate] = &[
    (Check::Clock, counters::clock),
    (Check::Instructions, counters::instructions),
    (Check::CopyBandwidth, physical::copy_bandwidth),
    (Check::CyclesPerByte, counters::cycles_per_byte),
    (Check::CallCost, physical::call_cost),
    (Check::MedianRoundTrip, round_trips::median),
    (Check::ReceivedBytes, counts::received_bytes),
    (Check::Replies, servers::replies),
    (Check::SentBytes, counts::bytes_sent),
    (Check::SystemCalls, counts::system_calls),
    (Check::MappedBytes, counts::mapped_bytes),
    (Check::CpuTime, counts::cpu_time),
    (Check::TimeInTrial, counts::time_within_trial),
    (Check::RoundTripCount, round_trips::count),
    (Check::ConnectionsInUse, round_trips::little),
    (Check::RequestsDue, servers::outcomes),
    (Check::TimesTaken, servers::times),
    (Check::RequestsInFlight, servers::little),
    (Check::CacheState, file::state),
    (Check::DirectAccess, file::direct),
    (Check::WrittenFile, file::written),
    (Check::AllAtWork, scope::all_active),
    (Check::CountersRan, counters::ran),
    (Check::CountersAgree, counters::agree),
    (Check::ZeroCopyCompletions, zerocopy::completions),
    (Check::LockedMemory, zerocopy::refused),
    (Check::PacketTaps, zerocopy::taps),
    (Check::Parameters, scope::parameters),
    (Check::SocketBuffers, scope::buffers),
    (Check::BusyPolling, scope::busy_polling),
    (Check::HotRings, scope::ring_size),
    (Check::Connections, servers::connections),
    (Check::Workers, servers::workers),
    (Check::Migrations, scope::migrations),
    (Check::Strangers, scope::strangers),
    (Check::ClientBusy, servers::client_busy),
    (Check::ClientLate, servers::client_late),
    (Check::RateKept, servers::rate),
    (Check::Retransmits, scope::retransmits),
    (Check::MajorFaults, scope::major_faults),
    (Check::StolenTime, scope::steal),
    (Check::StolenTimeThere, scope::steal_there),
    (Check::RightReplies, servers::wrong),
    (Check::Timeouts, servers::timeouts),
    (Check::Resets, servers::resets),
    (Check::RefusedConnections, servers::refused),
    (Check::Abandoned, servers::abandoned),
    (Check::ListenOverflows, servers::listen_overflows),
    (Check::ListenDrops, servers::listen_drops),
    (Check::Throttling, servers::throttled),
];

/// What all gates find in one arm.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Findings {
    /// What refuses it first, and all reasons in words; `None` where nothing does.
    pub(crate) invalid: Option<(Check, String)>,
    /// Remarks.
    pub(crate) flags: Vec<Flag>,
}

/// Asks every gate.
pub(crate) fn examine(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    if case.sums.slices == 0 {
        return findings;
    }
    for (check, gate) in GATES {
        match gate(case) {
            Ruling::Pass => {}
            Ruling::Flag(flag) => findings.flags.push(flag),
            Ruling::Invalid(why) => {
                let reason = format!("{}: {why}", check.name());
                findings.invalid = Some(match findings.invalid.take() {
                    Some((first, before)) => (first, format!("{before}; {reason}")),
                    None => (*check, reason),
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
            Some((index, findings.invalid?.1))
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

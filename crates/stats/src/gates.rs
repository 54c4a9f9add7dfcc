//! Gates: what must hold of numbers before they are believed, whatever they
//! say. Each is environmental or physical, applies to every arm alike, and
//! looks at one arm of one trial: at the sums of its measured slices, since
//! one slow slice is noise and a wrong count is wrong in the sum too.
//!
//! A gate is one function and one line in [`GATES`]; its name is a [`Check`], its arithmetic
//! and its bounds stand in [`crate::physics`]. What needs all trials of a cell, or all cells, is in
//! [`crate::self_check`].

mod case;
mod counts;
mod file;
mod physical;
mod round_trips;
mod scope;
mod servers;

use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;

use crate::remark::Check;
use crate::sums;

pub(crate) use case::{Case, Flag, Limit, Ruling};
pub(crate) use physical::{cycles, retired as instructions};

/// A gate: its name, and what asks.
type Gate = (Check, fn(&Case<'_>) -> Option<Ruling>);

/// Every gate, in the order in which reasons are looked for.
const GATES: &[Gate] = &[
    (Check::Clock, physical::clock),
    (Check::Instructions, physical::instructions),
    (Check::CopyBandwidth, physical::copy_bandwidth),
    (Check::CyclesPerByte, physical::cycles_per_byte),
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
    (Check::CountersRan, physical::ran),
    (Check::CountersAgree, physical::agree),
    (Check::ZeroCopyCompletions, counts::completions),
    (Check::LockedMemory, counts::refused),
    (Check::PacketTaps, counts::taps),
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
    (Check::Throttling, scope::throttled),
    (Check::ThrottlingThere, scope::throttled_there),
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
            None => {}
            Some(Ruling::Flag(flag)) => findings.flags.push(flag),
            Some(Ruling::Invalid(why)) => {
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
    let sums = sums::sums(trial);
    let arms = trial.arms.iter().zip(&sums).enumerate();
    arms.filter(|(_, (outcome, _))| outcome.status == Status::Ok)
        .filter_map(|(index, (outcome, sums))| {
            let findings = examine(&Case { header, trial, outcome, sums });
            Some((index, findings.invalid?.1))
        })
        .collect()
}

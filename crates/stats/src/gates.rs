//! Gates: what must hold of numbers before they are believed, whatever they
//! say. Each is environmental or physical, applies to every arm alike, and
//! looks at one arm of one trial: at the sums of its measured slices, since
//! one slow slice is noise and a wrong count is wrong in the sum too.
//!
//! A gate is one function and one line in [`GATES`]; its name is a [`Check`], its arithmetic
//! and its bounds stand in [`crate::physics`]. Two look at an arm over all cells
//! ([`crate::across`]); self-checks need all trials of a cell and are applied by
//! [`crate::self_check`].

mod case;
mod counts;
mod file;
mod physical;
mod round_trips;
mod scope;
mod servers;

pub(crate) use case::{Case, Flag, Limit, Ruling};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;
pub(crate) use physical::{cycles, retired as instructions};
use serde::Serialize;

use crate::sums;

/// A gate: its name, and what asks.
type Gate = (Check, fn(&Case<'_>) -> Ruling);

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
    let sums = sums::sums(trial);
    let arms = trial.arms.iter().zip(&sums).enumerate();
    arms.filter(|(_, (outcome, _))| outcome.status == Status::Ok)
        .filter_map(|(index, (outcome, sums))| {
            let findings = examine(&Case { header, trial, outcome, sums });
            Some((index, findings.invalid?.1))
        })
        .collect()
}

// What is checked, by name.

/// Declares the checks and their table together.
macro_rules! checks {
    ($($variant:ident, $name:literal, $what:literal;)+) => {
        /// A check of an arm in a trial, or of an arm over all cells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Check {
            $(#[doc = $what] $variant),+
        }

        impl Check {
            /// Every check, in the order in which reasons are looked for.
            pub const ALL: &[Check] = &[$(Check::$variant),+];

            /// Its name for readers.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Check::$variant => $name),+ }
            }

            /// What it refuses, or remarks on.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Check::$variant => $what),+ }
            }
        }
    };
}

checks! {
    NoData, "data", "refuses an arm without a message or without time";
    Clock, "clock", "refuses cycles over CPU time that are no clock of the processor";
    Instructions, "instructions per cycle", "refuses more or fewer instructions than the cycles can retire";
    CopyBandwidth, "copy bandwidth", "refuses copies that are faster than `memcpy`; remarks on a `memcpy` that is";
    CyclesPerByte, "cycles per byte", "refuses copies that take fewer cycles than a copy can";
    CallCost, "cost of a call", "refuses calls that are cheaper than an empty one; remarks on empty calls that are";
    MedianRoundTrip, "median round trip", "refuses a median below one copy of the message; remarks on one below half of the mean";
    ReceivedBytes, "received bytes", "refuses more bytes than were sent, and missing ones; remarks on datagrams that were lost";
    Replies, "replies", "refuses replies that are not the requests answered";
    SentBytes, "sent bytes", "refuses messages × size that are not the bytes";
    SystemCalls, "system calls", "refuses calls × their system calls that are not those counted";
    MappedBytes, "mapped bytes", "refuses more bytes mapped than received";
    CpuTime, "CPU time", "refuses more CPU time than wall time × threads";
    TimeInTrial, "time in the trial", "refuses parts that are longer than the whole";
    RoundTripCount, "round trips", "refuses round trips that are not the messages";
    ConnectionsInUse, "connections in use", "refuses mean round trip × rate that is not the connections; remarks on idle ones";
    RequestsDue, "requests due", "refuses requests due that are not the requests ended";
    TimesTaken, "times taken", "refuses times that are not the requests, or not in order";
    RequestsInFlight, "requests in flight", "refuses mean time × rate beyond the room for requests; remarks on idle connections";
    CacheState, "cache state", "refuses a slice that did not find the page cache as its setting says; warns where that is unknown";
    DirectAccess, "direct access", "refuses a slice around the page cache that went through it";
    WrittenFile, "written file", "refuses a file that was dirty before, or has another size after; warns of write-back in the slice";
    AllAtWork, "threads at work", "refuses threads that ran one after another; remarks on those that share CPUs";
    CountersRan, "counters that ran", "warns of counters that stood still or missed slices; they are not used";
    CountersAgree, "counters that agree", "remarks on switches and faults that two accounts count differently";
    ZeroCopyCompletions, "zero-copy completions", "refuses zero-copy sends that did not complete once each; remarks on a row that the kernel copied";
    LockedMemory, "locked memory", "remarks on zero-copy sends that were refused and made again";
    PacketTaps, "packet taps", "warns of packet sockets, which force copies";
    Parameters, "parameters as asked", "refuses an end that ran something else";
    SocketBuffers, "socket buffers as asked", "warns of buffers that were capped";
    BusyPolling, "busy polling", "refuses polling for packets that found none";
    HotRings, "hot rings", "remarks on hot rings that do not fit the L2 cache";
    Connections, "connections as asked", "refuses fewer connections than were asked for";
    Workers, "workers as asked", "refuses more or fewer threads than the model makes";
    Migrations, "pinned threads", "refuses pinned threads that moved; warns where moves are not measured";
    Strangers, "strangers", "refuses a trial to whose port somebody else came";
    ClientBusy, "client with time left", "leaves unranked a server whose client was busy";
    ClientLate, "client in time", "remarks on a client that took requests up late";
    RateKept, "rate as offered", "leaves unranked a server that did not keep the rate";
    Retransmits, "retransmits", "remarks on segments that were sent again";
    MajorFaults, "major faults", "remarks on page faults that waited for a disk";
    StolenTime, "stolen time", "remarks on time that a hypervisor took";
    StolenTimeThere, "stolen time at the other end", "remarks on the same there";
    RightReplies, "right replies", "refuses an arm with a wrong reply";
    Timeouts, "timeouts", "remarks on requests that timed out";
    Resets, "resets", "remarks on connections that ended before the reply";
    RefusedConnections, "refused connections", "remarks on connections that could not be made";
    Abandoned, "abandoned requests", "remarks on requests that the client gave up";
    ListenOverflows, "listen overflows", "remarks on connections that a full queue dropped";
    ListenDrops, "listen drops", "remarks on connections that a listening socket dropped";
    Throttling, "throttling", "remarks on periods in which a cgroup held an end back";
    SizeApplied, "size applied", "warns of goodput that does not depend on the size";
    SwitchesFollowWork, "switches that follow the work", "warns of context switches that do not depend on the messages";
    SelfCheck, "self-check", "refuses a hidden copy of the baseline that differs from it; warns of too many that exclude 1";
}

#[cfg(test)]
mod tests {
    use super::Check;

    /// METHOD.md lists them as they are here.
    #[test]
    fn the_method_has_the_table_of_checks() {
        let page = include_str!("../../../METHOD.md");
        let rows: Vec<String> = Check::ALL
            .iter()
            .map(|check| format!("| {} | {} |", check.name(), check.what()))
            .collect();
        assert!(page.contains(&rows.join("\n")), "METHOD.md lacks:\n{}", rows.join("\n"));
    }

    #[test]
    fn names_are_unique() {
        for (i, check) in Check::ALL.iter().enumerate() {
            assert!(Check::ALL[..i].iter().all(|other| other.name() != check.name()), "{check:?}");
        }
    }
}

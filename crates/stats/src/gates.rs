//! Gates: what must hold of numbers before they are believed, whatever they
//! say. Each is environmental or physical, applies to every arm alike, and
//! looks at one arm of one trial: at the sums of its measured slices, since
//! one slow slice is noise and a wrong count is wrong in the sum too.
//!
//! A gate is one function and one line in `checks!`; its arithmetic
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
use serde::Serialize;

use crate::sums;

pub(crate) use case::{Case, Flag, Limit, Ruling};
pub(crate) use physical::{cycles, retired as instructions};

/// Declares the checks and the gates among them together.
macro_rules! checks {
    ($($variant:ident $name:literal $what:literal $($gate:expr)?;)+) => {
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
            pub const fn name(self) -> &'static str {
                match self { $(Check::$variant => $name),+ }
            }

            /// What it refuses, or remarks on.
            pub const fn what(self) -> &'static str {
                match self { $(Check::$variant => $what),+ }
            }
        }

        /// A gate: its name, and what asks.
        type Gate = (Check, fn(&Case<'_>) -> Option<Ruling>);

        /// Every gate, in the order in which reasons are looked for.
        const GATES: &[Gate] = &[$($((Check::$variant, $gate),)?)+];
    };
}

checks! {
    NoData "data" "refuses an arm without a message or without time";
    Clock "clock" "refuses cycles over CPU time that are no clock rate of the processor" physical::clock;
    Instructions "instructions per cycle" "refuses more or fewer instructions than the cycles can retire" physical::instructions;
    CopyBandwidth "copy bandwidth" "refuses copies faster than `memcpy`; remarks on a `memcpy` that is faster" physical::copy_bandwidth;
    CyclesPerByte "cycles per byte" "refuses copies that take fewer cycles than a copy can" physical::cycles_per_byte;
    CallCost "cost of a call" "refuses calls cheaper than an empty one; remarks on empty calls that are cheaper" physical::call_cost;
    MedianRoundTrip "median round trip" "refuses a median below one copy of the message; remarks on one below half of the mean" round_trips::median;
    ReceivedBytes "received bytes" "refuses more or fewer bytes than were sent; remarks on lost datagrams" counts::received_bytes;
    Replies "replies" "refuses a client and a server that disagree on the number of replies" servers::replies;
    SentBytes "sent bytes" "refuses bytes that are not messages × size" counts::bytes_sent;
    SystemCalls "system calls" "refuses counted system calls that are not calls × those of one call" counts::system_calls;
    MappedBytes "mapped bytes" "refuses more bytes mapped than received" counts::mapped_bytes;
    CpuTime "CPU time" "refuses more CPU time than wall time × threads" counts::cpu_time;
    TimeInTrial "time in the trial" "refuses slices longer than their trial, and work longer than its slices" counts::time_within_trial;
    RoundTripCount "round trips" "refuses more or fewer round trips than messages" round_trips::count;
    ConnectionsInUse "connections in use" "refuses mean round trip × rate that is not the number of connections; remarks on idle ones" round_trips::little;
    RequestsDue "requests due" "refuses a number of ended requests that is not the number due" servers::outcomes;
    TimesTaken "times taken" "refuses more or fewer times than requests, and times out of order" servers::times;
    RequestsInFlight "requests in flight" "refuses mean time × rate above the number of requests that can be in flight; remarks on idle connections" servers::little;
    CacheState "cache state" "refuses a slice that did not find the page cache as its setting says; warns where that is unknown" file::state;
    DirectAccess "direct access" "refuses a slice that was to bypass the page cache and did not" file::direct;
    WrittenFile "written file" "refuses a file that was dirty before, or has another size after; warns of write-back in the slice" file::written;
    AllAtWork "threads at work" "refuses threads that ran one after another; remarks on those that share CPUs" scope::all_active;
    CountersRan "counters that ran" "warns of counters that stood still or missed slices; they are not used" physical::ran;
    CountersAgree "counters that agree" "remarks on switches and faults that two accounts count differently" physical::agree;
    ZeroCopyCompletions "zero-copy completions" "refuses zero-copy sends that did not complete once each; remarks on a row that the kernel copied" counts::completions;
    LockedMemory "locked memory" "remarks on zero-copy sends that were refused and made again" counts::refused;
    PacketTaps "packet taps" "warns of packet sockets, which force copies" counts::taps;
    Parameters "parameters as asked" "refuses an end that ran something else" scope::parameters;
    SocketBuffers "socket buffers as asked" "warns of buffers that were capped" scope::buffers;
    BusyPolling "busy polling" "refuses busy polling that found no packets" scope::busy_polling;
    HotRings "hot rings" "remarks on hot rings that do not fit the L2 cache" scope::ring_size;
    Connections "connections as asked" "refuses fewer connections than were asked for" servers::connections;
    Workers "workers as asked" "refuses more or fewer threads than the model makes" servers::workers;
    Migrations "pinned threads" "refuses pinned threads that moved; warns where moves are not measured" scope::migrations;
    Strangers "strangers" "refuses a trial to whose port a stranger connected or sent" scope::strangers;
    ClientBusy "client with time left" "leaves unranked a server whose client was busy" servers::client_busy;
    ClientLate "client in time" "remarks on a client that took requests up late" servers::client_late;
    RateKept "rate as offered" "leaves unranked a server that did not keep the rate" servers::rate;
    Retransmits "retransmits" "remarks on segments that were sent again" scope::retransmits;
    MajorFaults "major faults" "remarks on page faults that waited for a disk" scope::major_faults;
    StolenTime "stolen time" "remarks on time that a hypervisor took" scope::steal;
    StolenTimeThere "stolen time at the other end" "remarks on time that a hypervisor took there" scope::steal_there;
    RightReplies "right replies" "refuses an arm with a wrong reply" servers::wrong;
    Timeouts "timeouts" "remarks on requests that timed out" servers::timeouts;
    Resets "resets" "remarks on connections that ended before the reply" servers::resets;
    RefusedConnections "refused connections" "remarks on connections that could not be made" servers::refused;
    Abandoned "abandoned requests" "remarks on requests that the client gave up" servers::abandoned;
    ListenOverflows "listen overflows" "remarks on connections that a full queue dropped" servers::listen_overflows;
    ListenDrops "listen drops" "remarks on connections that a listening socket dropped" servers::listen_drops;
    Throttling "throttling" "remarks on periods in which a cgroup held an end back" scope::throttled;
    ThrottlingThere "throttling at the other end" "remarks on periods in which a cgroup held the other end back" scope::throttled_there;
    SizeApplied "size applied" "warns of goodput that does not depend on the size";
    SwitchesFollowWork "switches that follow the work" "warns of context switches that do not depend on the messages";
    SelfCheck "self-check" "refuses a hidden copy of the baseline that differs from it; warns of too many that exclude 1";
}

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

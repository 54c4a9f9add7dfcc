//! What a gate is asked about, and what it may say.

use std::sync::Arc;

use iolens_model::arm::ArmOutcome;
use iolens_model::axes::{Direction, Topology};
use iolens_model::outcome::TrialOutcome;
use iolens_model::run::RunHeader;

use crate::offered::Offered;
use crate::remark::{Circumstance, Event, Excess, Share};
use crate::sums::Sums;

/// One arm of a trial, as gates see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) trial: &'a TrialOutcome,
    pub(crate) outcome: &'a ArmOutcome,
    pub(crate) sums: &'a Sums,
}

/// What a gate finds, if there is something to say and it could be checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ruling {
    /// Worth a remark; the numbers are used.
    Flag(Flag),
    /// The numbers cannot be used; the reason carries them.
    Invalid(String),
}

pub(super) fn invalid(why: String) -> Option<Ruling> {
    Some(Ruling::Invalid(why))
}

pub(super) fn remark(flag: Flag) -> Option<Ruling> {
    Some(Ruling::Flag(flag))
}

/// What is the same in every trial.
pub(super) fn once(found: Circumstance) -> Option<Ruling> {
    remark(Flag::Once(Arc::new(found)))
}

/// What happened, if it did.
pub(super) fn events(what: Event, count: u64) -> Option<Ruling> {
    remark(Flag::Events { what, count }).filter(|_| count > 0)
}

/// A remark, in a form that can be summed up over trials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flag {
    /// Added up.
    Events { what: Event, count: u64 },
    /// The same, which took so long.
    Lasting { what: Event, count: u64, lasted_ns: u64 },
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

/// How much faster the machine may have been in this trial than when the run
/// was calibrated, at least 1: the same fixed loop was timed at both moments.
/// Physical bounds give way by as much.
pub(super) fn speedup(case: &Case<'_>) -> f64 {
    let environment = &case.trial.environment;
    let loops = [&environment.loop_before_ns, &environment.loop_after_ns];
    let fastest = loops.into_iter().filter_map(|reading| reading.value()).min();
    match fastest.zip(case.header.calibration.as_ref()) {
        Some((&now, then)) if now > 0 => (then.loop_ns as f64 / now as f64).max(1.0),
        _ => 1.0,
    }
}

/// Processors of a server and of its client; `None` in studies whose threads are counted,
/// and where they are not known.
pub(super) fn parallel(case: &Case<'_>) -> Option<[u32; 2]> {
    let offered = Offered::of(case.trial, case.outcome)?;
    offered.cpus.iter().all(|&cpus| cpus > 0).then_some(offered.cpus)
}

/// Whether a CPU of this machine copies the arm's bytes at least once. Nobody says so of a
/// server, but its replies go to a stream, into which send(2) copies them.
pub(super) fn copies(case: &Case<'_>) -> bool {
    let ArmOutcome { copies_sender: sender, copies_end_to_end: both, .. } = case.outcome;
    let here = match end_here(case) {
        None => *both,
        Some(Direction::Tx) => *sender,
        Some(Direction::Rx) => both.zip(*sender).map(|(both, sender)| both - sender),
    };
    case.trial.cell.server().is_some() || here.is_some_and(|copies| copies > 0.0)
}

/// The end that is on this machine, of which alone it is known what it can do; `None` where
/// both are.
pub(super) fn end_here(case: &Case<'_>) -> Option<Direction> {
    let is_apart = case.trial.cell.topology().is_some_and(Topology::is_apart);
    case.header.far.as_ref().filter(|_| is_apart).map(|far| far.direction)
}

/// Bytes that the sender's and the receiver's socket buffers can hold, all
/// connections together; `None` where an end did not say.
pub(super) fn in_flight_bytes(case: &Case<'_>) -> Option<u64> {
    let send = case.trial.tx.as_ref()?.send_buffer_bytes?;
    let receive = case.trial.rx.as_ref()?.receive_buffer_bytes?;
    Some(send.saturating_add(receive).saturating_mul(u64::from(case.trial.cell.threads)))
}

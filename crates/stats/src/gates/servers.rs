//! Of servers: whether what the client saw and what the server
//! counted fit together, and whether the load shows the server or the client.

use iolens_model::load::Length;
use iolens_model::reading::Histogram;
use iolens_model::server::{ServerArm, ServerSetting};

use super::case::{self, Case, Flag, Limit, Ruling, invalid, remark};
use crate::load;
use crate::offered::Offered;
use crate::physics::{self, Rounded};
use crate::remark::{Event, Share};

/// A server, and what was offered to it; `None` in other studies.
struct Served<'a> {
    setting: &'a ServerSetting,
    arm: &'a ServerArm,
    offered: Offered,
}

fn served<'a>(case: &Case<'a>) -> Option<Served<'a>> {
    Some(Served {
        setting: case.trial.cell.server()?,
        arm: case.outcome.server.as_deref()?,
        offered: Offered::of(case.trial, case.outcome)?,
    })
}

impl Served<'_> {
    /// Requests that may be in flight at the same time.
    fn slots(&self, case: &Case<'_>) -> f64 {
        let each = case.header.plan.server().map_or(1, |axes| axes.in_flight.max(1));
        f64::from(self.setting.connections) * f64::from(each)
    }

    /// Requests of which nobody knows on which side they were lost.
    fn lost(&self) -> u64 {
        let outcomes = &self.offered.outcomes;
        let failed: u64 = self.arm.failures.iter().map(|(_, count)| count).sum();
        (outcomes.total() - outcomes.ok).max(failed).saturating_add(self.offered.late_replies)
    }
}

/// The client has no more right replies than the server has given, and has all
/// but those of requests that were lost. The two count apart.
pub(super) fn replies(case: &Case<'_>) -> Option<Ruling> {
    let (served, rx) = (served(case)?, case.sums.received()?);
    let (answered, right, lost) = (case.sums.tx.messages, rx.messages, served.lost());
    if answered.abs_diff(right) <= lost {
        return None;
    }
    invalid(format!(
        "the server answered {answered} requests, and the client has {right} right replies and lost \
         {lost} requests"
    ))
}

/// Every request that was due ended, in exactly one way.
pub(super) fn outcomes(case: &Case<'_>) -> Option<Ruling> {
    let served = served(case)?;
    let (due, ended) = (served.offered.scheduled, served.offered.outcomes.total());
    if due == ended {
        return None;
    }
    invalid(format!("{due} requests were due, and {ended} ended in one way or another"))
}

/// Each request with an end that has a time was timed, once, from when it was
/// due and from when it was sent; and none was sent before it was due, so at each
/// percentile the former is the longer.
pub(super) fn times(case: &Case<'_>) -> Option<Ruling> {
    /// Both are read from buckets.
    const ROUNDING: f64 = 1.01;
    let (served, due) = (served(case)?, case.outcome.latency.as_ref()?);
    let sent = &served.arm.from_sent;
    let ends = &served.offered.outcomes;
    let (timed, least, most) = (due.total(), ends.ok, ends.total());
    if !(least..=most).contains(&timed) || sent.total() > timed {
        return invalid(format!(
            "{timed} times from due and {} from sent of {most} requests, {least} of them answered",
            sent.total()
        ));
    }
    let at = |times: &Histogram, q: f64| times.quantile_ns(q).unwrap_or(0) as f64;
    for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
        let (from_due, from_sent) = (at(due, q), at(sent, q));
        if timed == sent.total() && from_sent > from_due * ROUNDING {
            return invalid(format!(
                "{name} is {from_sent} ns from when requests were sent and {from_due} ns from when \
                 they were due, which is earlier"
            ));
        }
    }
    let rising = [0.0, 0.5, 0.99, 1.0].map(|q| at(due, q));
    physics::ordered(&rising.map(Rounded::exact))?;
    invalid(format!("minimum, p50, p99 and maximum are {rising:?} ns"))
}

/// Little's law: mean time from sent × rate is the number of requests in flight.
///
/// There are never more than the connections have room for. In a closed loop there are
/// as many, but for the time before a connection's first request and after its last
/// one of a slice, which is no longer than the longest request; less than half of them
/// beyond that is something else than the time of a request.
pub(super) fn little(case: &Case<'_>) -> Option<Ruling> {
    let served = served(case)?;
    let sent = &served.arm.from_sent;
    let (mean_ns, longest_ns) = (sent.mean_ns()?, sent.quantile_ns(1.0)?);
    let is_open = served.setting.is_open_loop();
    let edges_ns = longest_ns as f64 * f64::from(case.sums.slices);
    // The last requests of a window may end behind it, those that timed out behind all.
    let is_lossless = served.offered.outcomes.ok == served.offered.outcomes.total();
    let time_ns = match (is_open, is_lossless) {
        (true, _) => served.offered.window_ns as f64 + edges_ns,
        (false, true) => case.sums.tx.time_ns as f64,
        (false, false) => case.sums.tx.time_ns as f64 + edges_ns,
    };
    if time_ns == 0.0 {
        return None;
    }
    let slots = served.slots(case);
    let per_s = sent.total() as f64 / (time_ns / 1e9);
    let found = physics::in_flight(mean_ns, per_s, slots);
    let too_many = found.breach.is_some_and(|breach| breach.value > breach.high);
    let too_few = found.breach.is_some_and(|breach| breach.value + edges_ns / time_ns < breach.low);
    if too_many || (!is_open && too_few) {
        return invalid(format!(
            "{mean_ns:.0} ns mean time from sent × the rate of requests is {:.2} requests in \
             flight, and {slots} can be",
            found.requests
        ));
    }
    let is_idle = !is_open && found.share + edges_ns / time_ns < 0.95;
    remark(Flag::Share { what: Share::InFlight, share: found.share }).filter(|_| is_idle)
}

/// As many connections as were asked for, and one for each request where they
/// are short; the requests of a server's threads and processes hold those of the slices.
pub(super) fn connections(case: &Case<'_>) -> Option<Ruling> {
    let served = served(case)?;
    let made = served.arm.connects.made;
    let asked = match served.setting.length {
        Length::Long => u64::from(served.setting.connections),
        Length::Short => served.offered.outcomes.ok,
    };
    if made < asked {
        return invalid(format!("{made} connections were made instead of {asked}"));
    }
    let by_task: u64 = served.arm.requests_by_task.iter().sum();
    let answered = case.sums.tx.messages;
    if !served.arm.requests_by_task.is_empty() && by_task < answered {
        return invalid(format!(
            "its threads and processes answered {by_task} requests in the trial, and {answered} in \
             the measured slices alone"
        ));
    }
    None
}

/// As many threads or processes serve as the model makes for the workers and
/// connections that were asked for.
pub(super) fn workers(case: &Case<'_>) -> Option<Ruling> {
    let ServerArm { tasks_asked, tasks_max, .. } = served(case)?.arm;
    // At once: one for each connection is there for as long as that.
    let ((least, most), seen) = ((*tasks_asked)?, *tasks_max);
    if seen >= least && most.is_none_or(|most| seen <= most) {
        return None;
    }
    let bound = if seen < least { ("at least", least) } else { ("at most", most.unwrap_or(least)) };
    invalid(format!(
        "{seen} threads or processes served, and for what was asked this model has {} {}",
        bound.0, bound.1
    ))
}

/// A client whose thread worked for nearly all of its time may have had no
/// more; its rate is a floor.
pub(super) fn client_busy(case: &Case<'_>) -> Option<Ruling> {
    let busy = served(case)?.offered.busiest()?;
    let share = busy.ratio().min(1.0);
    limited(Limit::ClientBusy, share).filter(|_| share >= load::BUSY_SHARE)
}

/// Requests that the client took up late are not late by the server, by the
/// same rule as in `load`.
pub(super) fn client_late(case: &Case<'_>) -> Option<Ruling> {
    let (served, due) = (served(case)?, case.outcome.latency.as_ref()?);
    limited(Limit::ClientLate, load::lag_limit(&served.arm.lag, due)?.0 as f64)
}

/// What was offered by a schedule was answered in its time.
pub(super) fn rate(case: &Case<'_>) -> Option<Ruling> {
    let served = served(case).filter(|served| served.setting.is_open_loop())?;
    let (replies, due) = (served.offered.replies_in_window as f64, served.offered.scheduled as f64);
    limited(Limit::RateNotKept, physics::accepted(replies, due)?.value)
}

fn limited(limit: Limit, value: f64) -> Option<Ruling> {
    remark(Flag::Limit { limit, value })
}

/// A reply that is wrong is no reply, and what it took is not what a right one
/// takes.
pub(super) fn wrong(case: &Case<'_>) -> Option<Ruling> {
    match served(case)?.offered.outcomes.invalid {
        0 => None,
        count => invalid(format!("{count} replies were wrong, or said that it failed")),
    }
}

/// Requests that timed out.
pub(super) fn timeouts(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::Timeouts, |served| served.offered.outcomes.timeout)
}

/// Connections that ended before the reply.
pub(super) fn resets(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::Resets, |served| served.offered.outcomes.reset)
}

/// Connections that could not be made.
pub(super) fn refused(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::RefusedConnections, |served| served.offered.outcomes.refused)
}

/// Requests that the client gave up at a limit of its own machine.
pub(super) fn abandoned(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::Abandoned, |served| served.offered.outcomes.abandoned)
}

/// Connections that a full queue dropped.
pub(super) fn listen_overflows(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::ListenOverflows, |served| {
        served.offered.at_the_server().map_or(0, |n| n.listen_overflows)
    })
}

/// Connections that a listening socket dropped for another reason.
pub(super) fn listen_drops(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::ListenDrops, |served| {
        let counts = served.offered.at_the_server();
        counts.map_or(0, |n| n.listen_drops.saturating_sub(n.listen_overflows))
    })
}

/// Periods in which cgroups held back the server or the client, because the
/// processor time that they allow was spent.
pub(super) fn throttled(case: &Case<'_>) -> Option<Ruling> {
    events(case, Event::Throttled, |served| served.offered.throttled_periods)
}

fn events(case: &Case<'_>, what: Event, count: impl Fn(&Served<'_>) -> u64) -> Option<Ruling> {
    case::events(what, count(&served(case)?))
}

#[cfg(test)]
mod tests;

//! In mode `rr`: round trips against the messages and the time
//! they are part of.

use iolens_model::reading::Histogram;

use super::case::{Case, Flag, Ruling, copies, invalid, remark, speedup};
use crate::physics;
use crate::quantity::Quantity;
use crate::remark::Share;

/// The round trips of an arm that makes requests.
fn times<'a>(case: &Case<'a>) -> Option<&'a Histogram> {
    let requests = case.trial.cell.is_rr();
    case.outcome.latency.as_ref().filter(|histogram| requests && histogram.total() > 0)
}

/// Every request was timed, once.
pub(super) fn count(case: &Case<'_>) -> Option<Ruling> {
    let (total, messages) = (case.outcome.latency.as_ref()?.total(), case.sums.tx.messages);
    if !case.trial.cell.is_rr() || total == messages {
        return None;
    }
    invalid(format!("{total} round trips of {messages} messages"))
}

/// Little's law. What is missing is the time in which a connection has
/// no request in flight, before its first, after its last, and while its
/// thread waits for a CPU in between, so it is flagged.
pub(super) fn little(case: &Case<'_>) -> Option<Ruling> {
    let (mean_ns, time) = (times(case)?.mean_ns()?, Quantity::Time.of_trial(case.sums)?);
    let connections = case.trial.cell.threads;
    let per_s = time.under / (time.over / 1e9);
    let found = physics::in_flight(mean_ns, per_s, f64::from(connections));
    if found.breach.is_some() {
        return invalid(format!(
            "{mean_ns:.0} ns mean round trip × the rate of requests is {:.2} requests in flight \
             on {connections} connections",
            found.requests
        ));
    }
    remark(Flag::Share { what: Share::InFlight, share: found.share }).filter(|_| found.is_idle)
}

/// Half of the round trips take at least as long as the machine takes
/// to copy a message, at the bandwidth it has in cache; an acknowledgement
/// that was timed instead of the message takes less.
///
/// Message bytes over the throughput of one connection is the mean time per
/// request, which a median stays below wherever there is a tail. So that
/// comparison is a remark, where the median is less than half of it.
///
/// Of a server the message is its reply. What a single connection of many takes of a
/// server is the server's choice, so there the mean says nothing about the median.
pub(super) fn median(case: &Case<'_>) -> Option<Ruling> {
    if let Some(server) = &case.outcome.server {
        let tx = &case.sums.tx;
        let reply_bytes = tx.bytes as f64 / tx.messages.max(1) as f64;
        return longer_than_a_copy(case, server.from_sent.quantile_ns(0.5)?, reply_bytes);
    }
    let (median_ns, time) = (times(case)?.quantile_ns(0.5)?, Quantity::Time.of_trial(case.sums)?);
    longer_than_a_copy(case, median_ns, case.trial.cell.size.0 as f64).or_else(|| {
        let per_request_ns = time.ratio() * f64::from(case.trial.cell.threads);
        let breach = physics::short_latency(median_ns as f64, per_request_ns)?;
        remark(Flag::Share { what: Share::MedianOfMean, share: breach.value })
    })
}

/// What is found of a median that is less than one copy of the message takes.
fn longer_than_a_copy(case: &Case<'_>, median_ns: u64, bytes: f64) -> Option<Ruling> {
    let bandwidth = case.header.calibration.as_ref()?.memcpy_hot_bytes_per_s * speedup(case);
    let copy_ns = physics::copy_ns(bytes, bandwidth);
    let is_less = copies(case) && bandwidth > 0.0 && (median_ns as f64) < copy_ns;
    if !is_less {
        return None;
    }
    invalid(format!(
        "half of the round trips took {median_ns} ns or less, and memcpy of a message alone takes \
         {copy_ns:.0} ns"
    ))
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Mode;
    use iolens_model::run::Run;

    use super::*;
    use crate::fixture::{MESSAGES, check_gate, check_gates, one_arm_trial};

    /// Four slices of 10 000 requests of 1 KiB, 512 ns each, whose times are
    /// these shares of all and ns.
    fn run(parts: &[(u64, u64)]) -> Run {
        let mut run = one_arm_trial(|_| {});
        run.trials[0].cell.net_mut().unwrap().mode = Mode::Rr;
        let all = 4 * MESSAGES;
        let buckets = parts.iter().map(|&(percent, ns)| (ns, all / 100 * percent)).collect();
        run.trials[0].arms[0].latency = Some(Histogram { buckets });
        run
    }

    #[test]
    fn every_request_is_timed_once() {
        check_gates(&run(&[(100, 512)]), None);
        let reason = "round trips: 39600 round trips of 40000 messages";
        check_gates(&run(&[(99, 512)]), Some(reason));
        let mut stream = run(&[(99, 512)]);
        stream.trials[0].cell.net_mut().unwrap().mode = Mode::Stream;
        check_gates(&stream, None);
    }

    #[test]
    fn mean_times_rate_is_the_number_of_connections() {
        check_gate(little, &run(&[(100, 537)]), None);
        check_gate(little, &run(&[(100, 487)]), None);
        check_gate(little, &run(&[(100, 480)]), Some("flag"));
        let gate = "connections in use: ";
        check_gates(&run(&[(100, 540)]), Some(gate));
        check_gates(&run(&[(100, 250)]), Some("0.49 requests in flight on 1 connections"));
        let mut two = run(&[(100, 1024)]);
        two.trials[0].cell.threads = 2;
        check_gate(little, &two, None);
    }

    /// 1 KiB at 10.5 GB/s takes 98 ns.
    #[test]
    fn a_round_trip_is_no_faster_than_a_copy() {
        check_gate(median, &run(&[(100, 512)]), None);
        check_gates(&run(&[(60, 90), (40, 1140)]), Some("median round trip: half of"));
        let mut referenced = run(&[(60, 90), (40, 1140)]);
        referenced.trials[0].arms[0].copies_end_to_end = Some(0.0);
        check_gate(median, &referenced, Some("flag"));
    }

    #[test]
    fn a_median_far_below_the_mean_is_flagged() {
        check_gate(median, &run(&[(60, 260), (40, 890)]), None);
        check_gate(median, &run(&[(60, 250), (40, 905)]), Some("flag"));
    }
}

//! What a load on a server shows, and whether it shows the server or the client
//! that offered it.
//!
//! A client is its own limit where it was busy for nearly all of its time, or was
//! late against its own schedule by as much as the times that it measured. Then
//! the rate is a floor and the tail is its own; nothing of that says anything
//! about the server.

use iolens_model::load::{Load, Pace};
use iolens_model::reading::Histogram;
use iolens_model::units::Nanos;

use crate::latency::LatencyFigures;

/// From this share of its time on a thread of the client may have had no more.
pub const BUSY_SHARE: f64 = 0.9;

/// Below this share of the requests that were due, the rate was not kept.
pub const ACHIEVED_SHARE: f64 = 0.98;

/// The client's lag may be this share of a time that was measured.
pub const LAG_SHARE: f64 = 0.1;

/// Less than this the lag of one request in a hundred is nobody's limit: a wake-up
/// takes that long.
const LAG_P99_MIN: Nanos = Nanos(100_000);

/// From here on a single request was late by so much that it is told.
pub const LATE: Nanos = Nanos::MILLISECOND;

/// The percentiles that are shown, as shares.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Why the client may have been the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClientLimit {
    /// A thread worked for this share of its time.
    Busy(f64),
    /// One request in a hundred was taken up later than this after it was due,
    /// which is more than [`LAG_SHARE`] of the p99 that was measured.
    Lag(Nanos),
}

/// The client was late, though not as a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Late {
    /// By this at most.
    pub peak: Nanos,
    /// This share of the requests by more than [`LATE`].
    pub share: f64,
}

/// What stands behind a load's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Replies over requests that were due in the window, at most 1: what the warm-up has left
    /// may be answered beside them. `None` for a closed loop.
    pub achieved: Option<f64>,
    /// Why the client may have been the limit; empty where it was not.
    pub client: Vec<ClientLimit>,
    /// Told where the client was not the limit but had its part in the tail.
    pub late: Option<Late>,
}

impl Judgement {
    /// Whether the client could not do more, so that rates are floors.
    pub fn is_client_limited(&self) -> bool {
        !self.client.is_empty()
    }

    /// Whether the rate was not kept, and not because of the client.
    pub fn is_server_behind(&self) -> bool {
        !self.is_client_limited() && self.achieved.is_some_and(|share| share < ACHIEVED_SHARE)
    }
}

/// Judges a load.
pub fn judge(load: &Load) -> Judgement {
    let is_open = matches!(load.pace, Pace::Open { .. });
    let achieved = (is_open && load.scheduled > 0)
        .then(|| (load.replies_in_window as f64 / load.scheduled as f64).min(1.0));
    let busy = load.busiest_thread().filter(|&share| share >= BUSY_SHARE).map(ClientLimit::Busy);
    let lag = lag_limit(&load.lag, &load.from_due).map(ClientLimit::Lag);
    let client: Vec<ClientLimit> = busy.into_iter().chain(lag).collect();
    let late = if client.is_empty() { late(load) } else { None };
    Judgement { achieved, client, late }
}

/// The p99 of the lag, where it is a part of the p99 of the times from due.
pub(crate) fn lag_limit(lag: &Histogram, from_due: &Histogram) -> Option<Nanos> {
    let (lag, time) = (quantile(lag, 0.99)?, quantile(from_due, 0.99)?);
    let is_much = lag >= LAG_P99_MIN && lag.0 as f64 >= LAG_SHARE * time.0 as f64;
    is_much.then_some(lag)
}

/// The largest lag, where it is a part of the largest time that was measured.
fn late(load: &Load) -> Option<Late> {
    let (lag, time) = (load.lag.quantile_ns(1.0)?, load.from_due.quantile_ns(1.0)?);
    let is_much = lag >= LATE.0 && lag as f64 >= LAG_SHARE * time as f64;
    let over = load.lag.buckets.iter().filter(|(ns, _)| *ns >= LATE.0).map(|(_, count)| count);
    let share = over.sum::<u64>() as f64 / load.lag.total() as f64;
    is_much.then_some(Late { peak: Nanos(lag), share })
}

/// A quantile, where there are enough times to show it.
pub fn quantile(times: &Histogram, q: f64) -> Option<Nanos> {
    let enough = LatencyFigures::enough(times.total(), q);
    times.quantile_ns(q).filter(|_| enough).map(Nanos)
}

#[cfg(test)]
mod tests {
    use iolens_model::load::{Arrivals, ClientThread, Connects, Length, Outcomes};
    use iolens_model::outcome::Status;

    use super::*;

    const MS: u64 = 1_000_000;

    /// 10 000 requests at 1000 per second, of 1 ms each, to a client that is idle.
    fn load() -> Load {
        let flat = |ns| Histogram { buckets: vec![(ns, 10_000)] };
        let thread =
            ClientThread { cpu: Nanos(MS), wall: Nanos(10_000 * MS), ..ClientThread::default() };
        Load {
            address: "127.0.0.1:1".to_owned(),
            connections: 1,
            in_flight: 1,
            length: Length::Long,
            pace: Pace::Open { rate: 1000.0, arrivals: Arrivals::Fixed },
            seed: None,
            status: Status::Ok,
            reason: None,
            checked: String::new(),
            scheduled: 10_000,
            outcomes: Outcomes { ok: 10_000, ..Outcomes::default() },
            unsent: 0,
            warmup: 0,
            late_replies: 0,
            failures: Vec::new(),
            connects: Connects::default(),
            window: Nanos(10_000 * MS),
            replies_in_window: 9_999,
            from_due: flat(MS),
            from_sent: flat(MS),
            lag: flat(10_000),
            per_second: vec![1000; 10],
            sent_bytes: 0,
            received_bytes: 0,
            threads: vec![thread],
            cpu: None,
            network: None,
        }
    }

    #[test]
    fn a_schedule_that_was_kept_is_not_remarked_on() {
        let judged = judge(&load());
        assert_eq!((judged.achieved, judged.late), (Some(0.9999), None));
        assert!(!judged.is_client_limited() && !judged.is_server_behind());
        let closed = judge(&Load { pace: Pace::Closed { think: Nanos(0) }, ..load() });
        assert_eq!(closed.achieved, None);
    }

    #[test]
    fn a_server_that_is_behind_is_told_from_a_client_that_is() {
        let caught_up = Load { replies_in_window: 10_100, ..load() };
        assert_eq!(judge(&caught_up).achieved, Some(1.0), "100 were due in the warm-up");
        let behind = Load { replies_in_window: 9_000, ..load() };
        assert!(judge(&behind).is_server_behind());
        let busy = ClientThread { cpu: Nanos(9_100 * MS), ..behind.threads[0] };
        let judged = judge(&Load { threads: vec![behind.threads[0], busy], ..behind.clone() });
        assert!(judged.is_client_limited() && !judged.is_server_behind());
        assert_eq!(judged.client, [ClientLimit::Busy(0.91)]);
        // Looking without waiting is no work.
        let idle = ClientThread { spinning: Nanos(9_000 * MS), ..busy };
        assert!(judge(&Load { threads: vec![idle], ..behind }).is_server_behind());
    }

    /// The client's thread did not run for 1.4 s of 10: all that was due meanwhile
    /// was taken up behind that, and is as late as it looks.
    #[test]
    fn a_stalled_client_is_the_limit_and_not_the_server() {
        let mut buckets = vec![(10_000, 8_600)];
        buckets.extend((1..=1400).map(|late_ms| (late_ms * MS, 1)));
        let lag = Histogram { buckets };
        let late = Load { from_due: lag.clone(), lag, ..load() };
        assert_eq!(judge(&late).client, [ClientLimit::Lag(Nanos(1_300 * MS))]);
        // The same times without lag are the server's.
        let server = Load { lag: load().lag, ..late };
        assert!(!judge(&server).is_client_limited() && judge(&server).late.is_none());
    }

    #[test]
    fn a_rare_lag_is_told_as_a_part_of_the_tail() {
        let lag = Histogram { buckets: vec![(10_000, 9_990), (5 * MS, 10)] };
        let from_due = Histogram { buckets: vec![(MS, 9_990), (6 * MS, 10)] };
        let judged = judge(&Load { lag: lag.clone(), from_due, ..load() });
        assert_eq!(judged.late, Some(Late { peak: Nanos(5 * MS), share: 0.001 }));
        assert!(!judged.is_client_limited());
        let slow = Histogram { buckets: vec![(MS, 9_990), (60 * MS, 10)] };
        assert_eq!(judge(&Load { lag, from_due: slow, ..load() }).late, None);
    }

    #[test]
    fn a_percentile_needs_its_requests() {
        let times = load().from_due;
        assert_eq!(quantile(&times, 0.999), Some(Nanos(MS)));
        assert_eq!(quantile(&times, 0.9999), None);
    }
}

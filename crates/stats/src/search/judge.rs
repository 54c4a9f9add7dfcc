//! What one phase says of a limit.
//!
//! Whatever disturbs a phase makes it worse and never better. So one that kept the limit
//! counts whoever was late, and one that broke it counts only where neither the client nor
//! the machine can be why.

use iolens_model::outcome::Status;
use iolens_model::reading::Histogram;
use iolens_model::run::SearchPhase;
use iolens_model::server::{CpuTime, OfferedSlice};
use iolens_model::slo::Percentile;
use iolens_model::units::Nanos;

use super::ladder::Said;
use crate::load::{ACHIEVED_SHARE, BUSY_SHARE, lag_limit, quantile};

/// What a phase must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// Of the time from when a request was due.
    pub(super) percentile: Percentile,
    /// It stays below this.
    pub(super) limit: Nanos,
}

/// What a phase says, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) said: Said,
    /// Why it was broken, or set aside; empty where it was kept.
    pub(super) why: String,
    /// Whether the client is why it was set aside.
    pub(super) by_client: bool,
}

impl Judged {
    fn kept() -> Judged {
        Judged { said: Said::Kept, why: String::new(), by_client: false }
    }

    fn broken(why: String) -> Judged {
        Judged { said: Said::Broken, why, by_client: false }
    }

    fn set_aside(why: String) -> Judged {
        Judged { said: Said::SetAside, why, by_client: false }
    }
}

/// Whether a phase came to its end, and no gate refused it.
pub(super) fn is_usable(phase: &SearchPhase) -> bool {
    phase.status == Status::Ok && phase.offered().is_some() && phase.latency.is_some()
}

impl Rule {
    /// Whether a phase kept the limit.
    pub(super) fn judge(&self, phase: &SearchPhase) -> Judged {
        let seen = phase.offered().zip(phase.latency.as_ref());
        let Some((offered, times)) = seen.filter(|_| phase.status == Status::Ok) else {
            let why = phase.reason.as_deref().unwrap_or("no reason was stored");
            return Judged::set_aside(format!("{}: {why}", phase.status.word()));
        };
        let Some(value) = quantile(times, self.percentile.share()) else {
            let (requests, percentile) = (times.total(), self.percentile);
            return Judged::set_aside(format!("{requests} requests are too few for {percentile}"));
        };
        let mut broken = self.not_answered(offered, times);
        let is_late = value >= self.limit;
        let is_late_alone = is_late && broken.is_empty();
        if is_late {
            broken.push(format!("{} {value}", self.percentile));
        }
        if broken.is_empty() {
            return Judged::kept();
        }
        let broken = broken.join(", ");
        if let Some(why) = client_limit(phase, offered) {
            let why = format!("{broken}, but {why}");
            return Judged { by_client: true, ..Judged::set_aside(why) };
        }
        match self.stolen(phase).filter(|_| is_late_alone) {
            Some(why) => Judged::set_aside(format!("{broken}, but {why}")),
            None => Judged::broken(broken),
        }
    }

    /// What became of requests that is not an answer in time: none may be lost, and what was
    /// due must have been answered.
    fn not_answered(&self, offered: &OfferedSlice, times: &Histogram) -> Vec<String> {
        let (due, ends) = (offered.scheduled, &offered.outcomes);
        let mut said = Vec::new();
        if ends.total() > ends.ok {
            said.push(format!("{} of {due} requests not answered", ends.total() - ends.ok));
        }
        // By Little's law rate × limit may be under way when the window ends, each in time, and
        // rate × mean were when it began, whose replies are among those that came in it.
        let rate = due as f64 / offered.window.as_seconds().max(f64::MIN_POSITIVE);
        let mean_s = times.mean_ns().unwrap_or(0.0) / 1e9;
        let more_under_way = rate * (self.limit.as_seconds() - mean_s).max(0.0);
        let answered = (offered.replies_in_window as f64 + more_under_way) / due.max(1) as f64;
        if answered < ACHIEVED_SHARE {
            let share = 100.0 * offered.replies_in_window as f64 / due.max(1) as f64;
            said.push(format!("{share:.1}% of the rate"));
        }
        said
    }

    /// Whether the hypervisor took as much of a processor as requests may be late.
    fn stolen(&self, phase: &SearchPhase) -> Option<String> {
        let cpus = &phase.server.as_ref()?.cpus.slices;
        let share = |cpu: &CpuTime| {
            let all = cpu.user + cpu.system + cpu.irq + cpu.softirq + cpu.steal + cpu.idle;
            cpu.steal as f64 / all.max(1) as f64
        };
        let most = cpus.iter().map(share).fold(0.0, f64::max);
        // 1 − 0.99 is not quite 0.01.
        const ROUNDING: f64 = 1e-9;
        let allowed = 1.0 - self.percentile.share() - ROUNDING;
        (most > 0.0 && most >= allowed)
            .then(|| format!("{:.1}% of a processor were stolen", 100.0 * most))
    }
}

/// Why the client may have been the limit; `None` where it was not.
fn client_limit(phase: &SearchPhase, offered: &OfferedSlice) -> Option<String> {
    let busiest = offered.threads.iter().filter_map(|thread| thread.busy());
    let busiest = busiest.max_by(f64::total_cmp).filter(|share| *share >= BUSY_SHARE);
    if let Some(share) = busiest {
        return Some(format!("a thread of the client worked {:.0}% of its time", 100.0 * share));
    }
    let (server, times) = (phase.server.as_ref()?, phase.latency.as_ref()?);
    let lag = lag_limit(&server.lag, times)?;
    Some(format!("the client was late by {lag} (p99)"))
}

#[cfg(test)]
mod tests {
    use iolens_model::load::{ClientThread, Outcomes};

    use super::*;
    use crate::search::simulation::{flat, phase};

    const MS: u64 = 1_000_000;
    const RULE: Rule = Rule { percentile: Percentile::P99, limit: Nanos(2 * MS) };

    /// 10 000 requests in a second, of 1 ms each.
    fn calm() -> SearchPhase {
        phase(10_000.0, flat(MS, 10_000), 10_000)
    }

    fn with(change: impl Fn(&mut OfferedSlice)) -> SearchPhase {
        let mut phase = calm();
        change(phase.server.as_mut().unwrap().offered.last_mut().unwrap());
        phase
    }

    fn check(phase: &SearchPhase, said: Said, why: &str) {
        let judged = RULE.judge(phase);
        assert_eq!((judged.said, judged.why.as_str()), (said, why));
    }

    #[test]
    fn a_limit_is_kept_by_all_requests_in_time() {
        check(&calm(), Said::Kept, "");
        let slow = phase(10_000.0, flat(2 * MS, 10_000), 10_000);
        check(&slow, Said::Broken, "p99 2.00 ms");
        let lost = with(|seen| seen.outcomes = Outcomes { ok: 9_999, timeout: 1, ..seen.outcomes });
        check(&lost, Said::Broken, "1 of 10000 requests not answered");
        let behind = with(|seen| seen.replies_in_window = 9_000);
        check(&behind, Said::Broken, "90.0% of the rate");
        // 20 may be under way at the end, 10 were at the beginning, and 200 are 2 %.
        check(&with(|seen| seen.replies_in_window = 9_791), Said::Kept, "");
        check(&with(|seen| seen.replies_in_window = 9_789), Said::Broken, "97.9% of the rate");
        check(
            &phase(10_000.0, flat(MS, 300), 300),
            Said::SetAside,
            "300 requests are too few for p99",
        );
    }

    /// A median says nothing of the mean, and where that is above the limit as many are under
    /// way at the beginning as may be at the end.
    #[test]
    fn what_is_under_way_at_both_ends_is_not_allowed_for_twice() {
        let rule = Rule { percentile: Percentile::P50, ..RULE };
        let times = Histogram { buckets: vec![(MS, 6_000), (10 * MS, 4_000)] };
        let said = |replies| {
            let mut phase = phase(10_000.0, times.clone(), 10_000);
            let seen = phase.server.as_mut().unwrap().offered.last_mut().unwrap();
            seen.replies_in_window = replies;
            rule.judge(&phase).said
        };
        assert_eq!((said(9_800), said(9_799)), (Said::Kept, Said::Broken));
    }

    #[test]
    fn a_busy_client_keeps_limits_and_breaks_none() {
        let busy = ClientThread {
            cpu: Nanos(950 * MS),
            wall: Nanos(1000 * MS),
            ..ClientThread::default()
        };
        check(&with(|seen| seen.threads = vec![busy]), Said::Kept, "");
        let behind = with(|seen| (seen.threads, seen.replies_in_window) = (vec![busy], 9_000));
        let why = "90.0% of the rate, but a thread of the client worked 95% of its time";
        check(&behind, Said::SetAside, why);
        assert!(RULE.judge(&behind).by_client);
        let mut late = phase(10_000.0, flat(4 * MS, 10_000), 10_000);
        late.server.as_mut().unwrap().lag = flat(MS, 10_000);
        check(&late, Said::SetAside, "p99 4.00 ms, but the client was late by 1.00 ms (p99)");
    }

    /// One tick of a hundred is the one request in a hundred that may be late.
    #[test]
    fn stolen_time_excuses_lateness_and_no_missing_answers() {
        let stolen = |steal, mut phase: SearchPhase| {
            let cpu = CpuTime { idle: 100 - steal, steal, ..CpuTime::default() };
            phase.server.as_mut().unwrap().cpus.slices = vec![CpuTime::default(), cpu];
            phase
        };
        let slow = || phase(10_000.0, flat(2 * MS, 10_000), 10_000);
        check(&stolen(0, slow()), Said::Broken, "p99 2.00 ms");
        let why = "p99 2.00 ms, but 1.0% of a processor were stolen";
        check(&stolen(1, slow()), Said::SetAside, why);
        assert!(!RULE.judge(&stolen(1, slow())).by_client);
        check(&stolen(1, calm()), Said::Kept, "");
        let behind = with(|seen| seen.replies_in_window = 9_000);
        check(&stolen(1, behind), Said::Broken, "90.0% of the rate");
    }

    #[test]
    fn a_phase_that_did_not_end_says_nothing() {
        let failed = SearchPhase {
            status: Status::Failed,
            reason: Some("the server ended".to_owned()),
            latency: None,
            server: None,
            ..calm()
        };
        check(&failed, Said::SetAside, "failed: the server ended");
    }
}

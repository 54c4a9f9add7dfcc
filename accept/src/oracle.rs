//! The client against a server that says itself when it served each request: what is
//! measured beyond that, what a stall of either looks like, and whose it is.

use std::time::Duration;

use serde_json::Value;

use super::iperf::Median;
use super::process::Job;
use super::serving::{self, Serving, number, signal};
use super::{Bench, Judged, Outcome};

const MS: f64 = 1e6;

/// Half of the requests take no longer beyond the oracle's own record.
const BEYOND_NS_MAX: f64 = 0.3 * MS;

const STALL_NS: f64 = 1400.0 * MS;

/// How far a figure may be from the one that is known.
const WITHIN: f64 = 0.05;

pub(crate) fn check(bench: &Bench) -> Judged {
    let parts = [matched(bench)?, server_stalls(bench)?, client_stalls(bench)?];
    let passes = parts.iter().all(|(is_good, _)| *is_good);
    let evidence: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// 5 ms of sleep for each request, an open loop, and every reply beside its record.
fn matched(bench: &Bench) -> Result<(bool, String), String> {
    const REQUESTS: usize = 2_000;
    let server = Serving::ours(bench, "thread_per_connection --service oracle:5ms")?;
    let line = format!(
        "load {} --connections 16 --rate 200 --requests {REQUESTS} --service oracle --seed 7 \
         --print --json",
        server.address
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    let done = bench.iolens("load", &words)?.limit_minutes(2).run()?.success()?;
    let replies: Vec<Value> = done
        .stdout()
        .lines()
        .filter(|line| line.starts_with("{\""))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let served = server.served()?;
    let mut beyond = Vec::new();
    let mut services = Vec::new();
    for reply in &replies {
        let (due_ns, received_ns, begin_ns, end_ns) =
            times(reply).ok_or_else(|| format!("this reply has no record: {reply}"))?;
        if begin_ns < due_ns || received_ns < end_ns {
            return Ok((false, format!("a service outside of what was measured: {reply}")));
        }
        services.push((end_ns - begin_ns) as f64);
        beyond.push(((received_ns - due_ns) - (end_ns - begin_ns)) as f64);
    }
    beyond.sort_by(f64::total_cmp);
    let passes = beyond.len() == REQUESTS
        && served["requests"].as_u64() == u64::try_from(REQUESTS).ok()
        && Median::of(&beyond).value < BEYOND_NS_MAX
        && beyond[0] >= 0.0;
    let at = |percent: usize| {
        beyond.get(beyond.len().saturating_sub(1) * percent / 100).unwrap_or(&0.0) / MS
    };
    let words = format!(
        "{} replies matched with the oracle's record of 5 ms (median {:.3} ms): latency beyond it \
         least {:.4} ms, median {:.4} ms, p99 {:.3} ms, most {:.3} ms; negative: none",
        replies.len(),
        Median::of(&services).value / MS,
        at(0),
        at(50),
        at(99),
        at(100)
    );
    eprintln!("   {words}");
    Ok((passes, words))
}

/// When a request was due and answered, and when its service began and ended, ns.
fn times(reply: &Value) -> Option<(u64, u64, u64, u64)> {
    let (begin, end) = reply["text"].as_str()?.split_once(' ')?;
    let (due, received) = (reply["due_ns"].as_u64()?, reply["received_ns"].as_u64()?);
    Some((due, received, begin.parse().ok()?, end.parse().ok()?))
}

const RATE: u32 = 200;
const REQUESTS: u32 = 6_000;
/// The request that stalls, from 1.
const STALLS_AT: u32 = 1_000;

/// One connection and one thread, which stands still once for 1.4 s.
fn server_stalls(bench: &Bench) -> Result<(bool, String), String> {
    let what = format!("epoll_lt --service oracle:1ms,stall=1.4s@{STALLS_AT}");
    let server = Serving::ours(bench, &what)?;
    let words = format!("--rate {RATE} --arrivals fixed --requests {REQUESTS} --service oracle");
    let load = serving::load(bench, &server.address, &words)?;
    server.served()?;
    let expected = p99_of_schedule(number(&load["from_sent"], "p50_ns"));
    let (due, sent) = (&load["from_due"], &load["from_sent"]);
    let (most, p99) = (number(due, "max_ns"), number(due, "p99_ns"));
    let sent_p99 = number(sent, "p99_ns");
    let slow = sent["buckets"].as_array().into_iter().flatten();
    let slow: u64 = slow
        .filter(|bucket| bucket[0].as_f64().is_some_and(|ns| ns > STALL_NS / 2.0))
        .filter_map(|bucket| bucket[1].as_u64())
        .sum();
    let passes = load["outcomes"]["ok"] == REQUESTS
        && is_near(most, STALL_NS)
        && is_near(p99, expected)
        && sent_p99 < 0.1 * p99
        && slow == 1
        && load["client_limited"] == false;
    let words = format!(
        "a server that stalls 1.4 s in {} s: from due at most {:.4} s, p99 {:.4} s (from the \
         schedule {:.4} s); from sent p99 {:.4} s, one request of {REQUESTS} above 0.7 s: {}; \
         client_limited {}",
        REQUESTS / RATE,
        most / 1e9,
        p99 / 1e9,
        expected / 1e9,
        sent_p99 / 1e9,
        slow == 1,
        load["client_limited"]
    );
    eprintln!("   {words}");
    Ok((passes, words))
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() <= WITHIN
}

/// The p99 of requests at equal gaps to who serves one after the other, in this time
/// each and once in the stall's.
fn p99_of_schedule(service_ns: f64) -> f64 {
    let gap_ns = 1e9 / f64::from(RATE);
    let mut free_ns: f64 = 0.0;
    let mut times: Vec<f64> = (1..=REQUESTS)
        .map(|number| {
            let due_ns = f64::from(number - 1) * gap_ns;
            free_ns = free_ns.max(due_ns) + if number == STALLS_AT { STALL_NS } else { service_ns };
            free_ns - due_ns
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[(REQUESTS * 99).div_ceil(100) as usize - 1]
}

/// The client is stopped for 1.4 s: its own lag, and nothing that is said of the server.
fn client_stalls(bench: &Bench) -> Result<(bool, String), String> {
    let server = Serving::ours(bench, "epoll_lt --service echo")?;
    let line = format!(
        "load {} --rate 500 --arrivals fixed --connections 4 --time 10s --service echo --json",
        server.address
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    let job: Job = bench.iolens("load", &words)?.limit_minutes(1);
    let running = job.start()?;
    std::thread::sleep(Duration::from_secs(3));
    signal("STOP", running.id())?;
    std::thread::sleep(Duration::from_millis(1400));
    signal("CONT", running.id())?;
    let done = running.finish()?.success()?;
    server.served()?;
    let load: Value = serde_json::from_str(&done.stdout()).map_err(|e| e.to_string())?;
    let lag = number(&load["lag"], "max_ns");
    let said = load["remarks"][0].as_str().unwrap_or("nothing");
    let passes = load["client_limited"] == true
        && load["server_behind"] == false
        && load["outcomes"]["ok"] == load["scheduled"]
        && load["scheduled"] == 5_000
        && is_near(lag, STALL_NS);
    let words = format!(
        "a client that is stopped for 1.4 s: own lag at most {:.4} s, client_limited {}, \
         server_behind {}; it says: {said}",
        lag / 1e9,
        load["client_limited"],
        load["server_behind"]
    );
    eprintln!("   {words}");
    Ok((passes, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_of_1400_ms_at_200_per_second_leaves_a_p99_that_is_known() {
        // The 60 slowest of 6000 stand before it: each waits 4 ms less than the one before.
        let expected = 1400.0 - 60.0 * (5.0 - 1.0);
        assert!((p99_of_schedule(MS) / MS - expected).abs() < 0.01);
    }
}

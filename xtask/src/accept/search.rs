//! A search against a server whose answer is known: one thread that works for a fixed time
//! on each request is M/D/1, with the time of a request that its closed loop shows.

use serde_json::Value;

use super::{Bench, Judged, Outcome};

/// Half a millisecond of work for each request.
const RUN: &str = "run server --quick --primitives epoll_lt --services burn:500 --connections 16 \
                   --load closed --topologies loopback --passes 2 --rounds 2 --knee --slo p99<5ms \
                   --budget 4m --json";

const LIMIT_S: f64 = 5e-3;

/// Steps of a search are 5 %; a found rate is within one more to each side.
const STEP: f64 = 1.05;

/// The knee is where the median is so many times that of the low rate, where hardly any
/// request waits.
const CLIMB: f64 = 2.0;

pub(crate) fn check(bench: &Bench) -> Judged {
    let args: Vec<&str> = RUN.split_whitespace().collect();
    let json = bench.iolens_json("search", &args, 6)?.json;
    let answers: Vec<&Value> = json["searches"].as_array().into_iter().flatten().collect();
    let of = |is_knee: bool| {
        let found = answers.iter().find(|answer| (answer["goal"] == "knee") == is_knee);
        found.copied().ok_or_else(|| format!("no such search: {}", json["searches"]))
    };
    let (limit, knee) = (of(false)?, of(true)?);
    let capacity = limit["closed_loop_per_s"].as_f64().ok_or("no closed loop was measured")?;
    let parts = [
        judge("p99 < 5 ms", limit, rate(capacity, 0.99, LIMIT_S)),
        judge("knee", knee, rate(capacity, 0.5, CLIMB / capacity)),
    ];
    let passes = parts.iter().all(|(is_good, _)| *is_good);
    let words: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let evidence = format!(
        "burn:500 with epoll_lt, closed loop {capacity:.0} per second\n{}",
        words.join("\n")
    );
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Whether a search has found a rate that is known.
fn judge(what: &str, answer: &Value, known: f64) -> (bool, String) {
    let (kept, broken) = (answer["kept_per_s"].as_f64(), answer["broken_per_s"].as_f64());
    let is_found = answer["ended"] == "found";
    let holds = kept
        .zip(broken)
        .is_some_and(|(kept, broken)| kept / STEP <= known && known <= broken * STEP);
    let levels = answer["levels"].as_array().map_or(0, Vec::len);
    let number = |rate: Option<f64>| rate.map_or("none".to_owned(), |rate| format!("{rate:.0}"));
    let words = format!(
        "{what}: kept at {}, broken at {} per second (M/D/1: {known:.0}), {} over {levels} rates",
        number(kept),
        number(broken),
        answer["ended"]
    );
    eprintln!("   {words}");
    (is_found && holds, words)
}

/// The rate at which a share of the requests to one server takes less than a limit, where
/// each has its fixed time: bisected over simulated arrivals.
fn rate(capacity: f64, share: f64, limit_s: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..14 {
        let load = f64::midpoint(low, high);
        if share_below(capacity, load, limit_s) > share { low = load } else { high = load }
    }
    low * capacity
}

/// The share of requests that take less than a limit at a load.
fn share_below(capacity: f64, load: f64, limit_s: f64) -> f64 {
    const REQUESTS: u32 = 400_000;
    // Knuth's MMIX generator; the upper half of its bits is good enough for gaps.
    let mut state: u64 = 1;
    let (mut wait, mut below) = (0.0f64, 0u32);
    for _ in 0..REQUESTS {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((state >> 32) as f64 + 0.5) / f64::from(u32::MAX);
        let gap = -uniform.min(1.0).ln() / (load * capacity);
        wait = (wait + 1.0 / capacity - gap).max(0.0);
        below += u32::from(wait + 1.0 / capacity < limit_s);
    }
    f64::from(below) / f64::from(REQUESTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the requests wait less than one service at a load of 0.768.
    #[test]
    fn the_simulated_queue_is_the_one_of_the_tables() {
        let known = rate(1000.0, 0.5, 2e-3);
        assert!((known / 768.0 - 1.0).abs() < 0.01, "{known}");
    }
}

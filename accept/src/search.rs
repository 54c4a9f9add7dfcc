//! A search against a server whose answer is known: one thread that works for a fixed time
//! on each request is M/D/1, with the time of a request that its closed loop shows where
//! the machine takes nothing away: in its fastest slice. A mean over slices has in it what
//! was taken away, and a search sets disturbed phases aside.

use serde_json::Value;

use super::{Bench, Judged, Outcome};

/// Half a millisecond of work for each request.
const RUN: &str = "run server --quick --models epoll_lt --service burn:500 --connections 16 \
                   --load closed --network loopback --passes 2 --rounds 6 --knee --slo p99<5ms \
                   --budget 4m --json";

const LIMIT_S: f64 = 5e-3;

/// Steps of a search are 5 %; a found rate is within one more to each side.
const STEP: f64 = 1.05;

/// A search that says "at least" says that much of the rate that is known.
const AT_LEAST_MIN: f64 = 0.8;

pub(crate) fn check(bench: &Bench) -> Judged {
    let args: Vec<&str> = RUN.split_whitespace().collect();
    let json = bench.iolens_json("search", &args, 6)?.json;
    let answers: Vec<&Value> = json["searches"].as_array().into_iter().flatten().collect();
    let of = |is_knee: bool| {
        let found = answers.iter().find(|answer| (answer["goal"] == "knee") == is_knee);
        found.copied().ok_or_else(|| format!("no such search: {}", json["searches"]))
    };
    let (limit, knee) = (of(false)?, of(true)?);
    let capacity = fastest(bench)?;
    let climbed_s = knee["limit_ns"].as_f64().ok_or("the knee has no limit")? / 1e9;
    let parts = [
        judge("p99 < 5 ms", limit, rate(capacity, 0.99, LIMIT_S)),
        judge("knee", knee, rate(capacity, 0.5, climbed_s - overhead_s(capacity, climbed_s))),
    ];
    let passes = parts.iter().all(|(is_good, _)| *is_good);
    let words: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let evidence = format!(
        "burn:500 with epoll_lt, closed loop {capacity:.0} per second in its fastest slice, {} in \
         all\n{}",
        limit["closed_loop_per_s"],
        words.join("\n")
    );
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Replies per second of the fastest slice of the closed loop.
fn fastest(bench: &Bench) -> Result<f64, String> {
    let args = ["export", "last", "--format", "json", "--rows", "slices"];
    let rows = bench.iolens_json("search", &args, 1)?.json;
    let rows = rows["slices"].as_array().into_iter().flatten();
    let rate =
        |row: &Value| Some(row["replies_in_window"].as_f64()? / (row["window_ns"].as_f64()? / 1e9));
    let counts = rows.filter(|row| row["kind"] == "measured" && row["primitive"] == "epoll_lt");
    let fastest = counts.filter_map(rate).fold(0.0, f64::max);
    if fastest > 0.0 { Ok(fastest) } else { Err("no closed loop was measured".to_owned()) }
}

/// What a request takes beyond its time at the server: the limit of the knee is twice its
/// time at a low rate, where it waits for nobody.
fn overhead_s(capacity: f64, climbed_s: f64) -> f64 {
    (climbed_s / 2.0 - 1.0 / capacity).max(0.0)
}

/// Whether a search has found a rate that is known, or says at least a rate that is not
/// above it: what was disturbed at the next one bounds nothing from above.
fn judge(what: &str, answer: &Value, known: f64) -> (bool, String) {
    let (kept, broken) = (answer["kept_per_s"].as_f64(), answer["broken_per_s"].as_f64());
    let is_at_least = |share: f64| kept.is_some_and(|kept| kept >= share * known);
    let holds = kept.is_some_and(|kept| kept / STEP <= known)
        && match answer["ended"].as_str() {
            Some("found") => {
                is_at_least(1.0 / STEP / STEP) && broken.is_some_and(|rate| known <= rate * STEP)
            }
            Some("at_least") => is_at_least(AT_LEAST_MIN),
            _ => false,
        };
    let levels = answer["levels"].as_array().map_or(0, Vec::len);
    let number = |rate: Option<f64>| rate.map_or("none".to_owned(), |rate| format!("{rate:.0}"));
    let words = format!(
        "{what}: kept at {}, broken at {} per second (M/D/1: {known:.0}), {} over {levels} rates{}",
        number(kept),
        number(broken),
        answer["ended"],
        answer["why"].as_str().map_or(String::new(), |why| format!(": {why}")),
    );
    eprintln!("   {words}");
    (holds, words)
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

    #[test]
    fn what_is_found_holds_the_known_rate_and_at_least_is_not_above_it() {
        let answer = |kept: f64, broken: f64, ended: &str| serde_json::json!({"kept_per_s": kept, "broken_per_s": broken, "ended": ended});
        let holds = |kept, broken, ended| judge("a rate", &answer(kept, broken, ended), 1000.0).0;
        assert!(holds(960.0, 1008.0, "found") && holds(1040.0, 1092.0, "found"));
        assert!(!holds(1060.0, 1113.0, "found") && !holds(900.0, 945.0, "found"));
        assert!(holds(850.0, 893.0, "at_least"), "the next rate was disturbed, below the known");
        assert!(!holds(1060.0, 1113.0, "at_least") && !holds(700.0, 1008.0, "at_least"));
        assert!(!holds(960.0, 1008.0, "cut_short"));
        assert!((overhead_s(2000.0, 1.2e-3) - 1e-4).abs() < 1e-12);
    }

    /// Half of the requests wait less than one service at a load of 0.768.
    #[test]
    fn the_simulated_queue_is_the_one_of_the_tables() {
        let known = rate(1000.0, 0.5, 2e-3);
        assert!((known / 768.0 - 1.0).abs() < 0.01, "{known}");
    }
}

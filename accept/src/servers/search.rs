//! A search against a server whose answer is known: one thread that works for a fixed time
//! on each request is M/D/1, with the time of a request that its closed loop shows where
//! the machine takes nothing away: in its fastest slice. A mean over slices has in it what
//! was taken away, and a search sets disturbed phases aside.

use crate::json::measured;
use crate::prelude::*;

/// Half a millisecond of work for each request.
const RUN: &str = "run server --quick --models epoll_lt --service burn:500 --connections 16 \
                   --load closed --network loopback --passes 2 --rounds 6 --knee --slo p99<5ms \
                   --budget 4m --json";

const LIMIT_S: f64 = 5e-3;

pub fn check(bench: &Bench) -> Res {
    let json = bench.json(RUN)?;
    let capacity = fastest(&bench.slices()?)?;
    let climbed_s = json.number("search(\"knee\").limit_ns / 1e9")?;
    let known = json!({
        "capacity": capacity,
        "slo": rate(capacity, 0.99, LIMIT_S),
        "knee": rate(capacity, 0.5, climbed_s - overhead_s(capacity, climbed_s)),
    });
    bench.ask("searches", &json, &known);
    Ok(())
}

/// Replies per second of the fastest slice of the closed loop.
fn fastest(slices: &Value) -> Res<f64> {
    let rows = measured(slices).into_iter().filter(|row| row["primitive"] == "epoll_lt");
    let rates = rows.map(|row| row.num("replies_in_window") / (row.num("window_ns") / 1e9));
    let fastest = rates.fold(0.0, f64::max);
    ensure!(fastest > 0.0, "no closed loop was measured");
    Ok(fastest)
}

/// What a request takes beyond its time at the server: the limit of the knee is twice its
/// time at a low rate, where it waits for nobody.
fn overhead_s(capacity: f64, climbed_s: f64) -> f64 {
    (climbed_s / 2.0 - 1.0 / capacity).max(0.0)
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
    use crate::lines::asked;

    #[test]
    fn what_is_found_holds_the_known_rate_and_at_least_is_not_above_it() {
        let holds = |kept: f64, broken: f64, ended: &str| {
            let answer = |goal: &str| json!({"goal": goal, "kept_per_s": kept, "broken_per_s": broken, "ended": ended});
            let run = json!({"searches": [answer("knee"), answer("slo")]});
            let known = json!({"capacity": 2000.0, "slo": 1000.0, "knee": 1000.0});
            asked("servers search", "searches", &run, &known)
        };
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

//! The client against a server that says itself when it served each request: what is
//! measured beyond that, what a stall of either looks like, and whose it is.

use crate::json::measured;
use crate::pairs::Median;
use crate::prelude::*;
use crate::servers::{Serving, load, load_line};

const MS: f64 = 1e6;

/// Half of the requests take no longer beyond the oracle's own record.
const BEYOND_NS_MAX: f64 = 0.3 * MS;

const STALL_NS: f64 = 1400.0 * MS;

pub fn oracle(bench: &Bench) -> Res {
    matched(bench)?;
    server_stalls(bench)?;
    client_stalls(bench)
}

/// 5 ms of sleep for each request, an open loop, and every reply beside its record.
fn matched(bench: &Bench) -> Res {
    const REQUESTS: u64 = 2_000;
    let server = Serving::ours(bench, "thread_per_connection --service oracle:5ms")?;
    let words = format!(
        "--connections 16 --rate 200 --requests {REQUESTS} --service oracle --seed 7 --print"
    );
    let done = bench.run(load_line(&server, &words))?;
    let (mut beyond, mut services) = (Vec::new(), Vec::new());
    for line in done.out_lines().filter(|line| line.starts_with("{\"")) {
        let [due, received, begin, end] =
            times(line).with_context(|| format!("this reply has no record: {line}"))?;
        if begin < due || received < end {
            bail!("a service outside of what was measured: {line}");
        }
        services.push((end - begin) as f64 / MS);
        beyond.push(((received - due) as f64 - (end - begin) as f64) / MS);
    }
    if beyond.is_empty() {
        bail!("no reply has a record");
    }
    beyond.sort_by(f64::total_cmp);
    bench.same("requests served", server.served()?.int("requests"), REQUESTS);
    bench.same("replies matched", beyond.len() as u64, REQUESTS);
    bench.note("ms of service by the oracle's record", Median::of(services).value);
    let at = |percent: usize| beyond[(beyond.len() - 1) * percent / 100];
    bench.within("ms beyond it, least", at(0), 0.0..);
    bench.within("median", Median::of(beyond.iter().copied()).value, ..BEYOND_NS_MAX / MS);
    bench.note("p99, most", format!("{:.3}, {:.3}", at(99), at(100)));
    Ok(())
}

/// When a request was due and answered, and when its service began and ended, ns.
fn times(line: &str) -> Option<[u64; 4]> {
    let reply: Value = serde_json::from_str(line).ok()?;
    let (begin, end) = reply["text"].as_str()?.split_once(' ')?;
    let (due, received) = (reply["due_ns"].as_u64()?, reply["received_ns"].as_u64()?);
    Some([due, received, begin.parse().ok()?, end.parse().ok()?])
}

const RATE: u32 = 200;
const REQUESTS: u32 = 6_000;
/// The request that stalls, from 1.
const STALLS_AT: u32 = 1_000;

/// One connection and one thread, which stands still once for 1.4 s.
fn server_stalls(bench: &Bench) -> Res {
    let what = format!("epoll_lt --service oracle:1ms,stall=1.4s@{STALLS_AT}");
    let server = Serving::ours(bench, &what)?;
    let words = format!("--rate {RATE} --arrivals fixed --requests {REQUESTS} --service oracle");
    let load = load(bench, &server, &words)?;
    server.served()?;
    let expected = json!({"p99_ns": p99_of_schedule(load.num("from_sent/p50_ns"))});
    bench.ask("a server that stalls", &load, &expected);
    Ok(())
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
fn client_stalls(bench: &Bench) -> Res {
    let server = Serving::ours(bench, "epoll_lt --service echo")?;
    let words = "--rate 500 --arrivals fixed --connections 4 --time 10s --service echo";
    let running = bench.iolens(load_line(&server, words)).minutes(1).start()?;
    std::thread::sleep(Duration::from_secs(3));
    running.signal("STOP")?;
    std::thread::sleep(Duration::from_millis(1400));
    running.signal("CONT")?;
    let load = running.finish()?.success()?.json()?;
    server.served()?;
    bench.ask("a client that is stopped", &load, &Value::Null);
    Ok(())
}

// A search against a server whose answer is known: one thread that works for a fixed time
// on each request is M/D/1, with the time of a request that its closed loop shows where
// the machine takes nothing away: in its fastest slice. A mean over slices has in it what
// was taken away, and a search sets disturbed phases aside.

/// Half a millisecond of work for each request.
const RUN: &str = "run server --quick --models epoll_lt --service burn:500 --connections 16 \
                   --load closed --network loopback --passes 2 --rounds 6 --knee --slo p99<5ms \
                   --budget 4m --json";

const LIMIT_S: f64 = 5e-3;

pub fn search(bench: &Bench) -> Res {
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
    fn a_stall_of_1400_ms_at_200_per_second_leaves_a_p99_that_is_known() {
        // The 60 slowest of 6000 stand before it: each waits 4 ms less than the one before.
        let expected = 1400.0 - 60.0 * (5.0 - 1.0);
        assert!((p99_of_schedule(MS) / MS - expected).abs() < 0.01);
    }

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

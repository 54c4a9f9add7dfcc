//! The client against a server that says itself when it served each request: what is
//! measured beyond that, what a stall of either looks like, and whose it is.

use crate::pairs::Median;
use crate::prelude::*;
use crate::servers::{Serving, load, load_line};

const MS: f64 = 1e6;

/// Half of the requests take no longer beyond the oracle's own record.
const BEYOND_NS_MAX: f64 = 0.3 * MS;

const STALL_NS: f64 = 1400.0 * MS;

pub fn check(bench: &Bench) -> Res {
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

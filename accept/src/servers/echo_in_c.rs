//! Our `epoll_lt` and `uring` beside plain C loops of the same design, both under the
//! same load of ours: the server on CPU 0, the client on CPU 1, in turn.

use crate::pairs::{Count, pairs};
use crate::prelude::*;
use crate::servers::serving::{Serving, cpu_ns, load, mishaps};

/// Most by which ours may be slower, or need more CPU time for a request.
const WITHIN: f64 = 0.10;

/// Connections, and requests in flight on each. With several the server always has
/// something to do; with one it sleeps between requests, and what that costs on a
/// virtual machine is the same for both.
const LOADS: [(u32, u32); 3] = [(16, 1), (16, 8), (256, 4)];

/// Pairs of runs of 0.6 s, each of which is 10 % off here.
const PAIRS: Count = Count::until(0.06, 121);

const UNITS: [&str; 2] = ["requests/s", "ns of the server's CPU time for each"];

pub fn check(bench: &Bench) -> Res {
    for model in ["epoll_lt", "uring"] {
        let ours = Serving::ours(bench, &format!("{model} --cpus 0"))?;
        let in_c = Job::new(bench.peers.join(format!("echo-{model}"))).arg("0");
        let in_c = Serving::of(in_c)?;
        for (connections, in_flight) in LOADS {
            let load = format!(
                "--connections {connections} --in-flight {in_flight} --time 600ms --warmup 100ms \
                 --service echo --cpus 1"
            );
            let asked = |server| asked(bench, server, &load);
            let [rate, cost] = pairs(PAIRS, UNITS, &|| asked(&ours), &|| asked(&in_c))?;
            let name = format!("{model}, {connections} × {in_flight}");
            rate.at_least(bench, name, 1.0 - WITHIN);
            cost.at_most(bench, "cost", 1.0 + WITHIN);
        }
        in_c.stop()?;
        bench.same("wrong at ours", mishaps(&ours.served()?), "nothing");
    }
    Ok(())
}

/// Requests per second, and ns of the server's CPU time for each.
fn asked(bench: &Bench, server: &Serving, words: &str) -> Res<[f64; 2]> {
    let spent = || cpu_ns(server.running.id());
    let before = spent();
    let load = load(bench, server, words)?;
    let cpu_ns = spent() - before;
    if load["outcomes"]["ok"] != load["scheduled"] {
        return Err(format!("not every request went well: {load}"));
    }
    let requests = load.int("scheduled") + load.int("warmup");
    Ok([load.need("rate_per_s")?, cpu_ns / requests as f64])
}

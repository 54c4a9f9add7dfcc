//! Our `epoll_lt` and `uring` beside plain C loops of the same design, both under the
//! same load of ours: the server on CPU 0, the client on CPU 1, in turn.

use std::path::PathBuf;

use super::paired::{Count, Paired};
use super::process::{Job, need};
use super::serving::{self, Serving, number};
use super::{Bench, Judged, Outcome};

/// Most by which ours may be slower, or need more CPU time for a request.
const WITHIN: f64 = 0.10;

/// Connections, and requests in flight on each. With several the server always has
/// something to do; with one it sleeps between requests, and what that costs on a
/// virtual machine is the same for both.
const LOADS: [(u32, u32); 3] = [(16, 1), (16, 8), (256, 4)];

/// Width of an interval of pairs of runs of 0.6 s, each of which is 10 % off here.
const WIDTH: f64 = 0.06;

pub(crate) fn check(bench: &Bench) -> Judged {
    if let Err(missing) = need("gcc", "gcc") {
        return Ok(Outcome::Skip(missing));
    }
    let (mut evidence, mut passes) = (Vec::new(), true);
    for model in ["epoll_lt", "uring"] {
        let ours = Serving::ours(bench, &format!("{model} --cpus 0"))?;
        let rival = Serving::rival(Job::new(build(bench, model)?).args(&["0"]).limit_minutes(20))?;
        for (connections, in_flight) in LOADS {
            let load = format!("--connections {connections} --in-flight {in_flight}");
            let served = |server: &Serving| asked(bench, server, &load);
            let [rate, cost] =
                Paired::served(Count::until(WIDTH), &|| served(&ours), &|| served(&rival))?;
            passes &= rate.ratio.low >= 1.0 - WITHIN && cost.ratio.high <= 1.0 + WITHIN;
            let words = format!(
                "{model}, {connections} × {in_flight}: rate ours/C {} requests per second; the \
                 server's CPU time for each {} ns",
                rate.words(),
                cost.words()
            );
            eprintln!("   {words}");
            evidence.push(words);
        }
        rival.stop()?;
        let wrong = serving::mishaps(&ours.served()?);
        if wrong != "nothing" {
            return Err(format!("{model} met trouble: {wrong}"));
        }
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Builds the plain loop of a model.
fn build(bench: &Bench, model: &str) -> Result<PathBuf, String> {
    let program = bench.home("echo")?.join(model);
    let source = crate::root().join(format!("witness/echo/{model}.c")).display().to_string();
    let out = program.display().to_string();
    let args = ["-O2", "-Wall", "-Wextra", "-Werror", "-o", &out, &source];
    Job::new("gcc").args(&args).limit_minutes(1).run()?.success()?;
    Ok(program)
}

/// Requests per second, and ns of the server's CPU time for each.
fn asked(bench: &Bench, server: &Serving, load: &str) -> Result<[f64; 2], String> {
    let before = server.cpu_ns()?;
    let words = format!("{load} --time 600ms --warmup 100ms --service echo --cpus 1");
    let load = serving::load(bench, &server.address, &words)?;
    let cpu_ns = (server.cpu_ns()? - before) as f64;
    if load["outcomes"]["ok"] != load["scheduled"] {
        return Err(format!("not every request went well: {load}"));
    }
    let requests = number(&load, "scheduled") + number(&load, "warmup");
    Ok([number(&load, "rate_per_s"), cpu_ns / requests])
}

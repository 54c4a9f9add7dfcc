//! Ten thousand connections at once: what they take, and what is said where a limit is
//! in the way.

use std::time::Duration;

use serde_json::Value;

use super::process::{Finished, Job, need, status_kib};
use super::serving::{Serving, mishaps, number, serve_line};
use super::{Bench, Judged, Outcome};

const MODELS: [&str; 3] = ["epoll_lt", "epoll_et", "uring"];

const CONNECTIONS: u64 = 10_000;

/// What the client may have in memory, all of it, and how long it may take to connect.
const CLIENT_KIB_MAX: u64 = 100_000_000 / 1024;
const RAMP_NS_MAX: f64 = 3e9;

/// Few descriptors.
const FEW: &str = "--nofile=4096:4096";

/// How often is looked at what the client has in memory; its peak does not go down.
const POLL: Duration = Duration::from_millis(5);

pub(crate) fn check(bench: &Bench) -> Judged {
    if let Err(missing) = need("prlimit", "util-linux") {
        return Ok(Outcome::Skip(missing));
    }
    let (mut evidence, mut passes) = (Vec::new(), true);
    for model in MODELS {
        for (is_good, words) in [held(bench, model)?, few_at_the_server(bench, model)?] {
            eprintln!("   {words}");
            passes &= is_good;
            evidence.push(words);
        }
    }
    let (is_good, words) = few_at_the_client(bench)?;
    passes &= is_good;
    evidence.push(words);
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

fn load_line(address: &str) -> String {
    format!("load {address} --connections {CONNECTIONS} --time 3s --service echo --json")
}

/// All of them with the limits as they are.
fn held(bench: &Bench, model: &str) -> Result<(bool, String), String> {
    let server = Serving::ours(bench, model)?;
    let (done, peak_kib) = watched(bench, &load_line(&server.address))?;
    let served = server.served()?;
    if let Some(limit) = limit_of(&done) {
        return Ok((true, format!("{model}: not on this machine: {limit}")));
    }
    let load = json(&done)?;
    let ramp_ns = number(&load, "ramp_ns");
    let all_ok = number(&load, "scheduled") > 0.0 && load["outcomes"]["ok"] == load["scheduled"];
    let passes = all_ok
        && load["connections_made"] == CONNECTIONS
        && load["connections_failed"] == 0
        && mishaps(&served) == "nothing"
        && (1.0..RAMP_NS_MAX).contains(&ramp_ns)
        && (1..CLIENT_KIB_MAX).contains(&peak_kib);
    let words = format!(
        "{model}: {} connections in {:.2} s, {} of {} requests ok, {:.0} per second, client at \
         most {:.1} MB resident, wrong at the server: {}",
        load["connections_made"],
        ramp_ns / 1e9,
        load["outcomes"]["ok"],
        load["scheduled"],
        number(&load, "rate_per_s"),
        peak_kib as f64 * 1024.0 / 1e6,
        mishaps(&served)
    );
    Ok((passes, words))
}

/// What a client that did not begin named as the limit.
fn limit_of(done: &Finished) -> Option<String> {
    let text = done.stderr();
    let is_limit = done.status.code() == Some(2) && text.contains("need");
    is_limit.then(|| text.trim().to_owned())
}

/// A server that has too few: it closes the rest, counts them, and serves on.
fn few_at_the_server(bench: &Bench, model: &str) -> Result<(bool, String), String> {
    let line = serve_line(model);
    let words: Vec<&str> = line.split_whitespace().collect();
    let tool = bench.tool.display().to_string();
    let job = Job::new("prlimit").args(&[FEW, &tool]).args(&words).limit_minutes(3);
    let mut server = Serving::of(bench.at_home("few", job)?)?;
    let (done, _) = watched(bench, &load_line(&server.address))?;
    let load = json(&done)?;
    let lives = server.is_running() && server.answers();
    let served = server.served()?;
    let closed = number(&served["mishaps"], "no_descriptor");
    let answered = number(&load["outcomes"], "ok");
    let adds_up = ["ok", "timeout", "refused", "reset", "invalid", "abandoned"]
        .iter()
        .map(|kind| number(&load["outcomes"], kind))
        .sum::<f64>()
        == number(&load, "scheduled");
    let words = format!(
        "{model} with 4096 descriptors: {closed} times closed for want of one (no_descriptor), \
         {answered} of {} requests ok, the rest counted; it answers on: {lives}",
        load["scheduled"]
    );
    Ok((lives && closed > 0.0 && answered > 0.0 && adds_up, words))
}

/// A client that has too few says so before it connects.
fn few_at_the_client(bench: &Bench) -> Result<(bool, String), String> {
    let server = Serving::ours(bench, "epoll_lt")?;
    let line = load_line(&server.address);
    let words: Vec<&str> = line.split_whitespace().collect();
    let tool = bench.tool.display().to_string();
    let done = bench.at_home("few", Job::new("prlimit").args(&[FEW, &tool]).args(&words))?.run()?;
    let served = server.served()?;
    let said = done.stderr();
    let names_it = done.status.code() == Some(2) && said.contains("RLIMIT_NOFILE");
    let words = format!("load with 4096 descriptors: {}", said.trim());
    Ok((names_it && served["connections"] == 0, words))
}

/// A command of the tool to its end, and the most it had in memory.
fn watched(bench: &Bench, line: &str) -> Result<(Finished, u64), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut running = bench.iolens("load", &words)?.limit_minutes(3).start()?;
    let mut peak_kib = 0;
    while running.is_running() {
        peak_kib = status_kib(running.id(), "VmHWM:").unwrap_or(0).max(peak_kib);
        std::thread::sleep(POLL);
    }
    Ok((running.finish()?, peak_kib))
}

fn json(done: &Finished) -> Result<Value, String> {
    let said = || format!("`iolens load` ended with {}: {}", done.status, done.stderr().trim());
    serde_json::from_str(&done.stdout()).map_err(|_| said())
}

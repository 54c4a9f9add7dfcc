//! What goes wrong between clients and servers: ports that run out, a queue that
//! overflows, clients that vanish, and those that misbehave in every other way.

use std::time::Duration;

use serde_json::Value;

use super::process::{Finished, Job, need};
use super::serving::{self, Serving, mishaps, number, serve_line, signal};
use super::{Bench, Judged, Outcome};

/// Clients that vanish.
const VANISH: &str = include_str!("vanish.py");

/// After 30 s without a sign a server asks for one (`TCP_KEEPIDLE`), and is told that
/// nobody knows of the connection.
const ASKED_AFTER: Duration = Duration::from_secs(33);

pub(crate) fn check(bench: &Bench) -> Judged {
    for (program, package) in
        [("python3", "python3"), ("unshare", "util-linux"), ("ip", "iproute2")]
    {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    if super::process::own_user() != Ok(0) {
        return Ok(Outcome::Skip("network namespaces and TCP_REPAIR need root".to_owned()));
    }
    let parts =
        [ports_run_out(bench)?, queue_overflows(bench)?, clients_vanish(bench)?, misbehaving()?];
    let passes = parts.iter().all(|(is_good, _)| *is_good);
    let evidence: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// A server in a network namespace of its own, where `prepared` was done before.
fn apart(bench: &Bench, words: &str, prepared: &str) -> Result<Serving, String> {
    let script = format!("ip link set lo up && {prepared} && exec \"$@\"");
    let tool = bench.tool.display().to_string();
    let line = serve_line(words);
    let words: Vec<&str> = line.split_whitespace().collect();
    let job = Job::new("unshare").args(&["--net", "sh", "-c", &script, "sh", &tool]).args(&words);
    Serving::of(bench.at_home("apart", job.limit_minutes(3))?)
}

/// A load in the namespace of a server, begun.
fn load_beside(bench: &Bench, server: &Serving, words: &str) -> Result<Job, String> {
    let (tool, id) = (bench.tool.display().to_string(), server.id().to_string());
    let line = format!("load {} {words} --json", server.address);
    let words: Vec<&str> = line.split_whitespace().collect();
    let job = Job::new("nsenter").args(&["--net", "--target", &id, &tool]).args(&words);
    Ok(bench.at_home("apart", job)?.limit_minutes(2))
}

fn json(done: &Finished) -> Result<Value, String> {
    serde_json::from_str(&done.stdout()).map_err(|e| format!("{e}: {}", done.stderr()))
}

/// A hundred ports, kept for a minute each, and 500 short connections; then with the
/// addresses that the message advises.
fn ports_run_out(bench: &Bench) -> Result<(bool, String), String> {
    let sysctl = "/proc/sys/net/ipv4";
    let few = format!(
        "echo 40000 40099 > {sysctl}/ip_local_port_range && echo 0 > {sysctl}/tcp_tw_reuse"
    );
    let server = apart(bench, "epoll_lt", &few)?;
    let short = "--short --connections 4 --requests 500 --service echo";
    let refused = load_beside(bench, &server, short)?.run()?;
    let more = format!("{short} --sources 127.0.0.1-127.0.0.16");
    let advised = json(&load_beside(bench, &server, &more)?.run()?.success()?)?;
    let before = load_beside(bench, &server, "--rate 500 --short --connections 4 --time 2s")?;
    let computed = before.run()?;
    let answers = advised["outcomes"]["ok"] == 500;
    let served = server.served()?;
    let said = refused.stderr();
    let first = |text: &str| text.lines().take(2).collect::<Vec<_>>().join(" ");
    let passes = refused.status.code() == Some(4)
        && said.contains("EADDRNOTAVAIL")
        && said.contains("--sources")
        && computed.status.code() == Some(2)
        && computed.stderr().contains("need 1000 ports")
        && answers
        && only_gone(&served, 4);
    let words = format!(
        "ports run out: {} / as an open loop, before it begins: {} / with more addresses {} of 500 \
         ok; wrong at the server: {}",
        first(&said),
        first(&computed.stderr()),
        advised["outcomes"]["ok"],
        mishaps(&served)
    );
    eprintln!("   {words}");
    Ok((passes, words))
}

/// Whether nothing went wrong at a server but for so many clients that left before their
/// reply: those of a load that gives up.
fn only_gone(served: &Value, most: u64) -> bool {
    let all = served["mishaps"].as_object().into_iter().flatten();
    all.into_iter().all(|(kind, count)| {
        let most = if kind == "reset" { most } else { 0 };
        count.as_u64().is_some_and(|count| count <= most)
    })
}

/// A queue of four, and 64 connections while the server is stopped. The kernel asks those that
/// found no room again after 1, 2, 4 and 8 s, all at once, and four may come in each time: a
/// request may well wait for longer than the limit of 10 s, and is counted as that.
fn queue_overflows(bench: &Bench) -> Result<(bool, String), String> {
    let server = apart(bench, "epoll_lt --backlog 4", "true")?;
    signal("STOP", server.id())?;
    let load = load_beside(bench, &server, "--connections 64 --requests 640 --service echo")?;
    let running = load.start()?;
    std::thread::sleep(Duration::from_millis(1500));
    signal("CONT", server.id())?;
    let load = json(&running.finish()?.success()?)?;
    let served = server.served()?;
    let remarks: Vec<&str> =
        load["remarks"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let remarks = remarks.join(" ");
    let of = |kind: &str| load["outcomes"][kind].as_u64().unwrap_or(0);
    let overflows = number(&load["network"], "listen_overflows");
    let slow = number(&load, "connections_slow");
    let passes = of("ok") + of("timeout") == 640
        && of("timeout") < 64
        && overflows > 0.0
        && slow > 0.0
        && remarks.contains("ListenOverflows")
        && remarks.contains("longer backlog")
        && only_gone(&served, of("timeout"));
    let words = format!(
        "a queue of 4 overflows: {overflows} ListenOverflows counted, {slow} of 64 connections 0.9 \
         s or more, {} of 640 requests ok and {} timed out; wrong at the server: {}",
        of("ok"),
        of("timeout"),
        mishaps(&served)
    );
    eprintln!("   {words}");
    Ok((passes, words))
}

/// Two clients of every model vanish; the others are answered, and when the kernel has
/// asked in vain the server knows.
fn clients_vanish(bench: &Bench) -> Result<(bool, String), String> {
    let models = serving::models(bench)?;
    let mut servers = Vec::new();
    for model in &models {
        // Where others wait it is the limit that ends the wait.
        let limit = if model == "iterative" { "--stall-limit 1s" } else { "" };
        servers.push(Serving::ours(bench, &format!("{model} {limit}"))?);
    }
    let ports: Vec<String> = servers
        .iter()
        .filter_map(|server| Some(server.address.rsplit_once(':')?.1.to_owned()))
        .collect();
    let words: Vec<&str> = ports.iter().map(String::as_str).collect();
    Job::new("python3").args(&["-c", VANISH]).args(&words).run()?.success()?;
    let unanswered = |servers: &[Serving]| -> Vec<&str> {
        let all = servers.iter().zip(&models);
        all.filter(|(server, _)| !server.answers()).map(|(_, model)| model.as_str()).collect()
    };
    let mut silent = unanswered(&servers);
    std::thread::sleep(ASKED_AFTER);
    silent.extend(unanswered(&servers));
    let (mut wrong, mut counted) = (Vec::new(), Vec::new());
    for (server, model) in servers.into_iter().zip(&models) {
        let served = server.served()?;
        let expected = if model == "iterative" { "timed_out" } else { "reset" };
        if served["mishaps"][expected] != 2 || served["requests"] != 4 {
            wrong.push(format!("{model}: {} of {} requests", mishaps(&served), served["requests"]));
        }
        counted.push(mishaps(&served));
    }
    counted.sort();
    counted.dedup();
    let passes = silent.is_empty() && wrong.is_empty();
    let words = format!(
        "2 clients vanish (half-open) in each of {} models: counted {}, the others answered at once \
         and after 33 s: {}{}",
        models.len(),
        counted.join(" or "),
        silent.is_empty(),
        if passes { String::new() } else { format!("; WRONG: {silent:?} {wrong:?}") }
    );
    eprintln!("   {words}");
    Ok((passes, words))
}

/// The tests that are always run: every model and every kind of client.
fn misbehaving() -> Result<(bool, String), String> {
    let args = ["test", "--package", "iolens", "--test", "it", "--", "serve::", "load::"];
    let done = Job::cargo(&args).limit_minutes(20).run()?;
    let text = done.stdout();
    let named = [
        "a_port_that_is_taken_is_said_to_be",
        "garbage_is_answered_with_an_error_and_the_others_are_served_on",
        "a_client_that_dies_is_counted_and_the_others_are_served_on",
        "slow_readers_and_silent_clients_hold_nobody_up",
        "without_a_descriptor_connections_are_closed_and_the_others_served_on",
        "without_a_thread_or_process_connections_are_closed",
    ];
    let missing: Vec<&str> = named
        .into_iter()
        .filter(|name| !text.lines().any(|line| line.contains(name) && line.ends_with(" ok")))
        .collect();
    let result = text.lines().find(|line| line.starts_with("test result:")).unwrap_or("");
    let words = format!(
        "port in use, garbage, oversized requests, client death, slow readers, no descriptor, no \
         thread, each with all models that have it, as tests: {result}{}",
        if missing.is_empty() { String::new() } else { format!("; not ok: {missing:?}") }
    );
    eprintln!("   {words}");
    Ok((done.status.success() && missing.is_empty(), words))
}

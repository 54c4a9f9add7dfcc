//! What goes wrong between clients and servers: ports that run out, a queue that
//! overflows, clients that vanish, and those that misbehave in every other way.

use std::thread::sleep;

use crate::prelude::*;
use crate::process::tests;
use crate::servers::{Serving, load_line, models};

/// Clients that vanish.
const VANISH: &str = include_str!("vanish.py");

/// After 30 s without a sign a server asks for one (`TCP_KEEPIDLE`), and is told that
/// nobody knows of the connection.
const ASKED_AFTER: Duration = Duration::from_secs(33);

pub fn check(bench: &Bench) -> Res {
    ports_run_out(bench)?;
    queue_overflows(bench)?;
    clients_vanish(bench)?;
    misbehaving(bench)
}

/// A server in a network namespace of its own, where `prepared` was done before.
fn apart(bench: &Bench, words: &str, prepared: &str) -> Res<Serving> {
    let script = format!("ip link set lo up && {prepared} && exec \"$@\"");
    let job = Job::of("unshare --net sh -c").arg(script).arg("sh").minutes(3);
    Serving::under(bench, job, words)
}

/// A load in the namespace of a server.
fn load_beside(bench: &Bench, server: &Serving, words: &str) -> Job {
    let enter = format!("nsenter --net --target {}", server.running.id());
    bench.under(Job::of(&enter), load_line(server, words)).minutes(2)
}

/// A hundred ports, kept for a minute each, and 500 short connections; then with the
/// addresses that the message advises.
fn ports_run_out(bench: &Bench) -> Res {
    let few = "cd /proc/sys/net/ipv4 && echo 40000 40099 > ip_local_port_range && echo 0 > \
               tcp_tw_reuse && cd /";
    let server = apart(bench, "epoll_lt", few)?;
    let short = "--short --connections 4 --requests 500 --service echo";
    let refused = load_beside(bench, &server, short).run()?;
    let named = refused.refuses(4, "EADDRNOTAVAIL") && refused.refuses(4, "--sources");
    bench.judge("ports run out", named, refused.stderr());
    let more = format!("{short} --sources 127.0.0.1-127.0.0.16");
    let advised = load_beside(bench, &server, &more).json()?;
    bench.ask("more addresses", &advised, &Value::Null);
    let open = "--rate 500 --short --connections 4 --time 2s";
    let computed = load_beside(bench, &server, open).run()?;
    let named = computed.refuses(2, "need 1000 ports");
    bench.judge("as an open loop, before it begins", named, computed.stderr());
    bench.ask("the server", &server.served()?, &json!(4));
    Ok(())
}

/// A queue of four, and 64 connections while the server is stopped. The kernel asks those that
/// found no room again after 1, 2, 4 and 8 s, all at once, and four may come in each time: a
/// request may well wait for longer than the limit of 10 s, and is counted as that.
fn queue_overflows(bench: &Bench) -> Res {
    let server = apart(bench, "epoll_lt --backlog 4", "true")?;
    server.running.signal("STOP")?;
    let load = load_beside(bench, &server, "--connections 64 --requests 640 --service echo");
    let running = load.start()?;
    sleep(Duration::from_millis(1500));
    server.running.signal("CONT")?;
    let load = running.finish()?.success()?.json()?;
    bench.ask("a queue that overflows", &load, &Value::Null);
    bench.ask("the server", &server.served()?, load.at("outcomes/timeout"));
    Ok(())
}

/// Two clients of every model vanish; the others are answered, and when the kernel has
/// asked in vain the server knows.
fn clients_vanish(bench: &Bench) -> Res {
    let models = models(bench)?;
    let mut servers = Vec::new();
    for model in &models {
        // Where others wait it is the limit that ends the wait.
        let limit = if model == "iterative" { "--stall-limit 1s" } else { "" };
        servers.push(Serving::ours(bench, &format!("{model} {limit}"))?);
    }
    let ports = servers.iter().filter_map(|server| Some(server.address.rsplit_once(':')?.1));
    Job::of("python3 -c").arg(VANISH).args(ports).success()?;
    let answered = |when: &str| {
        for (server, model) in servers.iter().zip(&models) {
            let name = format!("{model}: 2 clients vanish, others answered {when}");
            bench.holds(name, server.answers());
        }
    };
    answered("at once");
    sleep(ASKED_AFTER);
    answered("after 33 s");
    for (server, model) in servers.into_iter().zip(&models) {
        let expected = if model == "iterative" { "timed_out" } else { "reset" };
        bench.note("clients vanish from", model);
        bench.ask("clients that vanish", &server.served()?, &json!(expected));
    }
    Ok(())
}

/// The tests that are always run: every model and every kind of client.
fn misbehaving(check: &Check) -> Res {
    let done = tests(check, "--package iolens --test it -- serve:: load::")?;
    for name in [
        "a_port_that_is_taken_is_said_to_be",
        "garbage_is_answered_with_an_error_and_the_others_are_served_on",
        "a_client_that_dies_is_counted_and_the_others_are_served_on",
        "slow_readers_and_silent_clients_hold_nobody_up",
        "without_a_descriptor_connections_are_closed_and_the_others_served_on",
        "without_a_thread_or_process_connections_are_closed",
    ] {
        let line = done.line(name);
        check.judge(name, line.ends_with(" ok"), line);
    }
    Ok(())
}

//! Our servers beside plain C loops, and our load beside wrk, in pairs of runs.

use crate::network::free_port;
use crate::pairs::{Count, pairs};
use crate::prelude::*;
use crate::process::{Finished, Running, until};
use crate::servers::{Serving, cpu_ns, load};

/// Most by which ours may be slower, or need more CPU time for a request.
const WITHIN: f64 = 0.10;

/// Connections, and requests in flight on each. With several the server always has
/// something to do; with one it sleeps between requests, and what that costs on a
/// virtual machine is the same for both.
const LOADS: [(u32, u32); 3] = [(16, 1), (16, 8), (256, 4)];

/// Pairs of runs of 0.6 s, each of which is 10 % off here.
const ECHO_PAIRS: Count = Count::until(0.06, 121);

const ECHO_UNITS: [&str; 2] = ["requests/s", "ns of the server's CPU time for each"];

/// `epoll_lt` and `uring` beside plain C loops of the same design, both under the same load of
/// ours: the server on CPU 0, the client on CPU 1, in turn.
pub fn echo_in_c(bench: &Bench) -> Res {
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
            let [rate, cost] = pairs(ECHO_PAIRS, ECHO_UNITS, &|| asked(&ours), &|| asked(&in_c))?;
            let name = format!("{model}, {connections} × {in_flight}");
            rate.at_least(bench, name, 1.0 - WITHIN);
            cost.at_most(bench, "cost", 1.0 + WITHIN);
        }
        // Its loop knows no end.
        drop(in_c);
        bench.ask("our server", &ours.served()?, &Value::Null);
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
        bail!("not every request went well: {load}");
    }
    Ok([load.number(".rate_per_s")?, cpu_ns / load.number(".scheduled + .warmup")?])
}

/// No less than wrk's rate, and no more of its cost, is what both intervals must allow
/// within this: no difference that matters (δ).
const DELTA: f64 = 0.03;

/// On a virtual machine two of the same differ by 10 %. On a host whose other guests work 121
/// pairs left intervals of ±5 %, which say nothing about a δ of 3 %: three times as many are made
/// before it is given up.
const WRK_PAIRS: Count = Count::until(0.04, 361);

const WRK_UNITS: [&str; 2] = ["replies/s", "ns of CPU time for each"];

/// Our load beside wrk, both against one nginx of this line's own: one thread each, the same
/// connections, the same processors.
pub fn wrk(bench: &Bench) -> Res {
    let (_nginx, address) = nginx(bench)?;
    for connections in [16, 64] {
        let ours = || answered(bench, &address, connections);
        let [rate, cost] = pairs(WRK_PAIRS, WRK_UNITS, &ours, &|| replied(&address, connections))?;
        rate.at_least(bench, format!("{connections} connections"), 1.0 - DELTA);
        cost.at_most(bench, "cost", 1.0 + DELTA);
    }
    Ok(())
}

/// A command on CPU 1, and its CPU time in ns, which the shell then tells.
fn timed(job: Job) -> Res<(Finished, f64)> {
    let done = job.minutes(1).success()?;
    let told = done.noted(CPU_TIME);
    let ns = nanos(told).with_context(|| format!("these are no times: {told}"))?;
    Ok((done, ns))
}

const CPU_TIME: &str = "seconds of CPU time:";

/// User and system time in seconds, three digits behind the point.
fn shell() -> Job {
    let script = format!("TIMEFORMAT='{CPU_TIME} %3U %3S'; time taskset -c 1 \"$@\"");
    Job::of("bash -c").args([&script, "bash"]).env("LC_ALL", "C")
}

fn nanos(told: &str) -> Option<f64> {
    let seconds = told.strip_prefix(CPU_TIME)?.split_whitespace().map(str::parse::<f64>);
    Some(1e9 * seconds.sum::<Result<f64, _>>().ok()?)
}

/// Replies per second, and ns of CPU time for each, of the shortest run that wrk makes.
fn answered(bench: &Bench, address: &str, connections: u32) -> Res<[f64; 2]> {
    let line =
        format!("load {address} --http / --connections {connections} --threads 1 --time 1s --json");
    let (done, cpu_ns) = timed(bench.under(shell(), &line))?;
    let json = done.json()?;
    if !json["failures"].as_array().is_some_and(Vec::is_empty) {
        bail!("not every request went well: {json}");
    }
    Ok([json.number(".rate_per_s")?, cpu_ns / json.number(".outcomes.ok")?])
}

fn replied(address: &str, connections: u32) -> Res<[f64; 2]> {
    let line = format!("wrk -t1 -c{connections} -d1s http://{address}/");
    let (done, cpu_ns) = timed(shell().words(&line))?;
    if done.line("Non-2xx").len() + done.line("Socket errors").len() > 0 {
        bail!("wrk met errors: {}", done.stdout());
    }
    // `  1234 requests in 1.0s, 1MB read` and `Requests/sec:  1234.56`.
    let number = |part: &str, at: usize| -> Option<f64> {
        done.line(part).split_whitespace().nth(at)?.parse().ok()
    };
    let replies = number(" requests in", 0).context("wrk did not say how many requests it made")?;
    let rate = number("Requests/sec:", 1).context("wrk did not say its rate")?;
    Ok([rate, cpu_ns / replies])
}

/// One worker on CPU 0 that answers from memory, and its address.
fn nginx(bench: &Bench) -> Res<(Running, String)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let bodies = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind};\n"));
    let config = format!(
        "daemon off;\nmaster_process off;\nworker_processes 1;\npid pid;\nevents {{ \
         worker_connections 4096; }}\nhttp {{\naccess_log off;\nkeepalive_requests 1000000000;\
         \nkeepalive_timeout 600s;\n{}server {{ listen {address}; location / {{ return 200 \
         \"hello\\n\"; }} }}\n}}\n",
        bodies.concat(),
    );
    bench.write("nginx.conf", config)?;
    let job = Job::of("taskset -c 0 nginx -e stderr -c nginx.conf -p").arg(bench.path(""));
    let nginx = job.start()?;
    let listens = || std::net::TcpStream::connect(&address).is_ok();
    match until(Duration::from_secs(10), listens) {
        true => Ok((nginx, address)),
        false => bail!("nginx does not listen: {}", nginx.kill()?.stderr()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_that_a_shell_tells_is_read() {
        assert_eq!(nanos(&format!("{CPU_TIME} 0.120 61.500")), Some(61_620_000_000.0));
        assert_eq!(nanos("nothing"), None);
    }
}

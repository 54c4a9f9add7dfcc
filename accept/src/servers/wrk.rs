//! Our load beside wrk, both against one nginx of this line's own: one thread each, the
//! same connections, the same processors.

use crate::network::free_port;
use crate::pairs::{Count, pairs};
use crate::prelude::*;
use crate::process::Running;

/// No less than wrk's rate, and no more of its cost, is what both intervals must allow
/// within this: no difference that matters (δ).
const DELTA: f64 = 0.03;

/// On a virtual machine two of the same differ by 10 %. On a host whose other guests work 121
/// pairs left intervals of ±5 %, which say nothing about a δ of 3 %: three times as many are made
/// before it is given up.
const PAIRS: Count = Count::until(0.04, 361);

const UNITS: [&str; 2] = ["replies/s", "ns of CPU time for each"];

pub fn check(bench: &Bench, check: &mut Check) -> Res {
    let (_nginx, address) = nginx(bench)?;
    for connections in [16, 64] {
        let ours = || ours(bench, &address, connections);
        let [rate, cost] = pairs(PAIRS, UNITS, &ours, &|| wrk(&address, connections))?;
        check.note(format!("{connections} connections"), rate.words);
        check.within("lower end", rate.ratio.low, 1.0 - DELTA..);
        check.note("cost", cost.words);
        check.within("upper end", cost.ratio.high, ..=1.0 + DELTA);
    }
    Ok(())
}

/// A command on CPU 1, and the CPU time of it that the shell then tells.
fn timed(job: Job) -> Res<(String, f64)> {
    let text = job.minutes(1).success()?.stdout();
    let (said, times) = text.rsplit_once('\n').ok_or("bash told no times")?;
    let ns = children_ns(times).ok_or_else(|| format!("these are no times: {times}"))?;
    // The times of the shell itself stand above.
    Ok((said.rsplit_once('\n').unwrap_or_default().0.to_owned(), ns))
}

fn shell() -> Job {
    Job::of("bash -c").args(["taskset -c 1 \"$@\" && times", "bash"])
}

/// User and system time of all children in ns: `0m0.120s 0m1.480s`.
fn children_ns(times: &str) -> Option<f64> {
    let seconds = |word: &str| -> Option<f64> {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    let (user, system) = times.trim().split_once(' ')?;
    Some(1e9 * (seconds(user)? + seconds(system)?))
}

/// Replies per second, and ns of CPU time for each, of the shortest run that wrk makes.
fn ours(bench: &Bench, address: &str, connections: u32) -> Res<[f64; 2]> {
    let line =
        format!("load {address} --http / --connections {connections} --threads 1 --time 1s --json");
    let (said, cpu_ns) = timed(bench.under(shell(), &line))?;
    let json: serde_json::Value = serde_json::from_str(&said).map_err(|e| e.to_string())?;
    if json["failures"] != serde_json::json!([]) {
        return Err(format!("not every request went well: {said}"));
    }
    Ok([json.need("rate_per_s")?, cpu_ns / json.need("outcomes/ok")?])
}

fn wrk(address: &str, connections: u32) -> Res<[f64; 2]> {
    let line = format!("wrk -t1 -c{connections} -d1s http://{address}/");
    let (said, cpu_ns) = timed(shell().words(&line))?;
    if said.contains("Non-2xx") || said.contains("Socket errors") {
        return Err(format!("wrk met errors: {said}"));
    }
    let number = |before: &str, after: &str| -> Option<f64> {
        let line = said.lines().find(|line| line.contains(before) && line.contains(after))?;
        line.trim().trim_start_matches(before).trim().split(' ').next()?.parse().ok()
    };
    let replies = number("", " requests in").ok_or("wrk did not say how many requests it made")?;
    let rate = number("Requests/sec:", "").ok_or("wrk did not say its rate")?;
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
    let mut nginx = job.start()?;
    let listens = || std::net::TcpStream::connect(&address).is_ok();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    nginx.watch(|_| listens() || std::time::Instant::now() > until);
    match listens() {
        true => Ok((nginx, address)),
        false => Err(format!("nginx does not listen: {}", nginx.kill()?.stderr())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_shells_children_are_read() {
        assert_eq!(children_ns("0m0.120s 1m1.500s"), Some(61_620_000_000.0));
        assert_eq!(children_ns("nothing"), None);
    }
}

//! Our load beside wrk, both against one nginx of this line's own: one thread each, the
//! same connections, the same processors.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::paired::{Count, Paired};
use super::process::{Job, Running, need};
use super::{Bench, Judged, Outcome, iperf};

const CONNECTIONS: [u32; 2] = [16, 64];

/// No less than wrk's rate, and no more of its cost, is what both intervals must allow
/// within this: no difference that matters (δ).
const DELTA: f64 = 0.03;

/// The shortest run that wrk makes, and the width of an interval of pairs of them: on a
/// virtual machine two of the same differ by 10 %.
const SECONDS: u32 = 1;
const WIDTH: f64 = 0.04;

/// On a host whose other guests work 121 pairs left intervals of ±5 %, which say nothing about
/// a δ of 3 %: three times as many are made before it is given up.
const PAIRS_MAX: usize = 361;

pub(crate) fn check(bench: &Bench) -> Judged {
    for (program, package) in
        [("nginx", "nginx-light"), ("wrk", "wrk"), ("bash", "bash"), ("taskset", "util-linux")]
    {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    let nginx = Nginx::start(&bench.home("nginx")?)?;
    let (mut evidence, mut passes) = (Vec::new(), true);
    for connections in CONNECTIONS {
        let ours = || ours(bench, &nginx.address, connections);
        let [rate, cost] = Paired::served(Count::until(WIDTH).at_most(PAIRS_MAX), &ours, &|| {
            wrk(&nginx.address, connections)
        })?;
        passes &= rate.ratio.low >= 1.0 - DELTA && cost.ratio.high <= 1.0 + DELTA;
        let words = format!(
            "{connections} connections: rate ours/wrk {} replies per second; CPU time for each \
             {} ns",
            rate.words(),
            cost.words()
        );
        eprintln!("   {words}");
        evidence.push(words);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// A command on CPU 1, and the CPU time of it that the shell then tells.
fn timed(words: &[&str]) -> Result<(String, f64), String> {
    let script = ["-c", "taskset -c 1 \"$@\" && times", "bash"];
    let done = Job::new("bash").args(&script).args(words).limit_minutes(1).run()?.success()?;
    let text = done.stdout();
    let (said, times) = text.rsplit_once('\n').ok_or("bash told no times")?;
    let ns = children_ns(times).ok_or_else(|| format!("these are no times: {times}"))?;
    // The times of the shell itself stand above.
    Ok((said.rsplit_once('\n').unwrap_or_default().0.to_owned(), ns))
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

/// Replies per second, and ns of CPU time for each.
fn ours(bench: &Bench, address: &str, connections: u32) -> Result<[f64; 2], String> {
    let tool = bench.tool.display().to_string();
    let line = format!(
        "{tool} load {address} --http / --connections {connections} --threads 1 --time {SECONDS}s \
         --json"
    );
    let (said, cpu_ns) = timed(&line.split_whitespace().collect::<Vec<_>>())?;
    let json: serde_json::Value = serde_json::from_str(&said).map_err(|e| e.to_string())?;
    let replies =
        json["outcomes"]["ok"].as_f64().filter(|_| json["failures"] == serde_json::json!([]));
    let replies = replies.ok_or_else(|| format!("not every request went well: {said}"))?;
    let rate = json["rate_per_s"].as_f64().ok_or("the load has no rate")?;
    Ok([rate, cpu_ns / replies])
}

fn wrk(address: &str, connections: u32) -> Result<[f64; 2], String> {
    let line = format!("wrk -t1 -c{connections} -d{SECONDS}s http://{address}/");
    let (said, cpu_ns) = timed(&line.split_whitespace().collect::<Vec<_>>())?;
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

/// One worker on CPU 0 that answers from memory; it is ended with this.
struct Nginx {
    running: Option<Running>,
    address: String,
}

impl Nginx {
    fn start(home: &Path) -> Result<Nginx, String> {
        let address = format!("127.0.0.1:{}", iperf::free_port()?);
        let bodies = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {};\n", home.join(kind).display()));
        let config = home.join("nginx.conf");
        let text = format!(
            "daemon off;\nmaster_process off;\nworker_processes 1;\npid {};\nevents {{ \
             worker_connections 4096; }}\nhttp {{\naccess_log off;\nkeepalive_requests 1000000000;\
             \nkeepalive_timeout 600s;\n{}server {{ listen {address}; location / {{ return 200 \
             \"hello\\n\"; }} }}\n}}\n",
            home.join("pid").display(),
            bodies.concat(),
        );
        fs::write(&config, text).map_err(|e| format!("cannot write nginx.conf: {e}"))?;
        let (home, config) = (home.display().to_string(), config.display().to_string());
        let words = ["-c", "0", "nginx", "-e", "stderr", "-p", &home, "-c", &config];
        let running = Job::new("taskset").args(&words).limit_minutes(20).start()?;
        let mut nginx = Nginx { running: Some(running), address };
        nginx.wait()?;
        Ok(nginx)
    }

    fn wait(&mut self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(&self.address).is_err() {
            let runs = self.running.as_mut().is_some_and(Running::is_running);
            if !runs || Instant::now() > until {
                let said = self.running.take().map(|running| running.kill().map(|d| d.stderr()));
                return Err(format!("nginx does not listen: {said:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // It may have ended by itself.
            let _ = running.kill();
        }
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

//! Servers beyond what they can have: `select` beyond its sets, `thread_per_connection`
//! beyond the number of processes that a cgroup allows.

use std::fs;
use std::path::{Path, PathBuf};

use super::process::Job;
use super::serving::{self, Serving, mishaps, number, serve_line};
use super::{Bench, Judged, Outcome};

/// Connections that are tried, more than 1024 descriptors and than threads may be.
const CONNECTIONS: u64 = 1_500;

/// Threads and processes that the cgroup allows.
const PIDS_MAX: u64 = 200;

pub(crate) fn check(bench: &Bench) -> Judged {
    let select = Serving::ours(bench, "select")?;
    let mut parts = vec![beyond(bench, select, "select", "beyond_select", "FD_SETSIZE, 1024")?];
    let group = match Group::new() {
        Ok(group) => group,
        Err(why) => return Ok(Outcome::Skip(format!("{}\n{why}", parts[0].1))),
    };
    for model in ["thread_per_connection", "fork"] {
        let server = group.serving(bench, model)?;
        parts.push(beyond(bench, server, model, "no_task", "pids.max")?);
    }
    let passes = parts.iter().all(|(is_good, _)| *is_good);
    let evidence: Vec<String> = parts.into_iter().map(|(_, words)| words).collect();
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// More connections than a server can have: what is beyond is counted as `kind`, a
/// message with `words` says so, and others are answered meanwhile and afterwards.
fn beyond(
    bench: &Bench,
    mut server: Serving,
    model: &str,
    kind: &str,
    words: &str,
) -> Result<(bool, String), String> {
    let line =
        format!("--connections {CONNECTIONS} --time 1s --service echo --timeout 3s --threads 1");
    let load = serving::load(bench, &server.address, &line)?;
    let lives = server.is_running() && server.answers();
    let done = server.stop()?.success()?;
    let said = done.stderr();
    let note = said.lines().find(|line| line.contains(words)).unwrap_or("no message");
    let served: serde_json::Value =
        serde_json::from_str(&done.stdout()).map_err(|e| e.to_string())?;
    let closed = number(&served["mishaps"], kind);
    let ok = number(&load["outcomes"], "ok");
    let evidence = format!(
        "{model}: {CONNECTIONS} connections asked for, {ok} requests ok, went wrong: {}; it answers \
         on: {lives}; it says: {note}",
        mishaps(&served)
    );
    eprintln!("   {evidence}");
    Ok((lives && closed > 0.0 && ok > 0.0 && note != "no message", evidence))
}

/// A cgroup of this line's own that limits processes; it goes when this does.
struct Group(PathBuf);

impl Group {
    fn new() -> Result<Group, String> {
        let name = format!("iolens-accept-{}", std::process::id());
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        // Of version 1 the controller has a tree of its own; of version 2 all share one.
        let places = own.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            match (parts.next()?, parts.next()?) {
                ("pids", path) => Some(format!("/sys/fs/cgroup/pids{path}")),
                ("", path) => Some(format!("/sys/fs/cgroup{path}")),
                _ => None,
            }
        });
        for place in places {
            let group = Group(Path::new(&place).join(&name));
            // Of the place that has no such controller nothing is left behind.
            let limited = fs::create_dir(&group.0)
                .and_then(|()| fs::metadata(group.0.join("pids.max")))
                .and_then(|_| fs::write(group.0.join("pids.max"), PIDS_MAX.to_string()));
            if limited.is_ok() {
                return Ok(group);
            }
        }
        Err("no cgroup with pids.max can be made here: that needs root and the controller".into())
    }

    /// A server of ours in it.
    fn serving(&self, bench: &Bench, model: &str) -> Result<Serving, String> {
        let procs = self.0.join("cgroup.procs").display().to_string();
        let tool = bench.tool.display().to_string();
        let line = serve_line(model);
        let words: Vec<&str> = line.split_whitespace().collect();
        let script = ["-c", "echo $$ > \"$0\" && exec \"$@\"", &procs, &tool];
        let job = Job::new("sh").args(&script).args(&words).limit_minutes(3);
        Serving::of(bench.at_home("group", job)?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty: its servers have ended, or there never was one.
        let _ = fs::remove_dir(&self.0);
    }
}

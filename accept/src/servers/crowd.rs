//! Very many connections at once: what they take, and what is said where a limit is in the way.

use std::path::{Path, PathBuf};

use crate::prelude::*;
use crate::process::{Finished, process};
use crate::servers::{CROWD, Serving, load, load_line};

const CROWD_LOAD: &str = "--connections 10000 --time 3s --service echo";

/// Few descriptors.
fn few() -> Job {
    Job::of("prlimit --nofile=4096:4096").minutes(3)
}

pub fn check(bench: &Bench) -> Res {
    for model in CROWD {
        held(bench, model)?;
        few_at_the_server(bench, model)?;
    }
    few_at_the_client(bench)
}

/// All of them with the limits as they are.
fn held(bench: &Bench, model: &str) -> Res {
    let server = Serving::ours(bench, model)?;
    let (done, peak_kib) = watched(bench, &server)?;
    let served = server.served()?;
    if done.refuses(2, "need") {
        bench.judge(model, true, format!("not on this machine: {}", done.noted("need")));
        return Ok(());
    }
    bench.note("held by", model);
    bench.ask("held", &done.json()?, &json!({"served": served, "peak_kib": peak_kib}));
    Ok(())
}

/// A server that has too few: it closes the rest, counts them, and serves on.
fn few_at_the_server(bench: &Bench, model: &str) -> Res {
    let mut server = Serving::under(bench, few(), model)?;
    let load = watched(bench, &server)?.0.json()?;
    let lives = server.running.is_running() && server.answers();
    bench.holds(format!("{model} with 4096 descriptors answers on"), lives);
    bench.ask("few descriptors at the server", &load, &server.served()?);
    Ok(())
}

/// A client that has too few says so before it connects.
fn few_at_the_client(bench: &Bench) -> Res {
    let server = Serving::ours(bench, "epoll_lt")?;
    let done = bench.under(few(), load_line(&server, CROWD_LOAD)).minutes(1).run()?;
    let named = done.refuses(2, "RLIMIT_NOFILE");
    bench.judge("load with 4096 descriptors", named, done.stderr());
    bench.ask("few descriptors at the client", &server.served()?, &Value::Null);
    Ok(())
}

/// A load to its end, and the most it had in memory: its peak does not go down.
fn watched(bench: &Bench, server: &Serving) -> Res<(Finished, u64)> {
    let mut peak_kib = 0;
    let running = bench.iolens(load_line(server, CROWD_LOAD)).minutes(3).start()?;
    let done = running.finish_watched(|running| {
        let status = process(running.id()).and_then(|process| process.status().ok());
        peak_kib = peak_kib.max(status.and_then(|status| status.vmhwm).unwrap_or(0));
    })?;
    Ok((done, peak_kib))
}

/// More than 1024 descriptors and than threads may be.
const BEYOND_LOAD: &str = "--connections 1500 --time 1s --service echo --timeout 3s --threads 1";

/// Threads and processes that the cgroup allows.
const PIDS_MAX: &str = "200";

/// Servers beyond what they can have: `select` beyond its sets, `thread_per_connection` beyond the
/// number of processes that a cgroup allows.
pub fn limits(bench: &Bench) -> Res {
    bench.note("beyond its sets", "select");
    let select = Serving::ours(bench, "select")?;
    beyond(bench, select, "beyond_select", "FD_SETSIZE, 1024")?;
    let Some(group) = Group::new() else {
        bench.missing("a cgroup with pids.max: that needs root and the controller");
        return Ok(());
    };
    for model in ["thread_per_connection", "fork"] {
        let job = Job::of("sh -c").arg("echo $$ > \"$0\" && exec \"$@\"");
        let server = Serving::under(bench, job.arg(group.0.join("cgroup.procs")), model)?;
        bench.note("in a cgroup of 200", model);
        beyond(bench, server, "no_task", "pids.max")?;
    }
    Ok(())
}

/// More connections than a server can have: what is beyond is counted as `kind`, a
/// message with `words` says so, and others are answered meanwhile and afterwards.
fn beyond(bench: &Bench, mut server: Serving, kind: &str, words: &str) -> Res {
    let load = load(bench, &server, BEYOND_LOAD)?;
    let lives = server.running.is_running() && server.answers();
    let done = server.stop()?;
    bench.ask("beyond", &load, &json!({"served": done.json()?, "kind": kind}));
    bench.holds("it answers on", lives);
    bench.said("it says", done.noted(words));
    Ok(())
}

/// A cgroup of this line's own that limits processes; it goes when this does.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Group> {
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
        let mut groups = places.map(|place| Group(Path::new(&place).join(&name)));
        // Of the place that has no such controller nothing is left behind.
        groups.find(|Group(path)| {
            let limit = path.join("pids.max");
            let limited = fs::create_dir(path)
                .and_then(|()| fs::metadata(&limit))
                .and_then(|_| fs::write(&limit, PIDS_MAX));
            limited.is_ok()
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty: its servers have ended, or there never was one.
        let _ = fs::remove_dir(&self.0);
    }
}

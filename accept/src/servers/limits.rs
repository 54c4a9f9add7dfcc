//! Servers beyond what they can have: `select` beyond its sets, `thread_per_connection`
//! beyond the number of processes that a cgroup allows.

use std::fs;
use std::path::{Path, PathBuf};

use crate::prelude::*;
use crate::servers::serving::{Serving, load, mishaps};

/// More than 1024 descriptors and than threads may be.
const LOAD: &str = "--connections 1500 --time 1s --service echo --timeout 3s --threads 1";

/// Threads and processes that the cgroup allows.
const PIDS_MAX: &str = "200";

pub fn check(bench: &Bench) -> Res {
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
    let load = load(bench, &server, LOAD)?;
    let lives = server.running.is_running() && server.answers();
    let done = server.stop()?;
    let served = done.json()?;
    bench.within("of 1500 connections, requests ok", load.int("outcomes/ok"), 1..);
    bench.judge("went wrong", served.int(&format!("mishaps/{kind}")) > 0, mishaps(&served));
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

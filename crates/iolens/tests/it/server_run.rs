//! `run server` when something goes wrong, and with a program of the user's beside the
//! models.

use std::process::Command;

use serde_json::Value;

use crate::harness::{
    Place, Running, children, finished, list, started, started_by, wait_until_gone,
};
use crate::skip;

/// Requests by a schedule with equal gaps: a phase has as many in every pass as the rate
/// says. The program is our own server, as a stranger.
fn run(place: &Place, more: &str) -> Command {
    let mut command = place.command(
        "run server --models epoll_lt --network loopback --connections 2 --load 50% \
         --arrivals fixed --rounds 2 --slice 10ms --step-time 40ms --precision 0.1% --threshold 50% \
         --seed 7 --progress plain",
    );
    let serve = "serve epoll_lt --service echo --listen {address}:{port}";
    let program = place.command("").get_program().to_str().unwrap().to_owned();
    command.args(more.split_whitespace());
    command.arg("--external").arg(format!("mine={program} {serve}"));
    command
}

/// The processes of a run, once all are there: three servers and the client, and what one
/// of them started.
fn everybody(run: &Running) -> Vec<u32> {
    loop {
        let workers = children(run.child.id());
        let of_workers = workers.iter().flat_map(|&pid| grandchildren(pid)).collect::<Vec<_>>();
        if workers.len() == 4 && !of_workers.is_empty() {
            return [workers, of_workers].concat();
        }
        std::thread::yield_now();
    }
}

/// Children of any thread of a process.
fn grandchildren(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let list = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    };
    let ids = |list: String| list.split_whitespace().map(|id| id.parse().unwrap()).collect();
    threads.map(list).flat_map(|list| -> Vec<u32> { ids(list) }).collect()
}

/// Requests of each measured slice.
fn requests(place: &Place) -> Vec<u64> {
    let rows = place.rows("slices", ["requests_due"]).into_iter();
    rows.map(|[due]| due.parse().unwrap()).collect()
}

#[test]
fn a_server_that_dies_is_one_failed_trial_and_the_run_goes_on_at_its_rates() {
    let place = Place::new();
    let mut first = started(run(&place, "--passes 4"));
    first.wait_for("committed: pass 1");
    let failed = first.hit_until_it_fails("KILL", |run| everybody(run)[0]);
    assert!(failed.contains("the `epoll_lt` server's worker was killed by signal 9"), "{failed}");
    first.wait_for("committed: ");
    let all = everybody(&first);
    first.interrupted();
    wait_until_gone(&all);
    let before = requests(&place);

    let resumed = place.run("resume last --allow external --progress plain");
    resumed.assert_ended();
    let after = requests(&place);
    assert!(after.len() > before.len());
    let (least, most) = (after.iter().min().unwrap(), after.iter().max().unwrap());
    assert!(most - least <= 2, "{least} to {most} requests a phase: the rate has changed");
    resumed.prints("mine");
}

#[test]
fn nothing_outlives_a_killed_run_and_a_program_that_ends_is_blamed() {
    let place = Place::new();
    let mut killed = started(run(&place, "--passes 40"));
    killed.wait_for("committed: pass 1");
    let all = everybody(&killed);
    killed.killed();
    wait_until_gone(&all);
    let mut other = started(run(&place, "--passes 40"));
    other.wait_for("committed: pass 1");
    let failed = other.hit_until_it_fails("KILL", |run| everybody(run)[4]);
    assert!(failed.contains("while `mine` ran: `mine` was killed by signal 9"), "{failed}");
    other.interrupted();
}

/// Status and reason of each arm of the only cell of a run.
fn arms(run: &Value) -> Vec<(String, String, String)> {
    let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = list(&run["cells"]).iter();
    let rows = rows.filter(|row| row["role"] != "self_check");
    rows.map(|row| (word(row, "primitive"), word(row, "status"), word(row, "reason"))).collect()
}

#[test]
fn what_limits_do_not_allow_is_said_before_a_run() {
    let place = Place::new();
    let line = "run server --models select,epoll_lt --network loopback --load closed \
                --connections 16,2000 --dry-run";
    let limited = |descriptors: &str| {
        let limit = format!("--nofile={descriptors}:{descriptors}");
        finished(started_by(&["prlimit", &limit], &place.command(line)).output().unwrap())
    };
    let few = limited("1500").stdout;
    for model in ["select", "epoll_lt"] {
        let said = format!("skipped in 1 of 2 settings: `{model}`: 2000 connections need 2065 ");
        assert!(few.contains(&said) && few.contains("RLIMIT_NOFILE"), "{few}");
    }
}

#[test]
fn a_model_that_meets_a_limit_fails_alone_and_names_it() {
    const TEST: &str = "server_run::a_model_that_meets_a_limit_fails_alone_and_names_it";
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let hard: u64 = open_files.split_whitespace().nth(4).unwrap().parse().unwrap_or(u64::MAX);
    if hard < 2100 {
        return skip::note(TEST, "needs 2100 descriptors (ulimit -Hn)");
    }
    let place = Place::new();
    // As many as fit the sets, but for what the server's process has besides.
    let run = place.json(
        "run server --models select,epoll_lt,poll --network loopback --load closed \
         --connections 1008,2000 --rounds 1 --slice 50ms --passes 1 --json",
    );
    let all = arms(&run);
    let of = |id: &str, status: &str| {
        let own = all.iter().filter(|(primitive, found, _)| primitive == id && found == status);
        own.map(|(_, _, reason)| reason.as_str()).collect::<Vec<_>>()
    };
    for model in ["epoll_lt", "poll"] {
        // A busy machine may leave a number that a check refuses.
        let refused = of(model, "invalid")
            .into_iter()
            .filter(|why| iolens_stats::Check::ALL.iter().any(|check| why.contains(check.name())));
        assert_eq!(of(model, "ok").len() + refused.count(), 2, "{all:?}");
    }
    assert!(of("select", "failed")[0].contains("FD_SETSIZE, 1024"), "{all:?}");
    assert!(of("select", "skipped")[0].contains("2000 connections need 2016 desc"), "{all:?}");
}

/// The budget has room for the closed loop and a phase or two.
#[test]
fn a_search_that_is_cut_short_says_so_and_is_gone_on_with() {
    let place = Place::new();
    let run = "run server --models epoll_lt --network loopback --connections 2 --load \
               closed --rounds 2 --slice 10ms --passes 1 --slo p50<10s --progress plain";
    let done = place.run(&format!("{run} --budget 6s")).ended(0);
    let said = done.flat();
    assert!(said.contains("highest requests/s with p50 < 10 s"), "{said}");
    assert!(said.contains("so far") || said.contains("cut short"), "{said}");
    let rates = |place: &Place| {
        let rows = place.exported("phases");
        for row in &rows {
            // A busy machine may leave a phase that the gates refuse.
            let refused = row["reason"].as_str().is_some_and(|why| {
                iolens_stats::Check::ALL.iter().any(|check| why.starts_with(check.name()))
            });
            assert!(row["status"] == "ok" || row["status"] == "invalid" && refused, "{row:?}");
            assert_eq!(row["requests_due"], row["requests_ok"], "{row:?}");
        }
        let answer = |row: &Value| (row["rate_per_s"].as_f64(), row["status"] == "ok");
        rows.iter().map(answer).collect::<Vec<_>>()
    };
    let before = rates(&place);
    let [(first, is_usable), (second, _), ..] = before[..] else { panic!("{before:?}") };
    assert!(first.is_none() && second.is_some() == is_usable, "{before:?}");
    place.run("resume last --budget 4s --progress plain").ended(0);
    let after = rates(&place);
    assert!(after.len() > before.len() && after[..before.len()] == before[..], "{after:?}");
    // Whatever it answers at once, the next rate is a higher one; a rate whose phase was
    // refused is asked again.
    let ((last, is_usable), next) = (before[before.len() - 1], after[before.len()].0);
    assert!(if is_usable { next > last } else { next == last }, "{after:?}");
}

//! SIGKILL at random moments: what was committed is there, and what is not
//! meant to stay is gone once the tool has started again.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::thread::sleep;
use std::time::UNIX_EPOCH;

use procfs::process::Process;

use crate::prelude::*;
use crate::process::{processes, until};

const KILLS: u32 = 10;

/// Workers notice the end of their parent by a signal; a process that is still
/// there this long after the next start is left.
const GRACE: Duration = Duration::from_secs(2);

/// Marks every process of one run through its environment.
const MARK: &str = "IOLENS_ACCEPT_MARK";

/// Repeats a failure: the seed of the moments.
const SEED_VARIABLE: &str = "IOLENS_ACCEPT_SEED";

pub fn check(bench: &Bench, topology: &str) -> Res {
    let seed = seed()?;
    bench.note(SEED_VARIABLE, seed);
    let mut reported = 0;
    let moments = BuildHasherDefault::<DefaultHasher>::default();
    for kill in 1..=KILLS {
        let delay = Duration::from_millis(300 + moments.hash_one((seed, kill)) % 5700);
        let room = bench.room(&format!("kill-{topology}-{kill}"))?;
        reported += kill_once(&room, topology, kill, delay)?;
    }
    // Else no kill came after a commit, and nothing was shown.
    bench.within("trials reported in all", reported, 1..);
    Ok(())
}

/// Whether these are the trials that the tool had said were committed: of one more it may not have
/// said so yet.
fn is_sound(reported: u64, stored: u64) -> bool {
    (reported..=reported + 1).contains(&stored)
}

/// Judges what one kill leaves; how many trials the tool had said were committed.
fn kill_once(bench: &Bench, topology: &str, kill: u32, delay: Duration) -> Res<u64> {
    let mark = format!("{}-{kill}", std::process::id());
    let (files_before, networks_before) = (shared_files(), networks());
    let run = format!(
        "run net --methods send_staged,sendmsg_iov --sizes 64,4KiB --threads 1 --passes 5000 \
         --budget 60s --progress plain --db results.db --network {topology}"
    );
    let mut running = bench.iolens(&run).env(MARK, &mark).start()?;
    sleep(delay);
    if !running.is_running() {
        let ended = running.finish()?.success()?;
        bail!("the run ended by itself after {:?}", ended.elapsed);
    }
    let killed = running.kill()?;
    let committed = killed.err_lines().filter(|line| line.contains("committed: pass"));
    let reported = committed.count() as u64;

    // The next start, which also looks for what the last one left.
    let stored = match bench.path("results.db").exists() {
        false => 0,
        true => trials_of_last_run(&bench.json("runs --db results.db --json")?),
    };
    let mut left = Vec::new();
    until(GRACE, || {
        let networks = networks().difference(&networks_before).cloned().collect();
        left = [marked_processes(&mark), networks].concat();
        left.is_empty()
    });
    left.extend(shared_files().difference(&files_before).cloned());
    let known = ["results.db", "results.db-wal", "results.db-shm", "tmp"];
    left.extend(names(bench.path("")).into_iter().filter(|name| !known.contains(&&**name)));
    left.extend(names(bench.path("tmp")));
    let words = format!("{stored} trials, {reported} reported; left: {left:?}");
    let good = is_sound(reported, stored) && left.is_empty();
    bench.judge(format!("{kill}: after {delay:?}"), good, words);
    Ok(reported)
}

/// Trials of the run that began last, in the JSON of `iolens runs --json`.
fn trials_of_last_run(runs: &Value) -> u64 {
    let latest = runs.as_array().into_iter().flatten().max_by_key(|run| run.int("started_unix_ns"));
    latest.map_or(0, |run| run.int("trials"))
}

/// Processes whose environment bears the mark, as pid and command line.
fn marked_processes(mark: &str) -> Vec<String> {
    let bears = |environ: HashMap<OsString, OsString>| {
        environ.get(OsStr::new(MARK)).is_some_and(|own| own == mark)
    };
    let marked = processes().filter(|process| process.environ().is_ok_and(bears));
    let words = |process: Process| (process.pid, process.cmdline().unwrap_or_default());
    marked.map(words).map(|(pid, words)| format!("{pid} {}", words.join(" "))).collect()
}

/// Network namespaces that some process stands in, and the devices of ours. A
/// namespace without a name, a process or an open descriptor does not exist.
fn networks() -> BTreeSet<String> {
    let own = |process: Process| fs::read_link(format!("/proc/{}/ns/net", process.pid)).ok();
    let namespaces = processes().filter_map(own).map(|path| path.display().to_string());
    namespaces.chain(names("/sys/class/net")).collect()
}

/// Files of ours in places that all programs share.
fn shared_files() -> BTreeSet<String> {
    let folders = ["/tmp", "/run", "/run/lock", "/dev/shm", "/run/netns"];
    let files = folders
        .into_iter()
        .flat_map(|folder| names(folder).into_iter().map(move |name| format!("{folder}/{name}")));
    files.filter(|path| path.contains("iolens") && !path.contains("iolens-accept")).collect()
}

fn seed() -> Res<u64> {
    match std::env::var(SEED_VARIABLE) {
        Ok(text) => text.parse().context("the seed"),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
            Ok(now.map_or(0, |now| u64::from(now.subsec_nanos())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_or_invented_trial_is_unsound() {
        assert!(is_sound(3, 3) && is_sound(3, 4));
        assert!(!is_sound(3, 2) && !is_sound(3, 5));
    }

    #[test]
    fn the_last_run_is_the_latest() {
        let runs = json!([
            {"started_unix_ns": 2, "trials": 7}, {"started_unix_ns": 1, "trials": 9},
        ]);
        assert_eq!(trials_of_last_run(&runs), 7);
        assert_eq!(trials_of_last_run(&json!([])), 0);
    }

    #[test]
    fn processes_are_found_by_their_mark() {
        let mark = format!("test-{}", std::process::id());
        let mut child = std::process::Command::new("cat")
            .env(MARK, &mark)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat runs");
        // Between fork and exec the child still has our environment.
        until(Duration::from_secs(20), || !marked_processes(&mark).is_empty());
        assert_eq!(marked_processes(&mark).len(), 1);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(marked_processes(&mark).is_empty());
    }
}

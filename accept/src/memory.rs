//! Issue 6: what the tool itself has in memory, beyond the buffers it reads into.
//!
//! Anonymous memory, looked at again and again: a mapped file is the page cache's, and
//! the high-water mark of a process that mapped one has all of it. The buffers of what
//! is run here are less than 2 MiB. The bandwidths of memory are measured before the
//! first trial, with buffers larger than every cache: what counts begins behind them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::process::{Running, status_kib};
use super::{Bench, Judged, Outcome};

const LIMIT_KIB: u64 = 64 << 10;

/// How often is looked.
const POLL: Duration = Duration::from_millis(1);

const RUN: &str = "run file --quick --block-sizes 4KiB,64KiB --engines all --threads 1 --consumer \
                   scan --passes 3 --progress plain";

pub(crate) fn check(bench: &Bench) -> Judged {
    let file = bench.home("memory")?.join("file").display().to_string();
    let write = ["file", "write", &file, "--block-size", "1MiB", "--count", "512"];
    bench.iolens("memory", &write)?.limit_minutes(2).run()?.success()?;
    let reads = format!("file read {file} --block-size 64KiB --scan --threads 2 --loops 10");
    let (mut evidence, mut passes) = (Vec::new(), true);
    for (name, line, calibrates) in [("run file", RUN, true), ("file read", &reads, false)] {
        let args: Vec<&str> = line.split_whitespace().collect();
        let running = bench.iolens("memory", &args)?.limit_minutes(5).start()?;
        let peaks = watch(running, calibrates)?;
        let words = format!(
            "{name}: {} looks, at most {} in the command and {} in a worker",
            peaks.looks,
            mib(peaks.own_kib),
            mib(peaks.worker_kib)
        );
        eprintln!("   {words}");
        let seen = peaks.own_kib > 0 && peaks.worker_kib > 0;
        passes &= seen && peaks.own_kib.max(peaks.worker_kib) < LIMIT_KIB;
        evidence.push(words);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

fn mib(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// The most that was seen.
#[derive(Default)]
struct Peaks {
    looks: u64,
    own_kib: u64,
    worker_kib: u64,
}

/// Looks until the command has ended; from its first trial on where it calibrates
/// before.
fn watch(mut running: Running, calibrates: bool) -> Result<Peaks, String> {
    let own = running.id();
    let mut peaks = Peaks::default();
    let mut workers: BTreeMap<u32, u64> = BTreeMap::new();
    let mut counts = !calibrates;
    while running.is_running() {
        std::thread::sleep(POLL);
        counts |= running.has_said_on_stderr("committed: ");
        if !counts {
            continue;
        }
        peaks.looks += 1;
        peaks.own_kib = peaks.own_kib.max(anonymous_kib(own).unwrap_or(0));
        for worker in children(own) {
            let now = anonymous_kib(worker).unwrap_or(0);
            let peak = workers.entry(worker).or_default();
            *peak = now.max(*peak);
        }
    }
    running.finish()?.success()?;
    peaks.worker_kib = workers.values().copied().max().unwrap_or(0);
    Ok(peaks)
}

/// The processes that a process has started, from any of its threads.
fn children(parent: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Anonymous memory of a process; null when it has gone.
fn anonymous_kib(process: u32) -> Option<u64> {
    status_kib(process, "RssAnon:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_of_its_own() {
        assert!(anonymous_kib(std::process::id()).is_some_and(|kib| kib > 100));
        assert_eq!(numbers("1 22 \n"), [1, 22]);
    }
}

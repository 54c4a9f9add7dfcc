//! What the tool itself has in memory, beyond the buffers it reads into.
//!
//! Anonymous memory, looked at again and again: a mapped file is the page cache's, and
//! the high-water mark of a process that mapped one has all of it. The buffers of what
//! is run here are less than 2 MiB. The bandwidths of memory are measured before the
//! first trial, with buffers larger than every cache: what counts begins behind them.

use crate::prelude::*;
use crate::process::names;
use crate::process::status_kib;

const LIMIT_KIB: u64 = 64 << 10;

const RUN: &str = "run file --quick --block-sizes 4KiB,64KiB --engines all --threads 1 --consumer \
                   scan --passes 3 --progress plain";

pub fn check(bench: &Bench) -> Res {
    bench.run("file write file --block-size 1MiB --count 512")?;
    let reads = "file read file --block-size 64KiB --scan --threads 2 --loops 10";
    for (name, words, calibrates) in [("run file", RUN, true), ("file read", reads, false)] {
        let running = bench.iolens(words).start()?;
        // The command, and all of its workers.
        let (mut looks, mut peaks, mut counts) = (0, [0; 2], !calibrates);
        let done = running.finish_watched(|running| {
            counts = counts || running.has_said("committed: ");
            if counts {
                looks += 1;
                let own = running.id();
                peaks[0] = peaks[0].max(anonymous_kib(own));
                peaks[1] = children(own).map(anonymous_kib).fold(peaks[1], u64::max);
            }
        })?;
        done.success()?;
        bench.note(name, format!("{looks} looks"));
        for (who, kib) in ["the command", "a worker"].iter().zip(peaks) {
            bench.within(format!("KiB in {who}"), kib, 1..LIMIT_KIB);
        }
    }
    Ok(())
}

/// The processes that a process has started, from any of its threads.
fn children(parent: u32) -> impl Iterator<Item = u32> {
    let tasks = format!("/proc/{parent}/task");
    let lists = names(&tasks).into_iter().map(move |thread| format!("{tasks}/{thread}/children"));
    lists.flat_map(|list| numbers(&std::fs::read_to_string(list).unwrap_or_default()))
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn anonymous_kib(process: u32) -> u64 {
    status_kib(process, "RssAnon:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_of_its_own() {
        assert!(anonymous_kib(std::process::id()) > 100);
        assert_eq!(numbers("1 22 \n"), [1, 22]);
    }
}

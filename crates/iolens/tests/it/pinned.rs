//! What is said of a run on one processor, and of counters that there are none of.

use crate::harness::{Finished, Place, finished, started_by};
use crate::skip;

const RUN: &str = "run net --methods send --sizes 16KiB --threads 1 --network loopback \
                   --quick --passes 2 --rounds 3 --progress none --verbose";

/// Prose as one line.
fn flat(done: &Finished) -> String {
    done.flat()
}

#[test]
fn a_run_on_one_cpu_says_that_both_ends_share_it() {
    let place = Place::new();
    let done = place.run(&format!("{RUN} --cpus 0"));
    done.assert_ended();
    let said = flat(&done);
    assert!(said.contains("both ends share CPU 0"), "{said}");
    // A server and its client are two ends too.
    let done = place.run(
        "run server --models epoll_lt --connections 2 --load closed --quick --passes 2 \
         --budget 5s --cpus 0 --progress none --verbose",
    );
    done.assert_ended();
    assert!(flat(&done).contains("both ends share CPU 0"), "{}", done.stdout);
}

#[test]
fn a_process_that_was_pinned_is_pinned_again_to_reproduce_it() {
    let place = Place::new();
    let plain = place.command(RUN);
    let mut pinned = started_by(&["taskset", "-c", "0"], &plain);
    let test = "pinned::a_process_that_was_pinned_is_pinned_again_to_reproduce_it";
    let Ok(output) = pinned.output() else { return skip::note(test, "needs taskset(1)") };
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if online.trim() == "0" {
        return skip::note(test, "needs two CPUs");
    }
    let done = finished(output);
    done.assert_ended();
    assert!(flat(&done).contains("both ends share CPU 0"), "{}", done.stdout);
    let page = done.stdout.lines().find_map(|line| line.strip_prefix("Report")).unwrap();
    let page = std::fs::read_to_string(page.trim()).unwrap();
    assert!(page.contains("taskset -c 0 "), "how to reproduce names it");
}

#[test]
fn what_was_asked_for_and_not_counted_is_said() {
    let place = Place::new();
    let done = place.run(&format!("{RUN} --tracepoints --software-events"));
    done.assert_ended();
    let reasons = place.json("show last --json")["not_measured"].clone();
    let said = flat(&done);
    for (metric, flag) in [("sys_enter", "--tracepoints"), ("perf_migrations", "--software-events")]
    {
        let is_counted = reasons[metric].is_null();
        assert_eq!(said.contains(&format!("({flag}): ")), !is_counted, "{said}");
        let why = reasons[metric].as_str().unwrap_or_default();
        // Of reasons that differ in a name alone, one is said.
        let why = why.rsplit('`').nth(2).unwrap_or(why);
        assert!(said.contains(why.trim()), "{why}: {said}");
    }
    let why = reasons["cycles_user"].as_str();
    assert_eq!(said.matches("no hardware counters").count(), usize::from(why.is_some()), "{said}");
    // Who did not ask is not told of it.
    let done = place.run(RUN);
    assert!(!flat(&done).contains("--tracepoints"), "{}", done.stdout);
}

//! Sending and receiving: beside others and bare loops, over links that are known.

mod rivals;
mod senders;

use std::collections::BTreeSet;

use procfs::process::Process;

use crate::prelude::*;
use crate::process::processes;

pub use rivals::free_port;

pub const FUNCTIONS: Functions = &[
    ("iperf3", rivals::iperf3),
    ("bare-loops", senders::bare_loops),
    ("senders", senders::senders),
    ("throttle", throttle),
    ("throttle-all", throttle_all),
    ("mapped", mapped),
    ("liburing", rivals::liburing),
];

// A link whose rate is known: a token bucket on the sending end's veth, put there from outside
// while the run goes on.

const RATE_BITS_PER_S: f64 = 100e6;

/// How far from the expected goodput a reading may be.
const TOLERANCE: f64 = 0.01;

const MTU_BYTES: f64 = 1500.0;

/// A message size, and what of a frame is payload. Of each frame of MTU and Ethernet header
/// (14 B), which is what tbf counts, the segment carries MTU less 20 B of IP, 20 B of TCP and 12 B
/// of its timestamps.
const STREAM: (&str, f64) = ("16KiB", (MTU_BYTES - 52.0) / (MTU_BYTES + 14.0));

/// A datagram has 20 B of IP and 8 B of UDP, and is a frame of its own.
const DATAGRAM: (&str, f64) = ("1400", 1400.0 / (1400.0 + 28.0 + 14.0));

/// `send` over a throttled link.
fn throttle(bench: &Bench) -> Res {
    judge_throttled(bench, &["send"], 3, STREAM)
}

/// Every primitive that sends over TCP here, and those that send datagrams, over a
/// throttled link.
fn throttle_all(bench: &Bench) -> Res {
    let listed = bench.json("list methods --json")?;
    let over = |transport: &str, available: bool| {
        listed.names("methods", |entry| {
            entry["control"] == false
                && entry["available"] == available
                && entry["transport"] == transport
        })
    };
    for name in over("tcp", false) {
        bench.missing(format!("{name} is not available"));
    }
    judge_throttled(bench, &over("tcp", true), 1, STREAM)?;
    // Each datagram waits for a timer of its own, which a guest has late: shown, and
    // not judged.
    let datagrams = Check::default();
    judge_throttled(&bench.telling(&datagrams), &over("udp", true), 1, DATAGRAM)?;
    bench.note("not judged", datagrams.evidence());
    Ok(())
}

/// Each primitive reads as the rate of the link less the headers.
fn judge_throttled(
    bench: &Bench,
    primitives: &[&str],
    passes: usize,
    (size, share): (&str, f64),
) -> Res {
    let baseline = if primitives.contains(&"send") { "send" } else { primitives[0] };
    let run = format!(
        "run net --threads 1 --network veth --sequential-time 4s --baseline {baseline} --sizes \
         {size} --methods {} --passes {passes}",
        primitives.join(",")
    );
    let mut throttled = BTreeSet::new();
    let run = bench.iolens(&run).minutes(5).start()?;
    let done = run.finish_watched(|_| {
        for worker in processes().filter(is_worker) {
            if !throttled.contains(&worker.pid) && put(worker.pid).is_ok() {
                throttled.insert(worker.pid);
            }
        }
    })?;
    done.success()?;
    let json = bench.last()?;
    // The arms of a pass take turns in one pair of workers.
    bench.within("workers throttled", throttled.len(), passes..);
    let expected = RATE_BITS_PER_S * share;
    bench.note("Mbit/s expected", expected / 1e6);
    for primitive in primitives {
        let goodput = json.number(&format!("own(\"{primitive}\").goodput_bits_per_s"))?;
        let name = format!("{primitive}, {:.3} received, of it", goodput / 1e6);
        bench.within(name, goodput / expected, 1.0 - TOLERANCE..=1.0 + TOLERANCE);
    }
    Ok(())
}

/// Whether a process is a worker of the tool.
fn is_worker(process: &Process) -> bool {
    let words = process.cmdline().unwrap_or_default();
    matches!(&words[..], [program, what, ..] if program.ends_with("iolens") && what == "worker")
}

/// Puts the token bucket on a worker's device; an error where the worker has
/// no such device (yet). The bucket lasts for 10 ms: a guest's timers may be late by as much as a
/// small one holds, and what overflows is lost to the rate.
fn put(pid: i32) -> Res {
    let bucket = "dev iolens-tx root tbf rate 100mbit burst 128kb latency 400ms";
    Job::of(format!("nsenter -t {pid} -n tc qdisc add {bucket}")).success().map(drop)
}

const SYSCTL: &str = "/proc/sys/net/core/high_order_alloc_disable";

const MAPPED_RUN: &str = "run net --network loopback --threads 1 --baseline send --sizes 1MiB --receivers \
                   tcp_zerocopy_receive";
const QUICK: &str = "--quick --methods send,sendmsg_zerocopy --json";
const SHARE_MIN: f64 = 0.9;

/// What a receiver maps, without a setting of the machine touched and with one changed by consent,
/// and that it is put back.
fn mapped(bench: &Bench) -> Res {
    let before = sysctl()?;
    if before != "0" {
        bench.missing(format!("{SYSCTL} is {before} on this machine, 0 is needed"));
        return Ok(());
    }
    let json = bench.json(format!("{MAPPED_RUN} {QUICK}"))?;
    bench.judge("without consent untouched", sysctl()? == before && changed(&json) == 0, &before);
    bench.within(
        "sendmsg_zerocopy mapped",
        mapped_share(&json, "sendmsg_zerocopy")?,
        SHARE_MIN.next_up()..,
    );
    let said = bench.run("show last 1")?.stdout().replace("\n  ", " ");
    let why = said.lines().find(|line| line.contains("mapped") && line.contains("page"));
    let of_send = mapped_share(&json, "send")?;
    let words = format!("{of_send:.3}: {}", why.unwrap_or("no reason").trim());
    bench.judge("send mapped", of_send > SHARE_MIN || why.is_some(), words);
    let rest = consent(bench, &before).and_then(|()| kill(bench, &before));
    // Whatever was found: nothing of it is left on the machine.
    let _ = fs::write(SYSCTL, &before);
    rest
}

/// A run with consent maps what `send` sends, says so, and puts it back.
fn consent(bench: &Bench, before: &str) -> Res {
    let json = bench.json(format!("{MAPPED_RUN} {QUICK} --allow-sysctl"))?;
    bench.within(
        "send mapped with --allow-sysctl",
        mapped_share(&json, "send")?,
        SHARE_MIN.next_up()..,
    );
    bench.same("the sysctl afterwards", sysctl()?, before);
    bench.same("sysctls changed", changed(&json), 1);
    let said = bench.run("show last")?.stdout().replace("\n  ", " ");
    let beside = said.contains("of the bytes with net.core.high_order_alloc_disable=1");
    bench.holds("it is said beside the rows", beside);
    Ok(())
}

/// A run that is killed leaves it to the next start.
fn kill(bench: &Bench, before: &str) -> Res {
    let run = format!("{MAPPED_RUN} --methods send,write --progress plain --allow-sysctl");
    let mut running = bench.iolens(&run).minutes(1).start()?;
    running.watch(|_| sysctl().is_ok_and(|now| now != before));
    let during = sysctl()?;
    running.kill()?;
    bench.same("while a run goes on", during, "1");
    bench.same("after its SIGKILL", sysctl()?, "1");
    let next = bench.run("runs")?;
    bench.same("after the next start", sysctl()?, before);
    bench.said("which says so", next.noted("again: a run that was"));
    Ok(())
}

fn sysctl() -> Res<String> {
    Ok(fs::read_to_string(SYSCTL)?.trim().to_owned())
}

/// Sysctls that the run says were changed for it.
fn changed(json: &Value) -> usize {
    json.list("run/host/changed").len()
}

/// Share of an arm's bytes that was mapped.
fn mapped_share(json: &Value, arm: &str) -> Res<f64> {
    json.number(&format!(".cells[] | select(.arm == \"{arm}\").rx_mapped_share"))
}

//! A link whose rate is known: a token bucket on the sending end's veth, put
//! there from outside while the run goes on.

use std::collections::BTreeSet;

use crate::prelude::*;
use crate::process::processes;

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
pub fn send(bench: &Bench) -> Res {
    judge(bench, &["send"], 3, STREAM)
}

/// Every primitive that sends over TCP here, and those that send datagrams, over a
/// throttled link.
pub fn all(bench: &Bench) -> Res {
    let listed = bench.json("list methods --json")?;
    let over = |transport: &str| {
        listed.names("methods", |entry| {
            entry["control"] == false
                && entry["available"] == true
                && entry["transport"] == transport
        })
    };
    judge(bench, &over("tcp"), 1, STREAM)?;
    // Each datagram waits for a timer of its own, which a guest has late: shown, and
    // not judged.
    let datagrams = Check::default();
    judge(&bench.telling(&datagrams), &over("udp"), 1, DATAGRAM)?;
    bench.note("not judged", datagrams.evidence());
    Ok(())
}

/// Each primitive reads as the rate of the link less the headers.
fn judge(bench: &Bench, primitives: &[&str], passes: usize, (size, share): (&str, f64)) -> Res {
    let baseline = if primitives.contains(&"send") { "send" } else { primitives[0] };
    let run = format!(
        "run net --threads 1 --network veth --sequential-time 4s --baseline {baseline} --sizes \
         {size} --methods {} --passes {passes}",
        primitives.join(",")
    );
    let mut throttled = BTreeSet::new();
    let run = bench.iolens(&run).minutes(5).start()?;
    let done = run.finish_watched(|_| {
        for pid in processes().filter(is_worker) {
            if !throttled.contains(&pid) && put(pid).is_ok() {
                throttled.insert(pid);
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
        let goodput = json.own_row(primitive)?.need("goodput_bits_per_s")?;
        let name = format!("{primitive}, {:.3} received, of it", goodput / 1e6);
        bench.within(name, goodput / expected, 1.0 - TOLERANCE..=1.0 + TOLERANCE);
    }
    Ok(())
}

/// Whether a process is a worker of the tool.
fn is_worker(pid: &u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
    matches!(words[..], [program, b"worker", ..] if program.ends_with(b"iolens"))
}

/// Puts the token bucket on a worker's device; an error where the worker has
/// no such device (yet). The bucket lasts for 10 ms: a guest's timers may be late by as much as a
/// small one holds, and what overflows is lost to the rate.
fn put(pid: u32) -> Res {
    let bucket = "dev iolens-tx root tbf rate 100mbit burst 128kb latency 400ms";
    Job::of(format!("nsenter -t {pid} -n tc qdisc add {bucket}")).success().map(drop)
}

//! A link whose rate is known: a token bucket on the sending end's veth, put
//! there from outside while the run goes on.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use super::process::{Job, need};
use super::results::{self, ArmResult};
use super::{Bench, Judged, Outcome};

const RATE_BITS_PER_S: f64 = 100e6;

/// How far from the expected goodput a reading may be.
const TOLERANCE: f64 = 0.01;

/// Name of the sending end's device.
const DEVICE: &str = "iolens-tx";

const MTU_BYTES: f64 = 1500.0;

/// No run of this takes longer.
const LIMIT: Duration = Duration::from_secs(300);

/// Of each frame of MTU and Ethernet header (14 B), which is what tbf counts, the
/// segment carries MTU less 20 B of IP, 20 B of TCP and 12 B of its timestamps.
const STREAM: Carried = Carried { size: "16KiB", share: (MTU_BYTES - 52.0) / (MTU_BYTES + 14.0) };

/// A datagram has 20 B of IP and 8 B of UDP, and is a frame of its own.
const DATAGRAM: Carried = Carried { size: "1400", share: 1400.0 / (1400.0 + 28.0 + 14.0) };

/// What of a frame is payload.
#[derive(Clone, Copy)]
struct Carried {
    /// The message size.
    size: &'static str,
    share: f64,
}

/// `send` over a throttled link.
pub(crate) fn check(bench: &Bench) -> Judged {
    judged(bench, "throttle", &["send"], 3, STREAM)
}

/// Every primitive that sends over TCP here, and those that send datagrams, over a
/// throttled link.
pub(crate) fn check_all(bench: &Bench) -> Judged {
    let listed = bench.iolens_json("throttle", &["list", "methods", "--json"], 1)?.json;
    let over = |transport: &str| {
        let entries = listed["methods"].as_array().into_iter().flatten();
        let sends = entries.filter(|entry| {
            entry["control"] == false
                && entry["available"] == true
                && entry["transport"] == transport
        });
        sends.filter_map(|entry| entry["name"].as_str()).collect::<Vec<&str>>()
    };
    let streams = judged(bench, "throttle-all", &over("tcp"), 1, STREAM)?;
    // Each datagram waits for a timer of its own, which a guest has late: shown, and
    // not judged.
    let datagrams = match judged(bench, "throttle-datagrams", &over("udp"), 1, DATAGRAM)? {
        Outcome::Pass(seen) | Outcome::Fail(seen) | Outcome::Skip(seen) => seen,
    };
    let with = |streams: String| format!("{streams}\nnot judged: {datagrams}");
    Ok(match streams {
        Outcome::Pass(evidence) => Outcome::Pass(with(evidence)),
        Outcome::Fail(evidence) => Outcome::Fail(with(evidence)),
        skipped @ Outcome::Skip(_) => skipped,
    })
}

/// Each primitive reads as the rate of the link less the headers.
fn judged(bench: &Bench, name: &str, primitives: &[&str], passes: u32, carried: Carried) -> Judged {
    if super::process::own_user()? != 0 {
        return Ok(Outcome::Skip("needs root to put a qdisc on the device".to_owned()));
    }
    for (program, package) in [("tc", "iproute2"), ("nsenter", "util-linux")] {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    let (arms, throttled) = measure(bench, name, primitives, passes, carried.size)?;
    let expected = RATE_BITS_PER_S * carried.share;
    let mut evidence = vec![format!("{:.3} Mbit/s expected", expected / 1e6)];
    // The arms of a pass take turns in one pair of workers.
    let mut all = throttled >= passes as usize;
    for primitive in primitives {
        let of_it = |arm: &&ArmResult| arm.primitive == *primitive && arm.role != "self_check";
        let goodput = arms.iter().filter(of_it).find_map(|arm| arm.goodput_bits_per_s);
        let goodput = goodput.ok_or_else(|| format!("no goodput of {primitive}"))?;
        let ratio = goodput / expected;
        all &= (ratio - 1.0).abs() <= TOLERANCE;
        evidence.push(format!("{primitive}: {:.3} received, {ratio:.4}", goodput / 1e6));
    }
    let evidence = format!("{}; {throttled} workers throttled", evidence.join("; "));
    Ok(if all { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Runs with a token bucket on the device of each sending end; the arms, and
/// how many ends were throttled.
fn measure(
    bench: &Bench,
    name: &str,
    primitives: &[&str],
    passes: u32,
    size: &str,
) -> Result<(Vec<ArmResult>, usize), String> {
    let baseline = if primitives.contains(&"send") { "send" } else { primitives[0] };
    let (passes, primitives) = (passes.to_string(), primitives.join(","));
    let fixed = "run net --threads 1 --network veth --sequential-time 4s --db throttle.db";
    let asked = ["--baseline", baseline, "--sizes", size];
    let asked = asked.into_iter().chain(["--methods", &primitives, "--passes", &passes]);
    let args: Vec<&str> = fixed.split_whitespace().chain(asked).collect();
    let mut run = bench.iolens(name, &args)?.limit_minutes(LIMIT.as_secs() / 60).start()?;
    let mut throttled = BTreeSet::new();
    let begin = Instant::now();
    while run.is_running() && begin.elapsed() < LIMIT {
        for pid in workers() {
            if !throttled.contains(&pid) && put(pid).is_ok() {
                throttled.insert(pid);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    run.finish()?.success()?;
    let show = ["show", "last", "--db", "throttle.db", "--json"];
    let json = bench.iolens_json(name, &show, 1)?.json;
    Ok((results::arms(&json), throttled.len()))
}

/// Processes that are workers of the tool.
fn workers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    let is_worker = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        words.first().is_some_and(|w| w.ends_with(b"iolens"))
            && words.get(1) == Some(&&b"worker"[..])
    };
    pids.filter(is_worker).collect()
}

/// Puts the token bucket on a worker's device; an error where the worker has
/// no such device (yet).
fn put(pid: u32) -> Result<(), String> {
    let pid = pid.to_string();
    let args = ["-t", &pid, "-n", "tc", "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate"];
    // The bucket lasts for 10 ms: a guest's timers may be late by as much as a
    // small one holds, and what overflows is lost to the rate.
    let bucket = ["100mbit", "burst", "128kb", "latency", "400ms"];
    let args: Vec<&str> = args.into_iter().chain(bucket).collect();
    Job::new("nsenter").args(&args).run()?.success().map(|_| ())
}

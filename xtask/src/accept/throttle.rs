//! A link whose rate is known: a token bucket on the sending end's veth, put
//! there from outside while the run goes on.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::process::{Job, need};
use super::{Bench, Judged, Outcome, results};

const RATE_BITS_PER_S: f64 = 100e6;

/// How far from the expected goodput a reading may be.
const TOLERANCE: f64 = 0.01;

/// Name of the sending end's device.
const DEVICE: &str = "iolens-tx";

const MTU_BYTES: f64 = 1500.0;

pub(crate) fn check(bench: &Bench) -> Judged {
    if crate::testing::own_user()? != 0 {
        return Ok(Outcome::Skip("needs root to put a qdisc on the device".to_owned()));
    }
    for (program, package) in [("tc", "iproute2"), ("nsenter", "util-linux")] {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    let args = "run net --primitives send --sizes 16KiB --threads 1 --topologies veth \
                --window 4s --passes 3 --db throttle.db";
    let args: Vec<&str> = args.split_whitespace().collect();
    let mut run = bench.iolens("throttle", &args)?.limit_minutes(2).start()?;
    let mut throttled = BTreeMap::new();
    let begin = Instant::now();
    while run.is_running() && begin.elapsed() < Duration::from_secs(100) {
        for pid in workers() {
            if !throttled.contains_key(&pid) && put(pid).is_ok() {
                throttled.insert(pid, begin.elapsed());
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    run.finish()?.success()?;
    let show = ["show", "last", "--db", "throttle.db", "--json"];
    let json = bench.iolens_json("throttle", &show, 1)?.json;
    let arms = results::arms(&json);
    let goodput = arms.iter().find_map(|arm| arm.goodput_bits_per_s).ok_or("no goodput")?;
    // Of each frame of MTU and Ethernet header (14 B), which is what tbf
    // counts, the segment carries MTU less 20 B of IP, 20 B of TCP and 12 B of
    // its timestamps.
    let expected = RATE_BITS_PER_S * (MTU_BYTES - 52.0) / (MTU_BYTES + 14.0);
    let ratio = goodput / expected;
    let evidence = format!(
        "{:.3} Mbit/s received, {:.3} expected: {ratio:.4}; {} workers throttled",
        goodput / 1e6,
        expected / 1e6,
        throttled.len()
    );
    let passes = (ratio - 1.0).abs() <= TOLERANCE && throttled.len() >= 3;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
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

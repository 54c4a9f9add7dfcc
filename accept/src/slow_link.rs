//! Issue 9: what a link of a known rate carries between two hosts.

use serde_json::Value;

use super::hosts::{Hosts, measured_slices};
use super::process::need;
use super::{Bench, Judged, Outcome};

/// What the link is given, as tc(8) is told, bits in a second, and how long a queue before it may
/// take; a burst is no more than two packets.
const LIMIT: [&str; 7] = ["tbf", "rate", "8mbit", "burst", "32kbit", "latency", "400ms"];
const LINK_BITS_PER_S: f64 = 8e6;

/// Payload of a full packet, with the timestamps of TCP (RFC 7323), of what the link counts of it:
/// 1500 bytes and the header of Ethernet.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

/// How far from what the link carries the median may be.
const TOLERANCE: f64 = 0.10;

/// Large: a slice then has many packets for each round trip.
const LARGE_BYTES: u64 = 256 << 10;

pub(crate) fn check(bench: &Bench) -> Judged {
    need("tc", "iproute2")?;
    let hosts = Hosts::start(bench, "hosts-slow")?;
    let slow = [&["tc", "qdisc", "add", "dev", "near", "root"][..], &LIMIT].concat();
    hosts.here(bench, &slow)?.run()?.success()?;
    let more = ["--sizes", "1KiB,256KiB", "--passes", "2"];
    let done = hosts.run(bench, &more)?.limit_minutes(20).run()?.success()?;
    let json: Value = serde_json::from_str(&done.stdout()).map_err(|e| e.to_string())?;
    let rejected = json["rejected"].as_array().map_or(usize::MAX, Vec::len);
    let tool = bench.tool.display().to_string();
    let args = [&tool, "export", "last", "--format", "json", "--rows", "slices"];
    let exported = hosts.here(bench, &args)?.limit_minutes(2).run()?.success()?;
    let slices = measured_slices(&exported.stdout())?;
    let [small, large] = [1024, LARGE_BYTES].map(|bytes| rates(&slices, bytes));
    let carried = LINK_BITS_PER_S * PAYLOAD_SHARE;
    let [median, most] = [large.len() / 2, large.len().saturating_sub(1)]
        .map(|at| large.get(at).copied().unwrap_or(0.0));
    let said = done.stderr();
    let late: Vec<&str> = said.lines().filter(|l| l.contains("time limit")).collect();
    let left = hosts.left(bench)?;
    let passes = rejected == 0
        && late.is_empty()
        && left.is_empty()
        && !small.is_empty()
        && most <= LINK_BITS_PER_S
        && (median - carried).abs() <= TOLERANCE * carried;
    let evidence = format!(
        "{:.0} s, {rejected} trials rejected, timed out: {late:?}; {} slices of 1 KiB; {} of \
         256 KiB at {:.2} Mbit/s in the median and {:.2} at most, of {:.2} that the link carries; \
         left: {left:?}",
        done.elapsed.as_secs_f64(),
        small.len(),
        large.len(),
        median / 1e6,
        most / 1e6,
        carried / 1e6,
    );
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(format!("{evidence}\n{said}")) })
}

/// Bits that arrived in a second, of each slice of messages of a size, in rising order.
fn rates(slices: &[Value], message_bytes: u64) -> Vec<f64> {
    let of = |slice: &Value, name: &str| slice[name].as_f64().unwrap_or(0.0);
    let wanted = slices.iter().filter(|slice| slice["message_bytes"] == message_bytes);
    let mut rates: Vec<f64> =
        wanted.map(|slice| of(slice, "rx_bytes") * 8e9 / of(slice, "time_ns").max(1.0)).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

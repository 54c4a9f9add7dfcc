//! Our `send` beside iperf3, both with the same congestion control, message
//! size and socket buffer, one flow each, alternating.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;

use super::process::{Finished, Job, need};
use super::{Bench, Judged, Outcome, results};

/// Pairs of runs; with 15 the ranks 4 and 12 cover the median with 96.5 %.
const PAIRS: usize = 15;

/// Runs of each tool with its own defaults.
const DEFAULT_RUNS: usize = 3;

/// What the median of the paired ratios must reach.
const RATIO_MIN: f64 = 0.97;

pub(crate) fn check(bench: &Bench) -> Judged {
    if let Err(missing) = need("iperf3", "iperf3") {
        return Ok(Outcome::Skip(missing));
    }
    let (_, buffer) = ours(bench, &[])?;
    let buffer =
        buffer.ok_or("the JSON of the run does not say which socket buffer it asked for")?;
    let same = ["-C", "reno", "-l", "64K", "-w", &buffer.to_string(), "-N", "-A", "0,1"]
        .map(str::to_owned);
    let same: Vec<&str> = same.iter().map(String::as_str).collect();
    let mut pairs = Vec::new();
    for index in 0..PAIRS {
        // Who is first changes from pair to pair.
        let (ours, theirs) = if index % 2 == 0 {
            let ours = ours(bench, &["--congestion", "reno"])?.0;
            (ours, iperf3(&same)?)
        } else {
            let theirs = iperf3(&same)?;
            (ours(bench, &["--congestion", "reno"])?.0, theirs)
        };
        eprintln!("   pair {}: {:.2} and {:.2} Gbit/s", index + 1, ours / 1e9, theirs / 1e9);
        pairs.push((ours, theirs));
    }
    let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
    let ratio = Median::of(&ratios);
    let gbits = |pick: fn(&(f64, f64)) -> f64| {
        Median::of(&pairs.iter().map(|pair| pick(pair) / 1e9).collect::<Vec<_>>()).value
    };
    let mut defaults = Vec::new();
    for _ in 0..DEFAULT_RUNS {
        defaults.push((ours(bench, &[])?.0 / 1e9, iperf3(&[])? / 1e9));
    }
    let (ours_default, theirs_default): (Vec<f64>, Vec<f64>) = defaults.into_iter().unzip();
    let evidence = format!(
        "median of {PAIRS} paired ratios ours/iperf3 {:.3}, {:.1} % interval {:.3} to {:.3} \
         (order statistics); medians {:.2} and {:.2} Gbit/s received; reno, 64 KiB, one flow, \
         socket buffer asked {buffer} B\n\
         each with its own defaults, median of {DEFAULT_RUNS}: {:.2} and {:.2} Gbit/s",
        ratio.value,
        100.0 * ratio.coverage,
        ratio.low,
        ratio.high,
        gbits(|pair| pair.0),
        gbits(|pair| pair.1),
        Median::of(&ours_default).value,
        Median::of(&theirs_default).value,
    );
    let passes = ratio.value >= RATIO_MIN;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Goodput of our `send` in bit/s, from bytes at the receiver, and the socket
/// buffer it asked for.
fn ours(bench: &Bench, more: &[&str]) -> Result<(f64, Option<u64>), String> {
    let args = "run net --methods send --baseline send --sizes 64KiB --threads 1 --sequential-time 2s \
                --passes 1 --cpus 0,1 --json";
    let args: Vec<&str> = args.split_whitespace().chain(more.iter().copied()).collect();
    let answer = bench.iolens_json("iperf", &args, 2)?;
    let arms = results::arms(&answer.json);
    let send = arms.iter().find(|arm| arm.primitive == "send" && arm.role == "baseline");
    let goodput = send.and_then(|arm| arm.goodput_bits_per_s);
    let goodput = goodput.ok_or("the JSON of the run has no goodput of `send`")?;
    Ok((goodput, results::socket_buffer_bytes(&answer.json)))
}

/// Goodput of one iperf3 flow of two seconds in bit/s, as the receiver counted.
fn iperf3(args: &[&str]) -> Result<f64, String> {
    let port = free_port()?.to_string();
    let server = ["-s", "-1", "-B", "127.0.0.1", "-p", &port, "--forceflush"];
    let server = Job::new("iperf3").args(&server).limit_minutes(1).start()?;
    server.wait_for_line("Server listening", Duration::from_secs(10))?;
    let client = ["-c", "127.0.0.1", "-p", &port, "-t", "2", "-J"];
    let client = Job::new("iperf3").args(&client).args(args).limit_minutes(1).run();
    let answered = client.and_then(Finished::success);
    // `-1` ends the server after its client; without one it is stopped.
    let served = if answered.is_ok() { server.finish() } else { server.kill() };
    let answered = answered?;
    served?;
    let json: Value =
        serde_json::from_str(&answered.stdout()).map_err(|e| format!("iperf3: {e}"))?;
    received_bits_per_s(&json).ok_or_else(|| "iperf3 did not say what was received".to_owned())
}

fn received_bits_per_s(json: &Value) -> Option<f64> {
    let sum = &json["end"]["sum_received"];
    Some(sum["bytes"].as_f64()? * 8.0 / sum["seconds"].as_f64()?)
}

/// A port that nobody uses now.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

/// A median with the interval of order statistics that covers it with at least
/// 95 %, whatever the distribution.
#[derive(Debug, PartialEq)]
pub(crate) struct Median {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) coverage: f64,
}

impl Median {
    pub(crate) fn of(values: &[f64]) -> Median {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let value = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        // The widest ranks cover with 1 − 2·2⁻ⁿ; each step inwards gives up
        // the probability of its own count of heads, twice.
        let whole = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
        let (mut rank, mut term, mut coverage) = (0, whole, 1.0 - 2.0 * whole);
        while rank + 1 < n / 2 {
            term *= (n - rank) as f64 / (rank + 1) as f64;
            if coverage - 2.0 * term < 0.95 {
                break;
            }
            coverage -= 2.0 * term;
            rank += 1;
        }
        Median { value, low: sorted[rank], high: sorted[n - 1 - rank], coverage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_fifteen_lies_between_the_fourth_and_the_twelfth() {
        let values: Vec<f64> = (1..=15).rev().map(f64::from).collect();
        let median = Median::of(&values);
        assert_eq!((median.value, median.low, median.high), (8.0, 4.0, 12.0));
        assert!((median.coverage - 0.9648).abs() < 1e-4, "{median:?}");
    }

    #[test]
    fn few_values_have_their_ends_as_interval() {
        let median = Median::of(&[3.0, 1.0]);
        assert_eq!((median.value, median.low, median.high), (2.0, 1.0, 3.0));
        assert!((median.coverage - 0.5).abs() < 1e-9, "{median:?}");
    }

    #[test]
    fn iperf3_is_asked_what_was_received() {
        let json = serde_json::json!({"end": {"sum_received": {"bytes": 1000, "seconds": 2.0}}});
        assert_eq!(received_bits_per_s(&json), Some(4000.0));
        assert_eq!(received_bits_per_s(&serde_json::json!({})), None);
    }
}

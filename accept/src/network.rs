//! Sending and receiving: beside others and bare loops, over links that are known.

mod bare_loops;
mod mapped;
mod rivals;
mod throttle;

use serde_json::Value;

use crate::json::{equivalent, half_width, ratio_words};
use crate::prelude::*;

pub use rivals::free_port;

pub const LINES: &[Line] = &[
    line(
        "iperf3",
        "with reno, 64 KiB and one flow our goodput is at least 0.97 of iperf3's (median of paired \
         ratios)",
        &["iperf3"],
        rivals::iperf3,
    ),
    line(
        "bare-send",
        "our `send` is EQUIVALENT (δ = 3%) to a bare loop of the same calls",
        &[],
        bare_send,
    ),
    line(
        "bare-loops",
        "each primitive that sends is EQUIVALENT (δ = 3%) to a bare loop of the same calls run as \
         an arm",
        &[],
        bare_loops::check,
    ),
    line(
        "classic-48",
        "`run plans/classic-48.toml` gives all 48 arm-cells or the reason within 5 minutes, every \
         zero-copy row copied with completions equal to sends, the crossover of one-copy and \
         two-copy as a band, and of 48 contrasts at least 40 within ±3% and none beyond ±8%",
        &[],
        classic_48,
    ),
    line(
        "throttle",
        "a tbf of 100 Mbit/s on the veth reads as that rate less the headers within 1% with \
         `--sequential-time 4s`",
        throttle::NEEDS,
        throttle::send,
    ),
    line(
        "throttle-all",
        "a tbf of 100 Mbit/s on the veth reads as that rate less the headers within 1% for every \
         stream primitive",
        throttle::NEEDS,
        throttle::all,
    ),
    line(
        "sink",
        "`run net --network sink` shows a copied share of 0 for zero-copy sends and a crossover \
         band, and veth 100%",
        &[],
        sink,
    ),
    line(
        "mapped",
        "`tcp_zerocopy_receive` maps over 90% at 1 MiB on loopback, and where nothing maps its row \
         says why; a sysctl is touched only with `--allow-sysctl`, and put back, after a SIGKILL by \
         the next start",
        &["root"],
        mapped::check,
    ),
    line(
        "fixed-buffer",
        "on `sink` at 64 000 B `uring_send_zc_fixed` is at least 1.3 times as fast as a sendto(2) \
         (lower end of the interval)",
        &[],
        fixed_buffer,
    ),
    line(
        "liburing",
        "on `sink` at 64 000 B `uring_send_zc_fixed` reaches at least the rate of liburing's own \
         send-zerocopy example with the same settings",
        &["root", "gcc", "make", "ip", "tc", "taskset", "liburing-send-zerocopy"],
        rivals::liburing,
    ),
];

pub const CLASSIC: [&str; 3] = ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"];

/// A run of a plan of this repository.
pub fn plan(bench: &Bench, name: &str) -> Job {
    let plan = crate::root().join("plans").join(name);
    bench.iolens("run --progress plain").arg(plan)
}

fn bare_send(bench: &Bench) -> Res {
    let run = "run net --methods send,bare_send --baseline send --sizes 1,4KiB,64KiB \
               --threads 1 --threshold 3% --precision 1% --budget 5m --json";
    equivalent(bench, &bench.json(run)?, "bare_send", 3);
    Ok(())
}

fn classic_48(bench: &Bench) -> Res {
    let run = plan(bench, "classic-48.toml").success()?;
    let json = bench.last()?;
    let is_meant =
        |row: &&&Value| CLASSIC.contains(&row.word("primitive")) && row["role"] != "self_check";
    let classic: Vec<&Value> = json.rows().iter().filter(|row| is_meant(&row)).collect();
    let given = |row: &&&Value| row["goodput_bits_per_s"].is_number() || row["reason"].is_string();
    let is_copied = |row: &&&Value| {
        let sends = row.int("zerocopy_sends");
        sends > 0 && row["zerocopy_completions"] == sends && row.num("zerocopy_copied_share") > 0.05
    };
    let zerocopy = || classic.iter().filter(|row| row["primitive"] == CLASSIC[2]);
    let is_contrast = |row: &&Value| ["compared", "self_check"].contains(&row.word("role"));
    let widths = json.rows().iter().filter(is_contrast).map(half_width);
    let widths: Vec<f64> = widths.filter(|width| !width.is_nan()).collect();
    bench.within("seconds", run.seconds(), ..=300.0);
    bench.same("arm-cells", classic.len(), 48);
    bench.same("given or explained", classic.iter().filter(given).count(), 48);
    bench.same("zero-copy rows", zerocopy().count(), 16);
    bench.same("copied, completions = sends", zerocopy().filter(is_copied).count(), 16);
    bench.same("contrasts", widths.len(), 48);
    bench.within("within ±3%", widths.iter().filter(|width| **width <= 0.03).count(), 40..);
    bench.within("widest", widths.iter().copied().fold(0.0, f64::max), ..=0.08);
    bench.note("noise floor", run.line("oise floor"));
    let shapes = ["crosses", "first_then_unknown", "unknown_then_second"];
    band(bench, &json, "sendmsg_iov", &shapes, "");
    Ok(())
}

/// A band of sizes in which a method overtakes the one with two copies, on a topology if one is
/// named.
fn band(check: &Check, json: &Value, method: &str, shapes: &[&str], topology: &str) {
    let is_one = |found: &&Value| {
        found["first"] == "send_staged"
            && found["second"] == method
            && shapes.contains(&found.word("shape"))
            && found.word("curve/topology").contains(topology)
    };
    let bands = json.list("crossovers").iter().filter(is_one);
    let words = |b: &Value| {
        let (from, to) = (&b["first_ahead_to"], &b["second_ahead_from"]);
        format!("{} on {}: {from} to {to} B", b["shape"], b["curve"]["topology"])
    };
    check.said(format!("{method} overtakes"), &bands.map(words).collect::<Vec<_>>().join("; "));
}

/// A message of one field: several lie on more pages than one datagram's
/// references hold.
const SINK: &str = "run net --network sink,veth --fields 1 --threads 1 --quick --methods \
                    send_staged,sendmsg_iov,sendmsg_zerocopy,uring_send_zc --sizes \
                    1KiB,4KiB,16KiB,32KiB,64000";

fn sink(bench: &Bench) -> Res {
    bench.run(SINK)?;
    let json = bench.last()?;
    let sends = json.rows().iter().filter(|row| !row["zerocopy_sends"].is_null());
    let complete = |row: &Value| row["zerocopy_sends"] == row["zerocopy_completions"];
    bench.judge("completions = sends", sends.clone().all(complete), sends.count());
    for (topology, expected) in [("sink", 0.0), ("veth", 1.0)] {
        let rows = json.rows_where("topology", topology).into_iter();
        let shares: Vec<f64> =
            rows.filter_map(|row| row["zerocopy_copied_share"].as_f64()).collect();
        bench.same(format!("copied shares on {topology}"), shares, vec![expected; 10]);
    }
    band(bench, &json, "sendmsg_zerocopy", &["crosses"], "sink");
    Ok(())
}

fn fixed_buffer(bench: &Bench) -> Res {
    let run = "run net --network sink --fields 1 --threads 1 --quick --methods \
               sendto,uring_send_zc_fixed --baseline sendto --sizes 64000 --json";
    let json = bench.json(run)?;
    let row = json.row_of("uring_send_zc_fixed")?;
    bench.note(ratio_words(row), format!("copied share {}", row["zerocopy_copied_share"]));
    bench.within("lower end", row.need("ratio_low")?, 1.3..);
    Ok(())
}

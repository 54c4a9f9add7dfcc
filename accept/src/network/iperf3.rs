//! Our `send` beside iperf3, both with the same congestion control, message
//! size and socket buffer, one flow each, in turn.

use serde_json::Value;

use crate::pairs::{Count, pair};
use crate::prelude::*;

/// With 15 pairs of runs the ranks 4 and 12 cover the median with 96.5 %.
const PAIRS: Count = Count::of(15);

const UNIT: &str = "Gbit/s received";

pub fn check(bench: &Bench) -> Res {
    let buffer = ours(bench, "")?.need("run/plan/socket/buffer_bytes/0")?;
    let same = format!("-C reno -l 64K -w {buffer} -N -A 0,1");
    let reno = || goodput(&ours(bench, "--congestion reno")?);
    let paired = pair(PAIRS, UNIT, reno, || iperf3(&same))?;
    bench.note(format!("reno, 64 KiB, one flow, socket buffer asked {buffer} B"), paired.words);
    bench.within("median of paired ratios", paired.ratio.value, 0.97..);
    let defaults = pair(Count::of(3), UNIT, || goodput(&ours(bench, "")?), || iperf3(""))?;
    bench.note("each with its own defaults", defaults.words);
    Ok(())
}

fn ours(bench: &Bench, more: &str) -> Res<Value> {
    bench.json(format!(
        "run net --methods send --baseline send --sizes 64KiB --threads 1 --sequential-time 2s \
         --passes 1 --cpus 0,1 --json {more}"
    ))
}

/// Of our `send`, from bytes at the receiver.
fn goodput(run: &Value) -> Res<f64> {
    Ok(run.own_row("send")?.need("goodput_bits_per_s")? / 1e9)
}

/// Of one iperf3 flow of two seconds, as the receiver counted.
fn iperf3(args: &str) -> Res<f64> {
    let port = free_port()?;
    let mut server =
        Job::of(format!("iperf3 -s -1 -B 127.0.0.1 -p {port} --forceflush")).start()?;
    server.wait_for("Server listening", 10)?;
    let client = format!("iperf3 -c 127.0.0.1 -p {port} -t 2 -J {args}");
    // `-1` ends the server after its client; without one it is stopped when it goes.
    let json = Job::of(&client).minutes(1).json()?;
    server.finish()?;
    received(&json)
}

fn received(json: &Value) -> Res<f64> {
    let sum = json.at("end/sum_received");
    Ok(sum.need("bytes")? * 8e-9 / sum.need("seconds")?)
}

/// A port that nobody uses now.
pub fn free_port() -> Res<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iperf3_is_asked_what_was_received() {
        let json = serde_json::json!({"end": {"sum_received": {"bytes": 1e9, "seconds": 2.0}}});
        assert_eq!(received(&json), Ok(4.0));
        assert!(received(&serde_json::json!({})).is_err());
    }
}

//! Our sends beside iperf3 and beside liburing's own example, in pairs of runs.

use crate::pairs::{Count, Median, PAIRS, pair};
use crate::prelude::*;

/// With 15 pairs of runs the ranks 4 and 12 cover the median with 96.5 %.
const IPERF3_PAIRS: Count = Count::of(15);

const UNIT: &str = "Gbit/s received";

/// Our `send` beside iperf3, both with the same congestion control, message size and socket buffer,
/// one flow each, in turn.
pub fn iperf3(bench: &Bench) -> Res {
    let buffer = sent(bench, "")?.number(".run.plan.tuning.socket_buffer_bytes[0]")?;
    let same = format!("-C reno -l 64K -w {buffer} -N -A 0,1");
    let reno = || goodput(&sent(bench, "--congestion reno")?);
    let paired = pair(IPERF3_PAIRS, UNIT, reno, || received_by(&same))?;
    bench.note(format!("reno, 64 KiB, one flow, socket buffer asked {buffer} B"), paired.words);
    bench.within("median of paired ratios", paired.ratio.value, 0.97..);
    let defaults = pair(Count::of(3), UNIT, || goodput(&sent(bench, "")?), || received_by(""))?;
    bench.note("each with its own defaults", defaults.words);
    Ok(())
}

fn sent(bench: &Bench, more: &str) -> Res<Value> {
    bench.json(format!(
        "run net --methods send --baseline send --sizes 64KiB --threads 1 --sequential-time 2s \
         --passes 1 --cpus 0,1 --json {more}"
    ))
}

/// Of our `send`, from bytes at the receiver.
fn goodput(run: &Value) -> Res<f64> {
    run.number("own(\"send\").goodput_bits_per_s / 1e9")
}

/// Of one iperf3 flow of two seconds, as the receiver counted.
fn received_by(args: &str) -> Res<f64> {
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
    json.number(".end.sum_received | .bytes * 8e-9 / .seconds")
}

/// A port that nobody uses now.
pub fn free_port() -> Res<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// What the lower end of the interval of the paired ratios must reach: no more
/// than δ = 3 % below the example.
const RATIO_MIN: f64 = 0.97;

/// What the example sends for: the second that it is told, and 0.2 s beyond it
/// (`cfg_runtime_ms`). It divides what it sent by the first alone, so its own
/// rate is too high; here it is divided by both.
const SENDS_S: f64 = 1.2;

/// `uring_send_zc_fixed` beside liburing's own example of zero-copy sends,
/// examples/send-zerocopy.c, both over UDP into a device that drops everything, in turn.
///
/// Equal are: a registered buffer, file and ring, datagrams of 64 000 bytes, one request in flight,
/// the device's kind, its MTU and its missing queue, the CPU, `SO_SNDBUF`. Different, as each of
/// the two is written: the example's ring has `IORING_SETUP_COOP_TASKRUN`, and it sends one buffer
/// all the time.
pub fn liburing(bench: &Bench) -> Res {
    let paired = pair(PAIRS, "datagrams/s of 64000 B", || fixed(bench), || example(bench, 1))?;
    paired.at_least(bench, "over a device that drops everything", RATIO_MIN);
    let batches: Vec<f64> = (0..3).map(|_| example(bench, 8)).collect::<Res<_>>()?;
    bench.note("datagrams/s with 8 requests in flight, its default", Median::of(batches).value);
    Ok(())
}

/// Messages per second of our arm.
fn fixed(bench: &Bench) -> Res<f64> {
    let run = "run net --network sink --fields 1 --threads 1 --methods uring_send_zc_fixed \
               --baseline uring_send_zc_fixed --sizes 64000 --sequential-time 1s --passes 1 \
               --cpus 0,1 --socket-buffer 2MiB --json \
               --ring-flags single_issuer+defer_taskrun+fixed_file+registered_ring";
    // What was copied is no send without a copy.
    let sent = ".cells[] | select(.role == \"baseline\") | select(.zerocopy_copied_share == 0)";
    bench.json(run)?.number(&format!("{sent} | 1e9 / .ns_per_message"))
}

/// A namespace with a device that drops everything, as the topology `sink` has.
const SINK: &str = "set -e; ip link add sink type dummy || ip link add sink type ifb
                    ip address add 192.0.2.1/24 dev sink; ip link set sink mtu 65535 up
                    tc qdisc replace dev sink root noqueue; exec taskset -c 0 \"$@\"";

/// Datagrams per second of the example with so many requests in flight.
fn example(bench: &Bench, requests: u32) -> Res<f64> {
    let job = Job::of("unshare --net sh -c").arg(SINK).arg("sh");
    let job = job.arg(bench.peers.join("source/examples/send-zerocopy"));
    let told = format!("-4 -D 192.0.2.2 -p 9 -s 64000 -z 1 -b 1 -n {requests} -t 1 udp");
    let sent = datagrams(job.words(&told).minutes(1).success()?.noted("tx="));
    Ok(sent.context("send-zerocopy did not say what it sent")? / SENDS_S)
}

/// `tx=12345 (MB=753), tx/s=12345 (MB/s=753)`: the first number.
fn datagrams(line: &str) -> Option<f64> {
    line.strip_prefix("tx=")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iperf3_is_asked_what_was_received() {
        let json = json!({"end": {"sum_received": {"bytes": 1e9, "seconds": 2.0}}});
        assert_eq!(received(&json).ok(), Some(4.0));
        assert!(received(&json!({})).is_err());
    }

    #[test]
    fn the_example_says_what_it_sent() {
        assert_eq!(datagrams("tx=1200 (MB=73), tx/s=1200 (MB/s=73)"), Some(1200.0));
        assert_eq!(datagrams("Connection failure"), None);
    }
}

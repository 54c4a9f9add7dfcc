//! What is shown of a server: what a request costs, how many there are, how long they
//! take, and what the kernel and the processor counted for each.

use iolens_stats::analysis::{ArmAnalysis, Estimate, Figures, Interval};

use crate::figure::metric::Metric;

const fn plain(
    name: &'static str,
    unit: &'static str,
    read: fn(&ArmAnalysis) -> Option<Estimate>,
) -> Metric {
    Metric { name, unit, divisor: 1.0, read, judged: false }
}

fn figure(arm: &ArmAnalysis, read: fn(&Figures) -> Option<Estimate>) -> Option<Estimate> {
    arm.figures.as_ref().and_then(read)
}

/// CPU time of the server's threads and children, user and kernel, of a request.
pub(crate) const COST: Metric = Metric {
    divisor: 1e3,
    ..plain("Server CPU time of a request", "µs", |arm| figure(arm, |f| f.tx_cpu_ns_per_message))
};
/// Right replies.
pub(crate) const THROUGHPUT: Metric =
    plain("Requests per second", "1/s", |arm| figure(arm, |f| Some(per_second(f.ns_per_message))));

/// A time of one as how many there are in a second.
fn per_second(ns: Estimate) -> Estimate {
    let flip = |i: Interval| Interval { low: 1e9 / i.high, high: 1e9 / i.low };
    Estimate { value: 1e9 / ns.value, interval: ns.interval.map(flip), n: ns.n }
}

/// Percentiles from when requests were due.
pub(crate) const LATENCY: [Metric; 3] = [
    Metric { divisor: 1e3, ..plain("p50", "µs", |arm| arm.latency.as_ref()?.p50_ns) },
    Metric { divisor: 1e3, ..plain("p99", "µs", |arm| arm.latency.as_ref()?.p99_ns) },
    Metric { divisor: 1e3, ..plain("p99.9", "µs", |arm| arm.latency.as_ref()?.p999_ns) },
];

/// Context switches.
pub(super) const SWITCHES: Metric = plain("Context switches", "per request", |arm| {
    figure(arm, |f| f.context_switches_per_message)
});

/// What is counted per request, with the middle of the name of its figure.
pub(crate) const COUNTERS: [(&Metric, &str); 1] = [(&SWITCHES, "switches")];

//! What is shown of a server: what a request costs, how many there are, how long they
//! take, and what the kernel and the processor counted for each.

use iolens_stats::analysis::EndMetric;

use crate::figure::metric::{Metric, plain};

/// What the server spent.
macro_rules! of {
    ($metric:ident) => {
        |arm| arm.server.as_ref()?.server.value(EndMetric::$metric)
    };
}

const fn micros(metric: Metric) -> Metric {
    Metric { divisor: 1e3, ..metric }
}

/// CPU time of the server's threads and children, user and kernel, of a request.
pub(crate) const COST: Metric = micros(plain("Server CPU time", "µs per request", of!(TaskClock)));
/// Right replies.
pub(crate) const THROUGHPUT: Metric =
    plain("Requests answered", "per second", |arm| Some(arm.server.as_ref()?.requests_per_s));

/// Percentiles from when requests were due.
pub(crate) const LATENCY: [Metric; 3] = [
    micros(plain("p50", "µs", |arm| arm.latency.as_ref()?.p50_ns)),
    micros(plain("p99", "µs", |arm| arm.latency.as_ref()?.p99_ns)),
    micros(plain("p99.9", "µs", |arm| arm.latency.as_ref()?.p999_ns)),
];

const EACH: &str = "per request";

/// What is counted of the server, with the middle of the name of its figure.
pub(crate) const COUNTERS: [(Metric, &str); 15] = [
    (plain("CPUs utilized", "of the server", of!(CpusUtilized)), "cpus-utilized"),
    (plain("Context switches", EACH, of!(ContextSwitches)), "switches"),
    (plain("Migrations", EACH, of!(Migrations)), "migrations"),
    (plain("Minor page faults", EACH, of!(MinorFaults)), "minor-faults"),
    (plain("Major page faults", EACH, of!(MajorFaults)), "major-faults"),
    (micros(plain("Time ready without a CPU", "µs per request", of!(RunDelay))), "run-delay"),
    (plain("Cycles", EACH, of!(Cycles)), "cycles"),
    (plain("Instructions", EACH, of!(Instructions)), "instructions"),
    (plain("IPC", "instructions per cycle", of!(InstructionsPerCycle)), "ipc"),
    (plain("Branches", EACH, of!(Branches)), "branches"),
    (plain("Branch misses", EACH, of!(BranchMisses)), "branch-misses"),
    (plain("Cycles with a stalled front end", EACH, of!(StalledFrontend)), "stalled-frontend"),
    (plain("Cycles with a stalled back end", EACH, of!(StalledBackend)), "stalled-backend"),
    (plain("L1d misses", EACH, of!(L1dMisses)), "l1d-misses"),
    (plain("LLC misses", EACH, of!(LlcMisses)), "llc-misses"),
];

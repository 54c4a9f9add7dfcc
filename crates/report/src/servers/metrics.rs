//! What is shown of a server: what a request costs, how many there are, how long they
//! take, and what the kernel and the processor counted for each.

use crate::figure::metric::{Metric, plain};

/// A figure of the server.
macro_rules! of {
    ($field:ident) => {
        |arm| arm.server.as_ref()?.server.$field
    };
}

/// A count of the server for each request.
macro_rules! each {
    ($field:ident) => {
        |arm| Some(arm.server.as_ref()?.server.$field?.per_request)
    };
}

const fn micros(metric: Metric) -> Metric {
    Metric { divisor: 1e3, ..metric }
}

/// CPU time of the server's threads and children, user and kernel, of a request.
pub(crate) const COST: Metric =
    micros(plain("Server CPU time", "µs per request", each!(task_clock_ns)));
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

/// What is counted of the server, with the middle of the name of its figure and what the
/// ends call it where they could not count it.
pub(crate) const COUNTERS: [(Metric, &str, &str); 15] = [
    (plain("CPUs utilized", "of the server", of!(cpus_utilized)), "cpus-utilized", "task_clock"),
    (plain("Context switches", EACH, each!(context_switches)), "switches", "voluntary_switches"),
    (plain("Migrations", EACH, each!(migrations)), "migrations", "migrations"),
    (plain("Minor page faults", EACH, each!(minor_faults)), "minor-faults", "minor_faults"),
    (plain("Major page faults", EACH, each!(major_faults)), "major-faults", "major_faults"),
    (
        micros(plain("Time ready without a CPU", "µs per request", each!(run_delay_ns))),
        "run-delay",
        "run_delay",
    ),
    (plain("Cycles", EACH, each!(cycles)), "cycles", "cycles_user"),
    (plain("Instructions", EACH, each!(instructions)), "instructions", "instructions_user"),
    (
        plain("IPC", "instructions per cycle", of!(instructions_per_cycle)),
        "ipc",
        "instructions_user",
    ),
    (plain("Branches", EACH, each!(branches)), "branches", "branches"),
    (plain("Branch misses", EACH, each!(branch_misses)), "branch-misses", "branch_misses"),
    (
        plain("Cycles with a stalled front end", EACH, each!(stalled_cycles_frontend)),
        "stalled-frontend",
        "stalled_cycles_frontend",
    ),
    (
        plain("Cycles with a stalled back end", EACH, each!(stalled_cycles_backend)),
        "stalled-backend",
        "stalled_cycles_backend",
    ),
    (plain("L1d misses", EACH, each!(l1d_misses)), "l1d-misses", "l1d_misses"),
    (plain("LLC misses", EACH, each!(llc_misses)), "llc-misses", "llc_misses"),
];

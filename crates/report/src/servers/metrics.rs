//! What is shown of a server: what a request costs, how many there are, how long they
//! take, and what the kernel and the processor counted for each.

use iolens_stats::analysis::{ArmAnalysis, EndFigures, Estimate, Spent};

use crate::figure::metric::{Metric, plain};

/// A count per request of the server.
fn spent(arm: &ArmAnalysis, of: fn(&EndFigures) -> Option<Spent>) -> Option<Estimate> {
    Some(of(&arm.server.as_ref()?.server)?.per_request)
}

/// A quotient of counts of the server.
fn ratio(arm: &ArmAnalysis, of: fn(&EndFigures) -> Option<Estimate>) -> Option<Estimate> {
    of(&arm.server.as_ref()?.server)
}

/// CPU time of the server's threads and children, user and kernel, of a request.
pub(crate) const COST: Metric = Metric {
    divisor: 1e3,
    ..plain("Server CPU time", "µs per request", |arm| spent(arm, |end| end.task_clock_ns))
};
/// Right replies.
pub(crate) const THROUGHPUT: Metric =
    plain("Requests answered", "per second", |arm| Some(arm.server.as_ref()?.requests_per_s));

/// Percentiles from when requests were due.
pub(crate) const LATENCY: [Metric; 3] = [
    Metric { divisor: 1e3, ..plain("p50", "µs", |arm| arm.latency.as_ref()?.p50_ns) },
    Metric { divisor: 1e3, ..plain("p99", "µs", |arm| arm.latency.as_ref()?.p99_ns) },
    Metric { divisor: 1e3, ..plain("p99.9", "µs", |arm| arm.latency.as_ref()?.p999_ns) },
];

/// Context switches.
pub(super) const SWITCHES: Metric =
    plain("Context switches", "per request", |arm| spent(arm, |end| end.context_switches));

/// CPU time over that of the slices.
const UTILIZED: Metric =
    plain("CPUs utilized", "of the server", |arm| ratio(arm, |end| end.cpus_utilized));

/// What is counted of the server, with the middle of the name of its figure and what the
/// ends call it where they could not count it.
pub(crate) const COUNTERS: [(Metric, &str, &str); 15] = [
    (UTILIZED, "cpus-utilized", "task_clock"),
    (SWITCHES, "switches", "voluntary_switches"),
    (
        plain("Migrations", "per request", |arm| spent(arm, |end| end.migrations)),
        "migrations",
        "migrations",
    ),
    (
        plain("Minor page faults", "per request", |arm| spent(arm, |end| end.minor_faults)),
        "minor-faults",
        "minor_faults",
    ),
    (
        plain("Major page faults", "per request", |arm| spent(arm, |end| end.major_faults)),
        "major-faults",
        "major_faults",
    ),
    (
        Metric {
            divisor: 1e3,
            ..plain("Time ready without a CPU", "µs per request", |arm| {
                spent(arm, |end| end.run_delay_ns)
            })
        },
        "run-delay",
        "run_delay",
    ),
    (plain("Cycles", "per request", |arm| spent(arm, |end| end.cycles)), "cycles", "cycles_user"),
    (
        plain("Instructions", "per request", |arm| spent(arm, |end| end.instructions)),
        "instructions",
        "instructions_user",
    ),
    (
        plain("IPC", "instructions per cycle", |arm| ratio(arm, |end| end.instructions_per_cycle)),
        "ipc",
        "instructions_user",
    ),
    (
        plain("Branches", "per request", |arm| spent(arm, |end| end.branches)),
        "branches",
        "branches",
    ),
    (
        plain("Branch misses", "per request", |arm| spent(arm, |end| end.branch_misses)),
        "branch-misses",
        "branch_misses",
    ),
    (
        plain("Cycles with a stalled front end", "per request", |arm| {
            spent(arm, |end| end.stalled_cycles_frontend)
        }),
        "stalled-frontend",
        "stalled_cycles_frontend",
    ),
    (
        plain("Cycles with a stalled back end", "per request", |arm| {
            spent(arm, |end| end.stalled_cycles_backend)
        }),
        "stalled-backend",
        "stalled_cycles_backend",
    ),
    (
        plain("L1d misses", "per request", |arm| spent(arm, |end| end.l1d_misses)),
        "l1d-misses",
        "l1d_misses",
    ),
    (
        plain("LLC misses", "per request", |arm| spent(arm, |end| end.llc_misses)),
        "llc-misses",
        "llc_misses",
    ),
];

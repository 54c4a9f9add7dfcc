//! Sending and receiving: beside others and bare loops, over links that are known.

mod bare_loops;
mod mapped;
mod rivals;
mod throttle;

use crate::prelude::*;

pub use rivals::free_port;

pub const FUNCTIONS: Functions = &[
    ("iperf3", rivals::iperf3),
    ("bare-loops", bare_loops::check),
    ("throttle", throttle::send),
    ("throttle-all", throttle::all),
    ("mapped", mapped::check),
    ("liburing", rivals::liburing),
];

/// A run of a plan of this repository.
pub fn plan(bench: &Bench, name: &str) -> Job {
    let plan = crate::root().join("plans").join(name);
    bench.iolens("run --progress plain").arg(plan)
}

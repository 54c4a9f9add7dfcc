//! What the studies share below a trial: the loop that sends, the machine and its limits, recorders
//! of times, and words for what a kernel refuses. It knows no study.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cgroup;
pub mod counters;
pub mod environment;
pub mod frames;
pub mod host;
pub mod journal;
pub mod lock;
pub mod locked_memory;
pub mod op;
pub mod perf_control;
pub mod reclaim;
pub mod ring_refusal;
#[cfg(test)]
#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../tests/support/scripted.rs"]
mod scripted;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
#[path = "../../../tests/support/small.rs"]
mod small;
#[cfg(test)]
#[allow(unreachable_pub, reason = "the fuzz target uses it")]
#[path = "../../../fuzz/src/lock.rs"]
mod strange_lock;
pub mod stream;
pub mod surroundings;
pub mod symbols;
pub mod sysctl;
pub mod tracefs;
pub mod watch;

//! What the studies share below a trial: limits of the machine, recorders, and words for what a
//! kernel refuses. It knows no study, and no trial.

#![forbid(unsafe_code)]

pub mod cgroup;
pub mod kernel;
pub mod ring_refusal;
#[cfg(test)]
#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../tests/support/scripted.rs"]
mod scripted;
pub mod times;
pub mod tracefs;
pub mod watch;

//! What is the same in the plan of every study, and what is of one alone.

use iolens_model::axes::Study;
use iolens_model::plan::{Axes, Passes, Plan, Probes, Schedule};
use iolens_model::units::Bytes;

use super::stated;
use crate::failure::Failure;
use crate::plan_file;
use crate::wishes::Wishes;

/// Keys that not every study has, and whose they are.
const KEYS: [(&[Study], &[&str]); 6] = [
    (&[Study::Net, Study::File, Study::Copy], &["sizes"]),
    (&[Study::File, Study::Copy], &["cache", "file", "dir", "evict"]),
    (&[Study::Copy], &["block", "sync", "external"]),
    (
        &[Study::Net],
        &[
            "topologies",
            "modes",
            "working_set",
            "receivers",
            "fields",
            "iovec",
            "reap_batch",
            "uring_batch",
            "uring_depth",
            "ip",
            "mtu",
            "congestion",
            "socket_buffer",
            "receive_size",
            "allow_sysctl",
        ],
    ),
    (&[Study::Syscall], &["in_a_row"]),
    (&[Study::File], &["pattern", "consumer", "depth", "file_bytes"]),
];

/// Refuses what another study has.
pub(super) fn refuse_foreign(study: Study, asked: &Wishes) -> Result<(), Failure> {
    let flag = |key: &str| format!("--{}", key.replace('_', "-"));
    for (key, _) in plan_file::stated(asked) {
        let owners = KEYS.iter().find(|(_, keys)| keys.contains(&key)).map(|(owners, _)| *owners);
        if let Some(owners) = owners.filter(|owners| !owners.contains(&study)) {
            let own = KEYS.iter().filter(|(owners, _)| owners.contains(&study));
            let own: Vec<String> =
                own.flat_map(|(_, keys)| keys.iter()).map(|key| flag(key)).collect();
            let owners: Vec<&str> = owners.iter().map(|owner| owner.word()).collect();
            return Err(Failure::usage(format!(
                "{} is of the {} {}: {study} has no such axis\n  leave it out; {study} has \
                 --primitives, --threads, {}",
                flag(key),
                if owners.len() == 1 { "study" } else { "studies" },
                owners.join(" and "),
                own.join(", ")
            )));
        }
    }
    Ok(())
}

/// What of a plan a study has chosen in its own way.
pub(super) struct Chosen {
    pub(super) axes: Axes,
    pub(super) primitives: Vec<String>,
    pub(super) baseline: String,
    pub(super) sizes: Vec<Bytes>,
    pub(super) schedule: Schedule,
}

impl Chosen {
    /// The plan, with what is the same in every study.
    pub(super) fn plan(self, asked: &Wishes, seed: u64) -> Result<Plan, Failure> {
        let passes = match asked.passes {
            None if asked.is_classic() => Passes { minimum: 1, maximum: 1 },
            given => stated(given, "passes")?,
        };
        Ok(Plan {
            axes: self.axes,
            primitives: self.primitives,
            baseline: self.baseline,
            sizes: self.sizes,
            threads: stated(asked.threads.clone(), "threads")?.0,
            schedule: self.schedule,
            passes,
            budget: stated(asked.budget, "budget")?,
            precision: asked.precision.unwrap_or(0.03),
            delta: asked.delta.unwrap_or(0.03),
            quick: asked.quick,
            isolate: asked.isolate,
            seed: asked.seed.unwrap_or(seed),
            cpus: asked.cpus.clone().map(|cpus| cpus.0),
            probes: Probes {
                counting: asked.counters.unwrap_or_default(),
                software: asked.software_events,
                tracepoints: asked.tracepoints,
            },
        })
    }
}

//! What programs of the user's do otherwise than the methods beside them.

use iolens_model::file::PROGRAM_READ_BYTES;
use iolens_model::plan::Plan;
use iolens_model::sender::{CONNECTIONS, NODELAY, NODELAY_OFF, OUR_SEND_BUFFER, SEND_BUFFER};
use iolens_stats::analysis::Analysis;
use serde::Serialize;

use super::Finding;
use crate::groups::distinct;

/// Send buffers of programs, at least twice or at most half as large as those of all others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SendBuffers {
    /// Whose.
    pub methods: Vec<String>,
    /// The largest of theirs.
    pub theirs_bytes: u64,
    /// Those of all others.
    pub ours_bytes: u64,
}

/// What a program reads for each block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadByCalls {
    /// Its name.
    pub method: String,
    /// Bytes that its system calls read.
    pub bytes: f64,
    /// Bytes of a block, which it was told.
    pub block_bytes: u64,
}

/// The connections of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SenderConnections {
    /// Its name.
    pub method: String,
    /// How many it made.
    pub made: u64,
    /// Threads that it was told to have.
    pub threads: u32,
}

/// What programs do otherwise than all others, which may be why they are faster or slower.
pub(super) fn cautions(plan: &Plan, analysis: &Analysis) -> Vec<Finding> {
    let names: Vec<&str> = plan.programs().iter().map(|program| &*program.name).collect();
    let facts = || {
        let all = analysis.told.arm_facts.iter();
        all.filter(|fact| names.contains(&&*fact.arm))
    };
    let held_back = facts().filter(|fact| fact.name == NODELAY && fact.value == NODELAY_OFF);
    let methods = distinct(held_back.map(|fact| fact.arm.clone()));
    let connections = facts().filter(|fact| fact.name == CONNECTIONS).filter_map(|fact| {
        let (method, threads) = (fact.arm.clone(), fact.cell.threads);
        Some(SenderConnections { method, made: fact.value.parse().ok()?, threads })
    });
    let connections = distinct(connections);
    let held_back = (!methods.is_empty()).then_some(Finding::HeldBack { methods });
    let number_of = |arm: &str, name: &str| {
        let own = facts().filter(|fact| fact.arm == arm && fact.name == name);
        own.filter_map(|fact| fact.value.parse::<u64>().ok()).max()
    };
    let buffers = names.iter().filter_map(|&name| {
        let (own, ours) = (number_of(name, SEND_BUFFER)?, number_of(name, OUR_SEND_BUFFER)?);
        (own >= 2 * ours || ours >= 2 * own).then(|| (name.to_owned(), own, ours))
    });
    let buffers: Vec<(String, u64, u64)> = buffers.collect();
    let largest = buffers.iter().map(|&(_, own, ours)| (own, ours)).max();
    let buffers = largest.map(|(theirs_bytes, ours_bytes)| {
        Finding::SendBuffers(SendBuffers {
            methods: buffers.into_iter().map(|(name, ..)| name).collect(),
            theirs_bytes,
            ours_bytes,
        })
    });
    let read = facts().filter(|fact| fact.name == PROGRAM_READ_BYTES).filter_map(|fact| {
        let (bytes, block_bytes): (f64, _) = (fact.value.parse().ok()?, fact.cell.size.0);
        let is_told = (bytes / block_bytes as f64 - 1.0).abs() <= READ_MORE_OR_LESS;
        (!is_told).then(|| ReadByCalls { method: fact.arm.clone(), bytes, block_bytes })
    });
    let readers: Vec<ReadByCalls> = first_of_each(read);
    let read = (!readers.is_empty()).then_some(Finding::ReadByCalls { readers });
    let senders = connections;
    let shared = (!senders.is_empty()).then_some(Finding::Connections { senders });
    [shared, held_back, buffers, read].into_iter().flatten().collect()
}

/// By so much of a block a program may read more or less: it reads what it is asked, too.
const READ_MORE_OR_LESS: f64 = 0.02;

/// One of each program: that with the smallest block.
fn first_of_each(read: impl Iterator<Item = ReadByCalls>) -> Vec<ReadByCalls> {
    let mut all: Vec<ReadByCalls> = read.collect();
    all.sort_by(|a, b| (&a.method, a.block_bytes).cmp(&(&b.method, b.block_bytes)));
    all.dedup_by(|later, first| later.method == first.method);
    all
}

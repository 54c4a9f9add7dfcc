//! How much a slice that writes is, and how long it takes with what is done around it.

use iolens_engine::files::write::engines;
use iolens_engine::work;
use iolens_model::arm::Arm;
use iolens_model::cell::Cell;
use iolens_model::file::WritingFacts;
use iolens_model::units::{Bytes, Nanos};

/// Blocks of a slice of an arm over all its threads.
pub(super) fn blocks(
    target: Nanos,
    arm: &Arm,
    block_ns: f64,
    cell: &Cell,
    writing: &WritingFacts,
) -> u64 {
    let is_durable = engines::find(&arm.primitive).is_some_and(|entry| entry.is_durable);
    let (region, most) = (writing.region, writing.dirty_background);
    work::written_blocks(target, block_ns, cell, is_durable, region, most)
}

/// How long it takes about to bring to the device what a slice of so many blocks has
/// written, outside of its clock, ns.
pub(super) fn settling_ns(blocks: u64, cell: &Cell) -> u64 {
    work::guessed_settling_ns(Bytes(blocks.saturating_mul(cell.size.0)))
}

/// The time of a block before anything was measured, ns.
pub(super) fn guessed_ns(arm: &Arm, cell: &Cell) -> f64 {
    let entry = engines::find(&arm.primitive);
    let waits = entry.map_or((false, false), |entry| (entry.is_durable, entry.is_direct));
    work::guessed_write_ns(cell.size, waits.0, waits.1)
}

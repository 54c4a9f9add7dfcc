//! How much work a slice is: found before the first pass, by probes, and kept for as long as
//! the slices of a trial stay equally long.

use std::collections::BTreeMap;

use iolens_file::copy::COPIES_BYTES;
use iolens_model::cell::Cell;
use iolens_model::copy::{CopySetting, CopySync};
use iolens_model::file::CacheState;
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::trial::SliceKind;
use iolens_model::units::{Bytes, Nanos};

/// Messages per thread that a slice has at least.
const MESSAGES_PER_THREAD_MIN: u64 = 4;

/// The same for several threads without another end, which do not end together: the
/// last one by as much as one block or call.
const TOGETHER_MIN: u64 = 16;

/// A first guess of a message's time, to be corrected by a probe: a call and
/// a copy at each end on a machine of no great speed.
const GUESS_CALL_NS: f64 = 1_500.0;
const GUESS_BYTES_PER_NS: f64 = 4.0;

/// A link of 8 Mbit/s.
const GUESS_LINK_BYTES_PER_NS: f64 = 1e-3;

/// A round trip wakes a thread at each end.
const GUESS_ROUND_TRIP_NS: f64 = 30_000.0;

/// The same for reads of a file: a call, and a copy, or a device of no great speed.
const GUESS_READ_NS: f64 = 500.0;
const GUESS_COLD_BYTES_PER_NS: f64 = 0.5;

/// The same for a write that waits for a device of no great speed.
const GUESS_DEVICE_NS: f64 = 2_000_000.0;

/// What a device of no great speed takes in a nanosecond.
const GUESS_DEVICE_BYTES_PER_NS: f64 = 0.5;

/// The same for copies: once from the page cache and once into new pages of it.
const GUESS_COPY_BYTES_PER_NS: f64 = 1.5;

/// Copies of one slice that are there at once.
const COPIES_MAX: u64 = 64;

/// A cold slice is as long as so many warm ones.
const COLD_SLICES: u64 = 10;

/// The time of one message before anything was measured, in ns.
pub fn guessed_message_ns(cell: &Cell) -> f64 {
    let fixed_ns = if cell.is_rr() { GUESS_ROUND_TRIP_NS } else { GUESS_CALL_NS };
    fixed_ns + cell.size.0 as f64 / GUESS_BYTES_PER_NS
}

/// The time of one message to another machine before anything was measured, in ns: that of a
/// link so slow that few are slower. Fewer messages than there is time for are soon sent.
pub fn guessed_ns_over_a_link(cell: &Cell) -> f64 {
    guessed_message_ns(cell) + cell.size.0 as f64 / GUESS_LINK_BYTES_PER_NS
}

/// The time of one block before anything was measured, in ns.
pub fn guessed_block_ns(block: Bytes, cache: CacheState) -> f64 {
    let bytes_per_ns = match cache {
        CacheState::Warm => GUESS_BYTES_PER_NS,
        CacheState::Cold | CacheState::Dropped => GUESS_COLD_BYTES_PER_NS,
    };
    GUESS_READ_NS + block.0 as f64 / bytes_per_ns
}

/// The time of the bytes of a block before anything was measured, in ns.
pub fn guessed_copy_of_block_ns(block: Bytes) -> f64 {
    block.0 as f64 / GUESS_BYTES_PER_NS
}

/// The time of writing one block before anything was measured, in ns.
pub fn guessed_write_ns(block: Bytes, is_durable: bool, is_direct: bool) -> f64 {
    let to_device = if is_durable || is_direct { GUESS_DEVICE_NS } else { 0.0 };
    guessed_block_ns(block, CacheState::Warm) + to_device
}

/// The time of bringing so much to the device before anything was measured, in ns.
pub fn guessed_settling_ns(bytes: Bytes) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let ns = (GUESS_DEVICE_NS + bytes.0 as f64 / GUESS_DEVICE_BYTES_PER_NS) as u64;
    ns
}

/// Blocks of a slice that writes and is meant to last for `target`, in a region of
/// `region` of which no block is written twice: a thread that finds a processor to itself
/// may write nearly all of them, in the part of the region that is its own. No more bytes
/// than `most` where that is known, from which on the kernel would write back by itself.
/// One per thread will do where each waits for the device: four would be a long slice.
pub fn written_blocks(
    target: Nanos,
    block_ns: f64,
    cell: &Cell,
    is_durable: bool,
    region: Bytes,
    most: Option<Bytes>,
) -> u64 {
    let least = u64::from(cell.threads) * if is_durable { 1 } else { MESSAGES_PER_THREAD_MIN };
    let room = most.map_or(region, |most| most.min(region));
    let of = |bytes: Bytes| (bytes.0 / cell.size.0.max(1)).max(1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let blocks = (target.0 as f64 / block_ns) as u64;
    let part = (of(region) / u64::from(cell.threads.max(1))).max(1);
    blocks.min(of(room)).max(least).min(part)
}

/// Blocks of a slice that is meant to last for `target`, of a file of `file_bytes`.
/// No block is read twice in a cold slice: the second time it would be in the page cache.
/// Threads share the blocks of a slice, each in a part of the file of its own, and one
/// that finds a processor to itself may read nearly all of them: they are no more than a
/// part has.
/// Cold slices are long: one that were no longer than the kernel reads ahead would be
/// a matter of where that began.
pub fn blocks(target: Nanos, block_ns: f64, cell: &Cell, file_bytes: Bytes) -> u64 {
    let is_cold = cell.file().is_some_and(|file| file.cache.is_cold());
    let target = if is_cold { Nanos(target.0.saturating_mul(COLD_SLICES)) } else { target };
    let part = file_bytes.0 / cell.size.0.max(1) / u64::from(cell.threads.max(1));
    let most = if is_cold { part.max(1) } else { u64::MAX };
    messages(target, block_ns, cell).min(most)
}

/// Time of one copy before anything was measured, in ns; `is_program` for a process of
/// its own.
pub fn guessed_copy_ns(cell: &Cell, copy: CopySetting, is_program: bool) -> f64 {
    const GUESS_START_NS: f64 = 1_500_000.0;
    const GUESS_SYNC_NS: f64 = 5_000_000.0;
    let bytes = cell.size.0 as f64;
    let calls = (bytes / copy.block_bytes.0.max(1) as f64).ceil();
    let start_ns = if is_program { GUESS_START_NS } else { 0.0 };
    // To the device and from it no faster than each other.
    let (sync_ns, synced) = match copy.sync {
        CopySync::Fsync => (GUESS_SYNC_NS, bytes / GUESS_COLD_BYTES_PER_NS),
        CopySync::None => (0.0, 0.0),
    };
    let read = match copy.cache {
        CacheState::Warm => 0.0,
        CacheState::Cold | CacheState::Dropped => bytes / GUESS_COLD_BYTES_PER_NS,
    };
    start_ns
        + sync_ns
        + synced
        + read
        + 2.0 * calls * GUESS_READ_NS
        + bytes / GUESS_COPY_BYTES_PER_NS
}

/// Files of a slice that is meant to last for `target`: one at least. All of them are
/// there at once, so there are no more than fit this much memory; and cold ones come one
/// by one, for the second would find what the first has read.
pub fn copies(target: Nanos, copy_ns: f64, cell: &Cell) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let copies = (target.0 as f64 / copy_ns) as u64;
    let most = match cell.cache() {
        Some(CacheState::Cold) => 1,
        _ => (COPIES_BYTES / cell.size.0.max(1)).clamp(1, COPIES_MAX),
    };
    copies.clamp(1, most)
}

/// Messages of a slice that is meant to last for `target`.
pub fn messages(target: Nanos, message_ns: f64, cell: &Cell) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let messages = (target.0 as f64 / message_ns) as u64;
    if let Some(server) = cell.server() {
        // Fewer requests would leave connections without any.
        return messages.max(u64::from(server.connections)).max(MESSAGES_PER_THREAD_MIN);
    }
    let least = match cell.is_alone() && cell.threads > 1 {
        true => TOGETHER_MIN,
        false => MESSAGES_PER_THREAD_MIN,
    };
    messages.max(least * u64::from(cell.threads))
}

/// Median time per message over an arm's slices of a trial that count, in ns.
pub fn measured_message_ns(trial: &TrialOutcome, arm: usize) -> Option<f64> {
    median(measured(trial, arm).map(|(_, ns)| ns).collect())
}

/// How many times as long a message of an arm takes as one of another arm of the same trial,
/// ln, in each round that counts. What slows both in a round is not in it.
pub fn measured_ln_ratios(trial: &TrialOutcome, arm: usize, to: usize) -> Vec<f64> {
    let others: BTreeMap<u32, f64> = measured(trial, to).collect();
    let ratio = |(round, ns): (u32, f64)| Some((ns / others.get(&round)?).ln());
    measured(trial, arm).filter_map(ratio).collect()
}

/// The same of the slices that a quarter of each arm's were faster than, which nobody came
/// between; `None` where either has none.
pub fn undisturbed_ln_ratio(trial: &TrialOutcome, arm: usize, to: usize) -> Option<f64> {
    let quarter_ns = |arm| {
        let mut ns: Vec<f64> = measured(trial, arm).map(|(_, ns)| ns).collect();
        ns.sort_unstable_by(f64::total_cmp);
        ns.get(ns.len() / 4).copied()
    };
    Some((quarter_ns(arm)? / quarter_ns(to)?).ln())
}

/// The middle of some values, or of the two that are in the middle; `None` without any.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[low], values[high]))
}

/// Rounds that count, with the time per message of an arm's slice there, in ns.
fn measured(trial: &TrialOutcome, arm: usize) -> impl Iterator<Item = (u32, f64)> {
    let per_message = move |s: &SliceOutcome| {
        (s.arm == arm && s.kind == SliceKind::Measured && s.tx.messages > 0 && s.tx.time_ns > 0)
            .then(|| (s.round, s.tx.time_ns as f64 / s.tx.messages as f64))
    };
    trial.slices.iter().filter_map(per_message)
}

#[cfg(test)]
mod tests {
    use iolens_model::cell::Setting;
    use iolens_model::file::{Consumer, FileSetting, Pattern};

    use super::*;

    #[test]
    fn no_thread_of_a_cold_slice_comes_to_its_beginning_again() {
        let blocks = |cache, threads| {
            let (pattern, consumer) = (Pattern::Sequential, Consumer::None);
            let setting = Setting::File(FileSetting { cache, pattern, consumer, depth: 1 });
            let cell = Cell { setting, threads, size: Bytes(64 << 10) };
            blocks(Nanos::SECOND, 10_000.0, &cell, Bytes(64 << 20))
        };
        // 1024 blocks, of which one thread has all and each of ten 102.
        assert_eq!(blocks(CacheState::Cold, 1), 1024);
        assert_eq!(blocks(CacheState::Cold, 10), 102);
        assert_eq!(blocks(CacheState::Warm, 10), 100_000);
        assert_eq!(blocks(CacheState::Cold, 2000), 1);
    }
}

//! What arms are before anything is measured: which are allowed, what one message of each
//! takes, and how many copies and writes make a slice.

use iolens_engine::work;
use iolens_file::{copy, engines};
use iolens_harness::locked_memory::Limits;
use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::{Cell, Setting};
use iolens_model::file::WritingFacts;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::units::{Bytes, Nanos};
use iolens_net::{registry, transports};

use super::servers;

/// The row of an arm that took no part.
pub(super) fn refused_row((arm, why): &(Arm, String)) -> ArmOutcome {
    ArmOutcome {
        arm: arm.clone(),
        status: Status::Skipped,
        reason: Some(why.clone()),
        copies_sender: None,
        copies_end_to_end: None,
        latency: None,
        server: None,
        ab: None,
    }
}

/// An operation of a program of which nothing is known: a probe of long ones ends soon, and short
/// ones are asked for more often in the next.
const UNKNOWN_NS: f64 = 1e6;

/// The time of a message, or of a call, before anything was measured, ns.
pub(super) fn guess_ns(arm: &Arm, cell: &Cell) -> f64 {
    match cell.setting {
        Setting::Net(_) => work::guessed_message_ns(cell),
        Setting::Server(ref setting) => servers::guess_ns(arm, setting),
        Setting::Ab(_) => 0.0,
        Setting::Syscall(_) => iolens_syscall::find(&arm.primitive).map_or(UNKNOWN_NS, |entry| {
            let bytes = if entry.bytes > 0 { cell.size } else { Bytes(0) };
            entry.guess_ns + work::guessed_copy_of_block_ns(bytes)
        }),
        Setting::File(setting) => work::guessed_block_ns(cell.size, setting.cache),
        Setting::Write(_) => guessed_write_ns(arm, cell),
        Setting::Copy(setting) => {
            let is_program = engines::that_copies(&arm.primitive).is_none();
            work::guessed_copy_ns(cell, setting, is_program)
        }
    }
}

/// Whether an arm can take part in a cell: by its transport, and by this machine's
/// limits.
///
/// Errors: why not, with the arithmetic.
pub(super) fn allowed(arm: &Arm, cell: &Cell, plan: &Plan, limits: &Limits) -> Result<(), String> {
    if cell.study().has_blocks() {
        // What an engine refuses depends on the file, and is asked in the worker.
        return Ok(());
    }
    if cell.copy().is_some() {
        return copy::copiers::allow(&arm.primitive, cell.threads);
    }
    if let Some(axes) = plan.syscall() {
        let Some(entry) = iolens_syscall::find(&arm.primitive) else { return Ok(()) };
        entry.allow_on(axes.file.is_some())?;
        // How large a file of the user's is, is asked in the worker.
        return entry.allow(cell, None, plan.schedule.is_sliced());
    }
    if let Some(setting) = cell.server() {
        return servers::allowed(arm, setting);
    }
    let Some(entry) = registry::find(&arm.primitive) else { return Ok(()) };
    if let Some(net) = cell.net() {
        transports::allow(entry, cell, net.tuning.network(), cell.receive_size().0)?;
    }
    if entry.locks_memory { limits.allow(cell) } else { Ok(()) }
}

/// What a slice that copies takes with what is done around it: files are made and
/// removed, which frees every page of them.
pub(super) fn around_a_copy(slice_ns: u64) -> u64 {
    slice_ns.saturating_add(slice_ns / 2)
}

/// How long a trial of copies takes, about, and one of programs that send.
pub(super) const COPYING_TRIAL: Nanos = Nanos(4_000_000_000);
pub(super) const SENDING_TRIAL: Nanos = Nanos(1_500_000_000);

/// Rounds of a trial, those thrown away first, from the time of one and what the plan wants of
/// each: as many as the trial has time for, and one of each at least.
pub(super) fn rounds_within(
    trial: Nanos,
    round_ns: u64,
    [discarded, rounds]: [u32; 2],
) -> [u32; 2] {
    let fit = u32::try_from(trial.0 / round_ns.max(1)).unwrap_or(u32::MAX);
    let wanted = discarded.saturating_add(rounds);
    if fit >= wanted && discarded > 0 {
        return [discarded, rounds];
    }
    // The first copies of an arm in a trial are those whose bytes are compared.
    let discarded = (u64::from(discarded) * u64::from(fit) / u64::from(wanted.max(1))).max(1);
    let discarded = u32::try_from(discarded).unwrap_or(1);
    [discarded, fit.saturating_sub(discarded).clamp(1, rounds.max(1))]
}

/// Rounds of a probe, those thrown away first. Several probes make up for their being few.
pub(super) const PROBE_ROUNDS: [u32; 2] = [1, 3];

/// The same where a round may be long, from the time of one.
pub(super) fn rounds_of_probes(round_ns: u64) -> [u32; 2] {
    const PROBE: Nanos = Nanos(350_000_000);
    let [discarded, rounds] = PROBE_ROUNDS;
    let fit = u32::try_from(PROBE.0 / round_ns.max(1)).unwrap_or(u32::MAX);
    [discarded, fit.clamp(1, rounds)]
}

/// Blocks of a slice of an arm over all its threads.
pub(super) fn written_blocks(
    target: Nanos,
    arm: &Arm,
    block_ns: f64,
    cell: &Cell,
    writing: &WritingFacts,
) -> u64 {
    let is_durable = engines::that_writes(&arm.primitive).is_some_and(|entry| entry.is_durable);
    let (region, most) = (writing.region, writing.dirty_background);
    work::written_blocks(target, block_ns, cell, is_durable, region, most)
}

/// How long it takes about to bring to the device what a slice of so many blocks has
/// written, outside of its clock, ns.
pub(super) fn settling_ns(blocks: u64, cell: &Cell) -> u64 {
    work::guessed_settling_ns(Bytes(blocks.saturating_mul(cell.size.0)))
}

/// The time of a block before anything was measured, ns.
fn guessed_write_ns(arm: &Arm, cell: &Cell) -> f64 {
    let entry = engines::that_writes(&arm.primitive);
    let waits = entry.map_or((false, false), |entry| (entry.is_durable, entry.is_direct));
    work::guessed_write_ns(cell.size, waits.0, waits.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_as_many_rounds_as_it_has_time_for_and_one_of_each_at_least() {
        let rounds = |ms: u64| rounds_within(COPYING_TRIAL, ms * 1_000_000, [3, 10]);
        assert_eq!(rounds(0), [3, 10]);
        assert_eq!(rounds(300), [3, 10]);
        assert_eq!(rounds(500), [1, 7]);
        assert_eq!(rounds(1000), [1, 3]);
        assert_eq!(rounds(60_000), [1, 1]);
        assert_eq!(
            rounds_within(COPYING_TRIAL, 1, [0, 5]),
            [1, 5],
            "the first copies are compared"
        );
        assert_eq!([1, 60_000_000_000].map(rounds_of_probes), [[1, 3], [1, 1]]);
    }
}

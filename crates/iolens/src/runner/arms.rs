//! What can be said of an arm before any of its slices: whether it can take part in a
//! cell, and how long its work takes, about.

use iolens_engine::files::copy;
use iolens_engine::locked_memory::Limits;
use iolens_engine::{calls, registry, transports, work};
use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::{Cell, Setting};
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::units::Bytes;

use super::{servers, writes};

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
    }
}

/// The time of a message, or of a call, before anything was measured, ns.
pub(super) fn guess_ns(arm: &Arm, cell: &Cell) -> f64 {
    match cell.setting {
        Setting::Net(_) => work::guessed_message_ns(cell),
        Setting::Server(ref setting) => servers::guess_ns(arm, setting),
        Setting::Syscall(_) => calls::find(&arm.primitive).map_or(0.0, |entry| {
            let bytes = if entry.bytes > 0 { cell.size } else { Bytes(0) };
            entry.guess_ns + work::guessed_copy_of_block_ns(bytes)
        }),
        Setting::File(setting) => work::guessed_block_ns(cell.size, setting.cache),
        Setting::Write(_) => writes::guessed_ns(arm, cell),
        Setting::Copy(setting) => {
            let is_program = copy::engines::find(&arm.primitive).is_none();
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
        let Some(entry) = calls::find(&arm.primitive) else { return Ok(()) };
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

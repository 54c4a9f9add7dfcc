//! Whether single system calls fit slices.

use iolens_engine::calls;
use iolens_model::arm::Arm;
use iolens_model::cell::SyscallSetting;
use iolens_model::plan::Plan;

/// Whether slices of a call can be as the cell and the plan want them.
///
/// Errors: why not, with the arithmetic.
pub(super) fn allowed(arm: &Arm, setting: SyscallSetting, plan: &Plan) -> Result<(), String> {
    let most = calls::find(&arm.primitive).and_then(|entry| entry.most);
    let Some(most) = most else { return Ok(()) };
    let calls = if most == 1 { "call" } else { "calls" };
    let limit = format!("a slice of `{}` has {most} {calls} at most", arm.primitive);
    match (setting.in_a_row, plan.schedule.is_sliced()) {
        (_, false) => Err(format!("{limit}, and one arm after another has a single slice")),
        (Some(calls), true) if calls > u64::from(most) => {
            Err(format!("{limit}, fewer than the {calls} in a row that are asked for"))
        }
        _ => Ok(()),
    }
}

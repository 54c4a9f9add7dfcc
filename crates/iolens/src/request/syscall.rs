//! What only the study `syscall` has.

use iolens_model::plan::{Schedule, SyscallAxes};

use super::stated;
use crate::axes::Wishes;
use crate::failure::Failure;

/// The axes of these wishes.
pub(super) fn axes(asked: &Wishes, schedule: &Schedule) -> Result<SyscallAxes, Failure> {
    let in_a_row = stated(&asked.bursts, "bursts")?;
    if !schedule.is_sliced() && in_a_row.iter().any(Option::is_some) {
        return Err(Failure::usage(
            "--bursts does not apply to --sequential-time and --sequential-messages, which have no \
             slices\n  leave one of them out, or use --bursts full",
        ));
    }
    Ok(SyscallAxes { in_a_row })
}

/// What a plan states of these axes.
pub(super) fn wishes(syscall: &SyscallAxes) -> Wishes {
    Wishes { bursts: Some(syscall.in_a_row.clone()), ..Wishes::default() }
}

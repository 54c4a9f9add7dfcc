//! A sampled trial: the counts of its slices are summed by arm and end, and
//! stand beside the stacks that were seen in the same slices.

use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::profile::{ProfileEnd, ProfileTrial, Samples, Sampling};
use iolens_model::trial::{SliceKind, Trial};
use iolens_model::units::Nanos;

use super::BothSamples;
use crate::worker::bracket;

/// Puts counts and samples of both ends together.
pub(super) fn of(
    trial: &Trial,
    number: u32,
    outcome: TrialOutcome,
    samples: BothSamples,
) -> ProfileTrial {
    let mut ends = Vec::new();
    let mut not_measured = Vec::new();
    for (sends, end) in [true, false].into_iter().zip(samples) {
        let Some(end) = end else { continue };
        for missing in end.missing {
            if !not_measured.contains(&missing) {
                not_measured.push(missing);
            }
        }
        for (index, samples) in end.arms.into_iter().enumerate() {
            ends.extend(profile_end(&outcome, index, sends, end.kernel, samples));
        }
    }
    ProfileTrial {
        number,
        cell: trial.cell.clone(),
        started_unix_ns: outcome.started_unix_ns,
        status: outcome.status,
        reason: outcome.reason,
        sampling: trial.sampling.unwrap_or(Sampling { period: Nanos(0) }),
        ends,
        not_measured,
    }
}

/// One end of an arm, if it has a part there and ran.
fn profile_end(
    outcome: &TrialOutcome,
    index: usize,
    sends: bool,
    kernel: bool,
    samples: Samples,
) -> Option<ProfileEnd> {
    let arm = outcome.arms.get(index).filter(|arm| arm.status == Status::Ok)?;
    let of_arm = outcome
        .slices
        .iter()
        .filter(|slice| slice.arm == index && slice.kind == SliceKind::Measured)
        .filter_map(|slice| if sends { Some(&slice.tx) } else { slice.rx.as_ref() });
    let mut sum: Option<Counts> = None;
    for counts in of_arm {
        let first = sum.is_none();
        let total = sum.get_or_insert_with(Counts::default);
        let time_ns = total.time_ns + counts.time_ns;
        bracket::add(total, counts, first);
        // The time of a slice is that of its end, not a sum over threads.
        total.time_ns = time_ns;
    }
    Some(ProfileEnd {
        arm: arm.arm.label.clone(),
        primitive: arm.arm.primitive.clone(),
        sends,
        kernel,
        counts: sum?,
        samples,
    })
}

//! A sampled trial: the counts of its slices are summed by arm and end, and
//! stand beside the stacks that were seen in the same slices.

use iolens_model::arm::Role;
use iolens_model::outcome::{Counts, SliceOutcome, Status, TrialOutcome};
use iolens_model::profile::{ProfileEnd, ProfileTrial, Samples, Sampling, Unsampled};
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
        let sampled = end.arms.into_iter().enumerate().filter(|(index, _)| trial.samples(*index));
        for (index, samples) in sampled {
            ends.extend(profile_end(&outcome, index, sends, end.kernel, samples));
        }
    }
    ProfileTrial {
        unsampled: unsampled(&outcome),
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

/// What the A/A arm did, if it ran beside the arm that it is a copy of.
fn unsampled(outcome: &TrialOutcome) -> Option<Unsampled> {
    let of_role = |role: Role| {
        outcome.arms.iter().position(|arm| arm.arm.role == role && arm.status == Status::Ok)
    };
    let (copy, baseline) = (of_role(Role::SelfCheck)?, of_role(Role::Baseline)?);
    let measured = |slice: &&SliceOutcome| slice.arm == copy && slice.kind == SliceKind::Measured;
    let counts = || outcome.slices.iter().filter(measured).map(|slice| &slice.tx);
    Some(Unsampled {
        arm: outcome.arms[baseline].arm.label.clone(),
        messages: counts().map(|counts| counts.messages).sum(),
        time_ns: counts().map(|counts| counts.time_ns).sum(),
    })
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

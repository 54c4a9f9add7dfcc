//! How many rounds a probe has, and a trial that copies: a copy of a large file is longer
//! than any slice is meant to be.

use iolens_model::units::Nanos;

/// What a slice that copies takes with what is done around it: files are made and
/// removed, which frees every page of them.
pub(super) fn around_a_copy(slice_ns: u64) -> u64 {
    slice_ns.saturating_add(slice_ns / 2)
}

/// Rounds of a trial that copies, those thrown away first, from the time of one and what
/// the plan wants of each: as many as the trial has time for, and one of each at least.
pub(super) fn rounds_of_copies(round_ns: u64, [discarded, rounds]: [u32; 2]) -> [u32; 2] {
    const TRIAL: Nanos = Nanos(4_000_000_000);
    let fit = u32::try_from(TRIAL.0 / round_ns.max(1)).unwrap_or(u32::MAX);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_as_many_rounds_as_it_has_time_for_and_one_of_each_at_least() {
        let rounds = |ms: u64| rounds_of_copies(ms * 1_000_000, [3, 10]);
        assert_eq!(rounds(0), [3, 10]);
        assert_eq!(rounds(300), [3, 10]);
        assert_eq!(rounds(500), [1, 7]);
        assert_eq!(rounds(1000), [1, 3]);
        assert_eq!(rounds(60_000), [1, 1]);
        assert_eq!(rounds_of_copies(1, [0, 5]), [1, 5], "the first copies are compared");
        assert_eq!([1, 60_000_000_000].map(rounds_of_probes), [[1, 3], [1, 1]]);
    }
}

//! What became of zero-copy sends.

use super::case::{Case, Flag, Ruling};
use crate::physics;
use crate::remark::{Circumstance, Event};

/// Every zero-copy send of a slice has completed when the slice ends, and no
/// completion was counted twice: notifications are ranges of ids, and who
/// counts notifications counts wrong.
pub(super) fn completions(case: &Case<'_>) -> Ruling {
    let Some(sent) = case.sums.tx.zerocopy else { return Ruling::Pass };
    if physics::completed(sent.sends, sent.completions, sent.copied) {
        return Ruling::Pass;
    }
    if sent.completions != sent.sends {
        return Ruling::Invalid(format!(
            "{} zero-copy sends and {} completions",
            sent.sends, sent.completions
        ));
    }
    Ruling::Invalid(format!(
        "{} of {} completions say that the kernel copied",
        sent.copied.unwrap_or_default(),
        sent.completions
    ))
}

/// Refused for want of locked memory, waited, and made again: the waiting is
/// in the arm's time.
pub(super) fn refused(case: &Case<'_>) -> Ruling {
    match case.sums.tx.zerocopy.map_or(0, |sent| sent.enobufs) {
        0 => Ruling::Pass,
        count => Ruling::Flag(Flag::Events { what: Event::ZeroCopyRefused, count }),
    }
}

/// Whoever listens on a packet socket gets every packet, so the kernel copies
/// what refers to user pages first (skb_orphan_frags_rx): the machine's
/// doing, not the primitive's.
pub(super) fn taps(case: &Case<'_>) -> Ruling {
    let ends = [&case.trial.tx, &case.trial.rx];
    let tapped = ends.into_iter().flatten().any(|end| end.packet_taps.is_some_and(|n| n > 0));
    if case.sums.tx.zerocopy.is_none() || !tapped {
        return Ruling::Pass;
    }
    Ruling::once(Circumstance::PacketTap)
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::ZerocopyCounts;
    use iolens_model::run::Run;

    use crate::analyse;
    use crate::fixture::{check_gates, one_arm_trial};
    use crate::remark::{Circumstance, Event, RemarkKind, Warning};

    /// Four slices that count this each.
    fn run(
        sends: u64,
        completions: u64,
        copied: impl Into<Option<u64>> + Copy,
        enobufs: u64,
    ) -> Run {
        one_arm_trial(|slice| {
            let copied = copied.into();
            let counts = ZerocopyCounts::none(copied);
            slice.tx.zerocopy = Some(ZerocopyCounts { sends, completions, enobufs, ..counts });
        })
    }

    #[test]
    fn every_send_completes_once() {
        check_gates(&run(10, 10, 10, 0), None);
        check_gates(&run(10, 10, None, 0), None);
        let gate = |rest: &str| format!("zero-copy completions: {rest}");
        check_gates(&run(10, 9, 0, 0), Some(&gate("40 zero-copy sends and 36 completions")));
        check_gates(&run(10, 11, 0, 0), Some(&gate("40 zero-copy sends and 44 completions")));
        check_gates(&run(10, 10, 11, 0), Some(&gate("44 of 40 completions say")));
    }

    /// What is said of the arm.
    fn remarks(run: &Run) -> Vec<RemarkKind> {
        analyse(run).cells.remove(0).remarks.into_iter().map(|remark| remark.kind).collect()
    }

    #[test]
    fn refusals_and_late_copies_are_noted() {
        let (what, trials, of) = (Event::ZeroCopyRefused, 1, 1);
        let refused = RemarkKind::Events { what, count: 12, trials, of };
        assert_eq!(remarks(&run(10, 10, 0, 3)), [refused]);
        let copied = RemarkKind::Copied { share: 1.0, tapped: false };
        assert_eq!(remarks(&run(10, 10, 10, 0)), [copied]);
        assert_eq!(remarks(&run(100, 100, 5, 0)), []);
    }

    #[test]
    fn a_packet_tap_is_said_once_and_only_beside_zero_copy() {
        let taps = |run: &Run| {
            let tap = Warning::Circumstance(Circumstance::PacketTap);
            let is_tap = |warning: &&Warning| **warning == tap;
            analyse(run).warnings.iter().filter(is_tap).count()
        };
        let tapped = |mut run: Run| {
            run.trials[0].rx.as_mut().unwrap().packet_taps = Some(1);
            taps(&run)
        };
        assert_eq!(tapped(run(10, 10, 10, 0)), 1);
        let mut beside = run(10, 10, 10, 0);
        beside.trials[0].tx.as_mut().unwrap().packet_taps = Some(1);
        assert_eq!(remarks(&beside), [RemarkKind::Copied { share: 1.0, tapped: true }]);
        assert_eq!(tapped(one_arm_trial(|_| {})), 0);
        assert_eq!(taps(&run(10, 10, 10, 0)), 0);
    }
}

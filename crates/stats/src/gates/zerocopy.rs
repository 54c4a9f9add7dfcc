//! Gate 12: what became of zero-copy sends.

use super::{Case, Check, Flag};
use crate::physics;

/// Every zero-copy send of a slice has completed when the slice ends, and no
/// completion was counted twice: notifications are ranges of ids, and who
/// counts notifications counts wrong.
pub(super) fn completions(case: &Case<'_>) -> Check {
    let Some(sent) = case.sums.tx.zerocopy else { return Check::Pass };
    if physics::completed(sent.sends, sent.completions, sent.copied) {
        return Check::Pass;
    }
    if sent.completions != sent.sends {
        return Check::Invalid(format!(
            "{} zero-copy sends and {} completions",
            sent.sends, sent.completions
        ));
    }
    Check::Invalid(format!(
        "{} of {} completions say that the kernel copied",
        sent.copied.unwrap_or_default(),
        sent.completions
    ))
}

/// Refused for want of locked memory, waited, and made again: the waiting is
/// in the arm's time.
pub(super) fn refused(case: &Case<'_>) -> Check {
    match case.sums.tx.zerocopy.map_or(0, |sent| sent.enobufs) {
        0 => Check::Pass,
        count => Check::Flag(Flag::Events {
            what: "zero-copy sends refused with ENOBUFS and made again",
            count,
        }),
    }
}

/// Whoever listens on a packet socket gets every packet, so the kernel copies
/// what refers to user pages first (skb_orphan_frags_rx): the machine's
/// doing, not the primitive's.
pub(super) fn taps(case: &Case<'_>) -> Check {
    let ends = [&case.trial.tx, &case.trial.rx];
    let tapped = ends.into_iter().flatten().any(|end| end.packet_taps.is_some_and(|n| n > 0));
    if case.sums.tx.zerocopy.is_none() || !tapped {
        return Check::Pass;
    }
    Check::Flag(Flag::Once(TAPPED.into()))
}

/// What is said of that.
pub(crate) const TAPPED: &str = "a packet tap (an AF_PACKET socket in the network namespace of an \
    end) forces copies of zero-copy sends";

#[cfg(test)]
mod tests {
    use iolens_model::outcome::ZerocopyCounts;
    use iolens_model::run::Run;

    use crate::analyse;
    use crate::fixture::{check_gates, one_arm_trial};

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
        let gate = |rest: &str| format!("gate 12 (zero-copy completions): {rest}");
        check_gates(&run(10, 9, 0, 0), Some(&gate("40 zero-copy sends and 36 completions")));
        check_gates(&run(10, 11, 0, 0), Some(&gate("40 zero-copy sends and 44 completions")));
        check_gates(&run(10, 10, 11, 0), Some(&gate("44 of 40 completions say")));
    }

    #[test]
    fn refusals_and_late_copies_are_noted() {
        let notes = analyse(&run(10, 10, 0, 3)).cells.remove(0).notes;
        let refused =
            "base: zero-copy sends refused with ENOBUFS and made again: 12, in 1 of 1 trial";
        assert_eq!(notes, [refused]);
        let notes = analyse(&run(10, 10, 10, 0)).cells.remove(0).notes;
        assert_eq!(
            notes,
            [
                "base: gate 12: the kernel reports 100 % of the zero-copy sends as copied, so the row \
             is labelled \"copied\""
            ]
        );
        assert_eq!(analyse(&run(100, 100, 5, 0)).cells[0].notes, [""; 0]);
    }

    #[test]
    fn a_packet_tap_is_said_once_and_only_beside_zero_copy() {
        let tapped = |mut run: Run| {
            run.trials[0].rx.as_mut().unwrap().packet_taps = Some(1);
            analyse(&run).warnings.iter().filter(|w| w.contains("forces copies")).count()
        };
        assert_eq!(tapped(run(10, 10, 10, 0)), 1);
        let mut beside = run(10, 10, 10, 0);
        beside.trials[0].tx.as_mut().unwrap().packet_taps = Some(1);
        let note = &analyse(&beside).cells[0].notes[0];
        assert!(note.ends_with("labelled \"copied\"; a packet tap was there, which forces it"));
        assert_eq!(tapped(one_arm_trial(|_| {})), 0);
        let untapped = analyse(&run(10, 10, 10, 0)).warnings;
        assert!(untapped.iter().all(|warning| !warning.contains("tap")), "{untapped:?}");
    }
}

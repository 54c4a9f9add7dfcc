//! Runs in which slices are not equal in time.

use iolens_model::run::Run;

use super::analyse;
use crate::analysis::{Analysis, Contrast, Verdict};
use crate::fixture::{self, MESSAGES};

fn contrast(analysis: &Analysis) -> &Contrast {
    let arm = analysis.cells[0].arms.iter().find(|arm| arm.arm.label == "arm");
    arm.and_then(|arm| arm.contrast.as_ref()).expect("a contrast")
}

/// A copy of the baseline whose slices are this share of the baseline's, in each of which
/// there are 20 µs besides the messages, as the fixture's calibration says.
fn of_unequal_slices(share: f64) -> Run {
    const OVERHEAD_NS: f64 = 20_000.0;
    let mut run = fixture::passes(&[1.0; 12]);
    for (pass, trial) in (1..).zip(&mut run.trials) {
        // Something for intervals to be about.
        let stray = [1.0, 1.002, 0.998][pass % 3];
        let arm = trial.arms.iter().position(|arm| arm.arm.label == "arm");
        for slice in &mut trial.slices {
            let (share, stray) = if Some(slice.arm) == arm { (share, stray) } else { (1.0, 1.0) };
            let messages = MESSAGES as f64 * share;
            let time_ns = messages * 500.0 * stray + OVERHEAD_NS;
            for counts in [Some(&mut slice.tx), slice.rx.as_mut()].into_iter().flatten() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small"
                )]
                let [messages, time_ns] = [messages, time_ns].map(|value| value as u64);
                (counts.messages, counts.calls) = (messages, Some(messages));
                (counts.bytes, counts.time_ns) = (messages * 1024, time_ns);
                counts.task_clock_ns = Some(time_ns / 10 * 9);
            }
            slice.all_active_ns = slice.tx.time_ns / 100 * 95;
        }
    }
    run
}

/// What a receipt does to slices of unequal length is no property of an arm.
#[test]
fn a_copy_of_the_baseline_with_short_slices_is_equivalent_or_flagged() {
    for share in [1.0, 0.7, 0.5, 0.25, 0.1] {
        let analysis = analyse(&of_unequal_slices(share));
        let contrast = contrast(&analysis);
        let note = analysis.cells[0].notes.iter().find(|note| note.starts_with("arm: slices"));
        println!("{share}: {:.4} {:?} {note:?}", contrast.ratio, contrast.verdict);
        let verdict = if share < 0.2 { Verdict::Unranked } else { Verdict::Equivalent };
        assert_eq!(contrast.verdict, verdict, "{share}: {}", contrast.reason);
        assert_eq!(note.is_some(), share < 0.6, "{share}: {note:?}");
    }
    // 20 µs / 5.02 ms − 20 µs / 0.52 ms.
    let analysis = analyse(&of_unequal_slices(0.1));
    let contrast = contrast(&analysis);
    assert_eq!(
        contrast.reason,
        "slices are not equal in time, 0.52 ms beside the baseline's 5.02 ms: up to 20.0 µs in \
         each that are no message's may shift the ratio by 3.4 %, more than half of δ = 3 %"
    );
}

/// Isolated arms are in trials of their own.
#[test]
fn slices_of_isolated_arms_are_held_against_the_baselines_own_trials() {
    let mut run = of_unequal_slices(0.1);
    run.header.plan.isolate = true;
    let shared = std::mem::take(&mut run.trials);
    for trial in shared {
        for index in 0..trial.arms.len() {
            let mut alone = trial.clone();
            alone.arms = vec![trial.arms[index].clone()];
            alone.slices.retain(|slice| slice.arm == index);
            alone.slices.iter_mut().for_each(|slice| slice.arm = 0);
            (alone.isolated, alone.position) = (true, u32::try_from(index).unwrap());
            run.trials.push(alone);
        }
    }
    let analysis = analyse(&run);
    let contrast = contrast(&analysis);
    assert_eq!(contrast.verdict, Verdict::Unranked, "{}", contrast.reason);
}

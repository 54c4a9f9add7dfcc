//! Runs in which slices are not equal in time.

use iolens_model::outcome::SliceOutcome;
use iolens_model::run::Run;
use iolens_model::units::Bytes;

use crate::analyse;
use crate::analysis::{Analysis, CrossoverShape};
use crate::estimate::Verdict;
use crate::fixture::{self, ArmTime, MESSAGES, alone, arm, contrast, time};
use crate::remark::RemarkKind;
use crate::remark::VerdictReason;

/// An arm beside the baseline: its label, how long its slices are beside the baseline's, and
/// how fast its messages are.
type Beside = (&'static str, f64, f64);

/// A run over sizes of `base`, its copy, and what is beside it at each size. In each slice there
/// are 20 µs besides the messages, as the fixture's calibration says.
fn of_sizes(sizes: &[(u64, &[Beside])]) -> Run {
    let mut labels = vec!["base"];
    labels.extend(sizes[0].1.iter().map(|(label, ..)| *label));
    let mut plan = fixture::plan(&labels);
    plan.sizes = sizes.iter().map(|(size, _)| Bytes(*size)).collect();
    let mut run = fixture::run(plan);
    run.header.calibration.as_mut().unwrap().memcpy_hot_bytes_per_s = 1e15;
    for pass in 1..=12 {
        for (cell, (_, beside)) in run.header.plan.cells().iter().zip(sizes) {
            let all = [("base", 1.0, 1.0), ("base (A/A)", 1.0, 1.0)];
            let all: Vec<Beside> = all.into_iter().chain(beside.iter().copied()).collect();
            let times: Vec<ArmTime> = all.iter().map(|(label, ..)| time(label, 500.0)).collect();
            let mut trial = fixture::trial(pass, cell, &times);
            for slice in &mut trial.slices {
                let (label, share, ratio) = all[slice.arm];
                // Something for intervals to be about.
                let is_base = label.starts_with("base");
                let stray = if is_base { 1.0 } else { [1.0, 1.002, 0.998][pass as usize % 3] };
                stretch(slice, cell.size, share, 500.0 / ratio * stray);
            }
            run.trials.push(trial);
        }
    }
    run
}

/// Makes a slice that share as long as usual, of messages that take so many ns.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
fn stretch(slice: &mut SliceOutcome, size: Bytes, share: f64, ns: f64) {
    const OVERHEAD_NS: f64 = 20_000.0;
    let messages = MESSAGES as f64 * share;
    let [messages, time_ns] = [messages, messages * ns + OVERHEAD_NS].map(|value| value as u64);
    for counts in [Some(&mut slice.tx), slice.rx.as_mut()].into_iter().flatten() {
        (counts.messages, counts.calls) = (messages, Some(messages));
        (counts.bytes, counts.time_ns) = (messages * size.0, time_ns);
        counts.task_clock_ns = Some(time_ns / 10 * 9);
    }
    slice.all_active_ns = slice.tx.time_ns / 100 * 95;
}

/// A copy of the baseline whose slices are this share of the baseline's.
fn of_unequal_slices(share: f64) -> Run {
    of_sizes(&[(1024, &[("arm", share, 1.0)])])
}

/// What a receipt does to slices of unequal length is no property of an arm.
#[test]
fn a_copy_of_the_baseline_with_short_slices_is_equivalent_or_flagged() {
    for share in [1.0, 0.7, 0.5, 0.25, 0.1] {
        let analysis = analyse(&of_unequal_slices(share));
        let contrast = contrast(&analysis, "arm");
        let note = analysis.cells[0].remarks.iter().find(|remark| {
            remark.arm.as_deref() == Some("arm")
                && matches!(remark.kind, RemarkKind::UnequalSlices(_))
        });
        println!("{share}: {:.4} {:?} {note:?}", contrast.ratio, contrast.verdict);
        let verdict = if share < 0.2 { Verdict::Unranked } else { Verdict::Equivalent };
        assert_eq!(contrast.verdict, verdict, "{share}: {:?}", contrast.reason);
        assert_eq!(note.is_some(), share < 0.6, "{share}: {note:?}");
    }
    // 20 µs / 5.02 ms − 20 µs / 0.52 ms.
    let analysis = analyse(&of_unequal_slices(0.1));
    let contrast = contrast(&analysis, "arm");
    let VerdictReason::UnequalSlices { slices, delta } = contrast.reason else {
        panic!("{:?}", contrast.reason)
    };
    assert_eq!((slices.arm_ns, slices.baseline_ns), (520_000.0, 5_020_000.0));
    assert_eq!((slices.overhead_ns, delta), (20_000.0, 0.03));
    assert!((slices.bias - 0.0345).abs() < 1e-4, "{slices:?}");
}

/// Isolated arms are in trials of their own.
#[test]
fn slices_of_isolated_arms_are_held_against_the_baselines_own_trials() {
    let mut run = of_unequal_slices(0.1);
    run.header.plan.isolate = true;
    run.trials = run.trials.iter().flat_map(alone).collect();
    let analysis = analyse(&run);
    let contrast = contrast(&analysis, "arm");
    assert_eq!(contrast.verdict, Verdict::Unranked, "{:?}", contrast.reason);
}

/// Shared trials, and isolated ones beside them, have slices of their own.
#[test]
fn each_contrast_is_held_against_the_slices_of_its_own_trials() {
    let verdicts = |shared: f64, isolated: f64| {
        let mut run = of_unequal_slices(shared);
        run.trials.extend(of_unequal_slices(isolated).trials.iter().flat_map(alone));
        let analysis = analyse(&run);
        let arm = arm(&analysis, "arm");
        [&arm.contrast, &arm.isolated].map(|found| found.as_ref().unwrap().verdict)
    };
    assert_eq!(verdicts(1.0, 0.1), [Verdict::Equivalent, Verdict::Unranked]);
    assert_eq!(verdicts(0.1, 1.0), [Verdict::Unranked, Verdict::Equivalent]);
}

/// With short slices a copy of the baseline is at 0.967, beyond δ.
#[test]
fn no_crossover_rests_on_slices_of_unequal_length() {
    let short: &[Beside] = &[("arm", 0.1, 1.0)];
    let analysis = analyse(&of_sizes(&[(1024, short), (4096, short)]));
    assert_eq!(analysis.crossovers, [], "ahead at both sizes");
    // Behind at the small sizes, and ahead at the large one if its slices were believed.
    let (behind, ahead): (&[Beside], &[Beside]) = (&[("arm", 1.0, 0.9)], &[("arm", 0.1, 1.2)]);
    let analysis = analyse(&of_sizes(&[(1024, behind), (4096, behind), (65536, ahead)]));
    let [crossover] = &analysis.crossovers[..] else { panic!("{:?}", analysis.crossovers) };
    assert_eq!(crossover.shape, CrossoverShape::FirstThroughout);
    assert_eq!((crossover.largest, crossover.band()), (Bytes(4096), None));
}

#[test]
fn two_arms_of_which_one_has_slices_of_another_length_have_no_crossover() {
    let at = |share| [("send_staged", 1.0, 1.1), ("sendmsg_iov", share, 0.9)];
    let pairs = |share: f64| {
        let analysis = analyse(&of_sizes(&[(1024, &at(share)), (4096, &at(share))]));
        let both = |first: &str, second: &str| first != "base" && second != "base";
        analysis.crossovers.iter().filter(|c| both(&c.first, &c.second)).count()
    };
    assert_eq!([pairs(1.0), pairs(0.1)], [1, 0]);
}

/// An arm that carries as much at every size, the most of all, and more than a `memcpy` less
/// than another.
#[test]
fn nothing_that_is_best_or_levels_off_rests_on_slices_of_unequal_length() {
    let analysis = |share: f64| {
        let sizes = [1024, 4096, 16384, 65536];
        let arms = sizes.map(|size| {
            let ratio = 1024.0 / size as f64;
            let arm = |label, times: f64, share| (label, times * ratio * share, times * ratio);
            [arm("send_staged", 2.0, 1.0), arm("sendmsg_iov", 3.0, share), arm("memcpy", 2.5, 1.0)]
        });
        let sizes: Vec<(u64, &[Beside])> =
            sizes.into_iter().zip(&arms).map(|(size, arms)| (size, &arms[..])).collect();
        analyse(&of_sizes(&sizes))
    };
    let (equal, short) = (analysis(1.0), analysis(0.05));
    let best = |analysis: &Analysis| analysis.extremes.iter().any(|e| e.label == "sendmsg_iov");
    assert_eq!([best(&equal), best(&short)], [true, false]);
    let levels =
        |analysis: &Analysis| analysis.plateaus.iter().filter(|p| p.label == "sendmsg_iov").count();
    assert!(levels(&equal) > 0 && levels(&short) == 0, "{} {}", levels(&equal), levels(&short));
    assert_eq!([equal.removed_copies.len(), short.removed_copies.len()], [4, 0]);
}

//! Whole runs with known answers.

use iolens_model::arm::Role;
use iolens_model::axes::Counting;
use iolens_model::cell::Cell;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::Schedule;
use iolens_model::reading::NotMeasured;
use iolens_model::run::{Run, RunEnd, StoppedBy};
use iolens_model::trial::SliceKind;
use iolens_model::units::{Bytes, Nanos};

use crate::analyse;
use crate::analysis::Analysis;
use crate::estimate::Verdict;
use crate::fixture::{self, MESSAGES, arm, contrast, rounds, run_of, slices_of, time};
use crate::remark::VerdictReason;
use crate::remark::{Circumstance, Event, Remark, RemarkKind, Warning, Whose};
use crate::{Check, Decision, PassSummary, decide, unmet};

/// The ratio of `arm` in the first cell.
fn ratio(analysis: &Analysis) -> f64 {
    contrast(analysis, "arm").ratio
}

pub(super) fn near(value: f64, expect: f64) {
    assert!((value / expect - 1.0).abs() < 1e-6, "{value}, expected {expect}");
}

pub(super) fn cell_of(run: &Run) -> Cell {
    run.header.plan.cells().remove(0)
}

fn mark(trial: &mut TrialOutcome, label: &str, status: Status, reason: &str) {
    let arm = trial.arms.iter_mut().find(|arm| arm.arm.label == label).expect("an arm");
    (arm.status, arm.reason) = (status, Some(reason.to_owned()));
}

fn fail(trial: &mut TrialOutcome, label: &str) {
    mark(trial, label, Status::Failed, "killed by signal 9");
    (trial.status, trial.reason) = (Status::Failed, Some(format!("{label} died")));
}

/// Makes the check of received bytes refuse an arm.
pub(super) fn spoil(trial: &mut TrialOutcome, label: &str) {
    let index = trial.arms.iter().position(|arm| arm.arm.label == label).expect("an arm");
    for slice in trial.slices.iter_mut().filter(|slice| slice.arm == index) {
        slice.rx.as_mut().expect("a receiver").bytes -= 1;
    }
}

#[test]
fn an_arm_that_takes_less_time_has_a_ratio_above_one() {
    let analysis = analyse(&fixture::passes(&[1.25; 12]));
    assert_eq!((analysis.passes, analysis.contrasts), (12, 2));
    near(ratio(&analysis), 1.25);
    let own = contrast(&analysis, "arm");
    assert_eq!((own.n, own.verdict), (12, Verdict::Faster));
    near(own.total_ratio.value, 1.25);
    assert!(!own.tail);
    let check = contrast(&analysis, "base (A/A)");
    assert_eq!(check.verdict, Verdict::Equivalent);
    assert_eq!((analysis.self_check.checks, analysis.self_check.excluding_one), (1, 0));
    assert_eq!(arm(&analysis, "base").verdict(), None);
    assert_eq!(analysis.rejected, []);
    assert_eq!(analysis.warnings, []);
}

/// By hand: 500 ns for 1 KiB, one call, four switches in a slice of 10 000.
#[test]
fn figures_are_totals_over_totals() {
    let analysis = analyse(&fixture::passes(&[1.0; 3]));
    let figures = arm(&analysis, "base").figures.as_ref().expect("figures");
    near(figures.ns_per_message.value, 500.0);
    near(figures.ns_per_byte.unwrap().value, 500.0 / 1024.0);
    near(figures.goodput_bits_per_s.expect("goodput").value, 1024.0 * 8.0 / 500e-9);
    near(figures.tx_cpu_ns_per_byte.expect("CPU").value, 450.0 / 1024.0);
    near(figures.rx_cpu_ns_per_byte.expect("CPU").value, 450.0 / 1024.0);
    assert_eq!(figures.tx_calls_per_message.map(|calls| calls.value), Some(1.0));
    near(figures.context_switches_per_message.expect("switches").value, 4.0 / MESSAGES as f64);
    assert_eq!(figures.trial_values.len(), 3);
    let interval = figures.ns_per_message.interval.expect("an interval");
    near(interval.low, 500.0);
}

#[test]
fn unmeasured_parts_make_null_figures() {
    let mut run = fixture::passes(&[1.0; 3]);
    for slice in &mut run.trials[1].slices {
        slice.tx.task_clock_ns = None;
        slice.rx = None;
    }
    let analysis = analyse(&run);
    let figures = arm(&analysis, "base").figures.as_ref().expect("figures");
    assert_eq!(figures.tx_cpu_ns_per_byte, None);
    assert_eq!(figures.goodput_bits_per_s, None);
    assert_eq!(figures.ns_per_message.n, 3);
}

#[test]
fn a_single_primitive_has_figures_and_no_contrast() {
    let analysis = analyse(&fixture::one_arm_trial(|_| {}));
    assert_eq!((analysis.passes, analysis.contrasts), (1, 0));
    let base = arm(&analysis, "base");
    assert!(base.figures.is_some() && base.contrast.is_none() && base.status == Status::Ok);
    assert_eq!(analysis.self_check.checks, 0);
}

#[test]
fn a_control_has_figures_and_no_contrast() {
    let analysis = analyse(&run_of(fixture::plan(&["memcpy", "base", "arm"]), 1, |_, _, _| {
        [time("base", 500.0), time("arm", 500.0), time("memcpy", 400.0)]
    }));
    assert_eq!(analysis.contrasts, 1);
    let labels: Vec<&str> =
        analysis.cells[0].arms.iter().map(|arm| arm.arm.label.as_str()).collect();
    assert_eq!(labels, ["base", "arm", "memcpy"]);
    let control = arm(&analysis, "memcpy");
    assert!(control.figures.is_some() && control.contrast.is_none());
    assert_eq!(control.verdict(), None);
}

#[test]
fn one_trial_has_no_interval() {
    let mut run = fixture::passes(&[1.25]);
    run.header.plan.schedule = Schedule::Window { window: Nanos::SECOND };
    // One after another: no two arms share a round.
    for slice in &mut run.trials[0].slices {
        slice.round += 10 * u32::try_from(slice.arm).unwrap();
    }
    let analysis = analyse(&run);
    let contrast = contrast(&analysis, "arm");
    near(contrast.ratio, 1.25);
    assert_eq!(contrast.verdict, Verdict::Inconclusive);
    assert_eq!(contrast.reason, VerdictReason::NoSpread { trials: 1 });
    assert_eq!(contrast.pointwise, None);
}

#[test]
fn the_median_round_is_typical_and_the_total_shows_the_tail() {
    let analysis = analyse(&run_of(fixture::plan(&["base", "arm"]), 6, |pass, _, _| {
        let jitter = [0.0, 0.3, -0.2, 0.1, -0.3, 0.2][pass as usize - 1];
        let slow = [500.0 + jitter, 500.0, 500.0 - jitter, 1500.0 + 40.0 * jitter];
        [time("base", 500.0), rounds("arm", &slow)]
    }));
    let contrast = contrast(&analysis, "arm");
    assert!((contrast.ratio - 1.0).abs() < 1e-3);
    assert!((contrast.total_ratio.value - 2000.0 / 3000.0).abs() < 2e-3);
    assert!(contrast.tail);
}

#[test]
fn discarded_rounds_and_calibration_are_not_used() {
    let mut run = fixture::passes(&[1.25; 3]);
    for slice in run.trials[0].slices.iter_mut().filter(|slice| slice.round == 0) {
        slice.kind = SliceKind::Discarded;
        slice.tx.time_ns *= 1 + u64::from(slice.arm == 1) * 100;
    }
    let mut calibration = run.trials[0].clone();
    calibration.pass = 0;
    run.trials.insert(0, calibration);
    let analysis = analyse(&run);
    near(ratio(&analysis), 1.25);
    assert_eq!((analysis.passes, analysis.cells[0].trials_started), (3, 3));
}

/// Two cells; the second is missing in the last pass.
fn two_cells(passes: u32) -> Run {
    let plan = fixture::sized(&["base", "arm"], &[1024, 4096]);
    let mut run = run_of(plan, passes, |_, _, _| [time("base", 500.0), time("arm", 400.0)]);
    run.trials.pop();
    run
}

#[test]
fn an_incomplete_last_pass_is_not_used() {
    let analysis = analyse(&two_cells(3));
    assert_eq!(analysis.passes, 2);
    assert_eq!(analysis.cells[0].trials_used, 2);
    assert_eq!(analysis.cells[0].trials_started, 3);
    let cut = matches!(analysis.warnings[0], Warning::IncompletePass { pass: 3, .. });
    assert!(cut, "{:?}", analysis.warnings);
    // The first pass too, when nothing else is known of the second cell.
    assert_eq!(analyse(&two_cells(1)).passes, 0);
}

#[test]
fn a_pass_that_a_rule_ended_is_complete() {
    let mut run = two_cells(3);
    let end = |stopped_by| {
        Some(RunEnd { finished_unix_ns: 0, stopped_by, unmet: Vec::new(), paused_ns: 0 })
    };
    run.header.end = end(StoppedBy::Interrupted);
    assert_eq!(analyse(&run).passes, 2);
    run.header.end = end(StoppedBy::Precision);
    assert_eq!(analyse(&run).passes, 3);
}

#[test]
fn a_pass_that_was_cut_short_before_a_resume_is_not_used() {
    let mut run = two_cells(2);
    let mut resumed = two_cells(3).trials.split_off(2);
    resumed.iter_mut().for_each(|trial| trial.pass += 1);
    resumed.push(TrialOutcome { cell: run.header.plan.cells().remove(1), ..resumed[2].clone() });
    run.trials.extend(resumed);
    let analysis = analyse(&run);
    assert_eq!(analysis.passes, 3, "{:?}", analysis.warnings);
    let cut = matches!(analysis.warnings[0], Warning::IncompletePass { pass: 2, .. });
    assert!(cut, "{:?}", analysis.warnings);
}

#[test]
fn a_cell_that_failed_for_good_leaves_passes_complete() {
    let mut run = two_cells(3);
    for trial in run.trials.iter_mut().filter(|trial| trial.cell.size.0 == 4096) {
        fail(trial, "base");
    }
    let analysis = analyse(&run);
    assert_eq!(analysis.passes, 3);
    let gone = analysis.cells[1].arm("arm").unwrap();
    assert_eq!((gone.status, gone.verdict()), (Status::Failed, Some(Verdict::Invalid)));
    assert_eq!(gone.reason.as_deref(), Some("base died"));
    assert_eq!(arm(&analysis, "arm").status, Status::Ok);
}

#[test]
fn an_interrupted_trial_does_not_complete_its_pass() {
    let mut run = fixture::passes(&[1.25; 3]);
    run.trials[2].status = Status::Interrupted;
    let analysis = analyse(&run);
    assert_eq!(analysis.passes, 2);
    assert_eq!(analysis.rejected[0].status, Status::Interrupted);
}

#[test]
fn the_later_valid_trial_of_a_pass_is_used() {
    let mut run = fixture::passes(&[1.25; 3]);
    let mut first = fixture::passes(&[2.0]).trials.remove(0);
    first.pass = 2;
    spoil(&mut first, "arm");
    run.trials.insert(1, first);
    let analysis = analyse(&run);
    near(ratio(&analysis), 1.25);
    assert_eq!(arm(&analysis, "base").figures.as_ref().expect("figures").ns_per_message.n, 3);
    assert_eq!((analysis.cells[0].trials_used, analysis.cells[0].trials_started), (3, 4));
    assert_eq!(analysis.rejected.len(), 1);
    let rejected = &analysis.rejected[0];
    assert_eq!((rejected.pass, rejected.arm.as_deref()), (2, Some("arm")));
    assert_eq!(rejected.check, Some(Check::ReceivedBytes));
    assert!(rejected.reason.starts_with("received bytes: "), "{}", rejected.reason);
    assert!(rejected.reason.ends_with("the trial was run again in the same pass"));
}

#[test]
fn a_repetition_that_fails_leaves_what_the_first_trial_had() {
    let mut run = fixture::passes(&[1.25; 3]);
    let mut again = run.trials[2].clone();
    spoil(&mut run.trials[2], "base (A/A)");
    fail(&mut again, "base (A/A)");
    run.trials.push(again);
    let analysis = analyse(&run);
    assert_eq!(contrast(&analysis, "arm").n, 3);
    assert_eq!(contrast(&analysis, "base (A/A)").n, 2);
}

#[test]
fn a_gate_takes_one_arm_and_the_baseline_takes_all() {
    let mut run = fixture::passes(&[1.25; 4]);
    spoil(&mut run.trials[0], "arm");
    spoil(&mut run.trials[1], "base");
    let analysis = analyse(&run);
    let n = |label| contrast(&analysis, label).n;
    assert_eq!((n("arm"), n("base (A/A)")), (2, 3));
    assert_eq!(analysis.rejected[1].arm, None);
    assert!(analysis.rejected[1].reason.starts_with("baseline base: received bytes"));
    let remarks = &analysis.cells[0].remarks;
    let is_it = |remark: &Remark| matches!(remark.kind, RemarkKind::NotUsed { passes: 2, .. });
    assert!(remarks.iter().any(is_it), "{remarks:?}");
    assert_eq!(crate::invalid_arms(&run.header, &run.trials[0]).len(), 1);
    assert_eq!(crate::invalid_arms(&run.header, &run.trials[0])[0].0, 1);
    assert_eq!(crate::invalid_arms(&run.header, &run.trials[2]), []);
}

#[test]
fn what_the_runner_marked_stays_out_and_the_rest_of_the_trial_is_used() {
    let mut run = fixture::passes(&[1.25; 3]);
    mark(&mut run.trials[0], "arm", Status::Invalid, "refused");
    run.trials[0].status = Status::Invalid;
    let analysis = analyse(&run);
    let n = |label| contrast(&analysis, label).n;
    assert_eq!((n("arm"), n("base (A/A)")), (2, 3));
    // Without an arm to blame, the whole trial is out.
    mark(&mut run.trials[0], "arm", Status::Ok, "");
    assert_eq!(analyse(&run).cells[0].trials_used, 2);
}

#[test]
fn an_arm_refused_in_most_passes_is_invalid() {
    let mut run = fixture::passes(&[1.25; 5]);
    for trial in &mut run.trials[..3] {
        spoil(trial, "arm");
    }
    let analysis = analyse(&run);
    let spoilt = arm(&analysis, "arm");
    assert_eq!((spoilt.status, spoilt.verdict()), (Status::Invalid, Some(Verdict::Invalid)));
    let reason = spoilt.reason.as_deref().expect("a reason");
    assert!(reason.starts_with("3 of 5 passes cannot be used: received bytes"), "{reason}");
}

#[test]
fn an_arm_that_failed_twice_and_was_dropped_is_failed() {
    let mut run = fixture::passes(&[1.25; 5]);
    fail(&mut run.trials[2], "arm");
    let mut again = run.trials[2].clone();
    again.position = 1;
    for trial in &mut run.trials[3..] {
        trial.arms.remove(1);
        trial.slices.retain(|slice| slice.arm != 1);
        trial.slices.iter_mut().filter(|slice| slice.arm == 2).for_each(|slice| slice.arm = 1);
    }
    run.trials.insert(3, again);
    let analysis = analyse(&run);
    assert_eq!(analysis.passes, 5);
    let dropped = arm(&analysis, "arm");
    assert_eq!((dropped.status, dropped.verdict()), (Status::Failed, Some(Verdict::Invalid)));
    let reason = dropped.reason.as_deref().expect("a reason");
    assert!(reason.starts_with("dropped after 2 failed trials: killed by signal 9"), "{reason}");
    assert_eq!(contrast(&analysis, "base (A/A)").n, 4);
}

/// Isolated trials of each arm in each pass, ratio 2, on top of `run`.
pub(super) fn isolate(run: &mut Run, passes: u32) {
    let cell = cell_of(run);
    for pass in 1..=passes {
        let ns = 500.0 + f64::from(pass);
        let both = fixture::trial(pass, &cell, &[time("base", ns), time("arm", ns / 2.0)]);
        run.trials.extend(fixture::alone(&both));
    }
}

#[test]
fn a_cell_measured_both_ways_has_both_ratios_and_says_that_they_differ() {
    let mut run = fixture::passes(&[1.25, 1.26, 1.24]);
    isolate(&mut run, 2);
    let analysis = analyse(&run);
    assert_eq!(analysis.passes, 3);
    let both = arm(&analysis, "arm");
    assert!((both.contrast.as_ref().expect("shared").ratio - 1.25).abs() < 1e-3);
    let isolated = both.isolated.as_ref().expect("isolated");
    near(isolated.ratio, 2.0);
    assert_eq!(isolated.n, 2);
    let remarks = &analysis.cells[0].remarks;
    let is_it = |remark: &Remark| matches!(remark.kind, RemarkKind::SharingMatters { .. });
    assert!(remarks.iter().any(is_it), "{remarks:?}");
}

#[test]
fn an_arm_that_runs_isolated_only_keeps_its_isolated_verdict() {
    let mut run = fixture::passes(&[1.25; 6]);
    isolate(&mut run, 6);
    for trial in run.trials.iter_mut().filter(|trial| !trial.isolated) {
        mark(trial, "arm", Status::Skipped, "its poller does not sleep");
    }
    let analysis = analyse(&run);
    let alone = arm(&analysis, "arm");
    assert_eq!((alone.status, alone.verdict()), (Status::Skipped, Some(Verdict::Invalid)));
    assert_eq!(alone.isolated.as_ref().expect("isolated").verdict, Verdict::Faster);
}

#[test]
fn in_an_isolated_plan_the_isolated_contrast_is_the_contrast() {
    let mut run = fixture::run(fixture::plan(&["base", "arm"]));
    run.header.plan.isolate = true;
    isolate(&mut run, 3);
    let analysis = analyse(&run);
    assert_eq!((analysis.passes, analysis.cells[0].trials_used), (3, 6));
    near(ratio(&analysis), 2.0);
    assert_eq!(arm(&analysis, "arm").isolated, None);
    // A pass without its baseline has no pair.
    fail(&mut run.trials[2], "base");
    let contrast = arm(&analyse(&run), "arm").contrast.clone().expect("a contrast");
    assert_eq!(contrast.n, 2);
}

#[test]
fn contrasts_count_cells_that_never_ran() {
    let mut run = fixture::passes(&[1.25; 2]);
    run.header.plan.sizes = vec![Bytes(1024), Bytes(4096), Bytes(16384)];
    let analysis = analyse(&run);
    assert_eq!(analysis.contrasts, 6);
    assert_eq!(analysis.cells.len(), 3);
    let never = analysis.cells[2].arm("arm").unwrap();
    assert_eq!(never.status, Status::Skipped);
    assert_eq!(never.reason.as_deref(), Some("no trial of this arm was started"));
    assert_eq!(analysis.cells[2].arm("base (A/A)").unwrap().arm.role, Role::SelfCheck);
}

#[test]
fn a_cell_whose_calibration_failed_says_so() {
    let mut run = two_cells(3);
    let failed = run.header.plan.cells().remove(1);
    run.trials.retain(|trial| trial.cell != failed);
    let mut calibration = fixture::trial(0, &failed, &[time("base", 500.0), time("arm", 400.0)]);
    fail(&mut calibration, "arm");
    run.trials.insert(0, calibration);
    let analysis = analyse(&run);
    assert_eq!((analysis.passes, analysis.cells[1].trials_started), (3, 0));
    assert_eq!(analysis.cells[1].arm("arm").unwrap().reason.as_deref(), Some("killed by signal 9"));
    assert_eq!(analysis.cells[1].arm("base").unwrap().reason.as_deref(), Some("arm died"));
    assert_eq!(analysis.rejected, []);
}

#[test]
fn a_self_check_that_differs_flags_its_cell_and_the_run() {
    let mut run = fixture::passes(&[1.25; 12]);
    for slice in slices_of(&mut run, 2) {
        slice.tx.time_ns = slice.tx.time_ns / 10 * 11;
    }
    let analysis = analyse(&run);
    assert_eq!((analysis.self_check.excluding_one, analysis.self_check.judged), (1, 1));
    let check = contrast(&analysis, "base (A/A)");
    assert_eq!(check.verdict, Verdict::Invalid);
    let remark = &analysis.cells[0].remarks[0];
    assert!(matches!(remark.kind, RemarkKind::SelfCheckOff { .. }), "{remark:?}");
    assert!(analysis.warnings.contains(&Warning::SelfChecksDiffer { judged: 1, counted: 1 }));
    // It invalidates nothing.
    assert_eq!(arm(&analysis, "arm").verdict(), Some(Verdict::Faster));
    let says_why = |run: &Run| analyse(run).warnings.contains(&Warning::CountersClosed);
    assert!(!says_why(&run));
    run.header.plan.probes.counting = Counting::Alternate;
    assert!(says_why(&run), "where its counters were closed it is none");
}

/// Intervals over fewer trials cover less often than they say.
#[test]
fn a_self_check_of_fewer_than_five_passes_heads_nothing() {
    let checks = |passes: usize| {
        let mut run = fixture::passes(&vec![1.25; passes]);
        for slice in slices_of(&mut run, 2) {
            slice.tx.time_ns = slice.tx.time_ns / 10 * 11;
        }
        analyse(&run).self_check
    };
    let (four, five) = (checks(4), checks(5));
    assert_eq!((four.checks, four.counted, four.judged, four.untrustworthy()), (1, 0, 0, false));
    assert_eq!((five.checks, five.counted, five.judged), (1, 1, 1));
}

#[test]
fn flags_are_summed_and_reasons_for_nulls_said_once() {
    let mut run = fixture::passes(&[1.25; 3]);
    for trial in &mut run.trials[1..] {
        trial.slices[1].tx.retransmits = Some(7);
        trial.slices[1].tx.migrations = None;
        let missing = NotMeasured { metric: "migrations".into(), why: "no sched file".into() };
        trial.tx.as_mut().expect("an end").not_measured.push(missing);
    }
    let analysis = analyse(&run);
    let what = Event::Retransmits;
    let kind = RemarkKind::Events { what, count: 14, lasted_ns: None, trials: 2, of: 3 };
    assert_eq!(analysis.cells[0].remarks, [Remark::of("arm", kind)]);
    let expect = Warning::Circumstance(Circumstance::MigrationsNotMeasured {
        whose: Some(Whose::SendingEnd),
        reason: Some("no sched file".to_owned()),
    });
    assert_eq!(analysis.warnings.iter().filter(|warning| **warning == expect).count(), 1);
}

#[test]
fn cells_outside_the_plan_are_named_and_not_used() {
    let mut run = fixture::passes(&[1.25; 2]);
    run.header.plan.sizes = vec![Bytes(77)];
    let analysis = analyse(&run);
    assert!(analysis.warnings.contains(&Warning::OutsideThePlan { trials: 2 }));
    assert_eq!(arm(&analysis, "arm").figures, None);
}

#[test]
fn an_empty_run_has_cells_without_numbers() {
    let analysis = analyse(&fixture::run(fixture::plan(&["base", "arm"])));
    assert_eq!((analysis.passes, analysis.cells.len()), (0, 1));
    assert_eq!(arm(&analysis, "arm").verdict(), Some(Verdict::Invalid));
}

/// ln(c/b) over the trials is ln 2 ± 0.01: mean ln 2, sd 0.01, n = 3; the
/// baseline's own moods cancel.
#[test]
fn two_compared_arms_are_paired_by_trial() {
    let analysis = analyse(&run_of(fixture::plan(&["base", "b", "c"]), 3, |pass, _, _| {
        let (mood, shift) = (f64::from(pass), [0.99, 1.0, 1.01][pass as usize - 1]);
        [time("base", 1000.0 * mood), time("b", 500.0), time("c", 1000.0 * shift)]
    }));
    let [pair] = &analysis.cells[0].pairs[..] else { panic!("one pair") };
    assert_eq!((pair.first.as_str(), pair.second.as_str(), pair.n), ("b", "c", 3));
    near(pair.ratio, 2.0 * (0.99f64 * 1.01).cbrt());
    let of_first = pair.interval_of("b").expect("an interval");
    let of_second = pair.interval_of("c").expect("an interval");
    assert!(of_first.low > 1.0 && of_first.contains(2.0));
    near(of_second.low * of_first.high, 1.0);
}

/// An arm that cannot run in one of two cells, as every trial says or only
/// the calibration.
fn with_a_skipped_arm(in_every_trial: bool) -> Run {
    let mut run = two_cells(12);
    run.trials.push(fixture::trial(
        12,
        &run.header.plan.cells()[1],
        &[time("base", 500.0), time("arm", 400.0)],
    ));
    let reason = "message needs 16 MiB of locked memory, RLIMIT_MEMLOCK is 8 MiB";
    for trial in run.trials.iter_mut().filter(|trial| trial.cell.size.0 == 4096) {
        mark(trial, "arm", Status::Skipped, reason);
        trial.slices.retain(|slice| slice.arm == 0);
    }
    if !in_every_trial {
        let skipped = |trial: &&TrialOutcome| trial.arms[1].status == Status::Skipped;
        let mut calibration = run.trials.iter().find(skipped).expect("a trial").clone();
        calibration.pass = 0;
        for trial in run.trials.iter_mut().filter(|trial| trial.cell.size.0 == 4096) {
            trial.arms.truncate(1);
        }
        run.trials.insert(0, calibration);
    }
    run
}

#[test]
fn a_skipped_arm_has_its_reason_and_holds_up_nobody() {
    for in_every_trial in [true, false] {
        let run = with_a_skipped_arm(in_every_trial);
        let analysis = analyse(&run);
        assert_eq!(analysis.passes, 12, "{:?}", analysis.warnings);
        let skipped = analysis.cells[1].arm("arm").unwrap();
        assert_eq!((skipped.status, skipped.verdict()), (Status::Skipped, Some(Verdict::Invalid)));
        assert!(skipped.reason.as_ref().is_some_and(|why| why.contains("16 MiB of locked memory")));
        assert_eq!(analysis.cells[1].arm("base").unwrap().status, Status::Ok);
        assert_eq!(arm(&analysis, "arm").verdict(), Some(Verdict::Faster));
        assert_eq!(analysis.rejected.len(), usize::from(in_every_trial));
        // Nothing is missing for it: the run is precise, and J counts it all the same.
        assert_eq!((analysis.contrasts, unmet(&analysis, &run.header.plan).len()), (2, 0));
        let summaries: Vec<PassSummary> = [11, 12].map(|n| summary(&run, n)).to_vec();
        let decision = decide(&summaries, &run.header.plan);
        assert_eq!(decision, Decision::Stop(StoppedBy::Precision));
    }
}

/// What stopping knows after a number of passes.
fn summary(run: &Run, passes: u32) -> PassSummary {
    let mut until = run.clone();
    until.trials.retain(|trial| trial.pass <= passes);
    PassSummary::of(&analyse(&until))
}

//! Servers of two groups in one cell, whose trials met another machine: what is said, what is in
//! the table, and what the ratios are.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};
use iolens_stats::reason::{Unusable, VerdictReason};

use super::tests::run;
use super::{Kinds, by_cost, is_open};
use crate::answers;

/// The machine is slower by a fifth in the trials of the second group, in which `prefork` takes
/// 0.95 of the baseline's CPU time.
fn on_two_machines() -> (Run, Analysis) {
    let (mut run, _) = run();
    for trial in run.trials.iter_mut().filter(|trial| trial.pass > 0) {
        let machine = if trial.position == 0 { 1.0 / 1.2 } else { 1.0 };
        let arms: Vec<String> = trial.arms.iter().map(|arm| arm.arm.primitive.clone()).collect();
        for slice in &mut trial.slices {
            let own = if arms[slice.arm] == "prefork" { 9_500.0 / 20_000.0 } else { 1.0 };
            let cpu = slice.tx.task_clock_ns.as_mut().expect("it is counted");
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let found = (*cpu as f64 * machine * own) as u64;
            *cpu = found;
        }
    }
    let analysis = iolens_stats::analyse(&run);
    (run, analysis)
}

fn closed(analysis: &Analysis) -> &CellAnalysis {
    analysis.cells.iter().find(|cell| !is_open(cell)).expect("a closed loop")
}

fn cost_ratio(cell: &CellAnalysis, label: &str) -> f64 {
    let arm = cell.arms.iter().find(|arm| arm.arm.label == label).expect("an arm");
    let ratio = |arm: &ArmAnalysis| arm.cpu_contrast.as_ref().expect("compared").ratio;
    if arm.arm.role == Role::Baseline { 1.0 } else { ratio(arm) }
}

#[test]
fn the_table_has_the_order_of_its_ratios() {
    let (run, analysis) = on_two_machines();
    let cell = closed(&analysis);
    let table = by_cost(&run, &Kinds::of(&analysis), cell, usize::MAX);
    let with_numbers = cell.arms.iter().filter(|arm| arm.status == Status::Ok).count();
    let labels: Vec<&str> =
        table.rows.iter().take(with_numbers).map(|row| row.entries[0].text.as_str()).collect();
    let labels: Vec<&str> = labels.into_iter().filter(|label| *label != "A/A copy").collect();
    assert_eq!(labels, ["uring", "prefork", "epoll_lt", "poll"]);
    let ratios: Vec<f64> = labels.iter().map(|label| cost_ratio(cell, label)).collect();
    assert!(ratios.is_sorted_by(|a, b| a >= b), "{labels:?} {ratios:?}");
    // What is printed is the baseline's time over the ratio.
    let printed = |label: &str| -> f64 {
        let row = table.rows.iter().find(|row| row.entries[0].text == label).expect("a row");
        row.entries[2].text.split(' ').next().expect("a number").parse().expect("a number")
    };
    let expected = printed("epoll_lt") / cost_ratio(cell, "prefork");
    assert!(
        (printed("prefork") / expected - 1.0).abs() < 0.01,
        "{} {expected}",
        printed("prefork")
    );
}

#[test]
fn the_trials_of_a_sentence_are_those_of_its_comparison() {
    let (run, analysis) = on_two_machines();
    let cell = closed(&analysis);
    assert_eq!(cell.trials_used, 2 * analysis.passes);
    let text: String = answers::sentences(&run, &analysis).iter().map(|s| s.text.clone()).collect();
    assert!(text.contains(&format!("; n = {}", analysis.passes)), "{text}");
    assert!(!text.contains(&format!("n = {}", cell.trials_used)), "{text}");
    assert!(!text.contains(&format!("{} trials per cell", cell.trials_used)), "{text}");
}

/// Gives `label` in the first closed loop this cost, and its copy of the baseline.
fn with_cost(label: &str, change: impl Fn(&mut Contrast)) -> (Run, Analysis) {
    let (run, mut analysis) = run();
    let at = analysis.cells.iter().position(|cell| !is_open(cell)).expect("a closed loop");
    let arms = &mut analysis.cells[at].arms;
    let arm = arms.iter_mut().find(|arm| arm.arm.label == label).expect("an arm");
    change(arm.cpu_contrast.as_mut().expect("compared"));
    (run, analysis)
}

/// Of ten equal models the best one's own interval excludes 1 far more often than one in twenty
/// times: the one that keeps it from being separated is said too.
#[test]
fn the_best_of_many_has_the_interval_that_decides() {
    let (run, analysis) = with_cost("uring", |contrast| {
        contrast.ratio = 1.06;
        contrast.pointwise = Some(Interval { low: 1.02, high: 1.10 });
        contrast.simultaneous = Some(Interval { low: 0.99, high: 1.12 });
        contrast.verdict = Verdict::Inconclusive;
    });
    let sentences = answers::sentences(&run, &analysis);
    let found = sentences.iter().find(|s| s.text.contains("least server CPU")).expect("a claim");
    assert!(found.text.contains("uring"), "{}", found.text);
    let both = "95 % interval 1.02–1.10 by itself, 0.99–1.12 together with all others";
    assert!(found.text.contains(both), "{}", found.text);
}

/// A copy that differs by the rate is no remark on the column of the CPU time.
#[test]
fn a_footnote_is_of_the_quantity_of_its_column() {
    let invalid = |contrast: &mut Contrast, reason: &str| {
        let (status, reason) = (Status::Invalid, reason.to_owned());
        let unusable = Unusable { status, check: None, reason };
        contrast.verdict = Verdict::Invalid;
        contrast.reason = VerdictReason::Unusable(unusable);
    };
    let (run, mut analysis) = with_cost("epoll_lt (A/A)", |contrast| invalid(contrast, "by CPU"));
    let table = |analysis: &Analysis| {
        by_cost(&run, &Kinds::of(analysis), closed(analysis), usize::MAX).text(200)
    };
    assert!(table(&analysis).contains("INVALID: by CPU"), "{}", table(&analysis));
    let at = analysis.cells.iter().position(|cell| !is_open(cell)).expect("a closed loop");
    let arms = &mut analysis.cells[at].arms;
    let copy = arms.iter_mut().find(|arm| arm.arm.role == Role::SelfCheck).expect("a copy");
    invalid(copy.contrast.as_mut().expect("compared"), "by the rate");
    copy.cpu_contrast.as_mut().expect("compared").verdict = Verdict::Equivalent;
    assert!(!table(&analysis).contains("by the rate"), "{}", table(&analysis));
}

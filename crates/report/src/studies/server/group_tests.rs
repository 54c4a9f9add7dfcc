//! Servers of two groups in one cell, whose trials met another machine: what is said, what is in
//! the table, and what the ratios are.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};
use iolens_stats::remark::{Unusable, VerdictReason};

use super::tables;
use super::tests::run;
use super::views::{View, is_open, views};
use crate::findings::{self, Finding, Outcome, Ranking};
use crate::fixture::alone;
use crate::screen::table::Marks;
use crate::text::{self, Style};

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
            *cpu = alone::whole(*cpu as f64 * machine * own);
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

/// The first closed loop.
fn view(run: &Run, analysis: &Analysis) -> View {
    views(run, analysis).into_iter().find(|view| !view.is_open).expect("a closed loop")
}

/// The rows of what requests cost, and of nothing else.
fn costs(run: &Run, analysis: &Analysis) -> Vec<Vec<Vec<String>>> {
    let grid = tables::cost(run, &view(run, analysis), &mut Marks::default());
    let cells = |row| match row {
        iolens_document::Row::Cells(cells) => cells,
        other => panic!("{other:?}"),
    };
    grid.rows.into_iter().map(cells).collect()
}

#[test]
fn the_table_has_the_order_of_its_ratios() {
    let (run, analysis) = on_two_machines();
    let cell = closed(&analysis);
    let rows = costs(&run, &analysis);
    let labels: Vec<&str> = rows.iter().map(|row| row[0][0].as_str()).collect();
    let labels: Vec<&str> = labels.into_iter().filter(|label| *label != "self-check").collect();
    assert_eq!(labels, ["uring", "prefork", "epoll_lt (baseline)", "poll"]);
    let ratios: Vec<f64> = labels
        .iter()
        .map(|label| cost_ratio(cell, label.trim_end_matches(" (baseline)")))
        .collect();
    assert!(ratios.is_sorted_by(|a, b| a >= b), "{labels:?} {ratios:?}");
    // What is printed is the baseline's time over the ratio.
    let printed = |label: &str| -> f64 {
        let row = rows.iter().find(|row| row[0][0] == label).expect("a row");
        row[1][0].parse().expect("a number")
    };
    let expected = printed("epoll_lt (baseline)") / cost_ratio(cell, "prefork");
    assert!(
        (printed("prefork") / expected - 1.0).abs() < 0.01,
        "{} {expected}",
        printed("prefork")
    );
}

#[test]
fn the_trials_of_a_comparison_are_its_own() {
    let (run, analysis) = on_two_machines();
    let cell = closed(&analysis);
    assert_eq!(cell.trials_used, 2 * analysis.passes);
    let grid = tables::comparisons(&run, &view(&run, &analysis));
    let trials = grid.rows.iter().filter_map(|row| match row {
        iolens_document::Row::Cells(cells) => Some(cells[3][0].as_str()),
        _ => None,
    });
    let expected = analysis.passes.to_string();
    assert!(trials.into_iter().all(|trials| trials == expected), "{:#?}", grid.rows);
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
    let cell = closed(&analysis).cell.clone();
    let is_it = |finding: &Finding| matches!(finding, Finding::Ranking(r) if r.setting == cell);
    let found = findings::all(&run, &analysis).into_iter().find(is_it);
    let Some(Finding::Ranking(Ranking { outcome: Outcome::Undecided { methods, .. }, .. })) = found
    else {
        panic!("{found:?}")
    };
    assert_eq!(methods[0], "uring");
    let rows = costs(&run, &analysis);
    let own = rows.iter().find(|row| row[0][0] == "uring").expect("a row");
    assert_eq!(own[2], ["−6%", "[−11,", "+1]", "?"]);
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
    let shown = |analysis: &Analysis| -> (String, String) {
        let text = text::whole(&run, analysis, &Style::plain(100));
        let own = costs(&run, analysis).into_iter().find(|row| row[0][0] == "self-check");
        (own.expect("a row")[2].join(" "), text)
    };
    let (change, text) = shown(&analysis);
    assert_eq!(change, "invalid");
    assert!(text.contains("self-check, CPU per request: invalid"), "{text}");
    let at = analysis.cells.iter().position(|cell| !is_open(cell)).expect("a closed loop");
    let arms = &mut analysis.cells[at].arms;
    let copy = arms.iter_mut().find(|arm| arm.arm.role == Role::SelfCheck).expect("a copy");
    invalid(copy.contrast.as_mut().expect("compared"), "by the rate");
    copy.cpu_contrast.as_mut().expect("compared").verdict = Verdict::Equivalent;
    let (change, text) = shown(&analysis);
    assert_ne!(change, "invalid");
    assert!(text.contains("self-check, requests/s: invalid"), "{text}");
}

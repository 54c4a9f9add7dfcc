//! What is printed of two made-up runs: `pr` takes 4.9 % more than `main` in the first, 2 % in the
//! second.

use iolens_document::Style;
use iolens_model::ab::AbParameter;
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::ab::{AbComparison, AbSide, analyse, compare};
use serde_json::Value;

use super::{Compared, json, markdown, text};
use crate::fixture;
use crate::studies::ab::tests::{axes, parsed, run};

/// The second run, of another link of `pr`, on another kernel.
fn second(more: f64, parameters: Vec<AbParameter>) -> Run {
    let mut run = run(more, parameters);
    fixture::again(&mut run);
    run.header.programs[1].sha256 = "c".repeat(64);
    run
}

fn compared(a: &Run, b: &Run) -> AbComparison {
    let analyses = [a, b].map(|run| analyse(run).expect("it is a run of `ab`"));
    let side = |run: &'_ Run, nth: usize| (run.header.clone(), analyses[nth].clone());
    let (a, b) = (side(a, 0), side(b, 1));
    compare(&AbSide { header: &a.0, analysis: &a.1 }, &AbSide { header: &b.0, analysis: &b.1 })
        .expect("they have one baseline")
}

fn with<T>(a: &Run, b: &Run, show: impl Fn(&Compared<'_>) -> T) -> T {
    let comparison = compared(a, b);
    show(&Compared { a: &a.header, b: &b.header, comparison: &comparison })
}

fn on_terminal(a: &Run, b: &Run, width: usize) -> String {
    with(a, b, |compared| text(compared, false, &Style::plain(width)))
}

#[test]
fn a_person_reads_both_runs_and_how_they_differ() {
    let (a, b) = (run(0.149, Vec::new()), second(0.02, Vec::new()));
    let style = Style::plain(100);
    insta::assert_snapshot!(with(&a, &b, |compared| text(compared, true, &style)));
    insta::assert_snapshot!("compare_markdown", with(&a, &b, markdown));
}

#[test]
fn programs_get_numbers() {
    let (a, b) = (run(0.049, Vec::new()), second(0.02, Vec::new()));
    let result = parsed(&with(&a, &b, json));
    let change = &result["settings"][0]["changes"][0];
    assert_eq!((&change["quantity"], &change["b"]["arm"]), (&"time".into(), &"pr".into()));
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!((number(&change["change"]) - (1.02 / 1.049 - 1.0)).abs() < 0.003, "{change}");
    assert!((number(&change["a"]["change"]) - 0.049).abs() < 0.003, "{change}");
    // 7 % of the 12 % of the CPU time that is user time, in either run.
    assert!((number(&change["layout_allowance"]) - 0.0168).abs() < 1e-9, "{change}");
}

#[test]
fn the_screen_fits() {
    let sizes =
        AbParameter { name: "rows".to_owned(), values: ["1", "10"].map(str::to_owned).to_vec() };
    let (a, b) = (run(0.149, vec![sizes.clone()]), second(0.02, vec![sizes]));
    for width in [80, 100] {
        let screen = on_terminal(&a, &b, width);
        assert!(screen.lines().count() <= 34, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= width), "{screen}");
    }
}

#[test]
fn what_cannot_be_compared_is_told_with_the_run() {
    let (a, mut b) = (run(0.049, Vec::new()), second(0.02, Vec::new()));
    for arm in b.trials.iter_mut().flat_map(|trial| &mut trial.arms) {
        if arm.arm.role != Role::Baseline {
            (arm.status, arm.reason) = (Status::Failed, Some("died".to_owned()));
        }
    }
    let screen = on_terminal(&a, &b, 100);
    assert!(screen.contains("pr is INVALID in time: run B has no number of it"), "{screen}");
    let same = on_terminal(&a, &a, 100);
    assert!(
        same.contains("the same trials") && same.contains("the same in both runs: EQUIVALENT"),
        "{same}"
    );
    axes(&mut b).programs[1].name = "pr2".to_owned();
    assert!(on_terminal(&a, &b, 100).contains("pr → pr2"));
}

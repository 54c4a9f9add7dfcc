//! What is printed of made-up runs: `pr` takes 2 % more than `main`, from the third run on 8 %.

use std::collections::BTreeMap;

use iolens_document::Style;
use iolens_model::ab::{AbParameter, AbQuantity};
use iolens_model::origin::Origin;
use iolens_model::run::{Run, RunHeader};
use iolens_stats::ab::{AbHistory, AbWanted, analyse, history, join};
use serde_json::Value;

use super::{json, markdown, text};
use crate::studies::ab::tests::{axes, parsed, rounded, run};

const DAY: u64 = 86_400_000_000_000;

/// Runs a day apart: how much more each takes, and a digit of the file's hash.
fn runs(all: &[(f64, &str)], parameters: &[AbParameter]) -> Vec<Run> {
    let one = |(nth, (more, digit)): (u64, &(f64, &str))| {
        let mut run = run(*more, parameters.to_vec());
        run.header.id = format!("4f1c090{nth:x}");
        run.header.started_unix_ns += nth * DAY;
        run.header.name = None;
        run.header.programs[1].sha256 = digit.repeat(64);
        run
    };
    (0..).zip(all).map(one).collect()
}

fn wanted_history(runs: &[Run], wanted: &AbWanted) -> AbHistory {
    let headers: Vec<RunHeader> = runs.iter().map(|run| run.header.clone()).collect();
    let joined = join(&headers, wanted);
    let analyses: BTreeMap<_, _> = joined
        .runs()
        .into_iter()
        .map(|at| (at, analyse(&runs[at]).expect("it is a run of `ab`")))
        .collect();
    history(&joined, &headers, &analyses)
}

fn of(runs: &[Run]) -> AbHistory {
    wanted_history(runs, &AbWanted::default())
}

fn on_terminal(history: &AbHistory, width: usize) -> String {
    text(history, false, &Style::plain(width))
}

/// Five runs of three files, of which the second is slower.
fn with_a_step() -> Vec<Run> {
    let all = [(0.02, "b"), (0.021, "b"), (0.08, "c"), (0.081, "c"), (0.079, "d")];
    runs(&all, &[])
}

#[test]
fn a_person_reads_which_step_made_it_slower() {
    let history = of(&with_a_step());
    insta::assert_snapshot!("step_100", on_terminal(&history, 100));
    insta::assert_snapshot!("step_80", on_terminal(&history, 80));
    insta::assert_snapshot!("step_markdown", markdown(&history));
}

#[test]
fn programs_get_numbers() {
    let history = of(&with_a_step());
    let result = rounded(parsed(&json(&history)));
    let series = &result["series"][0];
    assert_eq!((&result["claims"], &series["quantity"]), (&5.into(), &"time".into()));
    insta::assert_snapshot!("step_json", format!("{:#}", series["runs"][2]));
    assert_eq!(series["overall"]["since"], "4f1c0900");
    assert_eq!(series["arm"]["command"][0], "./bench");
}

#[test]
fn what_stays_the_same_is_said_to_only_where_it_is_known() {
    let same = of(&runs(&[(0.02, "b"), (0.021, "c"), (0.019, "d")], &[]));
    insta::assert_snapshot!("same", on_terminal(&same, 100));
    let mut wide = runs(&[(0.02, "b"), (0.021, "c"), (0.019, "d")], &[]);
    for trial in &mut wide[1].trials {
        // The noise of one run, which both copies of its program share.
        for slice in trial.slices.iter_mut().filter(|slice| slice.arm > 1) {
            slice.tx.time_ns = slice.tx.time_ns / 100 * (94 + 6 * u64::from(trial.pass % 3));
        }
    }
    let screen = on_terminal(&of(&wide), 100);
    assert!(screen.contains("no step is shown to be beyond 3%: all INCONCLUSIVE"), "{screen}");
    assert!(screen.contains("% is possible"), "{screen}");
}

#[test]
fn small_steps_that_add_up_are_told() {
    let all = [(0.0, "1"), (0.012, "2"), (0.024, "3"), (0.036, "4"), (0.048, "5")];
    let screen = on_terminal(&of(&runs(&all, &[])), 100);
    insta::assert_snapshot!("drift", screen);
}

/// Each run's baseline is the file of the run before, and the third is 5 % slower.
#[test]
fn a_chain_is_what_its_steps_come_to() {
    let mut all = runs(&[(0.002, "1"), (-0.001, "2"), (0.05, "3"), (0.001, "4")], &[]);
    for (run, digit) in all.iter_mut().zip(["0", "1", "2", "3"]) {
        run.header.programs[0].sha256 = digit.repeat(64);
    }
    let chains = AbWanted { is_chain: true, ..AbWanted::default() };
    let history = wanted_history(&all, &chains);
    insta::assert_snapshot!("chain", on_terminal(&history, 100));
    let result = parsed(&json(&history));
    assert_eq!(result["series"][0]["chain"], true);
    assert_eq!(result["series"][0]["runs"][1]["step"]["since"], Value::Null);
    all[1].trials.retain(|trial| trial.pass < 7);
    let screen = on_terminal(&wanted_history(&all, &chains), 100);
    assert!(screen.contains("the chain has a gap"), "{screen}");
}

#[test]
fn what_is_odd_is_told() {
    let mut all = with_a_step();
    all[1].header.programs[1].sha256 = "c".repeat(64);
    for (nth, host) in [(0, "lab"), (3, "elsewhere")] {
        all[nth].header.origin =
            Some(Origin { host: host.to_owned(), path: "x.db".to_owned(), imported_unix_ns: 0 });
    }
    all[4].trials.retain(|trial| trial.pass < 7);
    let mut links = with_a_step().remove(0);
    axes(&mut links).links = true;
    all.push(links);
    insta::assert_snapshot!("odd", on_terminal(&of(&all), 100));
}

/// Three settings by two quantities of 9 runs are too many rows for one screen.
#[test]
fn many_series_have_a_line_each() {
    let values = ["1", "10", "100", "1000"].map(str::to_owned).to_vec();
    let rows = AbParameter { name: "rows".to_owned(), values };
    let history =
        of(&runs(&[0.02, 0.02, 0.02, 0.02, 0.02, 0.08, 0.08].map(|more| (more, "b")), &[rows]));
    insta::assert_snapshot!("overview", on_terminal(&history, 100));
    let whole = text(&history, true, &Style::plain(100));
    assert!(whole.lines().count() > 40, "{whole}");
}

#[test]
fn the_screen_fits() {
    let step: Vec<(f64, &str)> = (0..12).map(|nth| (0.1 * f64::from(nth / 6), "b")).collect();
    let steps: Vec<(f64, &str)> = (0..12).map(|nth| (0.1 * f64::from(nth % 2), "b")).collect();
    for (all, width, lines) in [(&step, 100, 25), (&step, 80, 27), (&steps, 80, 32)] {
        let screen = on_terminal(&of(&runs(all, &[])), width);
        assert!(screen.lines().count() <= lines, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= width), "{screen}");
    }
}

#[test]
fn runs_of_strangers_are_shown_or_not_and_never_panic() {
    let mut strange = with_a_step();
    strange[0].header.started_unix_ns = u64::MAX;
    strange[1].header.programs[1].sha256 = "ß".to_owned();
    strange[2].header.plan.delta = f64::NAN;
    strange[3].trials.clear();
    axes(&mut strange[4]).programs.clear();
    let all = [(None, false), (Some(AbQuantity::Cpu), false), (None, true)];
    for (quantity, is_chain) in all {
        let wanted = AbWanted { quantity, is_chain, ..AbWanted::default() };
        for nth in (1..strange.len()).filter(|_| is_chain) {
            let end = strange[nth - 1].header.programs[1].sha256.clone();
            strange[nth].header.programs[0].sha256 = end;
            strange[nth].header.programs[1].sha256 = nth.to_string();
        }
        let history = wanted_history(&strange, &wanted);
        for width in [0, 40, 100] {
            let style = Style { colour: true, ..Style::plain(width) };
            assert!(text(&history, true, &style).contains("4f1c090"));
        }
        assert!(markdown(&history).contains("4f1c090"));
        assert!(json(&history).contains("4f1c090"));
    }
    let nothing = of(&[]);
    assert!(text(&nothing, false, &Style::plain(80)).contains("history"));
    assert!(json(&nothing).contains("series") && markdown(&nothing).contains("history"));
}

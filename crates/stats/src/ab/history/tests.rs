//! Known answers, which runs are joined, and how often a series errs.

use iolens_model::ab::AbMode;
use iolens_model::external::External;
use iolens_model::plan::Axes;
use proptest::prelude::*;
use proptest::sample::select;

use super::history as history_of;
use super::*;
use crate::ab::compare::tests::{Made, around, at_look, made, made_of, near, run, sliced};
use crate::ab::simulation::{FEW, MANY, Share, noisy_trial};
use crate::ab::tests::trial;
use crate::ab::{AbLook, AbReason, AbTrial, AbUnit, AbVerdict};
use crate::simulation::Normal;

const DAY: u64 = 86_400_000_000_000;

/// Runs a day apart, in this order.
fn series_of(mut runs: Vec<Made>) -> Vec<Made> {
    for (day, made) in (1..).zip(&mut runs) {
        made.run.header.started_unix_ns = day * DAY;
    }
    runs
}

fn wanted_history(runs: &[Made], wanted: &AbWanted) -> AbHistory {
    let headers: Vec<RunHeader> = runs.iter().map(|made| made.run.header.clone()).collect();
    let joined = join(&headers, wanted);
    let analyses = joined.runs().into_iter().map(|at| (at, runs[at].analysis.clone()));
    history(&joined, &headers, &analyses.collect())
}

fn whole_history(runs: &[Made]) -> AbHistory {
    wanted_history(runs, &AbWanted::default())
}

fn verdicts(series: &AbSeries) -> Vec<AbVerdict> {
    series.steps().map(|(_, step)| step.judged.verdict).collect()
}

/// A run whose arm takes so much more, give or take a step.
fn flat(id: &str, more: f64, step: f64) -> Made {
    made(id, AbMode::Loop, &around(more.ln_1p(), step, 12))
}

/// Four runs have three steps, and the newest against the oldest: J = 4. Of 12 trials 10 are left:
/// t₉ at 1 − 0.05/8 is 3.11093 (integrated).
#[test]
fn all_steps_and_the_whole_span_are_one_family() {
    let more = [0.05, 0.02, 0.02, 0.02];
    let runs = more.iter().zip(["a", "b", "c", "d"]).map(|(&more, id)| flat(id, more, 0.01));
    let history = whole_history(&series_of(runs.collect()));
    assert_eq!(history.claims, 4);
    let series = &history.series[0];
    let step = series.rows[1].step.as_ref().unwrap();
    near(step.judged.change.unwrap(), 1.02 / 1.05 - 1.0);
    let half = 3.110_93 * 0.01 * (2.0f64 * 12.0 / 90.0).sqrt();
    let interval = step.judged.simultaneous.unwrap();
    near(interval.low.ln_1p(), (1.02f64 / 1.05).ln() - half);
    near(interval.high.ln_1p(), (1.02f64 / 1.05).ln() + half);
    assert_eq!(verdicts(series), [AbVerdict::Small, AbVerdict::Equivalent, AbVerdict::Equivalent]);
    let overall = series.overall.as_ref().unwrap();
    assert_eq!((overall.since, overall.judged.verdict), (Some(0), AbVerdict::Small));
    assert!(series.rows[0].step.is_none());
}

#[test]
fn what_is_too_wide_is_not_equivalent() {
    let verdict = |step: f64| {
        let runs = ["a", "b", "c"].map(|id| flat(id, 0.05, step));
        verdicts(&whole_history(&series_of(runs.into())).series[0])
    };
    assert_eq!(verdict(0.004), [AbVerdict::Equivalent; 2]);
    assert_eq!(verdict(0.04), [AbVerdict::Inconclusive; 2]);
}

/// Of steps of 1.2 % none is beyond 2 %, and together they are.
#[test]
fn small_steps_add_up() {
    let runs = (0u8..6).map(|nth| {
        flat(&char::from(b'a' + nth).to_string(), 1.012f64.powi(nth.into()) - 1.0, 0.003)
    });
    let history = whole_history(&series_of(runs.collect()));
    let series = &history.series[0];
    assert!(series.steps().all(|(_, step)| !step.judged.is_beyond()), "{:?}", verdicts(series));
    assert_eq!(series.overall.as_ref().unwrap().judged.verdict, AbVerdict::Slower);
}

#[test]
fn another_file_may_have_been_linked_elsewhere_and_the_same_cannot() {
    let of = |digit: &str, more: f64| {
        let lns = around(more.ln_1p(), 0.002, 12);
        let trials: Vec<AbTrial> = lns.iter().map(|ln| trial(&[&[1.0], &[ln.exp()]])).collect();
        made_of(run(digit, AbMode::Loop, digit), &trials, Some(0.03))
    };
    let mut runs = series_of(vec![of("1", 0.0), of("2", 0.05), of("2", 0.10)]);
    runs[2].run.header.id = "3".to_owned();
    let history = whole_history(&runs);
    let series = &history.series[0];
    assert_eq!(verdicts(series), [AbVerdict::Build, AbVerdict::Slower]);
    let is_one_file: Vec<bool> = series.steps().map(|(_, step)| step.is_one_file).collect();
    assert_eq!(is_one_file, [false, true]);
}

#[test]
fn steps_go_over_runs_that_cannot_be_used() {
    let few = made("b", AbMode::Loop, &around(0.5, 0.004, 10));
    let runs = series_of(vec![flat("a", 0.0, 0.004), few, flat("c", 0.05, 0.004)]);
    let history = whole_history(&runs);
    let rows = &history.series[0].rows;
    assert_eq!(rows[1].unusable, Some(AbUnusable::TooFew { units: 10, least: 12 }));
    assert!(rows[1].step.is_none() && rows[1].standing.change.is_some());
    let step = rows[2].step.as_ref().unwrap();
    assert_eq!((step.since, step.judged.verdict), (Some(0), AbVerdict::Slower));
    assert_eq!((history.claims, &history.series[0].overall), (1, &None));
}

/// What comes now and then falls into longer slices at another rate.
#[test]
fn steps_go_over_runs_with_other_slices() {
    let steps = |longer: &[usize]| {
        let operations = |nth: usize| if longer.contains(&nth) { 400 } else { 123 };
        let runs = ["a", "b", "c", "d"].iter().enumerate();
        let runs = runs.map(|(nth, id)| sliced(id, operations(nth))).collect();
        let history = whole_history(&series_of(runs));
        let series = &history.series[0];
        let since = |row: &AbRow| row.step.as_ref().and_then(|step| step.since);
        let apart = series.rows.iter().position(|row| row.is_apart);
        let rows: Vec<Option<usize>> = series.rows.iter().map(since).collect();
        (rows, apart, series.overall.is_some(), history.claims)
    };
    assert_eq!(steps(&[]), (vec![None, Some(0), Some(1), Some(2)], None, true, 4));
    assert_eq!(steps(&[1]), (vec![None, None, Some(0), Some(2)], Some(1), true, 3));
    assert_eq!(steps(&[3]), (vec![None, Some(0), Some(1), None], Some(3), false, 2));
    assert_eq!(steps(&[0]), (vec![None, None, Some(1), Some(2)], Some(1), false, 2));
    assert_eq!(steps(&[0, 2]), (vec![None, None, Some(0), Some(1)], Some(1), false, 2));
}

/// Which series there are, by the ids of their runs, and what is left out.
fn joined(runs: &[Made], wanted: &AbWanted) -> (Vec<String>, Vec<(AbLeftOutWhy, String)>) {
    let history = wanted_history(runs, wanted);
    let ids = |series: &AbSeries| series.rows.iter().map(|row| row.run.as_str()).collect();
    let left = history.left_out.iter().map(|left| (left.why, left.runs.concat()));
    (history.series.iter().map(ids).collect(), left.collect())
}

fn edited(made: &mut Made, edit: impl Fn(&mut iolens_model::ab::AbAxes)) {
    let Axes::Ab(axes) = &mut made.run.header.plan.axes else { panic!("it is a plan of `ab`") };
    edit(axes);
    let settings = made.run.header.plan.cells();
    for (cell, of_plan) in made.analysis.cells.iter_mut().zip(settings) {
        cell.setting = of_plan.ab().unwrap().clone();
    }
}

#[test]
fn runs_of_another_baseline_or_way_are_not_joined() {
    let check = |why: AbLeftOutWhy, edit: &dyn Fn(&mut Made)| {
        let mut runs = series_of(["a", "b", "c"].map(|id| flat(id, 0.0, 0.004)).into());
        edit(&mut runs[1]);
        let (series, left) = joined(&runs, &AbWanted::default());
        assert_eq!((series, left), (vec!["ac".to_owned()], vec![(why, "b".to_owned())]));
    };
    use AbLeftOutWhy::{Alone, Links, NotEnded, NotJudged};
    check(Alone, &|made| made.run.header.programs[0].sha256 = "ß".repeat(64));
    check(Alone, &|made| edited(made, |axes| axes.programs[0].argv[2] = "y".to_owned()));
    check(Alone, &|made| edited(made, |axes| axes.programs[1].argv[2] = "y".to_owned()));
    check(Alone, &|made| edited(made, |axes| axes.parameters[0].values[0] = "8".to_owned()));
    check(Alone, &|made| edited(made, |axes| axes.mode = AbMode::Command));
    check(Alone, &|made| edited(made, |axes| axes.in_place = true));
    check(Alone, &|made| edited(made, |axes| axes.input = Some("big".to_owned())));
    check(Alone, &|made| edited(made, |axes| axes.prepare = Some(vec!["sync".to_owned()])));
    check(Links, &|made| edited(made, |axes| axes.links = true));
    check(NotJudged, &|made| edited(made, |axes| axes.judged = vec![AbQuantity::Cpu]));
    check(NotEnded, &|made| made.run.header.end = None);
    // Nothing is known of the file.
    let mut runs = series_of(["a", "b", "c"].map(|id| flat(id, 0.0, 0.004)).into());
    runs[1].run.header.programs.clear();
    assert_eq!(joined(&runs, &AbWanted::default()).0, ["ac"]);
}

#[test]
fn one_arm_is_itself_and_several_go_by_their_names() {
    let mut runs = series_of(["a", "b", "c", "d"].map(|id| flat(id, 0.0, 0.004)).into());
    edited(&mut runs[1], |axes| {
        axes.programs[1] = External {
            name: "pr2".to_owned(),
            argv: ["/new/pr", "{n}", "x"].map(str::to_owned).into(),
        };
    });
    let third =
        External { name: "old".to_owned(), argv: ["o", "{n}", "x"].map(str::to_owned).into() };
    for made in &mut runs[2..] {
        edited(made, |axes| axes.programs.push(third.clone()));
    }
    let (series, left) = joined(&runs, &AbWanted::default());
    assert_eq!((series, left), (["ab", "cd", "cd"].map(str::to_owned).into(), vec![]));
    let wanted = AbWanted { arm: Some("old".to_owned()), ..AbWanted::default() };
    assert_eq!(joined(&runs, &wanted), (vec!["cd".to_owned()], vec![]));
}

#[test]
fn a_history_may_be_narrowed() {
    let mut runs = series_of(["a", "b", "c", "d"].map(|id| flat(id, 0.0, 0.004)).into());
    runs.rotate_left(2);
    let last = AbWanted { last: Some(3), ..AbWanted::default() };
    let history = wanted_history(&runs, &last);
    assert_eq!((history.series[0].older, history.claims), (1, 3));
    assert_eq!(joined(&runs, &last).0, ["bcd"]);
    let of = |sha256: &str, name: &str| {
        let baseline = AbWantedBaseline { name: name.to_owned(), sha256: sha256.to_owned() };
        AbWanted { baseline: Some(baseline), ..AbWanted::default() }
    };
    assert_eq!(joined(&runs, &of("000", "v1")).0, ["abcd"]);
    assert_eq!(joined(&runs, &of("1", "v1")), (vec![], vec![]));
    let other = vec![(AbLeftOutWhy::OtherFile, "abcd".to_owned())];
    assert_eq!(joined(&runs, &of("1", "main")), (vec![], other));
    let cpu = AbWanted { quantity: Some(AbQuantity::Cpu), ..AbWanted::default() };
    let left = vec![(AbLeftOutWhy::NotJudged, "abcd".to_owned())];
    assert_eq!(joined(&runs, &cpu), (vec![], left));
}

/// A run whose baseline and arm are these files, by digits.
fn link_of_chain(id: &str, files: [&str; 2], more: f64) -> Made {
    let mut made = flat(id, more, 0.004);
    for (program, digit) in made.run.header.programs.iter_mut().zip(files) {
        program.sha256 = digit.repeat(64);
    }
    made
}

const CHAINS: AbWanted =
    AbWanted { baseline: None, arm: None, last: None, quantity: None, is_chain: true };

/// Ratios multiply, and three equal errors are √3 of one. t₉ at 0.975 is 2.26216 (NIST/SEMATECH
/// e-Handbook, table 1.3.6.7.2), at 1 − 0.05/8 it is 3.11093 (integrated).
#[test]
fn what_the_steps_of_a_chain_come_to_has_all_their_errors() {
    let links = [("a", ["0", "1"], 0.02), ("b", ["1", "2"], 0.03), ("c", ["2", "3"], -0.01)];
    let runs = series_of(links.map(|(id, files, more)| link_of_chain(id, files, more)).into());
    let history = wanted_history(&runs, &CHAINS);
    assert_eq!(history.claims, 4);
    let series = &history.series[0];
    assert_eq!((series.rows.len(), series.baseline.sha256.as_deref()), (3, Some(&*"0".repeat(64))));
    let ln = 1.02f64.ln() + 1.03f64.ln() + 0.99f64.ln();
    let half = |t: f64, n: f64| t * 0.004 * (n * 12.0 / 90.0).sqrt();
    let standing = &series.rows[2].standing;
    near(standing.change.unwrap().ln_1p(), ln);
    near(standing.pointwise.unwrap().low.ln_1p(), ln - half(2.262_16, 3.0));
    let overall = series.overall.as_ref().unwrap();
    near(overall.judged.simultaneous.unwrap().high.ln_1p(), ln + half(3.110_93, 3.0));
    let step = series.rows[1].step.as_ref().unwrap();
    near(step.judged.change.unwrap(), 0.03);
    near(step.judged.simultaneous.unwrap().low.ln_1p(), 1.03f64.ln() - half(3.110_93, 1.0));
    let expect = [AbVerdict::Small, AbVerdict::Slower, AbVerdict::Equivalent];
    assert_eq!(verdicts(series), expect.map(|verdict| verdict));
}

#[test]
fn a_chain_goes_on_with_what_it_ended_with() {
    let chains = |all: &[(&str, [&str; 2])]| {
        let runs = all.iter().map(|(id, files)| link_of_chain(id, *files, 0.0));
        joined(&series_of(runs.collect()), &CHAINS)
    };
    let (series, left) = chains(&[("a", ["0", "1"]), ("b", ["5", "6"]), ("c", ["1", "2"])]);
    assert_eq!(series, ["ac"]);
    assert_eq!(left, [(AbLeftOutWhy::Alone, "b".to_owned())]);
    // A run that repeats another leads nowhere; one of a file beside itself is no step.
    let all = [("a", ["0", "1"]), ("b", ["1", "2"]), ("c", ["1", "2"]), ("d", ["2", "2"])];
    let (series, left) = chains(&[&all[..], &[("e", ["2", "3"])]].concat());
    assert_eq!(series, ["abe"]);
    let alone = (AbLeftOutWhy::Alone, "c".to_owned());
    assert_eq!(left, [alone, (AbLeftOutWhy::OneFile, "d".to_owned())]);
}

#[test]
fn a_chain_with_a_gap_comes_to_nothing() {
    let links = [("a", ["0", "1"]), ("b", ["1", "2"]), ("c", ["2", "3"])];
    let mut runs = series_of(links.map(|(id, files)| link_of_chain(id, files, 0.05)).into());
    let few = made("b", AbMode::Loop, &around(0.5, 0.004, 10));
    runs[1].analysis = few.analysis;
    let is_known = |history: &AbHistory| -> Vec<bool> {
        history.series[0].rows.iter().map(|row| row.standing.change.is_some()).collect()
    };
    let history = wanted_history(&runs, &CHAINS);
    assert_eq!(is_known(&history), [true, false, false]);
    assert!(history.series[0].overall.is_none() && history.series[0].rows[2].step.is_some());
    // One that cannot be read.
    let headers: Vec<RunHeader> = runs.iter().map(|made| made.run.header.clone()).collect();
    let of = |at: usize| (at, runs[at].analysis.clone());
    let history = history_of(&join(&headers, &CHAINS), &headers, &[of(0), of(2)].into());
    assert_eq!(is_known(&history), [true, false]);
    assert!(history.series[0].overall.is_none());
}

/// A run as `ab` makes it: looked at until it is decided, and at the end of its budget.
fn measured(normal: &mut Normal, nth: usize, ln: f64) -> Made {
    const BUDGET: u32 = 96;
    let mut trials: Vec<AbTrial> = Vec::new();
    loop {
        let units = AbUnit::Trial.next_look(count(trials.len())).min(BUDGET);
        trials.resize_with(units as usize, || noisy_trial(normal, ln));
        let look = if units < BUDGET { AbLook::Early } else { AbLook::Last };
        let mut run = run("r", AbMode::Loop, "1");
        run.header.id = format!("{nth}");
        let made = at_look(run, &trials, None, look);
        if look == AbLook::Last || made.analysis.decided() {
            return made;
        }
    }
}

/// Series of ten runs, of which the sixth and those behind it take so much more.
fn series_with(runs: u32, step: f64, mut see: impl FnMut(&AbSeries)) {
    let normal = &mut Normal::seeded(23);
    for nth in 0..runs {
        // Where a verdict is near, runs end when noise favours one; so not all are at zero.
        let before = [0.0, 0.02, 0.035, 0.1][nth as usize % 4];
        let one = |nth| measured(normal, nth, before + if nth < 5 { 0.0 } else { step });
        let history = whole_history(&series_of((0..10).map(one).collect()));
        assert_eq!(history.claims, 10);
        see(&history.series[0]);
    }
}

fn errors(runs: u32) {
    let (mut excluded, mut beyond) = (Share::default(), Share::default());
    series_with(runs, 0.0, |series| {
        let all = || series.steps().map(|(_, step)| step).chain(&series.overall);
        let holds_none = |step: &AbStep| !step.judged.simultaneous.unwrap().contains(0.0);
        excluded.add(all().any(holds_none));
        beyond.add(all().any(|step| step.judged.is_beyond()));
    });
    excluded.at_most("a step where there is none", 0.05);
    beyond.at_most("SLOWER or FASTER where nothing changed", 0.001);

    let (mut found, mut elsewhere) = (Share::default(), Share::default());
    series_with(runs, 0.05, |series| {
        let beyond =
            |row: usize| series.rows[row].step.as_ref().is_some_and(|step| step.judged.is_beyond());
        found.add(
            beyond(5) && series.rows[5].step.as_ref().unwrap().judged.verdict == AbVerdict::Slower,
        );
        elsewhere.add((1..10).any(|row| row != 5 && beyond(row)));
    });
    found.at_least("a step of 5 % is found with the run that has it", 0.95);
    elsewhere.at_most("a step is found elsewhere", 0.001);

    // In a chain the runs themselves are the steps.
    let (mut excluded, mut beyond) = (Share::default(), Share::default());
    let normal = &mut Normal::seeded(29);
    for _ in 0..runs {
        let link = |nth: usize| {
            let mut made = measured(normal, nth, 0.0);
            for (side, program) in made.run.header.programs.iter_mut().enumerate() {
                program.sha256 = format!("{}", nth + side);
            }
            made
        };
        let history = wanted_history(&series_of((0..9).map(link).collect()), &CHAINS);
        assert_eq!((history.claims, history.series[0].rows.len()), (10, 9));
        let all =
            || history.series[0].steps().map(|(_, step)| step).chain(&history.series[0].overall);
        excluded.add(all().any(|step| !step.judged.simultaneous.unwrap().contains(0.0)));
        beyond.add(all().any(|step| step.judged.is_beyond()));
    }
    excluded.at_most("a step in a chain where there is none", 0.05);
    beyond.at_most("SLOWER or FASTER in a chain where nothing changed", 0.001);

    // A step of exactly the threshold is not within it, and not beyond it.
    let (mut equal, mut beyond) = (Share::default(), Share::default());
    series_with(runs, 0.02f64.ln_1p(), |series| {
        let verdict = series.rows[5].step.as_ref().unwrap().judged.verdict;
        equal.add(verdict == AbVerdict::Equivalent);
        beyond.add(verdict == AbVerdict::Slower);
    });
    equal.at_most("EQUIVALENT at the edge", 0.05);
    beyond.at_most("SLOWER at the edge", 0.025);
}

#[test]
fn series_err_as_seldom_as_they_say() {
    errors(FEW / 2);
}

#[test]
#[ignore = "10 000 series"]
fn series_err_as_seldom_as_they_say_in_many() {
    errors(MANY);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(64)
    })]

    #[test]
    fn no_numbers_of_a_stranger_make_it_panic(
        all in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..20), 0..6),
        mode in select(vec![AbMode::Loop, AbMode::Command]),
        delta in select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, 0.02]),
        last in select(vec![None, Some(0), Some(1), Some(3)]),
        started in any::<u64>(),
    ) {
        let one = |(nth, lns): (usize, &Vec<f64>)| {
            let mut made = made("a", mode, lns);
            made.run.header.id = format!("{nth}");
            made.run.header.plan.delta = delta;
            made.run.header.started_unix_ns = started.wrapping_mul(nth as u64);
            made
        };
        let runs: Vec<Made> = all.iter().enumerate().map(one).collect();
        let history = wanted_history(&runs, &AbWanted { last, ..AbWanted::default() });
        for (row, step) in history.series.iter().flat_map(AbSeries::steps) {
            prop_assert!(row.unusable.is_none());
            let is_rule = !matches!(&step.judged.reason,
                crate::ab::AbChangeReason::Rule(AbReason::TooFew { .. }));
            prop_assert!(is_rule);
        }
    }
}

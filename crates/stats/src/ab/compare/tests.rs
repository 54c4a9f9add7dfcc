//! Known answers, what is refused, and what holds for any two runs.

use iolens_model::ab::{AbArm, AbMode, AbParameter, AbProgramFacts, AbQuantity};
use iolens_model::arm::Role;
use iolens_model::external::External;
use iolens_model::host::Fact;
use iolens_model::plan::Axes;
use iolens_model::reading::Reading;
use iolens_model::run::{Run, RunEnd, StoppedBy};
use iolens_model::units::Nanos;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::ab::tests::{input, trial};
use crate::ab::{AbArmFigures, AbInput, AbLook, AbTrial, AbUnit, analyse, judge};
use crate::fixture::{self, ArmTime, rounds};
use crate::simulation::Normal;

const MODES: [AbMode; 2] = [AbMode::Loop, AbMode::Command];

/// A run without trials: `main`, and an arm whose file has this digit for a hash.
pub(in crate::ab) fn run(id: &str, mode: AbMode, digit: &str) -> Run {
    let mut run = fixture::run(fixture::plan(&["main", "pr"]));
    let program = |name: &str| External {
        name: name.to_owned(),
        argv: [name, "{n}", "x"].map(str::to_owned).to_vec(),
    };
    run.header.plan.axes = Axes::Ab(AbAxes {
        parameters: vec![AbParameter { name: "n".to_owned(), values: vec!["7".to_owned()] }],
        judged: vec![AbQuantity::Time],
        ..AbAxes::of(mode, vec![program("main"), program("pr")])
    });
    run.header.id = id.to_owned();
    run.header.plan.delta = 0.02;
    run.header.programs = ["0", digit]
        .map(|digit| AbProgramFacts {
            path: "/bench".to_owned(),
            sha256: digit.repeat(64),
            is_elf: true,
            links: Vec::new(),
        })
        .to_vec();
    let (finished_unix_ns, unmet) = (run.header.started_unix_ns + 1, Vec::new());
    run.header.end =
        Some(RunEnd { finished_unix_ns, stopped_by: StoppedBy::Precision, unmet, paused_ns: 0 });
    run
}

/// A run whose arm has these logarithms against a baseline that never changes, each of a unit.
pub(in crate::ab) struct Made {
    pub(in crate::ab) run: Run,
    pub(in crate::ab) analysis: AbAnalysis,
}

pub(in crate::ab) fn made_of(run: Run, trials: &[AbTrial], allowance: Option<f64>) -> Made {
    at_look(run, trials, allowance, AbLook::Last)
}

/// The same as at a look, after which it may go on.
pub(in crate::ab) fn at_look(
    run: Run,
    trials: &[AbTrial],
    allowance: Option<f64>,
    look: AbLook,
) -> Made {
    let axes = run.header.plan.ab().unwrap();
    let unit = AbUnit::of(axes.mode);
    let allowances = vec![allowance; axes.programs.len()];
    let delta = run.header.plan.delta;
    let input = AbInput { unit, trials, delta, judged: &axes.judged, ..input(&allowances) };
    let cells = run.header.plan.cells();
    let cells = cells.iter().map(|cell| AbCell {
        setting: cell.ab().unwrap().clone(),
        arms: Vec::new(),
        is_own_time: false,
        judgement: judge(&input, look),
    });
    let analysis = AbAnalysis { unit, cells: cells.collect(), throttled: None };
    Made { run, analysis }
}

pub(in crate::ab) fn made(id: &str, mode: AbMode, lns: &[f64]) -> Made {
    let trials: Vec<AbTrial> = lns.iter().map(|ln| trial(&[&[1.0], &[ln.exp()]])).collect();
    made_of(run(id, mode, &id[..1]), &trials, None)
}

fn compared(a: &Made, b: &Made) -> Result<AbComparison, AbRefused> {
    let side = |made: &Made| (made.run.header.clone(), made.analysis.clone());
    let (a, b) = (side(a), side(b));
    compare(&AbSide { header: &a.0, analysis: &a.1 }, &AbSide { header: &b.0, analysis: &b.1 })
}

fn change(a: &Made, b: &Made) -> AbJudgedChange {
    compared(a, b).unwrap().settings.remove(0).changes.remove(0).judged
}

/// So many values that have this mean and lie a step to either side.
pub(in crate::ab) fn around(mean: f64, step: f64, n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 2 == 0 { mean - step } else { mean + step }).collect()
}

pub(in crate::ab) fn near(value: f64, expect: f64) {
    assert!((value - expect).abs() < 1e-5, "{value}, not {expect}");
}

/// 5 % and 2 % more than the baseline are 1.02/1.05 − 1 = −2.857 %. With 12 trials a step of 1 %
/// makes a standard error of √(12/90) % (10 are left, 12 winsorized), and t₉ at 0.975 is 2.26216
/// (NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
#[test]
fn the_difference_of_trials_has_both_errors_in_quadrature() {
    let a = made("a", AbMode::Loop, &around(0.05f64.ln_1p(), 0.01, 12));
    let b = made("b", AbMode::Loop, &around(0.02f64.ln_1p(), 0.02, 12));
    let comparison = compared(&a, &b).unwrap();
    let AbChange { sides, judged: change, .. } = &comparison.settings[0].changes[0];
    near(change.change.unwrap(), 1.02 / 1.05 - 1.0);
    let half = |step: f64| 2.262_16 * step * (12.0f64 / 90.0).sqrt();
    let both = half(0.01).hypot(half(0.02));
    let interval = change.pointwise.unwrap();
    near(interval.low.ln_1p(), (1.02f64 / 1.05).ln() - both);
    near(interval.high.ln_1p(), (1.02f64 / 1.05).ln() + both);
    assert_eq!((change.simultaneous, change.verdict), (Some(interval), AbVerdict::Small));
    assert_eq!(sides.each_ref().map(|side| side.units), [12, 12]);
    near(sides[0].change.unwrap(), 0.05);
}

/// Of 30 rounds the 10th from either end bound 95 %. Those of
/// one run lie 1 below and 3 above the median, those of the other 2 below and 5 above.
#[test]
fn the_difference_of_medians_keeps_the_sides_of_their_intervals_apart() {
    let skewed = |centre: f64, below: f64, above: f64| -> Vec<f64> {
        let part = |i: usize| match i {
            0..=10 => centre - below,
            11..=18 => centre,
            _ => centre + above,
        };
        (0..30).map(part).collect()
    };
    let a = made("a", AbMode::Command, &skewed(0.10, 0.01, 0.03));
    let b = made("b", AbMode::Command, &skewed(0.30, 0.02, 0.05));
    let change = change(&a, &b);
    let interval = change.pointwise.unwrap();
    near(interval.low.ln_1p(), 0.2 - 0.02f64.hypot(0.03));
    near(interval.high.ln_1p(), 0.2 + 0.05f64.hypot(0.01));
    assert_eq!(change.verdict, AbVerdict::Slower);
}

#[test]
fn verdicts_are_words_of_the_second_run_against_the_first() {
    for mode in MODES {
        let verdict = |a: f64, b: f64, step: f64| {
            let made = |id, ln: f64| made(id, mode, &around(ln.ln_1p(), step, 40));
            change(&made("a", a), &made("b", b)).verdict
        };
        assert_eq!(verdict(0.02, 0.08, 0.004), AbVerdict::Slower);
        assert_eq!(verdict(0.08, 0.02, 0.004), AbVerdict::Faster);
        assert_eq!(verdict(0.05, 0.051, 0.004), AbVerdict::Equivalent);
    }
    let verdict = |b: f64, step: f64| {
        let a = made("a", AbMode::Loop, &around(0.0, step, 12));
        change(&a, &made("b", AbMode::Loop, &around(b, step, 12))).verdict
    };
    assert_eq!(verdict(0.02, 0.01), AbVerdict::Small);
    assert_eq!(verdict(0.02, 0.2), AbVerdict::Inconclusive);
}

#[test]
fn layout_counts_of_both_runs_unless_they_measured_one_file() {
    let of = |digit: &str, ln: f64, allowance| {
        let lns = around(ln, 0.004, 12);
        let trials: Vec<AbTrial> = lns.iter().map(|ln| trial(&[&[1.0], &[ln.exp()]])).collect();
        made_of(run(digit, AbMode::Loop, digit), &trials, allowance)
    };
    let a = of("1", 0.0, Some(0.03));
    let change_to = |digit, ln, allowance| change(&a, &of(digit, ln, allowance));
    let both = change_to("2", 0.05, Some(0.04));
    assert_eq!(both.layout_allowance, Some(0.03 + 0.04));
    assert_eq!(both.verdict, AbVerdict::Build);
    assert_eq!(change_to("2", 0.10, Some(0.04)).verdict, AbVerdict::Slower);
    let one = change_to("2", 0.05, None);
    assert_eq!((one.layout_allowance, one.verdict), (Some(0.03), AbVerdict::Slower));
    // On one machine the baseline cancels with its layout: one file against the other is left.
    let fact = |group: &str, name: &str| Fact {
        group: group.to_owned(),
        name: name.to_owned(),
        value: Reading::Exact("6.18".to_owned()),
    };
    let facts = vec![fact("cpu", "model"), fact("kernel", "release")];
    let on_one = |digit, ln, allowance| {
        let mut made = of(digit, ln, allowance);
        made.run.header.host.facts.clone_from(&facts);
        made
    };
    let near = on_one("1", 0.0, Some(0.03));
    let there = change(&near, &on_one("2", 0.05, Some(0.04)));
    assert_eq!((there.layout_allowance, there.verdict), (Some(0.04), AbVerdict::Slower));
    let other = change(&near, &of("2", 0.05, Some(0.04)));
    assert_eq!(other.layout_allowance, Some(0.03 + 0.04));
    let same = change_to("1", 0.05, Some(0.04));
    assert_eq!((same.layout_allowance, same.verdict), (None, AbVerdict::Slower));
}

#[test]
fn what_a_run_cannot_use_is_invalid_with_the_run() {
    let a = made("a", AbMode::Loop, &around(0.0, 0.004, 12));
    let check = |b: &Made, expect: AbUnusable| {
        let change = change(&a, b);
        let unusable = [None, Some(expect)];
        assert_eq!(change.reason, AbChangeReason::Unusable { unusable });
        assert_eq!(change.verdict, AbVerdict::Invalid);
        assert!(!compared(&a, b).unwrap().is_usable());
    };
    let few = made("b", AbMode::Loop, &around(0.0, 0.004, 10));
    check(&few, AbUnusable::TooFew { units: 10, least: 12 });
    let copies: Vec<AbTrial> = around(0.0, 0.004, 12)
        .iter()
        .map(|ln| trial(&[&[1.0, 1.2], &[ln.exp(), ln.exp()]]))
        .collect();
    let copies = made_of(run("b", AbMode::Loop, "b"), &copies, None);
    check(&copies, AbUnusable::CopiesDiffer { of: 0 });
    let nothing = made("b", AbMode::Loop, &[]);
    check(&nothing, AbUnusable::Missing { why: AbMissingWhy::OfBaseline });
}

/// Copies that wander keep a run from saying that anything is the same; so here.
#[test]
fn nothing_is_equivalent_to_what_is_noisy() {
    let noisy = |id| {
        let trials = (0..40).map(|i| {
            let copy = if i % 2 == 0 { 1.15 } else { 1.0 / 1.15 };
            trial(&[&[1.0, copy], &[1.0, copy]])
        });
        made_of(run(id, AbMode::Loop, id), &trials.collect::<Vec<_>>(), None)
    };
    let different = change(&noisy("a"), &noisy("b"));
    let AbChangeReason::Rule(AbReason::Open { noise: Some(_), .. }) = &different.reason else {
        panic!("{different:?}")
    };
    assert_eq!(change(&noisy("a"), &noisy("a")).verdict, AbVerdict::Equivalent);
}

#[test]
fn a_run_against_itself_has_not_changed() {
    let a = made("a", AbMode::Loop, &around(0.05, 0.2, 12));
    let comparison = compared(&a, &a).unwrap();
    let change = &comparison.settings[0].changes[0].judged;
    assert_eq!(change.simultaneous, Some(Interval { low: 0.0, high: 0.0 }));
    assert_eq!((change.change, change.verdict), (Some(0.0), AbVerdict::Equivalent));
    assert_eq!(comparison.warnings, [AbWarning::SameRun]);
}

#[test]
fn runs_of_other_baselines_are_refused_with_what_differs() {
    let a = made("a", AbMode::Loop, &around(0.0, 0.004, 12));
    let check = |differs: AbDiffers, part: &str, edit: &dyn Fn(&mut Run, &mut AbAxes)| {
        let mut b = made("b", AbMode::Loop, &around(0.0, 0.004, 12));
        let mut axes = b.run.header.plan.ab().unwrap().clone();
        edit(&mut b.run, &mut axes);
        b.run.header.plan.axes = Axes::Ab(axes);
        for cell in &mut b.analysis.cells {
            cell.setting = b.run.header.plan.cells()[0].ab().unwrap().clone();
        }
        let refused = compared(&a, &b).unwrap_err();
        assert_eq!(refused.differs, differs);
        let said = refused.to_string();
        assert!(
            said.contains(part) && said.contains("run a: ") && said.contains("run b: "),
            "{said}"
        );
    };
    use AbDiffers::{Arguments, Arms, File, Judged, Mode, Place, Preparation, Settings, Slice};
    check(Mode, "loop", &|_, axes| axes.mode = AbMode::Command);
    check(File, "iolens keep", &|run, _| run.header.programs[0].sha256 = "ß".repeat(64));
    check(File, "none", &|run, _| run.header.programs.clear());
    check(Arguments, "7 y", &|_, axes| axes.programs[0].argv[2] = "y".to_owned());
    check(Place, "--in-place", &|_, axes| axes.in_place = true);
    check(AbDiffers::Input, "big.txt", &|_, axes| axes.input = Some("big.txt".to_owned()));
    check(Preparation, "sync", &|_, axes| axes.prepare = Some(vec!["sync".to_owned()]));
    check(Settings, "n 8", &|_, axes| axes.parameters[0].values[0] = "8".to_owned());
    check(Judged, "cpu", &|_, axes| axes.judged = vec![AbQuantity::Cpu]);
    check(Slice, "1.00 ms", &|run, _| {
        run.header.plan.schedule = iolens_model::plan::Schedule::Slices {
            slice: Nanos(1_000_000),
            discarded_rounds: 0,
            rounds: 60,
        };
    });
    check(Arms, "none", &|_, axes| axes.programs.truncate(1));
    // The only arms of two runs are compared whatever they are called, others by name.
    let mut other = made("b", AbMode::Loop, &around(0.0, 0.004, 12));
    let Axes::Ab(axes) = &mut other.run.header.plan.axes else { panic!() };
    axes.programs[1].name = "pr2".to_owned();
    assert_eq!(compared(&a, &other).unwrap().settings[0].changes[0].arms, ["pr", "pr2"]);
    let Axes::Ab(axes) = &mut other.run.header.plan.axes else { panic!() };
    axes.programs.push(External { name: "third".to_owned(), argv: vec!["x".to_owned()] });
    assert_eq!(compared(&a, &other).unwrap_err().differs, AbDiffers::Arms);
}

/// The baseline of a run whose calibration has found slices of so many operations of 6.5 µs.
pub(in crate::ab) fn sliced(id: &str, operations: u64) -> Made {
    let mut made = made(id, AbMode::Loop, &around(0.0, 0.004, 12));
    for cell in &mut made.analysis.cells {
        cell.arms = vec![AbArmFigures {
            name: "main".to_owned(),
            trials: 12,
            failed: 0,
            failure: None,
            links: 1,
            operations: operations as f64,
            op_time_ns: Some(6500.0),
            op_cpu_ns: None,
            user_share: None,
            op_faults: None,
            calls: Vec::new(),
            calls_by: None,
            calls_missing: None,
            passed_over: None,
            stray_lines: 0.0,
            stderr_bytes: 0.0,
            asking_ns: None,
            fixed_share: None,
            idle_share: None,
        }];
    }
    made
}

#[test]
fn runs_are_refused_whose_slices_became_unlike() {
    let a = sliced("a", 123);
    assert!(compared(&a, &sliced("b", 200)).is_ok());
    let refused = compared(&a, &sliced("b", 1195)).unwrap_err();
    assert_eq!(refused.differs, AbDiffers::FoundSlice);
    let said = refused.to_string();
    assert!(
        said.contains("run a: 123 operations, 800 µs\n  run b: 1195 operations, 7.77 ms"),
        "{said}"
    );
    assert!(said.ends_with("slices that are long anyway: --slice 5ms"), "{said}");
}

/// Runs of one truth, of which a table has one change: SLOWER and FASTER are seldom, and the
/// interval holds what it says.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for mode in MODES {
        let normal = &mut Normal::seeded(11);
        let (mut held, mut wrong) = (0u32, 0u32);
        const RUNS: u32 = 400;
        for nth in 0..RUNS {
            let mut one = |id, ln: f64| {
                let n = if nth % 2 == 0 { 12 } else { 48 };
                let mut draw = || {
                    // Some values lie far above, as where a neighbour was busy.
                    let tail = if normal.chance(0.15) { normal.draw().abs() * 0.05 } else { 0.0 };
                    ln + 0.01 * normal.draw() + tail
                };
                let lns: Vec<f64> = (0..n).map(|_| draw()).collect();
                made(id, mode, &lns)
            };
            let change = change(&one("a", 0.05), &one("b", 0.05));
            held += u32::from(change.pointwise.unwrap().contains(0.0));
            wrong += u32::from(matches!(change.verdict, AbVerdict::Slower | AbVerdict::Faster));
        }
        assert!(f64::from(held) >= 0.93 * f64::from(RUNS), "{mode:?}: {held}");
        assert!(wrong <= 2, "{mode:?}: {wrong}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(64)
    })]

    /// Which of two runs comes first inverts every change and decides nothing.
    #[test]
    fn exchanged_runs_say_the_opposite(
        a in prop::collection::vec(-0.2..0.2f64, 1..60),
        b in prop::collection::vec(-0.2..0.2f64, 1..60),
        mode in select(MODES.to_vec()),
    ) {
        let (a, b) = (made("a", mode, &a), made("b", mode, &b));
        let (there, back) = (change(&a, &b), change(&b, &a));
        let ln = |change: Option<f64>| change.map(f64::ln_1p);
        let opposite = |one: Option<f64>, other: Option<f64>| {
            ln(one).zip(ln(other)).map_or(one == other, |(a, b)| (a + b).abs() < 1e-9)
        };
        prop_assert!(opposite(there.change, back.change));
        let low = there.simultaneous.map(|interval| interval.low);
        prop_assert!(opposite(low, back.simultaneous.map(|interval| interval.high)));
        let expect = match there.verdict {
            AbVerdict::Faster => AbVerdict::Slower,
            AbVerdict::Slower => AbVerdict::Faster,
            verdict => verdict,
        };
        prop_assert_eq!(back.verdict, expect);
        if let (Some(change), Some(interval)) = (there.change, there.simultaneous) {
            prop_assert!(interval.low <= change + 1e-12 && change <= interval.high + 1e-12);
        }
    }

    #[test]
    fn no_number_of_a_stranger_makes_it_panic(
        a in prop::collection::vec(any::<f64>(), 0..40),
        b in prop::collection::vec(any::<f64>(), 0..40),
        mode in select(MODES.to_vec()),
        delta in select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, 0.02]),
    ) {
        let (a, mut b) = (made("a", mode, &a), made("b", mode, &b));
        b.run.header.plan.delta = delta;
        for change in compared(&a, &b).unwrap().changes() {
            let ends = change.judged.simultaneous.map(|interval| interval.low + interval.high);
            prop_assert!(ends.is_none_or(|ends| !ends.is_nan()));
        }
    }
}

/// Of every arm a quarter of the CPU time is spent where no slice counts it. Two readings of 96
/// failed, which says nothing of the others.
#[test]
fn a_reading_that_failed_does_not_hide_work_between_turns() {
    let mut run = run("aaaaaaaa", AbMode::Loop, "1");
    let cell = run.header.plan.cells().remove(0);
    for pass in 1..=24 {
        let arms = [
            ArmTime { role: Role::Baseline, ..rounds("main", &[500.0; 3]) },
            rounds("main (A/A)", &[500.0; 3]),
            rounds("pr", &[500.0; 3]),
            rounds("pr (A/A)", &[500.0; 3]),
        ];
        let mut trial = fixture::trial(pass, &cell, &arms);
        trial.duration_ns = 1000;
        for (nth, arm) in trial.arms.iter_mut().enumerate() {
            let own = trial.slices.iter().filter(|slice| slice.arm == nth);
            let cpu_ns: u64 = own.filter_map(|slice| slice.tx.judged(AbQuantity::Cpu)).sum();
            let idle_cpu_ns = Some(cpu_ns / 3);
            arm.ab = Some(Box::new(AbArm { idle_cpu_ns, ..AbArm::default() }));
        }
        run.trials.push(trial);
    }
    run.trials[7].slices[0].tx.task_clock_ns = None;
    run.trials[9].arms[2].ab.as_mut().unwrap().idle_cpu_ns = None;
    let cell = analyse(&run).unwrap().cells.remove(0);
    for arm in &cell.arms {
        let share = arm.idle_share.unwrap();
        assert!((share - 1.0 / 3.0).abs() < 1e-6, "{}: {share}", arm.name);
    }
    let contrast = &cell.judgement.contrasts[0];
    assert_eq!(contrast.verdict, AbVerdict::Invalid, "{:?}", contrast.reason);
    assert!(matches!(contrast.reason, AbReason::WorksBetween { of: 0, .. }));
}

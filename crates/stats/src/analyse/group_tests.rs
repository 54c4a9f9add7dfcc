//! Cells with several groups of arms: one trial for each in a pass, on a machine that is not
//! the same in each.

use iolens_model::outcome::Status;
use iolens_model::run::Run;

use super::tests::{cell_of, isolate, near, spoil};
use crate::analysis::Analysis;
use crate::estimate::{Interval, Verdict};
use crate::fixture::{self, arm, contrast, rounds, run_of, time};
use crate::remark::VerdictReason;
use crate::simulation::Normal;
use crate::student::StudentTable;
use crate::{analyse, analyse_for_both};

const PASSES: u32 = 10;

/// An arm of a group, and how much of the baseline's time it takes.
type Member = (&'static str, f64);

/// Passes of two groups. The machine is slower by a fifth in the second one, and slower by a
/// tenth in every other pass. `stray` says by how much a pass makes an arm stray, of which
/// group, in parts.
fn run(groups: [&[Member]; 2], mut stray: impl FnMut(u32, usize, &str) -> f64) -> Run {
    let labels = groups.iter().flat_map(|group| group.iter()).map(|(label, _)| *label);
    let labels: Vec<&str> = ["base"].into_iter().chain(labels).collect();
    let mut run = fixture::run(fixture::plan(&labels));
    let cell = run.header.plan.cells().remove(0);
    for pass in 1..=PASSES {
        for (position, group) in groups.iter().enumerate() {
            let mood = 500.0 * [1.0, 1.2][position] * [1.0, 1.1][(pass % 2) as usize];
            let members = [&[("base", 1.0)], *group, &[("base (A/A)", 1.0)]].concat();
            let arms = members.iter().map(|&(label, share)| {
                time(label, mood * share * (1.0 + stray(pass, position, label)))
            });
            let mut trial = fixture::trial(pass, &cell, &arms.collect::<Vec<_>>());
            trial.position = u32::try_from(position).expect("two");
            run.trials.push(trial);
        }
    }
    run
}

/// Every copy strays by as much as the other's, to the other side, so that over both groups
/// together they hardly stray at all.
fn opposite() -> Run {
    run([&[("a", 0.8)], &[("b", 0.5)]], |pass, group, label| {
        let side = if group == 0 { 1.0 } else { -1.0 };
        let by = 0.02 + 0.01 * f64::from(pass % 3);
        match label {
            "base (A/A)" => side * by,
            "base" => 0.0,
            "a" => 0.001 * f64::from(pass % 2),
            _ => 0.001 * f64::from(pass % 3),
        }
    })
}

/// By hand: 2 %, 3 % and 4 % in turn over ten passes, so mean 0.029, sd 0.0085 to first order.
/// Over both groups together the mean is 0 and the half-width 1.5 %.
#[test]
fn the_floor_is_that_of_a_group() {
    let analysis = analyse(&opposite());
    let check = contrast(&analysis, "base (A/A)");
    assert_eq!(check.n, PASSES);
    assert!((check.ratio - 1.0).abs() > 0.02, "{check:?}");
    assert_eq!((analysis.self_check.excluding_one, analysis.self_check.bound), (2, 1));
}

/// A copy that is off by 5 % to either side in turn: half-width 2.262 · 0.0527 / √10 = 3.8 %. The
/// two groups' together, as if those were 20 trials: 2.5 %, with which arms would be equivalent
/// at δ = 3 %.
#[test]
fn no_arm_is_equivalent_where_its_own_groups_copy_strays_more() {
    let alternating = |pass: u32, group: usize, label: &str| match label {
        "base (A/A)" => 0.05 * if pass as usize % 2 == group { 1.0 } else { -1.0 },
        "base" => 0.0,
        _ => 0.001 * (f64::from(pass % 2) - 0.5),
    };
    let analysis = analyse(&run([&[("a", 1.0)], &[("b", 1.0)]], alternating));
    let floor = analysis.self_check.floor_widest.expect("a floor");
    assert!((floor - 0.0383).abs() < 2e-3, "{floor}");
    for label in ["a", "b"] {
        let contrast = contrast(&analysis, label);
        assert_eq!(contrast.verdict, Verdict::Inconclusive, "{label}: {contrast:?}");
        let is_noisy = matches!(contrast.reason, VerdictReason::Open { noise: Some(_), .. });
        assert!(is_noisy, "{:?}", contrast.reason);
    }
}

/// Each arm is judged beside the copy that shared its trials: the second group's is quiet.
#[test]
fn an_arm_is_judged_beside_its_own_groups_floor() {
    let noisy = |pass: u32, group: usize, label: &str| match (label, group) {
        ("base (A/A)", 0) => 0.05 * if pass.is_multiple_of(2) { 1.0 } else { -1.0 },
        ("base", _) => 0.0,
        _ => 0.001 * (f64::from(pass % 2) - 0.5),
    };
    let analysis = analyse(&run([&[("a", 1.0)], &[("b", 1.0)]], noisy));
    let verdict = |label: &str| arm(&analysis, label).verdict();
    assert_eq!(verdict("a"), Some(Verdict::Inconclusive));
    assert_eq!(verdict("b"), Some(Verdict::Equivalent));
    // What stands for the cell is the widest of its groups.
    let check = contrast(&analysis, "base (A/A)");
    assert!(check.half_width().is_some_and(|half| half > 0.03), "{check:?}");
}

#[test]
fn a_baseline_in_two_groups_has_an_interval_over_passes() {
    let analysis = analyse(&opposite());
    let time = arm(&analysis, "base").figures.as_ref().expect("figures").ns_per_message;
    assert_eq!(time.n, PASSES);
    // A tenth more in every other pass is all that is left: sd 0.0502, t 2.262, √10.
    let half = time.interval.expect("an interval").half_width();
    assert!((half - 0.0366).abs() < 1e-3, "{half}");
}

/// Arms of two groups differ by 3.0 / 1.1, each known to a percent; both trials of a pass have a
/// baseline, through which they meet.
#[test]
fn arms_of_two_groups_are_compared_through_their_baselines() {
    let mut normal = Normal::seeded(25);
    let run = run([&[("a", 1.0 / 1.1)], &[("b", 1.0 / 3.0)]], |_, _, _| 0.01 * normal.draw());
    let analysis = analyse(&run);
    let pairs = &analysis.cells[0].pairs;
    let [pair] = &pairs[..] else { panic!("{pairs:?}") };
    assert_eq!((pair.n, pair.first.as_str()), (PASSES, "a"));
    let interval = pair.interval_of("b").expect("an interval");
    assert!(interval.contains(3.0 / 1.1) && interval.low > 2.6, "{interval:?}");
    assert_eq!(arm(&analysis, "b").verdict(), Some(Verdict::Faster));
}

/// The second group's machine is slower by a fifth, so that its totals would stand below those of
/// the first.
fn of_other_totals() -> Run {
    run([&[("a", 0.97)], &[("b", 0.95)]], |pass, _, label| {
        if label == "base" { 0.0 } else { 1e-4 * f64::from(pass % 2) }
    })
}

#[test]
fn what_is_shown_has_the_order_of_the_ratios() {
    let analysis = analyse(&of_other_totals());
    let time = |analysis: &Analysis, label: &str| {
        arm(analysis, label).figures.as_ref().expect("figures").ns_per_message.value
    };
    assert!(time(&analysis, "b") > time(&analysis, "base"), "totals of different trials");
    let shown = analysis.shown();
    assert!((time(&shown, "b") / time(&shown, "base") - 0.95).abs() < 1e-3);
    assert!((time(&shown, "a") / time(&shown, "base") - 0.97).abs() < 1e-3);
    assert_eq!(time(&shown, "base"), time(&analysis, "base"));
    assert_eq!(analysis.cells[0].compared_trials(), Some((PASSES, PASSES)));
}

/// The same of CPU time, of each end and per byte too: that is what tables have. The receiving
/// end spends a third of what the sending one does.
#[test]
fn cpu_time_that_is_shown_has_the_order_of_its_ratios() {
    let mut run = of_other_totals();
    for slice in run.trials.iter_mut().flat_map(|trial| &mut trial.slices) {
        let rx = slice.rx.as_mut().expect("a receiver");
        rx.task_clock_ns = rx.task_clock_ns.map(|ns| ns / 3);
    }
    let analysis = analyse(&run);
    let spent = |analysis: &Analysis, label: &str| {
        let figures = arm(analysis, label).figures.as_ref().expect("figures");
        let each = [figures.tx_cpu_ns_per_byte, figures.rx_cpu_ns_per_byte];
        each.map(|end| end.expect("CPU time"))
    };
    let of_base = spent(&analysis, "base").map(|end| end.value);
    assert!(spent(&analysis, "b")[0].value > of_base[0], "totals of different trials");
    let shown = analysis.shown();
    for (label, share) in [("base", 1.0), ("a", 0.97), ("b", 0.95)] {
        let ratio = arm(&shown, label).cpu_contrast.as_ref().map_or(1.0, |found| found.ratio);
        assert!((1.0 / ratio - share).abs() < 1e-3, "{label}: {ratio}");
        for (end, base) in spent(&shown, label).into_iter().zip(of_base) {
            assert!((end.value / base * ratio - 1.0).abs() < 1e-6, "{label}: {end:?}");
            assert!(end.interval.is_some_and(|interval| interval.contains(end.value)), "{end:?}");
        }
    }
}

/// Two arms with their pair, and the copy in each of two groups; who asks by CPU time too has all
/// of them twice.
#[test]
fn everything_that_is_claimed_shares_one_count() {
    let run = opposite();
    assert_eq!(analyse(&run).contrasts, 2 + 1 + 2);
    assert_eq!(analyse_for_both(&run).contrasts, 10);
    let analysis = analyse(&run);
    let pair = analysis.cells[0].pairs[0].simultaneous.expect("an interval");
    let contrast = contrast(&analysis, "a");
    let width = |interval: Interval, sd: f64| (interval.high / interval.low).ln() / sd;
    let of_contrast = width(contrast.simultaneous.expect("one"), contrast.sd_ln.expect("a spread"));
    let table = &mut StudentTable::new(5);
    let t = table.multipliers(PASSES).expect("multipliers").simultaneous;
    assert!((of_contrast - 2.0 * t / f64::from(PASSES).sqrt()).abs() < 1e-9, "{of_contrast}");
    assert!(pair.low < pair.high);
}

/// Five equal arms on a machine that strays by a percent, 3000 runs of them: how often anything at
/// all is called different, where contrasts and pairs share one count and where each had its own.
#[test]
fn contrasts_and_pairs_together_err_in_one_run_of_twenty() {
    const RUNS: u32 = 3000;
    let labels = ["a", "b", "c", "d", "e"];
    let plan = fixture::plan(&["base", "a", "b", "c", "d", "e"]);
    let (mut normal, own) = (Normal::seeded(251), &mut StudentTable::new(5));
    let (mut together, mut apart) = (0, 0);
    for _ in 0..RUNS {
        let run = run_of(plan.clone(), 12, |_, _, _| {
            let mut arms = vec![rounds("base", &[500.0])];
            arms.extend(labels.map(|label| rounds(label, &[500.0 * (0.01 * normal.draw()).exp()])));
            arms
        });
        let cell = analyse(&run).cells.remove(0);
        let is_off = |interval: Option<Interval>| !interval.expect("an interval").contains(1.0);
        let contrasts: Vec<_> = cell.arms.iter().filter_map(|arm| arm.contrast.as_ref()).collect();
        let pairs = cell.pairs.iter().any(|pair| is_off(pair.simultaneous));
        together += u32::from(pairs || contrasts.iter().any(|c| is_off(c.simultaneous)));
        let half = own.multipliers(12).expect("multipliers").simultaneous / 12f64.sqrt();
        let with_own = contrasts.iter().any(|c| c.ratio.ln().abs() > half * c.sd_ln.expect("sd"));
        apart += u32::from(pairs || with_own);
    }
    let share = |hits: u32| 100.0 * f64::from(hits) / f64::from(RUNS);
    println!("one count: {:.2}%, one each: {:.2}%", share(together), share(apart));
    assert!(share(together) <= 5.0 && share(apart) > 5.0, "{together} {apart}");
}

#[test]
fn an_arm_whose_repetition_is_refused_has_no_partner_in_that_pass() {
    let mut run = fixture::passes(&[1.25; 4]);
    let mut again = run.trials[2].clone();
    again.position = 1;
    spoil(&mut run.trials[2], "base (A/A)");
    spoil(&mut again, "arm");
    run.trials.insert(3, again);
    let analysis = analyse(&run);
    let n = |label| contrast(&analysis, label).n;
    assert_eq!((n("arm"), n("base (A/A)")), (3, 4));
    let unused = crate::unused(&run);
    let both = unused.iter().filter(|arms| arms[0].is_none() && arms[1].is_none()).count();
    assert_eq!(both, 3);
}

#[test]
fn groups_of_a_cell_are_not_repetitions() {
    let mut run = fixture::run(fixture::plan(&["base", "a", "b"]));
    let cell = cell_of(&run);
    for pass in 1..=3 {
        run.trials.push(fixture::trial(pass, &cell, &[time("base", 500.0), time("a", 400.0)]));
        run.trials.push(fixture::trial(pass, &cell, &[time("base", 600.0), time("b", 400.0)]));
    }
    let analysis = analyse(&run);
    assert_eq!((analysis.passes, analysis.cells[0].trials_used), (3, 6));
    let ratio = |label| contrast(&analysis, label).ratio;
    near(ratio("a"), 1.25);
    near(ratio("b"), 1.5);
    assert_eq!(analysis.rejected, []);
    assert_eq!(arm(&analysis, "base").figures.as_ref().expect("figures").ns_per_message.n, 3);
}

/// Arms that are measured alone, and their baseline too: what refuses it refuses shared trials; the
/// passes in which it happened to be usable would be a selection here too.
#[test]
fn a_baseline_refused_in_most_isolated_passes_leaves_nothing_to_compare_with() {
    let found = |isolate_all: bool, passes: &[u32]| {
        let mut run = match isolate_all {
            true => fixture::run(fixture::plan(&["base", "arm"])),
            false => fixture::passes(&[1.25; 5]),
        };
        run.header.plan.isolate = isolate_all;
        isolate(&mut run, 5);
        let bases = run.trials.iter_mut().filter(|t| t.isolated && t.arms[0].arm.label == "base");
        bases.filter(|trial| passes.contains(&trial.pass)).for_each(|trial| spoil(trial, "base"));
        let analysis = analyse(&run);
        let found = arm(&analysis, "arm");
        assert_eq!(found.status, Status::Ok, "its own numbers can be used");
        let contrast = if isolate_all { &found.contrast } else { &found.isolated };
        contrast.clone().expect("a contrast")
    };
    for isolate_all in [true, false] {
        let contrast = found(isolate_all, &[1, 2, 3]);
        assert_eq!((contrast.n, contrast.verdict), (2, Verdict::Invalid), "{isolate_all}");
        let VerdictReason::BaselineUnusable(why) = contrast.reason else {
            panic!("{:?}", contrast.reason)
        };
        assert!(why.reason.starts_with("3 of 5 passes cannot be used: received bytes"), "{why:?}");
        let some = found(isolate_all, &[1, 2]);
        assert_eq!((some.n, some.verdict), (3, Verdict::Faster), "{isolate_all}");
    }
}

//! Known answers: values, intervals, the order of the rules, the checks of copies.

use iolens_model::ab::AbQuantity;

use super::sample::{Values, sign_rank};
use super::trimmed::{TrialValue, TrimmedMean};
use super::*;

/// A trial of one round: by arm and copy, what an operation took, ns.
pub(super) fn trial(arms: &[&[f64]]) -> AbTrial {
    let arms: Vec<Vec<Vec<Option<f64>>>> =
        arms.iter().map(|copies| copies.iter().map(|&ns| vec![Some(ns)]).collect()).collect();
    rounds(&arms)
}

/// A trial: by arm, copy and round, what an operation took, ns.
fn rounds(arms: &[Vec<Vec<Option<f64>>>]) -> AbTrial {
    let costs = |rounds: &Vec<Option<f64>>| {
        rounds.iter().map(|&ns| AbCost { op_time_ns: ns, ..AbCost::default() }).collect()
    };
    let arm = |copies: &Vec<Vec<Option<f64>>>| AbArmRounds {
        copies: std::array::from_fn(|i| copies.get(i).map(costs).unwrap_or_default()),
        ..AbArmRounds::default()
    };
    AbTrial { arms: arms.iter().map(arm).collect(), first: 0 }
}

/// Time alone, in trials, δ = 2 %, one claim.
pub(super) fn input(allowances: &[Option<f64>]) -> AbInput<'_> {
    AbInput {
        unit: AbUnit::Trial,
        by_link: false,
        trials: &[],
        allowances,
        idle: &[],
        judged: &[AbQuantity::Time],
        delta: 0.02,
        claims: 1,
        budget_units: None,
    }
}

/// The same of trials of the baseline and one arm, without allowances.
pub(super) fn two_arms(trials: &[AbTrial]) -> AbInput<'_> {
    AbInput { trials, ..input(&[None; 2]) }
}

/// Logarithms of which half lie at mean − step and half at mean + step, so that this is exactly
/// their mean and their standard deviation.
fn exact(n: u32, mean: f64, sd: f64) -> Vec<f64> {
    assert!(n.is_multiple_of(2));
    let step = sd * (f64::from(n - 1) / f64::from(n)).sqrt();
    (0..n).map(|i| if i % 2 == 0 { mean - step } else { mean + step }).collect()
}

/// Trials whose arm has these logarithms against a baseline that never changes.
fn one_pair(lns: &[f64]) -> Vec<AbTrial> {
    lns.iter().map(|ln| trial(&[&[1.0], &[ln.exp()]])).collect()
}

/// The same, with a copy of the baseline that has the second ones.
fn with_copy(lns: &[f64], of_copy: &[f64]) -> Vec<AbTrial> {
    let pairs = lns.iter().zip(of_copy);
    pairs.map(|(ln, copy)| trial(&[&[1.0, copy.exp()], &[(ln + copy / 2.0).exp()]])).collect()
}

fn near(value: f64, expect: f64, within: f64) {
    assert!((value - expect).abs() <= within, "{value}, not {expect}");
}

fn first(input: &AbInput<'_>, look: AbLook) -> AbContrast {
    judge(input, look).contrasts.remove(0)
}

/// Triola, Elementary Statistics, table A-7 (critical values for the sign test): the rank is one
/// more. 6 values at 5 % by hand: both extremes miss with 2/64.
#[test]
fn ranks_of_the_sign_test_agree_with_a_table() {
    let check = |n, error, rank| assert_eq!(sign_rank(n, error), rank, "{n} {error}");
    check(5, 0.05, None);
    for (n, critical) in [(6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (17, 4), (20, 5), (25, 7)] {
        check(n, 0.05, Some(critical + 1));
    }
    check(7, 0.01, None);
    for (n, critical) in [(8, 0), (12, 1), (15, 2), (20, 3), (25, 5)] {
        check(n, 0.01, Some(critical + 1));
    }
    check(10, 0.001, None);
    check(11, 0.001, Some(1));
    check(0, 0.05, None);
    check(30, f64::NAN, None);
}

/// Against P(X < k), summed term by term.
#[test]
fn ranks_of_the_sign_test_are_the_largest_that_fit() {
    for n in [12u32, 30, 61, 120, 600] {
        for error in [0.09, 0.05, 0.045, 0.001, 0.0001] {
            let misses = |rank: u32| {
                let mut term = 0.5f64.powf(f64::from(n));
                let mut sum = 0.0;
                for i in 0..rank {
                    sum += 2.0 * term;
                    term *= f64::from(n - i) / f64::from(i + 1);
                }
                sum
            };
            let Some(rank) = sign_rank(n, error) else {
                assert!(misses(1) > error, "{n} {error}");
                continue;
            };
            assert!(misses(rank) <= error && misses(rank + 1) > error, "{n} {error} {rank}");
        }
    }
}

fn of_trials(n: u32, mean: f64, sd: f64) -> Option<TrimmedMean> {
    let trial = |ln| TrialValue { ln, first: 0, lean: None };
    TrimmedMean::of(&exact(n, mean, sd).into_iter().map(trial).collect::<Vec<_>>())
}

/// Of 12 trials 10 are left, whose 12 winsorized squares are 11·0.01². NIST/SEMATECH e-Handbook,
/// table 1.3.6.7.2: t₉ at 0.975 is 2.262, at 0.999 4.297.
#[test]
fn intervals_of_trials_are_those_of_student() {
    let values = Values::Trials(of_trials(12, 0.05, 0.01));
    let sample = Sample { units: 12, values };
    for (error, t) in [(0.05, 2.262), (0.002, 4.297)] {
        let interval = sample.interval(error).expect("an interval");
        let half = t * 0.01 * (11.0f64 / 90.0).sqrt();
        near(interval.low, 0.05 - half, 2e-6);
        near(interval.high, 0.05 + half, 2e-6);
    }
    let trials = one_pair(&exact(12, 0.05, 0.01));
    let contrast = first(&two_arms(&trials), AbLook::Early);
    near(contrast.change.expect("a change"), 0.05f64.exp() - 1.0, 1e-12);
    let pointwise = contrast.pointwise.expect("an interval");
    let half = 2.262 * 0.01 * (11.0f64 / 90.0).sqrt();
    near(pointwise.low, (0.05 - half).exp() - 1.0, 2e-6);
}

/// 1 to 30 %: the interval of 95 % goes from the 10th to the 21st.
#[test]
fn intervals_of_rounds_are_order_statistics() {
    let lns: Vec<f64> = (1..=30).map(|i| (f64::from(i) / 100.0).ln_1p()).collect();
    let trials = one_pair(&lns);
    let input = AbInput { unit: AbUnit::Round, ..two_arms(&trials) };
    let contrast = first(&input, AbLook::Last);
    let interval = contrast.pointwise.expect("an interval");
    assert_eq!(contrast.units, 30);
    near(interval.low, 0.10, 1e-12);
    near(interval.high, 0.21, 1e-12);
    near(contrast.change.expect("a change").ln_1p(), f64::midpoint(lns[14], lns[15]), 1e-12);
}

#[test]
fn a_trial_is_the_median_of_the_rounds_that_have_both() {
    let e = |ln: f64| Some(ln.exp());
    let base = vec![vec![e(0.0), None, e(0.0), e(1.0), Some(0.0)]];
    let arm = vec![vec![e(0.1), e(9.0), e(0.3), e(1.2), e(5.0)]];
    let trials = [rounds(&[base, arm])];
    let sample = Sample::of_arms(&two_arms(&trials), 1, AbQuantity::Time);
    assert_eq!(sample.units, 1);
    near(sample.centre().expect("a centre"), 0.2, 1e-12);
}

/// Medians are averaged, not rounds: that of the mean of both copies would be 0.15.
#[test]
fn a_trial_is_the_mean_over_pairs_of_copies() {
    let e = |lns: [f64; 3]| lns.iter().map(|ln| Some(ln.exp())).collect::<Vec<_>>();
    let base = vec![e([0.0; 3])];
    let arm = vec![e([0.1, 0.0, 0.4]), e([0.0, 0.3, 0.2])];
    let trials = [rounds(&[base.clone(), arm.clone()]), rounds(&[base, arm[..1].to_vec()])];
    let centre = |trials: &[AbTrial]| {
        let input = two_arms(trials);
        Sample::of_arms(&input, 1, AbQuantity::Time).centre().expect("a centre")
    };
    near(centre(&trials[..1]), 0.15, 1e-12);
    near(centre(&trials[1..]), 0.1, 1e-12);
}

/// A round is one unit and two values; a copy that the baseline has alone is none.
#[test]
fn rounds_are_compared_by_pairs() {
    let sample = |trials: &[AbTrial]| {
        let input = AbInput { unit: AbUnit::Round, ..two_arms(trials) };
        let sample = Sample::of_arms(&input, 1, AbQuantity::Time);
        let Values::Pairs(pairs) = sample.values else { panic!("{sample:?}") };
        (sample.units, pairs.len())
    };
    assert_eq!(sample(&vec![trial(&[&[1.0, 1.0], &[2.0, 2.0]]); 3]), (3, 6));
    assert_eq!(sample(&vec![trial(&[&[1.0, 1.0], &[2.0]]); 3]), (3, 3));
    assert_eq!(sample(&[trial(&[&[1.0, 1.0], &[f64::NAN, 2.0]])]), (1, 1));
    assert_eq!(sample(&[trial(&[&[1.0, f64::INFINITY], &[-1.0, 2.0]])]), (0, 0));
}

#[test]
fn looks_double() {
    let looks = |unit: AbUnit| [0, 12, 30, 31, 100, 384].map(|units| unit.next_look(units));
    assert_eq!(looks(AbUnit::Trial), [12, 24, 48, 48, 192, 768]);
    assert_eq!(looks(AbUnit::Round), [30, 30, 60, 60, 120, 480]);
    assert_eq!(AbUnit::Trial.next_look(u32::MAX), u32::MAX);
    assert_eq!(AbUnit::of(AbMode::Loop), AbUnit::Trial);
    assert_eq!(AbUnit::of(AbMode::Command), AbUnit::Round);
}

/// A slice takes 25 µs and 1 µs for each operation, 3% more of the slower program.
#[test]
fn a_change_reads_as_it_is_whatever_of_a_slice_does_not_grow() {
    let cost = |operations: f64, op_ns: f64| AbCost {
        op_time_ns: Some((25_000.0 + operations * op_ns) / operations),
        op_cpu_ns: None,
        operations,
    };
    let read = |operations: f64, fixed_share: f64| {
        let arm = |cost: AbCost| AbArmRounds {
            copies: [vec![cost; 5], vec![]],
            fixed_share,
            ..AbArmRounds::default()
        };
        let arms = vec![arm(cost(100.0, 1000.0)), arm(cost(operations, 1030.0))];
        let trials = vec![AbTrial { arms, first: 0 }; 12];
        let change = first(&two_arms(&trials), AbLook::Last).change;
        (change.unwrap() * 1e4).round() / 100.0
    };
    // Equally long slices show it whole, whatever is known.
    assert_eq!([read(97.0, 0.0), read(97.0, 0.2)], [3.02, 3.0]);
    // Of equally many operations a fifth of a slice hides a fifth.
    assert_eq!([read(100.0, 0.0), read(100.0, 0.2)], [2.4, 3.01]);
}

/// 24 trials at the last look, δ = 2 %: t₁₇ is 2.16 at 97.75 % and 1.80 at 95.5 %, so that the
/// half-widths are 0.59 and 0.49 times the spread.
#[test]
fn rules_are_tried_in_order() {
    let check = |mean: f64, sd: f64, allowance: Option<f64>, expect: AbVerdict| {
        let trials = one_pair(&exact(24, mean.ln_1p(), sd));
        let allowances = [None, allowance];
        let contrast = first(&AbInput { trials: &trials, ..input(&allowances) }, AbLook::Last);
        assert_eq!(contrast.verdict, expect, "{mean} {sd}: {contrast:?}");
        contrast
    };
    check(0.0, 0.01, None, AbVerdict::Equivalent);
    // Excludes no change, and yet EQUIVALENT comes first.
    check(0.01, 0.01, None, AbVerdict::Equivalent);
    check(0.05, 0.01, None, AbVerdict::Slower);
    check(-0.05, 0.01, None, AbVerdict::Faster);
    check(0.02, 0.01, None, AbVerdict::Small);
    check(-0.02, 0.01, None, AbVerdict::Small);
    check(0.01, 0.05, None, AbVerdict::Inconclusive);
    check(0.05, 0.01, Some(0.01), AbVerdict::Slower);
    assert!(!check(0.05, 0.01, Some(0.05), AbVerdict::Build).is_decided());
    assert!(check(0.035, 0.01, Some(0.05), AbVerdict::Build).is_decided());
    assert!(check(-0.035, 0.01, Some(0.05), AbVerdict::Build).is_decided());
    check(0.08, 0.01, Some(0.05), AbVerdict::Slower);
    check(-0.08, 0.01, Some(0.05), AbVerdict::Faster);
    check(0.01, 0.01, Some(0.05), AbVerdict::Equivalent);
    check(0.02, 0.01, Some(0.05), AbVerdict::Small);
}

#[test]
fn layout_explains_five_percent_of_user_time() {
    assert_eq!(layout_allowance(false, Some(0.5)), None);
    near(layout_allowance(true, Some(0.12)).expect("an allowance"), 0.0084, 1e-12);
    for unknown in [None, Some(f64::NAN), Some(1.5), Some(-0.1)] {
        assert_eq!(layout_allowance(true, unknown), Some(0.07));
    }
}

#[test]
fn fewer_than_twelve_units_have_no_verdict() {
    for unit in [AbUnit::Trial, AbUnit::Round] {
        let trials = one_pair(&exact(10, 0.5, 0.001));
        let input = AbInput { unit, ..two_arms(&trials) };
        let contrast = first(&input, AbLook::Last);
        assert_eq!(contrast.verdict, AbVerdict::Inconclusive);
        assert_eq!(contrast.reason, AbReason::TooFew { units: 10, least: 12 });
        assert_eq!(contrast.power.now, None);
        assert!(contrast.pointwise.is_some(), "an interval is told all the same");
    }
}

/// Sign intervals of 12 values reach 99.95 %.
#[test]
fn a_level_that_no_rank_reaches_decides_nothing() {
    let trials = one_pair(&exact(12, 0.5, 0.001));
    let input = AbInput { unit: AbUnit::Round, claims: 4, ..two_arms(&trials) };
    assert_eq!(first(&input, AbLook::Early).reason, AbReason::NoInterval { units: 12 });
    assert_eq!(first(&input, AbLook::Last).verdict, AbVerdict::Slower);
}

#[test]
fn early_looks_and_more_claims_ask_for_more() {
    // 2.9 standard errors beyond δ: the last look asks for t₁₁ = 2.3, an early one for 4.4, and
    // eight claims at the last for 3.4.
    let trials = one_pair(&exact(12, 0.02f64.ln_1p() + 2.9 * 0.01 / 12f64.sqrt(), 0.01));
    let verdict = |claims, look| first(&AbInput { claims, ..two_arms(&trials) }, look).verdict;
    assert_eq!(verdict(1, AbLook::Last), AbVerdict::Slower);
    assert_eq!(verdict(1, AbLook::Early), AbVerdict::Small);
    assert_eq!(verdict(8, AbLook::Last), AbVerdict::Small);
    let even = one_pair(&exact(12, 0.0, 0.012));
    let verdict = |claims, look| first(&AbInput { claims, ..two_arms(&even) }, look).verdict;
    // δ is 5.7 standard errors: EQUIVALENT takes t₁₁ = 4.0, and with forty claims 6.2 at an early
    // look and 4.0 at the last.
    assert_eq!(verdict(1, AbLook::Early), AbVerdict::Equivalent);
    assert_eq!(verdict(40, AbLook::Early), AbVerdict::Inconclusive);
    assert_eq!(verdict(40, AbLook::Last), AbVerdict::Equivalent);
}

/// Bonferroni: J claims at a look are one claim at a J-th of its error.
#[test]
fn errors_are_divided_among_claims() {
    let trials = one_pair(&exact(12, 0.0, 0.01));
    let half = |claims| {
        let input = AbInput { claims, ..two_arms(&trials) };
        first(&input, AbLook::Last).simultaneous.expect("an interval").high.ln_1p()
    };
    let sample = Sample { units: 12, values: Values::Trials(of_trials(12, 0.0, 0.01)) };
    let alone = |error| sample.interval(error).expect("an interval").high;
    near(half(1), alone(0.045), 1e-12);
    near(half(6), alone(0.0075), 1e-12);
    near(half(0), alone(0.045), 1e-12);
}

#[test]
fn copies_that_differ_refuse_every_contrast_of_their_arm() {
    let (arm, copy) = (exact(24, 0.3, 0.01), exact(24, 0.02, 0.002));
    let trials: Vec<AbTrial> = arm
        .iter()
        .zip(&copy)
        .map(|(ln, copy)| {
            let ns = ln.exp();
            trial(&[&[1.0, 1.0], &[ns, ns], &[ns, (ln + copy).exp()]])
        })
        .collect();
    let judgement = judge(&AbInput { trials: &trials, ..input(&[None; 3]) }, AbLook::Last);
    let verdicts: Vec<AbVerdict> = judgement.contrasts.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [AbVerdict::Slower, AbVerdict::Invalid]);
    let reason = &judgement.contrasts[1].reason;
    assert!(
        matches!(reason, AbReason::CopiesDiffer { of: 2, bound, .. } if *bound == 0.01),
        "{reason:?}"
    );
    assert!(!judgement.decided());
    let differ: Vec<bool> = judgement.copies.iter().map(|copies| copies.differ).collect();
    assert_eq!(differ, [false, false, true]);
}

#[test]
fn a_baseline_whose_copy_differs_refuses_all() {
    let trials = with_copy(&exact(24, 0.3, 0.01), &exact(24, 0.02, 0.002));
    let contrast = first(&two_arms(&trials), AbLook::Last);
    assert_eq!(contrast.verdict, AbVerdict::Invalid);
    assert!(matches!(contrast.reason, AbReason::CopiesDiffer { of: 0, .. }));
    // By less than δ/2 it is told and not acted on.
    let trials = with_copy(&exact(24, 0.3, 0.01), &exact(24, 0.005, 0.002));
    let judgement = judge(&two_arms(&trials), AbLook::Last);
    assert_eq!(judgement.contrasts[0].verdict, AbVerdict::Slower);
    assert!(judgement.copies[0].excludes_no_change && !judgement.copies[0].differ);
}

/// Of 24 trials 18 are left, whose winsorized squares are 23·0.03²; t₁₇ at 99.95 % is 3.965.
#[test]
fn noisy_copies_keep_anything_from_equivalent() {
    let judged = |ln: f64, of_copy: f64| {
        let trials = with_copy(&exact(24, ln, 0.005), &exact(24, 0.0, of_copy));
        first(&two_arms(&trials), AbLook::Last)
    };
    assert_eq!(judged(0.0, 0.01).verdict, AbVerdict::Equivalent);
    let open = judged(0.0, 0.03);
    let AbReason::Open { noise: Some(noise), .. } = open.reason else { panic!("{open:?}") };
    assert_eq!((open.verdict, noise.of), (AbVerdict::Inconclusive, 0));
    near(noise.half_width.expect("a width").ln_1p(), 3.965 * 0.03 * (23.0f64 / 306.0).sqrt(), 1e-5);
    assert_eq!(judged(0.01, 0.03).verdict, AbVerdict::Small);
    assert_eq!(judged(0.10, 0.03).verdict, AbVerdict::Slower);
}

#[test]
fn what_is_not_there_is_missing_with_a_reason() {
    let mut trials = one_pair(&exact(12, 0.3, 0.01));
    for trial in &mut trials {
        trial.arms.push(AbArmRounds::default());
        trial.arms[1].copies[0][0].op_cpu_ns = Some(1.0);
    }
    let alone = AbArmRounds {
        copies: [vec![AbCost { op_time_ns: Some(1.0), ..AbCost::default() }], vec![]],
        ..AbArmRounds::default()
    };
    let none = AbArmRounds::default();
    trials.push(AbTrial { arms: vec![none.clone(), none.clone(), none, alone], first: 0 });
    let judged = [AbQuantity::Time, AbQuantity::Cpu];
    let input = AbInput { trials: &trials, judged: &judged, ..input(&[None; 4]) };
    let judgement = judge(&input, AbLook::Early);
    let missing: Vec<(usize, AbMissingWhy)> =
        judgement.missing.iter().map(|missing| (missing.arm, missing.why)).collect();
    let of_baseline = AbMissingWhy::OfBaseline;
    let expect = [
        (2, AbMissingWhy::OfArm),
        (3, AbMissingWhy::NeverTogether),
        (1, of_baseline),
        (2, of_baseline),
        (3, of_baseline),
    ];
    assert_eq!(missing, expect);
    assert_eq!(judgement.contrasts.len(), 1);
    assert!(judgement.decided(), "what can be compared is decided");
    assert!(!judge(&super::tests::input(&[]), AbLook::Last).decided());
}

#[test]
fn who_works_between_turns_has_no_verdict() {
    let trials = one_pair(&exact(12, 0.05f64.ln_1p(), 0.004));
    let judged = |idle: &[f64]| judge(&AbInput { idle, ..two_arms(&trials) }, AbLook::Early);
    assert_eq!(judged(&[0.05, 0.05]).contrasts[0].verdict, AbVerdict::Slower);
    for (at, idle) in [[0.06, 0.0], [0.0, 0.06]].iter().enumerate() {
        let judgement = judged(idle);
        let contrast = &judgement.contrasts[0];
        assert_eq!(contrast.verdict, AbVerdict::Invalid);
        let reason = &contrast.reason;
        assert!(matches!(reason, AbReason::WorksBetween { of, .. } if *of == at), "{reason:?}");
        assert!(judgement.decided(), "more trials change nothing");
    }
}

#[test]
fn a_run_ends_when_all_is_decided() {
    let trials = |of_third: f64| -> Vec<AbTrial> {
        let lns = exact(24, 0.3, 0.01);
        lns.iter().map(|ln| trial(&[&[1.0], &[ln.exp()], &[(ln * of_third).exp()]])).collect()
    };
    let decided = |trials: &[AbTrial]| {
        judge(&AbInput { trials, ..input(&[None; 3]) }, AbLook::Early).decided()
    };
    assert!(decided(&trials(0.5)));
    assert!(decided(&trials(0.0)));
    assert!(!decided(&trials(0.066)));
}

/// The line lies beyond the bound, shrinks with the budget, and follows the spread.
#[test]
fn power_grows_with_units() {
    for unit in [AbUnit::Trial, AbUnit::Round] {
        let stated = |sd: f64, budget: u32, allowance: Option<f64>| {
            let lns: Vec<f64> = (0..48).map(|i| sd * ((f64::from(i) + 0.5) / 24.0 - 1.0)).collect();
            let trials = one_pair(&lns);
            let allowances = [None, allowance];
            let budget_units = Some(budget);
            let input = AbInput { unit, trials: &trials, budget_units, ..input(&allowances) };
            first(&input, AbLook::Early).power
        };
        let power = stated(0.01, 480, None);
        let (now, later) = (power.now.expect("power"), power.at_budget.expect("power"));
        assert!(0.02 < later && later < now && now < 0.04, "{power:?}");
        let wider = stated(0.03, 480, None).at_budget.expect("power");
        near(wider.ln_1p() - 0.02f64.ln_1p(), 3.0 * (later.ln_1p() - 0.02f64.ln_1p()), 1e-9);
        assert!(stated(0.01, 480, Some(0.05)).at_budget.expect("power") > 0.05);
        assert_eq!(stated(0.01, 4, None).at_budget, None);
    }
}

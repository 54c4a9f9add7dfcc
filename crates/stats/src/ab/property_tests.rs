//! What holds for every input, whatever is in it.

use iolens_model::ab::AbQuantity;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Times, and what is none.
fn any_ns() -> impl Strategy<Value = Option<f64>> {
    let strange = select(vec![f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MAX, f64::MIN_POSITIVE]);
    prop_oneof![
        6 => (1.0..1e9f64).prop_map(Some),
        1 => strange.prop_map(Some),
        1 => Just(None),
    ]
}

fn any_cost() -> impl Strategy<Value = AbCost> {
    (any_ns(), any_ns(), 0.0..1e6).prop_map(|(op_time_ns, op_cpu_ns, operations)| AbCost {
        op_time_ns,
        op_cpu_ns,
        operations,
    })
}

fn any_trial() -> impl Strategy<Value = AbTrial> {
    let rounds = || prop::collection::vec(any_cost(), 0..4);
    let link = || prop::option::of(0..9u32);
    let arm = (rounds(), rounds(), link());
    let arm = arm.prop_map(|(arm, copy, link)| AbArmRounds {
        copies: [arm, copy],
        link,
        ..AbArmRounds::default()
    });
    prop::collection::vec(arm, 0..4).prop_map(|arms| AbTrial { arms, first: 0 })
}

fn any_fraction() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..0.2f64,
        1 => select(vec![f64::NAN, f64::INFINITY, -2.0, -1.0, f64::MAX]),
    ]
}

fn unit() -> impl Strategy<Value = AbUnit> {
    select(vec![AbUnit::Trial, AbUnit::Round])
}

/// Both quantities of these trials.
fn input<'a>(unit: AbUnit, trials: &'a [AbTrial], allowances: &'a [Option<f64>]) -> AbInput<'a> {
    AbInput {
        unit,
        trials,
        judged: AbQuantity::ALL,
        delta: 0.03,
        claims: 2,
        budget_units: Some(200),
        ..tests::input(allowances)
    }
}

/// Trials of two arms that have a copy each, from times.
fn pairs() -> impl Strategy<Value = Vec<[f64; 4]>> {
    prop::collection::vec(prop::array::uniform4(100.0..110.0f64), 12..40)
}

fn trials(times: &[[f64; 4]], place: [usize; 4], scale: f64) -> Vec<AbTrial> {
    let cost = |ns: f64| {
        vec![AbCost { op_time_ns: Some(ns * scale), op_cpu_ns: Some(ns), ..AbCost::default() }]
    };
    let arm = |ns: &[f64; 4], [a, b]: [usize; 2]| AbArmRounds {
        copies: [cost(ns[place[a]]), cost(ns[place[b]])],
        ..AbArmRounds::default()
    };
    times
        .iter()
        .map(|ns| AbTrial { arms: vec![arm(ns, [0, 1]), arm(ns, [2, 3])], first: 0 })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(64)
    })]

    #[test]
    fn nothing_panics(
        trials in prop::collection::vec(any_trial(), 0..40),
        unit in unit(),
        by_link in any::<bool>(),
        allowances in prop::collection::vec(prop::option::of(any_fraction()), 0..4),
        delta in any_fraction(),
        claims in select(vec![0, 1, 7, u32::MAX]),
        budget_units in prop::option::of(select(vec![0, 1, 12, 5000, u32::MAX])),
        is_last in any::<bool>(),
    ) {
        let look = if is_last { AbLook::Last } else { AbLook::Early };
        let rest = input(unit, &trials, &allowances);
        let judgement = judge(&AbInput { by_link, delta, claims, budget_units, ..rest }, look);
        let compared = allowances.len().saturating_sub(1) * 2;
        prop_assert_eq!(judgement.contrasts.len() + judgement.missing.len(), compared);
        for contrast in &judgement.contrasts {
            let is_claim =
                !matches!(contrast.verdict, AbVerdict::Inconclusive | AbVerdict::Invalid);
            prop_assert!(!is_claim || contrast.units >= AB_UNITS_MIN, "{:?}", contrast);
            for seen in [contrast.power.now, contrast.power.at_budget].into_iter().flatten() {
                prop_assert!(seen.is_finite() && seen >= 0.0);
            }
        }
    }

    /// The baseline and the arm exchanged: changes are inverted, FASTER is SLOWER.
    #[test]
    fn exchanged_arms_say_the_opposite(
        times in pairs(), factor in select(vec![0.8, 1.0, 1.25]), unit in unit(),
    ) {
        let slowed = |&[a, b, c, d]: &[f64; 4]| [a, b, c * factor, d * factor];
        let times: Vec<[f64; 4]> = times.iter().map(slowed).collect();
        let (one, other) = (trials(&times, [0, 1, 2, 3], 1.0), trials(&times, [2, 3, 0, 1], 1.0));
        let judged = |trials: &[AbTrial]| judge(&input(unit, trials, &[None; 2]), AbLook::Last);
        let (one, other) = (judged(&one), judged(&other));
        prop_assert_eq!((one.contrasts.len(), other.contrasts.len()), (2, 2));
        for (one, other) in one.contrasts.iter().zip(&other.contrasts) {
            let ln = |contrast: &AbContrast| contrast.change.expect("a change").ln_1p();
            prop_assert!((ln(one) + ln(other)).abs() < 1e-9);
            let expect = match one.verdict {
                AbVerdict::Faster => AbVerdict::Slower,
                AbVerdict::Slower => AbVerdict::Faster,
                verdict => verdict,
            };
            prop_assert_eq!(other.verdict, expect);
        }
    }

    /// Another unit of time, or a faster machine, changes no ratio.
    #[test]
    fn the_scale_of_times_does_not_matter(times in pairs(), scale in 1e-3..1e3f64, unit in unit()) {
        let trials = trials(&times, [0, 1, 2, 3], scale);
        let judgement = judge(&input(unit, &trials, &[None; 2]), AbLook::Last);
        let [time, cpu] = &judgement.contrasts[..] else { panic!("{judgement:?}") };
        prop_assert!((time.change.expect("a change") - cpu.change.expect("a change")).abs() < 1e-9);
        prop_assert_eq!(time.verdict, cpu.verdict);
    }

    /// Intervals hold the centre, and a stricter one the other.
    #[test]
    fn intervals_are_nested(times in pairs(), unit in unit()) {
        let trials = trials(&times, [0, 1, 2, 3], 1.0);
        let judged = |look| judge(&input(unit, &trials, &[None; 2]), look).contrasts.remove(0);
        let (early, last) = (judged(AbLook::Early), judged(AbLook::Last));
        let change = early.change.expect("a change");
        if let (Some(early), Some(last)) = (early.simultaneous, last.simultaneous) {
            prop_assert!(early.low <= last.low && last.high <= early.high);
            prop_assert!(last.low <= change + 1e-12 && change <= last.high + 1e-12);
        }
    }
}

//! What holds for every run, whatever is in it.

use iolens_model::arm::Role;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::Schedule;
use iolens_model::run::{Run, RunEnd, StoppedBy};
use iolens_model::trial::SliceKind;
use iolens_model::units::{Bytes, Nanos};
use proptest::prelude::*;
use proptest::sample::select;

use crate::analysis::{Analysis, ArmAnalysis, Contrast};
use crate::compare::{Absolute, Change, Side, compare};
use crate::estimate::{Estimate, Interval, Verdict};
use crate::fixture::{self, ArmTime, arm, contrast, rounds};
use crate::{Check, PassSummary, analyse, decide, invalid_arms, unmet};

/// Times per message of `base`, `arm` and the self-check, per pass and round.
fn times() -> impl Strategy<Value = Vec<Vec<[f64; 3]>>> {
    let round = [200.0..2000.0f64, 200.0..2000.0, 200.0..2000.0];
    prop::collection::vec(prop::collection::vec(round, 1..6), 1..8)
}

/// A run of these times, all multiplied, with either arm as the baseline.
fn run_of(passes: &[Vec<[f64; 3]>], scale: f64, baseline: usize) -> Run {
    let count = u32::try_from(passes.len()).expect("a few");
    fixture::run_of(fixture::plan(&["base", "arm"]), count, |pass, _, _| {
        let of_pass = &passes[pass as usize - 1];
        let column = |i: usize| -> Vec<f64> { of_pass.iter().map(|r| r[i] * scale).collect() };
        [
            rounds("base", &column(baseline)),
            rounds("arm", &column(1 - baseline)),
            rounds("base (A/A)", &column(2)),
        ]
    })
}

/// Equal to what rounding times to whole nanoseconds leaves.
fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-4 || (a.is_infinite() && b.is_infinite()) || a == b
}

fn near_interval(a: Option<Interval>, b: Option<Interval>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => near(a.low, b.low) && near(a.high, b.high),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn any_status() -> impl Strategy<Value = Status> {
    prop_oneof![
        12 => Just(Status::Ok),
        1 => Just(Status::Invalid),
        1 => Just(Status::Failed),
        1 => Just(Status::Skipped),
        1 => Just(Status::Interrupted),
    ]
}

/// An arm with the part that its label promises, or any other.
fn any_arm() -> impl Strategy<Value = (ArmTime, Status)> {
    let labels = vec!["base", "arm", "other", "base (A/A)", "memcpy"];
    let roles = vec![Role::Baseline, Role::Compared, Role::SelfCheck, Role::Control];
    let role = prop_oneof![9 => Just(None), 1 => select(roles).prop_map(Some)];
    let round_ns = prop::collection::vec(100.0..5000.0f64, 0..4);
    (select(labels), role, round_ns, any_status()).prop_map(|(label, role, round_ns, status)| {
        let usual = rounds(label, &round_ns);
        (ArmTime { role: role.unwrap_or(usual.role), ..usual }, status)
    })
}

/// A trial that may be anything at all, and is often nearly right.
fn any_trial() -> impl Strategy<Value = TrialOutcome> {
    let baseline = prop::collection::vec(100.0..5000.0f64, 1..4)
        .prop_map(|round_ns| (rounds("base", &round_ns), Status::Ok));
    let change =
        (any::<prop::sample::Index>(), select(vec![0, 1, 7, u64::MAX / 2, u64::MAX]), 0..8u8);
    (
        0..5u32,
        prop::bool::weighted(0.2),
        select(vec![1024, 1024, 1024, 4096, 9999u64]),
        any_status(),
        prop::option::weighted(0.8, baseline),
        prop::collection::vec(any_arm(), 0..5),
        prop::collection::vec(change, 0..2),
    )
        .prop_map(|(pass, isolated, size, status, baseline, arms, changes)| {
            let mut cell = fixture::plan(&["base"]).cells().remove(0);
            cell.size = Bytes(size);
            let arms: Vec<(ArmTime, Status)> = baseline.into_iter().chain(arms).collect();
            let times: Vec<ArmTime> = arms.iter().map(|(time, _)| time.clone()).collect();
            let mut trial = fixture::trial(pass, &cell, &times);
            (trial.isolated, trial.status) = (isolated, status);
            for (arm, (_, status)) in trial.arms.iter_mut().zip(&arms) {
                arm.status = *status;
            }
            for (index, value, what) in changes {
                change_slice(&mut trial, index, value, what);
            }
            trial
        })
}

fn change_slice(trial: &mut TrialOutcome, index: prop::sample::Index, value: u64, what: u8) {
    if trial.slices.is_empty() {
        trial.tx = None;
        return;
    }
    let i = index.index(trial.slices.len());
    let slice = &mut trial.slices[i];
    match what {
        0 => slice.tx.time_ns = value,
        1 => slice.tx.messages = value,
        2 => slice.tx.bytes = value,
        3 => slice.rx = None,
        4 => slice.tx.task_clock_ns = None,
        5 => slice.kind = SliceKind::Discarded,
        6 => slice.arm = usize::try_from(value).unwrap_or(99),
        _ => slice.tx.voluntary_switches = Some(value),
    }
}

fn any_run() -> impl Strategy<Value = Run> {
    let schedule = select(vec![
        fixture::plan(&["base"]).schedule,
        Schedule::Window { window: Nanos::SECOND },
        Schedule::Messages { messages: 100 },
    ]);
    let end = select(vec![
        None,
        Some(StoppedBy::Interrupted),
        Some(StoppedBy::Passes),
        Some(StoppedBy::Budget),
    ]);
    let trials = prop::collection::vec(any_trial(), 0..48);
    (schedule, end, prop::bool::weighted(0.2), select(vec![0.0, 0.03]), trials).prop_map(
        |(schedule, end, isolate, delta, trials)| {
            let mut plan = fixture::plan(&["base", "arm", "memcpy"]);
            plan.sizes = vec![Bytes(1024), Bytes(4096), Bytes(1024)];
            (plan.schedule, plan.isolate, plan.delta) = (schedule, isolate, delta);
            let mut run = fixture::run(plan);
            run.trials = trials;
            run.header.end = end.map(|stopped_by| RunEnd {
                finished_unix_ns: 0,
                stopped_by,
                unmet: Vec::new(),
                paused_ns: 0,
            });
            run
        },
    )
}

fn is_sound(estimate: &Estimate) -> bool {
    let inside = estimate.interval.is_none_or(|interval| interval.contains(estimate.value));
    estimate.value.is_finite() && inside && (estimate.n > 1 || estimate.interval.is_none())
}

fn contrast_is_sound(contrast: &Contrast) -> bool {
    let nested = match (contrast.pointwise90, contrast.pointwise, contrast.simultaneous) {
        (Some(p90), Some(p95), Some(all)) => {
            p90.contains(contrast.ratio) && p95.low <= p90.low && all.low <= p95.low
        }
        (None, None, None) => true,
        _ => false,
    };
    nested && contrast.ratio > 0.0 && is_sound(&contrast.total_ratio)
}

fn change_is_sound(change: &Change) -> bool {
    let nested = match (change.pointwise, change.simultaneous, change.ratio) {
        (Some(one), Some(all), Some(ratio)) => {
            one.contains(ratio) && all.low <= one.low && one.high <= all.high
        }
        (None, None, ratio) => ratio.is_some() || change.verdict == Verdict::Invalid,
        _ => false,
    };
    nested && change.ratio.is_none_or(|ratio| ratio > 0.0)
}

fn arm_is_sound(arm: &ArmAnalysis) -> bool {
    let contrasts = [&arm.contrast, &arm.isolated].into_iter().flatten().all(contrast_is_sound);
    let figures = arm.figures.as_ref().is_none_or(|f| {
        let always = [&f.ns_per_message];
        let some = [
            &f.tx_calls_per_message,
            &f.ns_per_byte,
            &f.goodput_bits_per_s,
            &f.tx_cpu_ns_per_byte,
            &f.context_switches_per_message,
        ];
        always.into_iter().chain(some.into_iter().flatten()).all(is_sound)
    });
    let explained = (arm.status == Status::Ok) == arm.reason.is_none();
    let numbers = arm.status != Status::Ok || arm.figures.is_some();
    contrasts && figures && explained && numbers
}

/// A thousand runs each, and no file of failures beside the sources.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn scaling_all_times_leaves_ratios_unchanged(times in times(), scale in 1.0..50.0f64) {
        let (one, scaled) = (analyse(&run_of(&times, 1.0, 0)), analyse(&run_of(&times, scale, 0)));
        let (a, b) = (contrast(&one, "arm"), contrast(&scaled, "arm"));
        prop_assert!(near(a.ratio, b.ratio), "{} {}", a.ratio, b.ratio);
        prop_assert!(near(a.total_ratio.value, b.total_ratio.value));
        if a.sd_ln.is_some_and(|sd| sd < 0.1) {
            prop_assert!(near_interval(a.pointwise, b.pointwise));
        }
        let time = |analysis: &Analysis| {
            arm(analysis, "base").figures.as_ref().expect("figures").ns_per_message.value
        };
        prop_assert!(near(time(&one) * scale, time(&scaled)));
    }

    #[test]
    fn swapping_baseline_and_arm_inverts_the_ratio(times in times()) {
        let (one, swapped) = (analyse(&run_of(&times, 1.0, 0)), analyse(&run_of(&times, 1.0, 1)));
        let (a, b) = (contrast(&one, "arm"), contrast(&swapped, "arm"));
        let inverse = |interval: Option<Interval>| interval.map(Interval::inverse);
        prop_assert!(near(a.ratio, 1.0 / b.ratio));
        prop_assert!(near(a.total_ratio.value, 1.0 / b.total_ratio.value));
        prop_assert!(near_interval(a.pointwise, inverse(b.pointwise)));
        prop_assert!(near_interval(a.total_ratio.interval, inverse(b.total_ratio.interval)));
    }

    #[test]
    fn any_run_gets_a_sound_analysis(run in any_run()) {
        let analysis = analyse(&run);
        prop_assert_eq!(&analysis, &analyse(&run));
        prop_assert_eq!(analysis.cells.len(), 2);
        for arm in analysis.arms() {
            prop_assert!(arm_is_sound(arm), "{arm:#?}");
        }
        for extreme in &analysis.extremes {
            prop_assert!(is_sound(&extreme.value), "{extreme:?}");
        }
        for cell in &analysis.cells {
            prop_assert!(cell.trials_used <= cell.trials_started, "{cell:#?}");
        }
        for trial in &run.trials {
            for (index, reason) in invalid_arms(&run.header, trial) {
                let is_named = Check::ALL.iter().any(|check| reason.starts_with(check.name()));
                prop_assert!(index < trial.arms.len() && is_named);
            }
        }
        let _ = decide(&[PassSummary::of(&analysis)], &run.header.plan);
        let _ = unmet(&analysis, &run.header.plan);
    }

    #[test]
    fn any_two_runs_get_a_sound_comparison_or_are_refused(a in any_run(), b in any_run()) {
        let analyses = [&a, &b].map(analyse);
        let side = |i: usize, header| Side { header, analysis: &analyses[i], asked: &[] };
        let found = compare(&side(0, &a.header), &side(1, &b.header), Absolute::Judged);
        let Ok(comparison) = found else { return Ok(()) };
        for arm in comparison.cells.iter().flat_map(|cell| &cell.arms) {
            let own = arm.own.as_ref().and_then(|own| own.judged.as_ref());
            for change in arm.change.iter().chain(own) {
                prop_assert!(change_is_sound(change), "{arm:#?}");
            }
        }
        prop_assert!(comparison.slower() == 0 || comparison.is_usable());
    }
}

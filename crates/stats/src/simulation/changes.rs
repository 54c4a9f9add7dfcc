//! Changes between two runs: how often their intervals cover, and how often two runs of the
//! same thing are told apart.

use iolens_model::run::Run;

use super::{Normal, RUNS, Rate};
use crate::analyse;
use crate::compare::{Absolute, Side, compare};
use crate::fixture::{self, rounds};
use crate::interval::Moments;
use crate::verdict::{Claim, Known};

fn known(n: u32, sd: f64, normal: &mut Normal) -> Known {
    let values: Vec<f64> = (0..n).map(|_| sd * normal.draw()).collect();
    let moments = Moments::of(&values).expect("values");
    let freedom = f64::from(n) - 1.0;
    Known { n, mean: moments.mean, error: moments.half_width(1.0), freedom }
}

/// Runs with the same and with another spread and number of trials.
#[test]
fn intervals_of_changes_cover() {
    for (n_a, n_b, sd_a, sd_b) in [(12, 12, 0.03, 0.03), (5, 5, 0.03, 0.06), (12, 40, 0.06, 0.02)] {
        let normal = &mut Normal::seeded(71);
        let (mut pointwise, mut together) = (Rate::new(), Rate::new());
        const CONTRASTS: u32 = 24;
        for _ in 0..RUNS {
            let claims: Vec<Claim> = (0..CONTRASTS)
                .map(|_| {
                    let (a, b) = (known(n_a, sd_a, normal), known(n_b, sd_b, normal));
                    Claim::between(&a, &b, CONTRASTS)
                })
                .collect();
            pointwise.add(super::covers(claims[0].pointwise, 1.0));
            together.add(claims.iter().all(|claim| super::covers(claim.simultaneous, 1.0)));
        }
        let what = format!("n = {n_a} and {n_b}, sd {sd_a} and {sd_b}");
        pointwise.check(&format!("{what}: change, pointwise 95%"), 0.95);
        println!("{what}: all 24 changes {:.2}%", together.share() * 100.0);
        // Welch's freedom is an approximation that errs by some tenths of a percent far out.
        assert!(together.share() >= 0.945 - together.allowance(0.945), "{what}");
    }
}

/// A run of eight sizes whose machine has a speed of its own and a mood in every trial.
fn repetition(normal: &mut Normal) -> Run {
    let sizes: Vec<u64> = (10..18).map(|log| 1 << log).collect();
    let speed = (0.1 * normal.draw()).exp();
    fixture::run_of(fixture::sized(&["base", "arm", "other"], &sizes), 12, |_, _, cell| {
        let mood = speed * (0.06 * normal.draw()).exp();
        [("base", 1.0), ("arm", 0.8), ("other", 1.1), ("base (A/A)", 1.0)].map(|(label, share)| {
            let ns = share * cell.size.0 as f64;
            rounds(label, &[ns * mood * (0.015 * normal.draw()).exp()])
        })
    })
}

/// Five repetitions of one thing, each against each other: ten comparisons.
#[test]
fn no_repetition_is_slower_than_another() {
    let normal = &mut Normal::seeded(72);
    let runs: Vec<_> = (0..5).map(|_| repetition(normal)).collect();
    let analyses: Vec<_> = runs.iter().map(analyse).collect();
    let side = |i: usize| Side { header: &runs[i].header, analysis: &analyses[i], asked: &[] };
    let pairs = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b)));
    let (mut compared, mut equivalent) = (0, 0);
    for (a, b) in pairs {
        let comparison = compare(&side(a), &side(b), Absolute::Shown).expect("common cells");
        assert_eq!(comparison.slower(), 0, "{a} against {b}");
        assert_eq!(compare(&side(b), &side(a), Absolute::Shown).expect("both ways").slower(), 0);
        assert!(!comparison.self_check.untrustworthy());
        compared += comparison.judged().count();
        let same = crate::analysis::Verdict::Equivalent;
        equivalent += comparison.judged().filter(|change| change.verdict == same).count();
    }
    println!("ten comparisons, {compared} changes: {equivalent} EQUIVALENT, none SLOWER");
    assert_eq!(compared, 160);
}

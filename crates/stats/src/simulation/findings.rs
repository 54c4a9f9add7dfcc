//! The same for what is found across cells and inside histograms: cost
//! models, percentiles, crossovers.

use iolens_model::units::Bytes;

use super::{Normal, RUNS, Rate, contrast, covers, pair};
use crate::analysis::{CostModel, CrossoverPoint, CrossoverShape};
use crate::student::StudentTable;
use crate::{cost_model, crossover, latency};

/// 64 B to 1 MiB by factors of 4.
fn sizes() -> Vec<Bytes> {
    (0..8).map(|i| Bytes(64 << (2 * i))).collect()
}

/// The model of 12 passes of 1000 ns + 0.1 ns per byte; a pass has a mood of
/// its own, and each of its trials a noise.
fn model(mood: f64, noise: f64, table: &mut StudentTable, normal: &mut Normal) -> CostModel {
    let curve = crate::fixture::plan(&["base"]).cells()[0].curve();
    let passes: Vec<Vec<f64>> = (0..12)
        .map(|_| {
            let mood = mood * normal.draw();
            let ln = |size: &Bytes| (1000.0 + 0.1 * size.0 as f64).ln();
            sizes().iter().map(|size| ln(size) + mood + noise * normal.draw()).collect()
        })
        .collect();
    cost_model::of_passes(&curve, "base", &sizes(), &passes, table).expect("a model")
}

#[test]
fn cost_models_cover_their_parts() {
    for (name, mood, noise, seed) in [("noise", 0.0, 0.05, 81), ("moods", 0.05, 0.02, 82)] {
        let (table, normal) = (&mut StudentTable::new(1), &mut Normal::seeded(seed));
        let (mut fixed, mut per_byte) = (Rate::new(), Rate::new());
        for _ in 0..RUNS {
            let model = model(mood, noise, table, normal);
            fixed.add(covers(model.fixed_ns.interval, 1000.0));
            per_byte.add(covers(model.per_byte_ns.interval, 0.1));
        }
        fixed.check(&format!("log-normal {name}, a of 12 passes"), 0.95);
        per_byte.check(&format!("log-normal {name}, b of 12 passes"), 0.95);
    }
}

/// A percentile of some trials of so many log-normal times each.
struct Percentile {
    q: f64,
    /// Standard normal quantile of q.
    z: f64,
    trials: usize,
    times: usize,
    /// sd of ln between trials; within a trial it is 0.3.
    between: f64,
}

impl Percentile {
    const WITHIN: f64 = 0.3;

    /// Shares of intervals that hold the true quantile of all times: pooled
    /// they are log-normal with the sum of both variances.
    fn coverage(&self, runs: u32, seed: u64) -> Rate {
        let truth = (self.z * Percentile::WITHIN.hypot(self.between)).exp();
        let (table, normal) = (&mut StudentTable::new(1), &mut Normal::seeded(seed));
        let mut covered = Rate::new();
        for _ in 0..runs {
            let mut pooled = Vec::with_capacity(self.trials * self.times);
            let mut of_trials = Vec::with_capacity(self.trials);
            for _ in 0..self.trials {
                let mood = self.between * normal.draw();
                let time = |_| mood + Percentile::WITHIN * normal.draw();
                let mut times: Vec<f64> = (0..self.times).map(time).collect();
                of_trials.push(self.of(&mut times));
                pooled.extend(times);
            }
            let interval = latency::around(self.of(&mut pooled), &of_trials, table);
            covered.add(covers(interval, truth));
        }
        covered
    }

    /// The smallest of these ln times that the share q does not exceed.
    fn of(&self, times: &mut [f64]) -> f64 {
        let n = times.len() as f64;
        let wanted = self.q * n * (1.0 - 1e-12);
        let rank = (0..times.len()).find(|&i| (i + 1) as f64 >= wanted).expect("a rank");
        times.select_nth_unstable_by(rank, f64::total_cmp).1.exp()
    }
}

#[test]
fn percentile_intervals_cover_for_log_normal_times() {
    let p50 = Percentile { q: 0.5, z: 0.0, trials: 12, times: 40, between: 0.1 };
    p50.coverage(RUNS, 91).check("p50 of 12 trials, which differ by 0.1", 0.95);
    let p99 = Percentile { q: 0.99, z: 2.326_347_874, trials: 6, times: 370, between: 0.03 };
    p99.coverage(RUNS, 92).check("p99 of 6 trials, which differ by 0.03", 0.95);
    // Stated: a tail belongs to the slow trials, which their mean hides.
    for between in [0.1, 0.2] {
        let apart = Percentile { trials: 12, between, ..p99 }.coverage(RUNS / 10, 93);
        println!("p99 of 12 trials, which differ by {between}: {:.1}%", apart.share() * 100.0);
    }
}

/// Two copies of one arm over eight sizes, J = 16: no arm overtakes itself.
#[test]
fn an_arm_does_not_overtake_itself() {
    let curve = crate::fixture::plan(&["base"]).cells()[0].curve();
    for (sd, seed) in [(0.01, 101), (0.05, 102), (0.2, 103)] {
        let (table, normal) = (&mut StudentTable::new(16), &mut Normal::seeded(seed));
        let mut claimed = Rate::new();
        for _ in 0..RUNS {
            let point = |size: Bytes| {
                let measured = contrast(12, table, normal, |normal| {
                    pair((sd * normal.draw()).exp(), (sd * normal.draw()).exp())
                });
                let ratio = measured.typical.moments.mean.exp();
                CrossoverPoint { size, ratio, simultaneous: measured.typical.simultaneous }
            };
            let points = sizes().into_iter().map(point).collect();
            let found = crossover::of_points(&curve, ["a", "b"], points, 0.03).expect("points");
            claimed.add(found.shape != CrossoverShape::NeitherAnywhere);
        }
        println!("A/A, sd {sd}: {:.2}% of runs see anybody ahead", claimed.share() * 100.0);
        // Eight of the sixteen contrasts, each beyond δ to less than 0.05/16.
        assert!(claimed.share() <= 0.025 + claimed.allowance(0.025));
        assert!(claimed.share() <= 0.01 || sd > 0.1);
    }
}

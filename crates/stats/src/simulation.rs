//! Is our own arithmetic right? (METHOD.md, Intervals.) Whole experiments with a
//! known truth, simulated at the level of trial values, with fixed seeds.
//!
//! Run with `--nocapture` to read the rates that are stated and not asserted.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::analysis::Contrast;
use crate::contrast::{Measured, Pair};
use crate::estimate::{Interval, Verdict};
use crate::interval::{Moments, Parts};
use crate::student::StudentTable;
use crate::verdict::Context;
use crate::{Decision, PassSummary, decide, self_check};
use iolens_model::arm::Role;
use iolens_model::plan::Plan;
use iolens_model::run::StoppedBy;

mod changes;
mod crossings;
mod findings;
mod neighbours;

const RUNS: u32 = 10_000;

/// Standard normal deviates by Box and Muller (1958).
pub(crate) struct Normal {
    rng: Pcg64Mcg,
    spare: Option<f64>,
}

impl Normal {
    pub(crate) fn seeded(seed: u64) -> Normal {
        Normal { rng: Pcg64Mcg::seed_from_u64(seed), spare: None }
    }

    pub(crate) fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * (1.0 - self.rng.random::<f64>()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.rng.random::<f64>();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.rng.random::<f64>() < probability
    }
}

/// A trial from the times per message of the two arms.
fn pair(baseline_ns: f64, arm_ns: f64) -> Pair {
    Pair {
        typical_ln: (baseline_ns / arm_ns).ln(),
        baseline: Parts { over: baseline_ns, under: 1.0 },
        arm: Parts { over: arm_ns, under: 1.0 },
    }
}

/// A contrast of `n` trials from this source.
fn contrast(
    n: u32,
    table: &mut StudentTable,
    normal: &mut Normal,
    mut trial: impl FnMut(&mut Normal) -> Pair,
) -> Measured {
    let pairs: Vec<Pair> = (0..n).map(|_| trial(normal)).collect();
    Measured::of(&pairs, table).expect("trials with times")
}

/// Shares of runs, with the standard error of a share.
struct Rate {
    hits: u32,
    of: u32,
}

impl Rate {
    fn new() -> Rate {
        Rate { hits: 0, of: 0 }
    }

    fn add(&mut self, hit: bool) {
        self.hits += u32::from(hit);
        self.of += 1;
    }

    fn share(&self) -> f64 {
        f64::from(self.hits) / f64::from(self.of)
    }

    /// Three binomial standard errors of this nominal share.
    fn allowance(&self, nominal: f64) -> f64 {
        3.0 * (nominal * (1.0 - nominal) / f64::from(self.of)).sqrt()
    }

    fn check(&self, what: &str, nominal: f64) {
        println!("{what}: {:.2}%, nominal {:.2}%", self.share() * 100.0, nominal * 100.0);
        assert!(self.of >= RUNS);
        assert!((self.share() - nominal).abs() <= self.allowance(nominal), "{what}");
    }
}

fn covers(interval: Option<Interval>, truth: f64) -> bool {
    interval.expect("an interval").contains(truth)
}

/// Pointwise coverage of the typical ratio, and of the ratio of totals.
fn pointwise(name: &str, seed: u64, truth: f64, trial: fn(&mut Normal) -> Pair) {
    for n in [5, 12, 40] {
        let (table, normal) = (&mut StudentTable::new(1), &mut Normal::seeded(seed));
        let (mut at95, mut at90, mut total) = (Rate::new(), Rate::new(), Rate::new());
        for _ in 0..2 * RUNS {
            let measured = contrast(n, table, normal, trial);
            at95.add(covers(measured.typical.pointwise, truth));
            at90.add(covers(measured.typical.pointwise90, truth));
            total.add(covers(measured.total_ratio.interval, truth));
        }
        at95.check(&format!("{name}, n = {n}, pointwise 95%"), 0.95);
        at90.check(&format!("{name}, n = {n}, pointwise 90%"), 0.90);
        total.check(&format!("{name}, n = {n}, ratio of totals"), 0.95);
    }
}

#[test]
fn intervals_cover_for_normal_times() {
    let trial = |normal: &mut Normal| {
        pair(500.0 * (1.0 + 0.03 * normal.draw()), 400.0 * (1.0 + 0.03 * normal.draw()))
    };
    pointwise("normal times", 11, 500.0 / 400.0, trial);
}

#[test]
fn intervals_cover_for_log_normal_times() {
    let trial = |normal: &mut Normal| {
        pair(500.0 * (0.1 * normal.draw()).exp(), 400.0 * (0.1 * normal.draw()).exp())
    };
    pointwise("log-normal times", 12, 500.0 / 400.0, trial);
}

/// All 48 intervals of a run at once, contrasts independent.
#[test]
fn simultaneous_intervals_cover_together() {
    const CONTRASTS: u32 = 48;
    for (n, seed) in [(5, 21), (12, 22)] {
        for (name, log) in [("normal", false), ("log-normal", true)] {
            let (table, normal) = (&mut StudentTable::new(CONTRASTS), &mut Normal::seeded(seed));
            let mut together = Rate::new();
            for _ in 0..RUNS {
                together.add((0..CONTRASTS).all(|_| {
                    let measured = contrast(n, table, normal, |normal| {
                        let x = 0.05 * normal.draw();
                        pair(1.0, if log { x.exp() } else { 1.0 + x / 10.0 })
                    });
                    covers(measured.typical.simultaneous, 1.0)
                }));
            }
            // Independent contrasts: (1 − 0.05/48)^48 = 95.12 %.
            let nominal = (1.0 - 0.05 / f64::from(CONTRASTS)).powf(f64::from(CONTRASTS));
            together.check(&format!("{name}, n = {n}, simultaneous over 48"), nominal);
        }
    }
}

/// The arms of a cell share its baseline, so their contrasts err together:
/// Bonferroni then covers more than it says, never less.
#[test]
fn a_shared_baseline_makes_simultaneous_intervals_cover_more() {
    const CELLS: u32 = 8;
    const ARMS: usize = 6;
    let (table, normal) = (&mut StudentTable::new(CELLS * 6), &mut Normal::seeded(23));
    let mut together = Rate::new();
    for _ in 0..RUNS {
        together.add((0..CELLS).all(|_| {
            let mut arms = vec![Vec::new(); ARMS];
            for _ in 0..12 {
                let baseline = (0.05 * normal.draw()).exp();
                for arm in &mut arms {
                    arm.push(pair(baseline, (0.03 * normal.draw()).exp()));
                }
            }
            arms.iter().all(|pairs| {
                covers(Measured::of(pairs, table).expect("trials").typical.simultaneous, 1.0)
            })
        }));
    }
    println!("shared baseline, simultaneous over 48: {:.2}%", together.share() * 100.0);
    assert!(together.share() >= 0.95 - together.allowance(0.95));
}

/// One trial in ten has a slow arm. Stated, not asserted: no interval over a
/// dozen trials covers well when one of them decides.
#[test]
fn coverage_with_slow_trials_is_stated() {
    for slow in [1.2, 1.5, 3.0f64] {
        let (table, normal) = (&mut StudentTable::new(48), &mut Normal::seeded(31));
        let (mut usual, mut mixed, mut all) = (Rate::new(), Rate::new(), Rate::new());
        let mean = (-0.1 * slow.ln()).exp();
        for _ in 0..RUNS {
            let measured = contrast(12, table, normal, |normal| {
                let factor = if normal.chance(0.1) { slow } else { 1.0 };
                pair((0.03 * normal.draw()).exp(), factor * (0.03 * normal.draw()).exp())
            });
            usual.add(covers(measured.typical.pointwise, 1.0));
            mixed.add(covers(measured.typical.pointwise, mean));
            all.add(covers(measured.typical.simultaneous, mean));
        }
        println!(
            "10% of trials {slow} × slower, n = 12: pointwise covers the usual ratio {:.1}%, the \
             mean of all trials {:.1}%; simultaneous (J = 48) the mean {:.2}%",
            usual.share() * 100.0,
            mixed.share() * 100.0,
            all.share() * 100.0
        );
        assert_eq!(usual.of, RUNS);
    }
}

/// A contrast of a self-check, judged as if it were a compared arm.
fn self_checks(
    cells: u32,
    sd: f64,
    table: &mut StudentTable,
    normal: &mut Normal,
) -> Vec<Contrast> {
    let context =
        Context { role: Role::Compared, delta: 0.03, floor: None, invalid: None, unranked: None };
    let one = |_| {
        let measured = contrast(12, table, normal, |normal| {
            pair((sd * normal.draw()).exp(), (sd * normal.draw()).exp())
        });
        measured.judged(&context, table)
    };
    (0..cells).map(one).collect()
}

#[test]
fn one_self_check_in_twenty_excludes_one_and_none_wins() {
    const CELLS: u32 = 12;
    let (table, normal) = (&mut StudentTable::new(CELLS * 6), &mut Normal::seeded(41));
    let (mut excluding, mut winners, mut distrusted) = (Rate::new(), Rate::new(), Rate::new());
    let bound = self_check::bound(CELLS);
    for _ in 0..RUNS {
        let contrasts = self_checks(CELLS, 0.03, table, normal);
        let excluded = contrasts.iter().filter(|c| self_check::excludes_one(c)).count();
        for contrast in &contrasts {
            excluding.add(self_check::excludes_one(contrast));
            winners.add(matches!(contrast.verdict, Verdict::Faster | Verdict::Slower));
        }
        distrusted.add(excluded > bound as usize);
    }
    excluding.check("A/A intervals that exclude 1", 0.05);
    println!("A/A called FASTER or SLOWER (J = 72): {:.4}%", winners.share() * 100.0);
    println!("runs over the 99% bound: {:.2}%", distrusted.share() * 100.0);
    // Excluding 1 together happens to 0.05/72 of the contrasts; beyond δ to fewer.
    assert!(winners.share() <= 0.05 / 72.0);
    assert!(distrusted.share() <= 0.01 + distrusted.allowance(0.01));
}

/// How a simulated run of one contrast ended.
struct Ended {
    passes: u32,
    pointwise: Option<Interval>,
    stalled: bool,
}

/// One contrast whose trials have the ln ratios of `source`, passes added
/// until [`decide`] says stop.
fn until_stopped(
    plan: &Plan,
    table: &mut StudentTable,
    normal: &mut Normal,
    mut source: impl FnMut(&mut Normal) -> f64,
) -> Ended {
    let (mut values, mut history) = (Vec::new(), Vec::new());
    loop {
        values.push(source(normal));
        let moments = Moments::of(&values).expect("values");
        let pointwise = moments.interval(table, |t| t.pointwise);
        let half = pointwise.map(|interval| interval.half_width());
        history.push(PassSummary::of_half_width(moments.n, half));
        if let Decision::Stop(rule) = decide(&history, plan) {
            let stalled = rule == StoppedBy::Stalled;
            return Ended { passes: moments.n, pointwise, stalled };
        }
    }
}

/// Runs that stop for precision from pass 12 on, as [`decide`]
/// says: how often the last interval covers, how many passes it took, and how
/// often such a run is said to have stalled although its trials are
/// independent.
#[test]
fn stopping_for_width_hardly_costs_coverage() {
    let plan = crate::fixture::plan(&["base", "arm"]);
    for sd in [0.03, 0.06, 0.10] {
        let (table, normal) = (&mut StudentTable::new(2), &mut Normal::seeded(51));
        let (mut covered, mut stalled, mut passes) = (Rate::new(), Rate::new(), 0);
        for _ in 0..RUNS {
            let source = |normal: &mut Normal| sd * normal.draw();
            let end = until_stopped(&plan, table, normal, source);
            covered.add(covers(end.pointwise, 1.0));
            stalled.add(end.stalled);
            passes += end.passes;
        }
        println!(
            "sd of trials {sd}: covers {:.2}%, {:.1} passes, {:.2}% said to have stalled",
            covered.share() * 100.0,
            f64::from(passes) / f64::from(RUNS),
            stalled.share() * 100.0
        );
        // Looking after every pass selects narrow intervals; it costs up to a
        // point, most where the minimum is just not enough.
        assert!(covered.share() >= 0.94 - covered.allowance(0.94));
        assert!(stalled.share() <= 0.03);
    }
}

/// A ratio that wanders: each trial starts where the last one ended, so that
/// the spread grows as fast as √n and more passes do not help.
#[test]
fn a_wandering_ratio_stalls() {
    let plan = crate::fixture::plan(&["base", "arm"]);
    let (table, normal) = (&mut StudentTable::new(2), &mut Normal::seeded(61));
    let mut stalled = Rate::new();
    for _ in 0..RUNS / 10 {
        let mut at = 0.0;
        let source = |normal: &mut Normal| {
            at += 0.1 * normal.draw();
            at
        };
        stalled.add(until_stopped(&plan, table, normal, source).stalled);
    }
    println!("random walks said to have stalled: {:.1}%", stalled.share() * 100.0);
    assert!(stalled.share() >= 0.5);
}

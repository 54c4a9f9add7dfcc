//! Fits against known truths, and against a fit made in another way.

use iolens_model::cell::Setting;
use iolens_model::file::{CacheState, Consumer, FileSetting, Pattern};
use iolens_model::plan::Plan;
use iolens_model::run::Run;

use super::*;
use crate::analyse;
use crate::fixture::{self, ArmTime, run_of, time};
use crate::simulation::Normal;

/// 64 B to 1 MiB by factors of 4.
fn sizes() -> Vec<Bytes> {
    (0..8).map(|i| Bytes(64 << (2 * i))).collect()
}

fn lns(times: impl Fn(f64) -> f64) -> Vec<f64> {
    sizes().iter().map(|size| times(size.0 as f64).ln()).collect()
}

fn fit(lns: &[f64]) -> Fit {
    Search::over(&sizes()).expect("sizes").fit(lns)
}

fn near(value: f64, expect: f64, relative: f64) {
    assert!((value - expect).abs() <= relative * expect.abs(), "{value}, expected {expect}");
}

#[test]
fn exact_curves_give_their_parts() {
    for (a, b) in [(1000.0, 0.1), (300.0, 1.0), (5000.0, 0.02), (10.0, 0.5)] {
        let fit = fit(&lns(|n| a + b * n));
        near(fit.fixed_ns, a, 1e-4);
        near(fit.per_byte_ns, b, 1e-5);
    }
}

#[test]
fn no_part_is_ever_negative() {
    assert_eq!(fit(&lns(|n| 0.3 * n)).fixed_ns, 0.0);
    near(fit(&lns(|n| 0.3 * n)).per_byte_ns, 0.3, 1e-9);
    assert_eq!(fit(&lns(|_| 700.0)).per_byte_ns, 0.0);
    near(fit(&lns(|_| 700.0)).fixed_ns, 700.0, 1e-9);
    // Steeper than n and falling with n: the nearest that is allowed.
    assert_eq!(fit(&lns(|n| n * n)).fixed_ns, 0.0);
    assert_eq!(fit(&lns(|n| 1e6 / n)).per_byte_ns, 0.0);
}

/// Gauss–Newton on a and b, with nothing in common with the search: the
/// normal equations of the residuals' derivatives, solved by Cramer's rule.
fn gauss_newton(lns: &[f64], mut a: f64, mut b: f64) -> (f64, f64) {
    for _ in 0..200 {
        let (mut aa, mut ab, mut bb, mut ar, mut br) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (size, ln) in sizes().iter().zip(lns) {
            let n = size.0 as f64;
            let t = a + b * n;
            let (da, db, residual) = (1.0 / t, n / t, ln - t.ln());
            (aa, ab, bb) = (aa + da * da, ab + da * db, bb + db * db);
            (ar, br) = (ar + da * residual, br + db * residual);
        }
        let determinant = aa * bb - ab * ab;
        a += 0.5 * (ar * bb - br * ab) / determinant;
        b += 0.5 * (br * aa - ar * ab) / determinant;
    }
    (a, b)
}

#[test]
fn noisy_curves_agree_with_gauss_and_newton() {
    let mut normal = Normal::seeded(71);
    for _ in 0..100 {
        let (a, b) = (1000.0 * (0.5 * normal.draw()).exp(), 0.1 * (0.5 * normal.draw()).exp());
        let noisy: Vec<f64> =
            lns(|n| a + b * n).iter().map(|ln| ln + 0.1 * normal.draw()).collect();
        let (fit, other) = (fit(&noisy), gauss_newton(&noisy, a, b));
        near(fit.fixed_ns, other.0, 1e-4);
        near(fit.per_byte_ns, other.1, 1e-4);
    }
}

fn model(passes: &[Vec<f64>], sizes: &[Bytes]) -> Option<CostModel> {
    let curve = fixture::plan(&["base"]).cells()[0].curve();
    of_passes(&curve, "base", sizes, passes, &mut StudentTable::new(1))
}

/// Two passes, one 10 % slower: fits of 1000 and 1100 ns, t₁ = 12.7062, so
/// half 12.7062 · 70.71 / √2 = 635.3; the value is the geometric mean.
#[test]
fn the_interval_is_that_of_the_fits_of_single_passes() {
    let passes = [lns(|n| 1000.0 + 0.1 * n), lns(|n| 1100.0 + 0.11 * n)];
    let model = model(&passes, &sizes()).expect("a model");
    near(model.fixed_ns.value, (1000.0f64 * 1100.0).sqrt(), 1e-4);
    let interval = model.fixed_ns.interval.expect("an interval");
    near(interval.high - model.fixed_ns.value, 635.3, 1e-3);
    near(model.half_size_bytes.value, 10_000.0, 1e-3);
    assert!(model.worst_residual.abs() < 1e-6 && model.is_affine());
    assert_eq!(model.fixed_ns.n, 2);
    // 64 B is below a quarter of 10 000 B.
    assert!(!model.fixed_is_upper_bound);
}

/// From 4 KiB on a message costs 150 ns more: a is 1500 ns at the small sizes, and the fit
/// takes it for less, while passes agree to a thousandth.
#[test]
fn the_interval_of_a_holds_what_the_line_misses() {
    let mut normal = Normal::seeded(72);
    let stepped = |n: f64| 1500.0 + 0.1 * n + if n >= 4096.0 { 150.0 } else { 0.0 };
    let mut pass = || lns(stepped).iter().map(|ln| ln + 0.001 * normal.draw()).collect();
    let passes: Vec<Vec<f64>> = (0..12).map(|_| pass()).collect();
    let model = model(&passes, &sizes()).expect("a model");
    assert!(model.is_affine(), "{}", model.worst_residual);
    let interval = model.fixed_ns.interval.expect("an interval");
    assert!((model.fixed_ns.value / 1500.0 - 1.0).abs() > 0.01, "{:?}", model.fixed_ns);
    assert!(interval.contains(1500.0), "{:?}", model.fixed_ns);
    let interval = model.per_byte_ns.interval.expect("an interval");
    assert!(interval.contains(0.1), "{:?}", model.per_byte_ns);
}

#[test]
fn a_curve_that_starts_above_a_quarter_of_the_half_size_bounds_a_from_above() {
    let model = model(&[lns(|n| 10.0 + 0.1 * n)], &sizes()).expect("a model");
    assert!(model.fixed_is_upper_bound);
    assert_eq!(model.fixed_ns.interval, None);
}

#[test]
fn a_step_shows_as_the_worst_residual() {
    let stepped = lns(|n| (1000.0 + 0.1 * n) * if n == 65536.0 { 1.5 } else { 1.0 });
    let model = model(&[stepped], &sizes()).expect("a model");
    assert_eq!(model.worst_at, Bytes(65536));
    assert!(model.worst_residual > 0.2 && !model.is_affine(), "{}", model.worst_residual);
}

/// A buffer that leaves the processor's cache: twice the cost per byte from 256 KiB on.
#[test]
fn blocks_of_a_file_follow_the_model_up_to_where_it_breaks() {
    let lns = lns(|n| 1000.0 + 0.1 * n * if n >= 262_144.0 { 2.0 } else { 1.0 });
    let of = |curve: &Cell| {
        let table = &mut StudentTable::new(1);
        of_curve(curve, "base", &sizes(), &[lns.clone(), lns.clone()], table).expect("a model")
    };
    let cell = &fixture::plan(&["base"]).cells()[0];
    // Messages are judged as a whole: see `unexpected`.
    let whole = of(&cell.curve());
    assert!(!whole.is_affine() && whole.breaks_at.is_none());
    let model = of(&Cell { setting: a_file(), ..cell.curve() });
    assert_eq!(model.breaks_at, Some(Bytes(262_144)));
    near(model.fixed_ns.value, 1000.0, 1e-4);
    near(model.per_byte_ns.value, 0.1, 1e-4);
}

fn a_file() -> Setting {
    Setting::File(FileSetting {
        cache: CacheState::Warm,
        pattern: Pattern::Sequential,
        consumer: Consumer::None,
        depth: 1,
    })
}

#[test]
fn three_sizes_and_no_pass_with_all_of_them_give_no_model() {
    let three = &sizes()[..3];
    assert_eq!(model(&[vec![1.0, 2.0, 3.0]], three), None);
    assert_eq!(model(&[], &sizes()), None);
}

/// A run of four sizes: the pass in which one size failed is left out.
#[test]
fn only_passes_with_every_size_are_fitted() {
    let plan = fixture::sized(&["base", "memcpy"], &[256, 1024, 4096, 16384]);
    let mut run = run_of(plan, 4, |pass, _, cell| {
        let ns = (1000.0 + 0.25 * cell.size.0 as f64) * (1.0 + 0.01 * f64::from(pass));
        [time("base", ns), time("base (A/A)", ns)]
    });
    let failed = run.trials.iter_mut().find(|t| t.pass == 2 && t.cell.size.0 == 4096);
    failed.expect("a trial").slices[0].tx.bytes -= 1;
    let models = analyse(&run).cost_models;
    let [model] = &models[..] else { panic!("{models:?}") };
    assert_eq!((model.label.as_str(), model.fixed_ns.n), ("base", 3));
    near(model.fixed_ns.value, 1000.0 * (1.01f64 * 1.03 * 1.04).cbrt(), 1e-4);
    near(model.per_byte_ns.value, 0.25 * (1.01f64 * 1.03 * 1.04).cbrt(), 1e-4);
}

/// Trials of 1 KiB whose arms take these ns per message.
fn run(arms: &[(&'static str, Role)], passes: &[&[f64]]) -> Run {
    let labels: Vec<&str> = arms.iter().map(|(label, _)| *label).collect();
    let plan = Plan { baseline: labels[0].to_owned(), ..fixture::plan(&labels) };
    let count = u32::try_from(passes.len()).expect("a few");
    run_of(plan, count, |pass, _, _| -> Vec<ArmTime> {
        let times = arms.iter().zip(passes[pass as usize - 1]);
        times.map(|(&(label, role), &ns)| ArmTime { role, ..time(label, ns) }).collect()
    })
}

const THREE: [(&str, Role); 3] =
    [("send_staged", Role::Baseline), ("sendmsg_iov", Role::Compared), ("memcpy", Role::Control)];

/// Differences of 102.4, 204.8 and 307.2 ns per 1 KiB: 0.1, 0.2 and 0.3
/// ns per byte, although the machine's own speed changes by far more.
#[test]
fn the_difference_is_paired_by_trial() {
    let passes: [&[f64]; 3] =
        [&[1102.4, 1000.0, 102.4], &[2204.8, 2000.0, 102.4], &[907.2, 600.0, 102.4]];
    let found = analyse(&run(&THREE, &passes)).removed_copies;
    let [removed] = &found[..] else { panic!("{found:?}") };
    let difference = removed.staged_less_iov_ns_per_byte;
    assert!((difference.value - 0.2).abs() < 1e-9);
    // sd 0.1, n = 3, t₂ = 4.302653.
    let half = 4.302_653 * 0.1 / 3f64.sqrt();
    let interval = difference.interval.expect("an interval");
    assert!((interval.high - 0.2 - half).abs() < 1e-6, "{interval:?}");
    assert!((0.2 - interval.low - half).abs() < 1e-6, "{interval:?}");
    assert!((removed.memcpy_ns_per_byte.value - 0.1).abs() < 1e-9);
    // Beyond the memcpy of 0.1 ns per byte: 0.0, 0.1 and 0.2; two contrasts
    // at most are made, so the half-width is no smaller than pointwise.
    let beyond = removed.beyond_memcpy_ns_per_byte.expect("an interval");
    assert!((f64::midpoint(beyond.low, beyond.high) - 0.1).abs() < 1e-9, "{beyond:?}");
    assert!(beyond.high - 0.1 > half - 1e-6, "{beyond:?}");
}

#[test]
fn isolated_trials_are_paired_by_pass() {
    let mut run = run(&THREE, &[&[1102.4, 1000.0, 102.4], &[1102.4, 1000.0, 102.4]]);
    run.header.plan.isolate = true;
    run.trials = run.trials.iter().flat_map(fixture::alone).collect();
    let found = analyse(&run).removed_copies;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].staged_less_iov_ns_per_byte.n, 2);
}

#[test]
fn without_one_of_the_three_there_is_no_answer() {
    let two = [THREE[0], THREE[1]];
    assert_eq!(analyse(&run(&two, &[&[500.0, 400.0], &[500.0, 400.0]])).removed_copies, []);
    let mut spoilt = run(&THREE, &[&[500.0, 400.0, 102.4]]);
    fixture::slices_of(&mut spoilt, 1).for_each(|slice| slice.tx.bytes -= 1);
    assert_eq!(analyse(&spoilt).removed_copies, []);
}

//! What messages cost along the sizes of a curve: the fit t(n) = a + b·n of ns per message, and the
//! copy that an iovec removes.

use std::collections::BTreeMap;

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::units::Bytes;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::analysis::{ArmAnalysis, CellAnalysis, CostModel, RemovedCopy};
use crate::estimate::{Estimate, Interval};
use crate::interval::{Moments, Parts, count};
use crate::roster::{Track, grouped};
use crate::student::{Multipliers, StudentTable, quantile};

/// Sizes that a fit of two parameters needs before a residual says anything.
const SIZES_MIN: usize = 4;

/// The fit of every arm's curve that has enough sizes; not of the hidden copy
/// of the baseline.
pub(crate) fn of(tracks: &[Track<'_>], table: &mut StudentTable) -> Vec<CostModel> {
    let shown: Vec<&Track<'_>> =
        tracks.iter().filter(|track| track.arm.role != Role::SelfCheck).collect();
    let curves = grouped(&shown, |track| (track.cell.curve(), track.arm.label.as_str()));
    let model = |((curve, label), mut tracks): ((Cell, &str), Vec<&&Track<'_>>)| {
        if tracks.len() < SIZES_MIN {
            return None;
        }
        tracks.sort_by_key(|track| track.cell.size);
        let sizes: Vec<Bytes> = tracks.iter().map(|track| track.cell.size).collect();
        let passes: Vec<BTreeMap<u32, f64>> = tracks.iter().map(|track| by_pass(track)).collect();
        of_curve(&curve, label, &sizes, &complete(&passes), table)
    };
    curves.into_iter().filter_map(model).collect()
}

/// ln ns per message in each pass.
fn by_pass(track: &Track<'_>) -> BTreeMap<u32, f64> {
    let parts = parts_by_pass(track).into_iter();
    parts.map(|(pass, sum)| (pass, sum.ratio().ln())).collect()
}

/// Time over messages in each pass; a pass with several trials has one value,
/// the total over the total.
pub(crate) fn parts_by_pass(track: &Track<'_>) -> BTreeMap<u32, Parts> {
    let mut sums: BTreeMap<u32, Parts> = BTreeMap::new();
    for point in track.points() {
        *sums.entry(point.pass).or_default() += point.time;
    }
    sums
}

/// Per pass that has every size, the values in the order of the sizes.
fn complete(passes: &[BTreeMap<u32, f64>]) -> Vec<Vec<f64>> {
    let Some(first) = passes.first() else { return Vec::new() };
    first
        .keys()
        .filter_map(|pass| passes.iter().map(|size| size.get(pass).copied()).collect())
        .collect()
}

/// The model of a curve as [`of_passes`] has it. Blocks of a file that do not follow
/// it as a whole may do so up to a size, beyond which another cache or another device
/// serves them: then it is the model of as many of the smallest as follow one, if
/// their largest has at least as much of b as of a.
fn of_curve(
    curve: &Cell,
    label: &str,
    sizes: &[Bytes],
    passes: &[Vec<f64>],
    table: &mut StudentTable,
) -> Option<CostModel> {
    let whole = of_passes(curve, label, sizes, passes, table)?;
    if whole.is_affine() || curve.net().is_some() {
        return Some(whole);
    }
    let part = (SIZES_MIN..sizes.len()).rev().find_map(|end| {
        let passes: Vec<Vec<f64>> = passes.iter().map(|pass| pass[..end].to_vec()).collect();
        let model = of_passes(curve, label, &sizes[..end], &passes, table)?;
        let holds = model.is_affine() && sizes[end - 1].0 as f64 >= model.half_size_bytes.value;
        holds.then(|| CostModel { breaks_at: Some(sizes[end]), ..model })
    });
    Some(part.unwrap_or(whole))
}

/// The model of a curve from ln ns per message, per pass and size; `None` with
/// too few sizes or without a pass that has them all.
///
/// The value is the fit of the geometric mean of the passes, whose residual
/// is shown; the interval around it comes from the spread of the fits of
/// single passes, so that what a pass has in common is in it, and from what the
/// curve has that no such line has.
pub(crate) fn of_passes(
    curve: &Cell,
    label: &str,
    sizes: &[Bytes],
    passes: &[Vec<f64>],
    table: &mut StudentTable,
) -> Option<CostModel> {
    if sizes.len() < SIZES_MIN || passes.is_empty() {
        return None;
    }
    let search = Search::over(sizes)?;
    let mean: Vec<f64> = (0..sizes.len())
        .map(|size| passes.iter().map(|pass| pass[size]).sum::<f64>() / passes.len() as f64)
        .collect();
    let fit = search.fit(&mean);
    let fits: Vec<Fit> = passes.iter().map(|pass| search.fit(pass)).collect();
    let misfit = Misfit::of(&search, passes, &fits, (&mean, &fit));
    let misfit = misfit.unwrap_or_default();
    let mut estimate = |value: f64, of: fn(&Fit) -> f64, misfit: f64| {
        let values: Vec<f64> = fits.iter().map(of).collect();
        let half = Moments::of(&values)
            .and_then(|moments| moments.half_width(table.multipliers(moments.n)?.pointwise))
            .map(|half| half.hypot(misfit * value))
            .filter(|half| half.is_finite());
        let interval =
            half.map(|half| Interval { low: (value - half).max(0.0), high: value + half });
        Estimate { value, interval, n: count(passes.len()) }
    };
    let fixed_ns = estimate(fit.fixed_ns, |fit| fit.fixed_ns, misfit.fixed);
    let per_byte_ns = estimate(fit.per_byte_ns, |fit| fit.per_byte_ns, misfit.per_byte);
    let residuals = sizes.iter().zip(&mean).map(|(&size, ln)| (fit.residual(size, *ln), size));
    let (worst_residual, worst_at) =
        residuals.max_by(|(a, _), (b, _)| a.abs().total_cmp(&b.abs()))?;
    let half_size_bytes = estimate(fit.half_size_bytes(), Fit::half_size_bytes, misfit.half_size);
    Some(CostModel {
        curve: curve.clone(),
        label: label.to_owned(),
        fixed_ns,
        per_byte_ns,
        half_size_bytes,
        fixed_is_upper_bound: sizes[0].0 as f64 > half_size_bytes.value / 4.0,
        worst_residual,
        worst_at,
        breaks_at: None,
    })
}

/// One fit, both parts at least 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// a.
    pub(crate) fixed_ns: f64,
    /// b.
    pub(crate) per_byte_ns: f64,
}

impl Fit {
    /// a / b.
    fn half_size_bytes(&self) -> f64 {
        self.fixed_ns / self.per_byte_ns
    }

    /// Time above the fit, as a fraction of the fit.
    fn residual(&self, size: Bytes, ln_ns: f64) -> f64 {
        ln_ns.exp() / (self.fixed_ns + self.per_byte_ns * size.0 as f64) - 1.0
    }
}

/// How far the parts of a fit may be off because the curve is no such line, as fractions of
/// them: half-widths of 95 % intervals. Nothing where chance explains what is left.
#[derive(Debug, Clone, Copy, Default)]
struct Misfit {
    fixed: f64,
    per_byte: f64,
    half_size: f64,
}

impl Misfit {
    /// Of the fit of the mean curve and of those of its passes; `None` where passes tell nothing
    /// of chance, and where a part is 0.
    fn of(
        search: &Search,
        passes: &[Vec<f64>],
        fits: &[Fit],
        (mean, fit): (&[f64], &Fit),
    ) -> Option<Misfit> {
        let left = |lns: &[f64], fit: &Fit| -> Vec<f64> {
            let ln = |n: &f64| (fit.fixed_ns + fit.per_byte_ns * n).ln();
            search.sizes.iter().zip(lns).map(|(n, value)| value - ln(n)).collect()
        };
        let residuals = left(mean, fit);
        let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        let (sizes, n) = (residuals.len().checked_sub(2)? as f64, passes.len() as f64);
        let strays = passes.iter().zip(fits).map(|(pass, fit)| {
            let own = left(pass, fit);
            squares(&own.iter().zip(&residuals).map(|(a, b)| a - b).collect::<Vec<f64>>())
        });
        let freedom = (n - 1.0) * sizes;
        let chance = strays.sum::<f64>() / freedom / n;
        let critical = FisherSnedecor::new(sizes, freedom).ok()?.inverse_cdf(0.95);
        if squares(&residuals) / sizes <= critical * chance {
            return None;
        }
        // What a line misses lies in stretches and not at random: the worst of it counts.
        let worst = residuals.iter().fold(0.0, |worst: f64, left| worst.max(left.abs()));
        let half = quantile(sizes, 0.975)? * worst;
        // Shares of a in the time at each size; of ln t the derivatives by ln a and ln b.
        let share = |n: &f64| fit.fixed_ns / (fit.fixed_ns + fit.per_byte_ns * n);
        let shares: Vec<f64> = search.sizes.iter().map(share).collect();
        let sum = |of: fn(f64) -> f64| shares.iter().map(|&share| of(share)).sum::<f64>();
        let (aa, bb, ab) = (sum(|a| a * a), sum(|a| (1.0 - a).powi(2)), sum(|a| a * (1.0 - a)));
        let determinant = aa * bb - ab * ab;
        let known =
            |variance: f64| Some(half * (variance / determinant).sqrt()).filter(|h| h.is_finite());
        Some(Misfit {
            fixed: known(bb)?,
            per_byte: known(aa)?,
            half_size: known(aa + bb + 2.0 * ab)?,
        })
    }
}

/// Least squares of ln t = ln b + ln(h + n), where h = a / b is the one
/// parameter that has to be searched for: ln b is then the mean of what is
/// left. The squares have no derivative worth having at a = 0 and b = 0,
/// which are answers too, so h is looked for on a grid that holds both and
/// then narrowed down by golden section between the neighbours of the best.
pub(crate) struct Search {
    /// n, bytes.
    sizes: Vec<f64>,
    /// Steps of h, ascending.
    steps: Vec<f64>,
    /// ln(h + n) for each step and size.
    shapes: Vec<Vec<f64>>,
}

impl Search {
    /// A search over some sizes; `None` without any above zero.
    pub(crate) fn over(sizes: &[Bytes]) -> Option<Search> {
        /// How far beyond the sizes a / b can be told from 0 and infinity:
        /// at a thousandth of the smallest, a is 0.1 % of its time.
        const BEYOND: f64 = 1000.0;
        let sizes: Vec<f64> = sizes.iter().map(|size| size.0 as f64).collect();
        let smallest = sizes.iter().copied().min_by(f64::total_cmp).filter(|&n| n > 0.0)?;
        let largest = sizes.iter().copied().max_by(f64::total_cmp)?;
        let mut steps = vec![smallest / BEYOND];
        while let Some(&last) = steps.last().filter(|&&last| last < largest * BEYOND) {
            steps.push(last * 2.0);
        }
        let shapes = steps.iter().map(|&h| shape(h, &sizes)).collect();
        Some(Search { sizes, steps, shapes })
    }

    /// The fit of ln ns per message, one value for each size.
    pub(crate) fn fit(&self, lns: &[f64]) -> Fit {
        let on_grid = self.shapes.iter().map(|shape| squares(lns, shape)).enumerate();
        let best = on_grid.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(i, _)| i);
        let at = |i: usize| self.steps[i.min(self.steps.len() - 1)].ln();
        let of = |ln_h: f64| squares(lns, &shape(ln_h.exp(), &self.sizes));
        let (ln_h, least) = golden(at(best.saturating_sub(1)), at(best + 1), of);
        let proportional: Vec<f64> = self.sizes.iter().map(|n| n.ln()).collect();
        let constant = vec![0.0; lns.len()];
        if squares(lns, &proportional) <= least {
            Fit { fixed_ns: 0.0, per_byte_ns: level(lns, &proportional).exp() }
        } else if squares(lns, &constant) <= least {
            Fit { fixed_ns: level(lns, &constant).exp(), per_byte_ns: 0.0 }
        } else {
            let h = ln_h.exp();
            let per_byte_ns = level(lns, &shape(h, &self.sizes)).exp();
            Fit { fixed_ns: per_byte_ns * h, per_byte_ns }
        }
    }
}

fn shape(h: f64, sizes: &[f64]) -> Vec<f64> {
    sizes.iter().map(|n| (h + n).ln()).collect()
}

/// The mean of what a shape leaves.
fn level(lns: &[f64], shape: &[f64]) -> f64 {
    lns.iter().zip(shape).map(|(ln, shape)| ln - shape).sum::<f64>() / lns.len() as f64
}

/// Sum of squares around that mean.
fn squares(lns: &[f64], shape: &[f64]) -> f64 {
    let level = level(lns, shape);
    lns.iter().zip(shape).map(|(ln, shape)| (ln - shape - level).powi(2)).sum()
}

/// The place of the least value between two, and the value (Kiefer, 1953).
fn golden(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> (f64, f64) {
    /// 0.618³² of two grid steps is 3e-7: what the squares' rounding allows.
    const STEPS: u32 = 32;
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let inner = |low: f64, high: f64| [high - ratio * (high - low), low + ratio * (high - low)];
    let [mut left, mut right] = inner(low, high);
    let (mut at_left, mut at_right) = (of(left), of(right));
    for _ in 0..STEPS {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = inner(low, high)[0];
            at_left = of(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = inner(low, high)[1];
            at_right = of(right);
        }
    }
    if at_left <= at_right { (left, at_left) } else { (right, at_right) }
}

// What the copy costs that an iovec removes: `send_staged` less
// `sendmsg_iov`, beside the copy alone.

/// The removed copy of every cell that has all three arms. In isolated plans
/// a pass pairs two arms, else a trial.
pub(crate) fn removed_copies(
    tracks: &[Track<'_>],
    cells: &[CellAnalysis],
    isolate: bool,
    table: &mut StudentTable,
) -> Vec<RemovedCopy> {
    let in_cell = |(cell, tracks): (_, Vec<&Track<'_>>)| {
        let arm = |id: &str| {
            let is_it = |t: &&&Track<'_>| t.arm.primitive == id && t.arm.role != Role::SelfCheck;
            tracks.iter().find(is_it).copied()
        };
        let (staged, iov) = (arm("send_staged")?, arm("sendmsg_iov")?);
        let analysed = cells.iter().find(|known| known.cell == cell)?;
        // What is saved is a small part of either: slices of unequal length alone make as much.
        let is_ranked =
            |track: &Track<'_>| analysed.arm(&track.arm.label).is_some_and(ArmAnalysis::is_ranked);
        let memcpy =
            analysed.arms.iter().find(is_memcpy).filter(|_| is_ranked(staged) && is_ranked(iov))?;
        let less_iov = differences(&by_partner(staged, isolate), &by_partner(iov, isolate));
        let beyond = arm("memcpy").and_then(|memcpy| {
            let beyond = differences(&less_iov, &by_partner(memcpy, isolate));
            mean(&beyond, table, |t| t.simultaneous)?.interval
        });
        Some(RemovedCopy {
            cell,
            staged_less_iov_ns_per_byte: mean(&less_iov, table, |t| t.pointwise)?,
            memcpy_ns_per_byte: memcpy.figures.as_ref()?.ns_per_byte?,
            beyond_memcpy_ns_per_byte: beyond,
        })
    };
    grouped(tracks, |track| track.cell.clone()).into_iter().filter_map(in_cell).collect()
}

fn is_memcpy(arm: &&ArmAnalysis) -> bool {
    arm.arm.primitive == "memcpy" && arm.status == Status::Ok
}

/// ns per byte by what pairs it: pass and position, or the pass alone.
fn by_partner(track: &Track<'_>, isolate: bool) -> ByPartner {
    let position = |position: u32| if isolate { 0 } else { position };
    let points = track.points().filter(|point| point.bytes > 0.0);
    points.map(|p| ((p.pass, position(p.position)), p.time.over / p.bytes)).collect()
}

/// ns per byte by pass and position.
type ByPartner = BTreeMap<(u32, u32), f64>;

fn differences(a: &ByPartner, b: &ByPartner) -> ByPartner {
    a.iter().filter_map(|(partner, value)| Some((*partner, value - b.get(partner)?))).collect()
}

/// The arithmetic mean with its t interval: a difference of costs may be
/// negative and has no logarithm.
fn mean(
    values: &ByPartner,
    table: &mut StudentTable,
    choose: fn(&Multipliers) -> f64,
) -> Option<Estimate> {
    let moments = Moments::of(&values.values().copied().collect::<Vec<f64>>())?;
    let half = table.multipliers(moments.n).and_then(|t| moments.half_width(choose(&t)));
    let interval = half.map(|half| Interval::about(moments.mean, half));
    Some(Estimate { value: moments.mean, interval, n: moments.n })
}

#[cfg(test)]
mod tests;

//! The mean of trials without the outermost, and what is known of a trial before it is looked at.
//!
//! Of most programs a trial in ten or twenty is far from the others: a process that lies badly in
//! memory, a neighbour. In the mean of all, and in its spread, few of them outweigh the rest.
//!
//! What a process costs depends on the memory that it is given. Two things tell of it, and what
//! they explain is taken from the spread as soon as trials are many:
//!
//! - Which program started first. A process takes the memory that another gave back, so that
//!   programs which take turns at starting first change places in it.
//! - How far a program's two copies lie apart. Where one of four processes is 8 % faster than the
//!   others, the value of the trial is 4 % off, and the copies of one program lie 8 % apart.

use std::collections::BTreeMap;

use statrs::function::erf::erf;

use crate::interval::{Moments, count};
use crate::student::quantile;

/// One of so many values is left out at each end: of 12 one, of 24 three.
const LEFT_OUT_OF: usize = 8;

/// Values from which on a mean is adjusted: of fewer, each thing that is fitted costs more than it
/// tells.
const ADJUSTED_MIN: usize = 24;

/// Values of a stratum, under which it has no level of its own.
const STRATUM_MIN: usize = 4;

/// Standard errors by which the mean lean may lie off 0. Beyond, one program has more of what
/// moves a trial than the other, which belongs to their difference, or chance has it so.
const LEAN_ERRORS: f64 = 2.0;

/// The value of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrialValue {
    /// ln(other / one).
    pub(super) ln: f64,
    /// The program that started first.
    pub(super) first: usize,
    /// Half of how much further apart the copies of the one lie than those of the other: 0 in the
    /// mean, where the same things happen to both; `None` without copies.
    pub(super) lean: Option<f64>,
}

/// The mean of the values that are left, and how well it is known (Tukey and McLaughlin, Less
/// vulnerable confidence and significance procedures for location, Sankhya A 25, 1963; Yuen, The
/// two-sample trimmed t for unequal population variances, Biometrika 61, 1974).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrimmedMean {
    /// Values; at least 1.
    pub(super) n: u32,
    pub(super) mean: f64,
    /// The standard error of the mean; `None` under two values.
    error: Option<f64>,
    /// Numbers that were fitted to the values, the mean among them; at least 1.
    fitted: u32,
    /// Whether what leans tell was taken from the values.
    adjusted: bool,
}

impl TrimmedMean {
    /// Of some trials; `None` without any, or where a value is not a number.
    pub(super) fn of(trials: &[TrialValue]) -> Option<TrimmedMean> {
        let lns: Vec<f64> = trials.iter().map(|trial| trial.ln).collect();
        let plain = TrimmedMean::of_values(&lns, 1)?;
        if trials.len() < ADJUSTED_MIN {
            return Some(plain);
        }
        let strata = Strata::of(trials);
        let Some(slope) = Slope::of(trials, &strata) else { return strata.mean(&lns, None) };
        if slope.is_even() {
            let rest = trials.iter().zip(&lns).map(|(own, ln)| ln - slope.of_lean(own));
            return strata.mean(&rest.collect::<Vec<_>>(), Some(&slope));
        }
        // What it may be off by is in the error.
        let off = slope.slope * slope.mean;
        Some(TrimmedMean { error: plain.error.map(|error| error.hypot(off)), ..plain })
    }

    /// Of values to which so many numbers were fitted, the mean among them.
    fn of_values(values: &[f64], fitted: usize) -> Option<TrimmedMean> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let (first, last) = (n / LEFT_OUT_OF, n - 1 - n / LEFT_OUT_OF);
        let kept = kept(n) as f64;
        let mean = sorted[first..=last].iter().sum::<f64>() / kept;
        // Winsorized: those that are left out count as the outermost that are not.
        let of_all = sorted.iter().map(|value| value.clamp(sorted[first], sorted[last]));
        let centre = of_all.clone().sum::<f64>() / n as f64;
        let squares: f64 = of_all.map(|value| (value - centre).powi(2)).sum();
        let freedom = kept - fitted as f64;
        let error = (freedom > 0.0).then(|| (squares / (kept * freedom)).sqrt());
        Some(TrimmedMean { n: count(n), mean, error, fitted: count(fitted), adjusted: false })
    }

    /// Degrees of freedom of the spread of so many such values; `None` without any.
    pub(super) fn freedom(&self, n: u32) -> Option<f64> {
        let (kept, fitted) = (kept(usize::try_from(n).ok()?), usize::try_from(self.fitted).ok()?);
        Some(kept.checked_sub(fitted).filter(|&freedom| freedom > 0)? as f64)
    }

    /// The chance that leans tell as much of another run: their mean is within [`LEAN_ERRORS`].
    pub(super) fn chance_of_alike(&self) -> f64 {
        if self.adjusted { erf(LEAN_ERRORS / std::f64::consts::SQRT_2) } else { 1.0 }
    }

    /// So many standard errors of the mean of `n` such values.
    pub(super) fn errors(&self, times: f64, n: u32) -> Option<f64> {
        Some(times * self.error? * (f64::from(self.n) / f64::from(n)).sqrt())
    }

    /// Half the interval that misses with this chance, both sides together.
    pub(super) fn half_width(&self, error: f64) -> Option<f64> {
        self.errors(quantile(self.freedom(self.n)?, 1.0 - error / 2.0)?, self.n)
    }
}

/// How many of so many values are left.
fn kept(n: usize) -> usize {
    n - 2 * (n / LEFT_OUT_OF)
}

/// The trials by which program started first, each by its place; one stratum where one has few.
struct Strata(Vec<Vec<usize>>);

impl Strata {
    fn of(trials: &[TrialValue]) -> Strata {
        let mut strata: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, trial) in trials.iter().enumerate() {
            strata.entry(trial.first).or_default().push(at);
        }
        match strata.values().all(|own| own.len() >= STRATUM_MIN) {
            true => Strata(strata.into_values().collect()),
            false => Strata(vec![(0..trials.len()).collect()]),
        }
    }

    /// The mean of each stratum's values.
    fn levels(&self, values: &[f64], mean: impl Fn(&[f64]) -> Option<f64>) -> Option<Vec<f64>> {
        let of_one = |own: &Vec<usize>| mean(&own.iter().map(|&at| values[at]).collect::<Vec<_>>());
        self.0.iter().map(of_one).collect()
    }

    /// Values less these levels, in the order of the strata.
    fn less<'a>(&'a self, values: &'a [f64], levels: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let strata = self.0.iter().zip(levels);
        strata.flat_map(move |(own, level)| own.iter().map(move |&at| values[at] - level))
    }

    /// The mean of values, in which each stratum counts as much as another, and with what is left
    /// when the slope that was taken from them is not known exactly either.
    fn mean(&self, values: &[f64], slope: Option<&Slope>) -> Option<TrimmedMean> {
        let levels = self.levels(values, |own| Some(TrimmedMean::of_values(own, 1)?.mean))?;
        let centre = Moments::of(&levels)?.mean;
        let level: Vec<f64> = self.less(values, &levels).map(|rest| rest + centre).collect();
        let fitted = levels.len() + usize::from(slope.is_some());
        let mut found = TrimmedMean::of_values(&level, fitted)?;
        // 1 of strata of one size.
        let (n, strata) = (values.len() as f64, levels.len() as f64);
        let shares = self.0.iter().map(|own| n / own.len() as f64).sum::<f64>() / strata.powi(2);
        let of_slope = slope.map_or(0.0, |slope| n * slope.mean.powi(2) / slope.squares);
        found.error = found.error.map(|error| error * (shares + of_slope).sqrt());
        found.adjusted = slope.is_some();
        Some(found)
    }
}

/// How much of the lean of a trial is in its value: 1 where single processes are faster than the
/// others, −1 where they are slower, 0 where all differ a little.
#[derive(Debug)]
struct Slope {
    slope: f64,
    /// The mean lean.
    mean: f64,
    /// Its standard error, if it is 0 for all that is known.
    mean_error: f64,
    /// The squares of leans within strata.
    squares: f64,
}

impl Slope {
    /// Least squares within strata; `None` without leans that differ.
    fn of(trials: &[TrialValue], strata: &Strata) -> Option<Slope> {
        let leans: Vec<f64> = trials.iter().map(|trial| trial.lean).collect::<Option<_>>()?;
        let lns: Vec<f64> = trials.iter().map(|trial| trial.ln).collect();
        let plain = |own: &[f64]| Some(Moments::of(own)?.mean);
        let (of_leans, of_lns) = (strata.levels(&leans, plain)?, strata.levels(&lns, plain)?);
        let both = || strata.less(&leans, &of_leans).zip(strata.less(&lns, &of_lns));
        let squares: f64 = both().map(|(lean, _)| lean * lean).sum();
        let products: f64 = both().map(|(lean, ln)| lean * ln).sum();
        let all = Moments::of(&leans)?;
        let mean_error = all.sd? / f64::from(all.n).sqrt();
        let slope =
            Slope { slope: products / squares, mean: plain(&of_leans)?, mean_error, squares };
        slope.slope.is_finite().then_some(slope)
    }

    fn is_even(&self) -> bool {
        self.mean.abs() < LEAN_ERRORS * self.mean_error
    }

    fn of_lean(&self, trial: &TrialValue) -> f64 {
        self.slope * trial.lean.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(values: &[f64]) -> Vec<TrialValue> {
        values.iter().map(|&ln| TrialValue { ln, first: 0, lean: None }).collect()
    }

    /// Of 1 to 11 and 100, 2 to 11 are left, with mean 6.5; winsorized they are 2, 2 to 11, 11,
    /// with the squares 2·4.5² + 82.5 = 123.
    #[test]
    fn the_outermost_weigh_as_the_next() {
        let values: Vec<f64> = (1..12).map(f64::from).chain([100.0]).collect();
        let found = TrimmedMean::of(&alone(&values)).unwrap();
        assert_eq!((found.n, found.mean), (12, 6.5));
        let expect = (123.0f64 / 90.0).sqrt();
        assert!((found.error.unwrap() - expect).abs() < 1e-12, "{found:?}");
        // t₉ at 0.975 is 2.262 (NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
        assert!((found.half_width(0.05).unwrap() / expect - 2.262).abs() < 1e-3);
        assert_eq!(found.errors(2.0, 48), Some(expect));
    }

    #[test]
    fn of_few_values_all_count() {
        let found = TrimmedMean::of(&alone(&[1.0, 2.0, 6.0])).unwrap();
        assert_eq!((found.mean, found.error), (3.0, Some((14.0f64 / 6.0).sqrt())));
        assert_eq!(TrimmedMean::of(&alone(&[1.0])).unwrap().half_width(0.05), None);
        assert_eq!(TrimmedMean::of(&[]), None);
        assert_eq!(TrimmedMean::of(&alone(&[1.0, f64::NAN])), None);
    }

    /// So many trials of ±0.1 in turn, each with what is added to it, who started first, and the
    /// lean.
    fn trials(n: usize, of: impl Fn(usize) -> (f64, usize, Option<f64>)) -> Vec<TrialValue> {
        let one = |at: usize| {
            let ((more, first, lean), noise) = (of(at), 0.1 - 0.2 * (at / 4 % 2) as f64);
            TrialValue { ln: 5.0 + noise + more, first, lean }
        };
        (0..n).map(one).collect()
    }

    fn found(trials: &[TrialValue]) -> (f64, f64, f64) {
        let found = TrimmedMean::of(trials).unwrap();
        (found.mean, found.error.unwrap(), found.freedom(found.n).unwrap())
    }

    #[test]
    fn what_programs_differ_by_as_they_change_places_is_not_in_the_spread() {
        let quiet = found(&trials(24, |_| (0.0, 0, None)));
        let by_place = |n| trials(n, |at| (3.0 * (at % 2) as f64 - 1.5, at % 2, None));
        let (mean, error, freedom) = found(&by_place(24));
        assert!((mean - quiet.0).abs() < 1e-9 && freedom + 1.0 == quiet.2, "{mean} {freedom}");
        assert!((error / quiet.1 - (quiet.2 / freedom).sqrt()).abs() < 1e-9, "{error} {quiet:?}");
        // Of few trials it is noise.
        assert!(found(&by_place(16)).1 > 5.0 * quiet.1);
    }

    #[test]
    fn a_place_counts_as_much_as_another_however_many_trials_it_has() {
        let (mean, error, _) = found(&trials(32, |at| match at % 4 {
            0 => (-3.0, 0, None),
            _ => (3.0, 1, None),
        }));
        assert!((mean - 5.0).abs() < 1e-9, "{mean}");
        let even = found(&trials(32, |at| (6.0 * (at % 2) as f64 - 3.0, at % 2, None)));
        // 1/8 + 1/24 in the place of 1/16 + 1/16.
        assert!((error / even.1 - (4.0f64 / 3.0).sqrt()).abs() < 1e-9, "{error} {even:?}");
    }

    #[test]
    fn what_a_single_fast_process_does_is_known_by_its_copy() {
        let quiet = found(&trials(24, |_| (0.0, 0, None)));
        // Of A in one trial of three, of B in another.
        let fast = |at: usize, share: f64| match at % 3 {
            0 => (share * 4.0, at % 2, Some(4.0)),
            1 => (-share * 4.0, at % 2, Some(-4.0)),
            _ => (0.0, at % 2, Some(0.0)),
        };
        for share in [1.0, 0.0, -1.0] {
            let (mean, error, freedom) = found(&trials(24, |at| fast(at, share)));
            assert!((mean - 5.0).abs() < 0.03 && freedom + 2.0 == quiet.2, "{mean} {freedom}");
            assert!(error < 1.1 * quiet.1, "{share} {error} {quiet:?}");
        }
        assert!(found(&trials(16, |at| fast(at, 1.0))).1 > 5.0 * quiet.1);
    }

    /// Only one program has such processes: that is what it differs by.
    #[test]
    fn what_happens_to_one_program_alone_is_not_taken_from_it() {
        let (mean, error, _) = found(&trials(24, |at| match at % 3 {
            0 => (-4.0, at % 2, Some(-4.0)),
            _ => (0.0, at % 2, Some(0.0)),
        }));
        let plain = TrimmedMean::of_values(
            &trials(24, |at| (if at % 3 == 0 { -4.0 } else { 0.0 }, 0, None))
                .iter()
                .map(|trial| trial.ln)
                .collect::<Vec<_>>(),
            1,
        );
        assert_eq!(mean, plain.unwrap().mean);
        assert!(error > 4.0 / 3.0, "{error}");
    }
}

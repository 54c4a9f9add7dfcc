//! What an earlier run lets expect of a new one: how wide its intervals will
//! be. An expectation, said before the start; no conclusion rests on it.

use crate::analysis::Analysis;
use crate::interval::median;
use crate::student::quantile;

/// The spread of an earlier run's contrasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Contrasts it rests on.
    pub contrasts: usize,
    /// Median over them of the standard deviation over trials of the ln ratio.
    pub sd_ln: f64,
}

impl Forecast {
    /// Trials under which a standard deviation says little.
    const TRIALS_MIN: u32 = 5;

    /// Of an analysis; `None` where no contrast has at least five trials.
    #[must_use]
    pub fn of(analysis: &Analysis) -> Option<Forecast> {
        let arms = analysis.arms();
        let known = arms.filter_map(|arm| arm.contrast.as_ref());
        let known = known.filter(|contrast| contrast.n >= Forecast::TRIALS_MIN);
        let mut spreads: Vec<f64> = known.filter_map(|contrast| contrast.sd_ln).collect();
        let contrasts = spreads.len();
        Some(Forecast { contrasts, sd_ln: median(&mut spreads)? })
    }

    /// Half-width of a ratio's pointwise 95 % interval after `n` trials, as a
    /// fraction: exp(t(n−1, 97.5 %) · sd / √n) − 1. `None` under two.
    #[must_use]
    pub fn half_width(&self, n: u32) -> Option<f64> {
        let t = quantile(n.checked_sub(1)?, 0.975)?;
        Some((t * self.sd_ln / f64::from(n).sqrt()).exp() - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyse, fixture};

    #[test]
    fn the_width_of_the_same_number_of_trials_is_the_one_that_was() {
        let run = fixture::passes(&[1.0, 1.1, 1.0, 1.1, 1.05]);
        let analysis = analyse(&run);
        let contrast = analysis.cells[0]
            .arms
            .iter()
            .find_map(|arm| arm.contrast.as_ref().filter(|_| arm.arm.label == "arm"));
        let half = contrast.and_then(|contrast| contrast.half_width()).expect("a half-width");
        let sd_ln = contrast.and_then(|contrast| contrast.sd_ln).expect("a spread");
        let forecast = Forecast { contrasts: 1, sd_ln };
        assert!((forecast.half_width(5).expect("a width") / half - 1.0).abs() < 1e-9);
        assert!(forecast.half_width(20) < forecast.half_width(5));
        assert_eq!(forecast.half_width(1), None);
        assert!(Forecast::of(&analysis).is_some());
    }

    #[test]
    fn few_trials_forecast_nothing() {
        assert_eq!(Forecast::of(&analyse(&fixture::passes(&[1.0, 1.1, 1.0, 1.1]))), None);
    }
}

//! From a sample to a verdict: one rule after another, the first that holds.

use iolens_model::ab::{AB_IDLE_SHARE_MAX, AbQuantity};

use super::findings::{AbContrast, AbCopies, AbNoise, AbPower, AbReason, AbVerdict};
use super::links::Linked;
use super::power::{half_elsewhere, reach};
use super::sample::Sample;
use super::{AB_LINKS_MIN, AB_UNITS_MIN, AbInput, AbLook, change, changes, known_change};
use crate::estimate::Interval;

/// An arm that is judged by a quantity.
pub(super) struct Question<'a> {
    pub(super) input: &'a AbInput<'a>,
    pub(super) look: AbLook,
    pub(super) arm: usize,
    pub(super) quantity: AbQuantity,
    pub(super) sample: &'a Sample,
}

impl Question<'_> {
    /// The contrast, given what copies say of the quantity.
    pub(super) fn answer(&self, copies: &[AbCopies]) -> AbContrast {
        let sample = self.sample;
        let (verdict, reason) = self.conclude(copies);
        AbContrast {
            arm: self.arm,
            quantity: self.quantity,
            units: sample.units,
            change: sample.centre().and_then(known_change),
            pointwise: sample.interval(0.05).map(changes),
            simultaneous: sample.interval(self.error(copies)).map(changes),
            layout_allowance: self.allowance(),
            links: sample.linked().and_then(Linked::told),
            verdict,
            reason,
            power: self.power(copies),
            sample: sample.clone(),
        }
    }

    /// The chance of an error that this claim has, both sides together. In noise beyond δ, δ keeps
    /// nothing from being called a change: only the level does, and it is that of early looks.
    fn error(&self, copies: &[AbCopies]) -> f64 {
        self.error_of(self.look, self.own(copies).any(|copies| copies.noise.is_some()))
    }

    /// The same of another run, of so many units, whose copies may lie further apart.
    fn error_elsewhere(&self, look: AbLook, copies: &[AbCopies], units: u32) -> f64 {
        let is_wide = |copies: &AbCopies| {
            let half = half_elsewhere(&copies.sample, units, GATE_ERROR);
            let half = half.filter(|_| copies.gate.is_some());
            half.is_none_or(|half| half > self.input.delta.ln_1p())
        };
        self.error_of(look, self.own(copies).any(is_wide))
    }

    fn error_of(&self, look: AbLook, is_noisy: bool) -> f64 {
        let look = if is_noisy { AbLook::Early } else { look };
        look.error() / f64::from(self.input.claims.max(1))
    }

    /// What copies of the two programs say.
    fn own<'a>(&self, copies: &'a [AbCopies]) -> impl Iterator<Item = &'a AbCopies> + Clone {
        let arm = self.arm;
        copies.iter().filter(move |copies| copies.arm == 0 || copies.arm == arm)
    }

    fn allowance(&self) -> Option<f64> {
        let own = self.input.allowances.get(self.arm).copied().flatten();
        own.filter(|_| !self.input.by_link)
    }

    fn bounds(&self) -> Bounds {
        Bounds { delta: self.input.delta, allowance: self.allowance() }
    }

    fn conclude(&self, copies: &[AbCopies]) -> (AbVerdict, AbReason) {
        let (delta, units) = (self.input.delta, self.sample.units);
        let mut own = self.own(copies);
        if let Some(why) = own.clone().find_map(|copies| differ(copies, delta)) {
            return (AbVerdict::Invalid, why);
        }
        let idle = |arm: usize| self.input.idle.get(arm).copied().unwrap_or(0.0);
        if let Some(of) = [0, self.arm].into_iter().find(|&arm| idle(arm) > AB_IDLE_SHARE_MAX) {
            let (share, bound) = (idle(of), AB_IDLE_SHARE_MAX);
            return (AbVerdict::Invalid, AbReason::WorksBetween { of, share, bound });
        }
        if units < AB_UNITS_MIN {
            let why = AbReason::TooFew { units, least: AB_UNITS_MIN };
            return (AbVerdict::Inconclusive, why);
        }
        let links = self.sample.linked().map(Linked::counts);
        if let Some(links) = links.filter(|links| links.iter().any(|n| *n < AB_LINKS_MIN)) {
            let why = AbReason::TooFewLinks { links, least: AB_LINKS_MIN };
            return (AbVerdict::Inconclusive, why);
        }
        let error = self.error(copies);
        // Two one-sided tests at the same level are an interval that misses twice as often.
        let both = (self.sample.interval(2.0 * error), self.sample.interval(error));
        let (Some(one_sided), Some(interval)) = both else {
            return (AbVerdict::Inconclusive, AbReason::NoInterval { units });
        };
        self.bounds().conclude([one_sided, interval], own.find_map(|copies| copies.noise))
    }

    fn power(&self, copies: &[AbCopies]) -> AbPower {
        let seen = |units: u32, look| {
            let error = self.error_elsewhere(look, copies, units);
            let links = self.sample.linked().map_or([AB_LINKS_MIN; 2], Linked::counts);
            let enough = units >= AB_UNITS_MIN
                && self.sample.units >= AB_UNITS_MIN
                && links.iter().all(|n| *n >= AB_LINKS_MIN);
            let ln = self.bounds().widest().ln_1p() + reach(self.sample, units, error)?;
            known_change(ln).filter(|_| enough)
        };
        AbPower {
            now: seen(self.sample.units, self.look),
            at_budget: self.input.budget_units.and_then(|units| seen(units, AbLook::Last)),
        }
    }
}

/// What a change is held against, as fractions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Smallest difference that matters.
    pub(super) delta: f64,
    /// What layout may explain.
    pub(super) allowance: Option<f64>,
}

impl Bounds {
    /// What SLOWER and FASTER lie beyond.
    fn widest(&self) -> f64 {
        self.allowance.map_or(self.delta, |allowance| allowance.max(self.delta))
    }

    /// The first rule that holds of a change's logarithm, by the interval of two one-sided tests
    /// and that of a difference. With `noise` nothing is EQUIVALENT.
    pub(super) fn conclude(
        &self,
        [one_sided, interval]: [Interval; 2],
        noise: Option<AbNoise>,
    ) -> (AbVerdict, AbReason) {
        let (delta, band) = (self.delta, self.delta.ln_1p());
        let is_within = one_sided.low > -band && one_sided.high < band;
        match (is_within, noise) {
            (true, None) => {
                let why = AbReason::Within { interval: changes(one_sided), delta };
                (AbVerdict::Equivalent, why)
            }
            (true, Some(_)) => self.differs(interval, noise),
            (false, _) => self.differs(interval, None),
        }
    }

    fn differs(&self, ln: Interval, noise: Option<AbNoise>) -> (AbVerdict, AbReason) {
        let (delta, bound, interval) = (self.delta, self.widest(), changes(ln));
        let beyond = |fraction: f64| ln.low > fraction.ln_1p() || ln.high < -fraction.ln_1p();
        if beyond(bound) {
            let is_slower = ln.low > 0.0;
            let verdict = if is_slower { AbVerdict::Slower } else { AbVerdict::Faster };
            return (verdict, AbReason::Beyond { interval, bound });
        }
        if let Some(allowance) = self.allowance.filter(|_| beyond(delta)) {
            let is_whole = ln.low.abs().max(ln.high.abs()) < allowance.ln_1p();
            let why = AbReason::WithinAllowance { interval, delta, allowance, is_whole };
            return (AbVerdict::Build, why);
        }
        if !ln.contains(0.0) {
            return (AbVerdict::Small, AbReason::MayBeSmall { interval, delta, noise });
        }
        (AbVerdict::Inconclusive, AbReason::Open { interval, delta, noise })
    }
}

fn differ(copies: &AbCopies, delta: f64) -> Option<AbReason> {
    let interval = copies.gate.filter(|_| copies.differ)?;
    Some(AbReason::CopiesDiffer { of: copies.arm, interval, bound: delta / 2.0 })
}

/// What keeps copies with this interval from being known to be equal within δ.
pub(super) fn noise_in(of: usize, interval: Option<Interval>, delta: f64) -> Option<AbNoise> {
    let half = interval.map(|interval| (interval.high - interval.low) / 2.0);
    let is_wide = half.is_none_or(|half| half > delta.ln_1p());
    is_wide.then(|| AbNoise { of, half_width: half.map(change) })
}

// Whether copies of one arm are equal (A/A).

/// The chance with which the gate's interval misses. It is not divided among claims: a gate that
/// more claims make weaker would be none.
const GATE_ERROR: f64 = 0.001;

/// The copy of an arm against the arm; `None` where it has none.
pub(super) fn check(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> Option<AbCopies> {
    let sample = Sample::of_copies(input, arm, quantity);
    let centre = sample.centre()?;
    let pointwise = sample.interval(0.05);
    let gate = sample.interval(GATE_ERROR).filter(|_| sample.units >= AB_UNITS_MIN);
    let bound = (input.delta / 2.0).ln_1p();
    Some(AbCopies {
        arm,
        quantity,
        units: sample.units,
        change: known_change(centre),
        pointwise: pointwise.map(changes),
        gate: gate.map(changes),
        excludes_no_change: pointwise.is_some_and(|interval| !interval.contains(0.0)),
        differ: gate.is_some_and(|gate| gate.low > bound || gate.high < -bound),
        noise: noise_in(arm, gate, input.delta),
        sample,
    })
}

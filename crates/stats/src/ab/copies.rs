//! Whether copies of one arm are equal (A/A).

use iolens_model::ab::AbQuantity;

use super::findings::{AbCopies, AbNoise};
use super::sample::Sample;
use super::{AB_UNITS_MIN, AbInput, change, changes};

/// The chance with which the gate's interval misses. It is not divided among claims: a gate that
/// more claims make weaker would be none.
const GATE_ERROR: f64 = 0.001;

/// The copy of an arm against the arm; `None` where it has none.
pub(super) fn check(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> Option<AbCopies> {
    let sample = Sample::of_copies(input, arm, quantity);
    let centre = sample.centre()?;
    let pointwise = sample.interval(0.05);
    let gate = sample.interval(GATE_ERROR).filter(|_| sample.units >= AB_UNITS_MIN);
    let half = gate.map(|gate| (gate.high - gate.low) / 2.0);
    let bound = (input.delta / 2.0).ln_1p();
    let is_wide = half.is_none_or(|half| half > input.delta.ln_1p());
    Some(AbCopies {
        arm,
        quantity,
        units: sample.units,
        change: Some(change(centre)).filter(|change| change.is_finite()),
        pointwise: pointwise.map(changes),
        gate: gate.map(changes),
        excludes_no_change: pointwise.is_some_and(|interval| !interval.contains(0.0)),
        differ: gate.is_some_and(|gate| gate.low > bound || gate.high < -bound),
        noise: is_wide.then(|| AbNoise { of: arm, half_width: half.map(change) }),
        sample,
    })
}

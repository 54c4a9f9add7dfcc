//! The measurement that is farthest from what its curve lets expect.

use iolens_model::axes::Cell;
use iolens_model::outcome::Status;

use crate::analysis::{CellAnalysis, CostModel, Estimate, Interval, Unexpected};

/// One size of an arm's curve beside its model.
struct Place<'a> {
    cell: &'a Cell,
    measured: Estimate,
    /// ln n.
    ln_size: f64,
    /// ns by the cost model.
    model_ns: f64,
    /// ln(measured / model).
    ln_off: f64,
}

/// The farthest measurement of all curves with a cost model: among those that
/// their interval sets apart from the expectation by more than δ, if there
/// are any, else of all. Null without a cost model.
pub(crate) fn of(cells: &[CellAnalysis], models: &[CostModel], delta: f64) -> Option<Unexpected> {
    let all = models.iter().flat_map(|model| of_curve(model, &places(cells, model), delta));
    let rank = |one: &Unexpected| (one.beyond_interval, one.ratio.ln().abs());
    all.max_by(|a, b| {
        let ((a_beyond, a_far), (b_beyond, b_far)) = (rank(a), rank(b));
        a_beyond.cmp(&b_beyond).then(a_far.total_cmp(&b_far))
    })
}

/// The cells of a model's curve in which its arm can be used, ascending.
fn places<'a>(cells: &'a [CellAnalysis], model: &CostModel) -> Vec<Place<'a>> {
    let place = |cell: &'a CellAnalysis| {
        let arm = cell.arms.iter().find(|arm| arm.arm.label == model.label)?;
        let measured = arm.figures.as_ref()?.ns_per_message;
        let n = cell.cell.message_bytes.0 as f64;
        let model_ns = model.fixed_ns.value + model.per_byte_ns.value * n;
        let ln_off = (measured.value / model_ns).ln();
        let usable = arm.status == Status::Ok && ln_off.is_finite();
        usable.then(|| Place { cell: &cell.cell, measured, ln_size: n.ln(), model_ns, ln_off })
    };
    let mut places: Vec<Place<'a>> =
        cells.iter().filter(|cell| cell.cell.curve() == model.curve).filter_map(place).collect();
    places.sort_by_key(|place| place.cell.message_bytes);
    places
}

fn of_curve(model: &CostModel, places: &[Place<'_>], delta: f64) -> Vec<Unexpected> {
    let one = |(i, place): (usize, &Place<'_>)| {
        let expected_ns = place.model_ns * correction(places, i).exp();
        let apart = |interval: Interval| {
            let above = interval.low > expected_ns * (1.0 + delta);
            above || interval.high < expected_ns / (1.0 + delta)
        };
        Unexpected {
            cell: place.cell.clone(),
            label: model.label.clone(),
            measured_ns: place.measured,
            expected_ns,
            ratio: place.measured.value / expected_ns,
            beyond_interval: place.measured.interval.is_some_and(apart),
        }
    };
    places.iter().enumerate().map(one).collect()
}

/// How far the neighbours are from the model, interpolated on ln n; 0 at the
/// ends of the curve, which have a neighbour on one side only.
fn correction(places: &[Place<'_>], i: usize) -> f64 {
    let Some(before) = i.checked_sub(1).and_then(|before| places.get(before)) else { return 0.0 };
    let Some(after) = places.get(i + 1) else { return 0.0 };
    let share = (places[i].ln_size - before.ln_size) / (after.ln_size - before.ln_size);
    before.ln_off + share * (after.ln_off - before.ln_off)
}

#[cfg(test)]
mod tests {
    use iolens_model::arm::Role;
    use iolens_model::units::Bytes;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, ArmTime};

    /// 1000 + n/4 ns for 64 B to 64 KiB, each changed by `factor`, trials
    /// straying by 1 % to each side.
    fn unexpected(sizes: u32, factor: impl Fn(u64) -> f64) -> Option<Unexpected> {
        let mut plan = fixture::plan(&["base"]);
        plan.sizes = (0..sizes).map(|i| Bytes(64 << (2 * i))).collect();
        let mut run = fixture::run(plan);
        for pass in 1..=12u32 {
            for cell in run.header.plan.cells() {
                let n = cell.message_bytes.0;
                let stray = if pass % 2 == 0 { 1.01 } else { 0.99 };
                let ns = (1000.0 + 0.25 * n as f64) * factor(n) * stray;
                let arms = [ArmTime::new("base", Role::Baseline, &[ns; 4])];
                run.trials.push(fixture::trial(pass, &cell, &arms));
            }
        }
        analyse(&run).unexpected
    }

    #[test]
    fn a_bump_in_the_middle_is_found_against_its_neighbours() {
        let found = unexpected(6, |n| if n == 4096 { 1.4 } else { 1.0 }).expect("a model");
        assert_eq!((found.cell.message_bytes, found.label.as_str()), (Bytes(4096), "base"));
        assert!(found.beyond_interval);
        assert!((found.ratio - 1.4).abs() < 0.03, "{}", found.ratio);
        assert!((found.measured_ns.value / found.expected_ns / found.ratio - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_end_is_compared_with_the_model() {
        let found = unexpected(6, |n| if n == 65536 { 0.6 } else { 1.0 }).expect("a model");
        assert!(found.beyond_interval);
        assert!(found.ratio < 0.9 || found.ratio > 1.1, "{}", found.ratio);
    }

    #[test]
    fn an_affine_curve_has_nothing_unexpected() {
        let found = unexpected(6, |_| 1.0).expect("a model");
        assert!(!found.beyond_interval && (found.ratio - 1.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn without_a_cost_model_nothing_is_expected() {
        assert_eq!(unexpected(3, |n| if n == 256 { 2.0 } else { 1.0 }), None);
    }
}

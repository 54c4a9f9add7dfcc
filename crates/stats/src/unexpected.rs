//! The measurement that is farthest from what its curve lets expect.

use std::collections::BTreeMap;

use iolens_model::arm::Role;
use iolens_model::cell::Cell;

use crate::analysis::{CellAnalysis, CostModel, Neighbours, Unexpected};
use crate::cost_model::parts_by_pass;
use crate::estimate::{Estimate, Interval};
use crate::interval::{Parts, Totals, count, weighted_half_width};
use crate::roster::Track;
use crate::student::StudentTable;

/// One size of an arm's curve beside its model.
struct Place<'a> {
    cell: &'a Cell,
    measured: Estimate,
    passes: BTreeMap<u32, Parts>,
    /// ln n.
    ln_size: f64,
    /// ns by the cost model.
    model_ns: f64,
    /// ln(measured / model).
    ln_off: f64,
}

/// A curve of places, and what its arm is.
struct Curve<'a> {
    label: &'a str,
    /// Whether the arm sends anything; a control does not.
    sends: bool,
    places: Vec<Place<'a>>,
}

/// The farthest measurement of all curves with a cost model: among those that
/// their interval sets apart from the expectation by more than δ, if there
/// are any, else of all; and of these an arm that sends before a control,
/// which answers no question of the run. `None` without a cost model.
///
/// The farthest of many is looked for, so the intervals hold for all of them
/// together (Bonferroni); where trials resemble those of the passes before them, they are as wide
/// as all others of the run.
pub(crate) fn of(
    cells: &[CellAnalysis],
    tracks: &[Track<'_>],
    models: &[CostModel],
    delta: f64,
    resembling: Option<&Neighbours>,
) -> Option<Unexpected> {
    let curves: Vec<Curve> = models.iter().map(|model| curve(cells, tracks, model)).collect();
    let candidates = count(curves.iter().map(|curve| curve.places.len()).sum());
    let mut table = StudentTable::of_neighbours(candidates, resembling);
    let mut all: Vec<(bool, Unexpected)> = Vec::new();
    for curve in &curves {
        for i in 0..curve.places.len() {
            all.push((curve.sends, compared(curve, i, candidates, delta, &mut table)));
        }
    }
    let rank = |(sends, one): &(bool, Unexpected)| (one.beyond_interval, *sends);
    let far = |(_, one): &(bool, Unexpected)| one.ratio.ln().abs();
    all.into_iter()
        .max_by(|a, b| rank(a).cmp(&rank(b)).then(far(a).total_cmp(&far(b))))
        .map(|(_, one)| one)
}

/// The cells of a model's curve in which its arm can be used, ascending.
fn curve<'a>(
    cells: &'a [CellAnalysis],
    tracks: &'a [Track<'a>],
    model: &'a CostModel,
) -> Curve<'a> {
    let mut sends = false;
    let mut places: Vec<Place> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.cell.curve() == model.curve) {
        let Some(arm) = cell.arm(&model.label).filter(|arm| arm.is_ranked()) else { continue };
        let of_arm = |track: &&Track<'_>| track.cell == cell.cell && track.arm.label == model.label;
        let track = tracks.iter().find(of_arm);
        let Some((figures, track)) = arm.figures.as_ref().zip(track) else { continue };
        let measured = figures.ns_per_message;
        let n = cell.cell.size.0 as f64;
        let model_ns = model.fixed_ns.value + model.per_byte_ns.value * n;
        let ln_off = (measured.value / model_ns).ln();
        if ln_off.is_finite() {
            sends = arm.arm.role != Role::Control;
            let passes = parts_by_pass(track);
            places.push(Place {
                cell: &cell.cell,
                measured,
                passes,
                ln_size: n.ln(),
                model_ns,
                ln_off,
            });
        }
    }
    places.sort_by_key(|place| place.cell.size);
    Curve { label: &model.label, sends, places }
}

/// One place against its expectation.
fn compared(
    curve: &Curve<'_>,
    i: usize,
    candidates: u32,
    delta: f64,
    table: &mut StudentTable,
) -> Unexpected {
    let place = &curve.places[i];
    let neighbours = neighbours(&curve.places, i);
    let correction: f64 = neighbours.iter().map(|(share, of)| share * of.ln_off).sum();
    let expected_ns = place.model_ns * correction.exp();
    let ratio = place.measured.value / expected_ns;
    let simultaneous =
        half_width(place, &neighbours, table).map(|half| Interval::about_ratio(ratio, half));
    Unexpected {
        cell: place.cell.clone(),
        label: curve.label.to_owned(),
        measured_ns: place.measured,
        expected_ns,
        ratio,
        simultaneous,
        candidates,
        beyond_interval: simultaneous
            .is_some_and(|i| i.low > 1.0 + delta || i.high < 1.0 / (1.0 + delta)),
    }
}

/// Both neighbours with the share of each, interpolated on ln n; none at the
/// ends of the curve, which have a neighbour on one side only.
fn neighbours<'a>(places: &'a [Place<'a>], i: usize) -> Vec<(f64, &'a Place<'a>)> {
    let before = i.checked_sub(1).and_then(|before| places.get(before));
    let Some((before, after)) = before.zip(places.get(i + 1)) else { return Vec::new() };
    let share = (places[i].ln_size - before.ln_size) / (after.ln_size - before.ln_size);
    vec![(1.0 - share, before), (share, after)]
}

/// Half-width of ln(measured / expected), from the passes that have the place
/// and its neighbours: what moves a whole pass cancels.
fn half_width(
    place: &Place<'_>,
    neighbours: &[(f64, &Place<'_>)],
    table: &mut StudentTable,
) -> Option<f64> {
    let all: Vec<(f64, &Place)> = std::iter::once((1.0, place))
        .chain(neighbours.iter().map(|&(share, of)| (-share, of)))
        .collect();
    let in_all = |pass: &&u32| all.iter().all(|(_, of)| of.passes.contains_key(pass));
    let passes: Vec<u32> = place.passes.keys().filter(in_all).copied().collect();
    let totals = |&(weight, of): &(f64, &Place)| {
        let parts: Vec<Parts> = passes.iter().map(|pass| of.passes[pass]).collect();
        Some((weight, Totals::of(&parts)?))
    };
    let totals: Vec<(f64, Totals)> = all.iter().map(totals).collect::<Option<_>>()?;
    weighted_half_width(&totals, table, |t| t.simultaneous)
}

#[cfg(test)]
mod tests {
    use iolens_model::plan::Plan;
    use iolens_model::units::Bytes;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, time};

    /// 1000 + n/4 ns for 64 B to 64 KiB, each changed by `factor`, trials
    /// straying by 1 % to each side.
    fn unexpected(sizes: u32, factor: impl Fn(u64) -> f64) -> Option<Unexpected> {
        let run = fixture::run_of(plan(&["base"], sizes), 12, |pass, _, cell| {
            let stray = if pass % 2 == 0 { 1.01 } else { 0.99 };
            [time("base", usual_ns(cell) * factor(cell.size.0) * stray)]
        });
        analyse(&run).unexpected
    }

    fn plan(primitives: &[&str], sizes: u32) -> Plan {
        let sizes: Vec<u64> = (0..sizes).map(|i| 64 << (2 * i)).collect();
        fixture::sized(primitives, &sizes)
    }

    fn usual_ns(cell: &Cell) -> f64 {
        1000.0 + 0.25 * cell.size.0 as f64
    }

    #[test]
    fn a_bump_in_the_middle_is_found_against_its_neighbours() {
        let found = unexpected(6, |n| if n == 4096 { 1.4 } else { 1.0 }).expect("a model");
        assert_eq!((found.cell.size, found.label.as_str()), (Bytes(4096), "base"));
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

    /// The same curve for a sending arm and a control, each changed by its own
    /// factor at 4 KiB, trials straying by `stray`.
    fn with_a_control(sending: f64, control: f64, stray: f64) -> Unexpected {
        let run = fixture::run_of(plan(&["base"], 6), 12, |pass, i, cell| {
            // Sizes stray against each other, so that passes do not cancel.
            let stray = if (pass + i).is_multiple_of(2) { 1.0 + stray } else { 1.0 - stray };
            [("base", sending), ("memcpy", control)].map(|(label, factor)| {
                let factor = if cell.size.0 == 4096 { factor } else { 1.0 };
                time(label, usual_ns(cell) * factor * stray)
            })
        });
        analyse(&run).unexpected.expect("a model")
    }

    #[test]
    fn a_sending_arm_is_named_before_a_control_that_is_farther() {
        let found = with_a_control(1.2, 1.5, 0.005);
        assert_eq!((found.label.as_str(), found.beyond_interval), ("base", true));
        let found = with_a_control(1.0, 1.5, 0.005);
        assert_eq!((found.label.as_str(), found.beyond_interval), ("memcpy", true));
        let found = with_a_control(1.0, 1.0, 0.005);
        assert_eq!((found.label.as_str(), found.beyond_interval), ("base", false));
    }

    /// Twelve measurements are looked through for the farthest, so t is taken
    /// at 1 − 0.025/12. Sizes stray by 1 % against their neighbours, so that a
    /// place between two strays from its expectation by 2 %, an end by 1 %.
    #[test]
    fn the_interval_covers_all_that_were_looked_through() {
        let found = with_a_control(1.0, 1.0, 0.01);
        assert_eq!(found.candidates, 12);
        let is_end = [64, 65536].contains(&found.cell.size.0);
        let spread = if is_end { 0.01 } else { 0.02 } * (12.0f64 / 11.0).sqrt();
        let t = crate::student::quantile(11, 1.0 - 0.025 / 12.0).expect("a quantile");
        let interval = found.simultaneous.expect("an interval");
        let half = interval.half_of_ratio();
        let expect = t * spread / 12f64.sqrt();
        assert!((half / expect - 1.0).abs() < 0.02, "{half} {expect}");
    }

    /// The same passes in another order: twelve of one state behind twelve of another, and both in
    /// turn. Neighbouring sizes stray to either side, so that passes do not cancel.
    #[test]
    fn passes_that_resemble_their_neighbours_widen_the_interval() {
        let found = |is_other: fn(u32) -> bool| {
            let run = fixture::run_of(plan(&["base", "arm"], 6), 24, |pass, i, cell| {
                let stray = if is_other(pass) == (i % 2 == 0) { 1.01 } else { 0.99 };
                [time("base", usual_ns(cell)), time("arm", usual_ns(cell) * stray)]
            });
            let analysis = analyse(&run);
            let found = analysis.unexpected.expect("a model");
            let interval = found.simultaneous.expect("an interval");
            let neighbours = analysis.neighbours.expect("enough passes");
            (found.candidates, (interval.high / interval.low).ln(), neighbours)
        };
        let (candidates, behind, neighbours) = found(|pass| pass <= 12);
        let (_, in_turn, none) = found(|pass| pass.is_multiple_of(2));
        assert!(neighbours.matters && !none.matters, "{neighbours:?} {none:?}");
        let t = |found| {
            let mut table = StudentTable::of_neighbours(candidates, Some(found));
            table.multipliers(24).expect("trials").simultaneous
        };
        let wider = t(&neighbours) / t(&none);
        assert!(wider > 2.0 && (behind / in_turn / wider - 1.0).abs() < 1e-6, "{behind} {in_turn}");
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

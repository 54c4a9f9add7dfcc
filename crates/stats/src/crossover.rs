//! Where one arm overtakes another along the sizes, as a band: what the
//! simultaneous intervals can tell apart by more than δ, and nothing between.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::units::Bytes;

use crate::analysis::{ArmAnalysis, CellAnalysis, Crossover, CrossoverPoint, CrossoverShape};
use crate::estimate::Interval;
use crate::roster::grouped;

/// Pairs of primitives that are looked at whatever the baseline is, the one
/// for small sizes first.
const PAIRS: [(&str, &str); 3] = [
    ("send_staged", "sendmsg_iov"),
    ("send_staged", "sendmsg_zerocopy"),
    ("sendmsg_iov", "sendmsg_zerocopy"),
];

/// The crossovers of every curve: the pairs above, then the baseline against
/// each compared arm that is not among them. The data decide the order of a pair.
pub(crate) fn of(cells: &[CellAnalysis], delta: f64) -> Vec<Crossover> {
    let mut found = Vec::new();
    for (curve, mut cells) in grouped(cells, |cell| cell.cell.curve()) {
        cells.sort_by_key(|cell| cell.cell.size);
        for (first, second) in cells.first().map(|cell| pairs(cell)).unwrap_or_default() {
            let points: Vec<CrossoverPoint> =
                cells.iter().filter_map(|cell| point(cell, first, second)).collect();
            found.extend(of_points(&curve, [first, second], points, delta));
        }
    }
    found
}

/// Labels of the pairs of a cell; every cell has the same arms.
fn pairs(cell: &CellAnalysis) -> Vec<(&str, &str)> {
    let of = |roles: &[Role]| -> Vec<&ArmAnalysis> {
        cell.arms.iter().filter(|arm| roles.contains(&arm.arm.role)).collect()
    };
    let all = of(&[Role::Baseline, Role::Compared]);
    let label = |primitive: &str| {
        let arm = all.iter().find(|arm| arm.arm.primitive == primitive)?;
        Some(arm.arm.label.as_str())
    };
    let mut pairs: Vec<(&str, &str)> =
        PAIRS.iter().filter_map(|(first, second)| Some((label(first)?, label(second)?))).collect();
    for baseline in of(&[Role::Baseline]) {
        for compared in of(&[Role::Compared]) {
            let (a, b) = (baseline.arm.label.as_str(), compared.arm.label.as_str());
            if !pairs.contains(&(a, b)) && !pairs.contains(&(b, a)) {
                pairs.push((a, b));
            }
        }
    }
    pairs
}

/// Time of the first over that of the second in one cell; `None` where either
/// has no numbers that can be used, or gets no verdict: that its slices are
/// longer than the baseline's says nothing of the arm.
fn point(cell: &CellAnalysis, first: &str, second: &str) -> Option<CrossoverPoint> {
    let arm = |label| cell.arm(label).filter(|arm| arm.is_ranked());
    let (a, b) = (arm(first)?, arm(second)?);
    let (ratio, simultaneous) = if a.arm.role == Role::Baseline {
        let contrast = b.contrast.as_ref()?;
        (contrast.ratio, contrast.simultaneous)
    } else if b.arm.role == Role::Baseline {
        let contrast = a.contrast.as_ref()?;
        (1.0 / contrast.ratio, contrast.simultaneous.map(Interval::inverse))
    } else {
        let pair = cell.pairs.iter().find(|pair| {
            let pair = (pair.first.as_str(), pair.second.as_str());
            pair == (first, second) || pair == (second, first)
        })?;
        let ratio = if pair.first == second { pair.ratio } else { 1.0 / pair.ratio };
        (ratio, pair.interval_of(second))
    };
    Some(CrossoverPoint { size: cell.cell.size, ratio, simultaneous })
}

/// Which arm is ahead at one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    First,
    Second,
    /// A tie, or not to be told.
    Unknown,
}

fn ahead(point: &CrossoverPoint, delta: f64) -> Ahead {
    match point.simultaneous {
        Some(interval) if interval.low > 1.0 + delta => Ahead::Second,
        Some(interval) if interval.high < 1.0 / (1.0 + delta) => Ahead::First,
        _ => Ahead::Unknown,
    }
}

/// The crossover of two arms from their points, ascending in size; `None` under two. The first
/// of a pair is the one that is ahead at the smaller sizes: where the data say so, the two are
/// named the other way round.
pub(crate) fn of_points(
    curve: &Cell,
    [first, second]: [&str; 2],
    points: Vec<CrossoverPoint>,
    delta: f64,
) -> Option<Crossover> {
    let [smallest, .., largest] = &points[..] else {
        return None;
    };
    let (smallest, largest) = (smallest.size, largest.size);
    let order: Vec<Ahead> = points.iter().map(|point| ahead(point, delta)).collect();
    if is_the_other_way_round(&order) {
        let turned = points.into_iter().map(CrossoverPoint::turned).collect();
        return of_points(curve, [second, first], turned, delta);
    }
    let shape = shape(&order);
    let [to, from] = ends(&order, shape);
    let size = |index: usize| points.get(index).map(|point| point.size);
    Some(Crossover {
        curve: curve.clone(),
        first: first.to_owned(),
        second: second.to_owned(),
        smallest,
        largest,
        first_ahead_to: to.and_then(size),
        second_ahead_from: from.and_then(size),
        shape,
        steps: points.windows(2).filter_map(step).collect(),
        points,
    })
}

/// Who is ahead from where to where, with the sizes at which nobody is or without them.
fn runs(order: &[Ahead], with_unknown: bool) -> Vec<Ahead> {
    let known = |ahead: &Ahead| with_unknown || *ahead != Ahead::Unknown;
    let mut runs: Vec<Ahead> = order.iter().copied().filter(known).collect();
    runs.dedup();
    runs
}

/// Whether the second is ahead at small sizes and the first, or nobody, at large ones; or
/// nobody at small sizes and the first at large ones.
fn is_the_other_way_round(order: &[Ahead]) -> bool {
    use Ahead::{First, Second, Unknown};
    let whole = runs(order, true);
    runs(order, false) == [Second, First] || whole == [Second, Unknown] || whole == [Unknown, First]
}

/// One crossing needs the first ahead at some size, the second at a larger one, and the first
/// nowhere above the second; sizes at which nobody is ahead may lie anywhere. The one-sided
/// shapes allow no such hole, since they say what is on the other side of their bound.
fn shape(order: &[Ahead]) -> CrossoverShape {
    match (&runs(order, true)[..], &runs(order, false)[..]) {
        (_, []) => CrossoverShape::NeitherAnywhere,
        (_, [Ahead::First, Ahead::Second]) => CrossoverShape::Crosses,
        ([Ahead::First], _) => CrossoverShape::FirstThroughout,
        ([Ahead::Second], _) => CrossoverShape::SecondThroughout,
        ([Ahead::First, Ahead::Unknown], _) => CrossoverShape::FirstThenUnknown,
        ([Ahead::Unknown, Ahead::Second], _) => CrossoverShape::UnknownThenSecond,
        _ => CrossoverShape::Mixed,
    }
}

/// Up to which point the first is ahead, and from which the second. Where they cross these are
/// the ends of the band, the last of the one and the first of the other; else the ends of a
/// stretch without a hole that begins or ends all points.
fn ends(order: &[Ahead], shape: CrossoverShape) -> [Option<usize>; 2] {
    let last = order.iter().rposition(|&ahead| ahead == Ahead::First);
    let first = order.iter().position(|&ahead| ahead == Ahead::Second);
    if shape == CrossoverShape::Crosses {
        return [last, first];
    }
    let up = order.iter().take_while(|&&ahead| ahead == Ahead::First).count();
    let down = order.iter().rev().take_while(|&&ahead| ahead == Ahead::Second).count();
    [up.checked_sub(1), (down > 0).then(|| order.len() - down)]
}

/// A jump between two neighbours that is more than three times the noise of
/// both: their simultaneous half-widths on the logarithm, added in
/// quadrature.
fn step(neighbours: &[CrossoverPoint]) -> Option<(Bytes, Bytes)> {
    let [a, b] = neighbours else { return None };
    let half = |point: &CrossoverPoint| point.simultaneous.map(|interval| interval.half_of_ratio());
    let noise = half(a)?.hypot(half(b)?);
    ((b.ratio / a.ratio).ln().abs() > 3.0 * noise).then_some((a.size, b.size))
}

#[cfg(test)]
mod tests;

//! Curves that leave the plot are cut at its edges, at the place where they
//! leave it.

type Spot = (f64, f64);

/// The parts of a line between two heights, `low` the smaller y.
pub(crate) fn line(points: &[Spot], low: f64, high: f64) -> Vec<Vec<Spot>> {
    let mut parts: Vec<Vec<Spot>> = Vec::new();
    for pair in points.windows(2) {
        let kept = segment(pair[0], pair[1], low, high);
        let Some((from, to)) = kept else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&from) => part.push(to),
            _ => parts.push(vec![from, to]),
        }
    }
    parts
}

fn segment(from: Spot, to: Spot, low: f64, high: f64) -> Option<(Spot, Spot)> {
    let above = from.1.max(to.1) < low;
    let below = from.1.min(to.1) > high;
    (!above && !below).then(|| (at_height(from, to, low, high), at_height(to, from, low, high)))
}

/// `point`, or where the way to `other` enters the heights.
fn at_height(point: Spot, other: Spot, low: f64, high: f64) -> Spot {
    let edge = point.1.clamp(low, high);
    if edge == point.1 {
        return point;
    }
    let share = (edge - point.1) / (other.1 - point.1);
    (point.0 + share * (other.0 - point.0), edge)
}

/// The part of an area between two heights (Sutherland & Hodgman, 1974).
pub(crate) fn area(points: &[Spot], low: f64, high: f64) -> Vec<Spot> {
    let below_top = half(points, |y| y >= low, low);
    half(&below_top, |y| y <= high, high)
}

fn half(points: &[Spot], inside: impl Fn(f64) -> bool, edge: f64) -> Vec<Spot> {
    let mut out = Vec::new();
    for (i, &to) in points.iter().enumerate() {
        let from = points[(i + points.len() - 1) % points.len()];
        if inside(from.1) != inside(to.1) {
            let share = (edge - from.1) / (to.1 - from.1);
            out.push((from.0 + share * (to.0 - from.0), edge));
        }
        if inside(to.1) {
            out.push(to);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_it_leaves() {
        let points = [(0.0, 5.0), (10.0, 15.0), (20.0, 5.0), (30.0, 6.0)];
        let expect =
            vec![vec![(0.0, 5.0), (5.0, 10.0)], vec![(15.0, 10.0), (20.0, 5.0), (30.0, 6.0)]];
        assert_eq!(line(&points, 0.0, 10.0), expect);
        assert!(line(&[(0.0, 20.0), (1.0, 30.0)], 0.0, 10.0).is_empty());
    }

    #[test]
    fn an_area_is_cut_on_both_sides() {
        let square = [(0.0, -5.0), (10.0, -5.0), (10.0, 15.0), (0.0, 15.0)];
        let mut cut = area(&square, 0.0, 10.0);
        cut.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        assert_eq!(cut, [(0.0, 0.0), (0.0, 10.0), (10.0, 0.0), (10.0, 10.0)]);
    }
}

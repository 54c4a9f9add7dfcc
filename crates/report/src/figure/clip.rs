//! Curves that leave the plot are cut at its edges, at the place where they
//! leave it.

use super::*;

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

/// The part of a segment between two heights.
fn segment(from: Spot, to: Spot, low: f64, high: f64) -> Option<(Spot, Spot)> {
    let is_outside = from.1.max(to.1) < low || from.1.min(to.1) > high;
    let inside = |spot: Spot| match spot.1.clamp(low, high) {
        edge if edge == spot.1 => spot,
        edge => at_height(from, to, edge),
    };
    (!is_outside).then(|| (inside(from), inside(to)))
}

/// Where the way from one place to another has a height.
fn at_height(from: Spot, to: Spot, height: f64) -> Spot {
    let share = (height - from.1) / (to.1 - from.1);
    (from.0 + share * (to.0 - from.0), height)
}

/// The part of an area between two heights (Sutherland & Hodgman, 1974).
pub(crate) fn area(points: &[Spot], low: f64, high: f64) -> Vec<Spot> {
    let below_top = half(points, |y| y >= low, low);
    half(&below_top, |y| y <= high, high)
}

fn half(points: &[Spot], inside: impl Fn(f64) -> bool, edge: f64) -> Vec<Spot> {
    let before = points.iter().cycle().skip(points.len().saturating_sub(1));
    let mut out = Vec::new();
    for (&from, &to) in before.zip(points) {
        if inside(from.1) != inside(to.1) {
            out.push(at_height(from, to, edge));
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

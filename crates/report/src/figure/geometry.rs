//! Curves that leave a plot are cut where they leave it, and names at their ends moved until
//! they do not cover each other.

use super::*;

/// The parts of a line between two heights, `low` the smaller y.
pub(super) fn cut_line(points: &[Spot], low: f64, high: f64) -> Vec<Vec<Spot>> {
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
pub(super) fn cut_area(points: &[Spot], low: f64, high: f64) -> Vec<Spot> {
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

/// Moves positions apart until neighbours are `gap` apart, inside `low..high`
/// as far as there is room. Positions keep their order and their index.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Neighbours too close form a block that stands around its own middle; blocks that meet
    // become one. Of each how many it has, and the sum of where they would stand.
    let mut blocks: Vec<(usize, f64)> = Vec::new();
    let first = |&(n, sum): &(usize, f64)| {
        let half = gap * (n as f64 - 1.0) / 2.0;
        (sum / n as f64).min(high - half).max(low + half) - half
    };
    for &index in &order {
        let mut block = (1, wanted[index]);
        while let Some((n, sum)) =
            blocks.pop_if(|above| first(above) + gap * above.0 as f64 > first(&block))
        {
            block = (n + block.0, sum + block.1);
        }
        blocks.push(block);
    }
    let places =
        blocks.iter().flat_map(|block| (0..block.0).map(move |i| first(block) + gap * i as f64));
    let mut placed = wanted.to_vec();
    order.into_iter().zip(places).for_each(|(index, place)| placed[index] = place);
    placed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{cut_area, cut_line, spread};

    #[test]
    fn a_line_is_cut_where_it_leaves() {
        let points = [(0.0, 5.0), (10.0, 15.0), (20.0, 5.0), (30.0, 6.0)];
        let expect =
            vec![vec![(0.0, 5.0), (5.0, 10.0)], vec![(15.0, 10.0), (20.0, 5.0), (30.0, 6.0)]];
        assert_eq!(cut_line(&points, 0.0, 10.0), expect);
        assert!(cut_line(&[(0.0, 20.0), (1.0, 30.0)], 0.0, 10.0).is_empty());
    }

    #[test]
    fn an_area_is_cut_on_both_sides() {
        let square = [(0.0, -5.0), (10.0, -5.0), (10.0, 15.0), (0.0, 15.0)];
        let mut cut = cut_area(&square, 0.0, 10.0);
        cut.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        assert_eq!(cut, [(0.0, 0.0), (0.0, 10.0), (10.0, 0.0), (10.0, 10.0)]);
    }

    #[test]
    fn labels_with_room_stay() {
        assert_eq!(spread(&[80.0, 10.0, 40.0], 15.0, 0.0, 100.0), [80.0, 10.0, 40.0]);
    }

    #[test]
    fn labels_that_touch_move_apart_around_their_middle() {
        assert_eq!(spread(&[50.0, 52.0], 14.0, 0.0, 100.0), [44.0, 58.0]);
    }

    proptest! {
        #[test]
        fn neighbours_keep_their_distance(wanted in prop::collection::vec(0.0..300.0f64, 1..9)) {
            let mut placed = spread(&wanted, 15.0, 0.0, 300.0);
            placed.sort_by(f64::total_cmp);
            prop_assert!(placed.windows(2).all(|pair| pair[1] - pair[0] > 14.999));
            prop_assert!(placed.iter().all(|y| (-1e-9..=300.000_001).contains(y)));
        }
    }
}

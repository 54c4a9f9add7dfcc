//! Labels at the ends of curves, and along an axis, that do not cover each
//! other.

use super::*;

/// Every how many ticks of an axis of a length a label has room.
pub(crate) fn step(scale: &Scale, length: f64) -> usize {
    const APART: f64 = 7.0;
    let ticks = &scale.ticks;
    let fits = |step: usize| {
        let shown: Vec<(f64, f64)> = ticks
            .iter()
            .step_by(step)
            .map(|(value, label)| (length * scale.position(*value), svg::width(label, 11.5)))
            .collect();
        shown.windows(2).all(|pair| pair[1].0 - pair[0].0 >= (pair[0].1 + pair[1].1) / 2.0 + APART)
    };
    (1..=ticks.len()).find(|step| fits(*step)).unwrap_or(1)
}

/// Moves positions apart until neighbours are `gap` apart, inside `low..high`
/// as far as there is room. Positions keep their order and their index.
pub(crate) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
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
    use super::{spread, step};
    use crate::figure::scale::Scale;
    use proptest::prelude::*;

    #[test]
    fn labels_with_room_stay() {
        assert_eq!(spread(&[80.0, 10.0, 40.0], 15.0, 0.0, 100.0), [80.0, 10.0, 40.0]);
    }

    #[test]
    fn labels_that_touch_move_apart_around_their_middle() {
        assert_eq!(spread(&[50.0, 52.0], 14.0, 0.0, 100.0), [44.0, 58.0]);
    }

    #[test]
    fn labels_of_an_axis_are_left_out_evenly() {
        let scale =
            Scale::sizes(&[64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1 << 20].map(f64::from));
        assert_eq!([600.0, 300.0, 150.0].map(|length| step(&scale, length)), [1, 2, 3]);
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

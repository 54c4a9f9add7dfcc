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
    // Neighbours too close form a block that stands around its own middle;
    // blocks that meet become one.
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let first = |block: &[usize]| {
        let mean = block.iter().map(|&i| wanted[i]).sum::<f64>() / block.len() as f64;
        let half = gap * (block.len() as f64 - 1.0) / 2.0;
        mean.min(high - half).max(low + half) - half
    };
    for index in order {
        let mut block = vec![index];
        while let Some(above) =
            blocks.pop_if(|above| first(above) + gap * above.len() as f64 > first(&block))
        {
            block = [above, block].concat();
        }
        blocks.push(block);
    }
    let mut placed = wanted.to_vec();
    for block in &blocks {
        for (i, &index) in block.iter().enumerate() {
            placed[index] = first(block) + gap * i as f64;
        }
    }
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

//! Which rate to try next. Rates stand on a ladder, each step a fixed share above the one
//! below; the ladder is bisected between the highest step that kept what is asked and the
//! lowest that broke it, then both are repeated. A function of what was seen so far and of
//! nothing else, so that a search can go on where it was left.
//!
//! As in RFC 9971 (Multiple Loss Ratio Search), a step is judged by the larger part of its
//! phases; the upper bound is the lowest step that broke, and the lower bound the highest
//! below it that kept. So the two never change places, whatever a noisy machine answers.

/// What one phase says of what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// The model kept it.
    Kept,
    /// The model broke it.
    Broken,
    /// It was broken, or did not end, and the model may not be why.
    SetAside,
}

/// The ladder that is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ladder {
    /// The lowest step.
    pub(super) bottom: i32,
    /// The step to begin with.
    pub(super) start: i32,
    /// The highest step.
    pub(super) top: i32,
    /// Phases of the two steps that the answer rests on, an odd number.
    pub(super) repeats: u32,
}

/// Phases of a step that may be set aside before the step is given up.
pub(super) const TRIES: u32 = 3;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A phase at this step.
    Ask(i32),
    /// Nothing: the bounds are final.
    End,
}

/// What the phases of a step say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More of them kept it than broke it.
    Keeps,
    /// More broke it.
    Breaks,
    /// Nothing can be said at this step.
    Blocked,
    /// As many kept it as broke it.
    Open,
}

/// How often a step was tried, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) step: i32,
    pub(super) kept: u32,
    pub(super) broken: u32,
    pub(super) set_aside: u32,
}

impl Tally {
    fn decided(&self) -> u32 {
        self.kept + self.broken
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.kept.cmp(&self.broken) {
            std::cmp::Ordering::Greater => Verdict::Keeps,
            std::cmp::Ordering::Less => Verdict::Breaks,
            std::cmp::Ordering::Equal if self.set_aside >= TRIES => Verdict::Blocked,
            std::cmp::Ordering::Equal => Verdict::Open,
        }
    }

    /// Whether another phase of it is of no use to the answer.
    fn is_enough(&self, ladder: &Ladder) -> bool {
        let is_full = self.decided() >= ladder.repeats;
        // A step that is disturbed again and again has what it can get. What disturbed it at
        // first may be over when the answer would rest on it.
        let is_hopeless = self.verdict() == Verdict::Blocked && self.set_aside >= 2 * TRIES;
        is_full || is_hopeless || self.set_aside >= TRIES + ladder.repeats
    }
}

/// What was seen, by step, steps rising.
pub(super) fn tallies(seen: &[(i32, Said)]) -> Vec<Tally> {
    let mut tallies: Vec<Tally> = Vec::new();
    for &(step, said) in seen {
        let at = tallies.binary_search_by_key(&step, |tally| tally.step);
        let at = at.unwrap_or_else(|place| {
            tallies.insert(place, Tally { step, kept: 0, broken: 0, set_aside: 0 });
            place
        });
        let count = match said {
            Said::Kept => &mut tallies[at].kept,
            Said::Broken => &mut tallies[at].broken,
            Said::SetAside => &mut tallies[at].set_aside,
        };
        *count += 1;
    }
    tallies
}

/// The bounds so far: the highest step that keeps, below the lowest that does not.
pub(super) fn bounds(tallies: &[Tally]) -> [Option<Tally>; 2] {
    let breaks = |tally: &&Tally| matches!(tally.verdict(), Verdict::Breaks | Verdict::Blocked);
    let upper = tallies.iter().find(breaks).copied();
    let below = |tally: &&Tally| upper.is_none_or(|upper| tally.step < upper.step);
    let keeps = |tally: &&Tally| tally.verdict() == Verdict::Keeps;
    let lower = tallies.iter().rev().filter(below).find(keeps).copied();
    [lower, upper]
}

impl Ladder {
    /// What to do after what was seen.
    pub(super) fn next(&self, seen: &[(i32, Said)]) -> Next {
        let tallies = tallies(seen);
        let [lower, upper] = bounds(&tallies);
        // A step above the lowest that breaks no longer matters.
        let matters = |tally: &&Tally| upper.is_none_or(|upper| tally.step < upper.step);
        let open = |tally: &&Tally| tally.verdict() == Verdict::Open;
        if let Some(tally) = tallies.iter().filter(matters).find(open) {
            return Next::Ask(tally.step);
        }
        let low = lower.map_or(self.bottom - 1, |tally| tally.step);
        let high = upper.map_or(self.top + 1, |tally| tally.step);
        if tallies.is_empty() && low < self.start && self.start < high {
            return Next::Ask(self.start);
        }
        if high - low > 1 {
            return Next::Ask(low + (high - low) / 2);
        }
        let edges = [lower, upper].into_iter().flatten();
        let wanting = edges.filter(|tally| !tally.is_enough(self));
        match wanting.min_by_key(Tally::decided) {
            Some(tally) => Next::Ask(tally.step),
            None => Next::End,
        }
    }

    /// Phases that a search takes on a quiet machine.
    pub(super) fn phases(&self) -> u32 {
        let sides = [self.start - self.bottom + 1, self.top + 1 - self.start];
        let longer = sides.into_iter().max().unwrap_or(1).unsigned_abs().max(1);
        // The first, and as many as the longer side can be halved.
        let bisecting = 1 + u32::BITS - (longer - 1).leading_zeros();
        bisecting + 2 * (self.repeats - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::search::PATIENCE;

    const LADDER: Ladder = Ladder { bottom: -85, start: -14, top: 5, repeats: 5 };

    /// Phases up to which a search may go on with whatever answers.
    const MOST: usize = 600;

    /// Searches with what `answer` says at a step; returns all that was seen.
    fn search(ladder: &Ladder, mut answer: impl FnMut(i32) -> Said) -> Vec<(i32, Said)> {
        let mut seen = Vec::new();
        while let Next::Ask(step) = ladder.next(&seen) {
            assert!((ladder.bottom..=ladder.top).contains(&step), "{step} is not on the ladder");
            seen.push((step, answer(step)));
            assert!(seen.len() <= MOST, "it does not end");
        }
        seen
    }

    fn kept_up_to(edge: i32) -> impl FnMut(i32) -> Said {
        move |step| if step <= edge { Said::Kept } else { Said::Broken }
    }

    #[test]
    fn every_edge_is_found_in_the_stated_number_of_phases() {
        for edge in LADDER.bottom..LADDER.top {
            let seen = search(&LADDER, kept_up_to(edge));
            let [lower, upper] = bounds(&tallies(&seen));
            let (lower, upper) = (lower.unwrap(), upper.unwrap());
            assert_eq!((lower.step, upper.step), (edge, edge + 1));
            assert_eq!((lower.kept, lower.broken, upper.kept, upper.broken), (5, 0, 0, 5));
            assert!(seen.len() <= LADDER.phases() as usize, "{} phases", seen.len());
        }
    }

    #[test]
    fn what_is_kept_everywhere_or_nowhere_ends_at_the_end_of_the_ladder() {
        let seen = search(&LADDER, |_| Said::Kept);
        let [lower, upper] = bounds(&tallies(&seen));
        assert_eq!((lower.unwrap().step, lower.unwrap().kept, upper), (LADDER.top, 5, None));
        let seen = search(&LADDER, |_| Said::Broken);
        let [lower, upper] = bounds(&tallies(&seen));
        assert_eq!((lower, upper.unwrap().step, upper.unwrap().broken), (None, LADDER.bottom, 5));
    }

    /// Above a step the client is the limit: the answer is the step below it.
    #[test]
    fn a_step_that_nothing_can_be_said_of_bounds_the_search() {
        let seen = search(&LADDER, |step| if step <= -3 { Said::Kept } else { Said::SetAside });
        let [lower, upper] = bounds(&tallies(&seen));
        let (lower, upper) = (lower.unwrap(), upper.unwrap());
        assert_eq!((lower.step, upper.step, upper.verdict()), (-3, -2, Verdict::Blocked));
        assert_eq!(upper.set_aside, 2 * TRIES);
    }

    /// The first dozen phases are set aside, and then the machine is calm.
    #[test]
    fn what_disturbed_a_search_for_a_while_bounds_it_no_longer() {
        let mut left = 12;
        let seen = search(&LADDER, |step| match left {
            0 => kept_up_to(-2)(step),
            _ => {
                left -= 1;
                Said::SetAside
            }
        });
        let [lower, upper] = bounds(&tallies(&seen));
        assert_eq!((lower.unwrap().step, upper.unwrap().step), (-2, -1));
        assert!(seen.len() <= PATIENCE * LADDER.phases() as usize, "{} phases", seen.len());
    }

    #[test]
    fn one_disturbed_phase_is_asked_again() {
        let mut first = true;
        let seen = search(&LADDER, |step| match std::mem::take(&mut first) {
            true => Said::SetAside,
            false => kept_up_to(0)(step),
        });
        assert_eq!(seen[..2], [(-14, Said::SetAside), (-14, Said::Kept)]);
        assert_eq!(bounds(&tallies(&seen))[0].unwrap().step, 0);
    }

    /// The chance to keep falls from all to none over a few steps around `edge`.
    fn noisy(edge: f64, width: f64, seed: u64) -> impl FnMut(i32) -> Said {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        move |step| {
            let chance = 1.0 / (1.0 + ((f64::from(step) - edge) / width).exp());
            if rng.random_bool(chance) { Said::Kept } else { Said::Broken }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever a machine answers, in whatever order.
        #[test]
        fn it_ends_and_its_bounds_never_change_places(
            answers in prop::collection::vec(0u8..3, 1..200),
            bottom in -90i32..-20,
            repeats in prop::sample::select(vec![1u32, 3, 5, 7]),
        ) {
            let ladder = Ladder { bottom, repeats, ..LADDER };
            let mut next = answers.iter().cycle();
            let seen = search(&ladder, |_| match next.next() {
                Some(0) => Said::Kept,
                Some(1) => Said::Broken,
                _ => Said::SetAside,
            });
            if let [Some(lower), Some(upper)] = bounds(&tallies(&seen)) {
                prop_assert_eq!(lower.step + 1, upper.step);
                prop_assert_eq!(lower.verdict(), Verdict::Keeps);
                prop_assert!(upper.verdict() != Verdict::Keeps);
            }
        }

        /// The chance to keep it falls over some ten steps: the answer lies among these.
        #[test]
        fn noise_that_falls_with_the_rate_moves_the_answer_no_further_than_it_reaches(
            edge in -60.0f64..-4.0,
            seed in any::<u64>(),
        ) {
            let seen = search(&LADDER, noisy(edge, 1.0, seed));
            let [lower, upper] = bounds(&tallies(&seen));
            let lower = f64::from(lower.expect("far below it is always kept").step);
            prop_assert!((lower - edge).abs() <= 7.0, "{lower} for {edge}");
            prop_assert!(upper.is_some());
            prop_assert!(seen.len() <= PATIENCE * LADDER.phases() as usize, "{}", seen.len());
        }

        /// A search that is left and gone on with asks what it would have asked.
        #[test]
        fn what_comes_next_depends_on_what_was_seen_alone(
            edge in -80i32..4,
            cut in 0usize..20,
        ) {
            let whole = search(&LADDER, kept_up_to(edge));
            let cut = cut.min(whole.len());
            let next = LADDER.next(&whole[..cut]);
            match whole.get(cut) {
                Some((step, _)) => prop_assert_eq!(next, Next::Ask(*step)),
                None => prop_assert_eq!(next, Next::End),
            }
        }
    }
}

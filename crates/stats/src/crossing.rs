//! Where two arms take the same time, as a point: only from the trials of a run that was made
//! for it, at sizes inside a band that another run left open (METHOD, Across sizes).
//!
//! The mean curve of ln(time of the first / time of the second) over the passes is joined by
//! straight lines on log2 of the size; where it changes its sign once, that is the point. Its
//! interval is the delete-one jackknife's over passes, by t (Efron and Tibshirani, An
//! Introduction to the Bootstrap, 1993, chapter 11).

use std::collections::BTreeMap;
use std::mem::swap;

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use iolens_model::units::Bytes;

use crate::analysis::{Analysis, Crossing, Crossover, CrossoverShape};
use crate::estimate::{Estimate, Interval};
use crate::interval::{Moments, count, median};
use crate::roster::{Point, Track};
use crate::student::StudentTable;

/// Passes that a jackknife needs at least: with fewer, one odd pass decides.
const PASSES_MIN: usize = 6;

/// A jump at the crossing is a step where it is this many times the middle one of the others,
/// and of the noise.
const STEP: f64 = 3.0;

/// The crossings of a run that confirms another; empty in a run that stands for itself.
pub(crate) fn of(
    header: &RunHeader,
    tracks: &[Track<'_>],
    crossovers: &[Crossover],
    table: &mut StudentTable,
) -> Vec<Crossing> {
    match header.confirms {
        None => Vec::new(),
        Some(_) => crossovers.iter().filter_map(|c| of_pair(header, tracks, c, table)).collect(),
    }
}

impl Analysis {
    /// Takes over the points that a run has found which confirms this one.
    pub fn confirm(&mut self, confirming: &Analysis) {
        let bands = || self.crossovers.iter().filter(|own| own.band().is_some());
        let found = confirming
            .crossings
            .iter()
            .filter_map(|found| bands().find_map(|own| found.as_of(own)));
        let found: Vec<Crossing> = found.collect();
        self.crossings.extend(found);
    }
}

impl Crossing {
    /// As what fresh trials say of a crossover; `None` where it is of another pair or curve.
    fn as_of(&self, own: &Crossover) -> Option<Crossing> {
        let pair = |first, second| (&self.first, &self.second) == (first, second);
        if self.curve != own.curve {
            None
        } else if pair(&own.first, &own.second) {
            Some(self.clone())
        } else if pair(&own.second, &own.first) {
            let turned = self.at_bytes.map(|_| format!("there {} is ahead below it", own.second));
            Some(Crossing {
                first: own.first.clone(),
                second: own.second.clone(),
                at_bytes: None,
                reason: turned.or_else(|| self.reason.clone()),
                ..self.clone()
            })
        } else {
            None
        }
    }
}

impl Crossover {
    /// The sizes between which the second may overtake the first: the ends of the band, or of
    /// the sizes where it is open to one side. `None` where it overtakes nowhere, or more than
    /// once.
    pub fn band(&self) -> Option<[Bytes; 2]> {
        match self.shape {
            CrossoverShape::Crosses => Some([self.first_ahead_to?, self.second_ahead_from?]),
            CrossoverShape::FirstThenUnknown => Some([self.first_ahead_to?, self.largest]),
            CrossoverShape::UnknownThenSecond => Some([self.smallest, self.second_ahead_from?]),
            CrossoverShape::FirstThroughout
            | CrossoverShape::SecondThroughout
            | CrossoverShape::NeitherAnywhere
            | CrossoverShape::Mixed => None,
        }
    }
}

/// The crossing of a pair; `None` where the run does not have both at every size.
fn of_pair(
    header: &RunHeader,
    tracks: &[Track<'_>],
    crossover: &Crossover,
    table: &mut StudentTable,
) -> Option<Crossing> {
    let sizes: Vec<Bytes> = crossover.points.iter().map(|point| point.size).collect();
    let rows = sizes.iter().map(|&size| row(tracks, crossover, size)).collect::<Option<_>>()?;
    let curves = Curves::of(&sizes, rows);
    // The sizes inside a band may be too close for the order of the pair to show beyond doubt.
    let falls = curves.falls();
    let curves = if falls { curves.turned() } else { curves };
    let found = curves.crossing(table);
    let (mut first, mut second) = (crossover.first.clone(), crossover.second.clone());
    if falls {
        swap(&mut first, &mut second);
    }
    Some(Crossing {
        curve: crossover.curve.clone(),
        first,
        second,
        run: header.id.clone(),
        passes: count(curves.passes.len()),
        reason: found.as_ref().err().map(|why| why.words(&sizes)),
        at_bytes: found.ok(),
        sizes,
    })
}

/// ln(time of the first / time of the second) at a size, of each pass that has both: by what is
/// typical of the rounds that each shares with the baseline of its own trial, else by totals.
fn row(tracks: &[Track<'_>], crossover: &Crossover, size: Bytes) -> Option<BTreeMap<u32, f64>> {
    let cell = Cell { size, ..crossover.curve.clone() };
    let track = |label: &str| tracks.iter().find(|t| t.cell == cell && t.arm.label == label);
    let (first, second) = (track(&crossover.first)?, track(&crossover.second)?);
    let shared = against_baseline(first).zip(against_baseline(second));
    let (first, second) = shared.unwrap_or_else(|| (by_totals(first), by_totals(second)));
    let both = |(pass, first): (u32, f64)| Some((pass, second.get(&pass)? - first));
    Some(first.into_iter().filter_map(both).collect())
}

/// ln(the baseline's time / the arm's) in each pass, which is 0 of the baseline; `None` where a
/// trial has none. An arm has one trial in a pass; the baseline has one in each group of arms.
fn against_baseline(track: &Track<'_>) -> Option<BTreeMap<u32, f64>> {
    let is_baseline = track.arm.role == Role::Baseline;
    let of = |point: Point| Some((point.pass, if is_baseline { 0.0 } else { point.typical_ln? }));
    track.points().map(of).collect()
}

/// The same but for what all arms of a pass have in common.
fn by_totals(track: &Track<'_>) -> BTreeMap<u32, f64> {
    track.points().map(|point| (point.pass, -point.compared_per_message().ln())).collect()
}

/// Why there is no point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Open {
    NoChange,
    SeveralChanges,
    /// With a pass left out the curve changes its sign more than once, or never.
    Unstable,
    /// Between the sizes with this index and the next.
    Step(usize),
    FewPasses,
}

impl Open {
    fn words(self, sizes: &[Bytes]) -> String {
        match self {
            Open::NoChange => "one is ahead at every size, on average".to_owned(),
            Open::SeveralChanges => {
                "the mean ratio crosses 1 more than once between the sizes, which noise alone can \
                 cause; more passes would tell"
                    .to_owned()
            }
            Open::Unstable => {
                "a single pass decides how often the mean ratio crosses 1; more passes would tell"
                    .to_owned()
            }
            Open::Step(below) => format!(
                "the ratio jumps between {} and {}, and nothing is interpolated across a step",
                sizes[below],
                sizes[below + 1]
            ),
            Open::FewPasses => {
                format!("fewer than {PASSES_MIN} passes have both at every size")
            }
        }
    }
}

/// The curves of all passes.
pub(crate) struct Curves {
    /// log2 of the sizes in bytes, rising.
    sizes: Vec<f64>,
    /// Of each pass, at each size.
    passes: Vec<Vec<f64>>,
}

impl Curves {
    /// Of the passes that are in every row.
    pub(crate) fn of(sizes: &[Bytes], rows: Vec<BTreeMap<u32, f64>>) -> Curves {
        let passes = rows.first().into_iter().flat_map(BTreeMap::keys);
        let whole = |pass: &u32| rows.iter().map(|row| row.get(pass).copied()).collect();
        Curves {
            sizes: sizes.iter().map(|size| (size.0 as f64).log2()).collect(),
            passes: passes.filter_map(whole).collect(),
        }
    }

    /// Whether the second is ahead at the smallest size and the first at the largest.
    fn falls(&self) -> bool {
        let mean = self.mean(None);
        mean.first().zip(mean.last()).is_some_and(|(first, last)| *first > 0.0 && *last < 0.0)
    }

    /// The curves of the pair in the other order.
    fn turned(self) -> Curves {
        let passes = self.passes.into_iter();
        let passes = passes.map(|pass| pass.into_iter().map(|value| -value).collect()).collect();
        Curves { passes, ..self }
    }

    /// The mean curve, of all passes or of all but one.
    fn mean(&self, without: Option<usize>) -> Vec<f64> {
        let used = self.passes.iter().enumerate().filter(|(i, _)| Some(*i) != without);
        let used: Vec<&Vec<f64>> = used.map(|(_, pass)| pass).collect();
        let mean = |at: usize| used.iter().map(|pass| pass[at]).sum::<f64>() / used.len() as f64;
        (0..self.sizes.len()).map(mean).collect()
    }

    /// In bytes.
    pub(crate) fn crossing(&self, table: &mut StudentTable) -> Result<Estimate, Open> {
        let n = self.passes.len();
        if n < PASSES_MIN {
            return Err(Open::FewPasses);
        }
        let mean = self.mean(None);
        let below = change(&mean)?;
        if self.is_step(&mean, below) {
            return Err(Open::Step(below));
        }
        let at = self.root(&mean, below);
        let left_out = |pass: usize| {
            let mean = self.mean(Some(pass));
            change(&mean).map(|below| self.root(&mean, below)).map_err(|_| Open::Unstable)
        };
        let others = (0..n).map(left_out).collect::<Result<Vec<f64>, Open>>()?;
        let pseudo: Vec<f64> =
            others.iter().map(|other| n as f64 * at - (n as f64 - 1.0) * other).collect();
        let half = Moments::of(&pseudo)
            .zip(table.multipliers(count(n)))
            .and_then(|(moments, t)| moments.half_width(t.pointwise));
        let interval = half.map(|half| Interval::about(at, half).map(f64::exp2));
        Ok(Estimate { value: at.exp2(), interval, n: count(n) })
    }

    /// log2 of the size at which the line between two neighbours is 0.
    fn root(&self, mean: &[f64], below: usize) -> f64 {
        let (left, right) = (self.sizes[below], self.sizes[below + 1]);
        let share = -mean[below] / (mean[below + 1] - mean[below]);
        left + share * (right - left)
    }

    /// Whether the curve jumps where it changes its sign. A dense grid that is measured well
    /// has neighbours that differ by more than their noise wherever it rises: a step is what
    /// stands out from the other rises too.
    fn is_step(&self, mean: &[f64], below: usize) -> bool {
        let jump = |at: usize| (mean[at + 1] - mean[at]).abs();
        let mut others: Vec<f64> =
            (0..mean.len() - 1).filter(|at| *at != below).map(jump).collect();
        let usual = median(&mut others).unwrap_or(f64::INFINITY);
        let rises: Vec<f64> =
            self.passes.iter().map(|pass| pass[below + 1] - pass[below]).collect();
        let n = self.passes.len() as f64;
        let noise = Moments::of(&rises).and_then(|rises| rises.sd).unwrap_or(0.0) / n.sqrt();
        jump(below) > STEP * usual.max(noise)
    }
}

/// The index below the only change of sign, from the first ahead to the second.
fn change(mean: &[f64]) -> Result<usize, Open> {
    let changes: Vec<usize> =
        (1..mean.len()).filter(|&at| (mean[at - 1] < 0.0) != (mean[at] < 0.0)).collect();
    match changes[..] {
        [] => Err(Open::NoChange),
        [at] if mean[at - 1] < 0.0 => Ok(at - 1),
        _ => Err(Open::SeveralChanges),
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::TrialOutcome;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, time};

    fn sizes(bytes: &[u64]) -> Vec<Bytes> {
        bytes.iter().copied().map(Bytes).collect()
    }

    /// By how much an arm is faster that meets the baseline at 2 KiB.
    fn ratio(cell: &Cell) -> f64 {
        1.1_f64.powf((cell.size.0 as f64 / 2048.0).log2())
    }

    fn stray(pass: u32) -> f64 {
        1.0 + 0.001 * f64::from(pass % 3)
    }

    fn curves(bytes: &[u64], passes: &[&[f64]]) -> Curves {
        let row = |at: usize| {
            let row = passes.iter().enumerate();
            row.map(|(pass, values)| (count(pass), values[at])).collect()
        };
        Curves::of(&sizes(bytes), (0..bytes.len()).map(row).collect())
    }

    /// Two of three between 1 KiB and 4 KiB on the logarithm: 2^(10 + 2 · 2/3).
    #[test]
    fn the_point_is_where_the_line_between_two_neighbours_is_0() {
        let pass: &[f64] = &[-0.2, 0.1];
        let found = curves(&[1024, 4096], &[pass; 6])
            .crossing(&mut StudentTable::new(1))
            .expect("a crossing");
        assert!((found.value - (10.0_f64 + 4.0 / 3.0).exp2()).abs() < 1e-9, "{found:?}");
        let interval = found.interval.expect("an interval");
        assert!((interval.low / found.value - 1.0).abs() < 1e-12, "passes that agree");
        assert_eq!(found.n, 6);
    }

    /// Where the curve is one straight line whose slope no pass changes, the root is a mean of
    /// the passes' roots, and the jackknife of a mean is the interval of a mean.
    #[test]
    fn the_interval_of_parallel_lines_is_that_of_a_mean() {
        let shifts = [-0.03, -0.02, 0.0, 0.01, 0.02, 0.05];
        let lines: Vec<[f64; 3]> =
            shifts.iter().map(|shift| [-1.0 + shift, 0.1 + shift, 1.2 + shift]).collect();
        let lines: Vec<&[f64]> = lines.iter().map(|line| &line[..]).collect();
        let found = curves(&[1024, 2048, 4096], &lines)
            .crossing(&mut StudentTable::new(1))
            .expect("a crossing");
        // The roots: 10 + (1 - shift) / 1.1.
        let roots: Vec<f64> = shifts.iter().map(|shift| 10.0 + (1.0 - shift) / 1.1).collect();
        let moments = Moments::of(&roots).expect("moments");
        let half = moments.half_width(2.570_58).expect("a half-width");
        let interval = found.interval.expect("an interval");
        assert!((found.value.log2() - moments.mean).abs() < 1e-9);
        assert!((interval.high.log2() - moments.mean - half).abs() < 1e-5, "{interval:?}");
        assert!((moments.mean - interval.low.log2() - half).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn what_changes_never_or_more_than_once_has_no_point() {
        let of =
            |pass: &[f64]| curves(&[1, 2, 4, 8], &[pass; 6]).crossing(&mut StudentTable::new(1));
        assert_eq!(of(&[-0.3, -0.2, -0.1, -0.05]), Err(Open::NoChange));
        assert_eq!(of(&[-0.1, 0.1, -0.1, 0.1]), Err(Open::SeveralChanges));
        assert_eq!(of(&[0.2, 0.1, -0.1, -0.2]), Err(Open::SeveralChanges), "the wrong way");
        let few: &[f64] = &[-0.1, -0.05, 0.05, 0.1];
        assert_eq!(
            curves(&[1, 2, 4, 8], &[few; 5]).crossing(&mut StudentTable::new(1)),
            Err(Open::FewPasses)
        );
        assert_eq!(
            of(&[-0.31, -0.3, 0.3, 0.31]),
            Err(Open::Step(1)),
            "a step stands out from the other rises"
        );
        assert!(of(&[-0.3, -0.1, 0.1, 0.3]).is_ok(), "a rise is no step, however well measured");
    }

    #[test]
    fn a_pass_that_decides_the_order_alone_is_no_ground_for_a_point() {
        let odd: &[f64] = &[-0.1, 0.4, 0.3, 0.1];
        let other: &[f64] = &[-0.1, 0.04, -0.05, 0.1];
        let found = curves(&[1, 2, 4, 8], &[odd, other, other, other, other, other])
            .crossing(&mut StudentTable::new(1));
        assert_eq!(found, Err(Open::Unstable));
    }

    /// `base` overtakes nobody below 2 KiB: `arm` is slower by 10 % a doubling below it, and
    /// faster above it.
    #[test]
    fn a_run_names_points_for_the_run_that_it_confirms() {
        let measured = |bytes: &[u64], confirms: Option<&str>| {
            let plan = fixture::sized(&["base", "arm"], bytes);
            let mut run = fixture::run_of(plan, 12, |pass, _, cell| {
                let ns = 5000.0 * stray(pass);
                [time("base", 5000.0), time("arm", ns / ratio(cell)), time("base (A/A)", ns)]
            });
            run.header.confirms = confirms.map(str::to_owned);
            analyse(&run)
        };
        let mut parent = measured(&[1024, 8192], None);
        assert_eq!(parent.crossings, []);
        assert_eq!(parent.crossovers[0].shape, CrossoverShape::Crosses);
        let child = measured(&[1024, 1500, 3000, 8192], Some("00000000"));
        parent.confirm(&child);
        let [found] = &parent.crossings[..] else { panic!("{:?}", parent.crossings) };
        assert_eq!((found.run.as_str(), found.passes), ("00000000", 12));
        let at = found.at_bytes.expect("a point");
        assert!(at.interval.expect("an interval").contains(at.value));
        // `arm` strays by 0.1 % on average, which is a hundredth of a doubling.
        assert!((at.value / 2048.0 - 1.0).abs() < 0.02, "{at:?}");
        // Later trials may find that one is ahead at all of these sizes.
        parent.confirm(&measured(&[3000, 4000, 8192], Some("00000000")));
        let last = parent.crossings.last().expect("two runs");
        assert_eq!(last.at_bytes, None);
        let reason = last.reason.as_deref();
        assert_eq!(reason, Some("one is ahead at every size, on average"));
        let mut other = measured(&[1024, 8192], None);
        other.crossovers.iter_mut().for_each(|own| swap(&mut own.first, &mut own.second));
        other.confirm(&child);
        assert_eq!(other.crossings[0].at_bytes, None);
        assert_eq!(other.crossings[0].reason.as_deref(), Some("there base is ahead below it"));
        let mut other = measured(&[1024, 8192], None);
        other.crossovers[0].shape = CrossoverShape::Mixed;
        other.confirm(&child);
        assert_eq!(other.crossings, [], "it has no band");
    }

    /// Two groups of arms, the machine slower by a fifth in the second: the baseline and an arm
    /// of the first meet in the trials that they share.
    #[test]
    fn an_arm_meets_the_baseline_of_its_own_trials() {
        let mut run = fixture::run(fixture::sized(&["base", "arm", "other"], &[1024, 8192]));
        run.header.confirms = Some("00000000".to_owned());
        for pass in 1..=12 {
            for cell in run.header.plan.cells() {
                for (position, label, mood) in [(0, "arm", 5000.0), (1, "other", 6000.0)] {
                    let arms = [time("base", mood), time(label, mood / ratio(&cell) * stray(pass))];
                    let trial = fixture::trial(pass, &cell, &arms);
                    run.trials.push(TrialOutcome { position, ..trial });
                }
            }
        }
        let crossings = analyse(&run).crossings;
        let at = |second: &str| {
            let found = crossings.iter().find(|c| (&*c.first, &*c.second) == ("base", second));
            found.and_then(|found| found.at_bytes).expect("a point").value
        };
        for arm in ["arm", "other"] {
            assert!((at(arm) / 2048.0 - 1.0).abs() < 0.02, "{arm}: {}", at(arm));
        }
    }

    /// The same passes in another order: twelve of one state behind twelve of another, and both in
    /// turn.
    #[test]
    fn passes_that_resemble_their_neighbours_widen_the_interval_of_a_point() {
        let found = |is_other: fn(u32) -> bool| {
            let plan = fixture::sized(&["base", "arm"], &[1024, 1500, 3000, 8192]);
            let mut run = fixture::run_of(plan, 24, |pass, _, cell| {
                let stray = if is_other(pass) { 1.01 } else { 0.99 };
                [time("base", 5000.0), time("arm", 5000.0 / ratio(cell) * stray)]
            });
            run.header.confirms = Some("00000000".to_owned());
            let analysis = analyse(&run);
            let at = analysis.crossings[0].at_bytes.and_then(|at| at.interval).expect("a point");
            ((at.high / at.low).ln(), analysis.neighbours.expect("enough passes"))
        };
        let (behind, neighbours) = found(|pass| pass <= 12);
        let (in_turn, none) = found(|pass| pass.is_multiple_of(2));
        assert!(neighbours.matters && !none.matters, "{neighbours:?} {none:?}");
        let t =
            |found| StudentTable::of_neighbours(1, Some(found)).multipliers(24).expect("trials");
        let wider = t(&neighbours).pointwise / t(&none).pointwise;
        assert!(wider > 2.0 && (behind / in_turn / wider - 1.0).abs() < 1e-6, "{behind} {in_turn}");
    }

    #[test]
    fn only_passes_with_every_size_count() {
        let mut rows: Vec<BTreeMap<u32, f64>> =
            [-0.1, 0.1].iter().map(|&ln| (0..8).map(|pass| (pass, ln)).collect()).collect();
        rows[1].remove(&3);
        assert_eq!(Curves::of(&sizes(&[1, 2]), rows).passes.len(), 7);
    }
}

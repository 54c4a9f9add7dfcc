//! From the bands of a run's crossovers to plans that measure sizes inside them: one for each
//! curve, so that no cell is measured that nobody asked about.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::plan::{Axes, Passes, Plan};
use iolens_model::run::RunHeader;
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::analysis::{Analysis, Crossover};

use crate::failure::{Failure, usage};

/// Sizes of a band, its ends among them, evenly spaced on the logarithm.
const SIZES: u32 = 7;

/// Sizes are whole cache lines from here on, as those of most plans are.
const LINES_FROM: Bytes = Bytes(1024);
const LINE_BYTES: u64 = 64;

/// What a point rests on at least, also where the run was a first look.
const PASSES: Passes = Passes { minimum: 12, maximum: 60 };

/// A plan for each curve with a crossover that is a band; all together have this time.
///
/// Errors: there is none, and why.
pub(crate) fn plans(
    header: &RunHeader,
    analysis: &Analysis,
    budget: Nanos,
    mut seed: impl FnMut() -> u64,
) -> Result<Vec<Plan>, Failure> {
    if let Some(other) = &header.confirms {
        return Err(usage!(
            "run {} already confirms the crossovers of run {other}\n  iolens confirm {other}",
            header.id
        ));
    }
    if header.plan.net().is_none() {
        return Err(usage!(
            "run {} is of `{}`; only `net` has crossovers to narrow",
            header.id,
            header.plan.study().word()
        ));
    }
    let bands: Vec<&Crossover> =
        analysis.crossovers.iter().filter(|crossover| crossover.band().is_some()).collect();
    let mut curves: Vec<&Cell> = bands.iter().map(|crossover| &crossover.curve).collect();
    curves.dedup();
    if curves.is_empty() {
        return Err(usage!(
            "run {0} shows no crossover: no method is ahead at one end of the sizes and behind at the \
             other\n  `iolens show {0}` says what is known",
            header.id
        ));
    }
    let share = Nanos(budget.0 / curves.len() as u64);
    let plan = |curve: &&Cell| {
        let own: Vec<&Crossover> = bands.iter().copied().filter(|c| c.curve == **curve).collect();
        of_curve(&header.plan, analysis, curve, &own, (share, seed()))
    };
    Ok(curves.iter().filter_map(plan).collect())
}

fn of_curve(
    plan: &Plan,
    analysis: &Analysis,
    curve: &Cell,
    bands: &[&Crossover],
    (budget, seed): (Nanos, u64),
) -> Option<Plan> {
    let axes = plan.net()?.at(curve.net()?);
    let mut sizes: Vec<Bytes> = bands.iter().filter_map(|c| c.band()).flat_map(inside).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let is_meant = |id: &String| {
        let labels = || bands.iter().flat_map(|c| [&c.first, &c.second]);
        *id == plan.baseline || labels().any(|label| primitive(analysis, label) == Some(id))
    };
    Some(Plan {
        axes: Axes::Net(axes),
        primitives: plan.primitives.iter().filter(|id| is_meant(id)).cloned().collect(),
        sizes,
        threads: vec![curve.threads],
        passes: PASSES,
        budget,
        quick: false,
        seed,
        ..plan.clone()
    })
}

/// The primitive of a compared arm.
fn primitive<'a>(analysis: &'a Analysis, label: &str) -> Option<&'a String> {
    let is_it = |role, found: &str| role != Role::SelfCheck && found == label;
    let arms = analysis.cells.iter().flat_map(|cell| &cell.arms);
    arms.map(|arm| &arm.arm).find(|arm| is_it(arm.role, &arm.label)).map(|arm| &arm.primitive)
}

/// The sizes of a band, its ends among them.
fn inside([low, high]: [Bytes; 2]) -> Vec<Bytes> {
    let step = (high.0 as f64 / low.0 as f64).ln() / f64::from(SIZES - 1);
    let between = |i: u32| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of a band")]
        let bytes = (low.0 as f64 * (step * f64::from(i)).exp()).round() as u64;
        match bytes >= LINES_FROM.0 {
            true => Bytes((bytes + LINE_BYTES / 2) / LINE_BYTES * LINE_BYTES),
            false => Bytes(bytes),
        }
    };
    let between = (1..SIZES - 1).map(between).filter(|size| low < *size && *size < high);
    let mut sizes: Vec<Bytes> = [low].into_iter().chain(between).chain([high]).collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_band_are_evenly_spaced_whole_lines() {
        let of = |low, high| -> Vec<u64> {
            inside([Bytes(low), Bytes(high)]).into_iter().map(|size| size.0).collect()
        };
        assert_eq!(of(4096, 16384), [4096, 5184, 6528, 8192, 10304, 12992, 16384]);
        assert_eq!(of(64, 256), [64, 81, 102, 128, 161, 203, 256]);
        assert_eq!(of(1, 3), [1, 2, 3]);
        assert_eq!(of(8, 9), [8, 9]);
    }
}

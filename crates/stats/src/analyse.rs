//! The analysis of a run: which trials are used, what they say of each arm,
//! and what is to be remarked.

mod cell;
mod draft;
#[cfg(test)]
mod group_tests;
mod pairs;
mod remarks;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unequal_tests;
mod unranked;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;
use iolens_model::run::RunHeader;

use self::draft::CellVisits;
use crate::analysis::{Analysis, CellAnalysis, Kinds};
use crate::interval::count;
use crate::passes;
use crate::quantity::Quantity;
use crate::roster;
use crate::roster::Track;
use crate::self_check;
use crate::student::StudentTable;
use crate::told::Told;
use crate::values::TrialValues;
use crate::{cost_model, crossing, crossover, drift, extremes, unexpected};

/// Analyses the values of a run's trials, in the order in which they ran, and adds what all
/// of them told.
pub(crate) fn whole(header: &RunHeader, trials: &[TrialValues], told: &Arc<Told>) -> Analysis {
    let analysis = analyse_values(header, trials);
    let kinds = Kinds::of(header, trials, told, &analysis, |some| analyse_values(header, some));
    Analysis { told: Arc::clone(told), kinds: Arc::new(kinds), ..analysis }
}

/// Analyses the values of a run's trials, in the order in which they ran; without what they
/// told.
pub(crate) fn analyse_values(header: &RunHeader, trials: &[TrialValues]) -> Analysis {
    analyse_claims(header, trials, Quantity::claimed)
}

/// The same, `claimed` being by how many quantities somebody is said to be ahead in a cell.
pub(crate) fn analyse_claims(
    header: &RunHeader,
    trials: &[TrialValues],
    claimed: impl Fn(&Cell) -> usize,
) -> Analysis {
    let plan = &header.plan;
    let cells = roster::cells(plan);
    let arms = roster::arms(plan, trials);
    let passes = passes::sort(header, &cells, trials);
    let mut by_cell = by_cell(&cells, trials, plan);
    let of_cells: Vec<(&Cell, OfCell<'_>)> =
        cells.iter().map(|cell| (cell, by_cell.remove(cell).unwrap_or_default())).collect();
    let sorted = side_by_side(of_cells, trials.len(), |some| {
        let sorted = some.into_iter().map(|(cell, own)| {
            let visits = CellVisits::of(plan, cell, &arms, own, &passes.complete);
            let told = (remarks::rejected(&visits), cell::series(header, cell, &arms, &visits));
            ((cell, visits), told)
        });
        sorted.collect()
    });
    let (visits, told): (Vec<(&Cell, CellVisits<'_>)>, Vec<_>) = sorted.into_iter().unzip();
    let (rejected, series): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    let contrasts = comparisons(&arms, &visits, claimed);
    let mut rejected: Vec<_> = rejected.into_iter().flatten().collect();
    rejected.sort_by_key(|(started, _)| *started);
    let neighbours = drift::neighbours(&series.into_iter().flatten().collect::<Vec<_>>());
    let resembling = neighbours.as_ref();
    let analysed = side_by_side(visits.iter().collect(), trials.len(), |some| {
        let mut table = StudentTable::of_neighbours(contrasts, resembling);
        let each = some.into_iter();
        each.map(|(cell, visits)| cell::analyse(header, cell, &arms, visits, &mut table)).collect()
    });
    let (analyses, tracks): (Vec<CellAnalysis>, Vec<Vec<Track<'_>>>) = analysed.into_iter().unzip();
    let tracks: Vec<Track<'_>> = tracks.into_iter().flatten().collect();
    let self_check = self_check::of(&analyses, plan.delta);
    let mut warnings = remarks::warnings(header, &cells, trials, &passes, &self_check);
    warnings.extend(self_check::across_cells(&analyses, &tracks));
    warnings.extend(resembling.and_then(remarks::neighbours));
    let table = &mut StudentTable::of_neighbours(contrasts, resembling);
    let cost_models = cost_model::of(&tracks, table);
    let crossovers = crossover::of(&analyses, plan.delta);
    Analysis {
        passes: count(passes.complete.len()),
        delta: plan.delta,
        contrasts,
        crossings: crossing::of(header, &tracks, &crossovers, table),
        crossovers,
        removed_copies: cost_model::removed_copies(&tracks, &analyses, plan.isolate, table),
        extremes: extremes::of(&analyses),
        plateaus: extremes::plateaus(&analyses, plan.delta),
        read_plateaus: extremes::read_plateaus(&analyses, plan.delta),
        unexpected: unexpected::of(&analyses, &tracks, &cost_models, plan.delta, resembling),
        drift: drift::of(&tracks, plan.precision),
        neighbours,
        cost_models,
        cells: analyses,
        self_check,
        rejected: rejected.into_iter().map(|(_, rejected)| rejected).collect(),
        warnings,
        told: Arc::default(),
        kinds: Arc::default(),
    }
}

/// Everything that is claimed of a run at once (J): each arm against the baseline, its copy in
/// every group of arms, and every two arms against each other, by each quantity that is claimed.
/// An arm or a cell that never ran counts too, so that nothing that is measured changes it but
/// how arms share their trials.
fn comparisons(
    arms: &[Arm],
    visits: &[(&Cell, CellVisits<'_>)],
    claimed: impl Fn(&Cell) -> usize,
) -> u32 {
    let with = |role: Role| arms.iter().filter(|arm| arm.role == role).count();
    let compared = with(Role::Compared);
    let groups = visits.iter().map(|(_, visits)| visits.groups.count()).max().unwrap_or(1);
    let in_a_cell = compared + pairs::number_of(compared) + with(Role::SelfCheck) * groups;
    let claimed: usize = visits.iter().map(|(cell, _)| claimed(cell)).sum();
    count(in_a_cell.saturating_mul(claimed))
}

/// Fewer trials are analysed before another thread has begun.
const BESIDE_MIN: usize = 1000;

/// What `of` makes of all items, in their order; on as many threads as there are processors
/// where there are many trials, each with a stretch of the items.
fn side_by_side<T: Send, R: Send>(
    items: Vec<T>,
    trials: usize,
    of: impl Fn(Vec<T>) -> Vec<R> + Sync,
) -> Vec<R> {
    let most = if trials < BESIDE_MIN { 1 } else { items.len() };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(most);
    if threads < 2 {
        return of(items);
    }
    thread::scope(|scope| {
        let (each, of) = (items.len().div_ceil(threads), &of);
        let mut items = items.into_iter();
        let stretches = (0..threads).map(|_| items.by_ref().take(each).collect::<Vec<T>>());
        let begun: Vec<_> = stretches.map(|some| scope.spawn(move || of(some))).collect();
        let done = |thread: thread::ScopedJoinHandle<'_, Vec<R>>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        begun.into_iter().flat_map(done).collect()
    })
}

/// Trials of a cell: those that the plan's contrasts rest on, and others.
type OfCell<'a> = (Vec<&'a TrialValues>, Vec<&'a TrialValues>);

/// Pass 0 stands among the primary trials: no figure uses it, but where a
/// cell went no further it says why.
fn by_cell<'a>(
    cells: &'a [Cell],
    trials: &'a [TrialValues],
    plan: &Plan,
) -> BTreeMap<&'a Cell, OfCell<'a>> {
    let mut groups: BTreeMap<&Cell, OfCell<'a>> =
        cells.iter().map(|cell| (cell, Default::default())).collect();
    for trial in trials {
        if let Some((primary, secondary)) = groups.get_mut(&*trial.cell) {
            let is_primary = trial.pass == 0 || trial.isolated == plan.measures_alone(&trial.cell);
            if is_primary { primary.push(trial) } else { secondary.push(trial) }
        }
    }
    groups
}

//! The analysis of a run: which trials are used, what they say of each arm,
//! and what is to be remarked.

mod cell;
mod limits;
mod pairs;
mod remarks;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader};

use crate::analysis::Analysis;
use crate::fold::Fold;
use crate::interval::count;
use crate::kinds::Kinds;
use crate::passes::{self, Visits};
use crate::roster;
use crate::self_check;
use crate::student::StudentTable;
use crate::told::Told;
use crate::values::TrialValues;
use crate::{
    cost_model, crossing, crossover, drift, extremes, gates, plateaus, removed_copy, unexpected,
};

/// Analyses a run.
///
/// Never fails: what cannot be used is listed with the reason, and an empty
/// run has cells without numbers.
#[must_use]
pub fn analyse(run: &Run) -> Analysis {
    Fold::of(&run.header, &run.trials).analysis(&run.header)
}

/// Analyses the values of a run's trials, in the order in which they ran, and adds what all
/// of them told.
pub(crate) fn whole(header: &RunHeader, trials: &[TrialValues], told: &Arc<Told>) -> Analysis {
    let analysis = analyse_values(header, trials);
    let kinds = Kinds::of(header, trials, told, &analysis);
    Analysis { told: Arc::clone(told), kinds: Arc::new(kinds), ..analysis }
}

/// Analyses the values of a run's trials, in the order in which they ran; without what they
/// told.
pub(crate) fn analyse_values(header: &RunHeader, trials: &[TrialValues]) -> Analysis {
    let plan = &header.plan;
    let cells = distinct(plan.cells());
    let arms = roster::arms(plan, trials);
    let passes = passes::sort(header, &cells, trials);
    let compared = arms.iter().filter(|arm| roster::has_contrast(arm)).count();
    let contrasts = count(compared.saturating_mul(cells.len()));
    let candidates = arms.iter().filter(|arm| arm.role == Role::Compared).count();
    let all_pairs = count(pairs::number_of(candidates).saturating_mul(cells.len()));
    let mut tables = cell::Tables {
        contrasts: StudentTable::new(contrasts),
        pairs: StudentTable::new(contrasts.saturating_add(all_pairs)),
    };
    let mut groups = group(&cells, trials, plan);
    let mut analyses = Vec::with_capacity(cells.len());
    let mut tracks = Vec::new();
    let mut rejected = Vec::new();
    for cell in &cells {
        let (primary, secondary) = groups.remove(cell).unwrap_or_default();
        let visits = cell::CellVisits {
            primary: Visits::of(primary, &passes.complete),
            // Shared trials of what is measured by itself would answer no question of it.
            isolated: (!plan.measures_alone(cell)).then(|| Visits::of(secondary, &passes.complete)),
        };
        rejected.extend(remarks::rejected(&visits));
        let (analysis, usable) = cell::analyse(header, cell, &arms, &visits, &mut tables);
        analyses.push(analysis);
        tracks.extend(usable);
    }
    rejected.sort_by_key(|(started, _)| *started);
    let self_check = self_check::of(&analyses, plan.delta);
    let mut warnings = remarks::warnings(header, &cells, trials, &passes, &self_check);
    warnings.extend(gates::across_cells(&analyses, &tracks));
    let table = &mut tables.contrasts;
    let cost_models = cost_model::of(&tracks, table);
    let crossovers = crossover::of(&analyses, plan.delta);
    Analysis {
        passes: count(passes.complete.len()),
        delta: plan.delta,
        contrasts,
        crossings: crossing::of(header, &tracks, &crossovers),
        crossovers,
        removed_copies: removed_copy::of(&tracks, &analyses, plan.isolate, table),
        extremes: extremes::of(&analyses),
        plateaus: plateaus::of(&analyses, plan.delta),
        read_plateaus: plateaus::of_reads(&analyses, plan.delta),
        unexpected: unexpected::of(&analyses, &tracks, &cost_models, plan.delta),
        drift: drift::of(&tracks, plan.precision),
        cost_models,
        cells: analyses,
        self_check,
        rejected: rejected.into_iter().map(|(_, rejected)| rejected).collect(),
        warnings,
        told: Arc::default(),
        kinds: Arc::default(),
    }
}

/// Trials of each cell: those that the plan's contrasts rest on, and others.
type Groups<'a> = BTreeMap<&'a Cell, (Vec<&'a TrialValues>, Vec<&'a TrialValues>)>;

/// Pass 0 stands among the primary trials: no figure uses it, but where a
/// cell went no further it says why.
fn group<'a>(cells: &'a [Cell], trials: &'a [TrialValues], plan: &Plan) -> Groups<'a> {
    let mut groups: Groups<'a> = cells.iter().map(|cell| (cell, Default::default())).collect();
    for trial in trials {
        if let Some((primary, secondary)) = groups.get_mut(&*trial.cell) {
            let is_primary = trial.pass == 0 || trial.isolated == plan.measures_alone(&trial.cell);
            if is_primary { primary.push(trial) } else { secondary.push(trial) }
        }
    }
    groups
}

fn distinct(cells: Vec<Cell>) -> Vec<Cell> {
    let mut seen = std::collections::BTreeSet::new();
    cells.into_iter().filter(|cell| seen.insert(cell.clone())).collect()
}

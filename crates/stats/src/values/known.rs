//! What trials have had so far, each once, for those to come that have the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iolens_model::arm::ArmOutcome;
use iolens_model::cell::Cell;

use crate::gates::Flag;

/// Cells, outcomes of arms and remarks of a run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    cells: BTreeSet<Arc<Cell>>,
    /// How the arm with this label ended last.
    outcomes: BTreeMap<String, Arc<ArmOutcome>>,
    remarks: BTreeSet<Arc<str>>,
}

impl Known {
    pub(super) fn cell(&mut self, cell: &Cell) -> Arc<Cell> {
        if let Some(known) = self.cells.get(cell) {
            return Arc::clone(known);
        }
        let cell = Arc::new(cell.clone());
        self.cells.insert(Arc::clone(&cell));
        cell
    }

    pub(super) fn outcome(&mut self, outcome: &ArmOutcome) -> Arc<ArmOutcome> {
        let label = &outcome.arm.label;
        if let Some(known) = self.outcomes.get(label).filter(|known| ***known == *outcome) {
            return Arc::clone(known);
        }
        let outcome = Arc::new(outcome.clone());
        self.outcomes.insert(label.clone(), Arc::clone(&outcome));
        outcome
    }

    pub(super) fn flags(&mut self, flags: Vec<Flag>) -> Box<[Flag]> {
        let shared = |flag: Flag| match flag {
            Flag::Once(text) => Flag::Once(self.remark(text)),
            other => other,
        };
        flags.into_iter().map(shared).collect()
    }

    fn remark(&mut self, text: Arc<str>) -> Arc<str> {
        if let Some(known) = self.remarks.get(&text) {
            return Arc::clone(known);
        }
        self.remarks.insert(Arc::clone(&text));
        text
    }
}

//! What trials have had so far, each once, for those to come that have the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iolens_model::arm::ArmOutcome;
use iolens_model::cell::Cell;

use super::Packed;
use crate::gates::Flag;
use crate::remark::Circumstance;
use crate::sums::Sums;

/// Cells, outcomes of arms and circumstances of a run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    cells: BTreeSet<Arc<Cell>>,
    /// How the arm with this label ended last.
    outcomes: BTreeMap<String, Arc<ArmOutcome>>,
    circumstances: BTreeSet<Arc<Circumstance>>,
    /// Room for the sums of a trial, and for those of an arm while they are packed.
    pub(super) sums: Vec<Sums>,
    bytes: Vec<u8>,
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

    pub(super) fn packed(&mut self, sums: &Sums) -> Packed {
        Packed::within(&mut self.bytes, sums)
    }

    pub(super) fn flags(&mut self, flags: Vec<Flag>) -> Box<[Flag]> {
        let shared = |flag: Flag| match flag {
            Flag::Once(found) => Flag::Once(self.circumstance(found)),
            other => other,
        };
        flags.into_iter().map(shared).collect()
    }

    fn circumstance(&mut self, found: Arc<Circumstance>) -> Arc<Circumstance> {
        if let Some(known) = self.circumstances.get(&found) {
            return Arc::clone(known);
        }
        self.circumstances.insert(Arc::clone(&found));
        found
    }
}

//! The usable trials of each arm in each cell as plain numbers: what fits,
//! pairings and regressions across cells start from.

use iolens_model::arm::Arm;
use iolens_model::cell::Cell;

use crate::interval::Parts;
use crate::quantity::Quantity;
use crate::values::{ArmValues, Brief, TrialValues};

/// One arm in one cell.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    /// Where.
    pub(crate) cell: Cell,
    /// Which arm.
    pub(crate) arm: Arm,
    /// Its used trials in the order in which they ran; at least one.
    pub(crate) points: Vec<Point>,
}

/// What one trial says of an arm: totals over its measured slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Pass.
    pub(crate) pass: u32,
    /// Position in the pass.
    pub(crate) position: u32,
    /// Start of the trial, nanoseconds since 1970.
    pub(crate) started_unix_ns: u64,
    /// Nanoseconds over messages, both above zero.
    pub(crate) time: Parts,
    /// What is compared in the cell, over messages, both above zero.
    pub(crate) compared: Parts,
    /// ln(the baseline's quantity per message / the arm's), typical of the trial's rounds; `None`
    /// without a baseline in the trial.
    pub(crate) typical_ln: Option<f64>,
    /// Payload bytes sent.
    pub(crate) bytes: f64,
    /// Context switches of both ends.
    pub(crate) switches: Option<u64>,
    /// Measured slices.
    pub(crate) slices: u32,
}

impl Point {
    /// What an arm's values in a trial say; `None` without what is compared.
    pub(crate) fn of(trial: &TrialValues, arm: &ArmValues) -> Option<Point> {
        let Brief { bytes, switches, slices, .. } = arm.brief;
        let time = arm.parts(Quantity::Time).or_else(|| Quantity::Time.of_trial(&arm.sums()))?;
        Some(Point {
            pass: trial.pass,
            position: trial.position,
            started_unix_ns: trial.started_unix_ns,
            time,
            compared: arm.parts(Quantity::of(&trial.cell))?,
            typical_ln: arm.typical(Quantity::of(&trial.cell)),
            bytes: bytes as f64,
            switches,
            slices,
        })
    }

    /// What is compared, per message.
    pub(crate) fn compared_per_message(&self) -> f64 {
        self.compared.over / self.compared.under
    }
}

/// Items that share a key, in the order of first appearance.
pub(crate) fn grouped<T, K: PartialEq>(items: &[T], key: impl Fn(&T) -> K) -> Vec<(K, Vec<&T>)> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    for item in items {
        let key = key(item);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

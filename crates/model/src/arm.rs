//! An arm: one primitive in a cell, and the part it plays in the comparison.

use serde::{Deserialize, Serialize};

use crate::ab::AbArm;
use crate::reading::Histogram;
use crate::reading::Status;
use crate::server::ServerArm;

/// The part an arm plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What the others are compared with.
    Baseline,
    /// Compared with the baseline.
    Compared,
    /// The hidden second copy of the baseline: its ratio must be 1, and how
    /// far it strays is the noise floor.
    SelfCheck,
    /// Shows what a part costs by leaving the rest out; gets no verdict.
    Control,
}

impl Role {
    /// The part of what is the baseline or not, and only shows what a part costs
    /// or not.
    pub fn against(is_baseline: bool, is_control: bool) -> Role {
        match (is_baseline, is_control) {
            (true, _) => Role::Baseline,
            (false, true) => Role::Control,
            (false, false) => Role::Compared,
        }
    }
}

/// One arm of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// Unique in its trial: the primitive's id, for the self-check with
    /// ` (A/A)` behind it.
    pub label: String,
    /// Id of the registry entry.
    pub primitive: String,
    /// Part in the comparison.
    pub role: Role,
}

/// What became of an arm in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmOutcome {
    /// Which arm.
    pub arm: Arm,
    /// How it ended.
    pub status: Status,
    /// Why, for every status but `ok`.
    pub reason: Option<String>,
    /// CPU copies per payload byte at the sender; `None` where unknown.
    pub copies_sender: Option<f64>,
    /// CPU copies per payload byte from fields to the receiver's buffer.
    pub copies_end_to_end: Option<f64>,
    /// Round-trip times of the measured rounds, in ns, from the request's
    /// send to the last byte of its response, as the requesting end saw them;
    /// `None` in modes without requests.
    pub latency: Option<Histogram>,
    /// What came of a server; `None` in other studies, and where it did not begin.
    pub server: Option<Box<ServerArm>>,
    /// What came of a program of the user's; `None` in other studies than `ab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ab: Option<Box<AbArm>>,
}

impl ArmOutcome {
    /// Of an arm of which no more is known.
    pub fn of(arm: Arm, status: Status, reason: Option<String>) -> ArmOutcome {
        ArmOutcome {
            arm,
            status,
            reason,
            copies_sender: None,
            copies_end_to_end: None,
            latency: None,
            server: None,
            ab: None,
        }
    }
}

//! What decides a verdict, as facts.
#![expect(missing_docs, reason = "names, types and units say it")]

use iolens_model::outcome::Status;
use serde::Serialize;

use crate::check::Check;
use crate::estimate::Interval;
use crate::remark::{Limited, UnequalSlices};

/// The rule behind a verdict, and its numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum VerdictReason {
    /// The numbers cannot be used.
    Unusable(Unusable),
    /// Those of the baseline cannot be.
    BaselineUnusable(Unusable),
    /// No trial has the arm together with the baseline.
    NeverTogether,
    /// One of two runs has no ratio of it.
    NoRatio,
    /// One of two runs says so, or both.
    InRuns { a: Option<Box<VerdictReason>>, b: Option<Box<VerdictReason>> },
    /// The load shows something else than the server, or than the baseline's.
    Limited {
        #[serde(flatten)]
        limited: Limited,
        of_baseline: bool,
    },
    /// What slices hold besides their messages may shift the ratio by more than half of δ.
    UnequalSlices {
        #[serde(flatten)]
        slices: UnequalSlices,
        delta: f64,
    },
    /// So many trials have no interval.
    NoSpread { trials: u32 },
    /// The pointwise 90 % interval lies inside ±δ.
    Within { pointwise90: Interval, delta: f64, self_check_half_width: Option<f64> },
    /// The simultaneous interval lies beyond the bound on one side.
    Beyond { interval: Interval, bound: f64, is_above: bool },
    /// That of a hidden copy of the baseline does.
    CopyDiffers { interval: Interval, bound: f64, is_above: bool },
    /// The simultaneous interval excludes 1 and reaches inside ±δ.
    MayBeSmall { interval: Interval, delta: f64, noise: Option<Noise> },
    /// It does neither; about so many trials would decide.
    Open {
        interval: Option<Interval>,
        delta: f64,
        trials: u32,
        trials_needed: Option<u32>,
        in_each_run: bool,
        noise: Option<Noise>,
    },
}

/// Numbers that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unusable {
    /// `failed`, `invalid`, `skipped` or `interrupted`.
    pub status: Status,
    /// What refuses them; `None` where the engine or the kernel did.
    pub check: Option<Check>,
    /// In its words.
    pub reason: String,
}

/// A self-check that is wider than δ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// Its half-width, as a fraction; `None` where its interval is not usable.
    pub half_width: Option<f64>,
}

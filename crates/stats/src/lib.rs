//! Measurements to conclusions: intervals, verdicts, gates. Pure: it reads
//! nothing but its arguments, and the same run always gives the same answer.
//!
//! A trial goes through three steps. [`values::TrialValues`] sums its slices,
//! takes the median ratio over its rounds and asks the gates; that happens
//! once per trial, as a [`fold::Fold`] takes it in. [`fold::Fold::analysis`] turns the
//! values of all trials into an [`analysis::Analysis`], cheaply enough to be called after
//! every pass. [`stopping::decide`] looks at what came of that over the passes.
//! What gates rest on stands in [`physics`], for numbers of any origin.
//! [`tune`] searches for the fastest of many configurations, and needs no run; [`search`]
//! for the highest rate at which a server keeps a limit, from the phases of a run.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ab;
mod across;
pub mod after_drop;
pub mod analyse;
pub mod analysis;
pub mod asked;
pub mod attribution;
mod check;
mod claim;
pub mod compare;
mod contrast;
mod cost_model;
mod crossing;
mod crossover;
mod drift;
mod estimate;
mod extremes;
mod figures;
#[cfg(test)]
mod fixture;
pub mod fold;
mod forecast;
mod gates;
mod groups;
mod interval;
mod kinds;
mod latency;
pub mod load;
mod neighbours;
mod offered;
mod passes;
pub mod physics;
mod plateaus;
#[cfg(test)]
mod properties;
mod quantity;
mod reached;
pub mod reason;
pub mod remark;
mod removed_copy;
mod roster;
pub mod search;
mod self_check;
mod shown;
#[cfg(test)]
mod simulation;
pub mod stopping;
mod student;
mod sums;
mod told;
mod tracks;
pub mod tune;
mod unexpected;
mod usable;
pub mod values;
mod verdict;
mod wording;

pub use analyse::unused;
pub use check::Check;
pub use fold::{Fold, analyse, analyse_for_both};
pub use forecast::Forecast;
pub use gates::invalid_arms;
pub use reached::{Reached, reached};
pub use stopping::{Decision, PassSummary, decide, unmet};
pub use values::TrialValues;

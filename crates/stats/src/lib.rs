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
pub mod after_drop;
pub mod analyse;
pub mod analysis;
pub mod asked;
pub mod attribution;
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
mod gates;
mod interval;
mod kinds;
mod latency;
pub mod load;
mod offered;
mod passes;
pub mod physics;
#[cfg(test)]
mod property_tests;
mod quantity;
pub mod remark;
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
pub mod tune;
mod unexpected;
pub mod values;
mod verdict;
mod wording;

pub use fold::{Fold, Reached, analyse, analyse_for_both, reached};
pub use gates::invalid_arms;
pub use passes::unused;
pub use remark::Check;
pub use stopping::Forecast;
pub use stopping::{Decision, PassSummary, decide, unmet};
pub use values::TrialValues;

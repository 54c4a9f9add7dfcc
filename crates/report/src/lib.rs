//! Reports: a run and its analysis to bytes. Pure: no I/O, and the same input
//! gives the same bytes.
//!
//! [`findings`] are what was found, as facts;
//! [`text`], [`csv`], [`json`], [`figure`], [`png`] and [`html`] are its forms.
//! [`compare`] holds two runs against each other.

#![forbid(unsafe_code)]

pub mod ask;
pub mod compare;
pub mod csv;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod figure;
pub mod findings;
pub mod html;
pub mod json;
pub mod load;
pub mod png;
pub mod screen;
pub mod served;
pub mod text;
pub mod transfer;
pub mod tune;
pub mod upkeep;

pub use self::number::rate;
pub use self::studies::{ab, figures, figures_on};

mod arms;
mod bounds;
mod crossing;
mod groups;
mod number;
mod parts;
mod records;
mod remarks;
mod results;
mod sections;
mod standing;
mod studies;
mod totals;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fixture_findings;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod two_trials_tests;

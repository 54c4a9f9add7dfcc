//! The study `ab`: two or more programs of the user's, judged like the methods of our own. Fresh
//! processes take turns in short slices, and nothing is claimed without an interval.
//!
//! [`calibrate`] finds out how the trials of a cell are to be, and
//! [`trial`] runs one.

#![forbid(unsafe_code)]

mod calibrate;
pub mod calls;
pub mod calls_error;
mod commands;
mod links;
mod loops;
mod pattern;
mod setup;
mod trial;

use iolens_model::ab::AbMode;
use iolens_sys::launch;

pub use calibrate::AbError;
pub use calls::count_calls;
pub use links::{AbLinkError, AbLinkOrder, links};
pub use setup::{
    AB_SLICE_ALL_CPUS_NS, AB_SLICE_NS, AbCopies, AbExit, AbLayout, AbPlacement, AbProgramLayout,
    AbSetup,
};
pub use trial::{AbArmTrial, AbPosition, AbTrial, AbTurn};

/// Finds out how the trials of a cell are to be.
///
/// Errors: a program that fails, or whose time tells nothing.
pub fn calibrate(
    setup: &AbSetup,
    seed: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<AbLayout, AbError> {
    launch::stand_by();
    match setup.mode {
        AbMode::Loop => calibrate::of_loops(setup, seed, interrupted),
        AbMode::Command => commands::calibrate(setup, seed, interrupted),
    }
}

/// Runs a trial: all arms and their hidden copies, in random order. `interrupted` is asked several
/// times a second, and whenever a signal came.
pub fn trial(
    setup: &AbSetup,
    layout: &AbLayout,
    turn: AbTurn,
    interrupted: &dyn Fn() -> bool,
) -> AbTrial {
    launch::stand_by();
    match setup.mode {
        AbMode::Loop => loops::trial(setup, layout, turn, interrupted),
        AbMode::Command => commands::trial(setup, layout, turn, interrupted),
    }
}

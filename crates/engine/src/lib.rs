//! The measuring side of iolens: the coordinator of a trial and the workers in which the loops of
//! the studies run. A [`Trial`](iolens_model::trial::Trial) goes in, a
//! [`TrialOutcome`](iolens_model::outcome::TrialOutcome) comes out; nothing
//! here knows the store or the report.

#![forbid(unsafe_code)]

pub mod by_hand;
pub mod calibrate;
pub mod doctor;
pub mod far;
pub mod layout;
#[cfg(test)]
#[path = "../../../tests/support/scripted.rs"]
mod scripted;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
#[path = "../../../tests/support/small.rs"]
mod small;
pub mod stage;
pub mod trial;
pub mod work;
pub mod worker;

pub use iolens_sys::clock;
pub use iolens_sys::durable;
pub use iolens_sys::errno::Errno;
pub use iolens_sys::signal::{Interrupts, wait_for_children};
pub use iolens_sys::terminal;

//! The measuring side of iolens: what can be measured ([`registry`]), the
//! loops that do it, and the workers in which they run. A
//! [`Trial`](iolens_model::trial::Trial) goes in, a
//! [`TrialOutcome`](iolens_model::outcome::TrialOutcome) comes out; nothing
//! here knows the store or the report.

#![forbid(unsafe_code)]

pub mod availability;
pub mod by_hand;
pub mod calibrate;
pub mod doctor;
mod entry;
pub mod far;
mod frame;
mod inflight;
pub mod layout;
mod one_call;
mod primitives;
mod receive;
pub mod receivers;
pub mod registry;
#[cfg(test)]
#[path = "../../../tests/support/scripted.rs"]
mod scripted;
mod several;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
#[path = "../../../tests/support/small.rs"]
mod small;
pub mod stage;
mod take;
mod transmit;
pub mod transports;
pub mod trial;
mod uring;
pub mod work;
pub mod worker;

pub use iolens_sys::clock;
pub use iolens_sys::durable;
pub use iolens_sys::errno::Errno;
pub use iolens_sys::signal::Interrupts;
pub use iolens_sys::terminal;
pub use transmit::FIELDS_MAX;
pub use worker::link::{Lane, pair as lane_pair};

//! Sending messages and receiving them. The [registry] lists the primitives and [`receivers`]
//! what takes in their messages, a file for each mechanism; each loop is compiled for one of
//! them. A [lane](lane::Lane) is what one thread of an arm sends over.

#![forbid(unsafe_code)]

pub mod availability;
pub mod entry;
mod frame;
mod hops;
mod inflight;
pub mod lane;
pub mod lead;
mod one_call;
mod primitives;
pub mod receive;
pub mod receivers;
pub mod registry;
mod requests;
mod several;
#[cfg(test)]
#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
#[path = "../../../../tests/support/small.rs"]
mod small;
pub mod take;
mod transmit;
pub mod transports;
mod uring;

pub use transmit::FIELDS_MAX;

//! The store through its public face: what goes in comes out, nothing that is
//! not ours is touched, and nothing committed is lost.

mod arbitrary;
mod crash;
mod endless;
mod import;
mod lookup;
mod refusal;
mod round_trip;
mod sample;
#[path = "../../../../tests/support/skip.rs"]
mod skip;
mod upkeep;

//! Writing a file: the ways to do it ([`engine`]), and one file written by hand
//! ([`by_hand`]).
//!
//! A writer owns the memory that it writes from. Whoever drives it fills that with
//! the next blocks, outside of every clock, and has them written, inside: so the
//! content never repeats, and what it costs to make is not in the time.

pub mod by_hand;
pub mod destinations;
pub mod engine;
pub(crate) mod ground;
pub mod lane;
#[cfg(test)]
mod tests;

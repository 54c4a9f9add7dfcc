//! Reading a file: the engines, what is done with the bytes, and the loop around
//! both.

mod bare;
pub mod by_hand;
mod called;
pub mod consume;
mod direct;
pub mod drive;
pub mod engines;
mod mapped;
mod ringed;
#[cfg(test)]
mod tests;

//! Reading a file: the engines, what is done with the bytes, and the loop around
//! both.

pub(crate) mod bare;
pub mod by_hand;
pub mod consume;
pub mod drive;
pub mod engine;
#[cfg(test)]
mod tests;

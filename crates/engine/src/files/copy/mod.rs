//! Copying a file: the ways to do it ([`engines`]), the loop around them
//! ([`drive`]), and one file copied by hand ([`by_hand`]).

pub mod by_hand;
pub mod drive;
pub mod engines;
#[cfg(test)]
mod tests;

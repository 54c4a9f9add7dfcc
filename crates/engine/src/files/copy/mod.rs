//! Copying a file: the ways to do it ([`engines`]), the loop around them
//! ([`drive`]), and one file copied by hand ([`by_hand`]). In the study `copy` programs
//! are arms beside them ([`copiers`]); `site` is where a trial copies, `arm` and
//! `program` are what it does there, and [`prepared`] makes the files.

pub(crate) mod arm;
pub mod by_hand;
pub mod copiers;
pub mod drive;
pub mod engines;
pub mod prepared;
mod program;
pub(crate) mod site;
#[cfg(test)]
mod tests;

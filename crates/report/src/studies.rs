//! What reports have of each study: a folder each.

pub mod ab;
pub(crate) mod files;
pub(crate) mod net;
pub(crate) mod server;
pub(crate) mod syscall;
#[cfg(test)]
pub(crate) mod tests;

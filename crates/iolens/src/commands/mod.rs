//! One file per command or family of commands.

pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod stored;
pub(crate) mod worker;

//! One file per command or family of commands.

pub(crate) mod again;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod compare;
pub(crate) mod confirm;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod file;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod menu;
pub(crate) mod net;
mod outlook;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod stored;
pub(crate) mod tune;
pub(crate) mod upkeep;
pub(crate) mod worker;

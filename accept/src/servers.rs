//! Servers and what loads them, each on its own and in runs.

use crate::prelude::*;

mod crowd;
mod oracle;
mod rivals;
mod search;
pub mod serving;
mod top2;

pub const FUNCTIONS: Functions = &[
    ("crowd", crowd::check),
    ("top2", top2::check),
    ("oracle", oracle::check),
    ("wrk", rivals::wrk),
    ("echo-in-c", rivals::echo_in_c),
    ("limits", crowd::limits),
    ("search", search::check),
];

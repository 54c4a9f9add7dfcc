//! Reading, writing and copying files.

mod block_sizes;
mod by_hand;
mod file_systems;
mod memory;
mod rivals;
mod tune;

use crate::prelude::*;

pub const FUNCTIONS: Functions = &[
    ("by-hand", by_hand::check),
    ("block-sizes", block_sizes::check),
    ("fio", rivals::fio),
    ("tune", tune::check),
    ("fio-small", rivals::fio_small),
    ("google-benchmark", rivals::google_benchmark),
    ("memory", memory::check),
    ("file-systems", file_systems::check),
];

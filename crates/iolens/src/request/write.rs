//! What only the study `write` has.

use iolens_model::file::{FileSetting, WriteAxes};

use super::axes_and_wishes;
use crate::axes::Wishes;
use crate::failure::Failure;

axes_and_wishes! {
    WriteAxes {
        destination: must target;
        pattern: must pattern;
        depth: may queue_depth vec![FileSetting::DEPTH];
        dir: same dir;
        file_bytes: same file_size;
    }
}

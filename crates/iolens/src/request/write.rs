//! What only the study `write` has.

use iolens_model::file::{FileSetting, WriteAxes};

use super::stated;
use crate::axes::Wishes;
use crate::failure::Failure;

/// The axes of these wishes.
pub(super) fn axes(asked: &Wishes) -> Result<WriteAxes, Failure> {
    Ok(WriteAxes {
        destination: stated(&asked.target, "target")?,
        pattern: stated(&asked.pattern, "pattern")?,
        depth: asked.queue_depth.clone().unwrap_or(vec![FileSetting::DEPTH]),
        dir: asked.dir.clone(),
        file_bytes: asked.file_size,
    })
}

/// What a plan states of these axes.
pub(super) fn wishes(write: &WriteAxes) -> Wishes {
    Wishes {
        target: Some(write.destination.clone()),
        pattern: Some(write.pattern.clone()),
        queue_depth: Some(write.depth.clone()),
        dir: write.dir.clone(),
        file_size: write.file_bytes,
        ..Wishes::default()
    }
}

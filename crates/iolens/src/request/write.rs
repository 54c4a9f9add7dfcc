//! A plan of the study `write`.

use iolens_engine::files::write::engines::{self, ENGINES};
use iolens_model::file::{FileSetting, WriteAxes};
use iolens_model::plan::Axes;

use super::common::{Engines, block_sizes, engine_arms, known_engine};
use super::{Chosen, Request, schedule, stated};
use crate::axes::Wishes;
use crate::failure::Failure;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "write";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = engine_arms::<Writing>(&asked, BASELINE)?;
    let sizes = block_sizes(&asked)?;
    let axes = WriteAxes {
        destination: stated(asked.target.clone(), "target")?,
        pattern: stated(asked.pattern.clone(), "pattern")?,
        depth: asked.queue_depth.clone().unwrap_or(vec![FileSetting::DEPTH]),
        dir: asked.dir.clone(),
        file_bytes: asked.file_size,
    };
    let schedule = schedule(&asked);
    let chosen = Chosen { axes: Axes::Write(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
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

/// Engines that write.
struct Writing;

impl Engines for Writing {
    const TASK: &'static str = "writes";

    fn ids() -> Vec<&'static str> {
        ENGINES.iter().map(|entry| entry.id).collect()
    }

    fn find(id: &str) -> Option<&'static str> {
        engines::find(id).map(|entry| entry.id)
    }
}

/// Whether there is such an id under a field.
pub(super) fn known(field: &str, id: &str) -> Result<(), String> {
    known_engine::<Writing>(field, id)
}

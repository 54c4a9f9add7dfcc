//! A plan of the study `write`.

use iolens_engine::files::write::engines::{self, ENGINES};
use iolens_model::file::{FileSetting, WriteAxes};
use iolens_model::plan::{Axes, Schedule};

use super::common::{Engines, block_sizes, engine_arms, known_engine};
use super::{Chosen, Request, schedule, stated};
use crate::failure::Failure;
use crate::wishes::Wishes;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "write";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = engine_arms::<Writing>(&asked, BASELINE)?;
    let sizes = block_sizes(&asked)?;
    let axes = WriteAxes {
        destination: stated(asked.destination.clone(), "destination")?.0,
        pattern: stated(asked.pattern.clone(), "pattern")?.0,
        depth: asked.depth.clone().map_or(vec![FileSetting::DEPTH], |depth| depth.0),
        dir: asked.dir.clone(),
        file_bytes: asked.file_bytes,
    };
    let schedule = schedule(&asked);
    check(&schedule)?;
    let chosen = Chosen { axes: Axes::Write(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
}

/// Refuses slices that write more than there is a state for: each begins with a clean
/// region, and ends before it writes a block again.
fn check(schedule: &Schedule) -> Result<(), Failure> {
    let way = match schedule {
        Schedule::Slices { .. } => return Ok(()),
        Schedule::Window { .. } => "--window",
        Schedule::Messages { .. } => "--messages",
    };
    Err(Failure::usage(format!(
        "{way} does not go with the study write: what one long slice leaves dirty is written back \
         while it goes on, and would be in its time\n  leave it out, or take `iolens file write` \
         for one file"
    )))
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

/// Whether there is such an id under a key of a plan.
pub(super) fn known(key: &str, id: &str) -> Result<(), String> {
    known_engine::<Writing>(key, id)
}

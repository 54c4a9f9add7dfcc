//! A plan of the study `file`.

use std::path::Path;

use iolens_engine::files::read::engines::{self, ENGINES};
use iolens_engine::files::subject::Subject;
use iolens_model::file::{CacheState, DropMode, FileAxes, FileSetting};
use iolens_model::plan::Axes;

use super::common::{Engines, block_sizes, engine_arms, known_engine};
use super::{Chosen, Request, schedule, stated};
use crate::failure::Failure;
use crate::wishes::Wishes;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "read";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = engine_arms::<Reading>(&asked, BASELINE)?;
    let sizes = block_sizes(&asked)?;
    let axes = FileAxes {
        cache: stated(asked.cache.clone(), "cache")?.0,
        pattern: stated(asked.pattern.clone(), "pattern")?.0,
        consumer: stated(asked.consumer.clone(), "consumer")?.0,
        depth: asked.depth.clone().map_or(vec![FileSetting::DEPTH], |depth| depth.0),
        file: asked.file.clone(),
        dir: asked.dir.clone(),
        file_bytes: asked.file_bytes,
        evict: asked.evict,
        drop_caches: asked.drop_caches.clone().map_or_else(Vec::new, |modes| modes.0),
    };
    check(&axes)?;
    let schedule = schedule(&asked);
    let chosen = Chosen { axes: Axes::File(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
}

/// Refuses a file that cannot be read, what would be done to one without being asked for, and
/// what does not concern the file that is named.
fn check(axes: &FileAxes) -> Result<(), Failure> {
    check_drops(axes)?;
    let Some(file) = &axes.file else {
        return match axes.evict {
            true => Err(Failure::usage(
                "--evict is for a file of yours, and no --file is named\n  ours is evicted for cold \
                 cells without asking",
            )),
            false => Ok(()),
        };
    };
    Subject::open(Path::new(file)).map_err(Failure::usage)?;
    let ours = [("--dir", axes.dir.is_some()), ("--file-bytes", axes.file_bytes.is_some())];
    if let Some((flag, _)) = ours.into_iter().find(|(_, is_stated)| *is_stated) {
        return Err(Failure::usage(format!(
            "{flag} is about a file of ours, and --file names {file}\n  leave one of them out"
        )));
    }
    if axes.cache.contains(&CacheState::Cold) && !axes.evict {
        return Err(Failure::usage(format!(
            "a cold cell evicts {file} from the page cache again and again, and other processes \
             that use it pay for that\n  --evict allows it; --cache warm leaves it alone"
        )));
    }
    Ok(())
}

/// Refuses to drop caches of everybody's without being asked for that.
fn check_drops(axes: &FileAxes) -> Result<(), Failure> {
    let is_dropped = axes.cache.contains(&CacheState::Dropped);
    if is_dropped && !axes.drop_caches.contains(&DropMode::Both) {
        return Err(Failure::usage(
            "--cache dropped drops the caches of the whole system before every slice, and \
             everybody on this machine pays for that\n  --drop-caches 3 allows it; --cache cold \
             evicts the one file",
        ));
    }
    Ok(())
}

/// Engines that read.
struct Reading;

impl Engines for Reading {
    const TASK: &'static str = "reads";

    fn ids() -> Vec<&'static str> {
        ENGINES.iter().map(|entry| entry.id).collect()
    }

    fn find(id: &str) -> Option<&'static str> {
        engines::find(id).map(|entry| entry.id)
    }
}

/// Whether there is such an id under a key of a plan.
pub(super) fn known(key: &str, id: &str) -> Result<(), String> {
    known_engine::<Reading>(key, id)
}

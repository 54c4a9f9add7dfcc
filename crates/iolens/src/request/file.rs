//! A plan of the study `file`.

use iolens_engine::files::read::engines::{self, ENGINES};
use iolens_model::file::{CacheState, FileAxes, FileSetting};
use iolens_model::plan::Axes;
use iolens_model::units::Bytes;

use super::{ALL, Chosen, Request, schedule, stated};
use crate::failure::Failure;
use crate::values::unknown;
use crate::wishes::Wishes;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "read";

/// The largest block: each thread of each arm has a buffer of it, or several.
const BLOCK_BYTES_MAX: Bytes = Bytes(64 * Bytes::MIB);

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = arms(&asked)?;
    let sizes = stated(asked.sizes.clone(), "sizes")?.0;
    if let Some(size) = sizes.iter().find(|size| **size > BLOCK_BYTES_MAX) {
        return Err(Failure::usage(format!(
            "a block of {size} is too large: the largest is {BLOCK_BYTES_MAX}"
        )));
    }
    let axes = FileAxes {
        cache: stated(asked.cache.clone(), "cache")?.0,
        pattern: stated(asked.pattern.clone(), "pattern")?.0,
        consumer: stated(asked.consumer.clone(), "consumer")?.0,
        depth: asked.depth.clone().map_or(vec![FileSetting::DEPTH], |depth| depth.0),
        file: asked.file.clone(),
        dir: asked.dir.clone(),
        file_bytes: asked.file_bytes,
        evict: asked.evict,
    };
    check(&axes)?;
    let schedule = schedule(&asked);
    let chosen = Chosen { axes: Axes::File(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
}

/// Refuses what would be done to a file without being asked for, and what does not
/// concern the file that is named.
fn check(axes: &FileAxes) -> Result<(), Failure> {
    let Some(file) = &axes.file else {
        return match axes.evict {
            true => Err(Failure::usage(
                "--evict is for a file of yours, and no --file is named\n  ours is evicted for cold \
                 cells without asking",
            )),
            false => Ok(()),
        };
    };
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

/// The engines and the baseline, which is always measured.
fn arms(asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let mut listed: Vec<String> = Vec::new();
    for word in stated(asked.primitives.clone(), "primitives")?.0 {
        let found: Vec<&str> = match &*word {
            ALL => ENGINES.iter().map(|entry| entry.id).collect(),
            id => vec![engine(id).map_err(Failure::usage)?.id],
        };
        for id in found {
            if !listed.iter().any(|known| known == id) {
                listed.push(id.to_owned());
            }
        }
    }
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => engine(id).map_err(Failure::usage)?.id.to_owned(),
        (None, [single]) => single.clone(),
        (None, _) => BASELINE.to_owned(),
    };
    let others = listed.into_iter().filter(|id| *id != baseline);
    Ok((std::iter::once(baseline.clone()).chain(others).collect(), baseline))
}

fn engine(id: &str) -> Result<&'static engines::Entry, String> {
    engines::find(id).ok_or_else(|| {
        let known: Vec<&str> = ENGINES.iter().map(|entry| entry.id).collect();
        let hint = format!("`iolens list engines` shows all of them; --primitives takes {ALL} too");
        unknown("engine", id, &known, &hint)
    })
}

/// Whether there is such an id under a key of a plan.
pub(super) fn known(key: &str, id: &str) -> Result<(), String> {
    match key {
        "primitives" if id == ALL => Ok(()),
        "primitives" | "baseline" => engine(id).map(|_| ()),
        // Said of the key, whatever stands under it.
        _ => Ok(()),
    }
}

//! A plan of the study `copy`.

use std::path::Path;

use iolens_engine::files::copy::copiers;
use iolens_engine::files::subject::Subject;
use iolens_model::copy::{CopyAxes, CopySync, External};
use iolens_model::file::CacheState;
use iolens_model::plan::Axes;
use iolens_model::units::Bytes;

use super::common::{arms_with_programs, check_external};
use super::{ALL, Chosen, Request, schedule, stated};
use crate::failure::Failure;
use crate::values::server::OF_COPIES;
use crate::values::unknown;
use crate::wishes::Wishes;

/// The baseline of the study, unless another one is named: what any program does that
/// thinks no further, and one of ours, so that starting a program is in no ratio of
/// engines. A plan that asks about `dd` names that.
const BASELINE: &str = "read_write";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = arms(&asked)?;
    let axes = CopyAxes {
        block: stated(asked.block.clone(), "block")?.0,
        cache: stated(asked.cache.clone(), "cache")?.0,
        sync: asked.sync.clone().map_or(vec![CopySync::None], |sync| sync.0),
        file: asked.file.clone(),
        dir: asked.dir.clone(),
        evict: asked.evict,
        external: asked.external.clone(),
    };
    check(&axes)?;
    if axes.cache.contains(&CacheState::Dropped) {
        return Err(Failure::usage(
            "--cache dropped is of the study file alone: a copy has its source warm, or evicted\n  \
             take --cache warm,cold",
        ));
    }
    let sizes = match &axes.file {
        Some(file) => vec![size_of(file)?],
        None => stated(asked.sizes.clone(), "sizes")?.0,
    };
    let schedule = schedule(&asked);
    if !schedule.is_sliced() {
        return Err(Failure::usage(
            "--window and --messages are not of the study copy: a slice is whole files, each \
             copied to where none is\n  leave them out",
        ));
    }
    let chosen = Chosen { axes: Axes::Copy(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
}

/// Refuses sizes beside a file, which has its own.
pub(super) fn refuse_sizes(asked: &Wishes) -> Result<(), Failure> {
    match (&asked.file, &asked.sizes) {
        (Some(file), Some(_)) => Err(Failure::usage(format!(
            "--sizes are of files of ours, and --file names {file}, which has its own size\n  \
             leave one of them out"
        ))),
        _ => Ok(()),
    }
}

/// The size of the user's file.
fn size_of(file: &str) -> Result<Bytes, Failure> {
    let subject = Subject::open(Path::new(file)).map_err(Failure::usage)?;
    match subject.bytes() {
        0 => Err(Failure::usage(format!("{file} is empty: there is nothing to copy"))),
        bytes => Ok(Bytes(bytes)),
    }
}

/// Refuses what would be done to a file without being asked for, and names that are
/// taken.
fn check(axes: &CopyAxes) -> Result<(), Failure> {
    let is_cold = axes.cache.contains(&CacheState::Cold);
    match &axes.file {
        None if axes.evict => {
            return Err(Failure::usage(
                "--evict is for a file of yours, and no --file is named\n  ours are evicted for \
                 cold cells without asking",
            ));
        }
        Some(file) if is_cold && !axes.evict => {
            return Err(Failure::usage(format!(
                "a cold cell evicts {file} from the page cache again and again, and other \
                 processes that use it pay for that\n  --evict allows it; --cache warm leaves it \
                 alone"
            )));
        }
        _ => {}
    }
    check_external(&axes.external, copiers::is_built_in, OF_COPIES)
}

/// The arms and the baseline, of which some can be none.
fn arms(asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let all: Vec<&str> = copiers::built_in_ids().collect();
    let known = |id: &str| arm(id, &asked.external);
    let (listed, baseline) = arms_with_programs(asked, &all, known, BASELINE)?;
    if copiers::is_control(&baseline) && listed.len() > 1 {
        return Err(Failure::usage(format!(
            "`{baseline}` cannot be the baseline: it moves no bytes\n  name one that does with \
             --baseline, such as {BASELINE}"
        )));
    }
    Ok((listed, baseline))
}

/// The id of an engine, of a program that everybody has, or of one that was given.
fn arm(id: &str, external: &[External]) -> Result<String, String> {
    if copiers::is_built_in(id) || external.iter().any(|external| external.name == id) {
        return Ok(id.to_owned());
    }
    let known: Vec<&str> = copiers::built_in_ids().collect();
    let hint = format!(
        "`iolens list engines` shows all of them; --primitives takes {ALL} too, and --external \
         adds a program"
    );
    Err(unknown("engine or program", id, &known, &hint))
}

/// Whether there may be such an id under a key of a plan: one that is none of ours may
/// stand under `external`, which is known when all of the plan is.
pub(super) fn known(_: &str, _: &str) -> Result<(), String> {
    Ok(())
}

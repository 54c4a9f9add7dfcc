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
use crate::axes::Wishes;
use crate::failure::Failure;
use crate::values::server::OF_COPIES;
use crate::values::unknown;

/// The baseline of the study, unless another one is named: what any program does that
/// thinks no further, and one of ours, so that starting a program is in no ratio of
/// engines. A plan that asks about `dd` names that.
const BASELINE: &str = "read_write";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64) -> Result<Request, Failure> {
    let (primitives, baseline) = arms(&asked)?;
    let axes = CopyAxes {
        block: stated(asked.block_size.clone(), "block_size")?,
        cache: stated(asked.cache.clone(), "cache")?,
        sync: asked.sync.clone().unwrap_or(vec![CopySync::None]),
        file: asked.file.clone(),
        dir: asked.dir.clone(),
        evict: asked.allow_evict,
        external: asked.external.clone(),
    };
    check(&axes)?;
    if axes.cache.contains(&CacheState::Dropped) {
        return Err(Failure::usage(
            "run copy has no --cache dropped; it belongs to run file\n  use --cache warm,cold",
        ));
    }
    let sizes = match &axes.file {
        Some(file) => vec![size_of(file)?],
        None => stated(asked.sizes.clone(), "sizes")?,
    };
    let schedule = schedule(&asked);
    let chosen = Chosen { axes: Axes::Copy(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes: Vec::new() })
}

/// What a plan states of these axes.
pub(super) fn wishes(copy: &CopyAxes) -> Wishes {
    Wishes {
        block_size: Some(copy.block.clone()),
        cache: Some(copy.cache.clone()),
        sync: Some(copy.sync.clone()),
        file: copy.file.clone(),
        dir: copy.dir.clone(),
        allow_evict: copy.evict,
        external: copy.external.clone(),
        ..Wishes::default()
    }
}

/// Refuses sizes beside a file, which has its own.
pub(super) fn refuse_sizes(asked: &Wishes) -> Result<(), Failure> {
    match (&asked.file, &asked.sizes) {
        (Some(file), Some(_)) => Err(Failure::usage(format!(
            "--file-sizes does not apply to --file {file}, which has its own size\n  leave one of \
             them out"
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
                "--allow-evict needs --file: test files are evicted without asking\n  leave it out, \
                 or name a file of yours with --file",
            ));
        }
        Some(file) if is_cold && !axes.evict => {
            return Err(Failure::usage(format!(
                "--cache cold would evict {file} from the page cache, slowing other programs that \
                 use it\n  add --allow-evict, or use --cache warm"
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
        "`iolens list engines` shows all of them; --engines takes {ALL} too, and --external \
         adds a program"
    );
    Err(unknown("engine or program", id, &known, &hint))
}

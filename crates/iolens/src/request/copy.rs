//! What only the study `copy` has.

use std::path::Path;

use iolens_engine::files::subject::Subject;
use iolens_model::copy::{CopyAxes, CopySync};
use iolens_model::file::CacheState;
use iolens_model::units::Bytes;

use super::axes_and_wishes;
use crate::axes::Wishes;
use crate::failure::{Failure, usage};

axes_and_wishes! {
    CopyAxes {
        block: must block_size;
        cache: must cache;
        sync: may sync vec![CopySync::None];
        file: same file;
        dir: same dir;
        evict: same allow_evict;
        external: same external;
    }
}

/// The axes of these wishes.
pub(super) fn axes(asked: &Wishes) -> Result<CopyAxes, Failure> {
    let axes = asked_for(asked)?;
    check(&axes)?;
    if axes.cache.contains(&CacheState::Dropped) {
        return Err(Failure::usage(
            "run copy has no --cache dropped; it belongs to run file\n  use --cache warm,cold",
        ));
    }
    Ok(axes)
}

/// Refuses sizes beside a file, which has its own.
pub(super) fn refuse_sizes(asked: &Wishes) -> Result<(), Failure> {
    match (&asked.file, &asked.sizes) {
        (Some(file), Some(_)) => Err(usage!(
            "--file-sizes does not apply to --file {file}, which has its own size\n  leave one of \
             them out"
        )),
        _ => Ok(()),
    }
}

/// The size of the user's file.
pub(super) fn size_of(file: &str) -> Result<Bytes, Failure> {
    let subject = Subject::open(Path::new(file)).map_err(Failure::usage)?;
    match subject.bytes() {
        0 => Err(usage!("{file} is empty: there is nothing to copy")),
        bytes => Ok(Bytes(bytes)),
    }
}

/// Refuses what would be done to a file without being asked for, and names that are
/// taken.
fn check(axes: &CopyAxes) -> Result<(), Failure> {
    let is_cold = axes.cache.contains(&CacheState::Cold);
    match &axes.file {
        None if axes.evict => Err(Failure::usage(
            "--allow-evict needs --file: test files are evicted without asking\n  leave it out, \
                 or name a file of yours with --file",
        )),
        Some(file) if is_cold && !axes.evict => Err(usage!(
            "--cache cold would evict {file} from the page cache, slowing other programs that \
                 use it\n  add --allow-evict, or use --cache warm"
        )),
        _ => Ok(()),
    }
}

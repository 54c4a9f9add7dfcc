//! What only the study `file` has.

use std::path::Path;

use iolens_engine::files::subject::Subject;
use iolens_model::file::{CacheState, DropMode, FileAxes, FileSetting};

use super::axes_and_wishes;
use crate::axes::Wishes;
use crate::failure::{Failure, usage};

axes_and_wishes! {
    FileAxes {
        cache: must cache;
        pattern: must pattern;
        consumer: must consumer;
        depth: may queue_depth vec![FileSetting::DEPTH];
        file: same file;
        dir: same dir;
        file_bytes: same file_size;
        evict: same allow_evict;
        drop_caches: list drop_caches;
    }
}

/// The axes of these wishes.
pub(super) fn axes(asked: &Wishes) -> Result<FileAxes, Failure> {
    let axes = asked_for(asked)?;
    check(&axes).map(|()| axes)
}

/// Refuses a file that cannot be read, what would be done to one without being asked for, and
/// what does not concern the file that is named.
fn check(axes: &FileAxes) -> Result<(), Failure> {
    check_drops(axes)?;
    let Some(file) = &axes.file else {
        return match axes.evict {
            true => Err(Failure::usage(
                "--allow-evict needs --file: the test file is evicted without asking\n  leave it out, or \
                 name a file of yours with --file",
            )),
            false => Ok(()),
        };
    };
    Subject::open(Path::new(file)).map_err(Failure::usage)?;
    let ours = [("--dir", axes.dir.is_some()), ("--file-size", axes.file_bytes.is_some())];
    if let Some((flag, _)) = ours.into_iter().find(|(_, is_stated)| *is_stated) {
        return Err(usage!(
            "{flag} does not apply to --file {file}: it is about the test file\n  leave one of them out"
        ));
    }
    if axes.cache.contains(&CacheState::Cold) && !axes.evict {
        return Err(usage!(
            "--cache cold would evict {file} from the page cache, slowing other programs that use \
             it\n  add --allow-evict, or use --cache warm"
        ));
    }
    Ok(())
}

/// Refuses to drop caches of everybody's without being asked for that.
fn check_drops(axes: &FileAxes) -> Result<(), Failure> {
    let is_dropped = axes.cache.contains(&CacheState::Dropped);
    if is_dropped && !axes.drop_caches.contains(&DropMode::Both) {
        return Err(Failure::usage(
            "--cache dropped empties the caches of the whole machine\n  add --drop-caches 3 if that \
             is acceptable, or use --cache cold for this file only",
        ));
    }
    Ok(())
}

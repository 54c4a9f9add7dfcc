//! What the studies of files have: `file`, `write` and `copy`.

use std::path::Path;

use iolens_engine::files::subject::Subject;
use iolens_model::copy::{CopyAxes, CopySync, External};
use iolens_model::file::{CacheState, DropMode, FileAxes, FileSetting, Pattern, WriteAxes};
use iolens_model::plan::Schedule;
use iolens_model::units::Bytes;

use super::arms::check_turns;
use super::{AsWished, axes_and_wishes};
use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::values::server::lacking;

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
        external: same external;
    }
}

axes_and_wishes! {
    WriteAxes {
        destination: must target;
        pattern: must pattern;
        depth: may queue_depth vec![FileSetting::DEPTH];
        dir: same dir;
        file_bytes: same file_size;
    }
}

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

/// Refuses a file that cannot be read, what would be done to one without being asked for, and
/// what does not concern the file that is named.
pub(super) fn read_axes(asked: &Wishes, schedule: &Schedule) -> Result<FileAxes, Failure> {
    let axes = FileAxes::asked_for(asked, ())?;
    check_turns(asked, schedule)?;
    let walks = |program: &&External| lacking(&program.argv, &["{pattern}"]).is_some();
    if let Some(program) = axes.external.iter().find(walks)
        && axes.pattern.contains(&Pattern::Random)
    {
        return Err(usage!(
            "--external {} is not told when blocks are read in random order\n  write {{pattern}} into \
             the command, which becomes sequential or random, or leave --pattern random out",
            program.name
        ));
    }
    let drops = axes.drop_caches.contains(&DropMode::Both);
    if axes.cache.contains(&CacheState::Dropped) && !drops {
        return Err(Failure::usage(
            "--cache dropped empties the caches of the whole machine\n  add --drop-caches 3 if that \
             is acceptable, or use --cache cold for this file only",
        ));
    }
    if let Some(file) = &axes.file {
        Subject::open(Path::new(file)).map_err(Failure::usage)?;
        let ours = [("--dir", axes.dir.is_some()), ("--file-size", axes.file_bytes.is_some())];
        if let Some((flag, _)) = ours.into_iter().find(|(_, is_stated)| *is_stated) {
            return Err(usage!(
                "{flag} does not apply to --file {file}: it is about the test file\n  leave one of \
                 them out"
            ));
        }
    }
    check_eviction(axes.file.as_deref(), axes.evict, &axes.cache).map(|()| axes)
}

pub(super) fn copy_axes(asked: &Wishes) -> Result<CopyAxes, Failure> {
    let axes = CopyAxes::asked_for(asked, ())?;
    check_eviction(axes.file.as_deref(), axes.evict, &axes.cache)?;
    match axes.cache.contains(&CacheState::Dropped) {
        true => Err(Failure::usage(
            "run copy has no --cache dropped; it belongs to run file\n  use --cache warm,cold",
        )),
        false => Ok(axes),
    }
}

fn check_eviction(file: Option<&str>, may: bool, cache: &[CacheState]) -> Result<(), Failure> {
    match file {
        None if may => Err(Failure::usage(
            "--allow-evict needs --file: test files are evicted without asking\n  leave it out, or \
             name a file of yours with --file",
        )),
        Some(file) if cache.contains(&CacheState::Cold) && !may => Err(usage!(
            "--cache cold would evict {file} from the page cache, slowing other programs that use \
             it\n  add --allow-evict, or use --cache warm"
        )),
        _ => Ok(()),
    }
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

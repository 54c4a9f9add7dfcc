//! The studies of files: `file`, `write` and `copy`.

use std::path::Path;

use iolens_file::copy::copiers;
use iolens_file::engines;
use iolens_file::subject::Subject;
use iolens_model::axes::Study;
use iolens_model::copy::{CopyAxes, CopySync};
use iolens_model::external::External;
use iolens_model::file::{CacheState, DropMode, FileAxes, FileSetting, Pattern, WriteAxes};
use iolens_model::plan::Axes;
use iolens_model::units::Bytes;

use super::wished::{self, AsWished, axes_and_wishes, check_turns};
use super::{ArmChoice, DISCARDED_ROUNDS, Draft, Programs, SLICE, StudySpec};
use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::values::server::{OF_COPIES, OF_READERS, lacking};

pub(super) static FILE: StudySpec = StudySpec {
    study: Study::File,
    summary: "Read a file: read, mmap, O_DIRECT, io_uring; cached or not",
    about: "Compare ways to read a file, cached or not",
    examples: "\
Examples:
  iolens run file --quick
  iolens run file --engines read,mmap,uring --block-sizes 4KiB..4MiB
  iolens run file --file big.bin --cache warm
  iolens run file --dir /mnt/nvme --cache cold --threads 1,2,4",
    footer: Some(
        "For one file of yours, iolens tune read FILE is faster and ends with a command to run.",
    ),
    quick: "file-quick",
    arms: || ArmChoice {
        what: "engine that reads",
        baseline: "read",
        ids: engines::READING.iter().map(|entry| entry.id).collect(),
        find: |id| engines::that_reads(id).map(|entry| entry.id),
        ..of_engines()
    },
    textbook: &[],
    programs: Some(Programs { told: |_| OF_READERS, are_listed: false }),
    slices: (SLICE, DISCARDED_ROUNDS),
    fit: |_, _| Ok(()),
    sizes: wished::blocks,
    axes: read_axes,
    wishes: |plan| plan.file().map(AsWished::stated).unwrap_or_default(),
    lay_out: |_, _, _| (),
};

pub(super) static WRITE: StudySpec = StudySpec {
    study: Study::Write,
    summary: "Write a file, and what fsync costs",
    about: "Compare ways to write a file, and what fsync costs",
    examples: "\
Examples:
  iolens run write --quick
  iolens run write --engines write,direct,write_fsync --block-sizes 4KiB..1MiB
  iolens run write --dir /mnt/nvme --target new",
    footer: None,
    quick: "write-quick",
    arms: || ArmChoice {
        what: "engine that writes",
        baseline: "write",
        ids: engines::WRITING.iter().map(|entry| entry.id).collect(),
        find: |id| engines::that_writes(id).map(|entry| entry.id),
        ..of_engines()
    },
    textbook: &[],
    programs: None,
    slices: (SLICE, DISCARDED_ROUNDS),
    fit: |_, _| Ok(()),
    sizes: wished::blocks,
    axes: |draft| WriteAxes::asked_for(draft.asked, ()).map(Axes::Write),
    wishes: |plan| plan.write().map(AsWished::stated).unwrap_or_default(),
    lay_out: |_, _, _| (),
};

pub(super) static COPY: StudySpec = StudySpec {
    study: Study::Copy,
    summary: "Copy a file, next to dd and cp",
    about: "Compare ways to copy a file, next to dd and cp",
    examples: "\
Examples:
  iolens run copy --quick
  iolens run copy --file-sizes 1MiB,100MiB --block-size 4KiB,128KiB
  iolens run copy --external mine='./copy {src} {dst}'",
    footer: Some(
        "For one file of yours, iolens tune copy FILE DIR is faster and ends with a command to run.",
    ),
    quick: "copy-quick",
    arms: || ArmChoice {
        what: "engine or program",
        // One of ours, so that starting a program is in no ratio of engines.
        baseline: "read_write",
        ids: copiers::built_in_ids().collect(),
        find: |id| copiers::built_in_ids().find(|known| *known == id),
        control: |id| copiers::is_control(id).then_some("moves no bytes"),
        advice: format!("{}, and --external adds a program", of_engines().advice),
        ..of_engines()
    },
    textbook: &[],
    programs: Some(Programs { told: |_| OF_COPIES, are_listed: true }),
    slices: (SLICE, DISCARDED_ROUNDS),
    fit: |asked, _| refuse_sizes(asked),
    sizes: |asked| match &asked.file {
        Some(file) => Ok(vec![size_of(file)?]),
        None => wished::sizes(asked),
    },
    axes: |draft| copy_axes(draft.asked).map(Axes::Copy),
    wishes: |plan| plan.copy().map(AsWished::stated).unwrap_or_default(),
    lay_out: |_, _, _| (),
};

/// What engines have in common.
fn of_engines() -> ArmChoice {
    ArmChoice {
        what: "",
        baseline: "",
        ids: Vec::new(),
        find: |_| None,
        group: |_| None,
        control: |_| None,
        is_alone: true,
        does: "does",
        advice: "`iolens list engines` shows all of them; --engines takes all too".to_owned(),
    }
}

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
fn read_axes(Draft { asked, schedule, .. }: Draft<'_>) -> Result<Axes, Failure> {
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
    check_eviction(axes.file.as_deref(), axes.evict, &axes.cache).map(|()| Axes::File(axes))
}

fn copy_axes(asked: &Wishes) -> Result<CopyAxes, Failure> {
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
fn refuse_sizes(asked: &Wishes) -> Result<(), Failure> {
    match (&asked.file, &asked.sizes) {
        (Some(file), Some(_)) => Err(usage!(
            "--file-sizes does not apply to --file {file}, which has its own size\n  leave one of \
             them out"
        )),
        _ => Ok(()),
    }
}

/// The size of the user's file.
fn size_of(file: &str) -> Result<Bytes, Failure> {
    let subject = Subject::open(Path::new(file)).map_err(Failure::usage)?;
    match subject.bytes() {
        0 => Err(usage!("{file} is empty: there is nothing to copy")),
        bytes => Ok(Bytes(bytes)),
    }
}

//! The files of a run that writes: one that is there already, with a region for every
//! arm of a trial, and one that is new whenever a slice begins. Both are ours, without
//! a name, and gone with the run.

use std::os::fd::AsFd;
use std::path::Path;

use iolens_model::file::{Destination, FileFacts, WriteAxes, WritingFacts};
use iolens_model::host::HostFacts;
use iolens_model::plan::Plan;
use iolens_model::trial::{Trial, TrialFile, TrialRegions};
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::clock;
use iolens_sys::file::at::pwrite;
use iolens_sys::file::create::{self, How};
use iolens_sys::file::fdatasync;
use iolens_sys::pages::page_bytes;
use iolens_sys::proc::Root;

use crate::examine::examine;
use crate::file_path::FilePath;
use crate::prepared::folder_of;
use crate::subject::Subject;
use crate::test_file::{Room, TestFile, fill};

/// A region is at least as large, so that what is written again was some time ago.
const REGION_BYTES_MIN: u64 = 64 << 20;

/// And a multiple of so many: pages of several regions in one large folio could be
/// evicted with all of them alone (`PREFERRED_MAX_PAGECACHE_ORDER`, a PMD).
pub(crate) const REGION_MULTIPLE: u64 = 2 << 20;

/// And holds so many blocks of each thread.
const REGION_BLOCKS: u64 = 8;

/// All regions take no more than one part in so many of the memory: they are in the
/// page cache.
const MEMORY_PART: u64 = 8;

/// How often a flush is tried.
const FLUSHES: usize = 21;

/// Both files.
#[derive(Debug)]
pub struct Destinations {
    _files: [TestFile; 2],
    existing: FilePath,
    new: FilePath,
    facts: FileFacts,
    regions: TrialRegions,
}

impl Destinations {
    /// Makes them, and writes what is to be there, for trials of so many arms at most.
    ///
    /// Errors: what was tried and what the system said, or that it was stopped.
    pub(crate) fn make(
        plan: &Plan,
        axes: &WriteAxes,
        arms: usize,
        host: &HostFacts,
        stop: &impl Fn() -> bool,
    ) -> Result<Destinations, String> {
        let folder = folder_of(axes.dir.as_deref());
        let folder = folder.as_path();
        let (region, size_reason) = region(plan, axes, arms, host)?;
        let is_there = axes.destination.contains(&Destination::Existing);
        let count = u32::try_from(if is_there { arms } else { 1 }).unwrap_or(u32::MAX);
        let regions = TrialRegions { bytes: region.0, count };
        let bytes = region.0.saturating_mul(u64::from(count));
        // A new one is as large as a region, when it is.
        let room = Bytes(bytes.saturating_add(if is_there { region.0 } else { 0 }));
        Room::of(folder)?.check(folder, room)?;
        let mut existing = TestFile::make(folder, plan.seed)?;
        let first = if is_there { bytes } else { page_bytes() as u64 };
        existing.resize(first, stop).map_err(|stopped| stopped.to_string())?;
        let subject = existing.subject()?;
        let writing = WritingFacts {
            region,
            regions: count,
            dirty_background: dirty_background(),
            flushes: flushes(&subject, plan.seed)?,
        };
        let warnings = if is_there { examine(&subject)?.warnings() } else { Vec::new() };
        let new = TestFile::make(folder, plan.seed)?;
        let facts = FileFacts {
            place: folder.display().to_string(),
            is_ours: true,
            bytes: Bytes(bytes),
            size_reason,
            file_system: subject.file_system().to_owned(),
            first_pass: None,
            destination: None,
            warnings,
            writing: Some(writing),
            dropped: Vec::new(),
        };
        let path = |file: &TestFile| FilePath::new(Path::new(&file.path_for_others()));
        let (existing_path, new_path) = (path(&existing), path(&new));
        let _files = [existing, new];
        Ok(Destinations { _files, existing: existing_path, new: new_path, facts, regions })
    }

    /// What a run keeps of them.
    pub(crate) fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// A trial with the file that its cell writes to.
    pub(crate) fn given_to(&self, trial: Trial, seed: u64) -> Trial {
        let destination = trial.cell.write().map(|write| write.destination);
        let path = match destination {
            Some(Destination::New) => &self.new,
            Some(Destination::Existing) | None => &self.existing,
        };
        let path = path.clone().into_bytes();
        let regions = Some(self.regions);
        Trial { file: Some(TrialFile { path, bytes: None, seed, regions }), ..trial }
    }
}

/// Bytes of the region of one of so many arms, a multiple of what direct writes ask for, and why.
///
/// Errors: memory is too small for the largest block, or the size that is asked for.
fn region(
    plan: &Plan,
    axes: &WriteAxes,
    arms: usize,
    host: &HostFacts,
) -> Result<(Bytes, String), String> {
    let threads = u64::from(plan.threads.iter().copied().max().unwrap_or(1));
    let largest = plan.sizes.iter().copied().max().unwrap_or_default();
    let one_each = largest.0.saturating_mul(threads);
    if let Some(asked) = axes.file_bytes {
        if asked.0 < one_each {
            return Err(format!(
                "{asked} for each arm is less than a block of {largest} for each of {threads} \
                 threads\n  --file-size asks for more, --block-sizes for smaller blocks"
            ));
        }
        return Ok((Bytes(asked.0.next_multiple_of(REGION_MULTIPLE)), "as asked for".to_owned()));
    }
    let wanted = one_each.saturating_mul(REGION_BLOCKS).max(REGION_BYTES_MIN);
    let arms = arms as u64;
    let most = host.memory.value().map_or(u64::MAX, |memory| memory.0 / MEMORY_PART / arms);
    if most < one_each {
        return Err(format!(
            "regions for {arms} arms with a block of {largest} for each of {threads} threads take \
             more than an eighth of the memory\n  ask for smaller --block-sizes or fewer --threads"
        ));
    }
    let why = match (wanted > most, wanted == REGION_BYTES_MIN) {
        (true, _) => format!("{arms} of them are an eighth of the memory"),
        (false, true) => "more than many slices write".to_owned(),
        (false, false) => format!("{REGION_BLOCKS} of the largest blocks for each thread"),
    };
    let bytes = wanted.min(most);
    Ok((Bytes(bytes.max(one_each).next_multiple_of(REGION_MULTIPLE)), why))
}

/// From how much dirty memory on the kernel writes back by itself.
fn dirty_background() -> Option<Bytes> {
    let vmstat = Root::real().read("proc/vmstat").ok()?;
    let pages = vmstat.lines().find_map(|l| l.strip_prefix("nr_dirty_background_threshold "))?;
    Some(Bytes(pages.trim().parse::<u64>().ok()?.saturating_mul(page_bytes() as u64)))
}

/// How long it takes to write the file's first page and bring it to the device.
///
/// Errors: what the system said.
fn flushes(subject: &Subject, seed: u64) -> Result<Vec<Nanos>, String> {
    let cannot = |what: &str, errno| format!("cannot {what} {}: {errno}", subject.name());
    let file = create::reopen(subject.fd(), How::WRITES).map_err(|e| cannot("open", e))?;
    let mut page = vec![0; page_bytes()];
    let mut flushes = Vec::with_capacity(FLUSHES);
    for number in 0..FLUSHES as u64 {
        fill(seed.wrapping_add(number), 0, &mut page);
        let begin_ns = clock::monotonic_ns();
        pwrite(file.as_fd(), &page, 0).map_err(|e| cannot("write to", e))?;
        fdatasync(file.as_fd()).map_err(|e| cannot("sync", e))?;
        flushes.push(Nanos(clock::monotonic_ns() - begin_ns));
    }
    Ok(flushes)
}

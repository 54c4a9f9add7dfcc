//! The file of a trial that writes.
//!
//! Each arm has a region of the file to itself, another one in each pass, so that the
//! state in which its slice begins is its own: blocks that are there are clean, and in
//! the page cache for who writes through it and out of it for who writes around it.
//! Direct writes drop cached pages of what they write: done to pages that others had
//! cached, that would be part of their time, and the others would find them gone. What
//! a slice leaves dirty is brought to the device before the next one begins.

use std::sync::atomic::{AtomicU64, Ordering};

use iolens_model::file::{Destination, FileCounts, WriteSetting};
use iolens_model::trial::{Trial, TrialFile, TrialRegions};
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::cache::{self, Advice, Cached};
use iolens_sys::file::create::{self, How};
use iolens_sys::pages::page_bytes;

use super::engine::Entry;
use super::lane::LaneSetup;
use crate::arm::{Before, Ground, OWN_FILE, whole_blocks};
use crate::failure::{of_writing, said_of_writing};
use crate::file_path::FilePath;
use crate::part::Part;
use crate::residency::{is_stacked, persistently};
use crate::subject::Subject;
use iolens_harness::op::Sender;

/// The file of a trial that writes.
#[derive(Debug)]
pub(crate) struct Destined {
    file: TrialFile,
    regions: TrialRegions,
    setting: WriteSetting,
    /// Opened for reading and writing; nothing is written through it.
    subject: Subject,
    /// How far the regions are shifted against the arms.
    shift: usize,
    /// Where the blocks of the last slice end.
    reached: AtomicU64,
}

impl Destined {
    /// Opens it.
    ///
    /// Errors: what was tried and what the system said.
    pub(crate) fn open(
        file: &TrialFile,
        setting: WriteSetting,
        pass: u32,
    ) -> Result<Destined, String> {
        let path = FilePath::from_bytes(file.path.clone()).path();
        let name = OWN_FILE.to_owned();
        let regions = file.regions.ok_or("the trial names no regions to write to")?;
        let found = Subject::open(&path)?;
        let opened = create::reopen(found.fd(), How::WRITES)
            .map_err(|errno| format!("cannot open {name} for writing: {errno}"))?;
        let subject = Subject::of(opened, name)?;
        let (file, reached, shift) = (file.clone(), AtomicU64::new(0), pass as usize);
        Ok(Destined { file, regions, setting, subject, shift, reached })
    }

    /// The engine of an arm.
    fn entry(trial: &Trial, arm: usize) -> Result<&'static Entry, String> {
        let id = &trial.arms[arm].primitive;
        crate::engines::that_writes(id)
            .ok_or_else(|| format!("this build has no engine `{id}` that writes"))
    }

    /// Where the region of an arm begins.
    fn start(&self, arm: usize) -> u64 {
        match self.setting.destination {
            Destination::New => 0,
            Destination::Existing => {
                let region = (arm + self.shift) % (self.regions.count.max(1) as usize);
                region as u64 * self.regions.bytes
            }
        }
    }

    fn cannot(&self, what: &'static str) -> impl Fn(Errno) -> String {
        move |errno| format!("cannot {what} {}", self.said(errno))
    }

    /// The file, and what the system said of writing to it.
    fn said(&self, errno: Errno) -> String {
        let said = said_of_writing(errno, self.subject.file_system());
        format!("{}: {said}", self.subject.name())
    }

    /// What of a region is in the page cache; `None` where the kernel does not say.
    fn cached(&self, start: u64) -> Option<Cached> {
        if is_stacked(self.subject.file_system()) {
            return None;
        }
        cache::cached(self.subject.fd(), start, self.regions.bytes).ok()
    }

    /// Empties the file.
    fn empty(&self, entry: &Entry) -> Result<(), String> {
        let fd = self.subject.fd();
        create::truncate(fd, 0).map_err(self.cannot("empty"))?;
        if entry.own.needs_size {
            let size = create::truncate(fd, self.regions.bytes);
            size.map_err(self.cannot("give its size to"))?;
        }
        file::fdatasync(fd).map_err(self.cannot("sync"))
    }

    /// Brings a region to the device, and into the page cache or out of it.
    fn clean(&self, entry: &Entry, start: u64) -> Result<(), String> {
        let (fd, bytes) = (self.subject.fd(), self.regions.bytes);
        file::fdatasync(fd).map_err(self.cannot("sync"))?;
        if entry.is_direct {
            let once = || {
                cache::advise(fd, start, bytes, Advice::DontNeed).map_err(self.cannot("evict"))?;
                Ok(self.cached(start).map_or(0, |left| left.pages))
            };
            return persistently(once, |&left| left == 0).map(drop);
        }
        let pages = bytes.div_ceil(page_bytes() as u64);
        match self.cached(start) {
            Some(cached) if cached.pages >= pages => Ok(()),
            _ => self.subject.read_range(start, start + bytes),
        }
    }
}

/// Pages that are not on the device, in bytes.
fn dirty_bytes(cached: &Cached) -> u64 {
    (cached.dirty + cached.writeback) * page_bytes() as u64
}

impl Ground for Destined {
    fn arm<'a>(
        &'a self,
        trial: &Trial,
        arm: usize,
        thread: usize,
    ) -> Result<Box<dyn Sender + 'a>, String> {
        let entry = Destined::entry(trial, arm)?;
        let within = whole_blocks(self.regions.bytes, &trial.cell, thread)?;
        let start = self.start(arm);
        let part = Part { start: start + within.start, end: start + within.end, ..within };
        let WriteSetting { destination, pattern, depth } = self.setting;
        // Threads in different orders; arms, and trials, with content of their own.
        let own = (arm as u64) << 32 | thread as u64;
        let pass = u64::from(trial.pass) << 48;
        entry.start_lane(LaneSetup {
            file: self.subject.fd(),
            how: entry.how(),
            part,
            pattern,
            seed: self.file.seed.wrapping_add(own).wrapping_add(pass),
            depth: if entry.has_depth { depth } else { 1 },
            destination,
            reached: &self.reached,
        })
    }

    fn before(&self, trial: &Trial, arm: usize) -> Result<Before, String> {
        let (entry, start) = (Destined::entry(trial, arm)?, self.start(arm));
        match self.setting.destination {
            Destination::New => self.empty(entry)?,
            Destination::Existing => self.clean(entry, start)?,
        }
        // Threads write to it from the gate on, and are read from behind the next.
        self.reached.store(0, Ordering::Relaxed);
        let found = self.cached(start);
        Ok(Before {
            resident_bytes: found.map(|cached| cached.pages * page_bytes() as u64),
            delivered_bytes: None,
            dirty_bytes: found.as_ref().map(dirty_bytes),
        })
    }

    fn explain(&self, _id: &str, errno: Errno) -> Option<String> {
        of_writing(errno, self.subject.file_system())?;
        Some(self.cannot("write to")(errno))
    }

    fn after(&self, trial: &Trial, arm: usize, before: &Before) -> FileCounts {
        let found = self.cached(self.start(arm));
        let needs_size = Destined::entry(trial, arm).is_ok_and(|entry| entry.own.needs_size);
        let expected = match self.setting.destination {
            Destination::Existing => self.subject.bytes(),
            Destination::New if needs_size => self.regions.bytes,
            Destination::New => self.reached.load(Ordering::Relaxed),
        };
        let now = self.subject.about_now().ok();
        FileCounts {
            resident_before_bytes: before.resident_bytes,
            resident_after_bytes: found.map(|cached| cached.pages * page_bytes() as u64),
            dirty_before_bytes: before.dirty_bytes,
            dirty_after_bytes: found.as_ref().map(dirty_bytes),
            size_error_bytes: now.map(|about| about.bytes.abs_diff(expected)),
            ..FileCounts::default()
        }
    }
}

#[cfg(test)]
mod tests;

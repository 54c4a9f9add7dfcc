//! The file of a trial in its worker; and an engine that reads, as an arm: what a
//! worker drives slice by slice, as it drives what sends, and what is done to the file
//! around each slice, outside its clock.

use std::sync::atomic::{AtomicBool, Ordering};

use iolens_model::cell::Cell;
use iolens_model::file::{CacheState, DropMode, FileCounts, FileSetting};
use iolens_model::trial::{Trial, TrialFile};
use iolens_sys::errno::Errno;
use iolens_sys::pages::page_bytes;

use super::drop_caches;
use super::engines;
use super::file_path::FilePath;
use super::part::{Part, stir};
use super::read::by_hand::{broke_off, delivered_bytes};
use super::read::drive::{Reader, Setup};
use super::residency::{self, Residency};
use super::subject::Subject;
use iolens_harness::op::{Budget, Fact, Sender, Span, Tally};

/// The file of a trial as its worker has it: what arms are made from, and what is done
/// to it around each slice, outside of its clock.
pub trait Ground: Sync {
    /// A thread's end of an arm.
    ///
    /// Errors: why its engine cannot do this with this file in blocks of this size.
    fn arm<'a>(
        &'a self,
        trial: &Trial,
        arm: usize,
        thread: usize,
    ) -> Result<Box<dyn Sender + 'a>, String>;

    /// Brings the file to the state that a slice of an arm begins in, and looks.
    ///
    /// Errors: what the system refused.
    fn before(&self, trial: &Trial, arm: usize) -> Result<Before, String>;

    /// The file, where it is only read.
    fn read(&self) -> Option<&ReadGround> {
        None
    }

    /// Why a slice with the engine of this id broke off; `None` where the number says all.
    fn explain(&self, _id: &str, _errno: Errno) -> Option<String> {
        None
    }

    /// Looks again after the slice.
    fn after(&self, trial: &Trial, arm: usize, before: &Before) -> FileCounts;
}

/// What messages call a file of the run's: it has no name but that of the runner's
/// descriptor, which tells nobody anything.
pub(crate) const OWN_FILE: &str = "the run's own file";

/// One thread's reading with an engine.
struct Arm<'a>(Box<dyn Reader + 'a>);

impl Sender for Arm<'_> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        self.0.run(budget)
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        self.0.idle()
    }

    fn tally(&self) -> Tally {
        let tally = self.0.tally();
        let file = FileCounts {
            short_reads: tally.short_reads,
            would_block: tally.would_block,
            ..FileCounts::default()
        };
        Tally {
            messages: tally.blocks,
            bytes: tally.bytes,
            calls: tally.calls,
            zerocopy: None,
            children: None,
            file: Some(file),
        }
    }

    fn facts(&self) -> Vec<Fact> {
        self.0.facts()
    }
}

/// The file of a trial that reads, and what was done to it so far.
#[derive(Debug)]
pub struct ReadGround {
    file: TrialFile,
    subject: Subject,
    /// Whether it was read from end to end, where the kernel does not say what of it
    /// is in the page cache.
    was_read: AtomicBool,
}

impl Ground for ReadGround {
    fn arm<'a>(
        &'a self,
        trial: &Trial,
        arm: usize,
        thread: usize,
    ) -> Result<Box<dyn Sender + 'a>, String> {
        Ok(Box::new(Arm(self.reader(trial, arm, thread)?)))
    }

    fn before(&self, trial: &Trial, _arm: usize) -> Result<Before, String> {
        let cache = trial.cell.cache().unwrap_or(CacheState::Warm);
        let residency = match cache {
            CacheState::Warm => self.warm()?,
            CacheState::Cold => residency::evict(&self.subject)?,
            CacheState::Dropped => {
                residency::sync(&self.subject)
                    .map_err(|errno| format!("cannot sync {}: {errno}", self.subject.name()))?;
                drop_caches::drop_caches(DropMode::Both)?;
                self.residency()
            }
        };
        Ok(Before {
            resident_bytes: resident_bytes(&residency),
            delivered_bytes: delivered_bytes(),
            dirty_bytes: None,
        })
    }

    fn read(&self) -> Option<&ReadGround> {
        Some(self)
    }

    fn explain(&self, id: &str, errno: Errno) -> Option<String> {
        Some(format!("`{id}`: {}", broke_off(&self.subject, errno)))
    }

    fn after(&self, _trial: &Trial, _arm: usize, before: &Before) -> FileCounts {
        let delivered = before.delivered_bytes.zip(delivered_bytes());
        FileCounts {
            resident_before_bytes: before.resident_bytes,
            resident_after_bytes: resident_bytes(&self.residency()),
            device_bytes: delivered.map(|(before, after)| after.saturating_sub(before)),
            ..FileCounts::default()
        }
    }
}

impl ReadGround {
    /// Where it is, as bytes.
    pub fn path(&self) -> &[u8] {
        &self.file.path
    }

    /// The file.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Opens it.
    ///
    /// Errors: as [`Subject::open`].
    pub fn open(file: &TrialFile) -> Result<ReadGround, String> {
        let path = FilePath::from_bytes(file.path.clone()).path();
        let subject = Subject::open(&path)?;
        let subject = match path.starts_with("/proc") {
            true => subject.called(OWN_FILE),
            false => subject,
        };
        let subject = match file.bytes {
            Some(bytes) => subject.limited_to(bytes)?,
            None => subject,
        };
        Ok(ReadGround { file: file.clone(), subject, was_read: AtomicBool::new(false) })
    }

    /// A thread's reading of an arm, which begins at a random block of its part.
    fn reader<'a>(
        &'a self,
        trial: &Trial,
        arm: usize,
        thread: usize,
    ) -> Result<Box<dyn Reader + 'a>, String> {
        let (id, cell) = (&trial.arms[arm].primitive, &trial.cell);
        let entry =
            engines::that_reads(id).ok_or_else(|| format!("this build has no engine `{id}`"))?;
        let setting = cell.file().ok_or("the trial is of another study")?;
        let FileSetting { pattern, consumer, depth, .. } = setting;
        let part = whole_blocks(self.subject.bytes(), cell, thread)?;
        let depth = if entry.has_depth { depth } else { 1 };
        let seed = seed_of([trial.pass, trial.position], arm, thread, self.file.seed);
        let first = seed % part.blocks().max(1);
        let consumer = consumer.into();
        entry.start(Setup { subject: &self.subject, part, pattern, first, seed, depth, consumer })
    }

    fn residency(&self) -> Residency {
        Residency::of(&self.subject, 0, self.subject.bytes())
    }

    /// Reads the file if not all of it is in the page cache; once where the kernel
    /// does not say.
    fn warm(&self) -> Result<Residency, String> {
        let found = self.residency();
        let is_warm = match &found {
            Residency::Known { cached, pages } => cached >= pages,
            // Threads ask one after the other; no other memory hangs on it.
            Residency::Unknown(_) => self.was_read.load(Ordering::Relaxed),
        };
        if is_warm {
            return Ok(found);
        }
        self.subject.read_through()?;
        self.was_read.store(true, Ordering::Relaxed);
        Ok(self.residency())
    }
}

/// What the order follows from in which a thread's end of an arm reads in a trial, by pass and
/// position. Each begins at a place of its own: of arms that go through a file together one
/// would find in the processor's cache what another has just read.
fn seed_of([pass, position]: [u32; 2], arm: usize, thread: usize, seed: u64) -> u64 {
    let of_trial = u64::from(pass) << 32 | u64::from(position);
    let of_arm = (arm as u64) << 32 | thread as u64;
    stir(stir(seed.wrapping_add(of_trial)).wrapping_add(of_arm))
}

/// What was found before a slice.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    /// Bytes in the page cache; `None` where the kernel does not say, here and below.
    pub resident_bytes: Option<u64>,
    /// What storage had delivered to this process.
    pub delivered_bytes: Option<u64>,
    /// Of a file that is written, bytes that were not on the device.
    pub dirty_bytes: Option<u64>,
}

/// A thread's part of the whole blocks of so many bytes, so that one is as long as
/// another.
///
/// Errors: they are fewer than the threads.
pub(crate) fn whole_blocks(bytes: u64, cell: &Cell, thread: usize) -> Result<Part, String> {
    let whole = bytes / cell.size.0 * cell.size.0;
    let parts = Part::split(whole, cell.size.0, cell.threads);
    parts.get(thread).copied().ok_or_else(|| {
        let (blocks, threads) = (whole / cell.size.0, cell.threads_in_words());
        format!("the file has {blocks} whole blocks of {} for {threads}", cell.size)
    })
}

fn resident_bytes(residency: &Residency) -> Option<u64> {
    match residency {
        Residency::Known { cached, .. } => Some(cached * page_bytes() as u64),
        Residency::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iolens_model::cell::Setting;
    use iolens_model::file::{Consumer, Pattern};
    use iolens_model::units::{Bytes, Nanos};

    use super::*;
    use crate::checksum::Checksum;
    use crate::part::{Random, Sequential, Walk};
    use crate::small;

    const PART: Part = Part { block_bytes: 4096, start: 0, end: 256 << 20 };

    /// The blocks of an arm's first slice in a trial.
    fn first_slice(pass: u32, arm: usize, is_random: bool) -> BTreeSet<u64> {
        const BLOCKS: usize = 2000;
        let seed = seed_of([pass, 0], arm, 0, 1);
        let (mut sequential, mut random) =
            (Sequential::at(PART, seed % PART.blocks()), Random::of(PART, seed));
        let walk: &mut dyn Walk = if is_random { &mut random } else { &mut sequential };
        (0..BLOCKS).map(|_| walk.next().offset).collect()
    }

    /// In a round one arm would read what another has left in the processor's cache: two slices
    /// of 2000 blocks of 65536 that begin anywhere share 3 % of them.
    #[test]
    fn arms_of_a_round_do_not_read_the_same_blocks() {
        for is_random in [false, true] {
            let share = |pass| {
                let (one, other) =
                    (first_slice(pass, 0, is_random), first_slice(pass, 1, is_random));
                one.intersection(&other).count() as f64 / one.len() as f64
            };
            let mean = (1..=200).map(share).sum::<f64>() / 200.0;
            println!("random {is_random}: an arm finds {:.1}% of another's blocks", mean * 100.0);
            assert!(mean < 0.06, "{mean}");
        }
    }

    /// With the real engines and a real file, whose blocks are known by their checksums.
    #[test]
    fn each_arm_reads_from_its_own_place_first() {
        const BLOCK: usize = 4096;
        const BLOCKS: usize = 256;
        const ARMS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> =
            (0..BLOCKS * BLOCK).map(|at| iolens_sys::ring::content(at / BLOCK, at)).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = TrialFile {
            path: path.to_str().unwrap().as_bytes().to_vec(),
            bytes: Some(bytes.len() as u64),
            seed: 1,
            regions: None,
        };
        let ground = ReadGround::open(&file).unwrap();
        let checksum = |block: usize| {
            let mut sum = Checksum::new();
            sum.take((block * BLOCK) as u64, &bytes[block * BLOCK..(block + 1) * BLOCK]);
            sum.value(bytes.len() as u64)
        };
        let sums: Vec<u64> = (0..BLOCKS).map(checksum).collect();
        let mut trial = small::trial("read", Nanos::SECOND);
        trial.cell.size = Bytes(BLOCK as u64);
        trial.cell.setting = Setting::File(FileSetting {
            cache: CacheState::Warm,
            pattern: Pattern::Sequential,
            consumer: Consumer::Hash,
            depth: FileSetting::DEPTH,
        });
        trial.arms = vec![trial.arms[0].clone(); ARMS];
        for entry in engines::READING.iter().filter(|e| e.try_on(&ground.subject).is_ok()) {
            trial.arms.iter_mut().for_each(|arm| arm.primitive = entry.id.into());
            let begins = |arm| {
                let mut reader = ground.reader(&trial, arm, 0).unwrap();
                reader.run(&Budget::messages(1, 1)).unwrap();
                let sum = reader.digest().checksum.unwrap().value(bytes.len() as u64);
                sums.iter().position(|&of_block| of_block == sum)
            };
            let found: Vec<Option<usize>> = (0..ARMS).map(begins).collect();
            let drawn = (0..ARMS).map(|arm| {
                let seed = seed_of([trial.pass, trial.position], arm, 0, file.seed);
                usize::try_from(seed % BLOCKS as u64).ok()
            });
            assert_eq!(found, drawn.collect::<Vec<_>>(), "{}", entry.id);
        }
    }

    #[test]
    fn each_arm_of_each_trial_begins_somewhere_else() {
        let begins = |pass, arm| seed_of([pass, 0], arm, 0, 1) % PART.blocks();
        let all: BTreeSet<u64> =
            (1..=10).flat_map(|pass| (0..8).map(move |arm| begins(pass, arm))).collect();
        assert_eq!(all.len(), 80);
    }
}

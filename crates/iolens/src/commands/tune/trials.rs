//! The trials of a search: each by a worker process of its own, written into the record as it
//! ends.

use iolens_engine::clock;
use iolens_engine::worker::protocol::BUILD;
use iolens_file::copy::by_hand as copying;
use iolens_file::engines::that_copies;
use iolens_file::job::{Done, FilePath, Job, Trouble};
use iolens_file::part::Pattern;
use iolens_file::read::by_hand as reading;
use iolens_file::read::consume::Consumer;
use iolens_file::residency::{REMAINDER_MAX, Residency};
use iolens_file::tune::{LimitFound, LimitWish, facts, program};
use iolens_model::tune::{
    CacheWish, Configuration, Extent, Pruned, Record, SCHEMA, Stage, Stop, Task, Trial, Way,
    Wishes, Work,
};
use iolens_model::units::{Bytes, Nanos};
use iolens_report::tune::{baseline, facts_text};
use iolens_stats::tune::{Field, Visit};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::Asked;
use crate::commands::file::{ANOTHER_ANSWER, Workers, answer};
use crate::failure::Failure;
use crate::output;

/// A search under way, and what it has written down.
pub(super) struct Trials<'a> {
    pub(super) asked: &'a Asked<'a>,
    workers: Workers,
    rng: Pcg64Mcg,
    begun_ns: u64,
    pub(super) free_bytes: Option<u64>,
    pub(super) record: Record,
}

impl<'a> Trials<'a> {
    /// Finds out what there is. A result that is checked again says what becomes of the bytes.
    pub(super) fn begin(asked: &'a Asked<'a>, then: Option<&Record>) -> Result<Self, Failure> {
        let workers = Workers::ready()?;
        let (began_ns, begun_ns, how) = (clock::unix_ns(), clock::monotonic_ns(), asked.how);
        let wish = facts::Wish {
            source: asked.source.clone(),
            folder: asked.folder.clone(),
            consumer: asked.consumer,
            is_cold: how.cache == CacheWish::Cold,
        };
        let done = job(&workers, &Job::Facts(wish))?.map_err(Failure::unusable)?;
        let facts::Done { facts, candidates, pruned, free_bytes } = *answer!(Facts, done)?;
        output::note(&facts_text(&facts, &pruned, candidates.len()));
        let wishes = Wishes {
            task: asked.task,
            cache: how.cache,
            consumer: then.map_or(asked.consumer, |then| then.wishes.consumer),
            threads_max: how.threads.unwrap_or(facts.cpus).max(1),
            budget: how.budget,
            seed: how.seed,
            bytes_max: asked.bytes_max,
        };
        let record = Record {
            schema: SCHEMA,
            build: BUILD.to_owned(),
            began_ns,
            wishes,
            facts,
            candidates,
            pruned,
            programs: Vec::new(),
            trials: Vec::new(),
            device_bytes_per_s: None,
            stop: Stop::Budget,
            proof: None,
            cure: None,
            duration: Nanos(0),
            stolen: None,
            was_throttled: false,
            notes: Vec::new(),
        };
        let rng = Pcg64Mcg::seed_from_u64(how.seed);
        Ok(Trials { asked, workers, rng, begun_ns, free_bytes, record })
    }

    pub(super) fn note(&mut self, note: String) {
        self.record.notes.push(note);
    }

    /// A program that is compared, by its name.
    pub(super) fn add_program(&mut self, name: &str, arguments: Vec<String>) -> Work {
        self.record.programs.push((name.to_owned(), arguments));
        Work::Program(name.to_owned())
    }

    pub(super) fn prune(&mut self, what: &str, why: String) {
        self.record.pruned.push(Pruned { what: what.to_owned(), why });
    }

    /// The simplest engine that goes this way.
    pub(super) fn by_way(&self, way: Way) -> Option<&str> {
        let mut candidates = self.record.candidates.iter();
        candidates.find(|candidate| candidate.way == way).map(|found| found.engine.as_str())
    }

    fn goes(&self, one: &Configuration, way: Way) -> bool {
        let mut candidates = self.record.candidates.iter();
        candidates.any(|found| found.engine == one.engine && found.way == way)
    }

    /// Trials that went this way and came to their end, and ns for each byte.
    pub(super) fn ns_per_byte(&self, way: Way) -> impl Iterator<Item = (&Configuration, f64)> {
        self.record.trials.iter().filter_map(move |trial| {
            let one = trial.work.configuration().filter(|one| self.goes(one, way))?;
            Some((one, trial.time_ns? as f64 / trial.extent.bytes.max(1) as f64))
        })
    }

    /// What the final was about.
    pub(super) fn final_extent(&self) -> Option<Extent> {
        let mut latest = self.record.trials.iter().rev();
        latest.find(|trial| trial.stage == Stage::Final).map(|trial| trial.extent)
    }

    /// Completes what a reader of the record is told: programs as they ran at last, and what the
    /// device gave once it can give, in any direct reading.
    pub(super) fn complete(&mut self) {
        self.record.duration = self.elapsed();
        let fastest = self.ns_per_byte(Way::Direct).map(|(_, ns)| 1e9 / ns).fold(0.0, f64::max);
        let record = &mut self.record;
        record.device_bytes_per_s = record.device_bytes_per_s.map(|most| most.max(fastest));
        let bytes = record.trials.last().map_or(record.facts.file_bytes, |last| last.extent.bytes);
        let source = self.asked.source.path().display().to_string();
        for (_, arguments) in &mut record.programs {
            let words = counted(arguments, bytes, record.facts.file_bytes).into_iter();
            let filled = words.map(|word| word.replace(program::SOURCE, &source));
            *arguments = filled.map(|word| word.replace(program::DESTINATION, "COPY")).collect();
        }
    }

    /// Has a worker do a job; why it has no result, where it has none.
    ///
    /// Errors: the user wanted everything to end.
    pub(super) fn job(&self, of: &Job) -> Result<Result<Done, String>, Failure> {
        job(&self.workers, of)
    }

    /// A reading that must come to its end.
    pub(super) fn read(
        &self,
        one: &Configuration,
        extent: Extent,
        consumer: Consumer,
    ) -> Result<Box<reading::Done>, Failure> {
        let wish = self.reading(one, extent, consumer);
        answer!(Read, self.job(&Job::Read(wish))?.map_err(Failure::unusable)?)
    }

    fn reading(&self, one: &Configuration, extent: Extent, consumer: Consumer) -> reading::Wish {
        reading::Wish {
            path: self.asked.source.clone(),
            engine: one.engine.clone(),
            block_bytes: one.block_bytes,
            extent: Some(extent),
            count: None,
            loops: 1,
            threads: one.threads,
            depth: one.depth,
            pattern: Pattern::Sequential,
            seed: self.asked.how.seed,
            consumer,
            evict: self.is_cold(),
        }
    }

    pub(super) fn is_cold(&self) -> bool {
        self.record.wishes.cache == CacheWish::Cold
    }

    /// A copying, of which nothing stays.
    pub(super) fn copying(
        &self,
        one: &Configuration,
        extent: Extent,
        verify: bool,
    ) -> Result<copying::Wish, Failure> {
        let folder = self.asked.folder.as_ref().map(FilePath::path);
        let folder = folder.ok_or_else(|| Failure::unusable("there is no folder for copies"))?;
        let name = format!("iolens-tune-{}", std::process::id());
        Ok(copying::Wish {
            source: self.asked.source.clone(),
            destination: FilePath::new(&folder.join(name)),
            engine: one.engine.clone(),
            block_bytes: one.block_bytes,
            threads: one.threads,
            overwrite: false,
            verify,
            fsync: false,
            bytes_max: Some(extent.bytes),
            keep: false,
        })
    }

    fn job_of(&self, work: &Work, extent: Extent) -> Result<Job, Failure> {
        Ok(match work {
            Work::Engine(one) if self.asked.task == Task::Read => {
                Job::Read(self.reading(one, extent, self.record.wishes.consumer.into()))
            }
            Work::Engine(one) => Job::Copy(self.copying(one, extent, false)?),
            Work::Program(name) => Job::Program(self.program(name, extent)),
            Work::Limit { kind, threads } => {
                Job::Limit(LimitWish { kind: *kind, threads: *threads, bytes: extent.bytes })
            }
        })
    }

    /// Brings the source of a copy out of the page cache, if it is to be cold; why that
    /// failed.
    fn evict(&self) -> Result<Result<(), String>, Failure> {
        if !self.is_cold() {
            return Ok(Ok(()));
        }
        let nothing = Extent { offset: 0, bytes: 0 };
        let wish = self.reading(&baseline(Task::Read), nothing, Consumer::None);
        Ok(self.job(&Job::Read(wish))?.map(drop))
    }

    fn program(&self, name: &str, extent: Extent) -> program::Wish {
        let found = self.record.programs.iter().find(|(known, _)| known == name);
        let arguments = found.map_or(&[][..], |(_, arguments)| arguments);
        program::Wish {
            arguments: counted(arguments, extent.bytes, self.record.facts.file_bytes),
            source: self.asked.source.clone(),
            bytes: extent.bytes,
            folder: self.asked.folder.clone(),
            evict: self.is_cold(),
        }
    }

    /// Whether the cache was as it was to be. How blocks are shared is asked in a pilot, which
    /// takes the cache as it is.
    fn check_cache(&self, trial: &Trial) -> Result<(), String> {
        if matches!(trial.work, Work::Limit { .. }) || trial.stage == Stage::Pilot {
            return Ok(());
        }
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        match (self.record.wishes.cache, trial.resident_before_share) {
            (CacheWish::Cold, None) => {
                Err("whether the file was evicted is not known, so it is not called cold".into())
            }
            (CacheWish::Cold, Some(share)) if share > REMAINDER_MAX => {
                Err(format!("{} of it was still in the page cache", percent(share)))
            }
            (CacheWish::Warm, Some(share)) if share < 1.0 - REMAINDER_MAX => {
                Err(format!("only {} of it was in the page cache", percent(share)))
            }
            _ => Ok(()),
        }
    }
}

fn job(workers: &Workers, job: &Job) -> Result<Result<Done, String>, Failure> {
    match workers.job(job) {
        Ok(done) => Ok(Ok(done)),
        Err(Trouble::Failed(why)) => Ok(Err(why)),
        Err(Trouble::Interrupted) => {
            Err(Failure::interrupted("interrupted: nothing was left behind"))
        }
    }
}

/// What stands in an argument for the number of bytes.
pub(super) const BYTES: &str = "{bytes}";

/// What an argument begins with that is for less than the whole file.
const PARTIAL: [&str; 2] = ["count=", "iflag=count_bytes"];

/// Arguments for so many bytes of a file.
fn counted(arguments: &[String], bytes: u64, file_bytes: u64) -> Vec<String> {
    let is_needed =
        |one: &&String| bytes < file_bytes || !PARTIAL.iter().any(|part| one.starts_with(part));
    let fill = |one: &String| one.replace(BYTES, &bytes.to_string());
    arguments.iter().filter(is_needed).map(fill).collect()
}

/// What a worker measured of a trial, or why it counts for nothing.
fn measured(trial: &Trial, done: Done) -> Result<Trial, String> {
    let bytes = trial.extent.bytes;
    let all_came = |came: u64| match came == bytes {
        true => Ok(()),
        false => Err(format!("{came} of {bytes} bytes came")),
    };
    let timed = |time: Nanos, cpu: Option<(Nanos, Nanos)>, resident: Option<[&Residency; 2]>| {
        let [before, after] = resident.map_or([None; 2], |both| both.map(Residency::share));
        Trial {
            time_ns: Some(time.0),
            cpu_ns: cpu.map(|(user, system)| user.0 + system.0),
            resident_before_share: before,
            resident_after_share: after,
            ..trial.clone()
        }
    };
    match done {
        Done::Read(done) => {
            done.failure.map_or(Ok(()), Err)?;
            all_came(done.tally.bytes)?;
            let resident = [&done.resident_before, &done.resident_after];
            Ok(Trial {
                calls: Some(done.tally.calls),
                device_bytes: done.device_bytes,
                ..timed(done.time, done.cpu, Some(resident))
            })
        }
        Done::Copy(done) => {
            done.failure.map_or(Ok(()), Err)?;
            let engine = trial.work.configuration().and_then(|one| that_copies(&one.engine));
            if let Some(entry) = engine {
                entry.own.class.check_known(done.shared_bytes, &done.file_systems[1])?;
            }
            let shared = Bytes(done.shared_bytes.unwrap_or(0));
            // One that always shares is told apart, by its class.
            let is_clone = done.is_reflinked && done.moved.bytes == 0;
            if !is_clone && shared.0 > 0 {
                return Err(format!("it shared {shared} of blocks instead of copying them"));
            }
            all_came(if is_clone { bytes } else { done.moved.bytes })?;
            let resident = Some(done.source_resident.each_ref());
            Ok(Trial { calls: Some(done.moved.calls), ..timed(done.time, done.cpu, resident) })
        }
        Done::Limit(LimitFound { time, cpu }) => Ok(timed(time, cpu, None)),
        Done::Program(done) => {
            let resident = [&done.resident_before, &done.resident_after];
            Ok(timed(done.time, done.cpu, Some(resident)))
        }
        _ => Err(ANOTHER_ANSWER.to_owned()),
    }
}

impl Field for Trials<'_> {
    type Broken = Failure;

    fn visit(&mut self, visit: Visit<'_>) -> Result<Option<Nanos>, Failure> {
        let (trial, Visit { work, extent, .. }) = (visit.trial(), visit);
        let job = self.job_of(work, extent)?;
        let evicted = if matches!(job, Job::Copy(_)) { self.evict()? } else { Ok(()) };
        let done = match evicted {
            Ok(()) => self.job(&job)?,
            Err(why) => Err(why),
        };
        let measured = done.and_then(|done| measured(&trial, done));
        let measured = measured.and_then(|trial| self.check_cache(&trial).map(|()| trial));
        let trial = measured.unwrap_or_else(|why| Trial { failure: Some(why), ..trial });
        let time = trial.time_ns.map(Nanos);
        self.record.trials.push(trial);
        Ok(time)
    }

    fn shuffle(&mut self, arms: &mut [usize]) {
        arms.shuffle(&mut self.rng);
    }

    fn elapsed(&mut self) -> Nanos {
        Nanos(clock::monotonic_ns() - self.begun_ns)
    }

    fn begins(&mut self, stage: Stage, arms: usize, bytes: u64) {
        let what = match arms {
            1 => "1 configuration".to_owned(),
            n => format!("{n} configurations"),
        };
        let elapsed = self.elapsed();
        output::note(&format!("{elapsed}: {stage}: {what}, {} each", Bytes(bytes)));
    }
}

#[cfg(test)]
mod tests {
    use iolens_file::moved::Moved;

    use super::*;

    fn copied(file_system: &str, shared_bytes: Option<u64>) -> Done {
        let resident = Residency::Known { cached: 0, pages: 0 };
        Done::Copy(Box::new(copying::Done {
            file_systems: [file_system.to_owned(), file_system.to_owned()],
            source_bytes: 100,
            was_there: false,
            threads: 1,
            moved: Moved { bytes: 100, ..Moved::default() },
            shared_bytes,
            is_reflinked: false,
            time: Nanos(1),
            sync_time: None,
            checksum: None,
            source_resident: [resident.clone(), resident.clone()],
            destination_resident_before: None,
            destination_resident_after: resident,
            cpu: None,
            facts: Vec::new(),
            notes: Vec::new(),
            failure: None,
        }))
    }

    #[test]
    fn a_copy_that_may_be_shared_is_no_trial_where_nobody_tells() {
        let of = |engine: &str, file_system: &str, shared: Option<u64>| {
            let engine = engine.to_owned();
            let work = &Work::Engine(Configuration { engine, ..baseline(Task::Copy) });
            let extent = Extent { offset: 0, bytes: 100 };
            let trial = Visit { work, stage: Stage::Grid, round: 0, extent }.trial();
            measured(&trial, copied(file_system, shared)).map(|trial| trial.time_ns)
        };
        let why = of("copy_file_range", "zfs", None).unwrap_err();
        assert!(why.starts_with("cannot tell whether blocks were shared on zfs"), "{why}");
        assert_eq!(of("copy_file_range", "tmpfs", None), Ok(Some(1)));
        assert_eq!(of("copy_file_range", "ext4", Some(0)), Ok(Some(1)));
        assert!(of("copy_file_range", "btrfs", Some(7)).unwrap_err().contains("shared"));
        assert_eq!(of("read_write", "zfs", None), Ok(Some(1)));
    }
}

//! Where trials are done: each by a worker process of its own, written down as it
//! ends.

use iolens_engine::Interrupts;
use iolens_engine::clock;
use iolens_engine::files::copy::by_hand as copying;
use iolens_engine::files::job::{self, Done, FilePath, Job, Trouble};
use iolens_engine::files::leftover::Leftovers;
use iolens_engine::files::part::Pattern;
use iolens_engine::files::read::by_hand as reading;
use iolens_engine::files::read::consume::Consumer;
use iolens_engine::files::residency::{REMAINDER_MAX, Residency};
use iolens_engine::files::tune::{limit, program};
use iolens_engine::trial::Launch;
use iolens_model::tune::{
    CacheWish, Candidate, Configuration, Extent, Pruned, Record, Stage, Task, Trial, Way, Wishes,
    Work,
};
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::tune::{Field, Visit};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use crate::commands::file::{another_answer, launch};
use crate::failure::Failure;
use crate::output;

/// The file, and the folder of copies.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) source: FilePath,
    pub(super) folder: Option<FilePath>,
}

/// See the module.
pub(super) struct Ground {
    place: Place,
    launch: Launch,
    interrupts: Interrupts,
    rng: Pcg64Mcg,
    begun_ns: u64,
    task: Task,
    cache: CacheWish,
    consumer: Consumer,
    seed: u64,
    file_bytes: u64,
    candidates: Vec<Candidate>,
    pruned: Vec<Pruned>,
    programs: Vec<(String, Vec<String>)>,
    trials: Vec<Trial>,
    device_bytes_per_s: Option<f64>,
    notes: Vec<String>,
}

/// What a trial measured.
struct Measured {
    time: Nanos,
    cpu: Option<(Nanos, Nanos)>,
    calls: Option<u64>,
    resident: Option<[Residency; 2]>,
    device_bytes: Option<u64>,
}

impl Ground {
    pub(super) fn new(place: Place, interrupts: Interrupts, seed: u64) -> Result<Ground, Failure> {
        Ok(Ground {
            task: if place.folder.is_some() { Task::Copy } else { Task::Read },
            place,
            launch: launch()?,
            interrupts,
            rng: Pcg64Mcg::seed_from_u64(seed),
            begun_ns: clock::monotonic_ns(),
            cache: CacheWish::AsIs,
            consumer: Consumer::None,
            seed,
            file_bytes: 0,
            candidates: Vec::new(),
            pruned: Vec::new(),
            programs: Vec::new(),
            trials: Vec::new(),
            device_bytes_per_s: None,
            notes: Vec::new(),
        })
    }

    /// Takes what was found out.
    pub(super) fn know(
        &mut self,
        wishes: &Wishes,
        file_bytes: u64,
        candidates: Vec<Candidate>,
        pruned: Vec<Pruned>,
    ) {
        (self.cache, self.consumer) = (wishes.cache, wishes.consumer.into());
        (self.candidates, self.pruned, self.file_bytes) = (candidates, pruned, file_bytes);
    }

    /// Trials since the last ones were handed over.
    pub(super) fn take_trials(&mut self) -> Vec<Trial> {
        std::mem::take(&mut self.trials)
    }

    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// A program that is compared, by its name.
    pub(super) fn add_program(&mut self, name: &str, arguments: Vec<String>) -> Work {
        self.programs.push((name.to_owned(), arguments));
        Work::Program(name.to_owned())
    }

    pub(super) fn prune(&mut self, what: &str, why: String) {
        self.pruned.push(Pruned { what: what.to_owned(), why });
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(super) fn set_device(&mut self, bytes_per_s: Option<f64>) {
        self.device_bytes_per_s = bytes_per_s;
    }

    pub(super) fn duration(&self) -> Nanos {
        Nanos(clock::monotonic_ns() - self.begun_ns)
    }

    /// Hands over everything that was written down.
    pub(super) fn tell(&mut self, record: &mut Record) {
        let name = |path: &FilePath| path.path().display().to_string();
        let source = name(&self.place.source);
        let last = self.trials.iter().map(|trial| trial.extent.bytes).next_back();
        let bytes = last.unwrap_or(self.file_bytes);
        let fill = |arguments: &[String]| {
            let fill = |one: &String| one.replace(program::SOURCE, &source);
            let arguments = counted(arguments, bytes, self.file_bytes);
            arguments.iter().map(|one| fill(one).replace(program::DESTINATION, "COPY")).collect()
        };
        record.programs =
            self.programs.iter().map(|(name, args)| (name.clone(), fill(args))).collect();
        record.candidates = self.candidates.clone();
        record.pruned = std::mem::take(&mut self.pruned);
        record.device_bytes_per_s =
            self.device_bytes_per_s.map(|most| self.direct_rates().fold(most, f64::max));
        record.trials = std::mem::take(&mut self.trials);
        record.notes = std::mem::take(&mut self.notes);
    }

    /// Bytes per second of every direct reading: what the device gave once it can give.
    fn direct_rates(&self) -> impl Iterator<Item = f64> {
        let is_direct = |one: &Configuration| {
            let mut candidates = self.candidates.iter();
            candidates.any(|found| found.engine == one.engine && found.way == Way::Direct)
        };
        self.trials.iter().filter_map(move |trial| {
            trial.work.configuration().filter(|one| is_direct(one))?;
            Some(trial.extent.bytes as f64 * 1e9 / trial.time_ns? as f64)
        })
    }

    /// Has a worker do a job; why it has no result, where it has none.
    ///
    /// Errors: the user wanted everything to end.
    pub(super) fn job(&self, job: &Job) -> Result<Result<Done, String>, Failure> {
        let done = job::run(job, &self.launch, &self.interrupts, output::note);
        if done.is_err() {
            // A worker that was killed could not remove what it had made.
            output::notes(Leftovers::here().sweep());
        }
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(Trouble::Failed(why)) => Ok(Err(why)),
            Err(Trouble::Interrupted) => {
                Err(Failure::interrupted("interrupted: nothing was left behind"))
            }
        }
    }

    /// A reading.
    pub(super) fn reading(
        &self,
        one: &Configuration,
        extent: Extent,
        consumer: Consumer,
    ) -> reading::Wish {
        reading::Wish {
            path: self.place.source.clone(),
            engine: one.engine.clone(),
            block_bytes: one.block_bytes,
            extent: Some(extent),
            count: None,
            loops: 1,
            threads: one.threads,
            depth: one.depth,
            pattern: Pattern::Sequential,
            seed: self.seed,
            consumer,
            evict: self.cache == CacheWish::Cold,
        }
    }

    /// A copying, of which nothing stays.
    pub(super) fn copying(
        &self,
        one: &Configuration,
        extent: Extent,
        verify: bool,
    ) -> Result<copying::Wish, Failure> {
        let folder = self.place.folder.as_ref().map(FilePath::path);
        let folder = folder.ok_or_else(|| Failure::unusable("there is no folder for copies"))?;
        let name = format!("iolens-tune-{}", std::process::id());
        Ok(copying::Wish {
            source: self.place.source.clone(),
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

    /// Does a trial, and says why it counts for nothing where that is so.
    fn measure(&self, work: &Work, extent: Extent) -> Result<Result<Measured, String>, Failure> {
        let job = match work {
            Work::Engine(one) if self.task == Task::Read => {
                Job::Read(self.reading(one, extent, self.consumer))
            }
            Work::Engine(one) => {
                if let Some(why) = self.evict()? {
                    return Ok(Err(why));
                }
                Job::Copy(self.copying(one, extent, false)?)
            }
            Work::Program(name) => Job::Program(self.program(name, extent)),
            Work::Limit { kind, threads } => {
                Job::Limit(limit::Wish { kind: *kind, threads: *threads, bytes: extent.bytes })
            }
        };
        let done = match self.job(&job)? {
            Ok(done) => done,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match done {
            Done::Read(done) => read(&done, extent.bytes),
            Done::Copy(done) => copied(&done, extent.bytes),
            Done::Limit(limit::Done { time, cpu }) => {
                Ok(Measured { time, cpu, calls: None, resident: None, device_bytes: None })
            }
            Done::Program(program::Done { time, cpu, resident_before, resident_after, .. }) => {
                let resident = Some([resident_before, resident_after]);
                Ok(Measured { time, cpu, calls: None, resident, device_bytes: None })
            }
            _ => return Err(another_answer()),
        })
    }

    /// Brings the source of a copy out of the page cache, if it is to be cold; why that
    /// failed.
    fn evict(&self) -> Result<Option<String>, Failure> {
        if self.cache != CacheWish::Cold {
            return Ok(None);
        }
        let one =
            Configuration { engine: "read".to_owned(), block_bytes: 4096, threads: 1, depth: 1 };
        let nothing = Extent { offset: 0, bytes: 0 };
        let evicted = self.job(&Job::Read(self.reading(&one, nothing, Consumer::None)))?;
        Ok(evicted.err())
    }

    fn program(&self, name: &str, extent: Extent) -> program::Wish {
        let found = self.programs.iter().find(|(known, _)| known == name);
        let arguments = found.map_or_else(Vec::new, |(_, arguments)| arguments.clone());
        program::Wish {
            arguments: counted(&arguments, extent.bytes, self.file_bytes),
            source: self.place.source.clone(),
            bytes: extent.bytes,
            folder: self.place.folder.clone(),
            evict: self.cache == CacheWish::Cold,
        }
    }

    /// Whether the cache was as it was to be.
    fn check_cache(&self, resident: &[Residency; 2]) -> Result<(), String> {
        let before = resident[0].share();
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        match (self.cache, before) {
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

/// What stands in an argument for the number of bytes.
pub(super) const BYTES: &str = "{bytes}";

/// What an argument begins with that is for less than the whole file.
pub(super) const PARTIAL: [&str; 2] = ["count=", "iflag=count_bytes"];

/// Arguments for so many bytes of a file.
fn counted(arguments: &[String], bytes: u64, file_bytes: u64) -> Vec<String> {
    let is_needed =
        |one: &&String| bytes < file_bytes || !PARTIAL.iter().any(|part| one.starts_with(part));
    let fill = |one: &String| one.replace(BYTES, &bytes.to_string());
    arguments.iter().filter(is_needed).map(fill).collect()
}

fn read(done: &reading::Done, bytes: u64) -> Result<Measured, String> {
    if let Some(why) = &done.failure {
        return Err(why.clone());
    }
    if done.tally.bytes != bytes {
        return Err(format!("{} of {bytes} bytes came", done.tally.bytes));
    }
    Ok(Measured {
        time: done.time,
        cpu: done.cpu,
        calls: Some(done.tally.calls),
        resident: Some([done.resident_before.clone(), done.resident_after.clone()]),
        device_bytes: done.device_bytes,
    })
}

fn copied(done: &copying::Done, bytes: u64) -> Result<Measured, String> {
    if let Some(why) = &done.failure {
        return Err(why.clone());
    }
    let shared = done.shared_bytes.unwrap_or(0);
    match (done.is_reflinked, done.moved.bytes) {
        // One that always shares is told apart, by its class.
        (true, 0) => {}
        _ if shared > 0 => {
            return Err(format!("it shared {} of blocks instead of copying them", Bytes(shared)));
        }
        (_, moved) if moved != bytes => return Err(format!("{moved} of {bytes} bytes came")),
        _ => {}
    }
    Ok(Measured {
        time: done.time,
        cpu: done.cpu,
        calls: Some(done.moved.calls),
        resident: Some(done.source_resident.clone()),
        device_bytes: None,
    })
}

impl Field for Ground {
    type Broken = Failure;

    fn visit(&mut self, visit: Visit<'_>) -> Result<Option<Nanos>, Failure> {
        let Visit { work, stage, round, extent } = visit;
        let mut measured = self.measure(work, extent)?;
        if let Ok(Measured { resident: Some(resident), .. }) = &measured
            && stage != Stage::Pilot
            && let Err(why) = self.check_cache(resident)
        {
            measured = Err(why);
        }
        let (good, failure) = match measured {
            Ok(good) => (Some(good), None),
            Err(why) => (None, Some(why)),
        };
        let good = good.as_ref();
        let share = |at: usize| good?.resident.as_ref()?[at].share();
        let time = good.map(|good| good.time);
        self.trials.push(Trial {
            work: work.clone(),
            stage,
            round,
            extent,
            time_ns: time.map(|time| time.0),
            cpu_ns: good.and_then(|good| good.cpu).map(|(user, system)| user.0 + system.0),
            calls: good.and_then(|good| good.calls),
            resident_before_share: share(0),
            resident_after_share: share(1),
            device_bytes: good.and_then(|good| good.device_bytes),
            failure,
        });
        Ok(time)
    }

    fn shuffle(&mut self, arms: &mut [usize]) {
        arms.shuffle(&mut self.rng);
    }

    fn elapsed(&mut self) -> Nanos {
        self.duration()
    }

    fn begins(&mut self, stage: Stage, arms: usize, bytes: u64) {
        let what = match arms {
            1 => "1 configuration".to_owned(),
            n => format!("{n} configurations"),
        };
        let elapsed = self.duration();
        output::note(&format!("{elapsed}: {stage}: {what}, {} each", Bytes(bytes)));
    }
}

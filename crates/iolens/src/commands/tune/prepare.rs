//! What comes before a search and after it: the plan, the first readings, the device,
//! and the proof.

use iolens_engine::files::job::Job;
use iolens_engine::files::read::consume::Consumer;
use iolens_engine::files::tune::program;
use iolens_model::tune::{
    CacheWish, Configuration, Extent, LimitKind, Proof, Record, Stage, Task, Way, Work,
};
use iolens_model::units::Bytes;
use iolens_report::tune::baseline;
use iolens_stats::tune::{Axes, Field, Plan, Visit, whole};

use super::answer;
use super::ground::{BYTES, Ground};
use super::{Asked, Begun};
use crate::failure::{Failure, unusable};

/// Less than this of a file says little about the rest.
const BYTES_LEAST: u64 = 64 << 20;

/// Blocks of a grid.
const BLOCKS: (u64, u64) = (16 << 10, 8 << 20);

/// Share of the memory that a warm file or a copy may take, one in so many.
const MEMORY_PART: u64 = 4;

/// Free space that copies leave, one part in so many.
const FREE_PART: u64 = 10;

/// Share of the budget for a first reading of a cold file.
const FIRST_SHARE: f64 = 0.1;

/// What is searched, once the file is in the state that is asked for.
pub(super) fn plan(asked: &Asked<'_>, begun: &mut Begun) -> Result<Plan, Failure> {
    let bytes = usable(asked, begun)?;
    let bytes = first_reading(begun, bytes)?;
    let rivals = programs(asked, begun, bytes);
    let is_cold = begun.wishes.cache == CacheWish::Cold;
    if is_cold {
        device(begun, bytes)?;
    }
    sharing(begun, bytes)?;
    let limit = match begun.wishes.task {
        Task::Read => LimitKind::Scan,
        Task::Copy => LimitKind::Copy,
    };
    Ok(Plan {
        candidates: begun.ground.candidates().to_vec(),
        axes: Axes {
            block_least: BLOCKS.0,
            block_most: BLOCKS.1,
            threads_max: begun.wishes.threads_max,
            depths: if is_cold { vec![4, 32] } else { vec![4] },
            depth_max: 64,
        },
        baseline: baseline(begun.wishes.task),
        rivals,
        limit: (!is_cold).then_some(limit),
        bytes,
        bytes_least: BYTES_LEAST,
        budget: begun.wishes.budget,
    })
}

/// Bytes of the file that trials may take.
fn usable(asked: &Asked<'_>, begun: &mut Begun) -> Result<u64, Failure> {
    let facts = &begun.facts;
    let mut bytes = facts.file_bytes.min(asked.bytes_max.map_or(u64::MAX, |most| most.0));
    let memory = facts.memory_bytes.map_or(u64::MAX, |memory| memory / MEMORY_PART);
    let is_cold = begun.wishes.cache == CacheWish::Cold;
    if is_cold && facts.resident_share.is_none() {
        return Err(unusable!(
            "cannot call {} cold: the kernel does not tell what of it is in the page cache \
             (cachestat(2) tells who owns a file or may write to it)\n  take --cache as-is",
            facts.file
        ));
    }
    if begun.wishes.task == Task::Copy {
        let free = begun.free_bytes.map_or(u64::MAX, |free| free - free / FREE_PART);
        if free == 0 {
            return Err(Failure::unusable("there is no free space for copies"));
        }
        bytes = bytes.min(free);
    }
    if !is_cold || begun.wishes.task == Task::Copy {
        bytes = bytes.min(memory);
    }
    if bytes < facts.file_bytes {
        let (most, all) = (Bytes(bytes), Bytes(facts.file_bytes));
        begun.ground.note(format!("no more than {most} of {all} are taken: --max-bytes, free space or memory leave no more"));
    }
    Ok(bytes)
}

/// Reads what trials will read: a warm file is warm then, and of a cold one nobody
/// has the first reading of all, which the host may answer from elsewhere.
fn first_reading(begun: &mut Begun, bytes: u64) -> Result<u64, Failure> {
    let one = Configuration { block_bytes: 1 << 20, ..baseline(Task::Read) };
    let is_there = begun.facts.resident_share.is_some_and(|share| share > 0.999);
    let cold = begun.wishes.cache == CacheWish::Cold;
    if is_there && !cold {
        return Ok(bytes);
    }
    let read = |begun: &Begun, extent| {
        let wish = begun.ground.reading(&one, extent, Consumer::None);
        answer!(Read, begun.ground.job(&Job::Read(wish))?.map_err(Failure::unusable)?)
    };
    let least = BYTES_LEAST.min(bytes);
    let first = read(begun, Extent { offset: 0, bytes: least })?;
    let per_byte_ns = first.time.0 as f64 / least.max(1) as f64;
    let time_ns = begun.wishes.budget.0 as f64 * FIRST_SHARE;
    let most = match cold {
        // Of a file that takes longer only a part is used.
        true => whole(time_ns / per_byte_ns).clamp(least, bytes),
        false => bytes,
    };
    if most > least {
        read(begun, Extent { offset: least, bytes: most - least })?;
    }
    let rate = Bytes(whole(1e9 / per_byte_ns));
    begun.ground.note(format!(
        "the first reading of {} ran at {rate}/s and is compared with nothing",
        Bytes(least)
    ));
    Ok(most)
}

/// dd and cp, as far as there are such.
fn programs(asked: &Asked<'_>, begun: &mut Begun, bytes: u64) -> Vec<Work> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let mut all = Vec::new();
    let counted = format!("count={BYTES} iflag=count_bytes");
    let to = if asked.folder.is_some() { "{dst}" } else { "/dev/null" };
    let mut dd = words("dd if={src} bs=128K");
    dd.insert(2, format!("of={to}"));
    dd.extend(words(&counted));
    for (name, arguments) in [("dd", Some(dd)), ("cp", cp(asked, begun, bytes))] {
        let Some(arguments) = arguments else { continue };
        match program::start_up(name) {
            Ok(time) => {
                if name == "cp" {
                    begun.ground.note(format!(
                        "cp is timed as a whole process; one that does nothing takes {time}"
                    ));
                }
                all.push(begun.ground.add_program(name, arguments));
            }
            Err(why) => begun.ground.prune(name, why),
        }
    }
    all
}

/// cp's arguments, where a copy is what is wanted, and of the whole file.
fn cp(asked: &Asked<'_>, begun: &mut Begun, bytes: u64) -> Option<Vec<String>> {
    asked.folder.as_ref()?;
    if bytes < begun.facts.file_bytes {
        begun.ground.prune("cp", "it copies whole files only".to_owned());
        return None;
    }
    let shares = begun.ground.candidates().iter().any(|candidate| candidate.way == Way::Shared);
    let line = if shares { "cp --reflink=never {src} {dst}" } else { "cp {src} {dst}" };
    Some(line.split(' ').map(str::to_owned).collect())
}

/// Rounds of a sharing of blocks.
const SHARINGS: u32 = 3;

/// Sharing blocks moves no byte: it is timed apart.
fn sharing(begun: &mut Begun, bytes: u64) -> Result<(), Failure> {
    let mut candidates = begun.ground.candidates().iter();
    let Some(sharing) = candidates.find(|candidate| candidate.way == Way::Shared) else {
        return Ok(());
    };
    let engine = sharing.engine.clone();
    let work = Work::Engine(Configuration { engine, ..baseline(Task::Copy) });
    for round in 0..SHARINGS {
        let extent = Extent { offset: 0, bytes };
        begun.ground.visit(Visit { work: &work, stage: Stage::Pilot, round, extent })?;
    }
    Ok(())
}

/// The most that direct reads get from the device: more under way at once until that
/// brings no more.
fn device(begun: &mut Begun, bytes: u64) -> Result<(), Failure> {
    const GAIN_MIN: f64 = 1.03;
    const MOST: u64 = 256 << 20;
    let engine = "uring_direct".to_owned();
    let is_there = begun.wishes.task == Task::Read
        && begun.ground.candidates().iter().any(|c| c.engine == engine);
    if !is_there {
        return Ok(());
    }
    let extent = Extent { offset: 0, bytes: bytes.min(MOST) };
    let mut most = 0.0_f64;
    begun.ground.begins(Stage::Limits, 1, extent.bytes);
    for (round, depth) in (0..).zip([1, 2, 4, 8, 16, 32, 64]) {
        let one = Configuration { engine: engine.clone(), block_bytes: 1 << 20, threads: 1, depth };
        let work = Work::Engine(one);
        let visit = Visit { work: &work, stage: Stage::Limits, round, extent };
        let Some(time) = begun.ground.visit(visit)? else { break };
        let rate = extent.bytes as f64 / time.as_seconds();
        let is_more = rate > most * GAIN_MIN;
        most = most.max(rate);
        if !is_more {
            break;
        }
    }
    begun.ground.set_device((most > 0.0).then_some(most));
    Ok(())
}

/// Has the winner bring the bytes once more, and compares them with those of a plain
/// reading.
pub(super) fn proof(
    ground: &mut Ground,
    record: &Record,
    winner: &Configuration,
) -> Result<Option<Proof>, Failure> {
    let finals = record.trials.iter().filter(|trial| trial.stage == Stage::Final);
    let Some(extent) = finals.map(|trial| trial.extent).next_back() else { return Ok(None) };
    let hash = |ground: &Ground, one: &Configuration| {
        let wish = ground.reading(one, extent, Consumer::Hash);
        answer!(Read, ground.job(&Job::Read(wish))?.map_err(Failure::unusable)?)
            .map(|done| done.checksum)
    };
    let winners = match record.wishes.task {
        Task::Read => hash(ground, winner)?,
        Task::Copy => {
            let wish = ground.copying(winner, extent, true)?;
            answer!(Copy, ground.job(&Job::Copy(wish))?.map_err(Failure::unusable)?)?.checksum
        }
    };
    let plain = Configuration { block_bytes: 1 << 20, ..baseline(Task::Read) };
    let plain = hash(ground, &plain)?;
    let hex = |sum: u64| format!("{sum:016x}");
    Ok(winners.zip(plain).map(|(winner, plain)| Proof {
        winner: hex(winner),
        plain: hex(plain),
        bytes: extent.bytes,
    }))
}

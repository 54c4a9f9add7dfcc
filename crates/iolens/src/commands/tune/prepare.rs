//! What comes before a search and after it: the plan, the first readings, the device, the cure
//! for small folios, and the proof.

use iolens_file::job::Job;
use iolens_file::read::consume::Consumer;
use iolens_file::tune::program;
use iolens_file::tune::{CureWish, Cured};
use iolens_model::file::Consumer as Wanted;
use iolens_model::tune::{
    Configuration, Cure, Extent, FOLIOS_SMALL, LimitKind, Proof, Stage, Task, Way, Work,
};
use iolens_model::units::Bytes;
use iolens_report::tune::baseline;
use iolens_stats::tune::{Axes, Field, Plan, Visit, whole};

use super::trials::{BYTES, Trials};
use crate::commands::file::answer;
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
pub(super) fn plan(trials: &mut Trials<'_>) -> Result<Plan, Failure> {
    let bytes = usable(trials)?;
    let bytes = first_reading(trials, bytes)?;
    let rivals = programs(trials, bytes);
    let is_cold = trials.is_cold();
    if is_cold {
        device(trials, bytes)?;
    }
    sharing(trials, bytes)?;
    let limit = match trials.record.wishes.task {
        Task::Read => LimitKind::Scan,
        Task::Copy => LimitKind::Copy,
    };
    Ok(Plan {
        candidates: trials.record.candidates.clone(),
        axes: Axes {
            block_least: BLOCKS.0,
            block_most: BLOCKS.1,
            threads_max: trials.record.wishes.threads_max,
            depths: if is_cold { vec![4, 32] } else { vec![4] },
            depth_max: 64,
        },
        baseline: baseline(trials.record.wishes.task),
        rivals,
        limit: (!is_cold).then_some(limit),
        bytes,
        bytes_least: BYTES_LEAST,
        budget: trials.record.wishes.budget,
    })
}

/// Bytes of the file that trials may take.
fn usable(trials: &mut Trials<'_>) -> Result<u64, Failure> {
    let facts = &trials.record.facts;
    let mut bytes = facts.file_bytes.min(trials.asked.bytes_max.map_or(u64::MAX, |most| most.0));
    let memory = facts.memory_bytes.map_or(u64::MAX, |memory| memory / MEMORY_PART);
    let is_cold = trials.is_cold();
    if is_cold && facts.resident_share.is_none() {
        return Err(unusable!(
            "cannot call {} cold: the kernel does not report how much of it is cached \
             (cachestat(2) answers only a file's owner and users who may write it)\n  use \
             --cache as-is",
            facts.file
        ));
    }
    if trials.record.wishes.task == Task::Copy {
        let free = trials.free_bytes.map_or(u64::MAX, |free| free - free / FREE_PART);
        if free == 0 {
            return Err(Failure::unusable("there is no free space for copies"));
        }
        bytes = bytes.min(free);
    }
    if !is_cold || trials.record.wishes.task == Task::Copy {
        bytes = bytes.min(memory);
    }
    if bytes < facts.file_bytes {
        let (most, all) = (Bytes(bytes), Bytes(facts.file_bytes));
        trials.note(format!(
            "only {most} of {all} are used: --max-bytes, free space or memory allow no more"
        ));
    }
    Ok(bytes)
}

fn plain_reading() -> Configuration {
    Configuration { block_bytes: 1 << 20, ..baseline(Task::Read) }
}

/// Reads what trials will read: a warm file is warm then, and of a cold one nobody
/// has the first reading of all, which the host may answer from elsewhere.
fn first_reading(trials: &mut Trials<'_>, bytes: u64) -> Result<u64, Failure> {
    let is_there = trials.record.facts.resident_share.is_some_and(|share| share > 0.999);
    let cold = trials.is_cold();
    if is_there && !cold {
        return Ok(bytes);
    }
    let read = |trials: &Trials<'_>, extent| trials.read(&plain_reading(), extent, Consumer::None);
    let least = BYTES_LEAST.min(bytes);
    let first = read(trials, Extent { offset: 0, bytes: least })?;
    let per_byte_ns = first.time.0 as f64 / least.max(1) as f64;
    let time_ns = trials.record.wishes.budget.0 as f64 * FIRST_SHARE;
    let most = match cold {
        // Of a file that takes longer only a part is used.
        true => whole(time_ns / per_byte_ns).clamp(least, bytes),
        false => bytes,
    };
    if most > least {
        read(trials, Extent { offset: least, bytes: most - least })?;
    }
    let rate = Bytes(whole(1e9 / per_byte_ns));
    trials.note(format!(
        "the first read of {} ran at {rate}/s; it is not compared with anything",
        Bytes(least)
    ));
    Ok(most)
}

/// dd and cp, as far as there are such.
fn programs(trials: &mut Trials<'_>, bytes: u64) -> Vec<Work> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let mut all = Vec::new();
    let counted = format!("count={BYTES} iflag=count_bytes");
    let to = if trials.asked.folder.is_some() { "{dst}" } else { "/dev/null" };
    let mut dd = words("dd if={src} bs=128K");
    dd.insert(2, format!("of={to}"));
    dd.extend(words(&counted));
    for (name, arguments) in [("dd", Some(dd)), ("cp", cp(trials, bytes))] {
        let Some(arguments) = arguments else { continue };
        match program::start_up(name) {
            Ok(time) => {
                if name == "cp" {
                    trials.note(format!(
                        "cp is timed as a whole process; one that does nothing takes {time}"
                    ));
                }
                all.push(trials.add_program(name, arguments));
            }
            Err(why) => trials.prune(name, why),
        }
    }
    all
}

/// cp's arguments, where a copy is what is wanted, and of the whole file.
fn cp(trials: &mut Trials<'_>, bytes: u64) -> Option<Vec<String>> {
    trials.asked.folder.as_ref()?;
    if bytes < trials.record.facts.file_bytes {
        trials.prune("cp", "it copies whole files only".to_owned());
        return None;
    }
    Some(CP.split(' ').map(str::to_owned).collect())
}

/// cp that brings every byte, as engines do: unasked, it skips holes, and shares blocks where
/// the file system can.
const CP: &str = "cp --reflink=never --sparse=never {src} {dst}";

/// Rounds of a sharing of blocks.
const SHARINGS: u32 = 3;

/// Sharing blocks moves no byte: it is timed apart.
fn sharing(trials: &mut Trials<'_>, bytes: u64) -> Result<(), Failure> {
    let Some(engine) = trials.by_way(Way::Shared).map(str::to_owned) else { return Ok(()) };
    let work = Work::Engine(Configuration { engine, ..baseline(Task::Copy) });
    for round in 0..SHARINGS {
        let extent = Extent { offset: 0, bytes };
        trials.visit(Visit { work: &work, stage: Stage::Pilot, round, extent })?;
    }
    Ok(())
}

/// The most that direct reads get from the device: more under way at once until that
/// brings no more.
fn device(trials: &mut Trials<'_>, bytes: u64) -> Result<(), Failure> {
    const GAIN_MIN: f64 = 1.03;
    const MOST: u64 = 256 << 20;
    let engine = "uring_direct".to_owned();
    let is_there = trials.record.wishes.task == Task::Read
        && trials.record.candidates.iter().any(|c| c.engine == engine);
    if !is_there {
        return Ok(());
    }
    let extent = Extent { offset: 0, bytes: bytes.min(MOST) };
    let mut most = 0.0_f64;
    trials.begins(Stage::Limits, 1, extent.bytes);
    for (round, depth) in (0..).zip([1, 2, 4, 8, 16, 32, 64]) {
        let one = Configuration { engine: engine.clone(), block_bytes: 1 << 20, threads: 1, depth };
        let work = Work::Engine(one);
        let visit = Visit { work: &work, stage: Stage::Limits, round, extent };
        let Some(time) = trials.visit(visit)? else { break };
        let rate = extent.bytes as f64 / time.as_seconds();
        let is_more = rate > most * GAIN_MIN;
        most = most.max(rate);
        if !is_more {
            break;
        }
    }
    trials.record.device_bytes_per_s = (most > 0.0).then_some(most);
    Ok(())
}

/// Readings by each configuration, before the cure and after it.
const CURE_ROUNDS: u32 = 5;

/// Tries the cure for small folios, where it can be of use and is allowed: what the file would
/// give if it were read into the page cache again in large ones, and what that takes.
pub(super) fn cured(trials: &mut Trials<'_>, winner: &Configuration) -> Result<(), Failure> {
    let record = &trials.record;
    let is_small = record.facts.huge_mapped_share.is_some_and(|share| share < FOLIOS_SMALL);
    let is_mapped = record.wishes.task == Task::Read && record.wishes.consumer == Wanted::Scan;
    let is_allowed = trials.asked.how.evict && !trials.is_cold();
    let Some(extent) = trials.final_extent() else { return Ok(()) };
    let fastest = trials.ns_per_byte(Way::Mapped).min_by(|(_, a), (_, b)| a.total_cmp(b));
    let mapped = fastest.filter(|_| is_small && is_mapped && is_allowed);
    let Some(mapped) = mapped.map(|(one, _)| one.clone()) else { return Ok(()) };
    let mut works = vec![Work::Engine(mapped)];
    if works[0].configuration() != Some(winner) {
        works.push(Work::Engine(winner.clone()));
    }
    in_turn(trials, &works, extent, Stage::Uncured)?;
    let wish = CureWish { source: trials.asked.source.clone() };
    trials.record.cure = Some(match trials.job(&Job::Cure(wish))? {
        Ok(done) => {
            let Cured { time, huge_before_share, huge_after_share } = answer!(Cure, done)?;
            Cure { time: Some(time), huge_before_share, huge_after_share, failure: None }
        }
        Err(why) => Cure { failure: Some(why), ..Cure::default() },
    });
    in_turn(trials, &works, extent, Stage::Cured)
}

fn in_turn(
    trials: &mut Trials<'_>,
    works: &[Work],
    extent: Extent,
    stage: Stage,
) -> Result<(), Failure> {
    trials.begins(stage, works.len(), extent.bytes);
    for round in 0..CURE_ROUNDS {
        for work in works {
            trials.visit(Visit { work, stage, round, extent })?;
        }
    }
    Ok(())
}

/// Has the winner bring the bytes once more, and compares them with those of a plain
/// reading.
pub(super) fn proof(trials: &Trials<'_>, winner: &Configuration) -> Result<Option<Proof>, Failure> {
    let Some(extent) = trials.final_extent() else { return Ok(None) };
    let read = |one: &Configuration| {
        trials.read(one, extent, Consumer::Hash).map(|done| (done.failure, done.checksum))
    };
    let (verb, outcome) = match trials.asked.task {
        Task::Read => ("reading", read(winner)?),
        Task::Copy => {
            let wish = trials.copying(winner, extent, true)?;
            let done = answer!(Copy, trials.job(&Job::Copy(wish))?.map_err(Failure::unusable)?)?;
            ("copy", (done.failure, done.checksum))
        }
    };
    let of_winner = proven(winner, &format!("its {verb}"), outcome)?;
    let of_plain = proven(winner, "the plain reading", read(&plain_reading())?)?;
    let hex = |sum: u64| format!("{sum:016x}");
    Ok(Some(Proof { winner: hex(of_winner), plain: hex(of_plain), bytes: extent.bytes }))
}

/// The checksum of a part of the proof, from its failure and what it told. One that failed
/// proves nothing, and what was not proven is not declared the winner.
fn proven(
    winner: &Configuration,
    what: &str,
    outcome: (Option<String>, Option<u64>),
) -> Result<u64, Failure> {
    let why = match outcome {
        (None, Some(checksum)) => return Ok(checksum),
        (Some(why), _) => why,
        (None, None) => "no checksum was told".to_owned(),
    };
    Err(unusable!(
        "cannot verify the bytes of {}, the winner: {what} failed: {why}",
        winner.words()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_that_failed_is_an_error_that_names_the_winner_and_the_reason() {
        let winner = plain_reading();
        let why = || Some("c is no copy of s: the checksums are 1 and 2".to_owned());
        // A failure is one whatever else was told.
        for outcome in [(why(), None), (why(), Some(7))] {
            let said = proven(&winner, "its copy", outcome).unwrap_err().message;
            assert!(said.contains(&winner.words()), "{said}");
            assert!(
                said.ends_with("its copy failed: c is no copy of s: the checksums are 1 and 2")
            );
        }
        let said = proven(&winner, "its copy", (None, None)).unwrap_err().message;
        assert!(said.ends_with("no checksum was told"), "{said}");
        assert!(matches!(proven(&winner, "its copy", (None, Some(7))), Ok(7)));
    }
}

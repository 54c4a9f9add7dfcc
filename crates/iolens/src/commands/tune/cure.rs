//! The cure for small folios, tried and priced: what the file would give if it were read into
//! the page cache again in large ones. Only where --allow-evict allows to drop it from there.

use iolens_engine::files::job::Job;
use iolens_engine::files::tune::cure;
use iolens_model::file::Consumer;
use iolens_model::tune::{
    CacheWish, Configuration, Cure, Extent, FOLIOS_SMALL, Record, Stage, Task, Trial, Way, Work,
};
use iolens_stats::tune::{Field, Visit};

use super::Asked;
use super::ground::Ground;
use crate::commands::file::answer;
use crate::failure::Failure;

/// Readings by each configuration, before the cure and after it.
const ROUNDS: u32 = 5;

/// Tries it, where it can be of use and is allowed.
pub(super) fn tried(
    asked: &Asked<'_>,
    ground: &mut Ground,
    record: &mut Record,
    winner: &Configuration,
) -> Result<(), Failure> {
    let is_small = record.facts.huge_mapped_share.is_some_and(|share| share < FOLIOS_SMALL);
    let is_mapped = record.wishes.task == Task::Read && record.wishes.consumer == Consumer::Scan;
    let is_allowed = asked.how.evict && record.wishes.cache != CacheWish::Cold;
    let finals = record.trials.iter().filter(|trial| trial.stage == Stage::Final);
    let Some(extent) = finals.map(|trial| trial.extent).next_back() else { return Ok(()) };
    let Some(mapped) = mapped(record).filter(|_| is_small && is_mapped && is_allowed) else {
        return Ok(());
    };
    let mut works = vec![Work::Engine(mapped)];
    if works[0].configuration() != Some(winner) {
        works.push(Work::Engine(winner.clone()));
    }
    read(ground, &works, extent, Stage::Uncured)?;
    let wish = cure::Wish { source: asked.source.clone() };
    record.cure = Some(match ground.job(&Job::Cure(wish))? {
        Ok(done) => {
            let cure::Done { time, huge_before_share, huge_after_share } = answer!(Cure, done)?;
            Cure { time: Some(time), huge_before_share, huge_after_share, failure: None }
        }
        Err(why) => Cure { failure: Some(why), ..Cure::default() },
    });
    read(ground, &works, extent, Stage::Cured)?;
    record.trials.extend(ground.take_trials());
    Ok(())
}

/// Readings in turn.
fn read(ground: &mut Ground, works: &[Work], extent: Extent, stage: Stage) -> Result<(), Failure> {
    ground.begins(stage, works.len(), extent.bytes);
    for round in 0..ROUNDS {
        for work in works {
            ground.visit(Visit { work, stage, round, extent })?;
        }
    }
    Ok(())
}

/// The mapping that took the least time for its bytes in any trial.
fn mapped(record: &Record) -> Option<Configuration> {
    let is_mapped = |one: &&Configuration| {
        let mut all = record.candidates.iter();
        all.any(|candidate| candidate.engine == one.engine && candidate.way == Way::Mapped)
    };
    let cost = |trial: &Trial| Some(trial.time_ns? as f64 / trial.extent.bytes.max(1) as f64);
    let tried = record
        .trials
        .iter()
        .filter_map(|trial| Some((trial.work.configuration().filter(is_mapped)?, cost(trial)?)));
    let best = tried.min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map(|(one, _)| one.clone())
}

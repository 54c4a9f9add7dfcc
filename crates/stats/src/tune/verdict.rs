//! Who has won a final, by how much, and what bounds it.

use iolens_model::tune::{
    Candidate, Configuration, LimitKind, Record, Stage, Stop, Trial, Way, Work,
};
use iolens_model::units::{Bytes, three_digits};
use serde::Serialize;

use super::paired::{Ratio, Rounds};
use super::{BOUND_SHARE, DELTA, pairs_of};
use crate::estimate::Interval;
use crate::interval::count;
use crate::physics::{Standing, standing};

/// The winner against something else in the final.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The other.
    pub work: Work,
    /// Its rate, bytes per second.
    pub bytes_per_s: f64,
    /// Processor time of a GiB, seconds; `None` where it was not read.
    pub cpu_s_per_gib: Option<f64>,
    /// Rate of the winner over its rate.
    pub ratio: Ratio,
}

/// How much of a limit the winner reaches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The limit.
    pub kind: LimitKind,
    /// The share, 0 to about 1.
    pub share: f64,
    /// Its 95 % interval, for the shares of all that might have won; `None` where it is not of
    /// paired rounds.
    pub interval: Option<Interval>,
    /// In words: what it is a share of.
    pub of: String,
}

impl Share {
    /// Where the winner stands to the limit.
    pub fn standing(&self) -> Standing {
        standing(self.share, self.interval, 1.0)
    }

    /// Whether the winner has passed it, so that it is none.
    fn is_passed(&self) -> bool {
        self.standing() == Standing::Above
    }

    /// Whether the winner has all of it, as far as is known.
    fn is_reached(&self) -> bool {
        let least = self.interval.map_or(self.share, |interval| interval.low);
        !self.is_passed() && least >= BOUND_SHARE
    }
}

/// What follows from a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The winner.
    pub winner: Configuration,
    /// Its class.
    pub way: Way,
    /// Its rate in bytes per second, with its interval over rounds.
    pub bytes_per_s: Ratio,
    /// Processor time of a GiB, seconds; `None` where it was not read.
    pub cpu_s_per_gib: Option<f64>,
    /// The others.
    pub against: Vec<Against>,
    /// Configurations that are not slower by more than [`DELTA`] beyond doubt than the fastest.
    pub tied: Vec<Configuration>,
    /// All limits, the binding one first, and those last that were passed and are none.
    pub limits: Vec<Share>,
    /// Whether nothing is left to win: the binding limit is reached.
    pub is_bound: bool,
    /// Why no more was measured.
    pub stop: Stop,
    /// What shares blocks instead of copying, and seconds of its call.
    pub shared: Option<(String, f64)>,
}

/// Arms of the final with what they measured.
struct Final<'a> {
    works: Vec<&'a Work>,
    rounds: Rounds,
    trials: Vec<&'a Trial>,
}

impl<'a> Final<'a> {
    fn of(record: &'a Record) -> Final<'a> {
        let all: Vec<&Trial> =
            record.trials.iter().filter(|trial| trial.stage == Stage::Final).collect();
        let failed: Vec<&Work> =
            all.iter().filter(|trial| trial.failure.is_some()).map(|trial| &trial.work).collect();
        let trials: Vec<&Trial> =
            all.into_iter().filter(|trial| !failed.contains(&&trial.work)).collect();
        let mut works: Vec<&Work> = Vec::new();
        for trial in &trials {
            if !works.contains(&&trial.work) {
                works.push(&trial.work);
            }
        }
        let mut rounds = Rounds::new(works.len());
        let first = trials.iter().map(|trial| trial.round).min().unwrap_or(0);
        for trial in &trials {
            let arm = works.iter().position(|work| **work == trial.work);
            if let (Some(arm), Some(per_byte_ns)) = (arm, per_byte(trial, trial.time_ns)) {
                rounds.put(arm, trial.round - first, per_byte_ns);
            }
        }
        Final { works, rounds, trials }
    }

    fn configuration(&self, arm: usize) -> Option<&'a Configuration> {
        self.works[arm].configuration()
    }

    fn trials_of(&self, arm: usize) -> impl Iterator<Item = &'a Trial> {
        let work = self.works[arm];
        self.trials.iter().copied().filter(move |trial| trial.work == *work)
    }

    /// Processor seconds of a GiB.
    fn cpu_s_per_gib(&self, arm: usize) -> Option<f64> {
        let each: Option<Vec<f64>> =
            self.trials_of(arm).map(|trial| per_byte(trial, trial.cpu_ns)).collect();
        let each = each.filter(|each| !each.is_empty())?;
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        Some(mean * Bytes::GIB as f64 / 1e9)
    }
}

/// Nanoseconds for each byte.
fn per_byte(trial: &Trial, time_ns: Option<u64>) -> Option<f64> {
    (trial.extent.bytes > 0).then_some(time_ns? as f64 / trial.extent.bytes as f64)
}

/// Who has won; `None` where nothing of ours got through the final.
pub fn verdict(record: &Record) -> Option<Verdict> {
    let last = Final::of(record);
    let way_of = |one: &Configuration| {
        let mut candidates = record.candidates.iter();
        candidates.find(|candidate| candidate.engine == one.engine).map(|found| found.way)
    };
    let ours =
        |arm: usize| last.configuration(arm).is_some_and(|one| way_of(one) != Some(Way::Shared));
    let best = last.rounds.standing().into_iter().map(|(arm, _)| arm).find(|&arm| ours(arm))?;
    let compared = last.works.iter().filter(|work| !matches!(work, Work::Limit { .. })).count();
    let against =
        |one: usize, other: usize| last.rounds.ratio_of_many(one, other, pairs_of(compared));
    let not_beaten = |&arm: &usize| {
        arm == best || against(best, arm).is_some_and(|ratio| !ratio.is_above(DELTA))
    };
    let equals: Vec<usize> =
        (0..last.works.len()).filter(|&arm| ours(arm)).filter(not_beaten).collect();
    let arm = choose(&last, &equals, &record.candidates).unwrap_or(best);
    let winner = last.configuration(arm)?.clone();
    let others = (0..last.works.len()).filter(|&other| other != arm).filter_map(|other| {
        Some(Against {
            work: last.works[other].clone(),
            bytes_per_s: 1e9 / last.rounds.time(other)?,
            cpu_s_per_gib: last.cpu_s_per_gib(other),
            ratio: against(arm, other)?,
        })
    });
    let contenders = count((0..last.works.len()).filter(|&arm| ours(arm)).count());
    let mut limits = limits(record, &last, (arm, &winner), contenders);
    limits.sort_by(|a, b| {
        a.is_passed().cmp(&b.is_passed()).then_with(|| b.share.total_cmp(&a.share))
    });
    Some(Verdict {
        way: way_of(&winner)?,
        bytes_per_s: last.rounds.rate(arm, 1e9)?,
        cpu_s_per_gib: last.cpu_s_per_gib(arm),
        against: others.collect(),
        tied: equals
            .iter()
            .filter(|&&other| other != arm)
            .filter_map(|&other| last.configuration(other).cloned())
            .collect(),
        is_bound: limits.first().is_some_and(Share::is_reached),
        limits,
        stop: record.stop,
        shared: shared(record),
        winner,
    })
}

/// Of those that were not told apart the one that takes the least processor time, and
/// of those that take as little the simplest.
fn choose(last: &Final<'_>, equals: &[usize], candidates: &[Candidate]) -> Option<usize> {
    let cpu = |arm: usize| last.cpu_s_per_gib(arm);
    let least = equals.iter().filter_map(|&arm| cpu(arm)).fold(f64::INFINITY, f64::min);
    let is_frugal = |&arm: &usize| cpu(arm).is_none_or(|cpu| cpu <= least * (1.0 + DELTA));
    let simplicity = |arm: &usize| {
        let one = last.configuration(*arm)?;
        let engine = candidates.iter().position(|candidate| candidate.engine == one.engine);
        Some((engine, one.threads, one.depth, one.block_bytes))
    };
    equals.iter().copied().filter(is_frugal).min_by_key(simplicity)
}

/// Every limit that is known, and how much of it the winner of so many reaches.
fn limits(
    record: &Record,
    last: &Final<'_>,
    (arm, winner): (usize, &Configuration),
    contenders: u32,
) -> Vec<Share> {
    let memory = memory(record, last, (arm, winner), contenders);
    let mut all: Vec<Share> = memory.into_iter().collect();
    let Some(rate) = last.rounds.rate(arm, 1e9).map(|rate| rate.value) else { return all };
    let trials: Vec<&Trial> = last.trials_of(arm).collect();
    let crossings: Vec<f64> = trials
        .iter()
        .filter_map(|trial| {
            let calls = trial.calls? as f64 / f64::from(winner.threads);
            Some(calls * record.facts.crossing_ns / trial.time_ns? as f64)
        })
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if !crossings.is_empty() {
        let of = format!("the time, at {:.0} ns for each call", record.facts.crossing_ns);
        all.push(Share { kind: LimitKind::Crossing, share: mean(&crossings), interval: None, of });
    }
    let came =
        |trial: &&Trial| trial.device_bytes.is_some_and(|n| n >= trial.extent.bytes / 10 * 9);
    if let Some(device) = record.device_bytes_per_s.filter(|_| trials.iter().all(came)) {
        let of = "the most that direct reads got from the device".to_owned();
        let share = rate / device;
        all.push(Share { kind: LimitKind::Device, share, interval: None, of });
    }
    if let (true, Some(cpus)) = (record.was_throttled, record.facts.cgroup_cpus) {
        let busy =
            trials.iter().filter_map(|trial| Some(trial.cpu_ns? as f64 / trial.time_ns? as f64));
        let busy: Vec<f64> = busy.collect();
        let of = format!("the {cpus:.2} processors that the cgroup allows");
        all.push(Share { kind: LimitKind::Cgroup, share: mean(&busy) / cpus, interval: None, of });
    }
    all
}

/// Against memory: of the same rounds where the final had as many threads, else of the
/// beginning. Those rounds have chosen the winner too, which may be any of ours.
fn memory(
    record: &Record,
    last: &Final<'_>,
    (arm, winner): (usize, &Configuration),
    contenders: u32,
) -> Option<Share> {
    let is_it =
        |work: &Work| matches!(work, Work::Limit { threads, .. } if *threads == winner.threads);
    let bound = last.works.iter().position(|work| is_it(work));
    if let Some(bound) = bound
        && let Work::Limit { kind, .. } = last.works[bound]
    {
        let ratio = last.rounds.ratio_of_many(arm, bound, contenders)?;
        let of = rate_words(last.works[bound], 1e9 / last.rounds.time(bound)?);
        return Some(Share { kind: *kind, share: ratio.value, interval: ratio.interval, of });
    }
    let before = record.trials.iter().filter(|trial| is_it(&trial.work));
    let fastest = before
        .filter_map(|trial| Some((&trial.work, per_byte(trial, trial.time_ns)?)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let Work::Limit { kind, .. } = fastest.0 else { return None };
    let share = fastest.1 / last.rounds.time(arm)?;
    Some(Share { kind: *kind, share, interval: None, of: rate_words(fastest.0, 1e9 / fastest.1) })
}

/// `one thread at 22.0 GiB/s`, or at `40.0 MiB/s`.
fn rate_words(work: &Work, bytes_per_s: f64) -> String {
    let (unit, name) = match bytes_per_s < Bytes::GIB as f64 {
        true => (Bytes::MIB, "MiB/s"),
        false => (Bytes::GIB, "GiB/s"),
    };
    format!("{} at {} {name}", work.words(), three_digits(bytes_per_s / unit as f64))
}

/// The quickest that shared blocks.
fn shared(record: &Record) -> Option<(String, f64)> {
    let sharing = record.candidates.iter().find(|candidate| candidate.way == Way::Shared)?;
    let is_it =
        |trial: &&Trial| trial.work.configuration().is_some_and(|one| one.engine == sharing.engine);
    let times = record.trials.iter().filter(is_it).filter_map(|trial| trial.time_ns);
    Some((sharing.engine.clone(), times.min()? as f64 / 1e9))
}

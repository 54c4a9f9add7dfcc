//! What follows from runs that read, write or copy files.

use std::borrow::Cow;

use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::file::{CacheState, WritingFacts};
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Estimate};
use iolens_stats::physics::Standing;
use serde::Serialize;

use crate::arms::{curves, methods};
use crate::bounds::{self, Bound};
use crate::studies::files::facts::{self, is_durable, rate_of};
use crate::words;

/// The fastest method of a curve beside a rate that bounds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Where it is the fastest.
    pub setting: Cell,
    /// The method.
    pub method: String,
    /// Its rate.
    pub bytes_per_s: Estimate,
    /// Where that stands to the bound.
    pub reach: Reach,
    /// The bound.
    pub bound: Limiting,
}

/// Where a rate stands to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Below it.
    Below,
    /// Its interval holds it.
    At,
    /// Above a copy in memory, which writes as much besides.
    AboveCopy,
    /// Above it: it was measured while the machine was busy, and is none.
    Above,
}

/// What bounds a rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Limiting {
    /// Memory, as it was measured before the run.
    Memory {
        /// `memory copy in cache`.
        name: String,
        /// Its rate.
        bytes_per_s: f64,
        /// By which share the middle piece of that measurement is slower than the best, where
        /// that is much.
        spread: Option<f64>,
    },
    /// The best cold rate of the run: the best evidence of what the device delivers.
    BestCold {
        /// Where it was measured.
        setting: Cell,
        /// With which method.
        method: String,
        /// The rate.
        bytes_per_s: f64,
    },
}

/// The run with the engines that are ranked: of those that write without durable ones, where
/// several have an answer of their own and the baseline is none of them.
pub(crate) fn ranked<'a>(run: &Run, analysis: &'a Analysis) -> Cow<'a, Analysis> {
    let has_own_answer = run.header.plan.study() == Study::Write
        && has_several_durable(run, analysis)
        && !is_durable(run, &run.header.plan.baseline);
    if !has_own_answer {
        return Cow::Borrowed(analysis);
    }
    let mut own = analysis.clone();
    for cell in &mut own.cells {
        cell.arms.retain(|arm| !is_durable(run, &arm.arm.primitive));
    }
    Cow::Owned(own)
}

/// Whether any setting has several durable engines.
pub(crate) fn has_several_durable(run: &Run, analysis: &Analysis) -> bool {
    let durable = |arm: &&ArmAnalysis| is_durable(run, &arm.arm.primitive);
    analysis.cells.iter().any(|cell| methods(cell).filter(durable).count() > 1)
}

/// The limits of each curve.
pub(crate) fn limits(run: &Run, analysis: &Analysis) -> Vec<Limit> {
    let of_curve = |(_, cells): &(Cell, Vec<&CellAnalysis>)| {
        let all = cells.iter().flat_map(|&cell| facts::engines(cell).map(move |e| (cell, e)));
        let ranked = all.filter(|(_, (arm, _))| arm.is_ranked());
        let fastest = ranked.max_by(|(_, (_, a)), (_, (_, b))| a.value.total_cmp(&b.value));
        fastest.map_or_else(Vec::new, |(cell, (arm, rate))| {
            let limit = |(bound, reach)| Limit {
                setting: cell.cell.clone(),
                method: arm.arm.label.clone(),
                bytes_per_s: rate,
                reach,
                bound,
            };
            bounding(run, analysis, &cell.cell, &rate).into_iter().map(limit).collect()
        })
    };
    curves(analysis).iter().flat_map(of_curve).collect()
}

fn bounding(
    run: &Run,
    analysis: &Analysis,
    cell: &Cell,
    rate: &Estimate,
) -> Vec<(Limiting, Reach)> {
    let is_cold = facts::is_cold(cell);
    let memory: Vec<Bound> = match run.header.plan.study() {
        Study::Copy if cell.cache() == Some(CacheState::Warm) => {
            bounds::copy_limit(run, cell.threads, cell.size).into_iter().collect()
        }
        Study::Copy => Vec::new(),
        _ if is_cold => {
            let best = facts::best_cold(analysis).map(|(at, arm, best)| Limiting::BestCold {
                setting: at.cell.clone(),
                method: arm.arm.label.clone(),
                bytes_per_s: best.value,
            });
            return best.map(|best| (best, Reach::Below)).into_iter().collect();
        }
        _ => bounds::rooflines(run, cell.threads),
    };
    let of = |bound: Bound| {
        let reach = match bound.standing(rate) {
            Standing::Below(_) => Reach::Below,
            Standing::At => Reach::At,
            Standing::Above if bound.allows(rate.value) => Reach::AboveCopy,
            Standing::Above => Reach::Above,
        };
        let (spread, bytes_per_s) = (bound.wide(), bound.bytes_per_s);
        (Limiting::Memory { name: bound.name, bytes_per_s, spread }, reach)
    };
    memory.into_iter().map(of).collect()
}

/// What the page cache is worth to a method: its rate warm over its rate cold. They are different
/// settings, and did not take turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Caching {
    /// The setting that is warm.
    pub setting: Cell,
    /// The method.
    pub method: String,
    /// The ratio; its interval is made of those of both rates.
    pub warm_over_cold: Estimate,
}

/// Of every engine that goes through the page cache, at every block size that has both.
pub(crate) fn caching(run: &Run, analysis: &Analysis) -> Vec<Caching> {
    let is_warm =
        |cell: &&CellAnalysis| cell.cell.file().is_some_and(|f| f.cache == CacheState::Warm);
    let mut found = Vec::new();
    for warm in analysis.cells.iter().filter(is_warm) {
        let other = facts::with_cache(&warm.cell, CacheState::Cold);
        let Some(cold) = analysis.cells.iter().find(|cell| cell.cell == other) else { continue };
        let cached =
            facts::engines(warm).filter(|(arm, _)| !facts::is_direct(run, &arm.arm.primitive));
        found.extend(cached.filter_map(|(arm, _)| {
            let (same, _) =
                facts::engines(cold).find(|(cold, _)| cold.arm.label == arm.arm.label)?;
            let (fast, slow) = (warm.across(arm, rate_of)?, cold.across(same, rate_of)?);
            Some(Caching {
                setting: warm.cell.clone(),
                method: arm.arm.label.clone(),
                warm_over_cold: fast.with(slow, fast.value / slow.value),
            })
        }));
    }
    found
}

/// What a flush took before the run: whether a block can be on a device in that time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flush {
    /// The file system.
    pub file_system: String,
    /// Whether it has a device at all; on tmpfs nothing that is written lasts.
    pub has_device: bool,
    /// Median time of writing a page and flushing it, ns.
    pub median_ns: Option<u64>,
    /// The shortest.
    pub least_ns: Option<u64>,
    /// The longest.
    pub most_ns: Option<u64>,
    /// How many were tried.
    pub tried: u32,
    /// Whether a device without a protected cache can be as fast.
    pub is_plausible: Option<bool>,
    /// Whether a host may acknowledge a flush that it does not make.
    pub is_guest: bool,
}

/// A flush of a device without a cache that survives a power cut takes longer: the
/// fastest flash takes tens of microseconds to program a page.
const PLAUSIBLE: Nanos = Nanos(20_000);

/// File systems that have no device.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// What a flush took; `None` where nothing is written.
pub(crate) fn flush(run: &Run) -> Option<Flush> {
    let file = run.header.file.as_ref()?;
    let writing: &WritingFacts = file.writing.as_ref()?;
    let ns = |found: Option<&Nanos>| found.map(|found| found.0);
    let median = writing.flush();
    Some(Flush {
        has_device: !IN_MEMORY.contains(&file.file_system.as_str()),
        file_system: file.file_system.clone(),
        median_ns: ns(median.as_ref()),
        least_ns: ns(writing.flushes.iter().min()),
        most_ns: ns(writing.flushes.iter().max()),
        tried: u32::try_from(writing.flushes.len()).unwrap_or(u32::MAX),
        is_plausible: median.map(|median| median >= PLAUSIBLE),
        is_guest: words::is_guest(&run.header.host),
    })
}

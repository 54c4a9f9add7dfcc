//! The studies `file` and `write`: what their sentences, tables and figures have in
//! common.

mod drops;
pub(crate) mod sentences;
#[cfg(test)]
pub(crate) mod tests;

use iolens_model::arm::Role;
use iolens_model::cell::{Cell, Setting};
use iolens_model::file::{CacheState, Destination, FileSetting, WriteSetting};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, CostModel, Estimate, Interval};

pub(crate) use self::drops::table as drops_table;
pub(crate) use self::sentences::{alarms, cold_in_a_guest, sentences};
use crate::rates::{self, Unit};

/// The unit for the rates of cells.
pub(crate) fn unit(cells: &[&CellAnalysis]) -> Unit {
    let arms = cells.iter().flat_map(|cell| &cell.arms);
    Unit::of(rates::BYTES, arms.filter_map(rate_of).map(|rate| rate.value))
}

/// Bytes read per second by an arm that has usable numbers.
pub(crate) fn rate_of(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.figures.as_ref().filter(|_| arm.status == Status::Ok)?.read_bytes_per_s
}

/// The arms of a cell that have a rate of their own: no copy of the baseline.
pub(crate) fn engines(cell: &CellAnalysis) -> impl Iterator<Item = (&ArmAnalysis, Estimate)> {
    let own = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
    cell.arms.iter().filter(own).filter_map(|arm| Some((arm, rate_of(arm)?)))
}

/// The engine behind a label.
pub(crate) fn primitive(analysis: &Analysis, label: &str) -> String {
    let mut arms = analysis.arms();
    let found = arms.find(|arm| arm.arm.label == label);
    found.map_or_else(|| label.to_owned(), |arm| arm.arm.primitive.clone())
}

/// Whether an engine reads around the page cache, as the run knew it.
pub(crate) fn is_direct(run: &Run, engine: &str) -> bool {
    run.header.engines.iter().any(|facts| facts.id == engine && facts.is_direct)
}

/// The same setting with this of the file in the page cache.
pub(crate) fn with_cache(cell: &Cell, cache: CacheState) -> Cell {
    match cell.setting {
        Setting::File(setting) => {
            Cell { setting: Setting::File(FileSetting { cache, ..setting }), ..cell.clone() }
        }
        _ => cell.clone(),
    }
}

/// In which state a file is when a slice begins: what is in the page cache of one that
/// is read, what is there already of one that is written. Figures show both beside each
/// other.
pub(crate) fn state(cell: &Cell) -> Option<&'static str> {
    match &cell.setting {
        Setting::File(file) => Some(file.cache.word()),
        Setting::Write(write) => Some(write.destination.word()),
        Setting::Copy(copy) => Some(copy.cache.word()),
        Setting::Net(_) | Setting::Syscall(_) | Setting::Server(_) => None,
    }
}

/// The same setting with the first of these states.
pub(crate) fn first_state(cell: &Cell) -> Cell {
    match cell.setting {
        Setting::Write(setting) => {
            let destination = Destination::Existing;
            let setting = Setting::Write(WriteSetting { destination, ..setting });
            Cell { setting, ..cell.clone() }
        }
        _ => with_cache(cell, CacheState::Warm),
    }
}

/// Whether the page cache holds nothing of a file that is read.
pub(crate) fn is_cold(cell: &Cell) -> bool {
    cell.cache().is_some_and(CacheState::is_cold)
}

/// What tells a curve from others but what is in the page cache.
pub(crate) fn without_cache(run: &Run, cell: &Cell) -> String {
    let warm = with_cache(cell, CacheState::Warm);
    let mut parts = crate::words::curve_parts(&run.header.plan, &warm);
    parts.retain(|part| part != CacheState::Warm.word());
    crate::words::joined(parts)
}

/// What the page cache is worth to an engine.
pub(crate) struct Caching {
    /// The cell that is warm.
    pub(crate) cell: Cell,
    /// The engine's arm.
    pub(crate) label: String,
    /// The engine.
    pub(crate) primitive: String,
    /// Its rate warm over its rate cold.
    pub(crate) ratio: Estimate,
}

/// Warm over cold of every engine that goes through the page cache, at every block
/// size that has both.
pub(crate) fn caching(run: &Run, analysis: &Analysis) -> Vec<Caching> {
    let is_warm =
        |cell: &&CellAnalysis| cell.cell.file().is_some_and(|f| f.cache == CacheState::Warm);
    let mut found = Vec::new();
    for warm in analysis.cells.iter().filter(is_warm) {
        let other = with_cache(&warm.cell, CacheState::Cold);
        let Some(cold) = analysis.cells.iter().find(|cell| cell.cell == other) else { continue };
        for (arm, rate) in engines(warm) {
            let mut colds = engines(cold);
            let same = colds.find(|(other, _)| other.arm.label == arm.arm.label);
            let Some((_, slow)) = same.filter(|_| !is_direct(run, &arm.arm.primitive)) else {
                continue;
            };
            found.push(Caching {
                cell: warm.cell.clone(),
                label: arm.arm.label.clone(),
                primitive: arm.arm.primitive.clone(),
                ratio: over(rate, slow),
            });
        }
    }
    found
}

/// One over the other, of cells that have nothing in common: the half-widths of
/// both, of the logarithm and added in quadrature.
fn over(a: Estimate, b: Estimate) -> Estimate {
    let value = a.value / b.value;
    let half = |interval: Interval| (interval.high / interval.low).ln() / 2.0;
    let both = a.interval.zip(b.interval).map(|(a, b)| half(a).hypot(half(b)));
    let interval = both
        .filter(|half| half.is_finite())
        .map(|half| Interval { low: value / half.exp(), high: value * half.exp() });
    Estimate { value, interval, n: a.n.min(b.n) }
}

/// What the CPU time of an engine is, which nothing is compared by.
pub(crate) const CPU_READ: &str = "totals over totals of the arm's own trials, which not all \
    arms share";

/// `5.21 [4.98, 5.45]`.
pub(crate) fn times(ratio: &Estimate) -> String {
    crate::results::interval_text(Some(*ratio), 1.0)
}

/// 1/b of a fit, bytes per second; null where a byte costs nothing.
pub(crate) fn bandwidth(model: &CostModel) -> Option<Estimate> {
    let Estimate { value, interval, n } = model.per_byte_ns;
    let inverse = |ns: f64| 1e9 / ns;
    let interval = interval
        .filter(|interval| interval.low > 0.0)
        .map(|Interval { low, high }| Interval { low: inverse(high), high: inverse(low) });
    (value > 0.0).then(|| Estimate { value: inverse(value), interval, n })
}

/// n½ of a fit, the block size at which half of the time is the crossing:
/// `1.67 KiB [1.61 KiB, 1.73 KiB]`.
pub(crate) fn knee(model: &CostModel) -> String {
    let Estimate { value, interval, .. } = model.half_size_bytes;
    let value = rounded_bytes(value);
    match interval {
        Some(interval) => {
            format!(
                "{value} {}",
                crate::number::ends(interval, |end| rounded_bytes(end).to_string())
            )
        }
        None => value.to_string(),
    }
}

/// Whole bytes; none for what is no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes, positive")]
pub(crate) fn rounded_bytes(value: f64) -> Bytes {
    Bytes(value.max(0.0).round() as u64)
}

/// The best rate of all cold cells, with its arm and cell: the best evidence that a
/// run has of what the device delivers.
pub(crate) fn best_cold(analysis: &Analysis) -> Option<(&CellAnalysis, &ArmAnalysis, Estimate)> {
    let cold = analysis.cells.iter().filter(|cell| is_cold(&cell.cell));
    let all = cold.flat_map(|cell| engines(cell).map(move |(arm, rate)| (cell, arm, rate)));
    all.max_by(|(.., a), (.., b)| a.value.total_cmp(&b.value))
}

//! What is known of runs that read, write or copy files: engines, their rates, and the states of
//! a file that tell settings apart.

use iolens_model::arm::Role;
use iolens_model::cell::{Cell, Setting};
use iolens_model::copy::ProgramStart;
use iolens_model::file::{CacheState, Destination, EngineFacts, FileSetting, WriteSetting};
use iolens_model::outcome::Status;
use iolens_model::run::{Run, RunHeader};
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, CostModel, Estimate, Interval, Told,
};

use crate::arms::{methods, of_cells};
use crate::groups::distinct;
use crate::number::{self, Unit};
use crate::words;

/// The unit for the rates of cells.
pub(crate) fn unit(cells: &[&CellAnalysis]) -> Unit {
    let arms = of_cells(cells);
    Unit::of(number::BYTES, arms.filter_map(rate_of).map(|rate| rate.value))
}

/// Bytes read per second by an arm that has usable numbers.
pub(crate) fn rate_of(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.figures.as_ref().filter(|_| arm.status == Status::Ok)?.read_bytes_per_s
}

/// Whether its totals say something else than its typical trial.
pub(crate) fn has_stalls(arm: &ArmAnalysis) -> bool {
    arm.is_ranked() && arm.contrast.as_ref().is_some_and(|contrast| contrast.tail)
}

/// The names of arms that are compared with nothing.
pub(crate) fn controls(analysis: &Analysis) -> Vec<String> {
    let controls = analysis.arms().filter(|arm| arm.arm.role == Role::Control);
    distinct(controls.map(|arm| arm.arm.label.clone()))
}

/// The arms of a cell that have a rate of their own: no copy of the baseline.
pub(crate) fn engines(cell: &CellAnalysis) -> impl Iterator<Item = (&ArmAnalysis, Estimate)> {
    methods(cell).filter_map(|arm| Some((arm, rate_of(arm)?)))
}

/// What the run knew of an engine.
pub(crate) fn engine<'a>(run: &'a Run, id: &str) -> Option<&'a EngineFacts> {
    run.header.engines.iter().find(|facts| facts.id == id)
}

/// Whether an engine reads around the page cache, as the run knew it.
pub(crate) fn is_direct(run: &Run, engine: &str) -> bool {
    self::engine(run, engine).is_some_and(|facts| facts.is_direct)
}

/// Whether an engine brings each block to the device, as the run knew it.
pub(crate) fn is_durable(run: &Run, engine: &str) -> bool {
    self::engine(run, engine).is_some_and(|facts| facts.is_durable)
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
    let mut parts = words::curve_parts(&run.header.plan, &warm);
    parts.retain(|part| part != CacheState::Warm.word());
    words::joined(parts)
}

/// 1/b of a fit, bytes per second; `None` where a byte costs nothing.
pub(crate) fn bandwidth(model: &CostModel) -> Option<Estimate> {
    let Estimate { value, interval, n } = model.per_byte_ns;
    let interval = interval.filter(|interval| interval.low > 0.0);
    let interval = interval.map(|i| Interval { low: 1e9 / i.high, high: 1e9 / i.low });
    (value > 0.0).then(|| Estimate { value: 1e9 / value, interval, n })
}

/// The best rate of all cold cells, with its arm and cell: the best evidence that a
/// run has of what the device delivers.
pub(crate) fn best_cold(analysis: &Analysis) -> Option<(&CellAnalysis, &ArmAnalysis, Estimate)> {
    let cold = analysis.cells.iter().filter(|cell| is_cold(&cell.cell));
    let all = cold.flat_map(|cell| engines(cell).map(move |(arm, rate)| (cell, arm, rate)));
    all.max_by(|(.., a), (.., b)| a.value.total_cmp(&b.value))
}

/// What starting a program took, over all trials of the run: the median of their
/// medians, the shortest and the longest; `None` for engines.
pub(crate) fn start_of(header: &RunHeader, told: &Told, id: &str) -> Option<ProgramStart> {
    let is_program = |facts: &EngineFacts| facts.id == id && facts.program.is_some();
    let all = told.starts.get(id).filter(|_| header.engines.iter().any(is_program))?;
    let mut medians: Vec<u64> = all.iter().map(|start| start.median_ns).collect();
    medians.sort_unstable();
    Some(ProgramStart {
        arm: 0,
        runs: all.iter().map(|start| start.runs).sum(),
        median_ns: *medians.get(medians.len() / 2)?,
        min_ns: all.iter().map(|start| start.min_ns).min()?,
        max_ns: all.iter().map(|start| start.max_ns).max()?,
    })
}

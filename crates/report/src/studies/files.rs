//! The studies `file`, `write` and `copy`, and what their sections and figures have in common.

pub(crate) mod copying;
pub(crate) mod figures;
pub(crate) mod findings;
pub(crate) mod screen;
pub(crate) mod sections;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod writes;

use iolens_model::arm::Role;
use iolens_model::cell::{Cell, Setting};
use iolens_model::file::{CacheState, Destination, EngineFacts, FileSetting, WriteSetting};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, CostModel, Estimate, Interval};

use super::{OfSetting, StudyReport};
use crate::arms::methods;
use crate::figure::{self, chart};
use crate::groups::distinct;
use crate::number::{self, Unit};
use crate::records::columns::{ARMS_OF_ONE_END, Ends, SLICE_OF_ONE_END, StudyColumns};
use crate::sections::who_wins;

pub(super) static FILE: StudyReport = StudyReport {
    next: screen::next_of_reads,
    question: "Which way to read a file is fastest?",
    columns: StudyColumns {
        axes: "block_bytes cache pattern consumer depth threads",
        parts: &[("bytes", "read"), ("per_byte", "cycles_per_byte"), ("file", PAGES)],
        ..COLUMNS
    },
    ..ALL
};

pub(super) static WRITE: StudyReport = StudyReport {
    screen: writes::screen::fill,
    question: "Which way to write a file is fastest?",
    columns: StudyColumns {
        keys: &[("short_writes", "short_reads")],
        axes: "block_bytes destination pattern depth threads",
        parts: &[
            ("bytes", "write"),
            ("per_byte", "cycles_per_byte"),
            (
                "file",
                "resident_before_bytes resident_after_bytes dirty_before_bytes dirty_after_bytes
                 size_error_bytes short_writes",
            ),
        ],
        ..COLUMNS
    },
    ..ALL
};

pub(super) static COPY: StudyReport = StudyReport {
    nothing: "copy by a method that does nothing",
    question: "Which way to copy a file is fastest?",
    sizes: chart::FILES,
    columns: StudyColumns {
        axes: "file_bytes block_bytes cache sync threads",
        parts: &[
            ("bytes", "copied"),
            ("per_byte", "cycles_per_byte"),
            ("file", PAGES),
            ("start", "start_median_ns start_min_ns start_max_ns"),
            ("starts", "starts"),
        ],
        ..COLUMNS
    },
    ..ALL
};

/// What the three have in common.
const ALL: StudyReport = StudyReport {
    per: " per size",
    nothing: "block by a method that does nothing",
    common: Cell::words,
    screen: screen::fill,
    next: |_, _| Vec::new(),
    question: "",
    claim: who_wins,
    sections: sections::sections,
    last: |_, _| None,
    setting: OfSetting::Arms(|run, analysis, cell, columns| {
        sections::curve(run, &analysis.told, &[cell], columns)
    }),
    plates: |run, analysis| figure::by_size(run, analysis, figures::all, figures::beside),
    sizes: chart::BLOCKS,
    leads: false,
    figures: sections::figures,
    after: "why",
    columns: COLUMNS,
};

const COLUMNS: StudyColumns = StudyColumns {
    ends: Ends::One,
    keys: &[],
    arms: ARMS_OF_ONE_END,
    whole: ["facts", ""],
    axes: "",
    slice: SLICE_OF_ONE_END,
    figures: "{bytes}_bytes_per_s {bytes}_low_bytes_per_s {bytes}_high_bytes_per_s ns_per_{unit}
        ns_per_{unit}_low ns_per_{unit}_high device_share ns_per_byte cpu_ns_per_byte
        system_calls_per_{unit} context_switches_per_{unit} run_delay_ns_per_{unit}
        cycles_per_byte l1d_misses_per_kib llc_references_per_kib llc_misses_per_kib
        softirq_ns_per_byte {start}",
    parts: &[],
};

/// What is found of a file that is read.
const PAGES: &str =
    "resident_before_bytes resident_after_bytes device_bytes short_reads would_block";

/// The unit for the rates of cells.
pub(crate) fn unit(cells: &[&CellAnalysis]) -> Unit {
    let arms = cells.iter().flat_map(|cell| &cell.arms);
    Unit::of(number::BYTES, arms.filter_map(rate_of).map(|rate| rate.value))
}

/// Bytes read per second by an arm that has usable numbers.
pub(crate) fn rate_of(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.figures.as_ref().filter(|_| arm.status == Status::Ok)?.read_bytes_per_s
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
        _ => None,
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

//! The studies `file`, `write` and `copy`.

#[cfg(test)]
pub(crate) mod copying_tests;
pub(crate) mod facts;
pub(crate) mod figures;
pub(crate) mod findings;
pub(crate) mod screen;
pub(crate) mod sections;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod writes;

use iolens_model::cell::Cell;

use super::entry::{
    ARMS_OF_ONE_END, Ends, OfSetting, SLICE_OF_ONE_END, StudyColumns, StudyReport, who_wins,
};

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
    screen: writes::fill,
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
    nothing: "block by a method that does nothing",
    common: Cell::words,
    screen: screen::fill,
    next: |_, _| Vec::new(),
    question: "",
    claim: who_wins,
    sections: sections::sections,
    last: |_, _| None,
    setting: OfSetting::Arms(|run, analysis, cell, columns| {
        sections::numbers::curve(run, &analysis.told, &[cell], columns)
    }),
    plates: figures::all,
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

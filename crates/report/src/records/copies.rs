//! Rows of the study `copy`: what is counted is whole files.

use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::copy::CopySetting;
use iolens_model::outcome::TrialOutcome;
use iolens_model::run::Run;
use iolens_stats::analysis::{ArmAnalysis, Told};
use serde_json::{Value, json};

use super::{Named, Record, files, fixed};
use crate::copying::start_of;

/// The axes of a cell.
pub(super) fn axes(cell: &Cell, setting: CopySetting) -> Named {
    fixed([
        ("file_bytes", json!(cell.size.0)),
        ("block_bytes", json!(setting.block_bytes.0)),
        ("cache", json!(setting.cache)),
        ("sync", json!(setting.sync)),
        ("threads", json!(cell.threads)),
    ])
}

/// Rows of files that are read, in the words of this study.
fn of_copies(columns: Named) -> Named {
    let named = |(name, value): (std::borrow::Cow<'static, str>, Value)| {
        let name = match &*name {
            "blocks" => "copies".into(),
            "read_bytes_per_s" => "copied_bytes_per_s".into(),
            "read_low_bytes_per_s" => "copied_low_bytes_per_s".into(),
            "read_high_bytes_per_s" => "copied_high_bytes_per_s".into(),
            other => other.replace("_per_block", "_per_copy").into(),
        };
        (name, value)
    };
    columns.into_iter().map(named).collect()
}

/// One arm of one trial.
pub(super) fn arm_row(
    run: &Run,
    trial: &TrialOutcome,
    setting: CopySetting,
    index: usize,
) -> Record {
    let row = files::arm_row(run, trial, axes(&trial.cell, setting), index);
    let mut columns = of_copies(row.columns);
    let own = trial.tx.iter().flat_map(|end| &end.starts).find(|start| start.arm == index);
    columns.extend(fixed([
        ("start_median_ns", json!(own.map(|start| start.median_ns))),
        ("start_min_ns", json!(own.map(|start| start.min_ns))),
        ("start_max_ns", json!(own.map(|start| start.max_ns))),
        ("starts", json!(own.map(|start| start.runs))),
    ]));
    Record { columns, ..row }
}

/// Figures of one arm in one cell.
pub(super) fn figures(run: &Run, told: &Told, arm: &ArmAnalysis) -> Named {
    let mut columns = of_copies(files::figures(arm, Study::Copy));
    let start = start_of(&run.header, told, &arm.arm.primitive);
    columns.extend(fixed([
        ("start_median_ns", json!(start.map(|start| start.median_ns))),
        ("start_min_ns", json!(start.map(|start| start.min_ns))),
        ("start_max_ns", json!(start.map(|start| start.max_ns))),
    ]));
    columns
}

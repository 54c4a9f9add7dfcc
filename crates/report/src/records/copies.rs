//! Rows of the study `copy`: what is counted is whole files. Nobody counts the calls of
//! a program: they are null, whatever stands in the slice.

use iolens_model::cell::Cell;
use iolens_model::copy::CopySetting;
use iolens_model::outcome::TrialOutcome;
use iolens_model::run::Run;
use iolens_stats::analysis::ArmAnalysis;
use serde_json::{Value, json};

use super::{Named, Record, files, fixed};
pub(super) use crate::copying::is_program;
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

/// Makes null what counts the calls of a program.
pub(super) fn forget_calls(columns: &mut Named) {
    let of_calls = columns.iter_mut().filter(|(name, _)| name.starts_with("system_calls"));
    of_calls.for_each(|(_, value)| *value = Value::Null);
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
    if is_program(run, &trial.arms[index].arm.primitive) {
        forget_calls(&mut columns);
    }
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
pub(super) fn figures(run: &Run, arm: &ArmAnalysis) -> Named {
    let mut columns = of_copies(files::figures(arm));
    if is_program(run, &arm.arm.primitive) {
        forget_calls(&mut columns);
    }
    let start = start_of(run, &arm.arm.primitive);
    columns.extend(fixed([
        ("start_median_ns", json!(start.map(|start| start.median_ns))),
        ("start_min_ns", json!(start.map(|start| start.min_ns))),
        ("start_max_ns", json!(start.map(|start| start.max_ns))),
    ]));
    columns
}

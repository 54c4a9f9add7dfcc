//! What is compared besides time against the baseline: CPU time, and arms with each other.

use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, PairContrast, Quantity};
use serde_json::{Value, json};

use super::{Named, Record, axes, fixed, high, low, tuning};

/// Every two compared arms of each cell against each other, by what decides there and by CPU
/// time where that is compared too.
pub(crate) fn pairs(analysis: &Analysis) -> Vec<Value> {
    let of_cell = |cell: &CellAnalysis| -> Vec<Value> {
        let decides = cell.compared;
        let besides = Quantity::cpu_of(&cell.cell).filter(|cpu| *cpu != decides);
        let row = |by: Quantity| move |pair| pair_row(cell, by, pair);
        let by_cpu = besides.into_iter().flat_map(|cpu| cell.cpu_pairs.iter().map(row(cpu)));
        cell.pairs.iter().map(row(decides)).chain(by_cpu).collect()
    };
    analysis.cells.iter().flat_map(of_cell).collect()
}

fn pair_row(cell: &CellAnalysis, by: Quantity, pair: &PairContrast) -> Value {
    let mut row = axes(&cell.cell);
    row.extend(tuning(&cell.cell));
    row.extend(fixed([
        ("by", json!(by)),
        ("first", json!(pair.first)),
        ("second", json!(pair.second)),
        ("n", json!(pair.n)),
        ("ratio", json!(pair.ratio)),
        ("ratio_simultaneous_low", low(pair.simultaneous)),
        ("ratio_simultaneous_high", high(pair.simultaneous)),
    ]));
    Record { columns: row, whole: Vec::new() }.object()
}

/// CPU time against the baseline's.
pub(super) fn cost(arm: &ArmAnalysis) -> Named {
    let cost = arm.cpu_contrast.as_ref();
    fixed([
        ("cpu_ratio", json!(cost.map(|c| c.ratio))),
        ("cpu_ratio_low", low(cost.and_then(|c| c.pointwise))),
        ("cpu_ratio_high", high(cost.and_then(|c| c.pointwise))),
        ("cpu_ratio_simultaneous_low", low(cost.and_then(|c| c.simultaneous))),
        ("cpu_ratio_simultaneous_high", high(cost.and_then(|c| c.simultaneous))),
    ])
}

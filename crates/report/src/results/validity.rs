//! Tables that say which numbers to believe.

use iolens_model::arm::Role;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::overlap;
use crate::number::{self, NONE};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// What was rejected, and why.
pub(crate) fn rejected(analysis: &Analysis) -> Table {
    let mut columns = ["pass", "cell", "arm", "status"].map(|name| Column::left(name, "")).to_vec();
    columns.push(Column::prose("reason"));
    let mut table = Table::new("Trials that are kept and not used", columns);
    for rejected in &analysis.rejected {
        table.push(vec![
            rejected.pass.to_string().into(),
            rejected.cell.clone().into(),
            rejected.arm.clone().unwrap_or_else(|| "all".to_owned()).into(),
            Entry::toned(rejected.status.word(), Tone::Verdict),
            rejected.reason.clone().into(),
        ]);
    }
    table
}

/// The A/A arm in every cell.
pub(crate) fn self_checks(run: &Run, analysis: &Analysis) -> Table {
    let columns = vec![
        Column::left("cell", ""),
        Column::left("A/A ratio", "[95 %]"),
        Column::right("half-width", ""),
        Column::right("n", ""),
        Column::left("excludes 1", ""),
    ];
    let mut table = Table::new("The baseline against its hidden second copy", columns);
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.arm.role == Role::SelfCheck) {
            let contrast = arm.contrast.as_ref();
            let out = contrast.and_then(|c| c.pointwise).map(|interval| !interval.contains(1.0));
            table.push(vec![
                words::subject(&run.header.plan, &cell.cell).into(),
                contrast.map_or_else(|| NONE.to_owned(), number::contrast).into(),
                contrast
                    .and_then(|c| c.half_width())
                    .map_or_else(|| NONE.to_owned(), |half| format!("±{}", number::percent(half)))
                    .into(),
                contrast.map_or_else(|| NONE.to_owned(), |c| c.n.to_string()).into(),
                match out {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => NONE,
                }
                .into(),
            ]);
        }
    }
    table
}

/// The same ratio from arms that share a process and from isolated trials.
pub(crate) fn isolated(run: &Run, analysis: &Analysis) -> Table {
    let columns = vec![
        Column::left("cell", ""),
        Column::left("arm", ""),
        Column::left("alternating in one process", "ratio [95 %]"),
        Column::left("each in its own", "ratio [95 %]"),
        Column::right("n", "isolated"),
        Column::left("intervals overlap", ""),
    ];
    let mut table = Table::new("Does sharing a process change the ratio?", columns);
    for cell in &analysis.cells {
        for arm in &cell.arms {
            let Some(alone) = &arm.isolated else { continue };
            table.push(vec![
                words::subject(&run.header.plan, &cell.cell).into(),
                Entry::toned(&arm.arm.label, Tone::Arm(arm.arm.primitive.clone())),
                arm.contrast.as_ref().map_or_else(|| NONE.to_owned(), number::contrast).into(),
                number::contrast(alone).into(),
                alone.n.to_string().into(),
                match arm.contrast.as_ref().and_then(|shared| overlap(shared, alone)) {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => NONE,
                }
                .into(),
            ]);
        }
    }
    table
}

//! The one table about a message that somebody asked for: each arm by time and by CPU time.

use iolens_model::plan::Plan;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis};

use super::{Detail, beside, entry, label};
use crate::number;
use crate::rates::Unit;
use crate::table::{Column, Entry, Table};

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// As in the tables of a run, of time.
    Of(Detail),
    /// CPU time of both ends.
    Cpu,
    /// Its ratio with the interval.
    CpuRatio,
    /// The verdict on it.
    CpuVerdict,
}

impl Part {
    const ALL: [Part; 10] = [
        Part::Of(Detail::Arm),
        Part::Of(Detail::Goodput),
        Part::Of(Detail::Time),
        Part::Of(Detail::Change),
        Part::Of(Detail::Ends),
        Part::Cpu,
        Part::CpuRatio,
        Part::CpuVerdict,
        Part::Of(Detail::Trials),
        Part::Of(Detail::Copies),
    ];

    /// What a narrow terminal has no room for, first to go first.
    const DROPPED: [Part; 4] = [
        Part::Of(Detail::Copies),
        Part::Of(Detail::Trials),
        Part::CpuVerdict,
        Part::Of(Detail::Goodput),
    ];

    fn column(self, goodput: Unit) -> Column {
        match self {
            Part::Of(detail) => detail.column(goodput),
            Part::Cpu => Column::decimal("CPU", "ns/msg"),
            Part::CpuRatio => Column::right("CPU", "change"),
            Part::CpuVerdict => Column::left("95% interval", "of CPU"),
        }
    }

    fn entry(self, arm: &ArmAnalysis, by_cpu: &ArmAnalysis, quick: bool) -> Entry {
        match self {
            Part::Of(detail) => entry(detail, arm, quick),
            Part::Cpu => {
                let figures = arm.figures.as_ref();
                let spent = figures.and_then(|figures| figures.cpu_ns_per_message);
                number::optional(spent.map(|estimate| estimate.value)).into()
            }
            Part::CpuRatio => entry(Detail::Change, by_cpu, quick),
            Part::CpuVerdict => entry(Detail::Ends, by_cpu, quick),
        }
    }
}

/// The table of a cell, as wide as `width` allows.
pub(crate) fn asked(plan: &Plan, cell: &CellAnalysis, width: usize) -> Table {
    let mut parts: Vec<Part> = Part::ALL.to_vec();
    let mut table = fill(&parts, cell, plan.quick);
    for dropped in Part::DROPPED {
        if table.width() <= width {
            break;
        }
        parts.retain(|part| *part != dropped);
        table = fill(&parts, cell, plan.quick);
    }
    table
}

fn fill(parts: &[Part], cell: &CellAnalysis, quick: bool) -> Table {
    let unit = super::goodput_unit(&[cell]);
    let mut table = Table::new("", parts.iter().map(|part| part.column(unit)).collect());
    let by_cpu = cell.by_cpu();
    for (arm, by_cpu) in cell.arms.iter().zip(&by_cpu.arms) {
        let note = beside(cell, arm).map(|said| table.note(&said));
        let entry = |&part: &Part| match part {
            Part::Of(Detail::Arm) => Entry {
                note,
                ..Entry::toned(label(arm), crate::figure::style::tone(&arm.arm.primitive))
            },
            Part::Of(Detail::Goodput) => super::goodput(arm, unit),
            other => other.entry(arm, by_cpu, quick),
        };
        let entries = parts.iter().map(entry).collect();
        table.push(entries);
    }
    table
}

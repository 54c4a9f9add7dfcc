//! Receivers beside each other: the same cell and arm, received in each way.

use iolens_model::arm::Role;
use iolens_model::axes::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use super::interval_text;
use crate::number::{NONE, copies, percent};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// How the table is to be read.
pub(crate) const READING: &str = "Receivers do not take turns: each has trials of its own, in \
    which the arms do. So these are figures of single cells, with the machine's drift in their \
    differences, and no verdicts; the ratios to the baseline are those of each receiver's own \
    cells.";

/// One row per arm and receiver, the receivers of an arm together; null where
/// the run has one receiver.
pub(crate) fn receivers(run: &Run, analysis: &Analysis) -> Option<Table> {
    let plan = &run.header.plan;
    if plan.receivers.len() < 2 {
        return None;
    }
    let columns = vec![
        Column::left("cell", ""),
        Column::left("arm", ""),
        Column::left("receiver", ""),
        Column::left("goodput", "Gbit/s [95 %]"),
        Column::left("CPU receiver", "ns/B [95 %]"),
        Column::right("copies", "end to end"),
        Column::right("mapped", "of bytes"),
    ];
    let mut table = Table::new("Receivers beside each other", columns);
    let mut settings: Vec<Cell> = Vec::new();
    for cell in &analysis.cells {
        let setting = without_receiver(&cell.cell);
        if settings.contains(&setting) {
            continue;
        }
        let of_it = |cell: &&CellAnalysis| without_receiver(&cell.cell) == setting;
        let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(of_it).collect();
        let mut alone = plan.clone();
        alone.receivers.truncate(1);
        fill(&mut table, &words::subject(&alone, &setting), &cells);
        settings.push(setting);
    }
    Some(table)
}

fn without_receiver(cell: &Cell) -> Cell {
    Cell { receiver: String::new(), ..cell.clone() }
}

/// The rows of one setting of the other axes.
fn fill(table: &mut Table, subject: &str, cells: &[&CellAnalysis]) {
    let Some(first) = cells.first() else { return };
    let received = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
    for (i, arm) in first.arms.iter().filter(received).enumerate() {
        let same = |cell: &&CellAnalysis| {
            let found = cell.arms.iter().find(|other| other.arm == arm.arm)?;
            Some((cell.cell.receiver.clone(), found.clone()))
        };
        for (j, (receiver, arm)) in cells.iter().filter_map(same).enumerate() {
            let subject = if i + j == 0 { subject } else { "" };
            let entries = row(subject, j == 0, &receiver, &arm);
            if j == 0 { table.push_group(entries) } else { table.push(entries) }
        }
    }
}

fn row(subject: &str, is_first: bool, receiver: &str, arm: &ArmAnalysis) -> Vec<Entry> {
    let figures = arm.figures.as_ref();
    let label = if is_first { arm.arm.label.as_str() } else { "" };
    vec![
        subject.into(),
        Entry::toned(label, Tone::Arm(arm.arm.primitive.clone())),
        receiver.into(),
        interval_text(figures.and_then(|f| f.goodput_bits_per_s), 1e9).into(),
        interval_text(figures.and_then(|f| f.rx_cpu_ns_per_byte), 1.0).into(),
        copies(arm.copies_end_to_end).into(),
        arm.mapped_share.map_or_else(|| NONE.to_owned(), percent).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn each_arm_has_its_receivers_together() {
        let (mut run, mut analysis) = findings();
        assert!(receivers(&run, &analysis).is_none(), "one receiver is compared with nothing");
        run.header.plan.receivers.push("recv_trunc".to_owned());
        let mut other = analysis.cells[0].clone();
        other.cell.receiver = "recv_trunc".to_owned();
        other.arms[0].mapped_share = Some(0.25);
        analysis.cells.push(other);
        let table = receivers(&run, &analysis).expect("two receivers");
        let text = |row: usize| {
            table.rows[row].entries.iter().map(|e| e.text.as_str()).collect::<Vec<_>>()
        };
        let (first, second) = (text(0), text(1));
        assert_eq!((first[1], first[2]), (analysis.cells[0].arms[0].arm.label.as_str(), "recv"));
        assert_eq!((second[0], second[1], second[2]), ("", "", "recv_trunc"));
        assert_eq!((first[6], second[6]), (NONE, "25 %"));
        assert!(!first[0].contains("recv"), "the receiver has a column: {}", first[0]);
    }
}

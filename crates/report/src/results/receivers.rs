//! Receivers beside each other: the same cell and arm, received in each way.

use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use super::{Row, interval_text, toned};
use crate::arms::methods;
use crate::groups::grouped;
use crate::number::{OrDash, copies, percent};
use crate::table::{Table, left, right};
use crate::words;

/// How the table is to be read.
pub(crate) const READING: &str = "Receivers do not take turns: each has trials of its own, in \
    which the arms do. So these are figures of single cells, with the machine's drift in their \
    differences, and no verdicts; the ratios to the baseline are those of each receiver's own \
    cells.";

/// A table for each setting of the other axes, with a row per arm and receiver,
/// the receivers of an arm together; none where the run has one receiver.
pub(crate) fn receivers(run: &Run, analysis: &Analysis) -> Vec<Table> {
    let plan = &run.header.plan;
    if plan.receivers().len() < 2 {
        return Vec::new();
    }
    let mut alone = plan.clone();
    alone.net_mut().into_iter().for_each(|net| net.receivers.truncate(1));
    let cells = analysis.cells.iter().map(|cell| (without_receiver(&cell.cell), cell));
    let table = |(setting, cells): (Cell, Vec<&CellAnalysis>)| {
        beside_each_other(&words::subject_in(&alone, &setting), &cells)
    };
    grouped(cells).into_iter().map(table).collect()
}

fn without_receiver(cell: &Cell) -> Cell {
    cell.with_net(|net| net.receiver.clear())
}

/// The receivers of one setting.
fn beside_each_other(subject: &str, cells: &[&CellAnalysis]) -> Table {
    let mut table = Table::of(format!("Receivers beside each other: {subject}"), []);
    for arm in cells.first().into_iter().flat_map(|cell| methods(cell)) {
        let same = cells.iter().filter_map(|cell| {
            let found = cell.arms.iter().find(|other| other.arm == arm.arm)?;
            Some((cell.cell.receiver()?, found))
        });
        for (i, (receiver, arm)) in same.enumerate() {
            table.fill(i == 0, row(i == 0, receiver, arm));
        }
    }
    table
}

fn row(is_first: bool, receiver: &str, arm: &ArmAnalysis) -> Row {
    let label = match is_first {
        true => toned(arm.arm.label.as_str(), &arm.arm.primitive),
        false => "".into(),
    };
    let (goodput, cpu) =
        (arm.figure(|f| f.goodput_bits_per_s), arm.figure(|f| f.rx_cpu_ns_per_byte));
    vec![
        left("arm", "", label),
        left("receiver", "", receiver),
        left("goodput", "Gbit/s [95%]", interval_text(goodput, 1e9)),
        left("CPU receiver", "ns/B [95%]", interval_text(cpu, 1.0)),
        right("copies", "end to end", copies(arm.copies_end_to_end)),
        right("mapped", "share", arm.mapped_share.or_dash(percent)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;
    use crate::number::NONE;

    #[test]
    fn each_arm_has_its_receivers_together() {
        let (mut run, mut analysis) = findings();
        assert!(receivers(&run, &analysis).is_empty(), "one receiver is compared with nothing");
        run.header.plan.net_mut().unwrap().receivers.push("recv_trunc".to_owned());
        let mut other = analysis.cells[0].clone();
        other.cell.net_mut().unwrap().receiver = "recv_trunc".to_owned();
        other.arms[0].mapped_share = Some(0.25);
        analysis.cells.push(other);
        let tables = receivers(&run, &analysis);
        let table = &tables[0];
        let text = |row: usize| {
            table.rows[row].entries.iter().map(|e| e.text.as_str()).collect::<Vec<_>>()
        };
        let (first, second) = (text(0), text(1));
        assert_eq!((first[0], first[1]), (analysis.cells[0].arms[0].arm.label.as_str(), "recv"));
        assert_eq!((second[0], second[1]), ("", "recv_trunc"));
        assert_eq!((first[5], second[5]), (NONE, "25%"));
        assert!(!table.caption.contains("recv"), "it has a column: {}", table.caption);
        assert!(tables[1].rows.iter().all(|row| row.entries[1].text == "recv"));
    }
}

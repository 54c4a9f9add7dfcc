//! The copy ledger: how often a CPU copies each payload byte, and where.

use std::cmp::Reverse;

use iolens_model::arm::Role;
use iolens_model::axes::Topology;
use iolens_model::data_path::{DataPath, End, Hop, Movement, Mover};
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use super::interval_text;
use crate::arms;
use crate::number::{NONE, copies};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// One row per arm. Copies that differ between cells are given as a range.
pub(crate) fn ledger(run: &Run, analysis: &Analysis) -> Table {
    let mut table = Table::new("Copy ledger: CPU copies of each payload byte", Vec::new());
    let Some(largest) = largest(analysis) else { return table };
    let at = words::subject(&run.header.plan, &largest.cell);
    table.columns = vec![
        Column::left("arm", ""),
        Column::right("gather", "by user code"),
        Column::right("user → kernel", "at send"),
        Column::right("late copy", "by the kernel"),
        Column::right("kernel → user", "at recv"),
        Column::right("at the sender", "copies/byte"),
        Column::right("end to end", "copies/byte"),
        Column::left(&format!("time at {at}"), "ns/byte [95 %]"),
    ];
    for arm in largest.arms.iter().filter(|arm| arm.arm.role != Role::SelfCheck) {
        table.push(row(run, analysis, arm));
    }
    table
}

fn row(run: &Run, analysis: &Analysis, arm: &ArmAnalysis) -> Vec<Entry> {
    let all = || {
        let arms = analysis.cells.iter().flat_map(|cell| &cell.arms);
        arms.filter(|other| other.arm.label == arm.arm.label)
    };
    let late = arms::copied(&analysis.cells, &arm.arm.label);
    let path = arms::path(run, &arm.arm.primitive);
    let mut row = vec![Entry::toned(arm.shown_label(), Tone::Arm(arm.arm.primitive.clone()))];
    let topologies = &run.header.plan.topologies;
    row.extend(Kind::ALL.map(|kind| Entry::from(count(path, kind, late, topologies))));
    row.push(range(all().map(|arm| arm.copies_sender)).into());
    row.push(range(all().map(|arm| arm.copies_end_to_end)).into());
    row.push(interval_text(arm.figures.as_ref().map(|f| f.ns_per_byte), 1.0).into());
    row
}

/// The kinds of copies, in the order in which bytes meet them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather,
    ToKernel,
    Late,
    ToUser,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Gather, Kind::ToKernel, Kind::Late, Kind::ToUser];

    /// The kind of copy that a hop is; null where only a reference moves.
    fn of(hop: &Hop) -> Option<Kind> {
        match (hop.movement, hop.mover, hop.end) {
            (Movement::Reference, _, _) | (_, Mover::Device, _) => None,
            (Movement::LateCopy, _, _) => Some(Kind::Late),
            (Movement::Copy, Mover::User, _) => Some(Kind::Gather),
            (Movement::Copy, Mover::Kernel, End::Sender) => Some(Kind::ToKernel),
            (Movement::Copy, Mover::Kernel, End::Receiver) => Some(Kind::ToUser),
        }
    }
}

/// Copies of one kind; a late one counts by its measured share, and one that a
/// receiver makes where there is one.
fn count(
    path: Option<&DataPath>,
    kind: Kind,
    late: Option<(f64, f64)>,
    topologies: &[Topology],
) -> String {
    let Some(path) = path else { return NONE.to_owned() };
    let hops = path.hops.iter().filter(|hop| Kind::of(hop) == Some(kind)).count();
    match (kind, hops, late) {
        (Kind::Late, 1.., None) => "not measured".to_owned(),
        (Kind::Late, 1.., Some((low, high))) => {
            range([low, high].into_iter().map(|share| Some(share * hops as f64)))
        }
        (Kind::ToUser, _, _) => {
            let made = |t: &Topology| if t.has_receiver() { hops as f64 } else { 0.0 };
            range(topologies.iter().map(|topology| Some(made(topology))))
        }
        _ => hops.to_string(),
    }
}

/// The cell where bytes cost most and calls least: the largest size, fewest
/// threads, of those the first.
fn largest(analysis: &Analysis) -> Option<&CellAnalysis> {
    let cells = analysis.cells.iter().rev();
    cells.max_by_key(|cell| (cell.cell.message_bytes, Reverse(cell.cell.threads)))
}

fn range(values: impl Iterator<Item = Option<f64>>) -> String {
    let values: Option<Vec<f64>> = values.collect();
    match values.and_then(|values| arms::span(values.into_iter())) {
        None => NONE.to_owned(),
        Some((low, high)) if low == high => copies(Some(low)),
        Some((low, high)) => format!("{} to {}", copies(Some(low)), copies(Some(high))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn the_kinds_of_copies_add_up_to_the_sums() {
        let (run, analysis) = findings();
        let table = ledger(&run, &analysis);
        let row = |label: &str| {
            let row = table.rows.iter().find(|row| row.entries[0].text == label).expect("a row");
            row.entries[1..7].iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(row("send_staged"), ["1", "1", "0", "1", "2", "3"]);
        assert_eq!(row("sendmsg_iov"), ["0", "1", "0", "1", "1", "2"]);
        assert_eq!(row("sendmsg_zerocopy (copied)"), ["0", "0", "1", "1", "1", "2"]);
    }

    #[test]
    fn a_late_copy_without_a_share_is_not_counted_as_none() {
        let (run, _) = findings();
        let path = arms::path(&run, "sendmsg_zerocopy");
        let on = [Topology::Veth];
        assert_eq!(count(path, Kind::Late, None, &on), "not measured");
        assert_eq!(count(path, Kind::Late, Some((0.0, 0.5)), &on), "0 to 0.50");
    }

    #[test]
    fn what_nobody_receives_nobody_copies() {
        let (run, _) = findings();
        let path = arms::path(&run, "send_staged");
        let counted = |topologies: &[Topology]| count(path, Kind::ToUser, None, topologies);
        assert_eq!(counted(&[Topology::Veth]), "1");
        assert_eq!(counted(&[Topology::Sink]), "0");
        assert_eq!(counted(&[Topology::Veth, Topology::Sink]), "0 to 1");
    }
}

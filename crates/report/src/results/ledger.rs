//! The copy ledger: how often a CPU copies each payload byte, and where.

use std::cmp::Reverse;

use iolens_document::table::{Table, left, right};
use iolens_model::arm::Role;
use iolens_model::axes::Topology;
use iolens_model::data_path::{DataPath, End, Hop, Movement, Mover};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use super::Row;
use crate::arms::{self, Shares};
use crate::figure::style::toned;
use crate::number::{InWords, NONE, interval_text};
use crate::words;

/// One row per arm, for each receiver. Copies that differ between cells are
/// given as a range.
pub(crate) fn ledger(run: &Run, analysis: &Analysis) -> Table {
    let receivers = run.header.plan.receivers();
    let several = receivers.len() > 1;
    let Some(first) = largest(arms::received_with(analysis, arms::receiver(run))) else {
        return Table::default();
    };
    let at = match several {
        true => format!("{}, {}", first.cell.size, words::threads(first.cell.threads)),
        false => words::subject(&run.header, &first.cell),
    };
    let mut table = Table::of(format!("CPU copies of each byte; time at {at}"), []);
    for receiver in receivers {
        let cells = arms::received_with(analysis, receiver);
        let Some(largest) = largest(cells.clone()) else { continue };
        let shown = largest.arms.iter().filter(|arm| arm.arm.role != Role::SelfCheck);
        for (i, arm) in shown.enumerate() {
            let mut row = row(run, cells.clone(), arm, receiver);
            if several {
                row.insert(1, left("receiver", "", receiver.as_str()));
            }
            table.fill(i == 0, row);
        }
    }
    table
}

fn row<'a>(
    run: &Run,
    cells: impl Iterator<Item = &'a CellAnalysis> + Clone,
    arm: &ArmAnalysis,
    receiver: &str,
) -> Row {
    let all = || {
        let arms = cells.clone().flat_map(|cell| &cell.arms);
        arms.filter(|other| other.arm.label == arm.arm.label && other.status == Status::Ok)
    };
    let shares = Shares::of(cells.clone(), &arm.arm.label);
    let path = arms::path(run, &arm.arm.primitive, receiver);
    let topologies = run.header.plan.topologies();
    let time = arm.figure(|f| f.ns_per_byte).filter(|_| arm.is_ranked());
    let count = |kind| count(path.as_ref(), kind, shares, topologies);
    vec![
        left("method", "", toned(arm.shown_label(), &arm.arm.primitive)),
        right("gather", "copies", count(Kind::Gather)),
        right("at send", "copies", count(Kind::ToKernel)),
        right("late", "copies", count(Kind::Late)),
        right("at recv", "copies", count(Kind::ToUser)),
        right("sender", "copies", range(all().map(|arm| arm.copies_sender))),
        right("total", "copies", range(all().map(|arm| arm.copies_end_to_end))),
        left("time", "ns/byte [95%]", interval_text(time, 1.0)),
    ]
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
    /// The kind of copy that a hop is; `None` where only a reference moves.
    fn of(hop: &Hop) -> Option<Kind> {
        match (hop.movement, hop.mover, hop.end) {
            (Movement::Reference | Movement::Discarded, _, _) | (_, Mover::Device, _) => None,
            (Movement::LateCopy, _, _) => Some(Kind::Late),
            (Movement::Mapped, _, _) => Some(Kind::ToUser),
            (Movement::Copy, Mover::User, _) => Some(Kind::Gather),
            (Movement::Copy, Mover::Kernel, End::Sender) => Some(Kind::ToKernel),
            (Movement::Copy, Mover::Kernel, End::Receiver) => Some(Kind::ToUser),
        }
    }
}

/// Copies of one kind; a late one, and one that is left where pages map, counts
/// by its measured share, and one that a receiver makes where there is one.
fn count(path: Option<&DataPath>, kind: Kind, shares: Shares, topologies: &[Topology]) -> String {
    let Some(path) = path else { return NONE.to_owned() };
    let hops = path.hops.iter().filter(|hop| Kind::of(hop) == Some(kind)).count();
    let counted =
        |low: f64, high: f64| range([low, high].into_iter().map(|share| Some(share * hops as f64)));
    match (kind, hops) {
        (Kind::Late, 1..) => {
            shares.late.map_or_else(|| UNKNOWN.to_owned(), |(low, high)| counted(low, high))
        }
        (Kind::ToUser, 1..) if path.may_map() => shares
            .mapped
            .map_or_else(|| UNKNOWN.to_owned(), |(low, high)| counted(1.0 - high, 1.0 - low)),
        (Kind::ToUser, _) => {
            let made = |t: &Topology| if t.has_receiver() { hops as f64 } else { 0.0 };
            range(topologies.iter().map(|topology| Some(made(topology))))
        }
        _ => hops.to_string(),
    }
}

const UNKNOWN: &str = "not measured";

/// The cell where bytes cost most and calls least: the largest size, fewest
/// threads, of those the first.
fn largest<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> Option<&'a CellAnalysis> {
    let key = |cell: &CellAnalysis| (cell.cell.size, Reverse(cell.cell.threads));
    cells.reduce(|best, cell| if key(cell) > key(best) { cell } else { best })
}

fn range(values: impl Iterator<Item = Option<f64>>) -> String {
    let values: Option<Vec<f64>> = values.collect();
    values.and_then(|values| arms::span(values.into_iter())).or_dash(arms::copies_range)
}

#[cfg(test)]
mod tests {
    use iolens_stats::analysis::Verdict;

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

    /// A time without a verdict would stand beside those of others without a mark, and what was
    /// sent until an arm failed is a selection.
    #[test]
    fn what_is_refused_has_no_time_and_no_copies() {
        let (run, mut analysis) = findings();
        let entries = |analysis: &Analysis, label: &str| {
            let table = ledger(&run, analysis);
            let row = table.rows.iter().find(|row| row.entries[0].text == label).expect("a row");
            [3, 5, 7].map(|at| row.entries[at].text.clone())
        };
        assert_ne!(entries(&analysis, "sendmsg_iov")[2], NONE);
        let arms = analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms);
        let iov = arms.filter(|arm| arm.arm.label == "sendmsg_iov");
        let contrasts = iov.filter_map(|arm| arm.contrast.as_mut());
        contrasts.for_each(|contrast| contrast.verdict = Verdict::Unranked);
        assert_eq!(entries(&analysis, "sendmsg_iov"), ["0", "1", NONE]);
        assert_ne!(entries(&analysis, "send_staged")[2], NONE);

        let arms = analysis.cells[0].arms.iter_mut();
        let zero = arms.filter(|arm| arm.arm.label == "sendmsg_zerocopy");
        zero.for_each(|arm| {
            (arm.status, arm.copies_sender) = (Status::Failed, Some(0.0));
            arm.zerocopy.as_mut().expect("it sends so").copied_share = Some(0.0);
        });
        assert_eq!(entries(&analysis, "sendmsg_zerocopy (copied)")[..2], ["1", "1"]);
    }

    #[test]
    fn a_late_copy_without_a_share_is_not_counted_as_none() {
        let (run, _) = findings();
        let path = arms::path(&run, "sendmsg_zerocopy", "recv");
        let late = |late| Shares { late, mapped: None };
        let on = [Topology::Veth];
        assert_eq!(count(path.as_ref(), Kind::Late, late(None), &on), "not measured");
        assert_eq!(count(path.as_ref(), Kind::Late, late(Some((0.0, 0.5))), &on), "0 to 0.50");
    }

    #[test]
    fn what_nobody_receives_nobody_copies() {
        let (run, _) = findings();
        let path = arms::path(&run, "send_staged", "recv");
        let none = Shares { late: None, mapped: None };
        let counted =
            |topologies: &[Topology]| count(path.as_ref(), Kind::ToUser, none, topologies);
        assert_eq!(counted(&[Topology::Veth]), "1");
        assert_eq!(counted(&[Topology::Sink]), "0");
        assert_eq!(counted(&[Topology::Veth, Topology::Sink]), "0 to 1");
    }
}

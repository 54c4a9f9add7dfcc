//! Arms by their families, for runs with more arms than one table or figure
//! can show: every ratio at one glance, and the fastest of each family.

use iolens_document::change;
use iolens_document::table::{Column, Entry, Table, Tone, left, right};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::family::{Condition, Family};
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Verdict};

use super::Row;
use crate::arms::{curves, labelled, methods, name, of_cells, span};
use crate::figure::style::toned;
use crate::groups::{distinct, grouped};
use crate::number::{self, InWords, NONE, copies, interval_text, percent};
use crate::screen::table::{Better, compared};
use crate::{parts, words};

/// How [`ratios`] is to be read.
pub(crate) fn reading(plan: &Plan) -> String {
    let marks = if plan.quick { "" } else { " = tie (90% interval), ? undecided." };
    format!(
        "Speed against {}, median slice, ± half the 95% interval for all comparisons together.\
         {marks} * highest of its family at that size. Controls: time per message.",
        plan.baseline
    )
}

/// The ratios of a curve's arms at every size, family by family; in several
/// tables where they would be wider than `width`, and without half-widths
/// where that is enough.
pub(crate) fn ratios(plan: &Plan, cells: &[&CellAnalysis], width: usize) -> Vec<Table> {
    for with_width in [true, false] {
        let table = table(plan, cells, with_width);
        if table.width() <= width {
            return vec![table];
        }
    }
    let half = cells.len().div_ceil(2);
    match cells.len() {
        0 | 1 => vec![table(plan, cells, false)],
        _ => cells.chunks(half).flat_map(|some| ratios(plan, some, width)).collect(),
    }
}

/// Arms of a curve by their families: the baseline's row begins its own.
fn families(cells: &[&CellAnalysis]) -> Vec<(Option<Family>, Vec<String>)> {
    let arms = of_cells(cells);
    let labels = distinct(arms.map(|arm| (arm.family, arm.arm.label.clone())));
    let mut families = grouped(labels);
    families.sort_by_key(|(family, _)| parts::order(*family));
    families
}

fn table(plan: &Plan, cells: &[&CellAnalysis], with_width: bool) -> Table {
    let size = |cell: &&CellAnalysis| Column::left(&cell.cell.size.to_string(), "");
    let mut columns = vec![Column::left("arm", "")];
    columns.extend(cells.iter().map(size));
    let mut table = Table::new("", columns);
    for (family, labels) in families(cells) {
        let mut heading = vec![Entry::toned(parts::name(family), Tone::Group)];
        heading.resize(cells.len() + 1, Entry::default());
        table.push(heading);
        for label in &labels {
            table.push(row(plan, cells, family, label, with_width));
        }
    }
    table
}

fn row(
    plan: &Plan,
    cells: &[&CellAnalysis],
    family: Option<Family>,
    label: &str,
    with_width: bool,
) -> Vec<Entry> {
    let arms: Vec<_> = cells.iter().map(|cell| labelled(cell, label)).collect();
    let shown = arms.iter().flatten().map(|arm| name(arm));
    // Copied at one size is copied.
    let shown = shown.max_by_key(String::len).unwrap_or_default();
    let primitive = arms.iter().flatten().next().map_or(label, |arm| &arm.arm.primitive);
    let mut row = vec![toned(format!(" {shown}"), primitive)];
    row.extend(arms.iter().zip(cells).map(|(arm, cell)| match arm {
        Some(arm) => entry(plan, arm, best(cell, family) == Some(label), with_width),
        None => Entry::toned(NONE, Tone::Faint),
    }));
    row
}

fn entry(plan: &Plan, arm: &ArmAnalysis, is_best: bool, with_width: bool) -> Entry {
    if arm.status != Status::Ok {
        return Entry::toned(arm.status.word(), Tone::Faint);
    }
    let contrast = match (&arm.contrast, arm.arm.role) {
        (Some(contrast), _) => contrast,
        (None, Role::Baseline) => return "0%".into(),
        (None, _) => {
            let time = arm.time().map(|e| e.value);
            let text = time.or_dash(|ns| format!("{} ns", three_digits(ns)));
            return Entry::toned(text, Tone::Faint);
        }
    };
    match contrast.verdict {
        Verdict::Invalid => return Entry::toned("invalid", Tone::Faint),
        Verdict::Unranked => return Entry::toned("unranked", Tone::Faint),
        _ => {}
    }
    let (factor, mark) = compared(contrast, Better::More, plan.quick);
    let mark = if plan.quick { "" } else { mark };
    let half = factor
        .interval
        .filter(|_| with_width)
        .or_empty(|(low, high)| format!(" ±{:.0}", 50.0 * (high - low)));
    let star = if is_best { "*" } else { "" };
    format!("{}{half}{mark}{star}", change(factor.typical)).into()
}

/// The compared arm of a family with the highest ratio in a cell.
fn best(cell: &CellAnalysis, family: Option<Family>) -> Option<&str> {
    let own = cell.arms.iter().filter(|arm| arm.family == family);
    fastest(own).map(|(arm, _)| arm.arm.label.as_str())
}

fn fastest<'a>(arms: impl Iterator<Item = &'a ArmAnalysis>) -> Option<(&'a ArmAnalysis, f64)> {
    let ratio = |arm: &'a ArmAnalysis| match arm.arm.role {
        _ if arm.status != Status::Ok => None,
        Role::Baseline => Some((arm, 1.0)),
        Role::Compared => {
            Some((arm, arm.contrast.as_ref().filter(|c| c.verdict.is_ranked())?.ratio))
        }
        _ => None,
    };
    arms.filter_map(ratio).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// What the rows of [`cheapest`] are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Each {
    /// A row for each family and kind of message.
    Family,
    /// A row for each kind of message, over all families.
    Message,
}

/// The arm that is fastest at most sizes of each curve, for each family or over
/// all, and for each kind of message.
pub(crate) fn cheapest(plan: &Plan, analysis: &Analysis, each: Each) -> Table {
    let against = format!("against {}", plan.baseline);
    let caption = match each {
        Each::Family => "Fastest of each family, by the kind of message that it can send",
        Each::Message => "Fastest of all families, by the kind of message",
    };
    let mut table = Table::of(caption, []);
    for (curve, cells) in curves(analysis) {
        let families: Vec<Option<Family>> = match each {
            Each::Family => families(&cells).into_iter().map(|(family, _)| family).collect(),
            Each::Message => vec![None],
        };
        let mut begins = true;
        for family in families {
            let own = |arm: &&ArmAnalysis| each == Each::Message || arm.family == family;
            let kinds = KINDS.iter().filter_map(|kind| winner(&cells, kind, &own));
            for (i, found) in kinds.enumerate() {
                let begins = std::mem::take(&mut begins);
                let curve = if begins { words::curve_brief(plan, &curve) } else { String::new() };
                let mut row = vec![left("curve", "", curve)];
                if each == Each::Family {
                    let name = if i == 0 { parts::name(family) } else { "" };
                    row.push(left("family", "", Entry::toned(name, Tone::Group)));
                }
                let [message, fastest, ratios] = found;
                row.extend([
                    left("message", "", message),
                    left("fastest in this run", "at so many of the sizes", fastest),
                    left(&against, "change, over those sizes", ratios),
                ]);
                table.fill(begins, row);
            }
        }
    }
    table
}

/// Kinds of messages.
const KINDS: [(Option<Condition>, &str); 5] = [
    (None, "any"),
    (Some(Condition::Contiguous), "contiguous"),
    (Some(Condition::InFile), "in a file"),
    (Some(Condition::Datagram), "may be lost"),
    (Some(Condition::Unchanged), "left unchanged"),
];

/// Who is fastest with messages of a kind at most sizes of a curve, and by how much.
fn winner(
    cells: &[&CellAnalysis],
    (condition, message): &(Option<Condition>, &str),
    own: &dyn Fn(&&ArmAnalysis) -> bool,
) -> Option<[Entry; 3]> {
    let of = |cell: &&'_ CellAnalysis| {
        let arms = cell.arms.iter().filter(own).filter(|arm| arm.condition == *condition);
        fastest(arms).map(|(arm, ratio)| (arm.clone(), ratio))
    };
    let found: Vec<(ArmAnalysis, f64)> = cells.iter().filter_map(of).collect();
    let mut winners = grouped(found.iter().map(|(arm, _)| (&arm.arm.primitive, arm)));
    winners.sort_by_key(|(_, arms)| std::cmp::Reverse(arms.len()));
    let (primitive, arms) = winners.first()?;
    // Two blanks end the name.
    let text = format!("{}  {} of {}", arms[0].shown_label(), arms.len(), cells.len());
    let own = found.iter().filter(|(arm, _)| arm.arm.primitive == **primitive);
    let (low, high) = span(own.map(|(_, ratio)| *ratio))?;
    let ratios = number::extent(change(low), change(high));
    Some([(*message).into(), toned(text, primitive), ratios.into()])
}

/// The sizes and the curve of some tables, as a heading.
pub(crate) fn heading(plan: &Plan, curve: &Cell) -> String {
    let threads = std::iter::once(words::threads(curve.threads));
    words::joined(threads.chain(words::setting(plan, curve)).collect())
}

/// Sizes of cells, for a test that none is lost.
#[cfg(test)]
fn sizes(tables: &[Table]) -> Vec<String> {
    let columns = tables.iter().flat_map(|table| table.columns.iter().skip(1));
    columns.map(|column| column.name.clone()).collect()
}

// Receivers beside each other: the same cell and arm, received in each way.

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
            table.fill(i == 0, receiver_row(i == 0, receiver, arm));
        }
    }
    table
}

fn receiver_row(is_first: bool, receiver: &str, arm: &ArmAnalysis) -> Row {
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
    use crate::fixture;
    use crate::fixture_findings::findings;
    use crate::number::NONE;

    #[test]
    fn every_arm_and_size_has_its_ratio_however_narrow() {
        let (run, analysis) = fixture::families();
        let plan = &run.header.plan;
        let (_, cells) = curves(&analysis).swap_remove(0);
        let wanted: Vec<String> = cells.iter().map(|cell| cell.cell.size.to_string()).collect();
        for (width, tables) in [(usize::MAX, 1), (100, 1), (70, 2)] {
            let found = ratios(plan, &cells, width);
            assert_eq!(found.len(), tables, "{width}");
            assert_eq!(sizes(&found), wanted);
            assert!(found.iter().all(|table| table.width() <= width));
            for arm in &cells[0].arms {
                let name = name(arm);
                let has =
                    |table: &Table| table.rows.iter().any(|row| row.entries[0].text.trim() == name);
                assert!(found.iter().all(has), "{name}");
            }
        }
    }

    #[test]
    fn the_fastest_of_each_family_is_one_of_it() {
        let (run, analysis) = fixture::families();
        let table = cheapest(&run.header.plan, &analysis, Each::Family);
        insta::assert_snapshot!("each_family", table.text(100));
        let all = cheapest(&run.header.plan, &analysis, Each::Message);
        insta::assert_snapshot!("each_message", all.text(100));
    }

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

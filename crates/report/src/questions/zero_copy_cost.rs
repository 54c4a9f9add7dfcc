//! Why zero-copy is not always best: what it pays for pinning pages and for
//! being told when they are free again, and where the copy happens instead.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use iolens_model::axes::Topology;
use iolens_model::data_path::Movement;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, CostModel, Figures};

use super::{Outcome, apart, measured};
use crate::arms::{self, Multiple};
use crate::number::{self, count, list, range, ratio};
use crate::words;

const ZERO: &str = "sendmsg_zerocopy";
const COPYING: &str = "sendmsg_iov";

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    let mut both: Vec<&CellAnalysis> =
        analysis.cells.iter().filter(|cell| pair(cell).is_some()).collect();
    both.sort_by_key(|cell| (cell.cell.threads, cell.cell.size));
    let (Some(small), Some(large)) = (both.first(), largest(&both)) else {
        return Outcome::not_decidable(
            "The run has no cell in which both sendmsg_zerocopy and sendmsg_iov have numbers, and \
             only their difference would show the price of zero-copy.",
        );
    };
    let mut sentences = where_copied(run, &both);
    sentences.extend(against(run, small));
    if small.cell != large.cell {
        sentences.extend(against(run, large));
    }
    sentences.extend(fixed_parts(run, analysis));
    sentences.extend(won(run, &both));
    sentences.push(notifications(&both));
    Outcome::Answered { sentences, evidence: both.iter().flat_map(|c| cpu(run, c)).collect() }
}

/// The largest size with the fewest threads.
fn largest<'a>(cells: &[&'a CellAnalysis]) -> Option<&'a CellAnalysis> {
    let key = |cell: &&CellAnalysis| (cell.cell.size, Reverse(cell.cell.threads));
    cells.iter().copied().max_by_key(key)
}

/// Both arms of a cell, where both have numbers.
fn pair(cell: &CellAnalysis) -> Option<(&ArmAnalysis, &ArmAnalysis)> {
    let with_figures = |id| arms::of(cell, id).filter(|arm| arm.figures.is_some());
    with_figures(ZERO).zip(with_figures(COPYING))
}

/// Where the copy happens now; said of each topology where that matters.
fn where_copied(run: &Run, cells: &[&CellAnalysis]) -> Vec<String> {
    let mut by_topology: BTreeMap<Topology, Vec<&CellAnalysis>> = BTreeMap::new();
    for &cell in cells {
        if let Some(topology) = cell.cell.topology() {
            by_topology.entry(topology).or_default().push(cell);
        }
    }
    let said = by_topology.iter().map(|(on, cells)| (on, said_of_copies(run, cells)));
    let said: Vec<(&Topology, String)> = said.collect();
    let all_the_same = said.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let each = said.iter().map(|(on, said)| match all_the_same {
        true => said.clone(),
        false => format!("On {on}, {}", said.replacen("The", "the", 1)),
    });
    each.take(if all_the_same { 1 } else { said.len() }).collect()
}

fn said_of_copies(run: &Run, cells: &[&CellAnalysis]) -> String {
    let path = arms::path(run, ZERO, arms::receiver(run));
    let mut hops = path.iter().flat_map(|path| path.hops.iter());
    let late = hops.find(|hop| hop.movement == Movement::LateCopy);
    let place = late.map_or_else(String::new, |hop| {
        format!(" (in {}, from {} to {})", hop.function, hop.from, hop.to)
    });
    match arms::copied(cells.iter().copied(), ZERO) {
        Some((_, 0.0)) => "The kernel reports none of the sends as copied: the copy into the \
                           socket buffer is really gone."
            .to_owned(),
        Some(shares) => format!(
            "The copy is postponed, not avoided: the kernel reports {} of the sends as copied \
             after all{place}, since the bytes do not leave through a device that takes them \
             from the program's pages.",
            arms::share(shares)
        ),
        None => "The kernel did not say which share of the sends it copied after all.".to_owned(),
    }
}

/// Time per message against the copying way in one cell, with its interval.
fn against(run: &Run, cell: &CellAnalysis) -> Option<String> {
    let found = arms::multiple(cell, ZERO, COPYING)?;
    let (zero, copying) = pair(cell)?;
    let time = |arm: &ArmAnalysis| Some(arm.figures.as_ref()?.ns_per_message.value);
    let (zero, copying) = (time(zero)?, time(copying)?);
    Some(format!(
        "At {}, {ZERO} takes {}× the time of {COPYING} in the typical slice ({}, \
         n = {}); by totals {}×, {} against {} ns per message.",
        words::subject(&run.header, &cell.cell),
        ratio(found.ratio),
        together(&found),
        found.n,
        ratio(zero / copying),
        three_digits(zero),
        three_digits(copying)
    ))
}

/// `simultaneous 95 % interval 1.26–1.31`.
fn together(found: &Multiple) -> String {
    let words = |i| format!("simultaneous 95 % interval {}", range(i));
    number::interval(found.interval, found.n, words)
}

/// Where zero-copy is surely ahead of the copying way although the kernel
/// copied, and which end's time it saves there.
fn won(run: &Run, cells: &[&CellAnalysis]) -> Option<String> {
    let copied = |cell: &&&CellAnalysis| {
        arms::of(cell, ZERO).and_then(|arm| arm.zerocopy).is_some_and(|z| z.is_copied())
    };
    let mut won: Vec<(&CellAnalysis, Multiple)> = Vec::new();
    for cell in cells.iter().filter(copied) {
        let found = arms::multiple(cell, COPYING, ZERO);
        won.extend(found.filter(|found| found.interval.low > 1.0).map(|found| (*cell, found)));
    }
    let (cell, found) = won.iter().max_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio))?;
    let (zero, copying) = pair(cell)?;
    let (zero, copying) = (zero.figures.as_ref()?, copying.figures.as_ref()?);
    let less = |what: &str, of: fn(&Figures) -> Option<iolens_stats::analysis::Estimate>| {
        let (zero, copying) = (of(zero)?.value, of(copying)?.value);
        Some(format!("{what} {} instead of {}", three_digits(zero), three_digits(copying)))
    };
    let facts: Vec<String> = [
        less("the sender spends CPU time of", |f| f.tx_cpu_ns_per_byte),
        less("the receiver", |f| f.rx_cpu_ns_per_byte).map(|text| format!("{text} ns per byte")),
        less("context switches per message are", |f| f.context_switches_per_message),
    ]
    .into_iter()
    .flatten()
    .collect();
    let others = match won.len() {
        1 => String::new(),
        n => format!(" (of {n} settings in which it is ahead)"),
    };
    let facts = if facts.is_empty() { String::new() } else { format!(" There, {}.", list(&facts)) };
    Some(format!(
        "It can be ahead although the kernel copied: at {}{others}, {COPYING} takes {}× the time \
         of {ZERO} ({}, n = {}).{facts} Where that time goes this run \
         does not say; iolens explain {} CELL would.",
        words::subject(&run.header, &cell.cell),
        ratio(found.ratio),
        together(found),
        found.n,
        run.header.id
    ))
}

/// What a message costs whatever its size: where pinning and notification show.
fn fixed_parts(run: &Run, analysis: &Analysis) -> Option<String> {
    let model = |label: &str, like: Option<&CostModel>| {
        let fits = |m: &&CostModel| {
            m.label == label && m.is_affine() && like.is_none_or(|other| other.curve == m.curve)
        };
        analysis.cost_models.iter().find(fits)
    };
    let zero = model(ZERO, None)?;
    let copying = model(COPYING, Some(zero))?;
    let verdict = match (apart(&zero.fixed_ns, &copying.fixed_ns), zero.fixed_ns.value) {
        (true, fixed) if fixed > copying.fixed_ns.value => {
            "more: that is pinning pages, and reading notifications when they are free again"
        }
        (true, _) => "less",
        (false, _) => "and their intervals overlap",
    };
    Some(format!(
        "{}: the part of a message's time that does not depend on its size is {} for {ZERO} and \
         {} for {COPYING}, {verdict}.",
        words::curve(&run.header, &zero.curve),
        measured(&zero.fixed_ns, "ns"),
        measured(&copying.fixed_ns, "ns")
    ))
}

/// What had to be read back.
fn notifications(cells: &[&CellAnalysis]) -> String {
    let zerocopy = cells.iter().filter_map(|cell| arms::of(cell, ZERO)?.zerocopy);
    let (mut sends, mut completions, mut refused) = (0u64, 0u64, 0u64);
    for figures in zerocopy {
        sends += figures.sends;
        completions += figures.completions;
        refused += figures.enobufs;
    }
    format!(
        "A buffer may be used again only when its completion was read: {sends} sends, \
         {completions} completions read, {refused} sends refused with ENOBUFS and made again."
    )
}

/// CPU time of both ends per byte, side by side.
fn cpu(run: &Run, cell: &CellAnalysis) -> Option<String> {
    let (zero, copying) = pair(cell)?;
    let ends = |arm: &ArmAnalysis| {
        let figures: &Figures = arm.figures.as_ref()?;
        let tx = format!("sender {}", measured(&figures.tx_cpu_ns_per_byte?, "ns per byte"));
        let rx = figures
            .rx_cpu_ns_per_byte
            .map(|rx| format!("receiver {}", measured(&rx, "ns per byte")));
        Some(list(&std::iter::once(tx).chain(rx).collect::<Vec<_>>()))
    };
    Some(format!(
        "{} ({}): CPU time of {ZERO}: {}; of {COPYING}: {}",
        words::subject(&run.header, &cell.cell),
        count(zero.figures.as_ref()?.ns_per_message.n, "trial"),
        ends(zero)?,
        ends(copying)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture_findings::findings;

    #[test]
    fn the_price_and_the_late_copy_are_named() {
        let (run, analysis) = findings();
        let Outcome::Answered { sentences, evidence } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        assert!(sentences[0].contains("reports 100 % of the sends as copied after all (in "));
        assert!(sentences[1].contains("1.40× the time of sendmsg_iov"), "{}", sentences[1]);
        assert!(sentences.iter().any(|s| s.contains("pinning pages")));
        assert!(evidence[0].contains("CPU time of sendmsg_zerocopy: sender"));
    }

    #[test]
    fn what_became_of_the_copy_is_said_of_each_topology() {
        let (run, mut analysis) = findings();
        let mut cell =
            analysis.cells.iter().find(|cell| pair(cell).is_some()).expect("a pair").clone();
        cell.cell.net_mut().unwrap().topology = Topology::Sink;
        let zero = cell.arms.iter_mut().find(|arm| arm.arm.primitive == ZERO).expect("an arm");
        zero.zerocopy.as_mut().expect("counts").copied_share = Some(0.0);
        analysis.cells.push(cell);
        let Outcome::Answered { sentences, .. } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        let begins = |words: &str| sentences.iter().any(|s| s.starts_with(words));
        assert!(begins("On veth, the copy is postponed"), "{sentences:?}");
        assert!(begins("On sink, the kernel reports none of the sends as copied"));
    }

    #[test]
    fn without_both_arms_there_is_nothing_to_compare() {
        let (run, mut analysis) = fixture::run();
        for cell in &mut analysis.cells {
            cell.arms.retain(|arm| arm.arm.primitive != ZERO);
        }
        assert!(matches!(outcome(&run, &analysis), Outcome::NotDecidable { .. }));
    }
}

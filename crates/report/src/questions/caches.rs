//! Which cache level gains most when a copy is left out: misses per KiB, which
//! need a PMU. What the cold working set costs can be said without one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use iolens_model::axes::WorkingSet;

use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, CellAnalysis, Estimate, Figures};

use super::{Outcome, apart, measured};
use crate::arms;
use crate::number::{list, ratio};
use crate::words;

const FROM: &str = "send_staged";
const TO: &str = "sendmsg_iov";

/// Misses per KiB at one level, as a field of the figures.
struct Level {
    name: &'static str,
    metric: &'static str,
    of: fn(&Figures) -> Option<Estimate>,
}

const LEVELS: [Level; 2] = [
    Level { name: "L1d", metric: "l1d_misses", of: |f| f.l1d_misses_per_kib },
    Level { name: "LLC", metric: "llc_misses", of: |f| f.llc_misses_per_kib },
];

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    let known = cold(run, analysis);
    let mut cells: Vec<(&CellAnalysis, Vec<Gain>)> = analysis
        .cells
        .iter()
        .map(|cell| (cell, LEVELS.iter().filter_map(|level| gain(cell, level)).collect()))
        .filter(|(_, gains): &(_, Vec<Gain>)| gains.len() == LEVELS.len())
        .collect();
    cells.sort_by_key(|(cell, _)| (Reverse(cell.cell.size), cell.cell.threads));
    let Some((cell, gains)) = cells.first() else {
        return Outcome::NotDecidable { why: why(run, analysis), known };
    };
    let evidence = cells.iter().flat_map(|(cell, gains)| gains.iter().map(|g| line(run, cell, g)));
    let evidence = evidence.collect();
    let at = words::subject(&run.header, &cell.cell);
    let sure: Vec<&Gain> = gains.iter().filter(|gain| gain.is_sure()).collect();
    let most = sure.iter().max_by(|a, b| a.saved().total_cmp(&b.saved()));
    let sentence = match most {
        Some(most) => format!(
            "{}: at {at}, {TO} has {} misses per KiB fewer there than {FROM} ({}).",
            most.name,
            three_digits(most.saved()),
            list(&gains.iter().map(Gain::words).collect::<Vec<_>>())
        ),
        None => format!(
            "None that these intervals can tell apart at {at} ({}).",
            list(&gains.iter().map(Gain::words).collect::<Vec<_>>())
        ),
    };
    let sentences = std::iter::once(sentence).chain(known).collect();
    Outcome::Answered { sentences, evidence }
}

/// Misses of both arms at one level.
struct Gain {
    name: &'static str,
    from: Estimate,
    to: Estimate,
}

impl Gain {
    fn saved(&self) -> f64 {
        self.from.value - self.to.value
    }

    fn is_sure(&self) -> bool {
        self.saved() > 0.0 && apart(&self.from, &self.to)
    }

    fn words(&self) -> String {
        format!(
            "{}: {} against {}",
            self.name,
            measured(&self.to, "misses per KiB"),
            measured(&self.from, "")
        )
    }
}

fn gain(cell: &CellAnalysis, level: &Level) -> Option<Gain> {
    let misses = |id| (level.of)(arms::of(cell, id)?.figures.as_ref()?);
    Some(Gain { name: level.name, from: misses(FROM)?, to: misses(TO)? })
}

fn line(run: &Run, cell: &CellAnalysis, gain: &Gain) -> String {
    format!("{}: {}", words::subject(&run.header, &cell.cell), gain.words())
}

/// Why there are no misses, and what would give them.
fn why(run: &Run, analysis: &Analysis) -> String {
    let missing = crate::json::not_measured(&analysis.told);
    let mut reasons: BTreeSet<&str> =
        LEVELS.iter().filter_map(|level| missing.get(level.metric).map(String::as_str)).collect();
    if reasons.is_empty() {
        let counters = run.header.host.facts.iter().filter(|fact| fact.group == "counters");
        reasons = counters.filter_map(|fact| fact.value.why()).collect();
    }
    let reason = match reasons.into_iter().collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => "cache misses of both arms were not counted".to_owned(),
        found => found,
    };
    format!(
        "Cache misses per KiB would show it, and here there are none: {reason}. What would decide \
         it: the same plan on a machine, or in a guest, whose processor counters (PMU) can be \
         read."
    )
}

/// What a working set larger than the last-level cache costs, where the plan
/// has both.
fn cold(run: &Run, analysis: &Analysis) -> Vec<String> {
    let mut pairs: Vec<(&CellAnalysis, &CellAnalysis)> = Vec::new();
    for cold in analysis.cells.iter().filter(|c| c.cell.working_set() == Some(WorkingSet::Cold)) {
        let twin = cold.cell.with_net(|net| net.working_set = WorkingSet::Hot);
        pairs.extend(analysis.cells.iter().find(|c| c.cell == twin).map(|hot| (hot, cold)));
    }
    pairs.sort_by_key(|(hot, _)| (Reverse(hot.cell.size), hot.cell.threads));
    let Some((hot, cold)) = pairs.first() else { return Vec::new() };
    let at = format!("{}, {}", hot.cell.size, words::threads(hot.cell.threads));
    let per_byte =
        |cell: &CellAnalysis, id: &str| arms::of(cell, id)?.figures.as_ref()?.ns_per_byte;
    let sentence = |id: &str| {
        let (hot, cold) = (per_byte(hot, id)?, per_byte(cold, id)?);
        Some(format!(
            "Sent from memory larger than the last-level cache, a byte of {id} takes {}× as long \
             at {at}: {} cold, {} hot; in different trials, so the machine's drift is in this \
             ratio{}.",
            ratio(cold.value / hot.value),
            measured(&cold, "ns per byte"),
            measured(&hot, "ns per byte"),
            if run.header.plan.quick { ", and trials are few" } else { "" }
        ))
    };
    arms::CLASSIC.into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::{estimate, findings};

    /// The findings with misses of both arms in the first cell.
    fn counted(staged: (f64, f64), iov: (f64, f64)) -> (Run, Analysis) {
        let (run, mut analysis) = findings();
        for arm in &mut analysis.cells[0].arms {
            let (l1d, llc) = if arm.arm.primitive == FROM { staged } else { iov };
            if let Some(figures) = &mut arm.figures {
                figures.l1d_misses_per_kib = Some(estimate(l1d, 0.5));
                figures.llc_misses_per_kib = Some(estimate(llc, 0.5));
            }
        }
        for cell in &mut analysis.cells[1..] {
            for figures in cell.arms.iter_mut().filter_map(|arm| arm.figures.as_mut()) {
                figures.l1d_misses_per_kib = None;
            }
        }
        (run, analysis)
    }

    fn first(run: &Run, analysis: &Analysis) -> String {
        match outcome(run, analysis) {
            Outcome::Answered { mut sentences, .. } => sentences.remove(0),
            Outcome::NotDecidable { why, .. } => why,
        }
    }

    #[test]
    fn the_level_with_most_misses_saved_wins_if_the_intervals_part() {
        let (run, analysis) = counted((48.0, 6.0), (32.0, 2.0));
        let text = first(&run, &analysis);
        assert!(text.starts_with("L1d: at 64 B"), "{text}");
        assert!(text.contains("has 16.0 misses per KiB fewer"), "{text}");
        let (run, analysis) = counted((48.0, 6.0), (48.1, 6.1));
        assert!(first(&run, &analysis).starts_with("None that these intervals"));
    }

    #[test]
    fn without_counters_it_says_why_and_what_would_decide_it() {
        let (run, mut analysis) = findings();
        for figures in analysis.cells.iter_mut().flat_map(|c| &mut c.arms) {
            if let Some(figures) = &mut figures.figures {
                figures.llc_misses_per_kib = None;
            }
        }
        let text = first(&run, &analysis);
        assert!(text.contains("no PMU in this guest") && text.contains("would decide"), "{text}");
    }

    #[test]
    fn the_cold_set_is_compared_with_the_hot_one() {
        let (run, mut analysis) = findings();
        let mut cold = analysis.cells[0].clone();
        cold.cell.net_mut().unwrap().working_set = WorkingSet::Cold;
        analysis.cells.push(cold);
        let known = super::cold(&run, &analysis);
        assert_eq!(known.len(), 3);
        assert!(known[0].contains("a byte of send_staged takes 1.00× as long"), "{}", known[0]);
    }
}

//! How threads and cache contention interact: goodput by thread count, from
//! where on more do not help, and which of rings and CPUs ran out first.

use std::collections::BTreeSet;

use iolens_model::axes::Cell;
use iolens_model::reading::Reading;
use iolens_model::run::Run;
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{Analysis, CellAnalysis, Estimate, Plateau, PlateauAxis};

use super::{Outcome, apart};
use crate::arms;
use crate::number::{list, ratio};
use crate::results::interval_text;
use crate::words;

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    let rows = rows(analysis);
    if rows.is_empty() {
        return Outcome::not_decidable(
            "The run has one thread count; that takes at least two at one size, such as \
             --threads 1,2,4,8.",
        );
    }
    let largest = rows.iter().map(|row| row.cell.message_bytes).max();
    let mut sentences: Vec<String> = rows
        .iter()
        .filter(|row| Some(row.cell.message_bytes) == largest)
        .map(|row| row.sentence(run))
        .collect();
    sentences.extend(plateaus(run, analysis));
    sentences.extend(rings(run));
    sentences.extend(oversubscribed(run));
    sentences.push(contention(analysis));
    Outcome::Answered { sentences, evidence: rows.iter().map(|row| row.line(run)).collect() }
}

/// One arm at one size over the thread counts.
struct Row<'a> {
    label: &'a str,
    /// The first cell; its threads mean nothing.
    cell: &'a Cell,
    points: Vec<(u32, Estimate)>,
}

impl Row<'_> {
    /// `64 KiB`, with the axes behind it that the plan varies.
    fn place(&self, run: &Run) -> String {
        let curve = words::curve(&run.header.plan, self.cell);
        let axes = curve.split_once(", ").map_or_else(String::new, |(_, axes)| format!(", {axes}"));
        format!("{}{axes}", self.cell.message_bytes)
    }

    fn sentence(&self, run: &Run) -> String {
        let (Some((few, from)), Some((many, to))) = (self.points.first(), self.points.last())
        else {
            return String::new();
        };
        let doubt = if apart(from, to) { "" } else { "; their intervals overlap" };
        format!(
            "At {}, {} goes from {} Gbit/s with {} to {} Gbit/s with {}, {}× (95 % intervals in \
             brackets, n = {}{doubt}).",
            self.place(run),
            self.label,
            interval_text(Some(*from), 1e9),
            words::threads(*few),
            interval_text(Some(*to), 1e9),
            words::threads(*many),
            ratio(to.value / from.value),
            from.n.min(to.n)
        )
    }

    fn line(&self, run: &Run) -> String {
        let point = |(threads, value): &(u32, Estimate)| {
            format!("{} Gbit/s with {threads}", interval_text(Some(*value), 1e9))
        };
        let points: Vec<String> = self.points.iter().map(point).collect();
        format!("{}, {}: {} threads", self.place(run), self.label, list(&points))
    }
}

/// The classic three at every size that has at least two thread counts.
fn rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = Vec::new();
    for cell in &analysis.cells {
        for label in arms::CLASSIC {
            let Some(goodput) = goodput(cell, label) else { continue };
            let alike = |row: &&mut Row| {
                row.label == label
                    && Cell { threads: cell.cell.threads, ..row.cell.clone() } == cell.cell
            };
            match rows.iter_mut().find(alike) {
                Some(row) => row.points.push((cell.cell.threads, goodput)),
                None => rows.push(Row {
                    label,
                    cell: &cell.cell,
                    points: vec![(cell.cell.threads, goodput)],
                }),
            }
        }
    }
    rows.retain(|row| row.points.len() > 1);
    rows.iter_mut().for_each(|row| row.points.sort_by_key(|(threads, _)| *threads));
    rows
}

fn goodput(cell: &CellAnalysis, label: &str) -> Option<Estimate> {
    arms::of(cell, label)?.figures.as_ref()?.goodput_bits_per_s
}

/// From where on more threads do not help.
fn plateaus(run: &Run, analysis: &Analysis) -> Vec<String> {
    let by_threads = |p: &&Plateau| p.axis == PlateauAxis::Threads;
    let sentence = |p: &Plateau| {
        format!(
            "More threads than {} do not raise the goodput of {} at {} by more than δ: {} Gbit/s \
             there, {} at best beyond.",
            p.from.threads,
            p.label,
            words::subject(&run.header.plan, &p.from),
            interval_text(Some(p.goodput_bits_per_s), 1e9),
            interval_text(Some(p.best_beyond_bits_per_s), 1e9)
        )
    };
    analysis.plateaus.iter().filter(by_threads).map(sentence).collect()
}

/// Settings whose rings are larger than a cache.
fn rings(run: &Run) -> Vec<String> {
    let host = &run.header.host;
    let beyond = |cache: &Reading<Bytes>, name: &str| {
        let size = cache.value()?;
        let sent_from = run.trials.iter().filter_map(|trial| {
            let ring = trial.tx.as_ref()?.ring_bytes.filter(|ring| *ring > size.0)?;
            Some((trial.cell.message_bytes, trial.cell.threads, ring))
        });
        let cells: BTreeSet<(Bytes, u32, u64)> = sent_from.collect();
        let (bytes, threads, ring) = cells.first()?;
        Some(format!(
            "The memory that one arm sends from is larger than the {name} ({size}) in {} of {} \
             settings of size and threads, the smallest {bytes} with {} ({}).",
            cells.len(),
            settings(run),
            words::threads(*threads),
            Bytes(*ring)
        ))
    };
    [beyond(&host.l2, "L2 cache of a core"), beyond(&host.llc, "last-level cache")]
        .into_iter()
        .flatten()
        .collect()
}

fn settings(run: &Run) -> usize {
    let all: BTreeSet<(Bytes, u32)> =
        run.trials.iter().map(|trial| (trial.cell.message_bytes, trial.cell.threads)).collect();
    all.len()
}

/// Thread counts that have to share CPUs.
fn oversubscribed(run: &Run) -> Option<String> {
    let plan = &run.header.plan;
    let cpus = plan.cpus.as_ref().unwrap_or(&run.header.host.cpus).len();
    let crowded = |threads: &&u32| **threads as usize > cpus;
    let counts: Vec<String> =
        plan.threads.iter().filter(crowded).map(ToString::to_string).collect();
    (!counts.is_empty() && cpus > 0).then(|| {
        format!(
            "With {} threads at each end there are more threads than CPUs ({cpus}): what changes \
             there is turns on the CPUs as well as caches.",
            counts.join(" or ")
        )
    })
}

/// Whether caches can be told from CPUs at all.
fn contention(analysis: &Analysis) -> String {
    let figures = analysis.cells.iter().flat_map(|c| &c.arms).filter_map(|a| a.figures.as_ref());
    let span = arms::span(figures.filter_map(|f| Some(f.llc_misses_per_kib?.value)));
    match span {
        Some((low, high)) => format!(
            "Last-level cache misses range from {} to {} per KiB over all cells; the figures show \
             them by size and thread count.",
            three_digits(low),
            three_digits(high)
        ),
        None => "How much of this is contention for caches cannot be told apart from sharing of \
                 CPUs here: cache misses were not counted."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn goodput_plateau_and_oversubscription_answer_it() {
        let (run, analysis) = findings();
        let Outcome::Answered { sentences, evidence } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        assert!(sentences[0].starts_with("At 256 KiB, loopback, stream, send_staged goes from "));
        let has = |words: &str| sentences.iter().any(|s| s.contains(words));
        assert!(has("More threads than 1 do not raise the goodput of send_staged"));
        assert!(has("more threads than CPUs (2)"), "{sentences:?}");
        assert!(evidence.iter().all(|line| line.ends_with(" threads")));
    }

    #[test]
    fn rings_beyond_a_cache_are_counted() {
        let (mut run, analysis) = findings();
        run.header.host.l2 = Reading::Exact(Bytes(1024));
        let Outcome::Answered { sentences, .. } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        assert!(sentences.iter().any(|s| s.contains("larger than the L2 cache of a core (1 KiB)")));
    }

    #[test]
    fn one_thread_count_decides_nothing() {
        let (run, mut analysis) = findings();
        analysis.cells.retain(|cell| cell.cell.threads == 1);
        assert!(matches!(outcome(&run, &analysis), Outcome::NotDecidable { .. }));
    }
}

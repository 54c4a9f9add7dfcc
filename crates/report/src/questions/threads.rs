//! How threads and cache contention interact: goodput by thread count, from
//! where on more do not help, and which of rings and CPUs ran out first.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::reading::Reading;
use iolens_model::run::Run;
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{Analysis, ArmAnalysis, Estimate, Plateau, PlateauAxis, Told};

use super::{Outcome, apart};
use crate::arms;
use crate::number::{list, percent, ratio};
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
    let largest = rows.iter().map(|row| row.cell.size).max();
    let mut sentences = vec![conclusion(analysis, &rows)];
    sentences.extend(words::turns(run).map(|text| format!("{text}.")));
    let classic = |row: &&Row| arms::CLASSIC.contains(&row.label);
    let at_largest = |row: &&Row| Some(row.cell.size) == largest;
    sentences.extend(rows.iter().filter(classic).filter(at_largest).map(|row| row.sentence(run)));
    sentences.extend(rings(run, &analysis.told));
    sentences.push(contention(analysis));
    let line = |row: &Row| format!("{}{}", row.line(run), row.plateau(analysis));
    Outcome::Answered { sentences, evidence: rows.iter().map(line).collect() }
}

/// What more threads bring, over all arms and sizes.
fn conclusion(analysis: &Analysis, rows: &[Row]) -> String {
    let of = rows.len();
    let (mut rises, mut falls, mut flat) = (0, 0, 0);
    for row in rows {
        if let (Some((_, from)), Some((_, to))) = (row.points.first(), row.points.last())
            && apart(from, to)
        {
            if to.value > from.value { rises += 1 } else { falls += 1 }
        }
        flat += usize::from(!row.plateau(analysis).is_empty());
    }
    let least = rows.iter().filter_map(|row| row.points.first()).map(|(n, _)| *n).min();
    let most = rows.iter().filter_map(|row| row.points.last()).map(|(n, _)| *n).max();
    let does = match (rises, flat) {
        (0, 0) => "More threads do not surely raise goodput anywhere",
        (0, _) => "More threads surely raise goodput nowhere",
        (_, 0) => "More threads can raise goodput",
        _ => "More threads raise goodput in some settings only",
    };
    format!(
        "{does}: from {} to {} threads it surely rises in {rises} and surely falls in {falls} of \
         {of} settings of arm and size (95 % intervals apart); in {flat} it is shown that more \
         threads than some count bring less than δ = {} more.",
        least.unwrap_or(1),
        most.unwrap_or(1),
        percent(analysis.delta)
    )
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
        let size = std::iter::once(self.cell.size.to_string());
        size.chain(run.header.plan.told_apart(self.cell)).collect::<Vec<_>>().join(", ")
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

    /// `; more than 1 do not help`, where that is shown.
    fn plateau(&self, analysis: &Analysis) -> String {
        let here = |p: &&Plateau| {
            p.axis == PlateauAxis::Threads
                && p.label == self.label
                && Cell { threads: p.from.threads, ..self.cell.clone() } == p.from
        };
        analysis.plateaus.iter().find(here).map_or_else(String::new, |plateau| {
            format!("; more than {} bring no more than δ", plateau.from.threads)
        })
    }
}

/// Every arm that sends, at every size that has at least two thread counts.
fn rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = Vec::new();
    for cell in &analysis.cells {
        let sends = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
        for arm in cell.arms.iter().filter(sends) {
            let label = arm.arm.label.as_str();
            let goodput = arm.figures.as_ref().and_then(|f| f.goodput_bits_per_s);
            let Some(goodput) = goodput else { continue };
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

/// Settings whose rings are larger than a cache.
fn rings(run: &Run, told: &Told) -> Vec<String> {
    let host = &run.header.host;
    let beyond = |cache: &Reading<Bytes>, name: &str| {
        let size = cache.value()?;
        let larger: Vec<&(Bytes, u32, u64)> =
            told.rings.iter().filter(|(.., ring)| *ring > size.0).collect();
        let (bytes, threads, ring) = larger.first()?;
        Some(format!(
            "The memory that one arm sends from is larger than the {name} ({size}) in {} of {} \
             settings of size and threads, the smallest {bytes} with {} ({}).",
            larger.len(),
            told.settings.len(),
            words::threads(*threads),
            Bytes(*ring)
        ))
    };
    [beyond(&host.l2, "L2 cache of a core"), beyond(&host.llc, "last-level cache")]
        .into_iter()
        .flatten()
        .collect()
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
        assert!(sentences[0].starts_with("More threads "), "{}", sentences[0]);
        assert!(sentences[1].contains("the threads of an end share 1 CPU and take turns"));
        let has = |words: &str| sentences.iter().any(|s| s.contains(words));
        assert!(has("At 256 KiB, loopback, stream, send_staged goes from "), "{sentences:?}");
        let flat = evidence.iter().filter(|line| line.ends_with("bring no more than δ"));
        assert_eq!(flat.count(), 1, "{evidence:?}");
        assert!(sentences.len() < 10, "{sentences:?}");
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

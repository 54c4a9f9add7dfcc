//! What the counters say about each model against the others: whether a count per request
//! goes with what a request costs, and who has most and least of it.

use std::collections::BTreeMap;

use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use super::{COST, COUNTERS, Kind, Kinds, models, read};
use crate::answers::{Kind as Sort, Sentence};
use crate::figure::metric::Metric;
use crate::number::{list, optional};
use crate::words;

/// Models that a rank correlation needs at least: of four, one order in 24 is perfect by
/// chance.
const ENOUGH: usize = 5;

/// How the units of counts end of which there are so many for each request.
const PER_REQUEST: &str = "per request";

/// One sentence for a cell; none with fewer than two models that were counted.
pub(super) fn sentences(run: &Run, kinds: &Kinds<'_>, cell: &CellAnalysis) -> Vec<Sentence> {
    let subject = words::subject(&run.header, &cell.cell);
    let one = |(kind, view): (Option<Kind>, CellAnalysis)| {
        let said = |is_each: bool| -> Vec<String> {
            let metrics = COUNTERS.iter().map(|(metric, ..)| metric);
            let of = metrics.filter(|metric| metric.unit.ends_with(PER_REQUEST) == is_each);
            of.filter_map(|metric| against(&view, metric)).collect()
        };
        let mut parts = said(false);
        let each = said(true);
        parts.extend((!each.is_empty()).then(|| format!("{PER_REQUEST}: {}", each.join("; "))));
        let kind = kind.map_or_else(String::new, |kind| format!(", {}", kind.name()));
        let claim = format!("at the server: {}.", parts.join("; "));
        (!parts.is_empty())
            .then(|| Sentence::about(run, Sort::Crossover, format!("{subject}{kind}"), &claim))
    };
    kinds.cells(cell).into_iter().filter_map(one).collect()
}

/// A model's count beside what a request costs it.
struct Point<'a> {
    label: &'a str,
    count: f64,
    cost: f64,
}

/// `context switches 0.02 (uring) to 2.1 (prefork), rank correlation with the cost 0.93`.
fn against(cell: &CellAnalysis, metric: &Metric) -> Option<String> {
    let point = |arm: &'_ ArmAnalysis| {
        let (count, cost) = (read(metric, arm)?.value, read(&COST, arm)?.value);
        Some((arm.arm.label.clone(), count, cost))
    };
    let all: Vec<(String, f64, f64)> = models(cell).filter_map(point).collect();
    let all: Vec<Point> = all
        .iter()
        .map(|(label, count, cost)| Point { label, count: *count, cost: *cost })
        .collect();
    let by_count = |a: &&Point, b: &&Point| a.count.total_cmp(&b.count);
    let (least, most) = (all.iter().min_by(by_count)?, all.iter().max_by(by_count)?);
    if all.len() < 2 {
        return None;
    }
    let name = in_a_sentence(metric.name);
    let unit = match metric.unit.strip_suffix(PER_REQUEST).map(str::trim_end) {
        None | Some("") => String::new(),
        Some(unit) => format!(" {unit}"),
    };
    let value = |count: f64| format!("{}{unit}", optional(Some(count)));
    if value(least.count) == value(most.count) {
        return Some(format!("{name} {} with each", value(least.count)));
    }
    let correlation = match all.len() >= ENOUGH {
        true => correlation(&all).map(|rho| {
            let digits = format!("{rho:.2}").replace('-', "−");
            format!(", rank correlation with the cost {digits}")
        }),
        false => None,
    };
    Some(format!(
        "{name} {} ({}) to {} ({}){}",
        value(least.count),
        least.label,
        value(most.count),
        most.label,
        correlation.unwrap_or_default()
    ))
}

/// A name as it stands within a sentence: `IPC` and `CPUs utilized` stay as they are.
fn in_a_sentence(name: &str) -> String {
    let mut letters = name.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => name.to_owned(),
    }
}

/// Spearman's rank correlation of count and cost, equal counts with their mean rank; null
/// where one of them is the same everywhere.
fn correlation(all: &[Point<'_>]) -> Option<f64> {
    let counts = ranks(all.iter().map(|point| point.count));
    let costs = ranks(all.iter().map(|point| point.cost));
    let mean = (all.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (product(&counts, &counts) * product(&costs, &costs)).sqrt();
    (spread > 0.0).then(|| product(&counts, &costs) / spread)
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The counters that no model has, with the reason that the ends gave.
pub(super) fn not_counted(analysis: &Analysis) -> Option<Sentence> {
    let usable = |arm: &&ArmAnalysis| arm.status == Status::Ok;
    analysis.cells.iter().flat_map(models).find(usable)?;
    let reasons = crate::json::not_measured(&analysis.told);
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (metric, _, named) in &COUNTERS {
        let is_read = analysis.cells.iter().flat_map(models).any(|arm| read(metric, arm).is_some());
        if let Some(why) = reasons.get(named).filter(|_| !is_read) {
            by_reason.entry(why).or_default().push(metric.name.to_owned());
        }
    }
    let parts: Vec<String> =
        by_reason.iter().map(|(why, names)| format!("{}: {why}", list(names))).collect();
    (!parts.is_empty())
        .then(|| Sentence::plain(Sort::Caution, format!("Not counted: {}.", parts.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Option<f64> {
        let point = |&(count, cost): &(f64, f64)| Point { label: "", count, cost };
        correlation(&pairs.iter().map(point).collect::<Vec<_>>())
    }

    #[test]
    fn abbreviations_stay_large() {
        let said = ["CPUs utilized", "Time ready without a CPU", "IPC", "L1d misses"];
        let expect = ["CPUs utilized", "time ready without a CPU", "IPC", "L1d misses"];
        assert_eq!(said.map(in_a_sentence), expect);
    }

    /// By hand: ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4 give 4.5 / √(4.5 · 5).
    #[test]
    fn ranks_are_compared_and_equal_counts_share_theirs() {
        assert_eq!(of(&[(1.0, 10.0), (2.0, 90.0), (9.0, 91.0)]), Some(1.0));
        assert_eq!(of(&[(3.0, 1.0), (2.0, 2.0), (1.0, 3.0)]), Some(-1.0));
        let tied = of(&[(1.0, 1.0), (2.0, 3.0), (2.0, 2.0), (5.0, 4.0)]).expect("a spread");
        assert!((tied - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12, "{tied}");
        assert_eq!(of(&[(2.0, 1.0), (2.0, 2.0), (2.0, 3.0)]), None);
    }
}

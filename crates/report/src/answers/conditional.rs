//! The arms that cannot send every message, beside the ranking: a few by their
//! names, more of them by what they need, with the fastest of each kind.

use iolens_model::family::Condition;
use iolens_stats::analysis::CellAnalysis;

use super::headline::effect_over;
use super::{Point, ratio_range};
use crate::standing::{Candidate, by_condition, conditional, conditional_in};

/// Arms up to which each is named.
const NAMED: usize = 2;

/// Over the sizes of a curve, a clause each.
pub(super) fn over(cells: &[&CellAnalysis], baseline: &str) -> Vec<Point> {
    match conditional_in(cells.iter().copied()).len() {
        0..=NAMED => each_over(cells, baseline),
        _ => fastest_over(cells, baseline),
    }
}

fn each_over(cells: &[&CellAnalysis], baseline: &str) -> Vec<Point> {
    let mut found: Vec<(Candidate, Vec<f64>)> = Vec::new();
    for candidate in cells.iter().flat_map(|cell| conditional(cell)) {
        let ratio = candidate.contrast.map(|contrast| contrast.ratio);
        match found.iter_mut().find(|(known, _)| known.label == candidate.label) {
            Some((_, ratios)) => ratios.extend(ratio),
            None => found.push((candidate, ratio.into_iter().collect())),
        }
    }
    let words = |(candidate, ratios): (Candidate, Vec<f64>)| {
        let only = candidate.condition.map(|condition| format!("only {}", condition.words()));
        let detail = only.into_iter().chain(effect_over(&ratios, baseline));
        Point { lead: candidate.label.to_owned(), detail: detail.collect::<Vec<_>>().join(", ") }
    };
    found.into_iter().map(words).collect()
}

/// Of each condition the arms that are fastest at some size.
struct Fastest {
    condition: Condition,
    /// With how many sizes each is fastest at.
    arms: Vec<(String, usize)>,
    ratios: Vec<f64>,
    of: usize,
}

fn fastest_over(cells: &[&CellAnalysis], baseline: &str) -> Vec<Point> {
    let mut found: Vec<Fastest> = Vec::new();
    for (condition, arms) in cells.iter().flat_map(|cell| by_condition(cell)) {
        let (best, of) = (arms[0], arms.len());
        let ratio = best.contrast.map(|contrast| contrast.ratio);
        let one = match found.iter_mut().find(|one| one.condition == condition) {
            Some(one) => one,
            None => {
                found.push(Fastest { condition, arms: Vec::new(), ratios: Vec::new(), of });
                found.last_mut().expect("was just pushed")
            }
        };
        one.ratios.extend(ratio);
        one.of = one.of.max(of);
        match one.arms.iter_mut().find(|(arm, _)| *arm == best.shown()) {
            Some((_, sizes)) => *sizes += 1,
            None => one.arms.push((best.shown(), 1)),
        }
    }
    found.sort_by_key(|one| one.condition);
    found.into_iter().map(|one| one.point(baseline)).collect()
}

impl Fastest {
    fn point(mut self, baseline: &str) -> Point {
        self.arms.sort_by_key(|(_, sizes)| std::cmp::Reverse(*sizes));
        let arms: Vec<&str> = self.arms.iter().map(|(arm, _)| arm.as_str()).collect();
        let only = of_condition(self.of, self.condition);
        let detail = std::iter::once(only).chain(effect_over(&self.ratios, baseline));
        Point { lead: arms.join(" or "), detail: detail.collect::<Vec<_>>().join(", ") }
    }
}

/// `fastest of the 5 that are only for a message that is contiguous already`.
fn of_condition(of: usize, condition: Condition) -> String {
    let words = condition.words();
    match of {
        1 => format!("only {words}"),
        _ => format!("fastest of the {of} that are only {words}"),
    }
}

/// At one size, each clause behind a semicolon.
pub(super) fn beside(cell: &CellAnalysis) -> String {
    let effect = |arm: &Candidate| {
        arm.contrast.map_or_else(String::new, |contrast| format!(": {}", ratio_range(contrast)))
    };
    let all = conditional(cell);
    if all.len() <= NAMED {
        let words = |arm: &Candidate| format!("; {}{}", with_condition(arm), effect(arm));
        return all.iter().map(words).collect();
    }
    let fastest = |(condition, arms): &(Condition, Vec<Candidate>)| {
        let of = of_condition(arms.len(), *condition);
        format!("; {}, {of}{}", arms[0].shown(), effect(&arms[0]))
    };
    by_condition(cell).iter().map(fastest).collect()
}

/// `send, only for a message that is contiguous already`.
fn with_condition(candidate: &Candidate) -> String {
    match candidate.condition {
        Some(condition) => format!("{}, only {}", candidate.label, condition.words()),
        None => candidate.label.to_owned(),
    }
}

//! The arms that cannot send every message, beside the ranking: a few by their
//! names, more of them by what they need, with the fastest of each kind.

use iolens_model::family::Condition;
use iolens_stats::analysis::CellAnalysis;

use super::ratio_range;
use crate::standing::{Candidate, by_condition, conditional};

/// Arms up to which each is named.
const NAMED: usize = 2;

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

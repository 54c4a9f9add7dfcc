//! What an arm calls more or less often than its baseline, per operation.
//!
//! Counts that are the same in every trial are exact, and so is their change. Where they are not
//! (a runtime that collects or wakes threads when it likes), there is a range and no verdict.

use std::collections::BTreeSet;

use iolens_model::ab::AbCalls;

use crate::calls::calls_per_operation;

/// Counts are the same if they are to so many parts of a call per operation: four digits.
const PARTS: f64 = 10_000.0;

/// The change of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallChange {
    /// Its name.
    pub name: String,
    /// What is known of it.
    pub change: ChangePerOperation,
}

/// How a count per operation of an arm differs from the baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangePerOperation {
    /// All trials of both agree.
    Exact {
        /// The baseline's count.
        from: f64,
        /// The arm's.
        to: f64,
    },
    /// Trials differ. This is the range of the differences between any two of them.
    Spread {
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
    },
}

impl ChangePerOperation {
    fn between(baseline: &[f64], arm: &[f64]) -> ChangePerOperation {
        match (agreed(baseline), agreed(arm)) {
            (Some(from), Some(to)) => ChangePerOperation::Exact { from, to },
            _ => ChangePerOperation::Spread {
                low: lowest(arm) - highest(baseline),
                high: highest(arm) - lowest(baseline),
            },
        }
    }

    /// Whether it is exact and there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, ChangePerOperation::Exact { from, to } if from == to)
    }
}

/// The change of every call that any trial has made, sorted by name. Each trial is what
/// [`AbCalls`] it counted; without a trial on both sides nothing is known.
#[must_use]
pub fn call_changes(baseline: &[&[AbCalls]], arm: &[&[AbCalls]]) -> Vec<CallChange> {
    if baseline.is_empty() || arm.is_empty() {
        return Vec::new();
    }
    let all = baseline.iter().chain(arm).flat_map(|trial| trial.iter());
    let names: BTreeSet<&str> = all.map(|calls| calls.name.as_str()).collect();
    let change = |name: &str| {
        let [baseline, arm] = [baseline, arm]
            .map(|trials| trials.iter().map(|trial| of_name(trial, name)).collect::<Vec<f64>>());
        ChangePerOperation::between(&baseline, &arm)
    };
    names
        .into_iter()
        .map(|name| CallChange { name: name.to_owned(), change: change(name) })
        .collect()
}

/// The change of all calls together; `None` without a trial on both sides.
#[must_use]
pub fn change_of_all_calls(
    baseline: &[&[AbCalls]],
    arm: &[&[AbCalls]],
) -> Option<ChangePerOperation> {
    let sums = |trials: &[&[AbCalls]]| {
        trials.iter().map(|trial| all_calls_per_operation(trial)).collect::<Vec<f64>>()
    };
    let are_there = !baseline.is_empty() && !arm.is_empty();
    are_there.then(|| ChangePerOperation::between(&sums(baseline), &sums(arm)))
}

/// Calls of every name per operation, in one trial.
#[must_use]
pub fn all_calls_per_operation(trial: &[AbCalls]) -> f64 {
    trial.iter().map(calls_per_operation).sum()
}

/// The count of a trial, which is none where the name does not occur.
fn of_name(trial: &[AbCalls], name: &str) -> f64 {
    trial.iter().find(|calls| calls.name == name).map_or(0.0, calls_per_operation)
}

/// The count on which all agree, to four digits.
fn agreed(counts: &[f64]) -> Option<f64> {
    let mut rounded = counts.iter().map(|count| (count * PARTS).round() / PARTS);
    let first = rounded.next()?;
    // Without the sign of a zero.
    rounded.all(|other| other == first).then_some(first + 0.0)
}

fn lowest(counts: &[f64]) -> f64 {
    counts.iter().copied().fold(f64::INFINITY, f64::min)
}

fn highest(counts: &[f64]) -> f64 {
    counts.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial with slices of 20 and 220 operations.
    fn trial(calls: &[(&str, [u64; 2])]) -> Vec<AbCalls> {
        let one = |&(name, calls): &(&str, [u64; 2])| AbCalls {
            name: name.to_owned(),
            calls,
            operations: [20, 220],
        };
        calls.iter().map(one).collect()
    }

    fn check(baseline: &[&[AbCalls]], arm: &[&[AbCalls]], expect: &[(&str, ChangePerOperation)]) {
        let changes = call_changes(baseline, arm);
        let found: Vec<_> = changes.iter().map(|one| (one.name.as_str(), one.change)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn where_all_trials_agree_the_change_is_exact() {
        let before = trial(&[("pread64", [400, 4400]), ("read", [1, 1]), ("write", [1, 1])]);
        let after = trial(&[("brk", [20, 220]), ("pread64", [420, 4620]), ("write", [1, 1])]);
        let exact = |from, to| ChangePerOperation::Exact { from, to };
        check(
            &[&before, &before],
            &[&after, &after],
            &[
                ("brk", exact(0.0, 1.0)),
                ("pread64", exact(20.0, 21.0)),
                ("read", exact(0.0, 0.0)),
                ("write", exact(0.0, 0.0)),
            ],
        );
        let all = change_of_all_calls(&[&before], &[&after]);
        assert_eq!(all, Some(exact(20.0, 22.0)));
        assert!(exact(20.0, 20.0).is_none() && !exact(20.0, 21.0).is_none());
    }

    #[test]
    fn where_trials_differ_there_is_a_range_and_no_verdict() {
        let one = trial(&[("futex", [2, 22])]);
        let other = trial(&[("futex", [2, 42])]);
        let spread = ChangePerOperation::Spread { low: 0.0, high: 0.1 };
        check(&[&one, &one], &[&one, &other], &[("futex", spread)]);
        // A call more in 200 operations is a difference, one in 200000 is none.
        let close = trial(&[("futex", [2, 23])]);
        assert!(!matches!(
            call_changes(&[&one], &[&one, &close])[0].change,
            ChangePerOperation::Exact { .. }
        ));
        let many = |calls| AbCalls { name: "futex".into(), calls, operations: [20_000, 220_000] };
        let change = change_of_all_calls(&[&[many([0, 0])]], &[&[many([0, 1])], &[many([0, 0])]]);
        assert!(change.is_some_and(|change| change.is_none()), "{change:?}");
        // Fewer calls in the longer slice are no more than none, and their zero has no sign.
        let fewer = change_of_all_calls(&[&[many([0, 0])]], &[&[many([1, 0])]]);
        assert_eq!(format!("{fewer:?}"), "Some(Exact { from: 0.0, to: 0.0 })");
    }

    #[test]
    fn a_whole_command_is_one_operation() {
        let run = AbCalls { name: "openat".into(), calls: [0, 7], operations: [0, 1] };
        assert_eq!(calls_per_operation(&run), 7.0);
    }

    #[test]
    fn without_trials_nothing_is_known() {
        let one = trial(&[("read", [1, 2])]);
        check(&[], &[&one], &[]);
        assert_eq!(change_of_all_calls(&[&one], &[]), None);
    }
}

//! What is found, in words.

use iolens_model::ab::AbQuantity;
use iolens_model::run::Run;
use iolens_stats::ab::{AbCell, AbContrast, AbMissing, AbMissingWhy, AbReason, AbVerdict};
use iolens_stats::analysis::Interval;

use crate::number::{list, percent};

/// What a run compares, and how it is called.
pub(super) struct Said<'a> {
    pub(super) names: Vec<&'a str>,
    pub(super) delta: f64,
}

impl<'a> Said<'a> {
    pub(super) fn of(run: &'a Run) -> Said<'a> {
        let names = run.header.plan.primitives.iter().map(String::as_str).collect();
        Said { names, delta: run.header.plan.delta }
    }

    pub(super) fn name(&self, arm: usize) -> &'a str {
        self.names.get(arm).copied().unwrap_or("?")
    }

    /// What is concluded of each arm of a setting, a sentence each.
    pub(super) fn verdicts(&self, cell: &AbCell) -> Vec<String> {
        let arm = |arm| {
            let own = cell.judgement.contrasts.iter().filter(|contrast| contrast.arm == arm);
            let missing = cell.judgement.missing.iter().filter(|missing| missing.arm == arm);
            self.of_arm(arm, &own.collect::<Vec<_>>(), &missing.collect::<Vec<_>>())
        };
        (1..self.names.len()).map(arm).collect()
    }

    /// `pr is SLOWER than main by more than 3%: +4.9% time [+4.6, +5.2], +4.8% CPU [+4.4, +5.1]`.
    fn of_arm(&self, arm: usize, own: &[&AbContrast], missing: &[&AbMissing]) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut left = own.to_vec();
        while let Some(verdict) = left.iter().map(|contrast| contrast.verdict).min_by_key(weight) {
            let (now, rest): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|contrast| contrast.verdict == verdict);
            parts.push(self.clause(arm, &now, parts.is_empty()));
            left = rest;
        }
        parts.extend(missing.iter().map(|missing| self.missing(missing)));
        parts.join("; ")
    }

    /// What is said of the quantities of an arm that have one verdict.
    fn clause(&self, arm: usize, alike: &[&AbContrast], is_first: bool) -> String {
        let (name, base) = (self.name(arm), self.name(0));
        let changes: Vec<String> = alike.iter().map(|contrast| changed(contrast)).collect();
        let changes = changes.join(", ");
        let delta = percent(self.delta);
        let subject = if is_first { format!("{name} is ") } else { String::new() };
        let Some(first) = alike.first() else { return String::new() };
        match (&first.reason, first.verdict) {
            (AbReason::CopiesDiffer { of, interval, .. }, _) => format!(
                "{subject}INVALID: two copies of {} differ by {}",
                self.name(*of),
                bracket(*interval)
            ),
            (AbReason::TooFew { units, least }, _) => {
                format!("{subject}INCONCLUSIVE: {units} of the {least} trials that a verdict takes")
            }
            (AbReason::Beyond { bound, .. }, verdict) => {
                let bound = percent(*bound);
                format!("{subject}{} than {base} by more than {bound}: {changes}", verdict.word())
            }
            (AbReason::WithinAllowance { .. }, _) => format!(
                "{subject}{} than {base} as it was built, {changes}, but relinking the same source \
                 can do that: BUILD",
                direction(first)
            ),
            (_, AbVerdict::Equivalent) => {
                let with = if is_first { format!(" to {base}") } else { String::new() };
                format!("{subject}EQUIVALENT{with} within {delta}: {changes}")
            }
            (_, AbVerdict::Small) => {
                format!("{subject}{} than {base}, maybe by less than {delta}: {changes} (SMALL)", direction(first))
            }
            _ => format!("{subject}INCONCLUSIVE: {changes}"),
        }
    }

    fn missing(&self, missing: &AbMissing) -> String {
        let what = quantity(missing.quantity);
        match missing.why {
            AbMissingWhy::OfBaseline => format!("no {what} of {}", self.name(0)),
            AbMissingWhy::OfArm => format!("no {what} of {}", self.name(missing.arm)),
            AbMissingWhy::NeverTogether => {
                let names = [0, missing.arm].map(|arm| self.name(arm).to_owned());
                format!("no {what} of {} in one round", list(&names))
            }
        }
    }
}

/// What is told first.
fn weight(verdict: &AbVerdict) -> usize {
    match verdict {
        AbVerdict::Invalid => 0,
        AbVerdict::Slower => 1,
        AbVerdict::Faster => 2,
        AbVerdict::Build => 3,
        AbVerdict::Small => 4,
        AbVerdict::Inconclusive => 5,
        AbVerdict::Equivalent => 6,
    }
}

fn direction(contrast: &AbContrast) -> &'static str {
    if contrast.change.is_some_and(|change| change < 0.0) { "faster" } else { "slower" }
}

/// `time`, `CPU`.
pub(super) fn quantity(quantity: AbQuantity) -> &'static str {
    match quantity {
        AbQuantity::Time => "time",
        AbQuantity::Cpu => "CPU",
    }
}

/// `+4.9% time [+4.6, +5.2]`.
fn changed(contrast: &AbContrast) -> String {
    let change = contrast.change.map_or_else(|| "no number for".to_owned(), signed);
    let interval = contrast.pointwise.map(|interval| format!(" {}", bracket(interval)));
    format!("{change} {}{}", quantity(contrast.quantity), interval.unwrap_or_default())
}

/// `+4.9%`, `−0.1%`.
pub(super) fn signed(change: f64) -> String {
    format!("{}%", number(change))
}

/// `[+4.6, +5.2]`.
pub(super) fn bracket(interval: Interval) -> String {
    let [low, high] = ends(interval);
    format!("{low} {high}")
}

/// `[+4.6,` and `+5.2]`.
pub(super) fn ends(interval: Interval) -> [String; 2] {
    [format!("[{},", number(interval.low)), format!("{}]", number(interval.high))]
}

/// A change in per cent, with its sign.
fn number(change: f64) -> String {
    let value = change * 100.0;
    let digits = usize::from(value.abs() < 99.95);
    let shown = format!("{:.digits$}", value.abs());
    let sign = match value {
        _ if shown.trim_matches(['0', '.']).is_empty() => "",
        value if value < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{shown}")
}

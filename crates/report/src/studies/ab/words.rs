//! What is found, in words.

use iolens_document::Joined;
use iolens_model::ab::{AbMode, AbQuantity, AbSetting};
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::three_digits;
use iolens_stats::ab::{
    AbAnalysis, AbCell, AbContrast, AbMissing, AbMissingWhy, AbReason, AbUnit, AbVerdict,
};
use iolens_stats::analysis::Interval;

use crate::number::{InWords, count, list, percent};

/// What a run compares, and how it is called.
pub(super) struct Said<'a> {
    pub(super) names: Vec<&'a str>,
    pub(super) delta: f64,
    /// What is counted of it.
    pub(super) unit: AbUnit,
}

impl<'a> Said<'a> {
    pub(super) fn of(run: &'a Run) -> Said<'a> {
        let names = run.header.plan.primitives.iter().map(String::as_str).collect();
        Said { names, delta: run.header.plan.delta, unit: AbUnit::of(mode_of(&run.header)) }
    }

    pub(super) fn name(&self, arm: usize) -> &'a str {
        self.names.get(arm).copied().unwrap_or("?")
    }

    /// What is concluded of each arm of a setting, a sentence each.
    pub(super) fn verdicts(&self, cell: &AbCell) -> Vec<String> {
        let arm = |arm| {
            let missing = cell.judgement.missing.iter().filter(|missing| missing.arm == arm);
            let mut parts: Vec<String> = Vec::new();
            for alike in by_verdict(cell, arm) {
                let claim = self.claim(arm, &alike, parts.is_empty());
                parts.push([claim, evidence(&alike, self.unit)].join(": "));
            }
            match self.failed(cell, arm).filter(|_| parts.is_empty()) {
                Some(failed) => parts.push(failed),
                None => parts.extend(missing.map(|missing| self.missing(missing))),
            }
            parts.join("; ")
        };
        (1..self.names.len()).map(arm).collect()
    }

    /// The same in a few words: what weighs most of each arm.
    pub(super) fn claims(&self, cell: &AbCell) -> Vec<String> {
        let first = |arm| Some(self.claim(arm, by_verdict(cell, arm).first()?, true));
        (1..self.names.len()).filter_map(first).collect()
    }

    /// `pr is SLOWER than main by more than 3%`, of the quantities of an arm that have one
    /// verdict; what is not told first has no subject.
    fn claim(&self, arm: usize, alike: &[&AbContrast], is_first: bool) -> String {
        let Some(first) = alike.first() else { return String::new() };
        let (base, delta) = (self.name(0), percent(self.delta));
        let subject = if is_first { format!("{} is ", self.name(arm)) } else { String::new() };
        let to_base = if is_first { format!(" to {base}") } else { String::new() };
        let said = match (&first.reason, first.verdict) {
            (AbReason::CopiesDiffer { of, .. }, _) => {
                format!("INVALID, because two copies of {} differ", self.name(*of))
            }
            (AbReason::WorksBetween { of, .. }, _) => {
                format!("INVALID, because {} works between its turns", self.name(*of))
            }
            (AbReason::Beyond { bound, .. }, verdict) => {
                format!("{} than {base} {}", verdict.word(), beyond(*bound, self.delta))
            }
            (_, AbVerdict::Build) => {
                format!("{} than {base} as it was built (BUILD)", direction(first))
            }
            (_, AbVerdict::Equivalent) => format!("EQUIVALENT{to_base} within {delta}"),
            (_, AbVerdict::Small) => {
                format!("{} than {base}, maybe by less than {delta} (SMALL)", direction(first))
            }
            (_, verdict) => verdict.word().to_owned(),
        };
        format!("{subject}{said}")
    }

    /// Why an arm has nothing to be compared with, where that or the arm failed.
    fn failed(&self, cell: &AbCell, arm: usize) -> Option<String> {
        let has_failed = |arm: &usize| cell.arms.get(*arm).is_some_and(|arm| arm.failed > 0);
        let failed = [0, arm].into_iter().filter(has_failed);
        let failed: Vec<&str> = failed.map(|arm| self.name(arm)).collect();
        (!failed.is_empty())
            .then(|| format!("there is nothing to compare: {} failed", list(&failed)))
    }

    fn missing(&self, missing: &AbMissing) -> String {
        let what = quantity(missing.quantity);
        match missing.why {
            AbMissingWhy::OfBaseline => format!("no {what} of {}", self.name(0)),
            AbMissingWhy::OfArm => format!("no {what} of {}", self.name(missing.arm)),
            AbMissingWhy::OfLinks => {
                format!("it is not known which links of {} ran", self.name(missing.arm))
            }
            AbMissingWhy::NeverTogether => {
                let names = [0, missing.arm].map(|arm| self.name(arm));
                format!("no {what} of {} in one round", list(names))
            }
        }
    }
}

/// Loops, or whole commands.
pub(super) fn mode_of(header: &RunHeader) -> AbMode {
    header.plan.ab().map_or(AbMode::Loop, |axes| axes.mode)
}

/// `by more than 3%`, or by more than what the linker may have caused, if that is more.
pub(super) fn beyond(bound: f64, delta: f64) -> String {
    match percent(bound) {
        shown if bound > delta => format!("by more than the {shown} that linking can cause"),
        shown => format!("by more than {shown}"),
    }
}

/// The contrasts of an arm, those of one verdict together, what weighs most first.
fn by_verdict(cell: &AbCell, arm: usize) -> Vec<Vec<&AbContrast>> {
    let own = cell.judgement.contrasts.iter().filter(|contrast| contrast.arm == arm);
    let mut own: Vec<&AbContrast> = own.collect();
    own.sort_by_key(|contrast| weight(&contrast.verdict));
    own.chunk_by(|a, b| a.verdict == b.verdict).map(<[_]>::to_vec).collect()
}

/// The numbers behind a verdict. The table has all intervals, the sentence that of its first.
fn evidence(alike: &[&AbContrast], unit: AbUnit) -> String {
    let changes = alike.iter().enumerate().map(|(nth, one)| changed(one, nth == 0));
    let changes = changes.joined(", ");
    match alike.first().map(|first| &first.reason) {
        Some(AbReason::CopiesDiffer { interval, .. }) => format!("by {}%", bracket(*interval)),
        Some(AbReason::WorksBetween { share, bound, .. }) => format!(
            "{} as much CPU time as within them (limit {}); a longer --slice may help",
            percent(*share),
            percent(*bound)
        ),
        Some(AbReason::TooFew { units, least }) => {
            let all = count(*least, unit.word());
            format!("{changes}; {units} of the {all} a verdict needs")
        }
        Some(AbReason::TooFewLinks { links: [base, arm], least }) => {
            format!("{base} and {arm} of the {least} links a verdict needs")
        }
        Some(AbReason::WithinAllowance { .. }) => {
            format!("{changes}; linking the same source again can do that")
        }
        Some(
            AbReason::Open { noise: Some(noise), .. }
            | AbReason::MayBeSmall { noise: Some(noise), .. },
        ) => {
            let by = noise.half_width.or_empty(|half| format!(" (±{})", percent(half)));
            format!(
                "{changes}; copies of one program are not shown to agree within the threshold{by}"
            )
        }
        _ => changes,
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

/// `+4.9% time [+4.6, +5.2]`, or without the interval.
fn changed(contrast: &AbContrast, has_interval: bool) -> String {
    let change = contrast.change.map_or_else(|| "no number for".to_owned(), signed);
    let interval = contrast.pointwise.filter(|_| has_interval);
    let interval = interval.or_empty(|interval| format!(" {}", bracket(interval)));
    format!("{change} {}{interval}", quantity(contrast.quantity))
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

/// `−0.6 to +0.3%`.
pub(super) fn from_to(interval: Interval) -> String {
    format!("{} to {}", number(interval.low), signed(interval.high))
}

/// `[+4.6,` and `+5.2]`.
pub(super) fn ends(interval: Interval) -> [String; 2] {
    [format!("[{},", number(interval.low)), format!("{}]", number(interval.high))]
}

/// A change and the ends of its interval, which stand in three parts.
pub(super) fn change_parts(change: Option<f64>, interval: Option<Interval>) -> [String; 3] {
    let [low, high] = interval.map_or_else(Default::default, ends);
    [change.or_empty(signed), low, high]
}

/// The same in one part.
pub(super) fn with_interval(change: Option<f64>, interval: Option<Interval>) -> String {
    let interval = interval.or_empty(|interval| format!(" {}", bracket(interval)));
    format!("{}{interval}", change.or_empty(signed))
}

/// The largest share of changes that code placement may have, where it is worth telling.
pub(super) fn layout(allowances: impl Iterator<Item = Option<f64>>) -> Option<String> {
    allowances.flatten().reduce(f64::max).filter(|largest| *largest >= 5e-4).map(percent)
}

/// The contrasts of a setting in one quantity.
pub(super) fn contrasts(
    cell: &AbCell,
    of: AbQuantity,
) -> impl Iterator<Item = &AbContrast> + Clone {
    cell.judgement.contrasts.iter().filter(move |contrast| contrast.quantity == of)
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

/// How programs are measured.
pub(super) fn mode(mode: AbMode) -> &'static str {
    match mode {
        AbMode::Loop => "loop protocol",
        AbMode::Command => "whole commands",
    }
}

/// What tells a setting from others.
pub(super) fn place(cell: &AbCell) -> String {
    setting_words(&cell.setting)
}

/// `rows 10: `, before what is said of one of several settings.
pub(super) fn of_setting(analysis: &AbAnalysis, cell: &AbCell) -> String {
    if analysis.cells.len() > 1 { format!("{}: ", place(cell)) } else { String::new() }
}

/// `rows 10, mode fast`.
pub(super) fn setting_words(setting: &AbSetting) -> String {
    let values = setting.values.iter().map(|(name, value)| format!("{name} {value}"));
    values.joined(", ")
}

/// `20`, `1.5`, `0.012`.
pub(super) fn per_operation(n: f64) -> String {
    match n {
        n if n.abs() < 5e-5 => "0".to_owned(),
        n if (n - n.round()).abs() < 5e-5 => format!("{n:.0}"),
        n => three_digits(n),
    }
}

/// The unit in which times of a table are told.
pub(super) struct Unit {
    pub(super) word: &'static str,
    ns: f64,
}

impl Unit {
    pub(super) fn of(cell: &AbCell) -> Unit {
        let times = (0..cell.arms.len()).filter_map(|arm| cell.op_ns(arm, AbQuantity::Time));
        let (word, ns) = match times.fold(0.0, f64::max) {
            most if most >= 1e9 => ("s", 1e9),
            most if most >= 1e6 => ("ms", 1e6),
            most if most >= 1e3 => ("µs", 1e3),
            _ => ("ns", 1.0),
        };
        Unit { word, ns }
    }

    pub(super) fn shown(&self, ns: Option<f64>) -> String {
        ns.or_empty(|ns| three_digits(ns / self.ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_beyond_the_threshold_is_the_linkers() {
        assert_eq!(beyond(0.03, 0.03), "by more than 3%");
        assert_eq!(beyond(0.046, 0.03), "by more than the 4.6% that linking can cause");
    }
}

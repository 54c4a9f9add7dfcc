//! Where CPU time went, in sentences and tables: shares of classes of work by
//! arm and end, and what one arm spends per message beyond another one.

use std::collections::BTreeMap;

use iolens_model::profile::ProfileTrial;
use iolens_model::units::three_digits;
use iolens_stats::analysis::Estimate;
use iolens_stats::attribution::{
    Against, ArmAttribution, Class, ClassDifference, Explanation, Scope, ScopeAttribution,
};
use serde_json::json;

use crate::number;
use crate::table::{Column, Entry, Table, Tone};
use crate::text::Style;
use crate::wrap;

/// A difference is worth a word from this part of the other arm's CPU time on.
const WORTH_SAYING: f64 = 0.02;

/// Classes that a sentence names, at most.
const NAMED_MAX: usize = 4;

/// Functions below a table, at most.
const FUNCTIONS_SHOWN: usize = 6;

/// The explanation of a cell on a terminal.
#[must_use]
pub fn text(explanation: &Explanation, style: &Style) -> String {
    let attribution = &explanation.attribution;
    let mut out = format!("{}\n\n", title(explanation));
    for sentence in sentences(explanation) {
        out.push_str(&wrap::hanging(&sentence, style.width, 2));
        out.push_str("\n\n");
    }
    for scope in Scope::ALL {
        if let Some(table) = shares(explanation, scope) {
            out.push_str(&format!("{}\n\n{}\n", table.caption, table.text(style.width)));
        }
    }
    out.push_str("Functions in which the CPU was most often, both ends:\n");
    for arm in &attribution.arms {
        let line = format!("{}: {}", arm.arm, functions(&arm.both));
        out.push_str(&wrap::hanging(&line, style.width, 2));
        out.push('\n');
    }
    for line in cautions(explanation) {
        out.push_str(&format!("\n{}\n", wrap::hanging(&line, style.width, 2)));
    }
    out
}

/// What is explained: the cell, and what the shares are shares of.
#[must_use]
pub fn title(explanation: &Explanation) -> String {
    let attribution = &explanation.attribution;
    let of =
        if attribution.kernel { "CPU time" } else { "user time (the kernel's is not sampled)" };
    format!("Where the {of} goes: {}, {} sampled trials", attribution.cell, attribution.trials)
}

/// What each arm spends beyond the baseline, a sentence or two each.
#[must_use]
pub fn sentences(explanation: &Explanation) -> Vec<String> {
    explanation.against.iter().flat_map(|against| of_pair(explanation, against)).collect()
}

fn of_pair(explanation: &Explanation, against: &Against) -> Vec<String> {
    let (arm, other) = (&against.arm, &against.other);
    let mut sentences = Vec::new();
    if let Some(only) = &against.only {
        let classes: Vec<String> = only.classes.iter().map(|c| c.words().to_owned()).collect();
        sentences.push(format!(
            "{arm} spends {} of its CPU time on {}, which {other} does not have.",
            share_and_half(&only.share),
            number::list(&classes),
        ));
    }
    let arms = &explanation.attribution.arms;
    let Some(of_other) = arms.iter().find(|a| a.arm == *other) else { return sentences };
    let worth = WORTH_SAYING * of_other.both.cpu_ns_per_message.value;
    let said: Vec<String> = against
        .classes
        .iter()
        .filter(|class| is_sure(&class.ns_per_message))
        .filter(|class| class.ns_per_message.value.abs() >= worth)
        .take(NAMED_MAX)
        .map(part)
        .collect();
    let total = &against.cpu_ns_per_message;
    let (less, more) = (total.value < 0.0, is_sure(total));
    let beginning = if more {
        format!(
            "{arm} takes {} {} CPU time per message than {other}, both ends together{}",
            time(total.value.abs()),
            if less { "less" } else { "more" },
            interval(total),
        )
    } else {
        format!(
            "{arm} and {other} take CPU time per message that samples of this number do not tell \
             apart{}",
            interval(total)
        )
    };
    sentences.push(match said.is_empty() {
        true => format!("{beginning}."),
        false => format!("{beginning}: {}.", said.join(", ")),
    });
    sentences
}

/// `+1.2 µs late copy`.
fn part(class: &ClassDifference) -> String {
    let value = class.ns_per_message.value;
    let sign = if value < 0.0 { '−' } else { '+' };
    format!("{sign}{} {}", time(value.abs()), class.class.words())
}

/// Whether an interval excludes zero.
fn is_sure(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|interval| !interval.contains(0.0))
}

fn interval(estimate: &Estimate) -> String {
    let Some(interval) = estimate.interval else { return String::new() };
    format!(" (95 % interval {} to {})", signed(interval.low), signed(interval.high))
}

fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", time(-ns)) } else { time(ns) }
}

/// A time in the unit that keeps it short.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns => (ns / 1e6, "ms"),
    };
    format!("{} {unit}", three_digits(value))
}

/// `31 % ± 2`.
fn share_and_half(share: &Estimate) -> String {
    let percent = |x: f64| format!("{:.*}", usize::from(x < 0.0995), 100.0 * x);
    let half = share.interval.map(|i| (i.high - i.low) / 2.0);
    half.map_or_else(
        || format!("{} %", percent(share.value)),
        |half| format!("{} % ± {}", percent(share.value), percent(half)),
    )
}

/// Shares by class and arm of one scope; null where no arm has it.
#[must_use]
pub fn shares(explanation: &Explanation, scope: Scope) -> Option<Table> {
    let arms: Vec<(&ArmAttribution, &ScopeAttribution)> = explanation
        .attribution
        .arms
        .iter()
        .filter_map(|arm| Some((arm, arm.scope(scope)?)))
        .collect();
    if arms.is_empty() {
        return None;
    }
    let mut columns = vec![Column::left("class of work", "")];
    columns.extend(arms.iter().map(|(arm, _)| Column::right(&arm.arm, "% of CPU time")));
    let mut table = Table::new(format!("{}:", words(scope)), columns);
    let shown = |class: &Class| arms.iter().any(|(_, of)| of.class(*class).is_some());
    for class in Class::ALL.into_iter().filter(shown) {
        let mut row = vec![Entry::from(class.words())];
        row.extend(arms.iter().map(|(_, of)| match of.class(class) {
            Some(share) => Entry::from(share_in_table(&share.share)),
            None => Entry::toned(number::NONE, Tone::Faint),
        }));
        table.push(row);
    }
    let row = |name: &str, value: &dyn Fn(&ScopeAttribution) -> String| {
        let mut row = vec![Entry::from(name)];
        row.extend(arms.iter().map(|(_, of)| Entry::from(value(of))));
        row
    };
    table.push_group(row("CPU time per message", &|of| time(of.cpu_ns_per_message.value)));
    if scope != Scope::Both {
        table.push(row("idle, of wall time", &|of| {
            of.busy_share.map_or_else(
                || number::NONE.to_owned(),
                |busy| format!("{:.0} %", 100.0 * (1.0 - busy).max(0.0)),
            )
        }));
    }
    table.push(row("samples", &|of| of.samples.to_string()));
    Some(table)
}

/// `31 ± 2`, with a decimal below ten.
fn share_in_table(share: &Estimate) -> String {
    share_and_half(share).replace(" %", "")
}

/// Whose time a table is about.
#[must_use]
pub fn words(scope: Scope) -> &'static str {
    match scope {
        Scope::Both => "Both ends together",
        Scope::Sender => "Sending end",
        Scope::Receiver => "Receiving end",
    }
}

/// `rep_movs_alternative 31 %, tcp_sendmsg_locked 4.2 %`.
#[must_use]
pub fn functions(of: &ScopeAttribution) -> String {
    let shown = of.functions.iter().take(FUNCTIONS_SHOWN);
    let each = shown.map(|f| format!("{} {}", f.symbol, number::percent(f.share)));
    each.collect::<Vec<_>>().join(", ")
}

/// What limits the samples.
#[must_use]
pub fn cautions(explanation: &Explanation) -> Vec<String> {
    let attribution = &explanation.attribution;
    let mut lines = Vec::new();
    if attribution.arms.iter().any(|arm| arm.both.lost > 0) {
        lines.push("Some samples were lost: shares may be off where they were.".to_owned());
    }
    let off = |arm: &&ArmAttribution| !(0.8..=1.2).contains(&arm.both.coverage);
    for arm in attribution.arms.iter().filter(off).filter(|_| attribution.kernel) {
        lines.push(format!(
            "{}: samples stand for {} of the CPU time that the kernel accounts: the timer did not \
             keep up, or was held off.",
            arm.arm,
            number::percent(arm.both.coverage)
        ));
    }
    lines.extend(attribution.missing.iter().map(|why| format!("Not sampled: {why}.")));
    lines.extend(attribution.failed.iter().map(|why| format!("A trial failed: {why}.")));
    lines.push(format!(
        "Samples of cpu-clock every {} of a thread's CPU time, in trials of their own; on loopback \
         and veth the sender's CPU runs the receive path in softirq, so both ends together is the \
         honest sum. Intervals: t over trials, pointwise 95 %.",
        time(attribution.period_ns as f64)
    ));
    lines
}

/// The explanation as JSON.
#[must_use]
pub fn json(run: &str, explanation: &Explanation) -> String {
    let value = json!({
        "run": run,
        "attribution": explanation.attribution,
        "against": explanation.against,
        "sentences": sentences(explanation),
        "cautions": cautions(explanation),
    });
    format!("{value:#}")
}

/// Stacks of a cell, folded, each below its arm and end: what tools that draw
/// flame graphs read, `a;b;c 17` a line.
#[must_use]
pub fn folded(trials: &[ProfileTrial]) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for end in trials.iter().flat_map(|trial| &trial.ends) {
        let side = if end.sends { "sender" } else { "receiver" };
        for stack in &end.samples.stacks {
            let key = format!("{};{side};{}", end.arm, stack.folded);
            *sums.entry(key).or_default() += stack.samples;
        }
    }
    sums.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
}

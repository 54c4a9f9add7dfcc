//! Where CPU time went, in sentences and tables: shares of classes of work by
//! arm and end, and what one arm spends per message beyond another one.

mod screen;

use std::collections::BTreeMap;

use iolens_document::table::{Entry, Table, Tone, left, right};
use iolens_document::{Joined, sentence, terminal};
use iolens_model::cell::Cell;
use iolens_model::profile::ProfileTrial;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, Estimate, Figures, Interval};
use iolens_stats::attribution::{
    Against, ArmAttribution, Class, ClassDifference, Explanation, SamplingCost, Scope,
    ScopeAttribution,
};
use serde_json::json;

use crate::arms;
use crate::number::{self, InWords};
use iolens_document::Style;

/// A difference is worth a word from this part of the other arm's CPU time on.
const WORTH_SAYING: f64 = 0.02;

/// Classes that a sentence names, at most.
const NAMED_MAX: usize = 4;

/// Functions below a table, at most.
const FUNCTIONS_SHOWN: usize = 6;

/// The explanation of a cell of a run on a terminal, with each end and the functions where
/// `verbose`.
pub fn text(
    run: &str,
    explanation: &Explanation,
    analysis: &Analysis,
    style: &Style,
    verbose: bool,
) -> String {
    let mut out = terminal::draw(&screen::screen(run, explanation, analysis, verbose), style);
    if !verbose {
        return out;
    }
    for scope in Scope::ALL {
        if let Some(table) = shares(explanation, scope) {
            out.push_str(&format!("\n{}\n\n{}", table.caption, table.text(style.width)));
        }
    }
    for line in sampling(explanation) {
        out.push_str(&format!("\n{}\n", sentence::hanging(&line, style.width, 2)));
    }
    out.push_str("\nFunctions with the most samples, both ends:\n");
    for arm in &explanation.attribution.arms {
        let line = format!("{}: {}", arm.shown(), functions(&arm.both));
        out.push_str(&sentence::hanging(&line, style.width, 2));
        out.push('\n');
    }
    out
}

/// What is explained: the cell, and what the shares are shares of.
pub(crate) fn title(explanation: &Explanation) -> String {
    let attribution = &explanation.attribution;
    let of =
        if attribution.kernel { "CPU time" } else { "user time (the kernel's is not sampled)" };
    format!("Where the {of} goes: {}, {} sampled trials", attribution.cell, attribution.trials)
}

/// What the samples are samples of.
pub(crate) fn time_of(explanation: &Explanation) -> &'static str {
    if explanation.attribution.kernel { "CPU time" } else { "user time" }
}

/// What each arm spends beyond the baseline, a sentence or two each.
pub(crate) fn sentences(explanation: &Explanation) -> Vec<String> {
    explanation.against.iter().flat_map(|against| of_pair(explanation, against)).collect()
}

fn of_pair(explanation: &Explanation, against: &Against) -> Vec<String> {
    let arms = &explanation.attribution.arms;
    let shown = |label: &String| {
        let arm = arms.iter().find(|arm| arm.arm == *label);
        arm.map_or_else(|| label.clone(), ArmAttribution::shown)
    };
    let (arm, other) = (shown(&against.arm), shown(&against.other));
    let of = time_of(explanation);
    let mut sentences = Vec::new();
    if let Some(only) = &against.only {
        sentences.push(format!(
            "{arm} spends {} of its {of} on {}, which {other} does not have.",
            share_and_half(&only.share),
            number::list(only.classes.iter().map(|class| class.word())),
        ));
    }
    let said: Vec<String> = worth_saying(explanation, against).take(NAMED_MAX).map(part).collect();
    let total = &against.cpu_ns_per_message;
    let unit = unit_of(explanation);
    let is_alone = explanation.attribution.cell.is_alone();
    let together = if is_alone { "" } else { ", both ends together" };
    let (less, more) = (total.value < 0.0, is_sure(total));
    let beginning = if more {
        format!(
            "{arm} takes {} {} {of} per {unit} than {other}{together}{}",
            time(total.value.abs()),
            if less { "less" } else { "more" },
            amounts(total),
        )
    } else {
        format!(
            "The {of} per {unit} of {arm} and {other} is too close for this many samples to tell \
             which is less{}",
            interval(total)
        )
    };
    sentences.push(match said.is_empty() {
        true => format!("{beginning}."),
        false => format!("{beginning}; the largest differences: {}.", said.join(", ")),
    });
    sentences
}

/// Classes that differ surely, and by enough; largest difference first.
fn worth_saying<'a>(
    explanation: &Explanation,
    against: &'a Against,
) -> impl Iterator<Item = &'a ClassDifference> {
    let other = explanation.attribution.arms.iter().find(|arm| arm.arm == against.other);
    let worth = other.map_or(0.0, |arm| WORTH_SAYING * arm.both.cpu_ns_per_message.value);
    let sure = against.classes.iter().filter(|class| is_sure(&class.ns_per_message));
    sure.filter(move |class| class.ns_per_message.value.abs() >= worth)
}

/// What a unit of work of the cell is called.
pub(crate) fn unit_of(explanation: &Explanation) -> &'static str {
    explanation.attribution.cell.study().unit()
}

/// `+1.2 µs late copy`.
fn part(class: &ClassDifference) -> String {
    let value = class.ns_per_message.value;
    let sign = if value < 0.0 { '−' } else { '+' };
    format!("{sign}{} {}", time(value.abs()), class.class.word())
}

/// Whether an interval excludes zero.
fn is_sure(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|interval| !interval.contains(0.0))
}

fn interval(estimate: &Estimate) -> String {
    let Some(interval) = estimate.interval else { return String::new() };
    format!(" (95% interval {} to {})", signed(interval.low), signed(interval.high))
}

/// The interval of a difference whose direction is said already.
fn amounts(estimate: &Estimate) -> String {
    let Some(interval) = estimate.interval else { return String::new() };
    let (a, b) = (interval.low.abs(), interval.high.abs());
    format!(" (95% interval {} to {})", time(a.min(b)), time(a.max(b)))
}

fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", time(-ns)) } else { time(ns) }
}

/// A time in the unit that keeps it short.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "µs"),
        ns => (ns / 1e6, "ms"),
    };
    format!("{} {unit}", three_digits(value))
}

/// `31.2 % ± 2.1`.
fn share_and_half(share: &Estimate) -> String {
    let percent = |x: f64| format!("{:.1}", 100.0 * x);
    let half = share.interval.map(|i| (i.high - i.low) / 2.0);
    half.map_or_else(
        || format!("{}%", percent(share.value)),
        |half| format!("{}% ± {}", percent(share.value), percent(half)),
    )
}

/// Shares by class and arm of one scope; `None` where no arm has it.
fn shares(explanation: &Explanation, scope: Scope) -> Option<Table> {
    let arms: Vec<(&ArmAttribution, &ScopeAttribution)> = explanation
        .attribution
        .arms
        .iter()
        .filter_map(|arm| Some((arm, arm.scope(scope)?)))
        .collect();
    if arms.is_empty() {
        return None;
    }
    let of = time_of(explanation);
    let unit = format!("% of {of}");
    let mut table = Table::of(format!("{}:", words(scope)), []);
    let mut row = |starts_group: bool, name: &str, value: &dyn Fn(&ScopeAttribution) -> Entry| {
        let shares = arms.iter().map(|(arm, of)| right(&arm.shown(), &unit, value(of)));
        let name = left("class of work", "", name);
        table.fill(starts_group, std::iter::once(name).chain(shares).collect());
    };
    for &class in Class::ALL {
        if arms.iter().any(|(_, of)| of.class(class).is_some()) {
            row(false, class.word(), &|of| match of.class(class) {
                Some(share) => share_in_table(&share.share).into(),
                None => Entry::toned(number::NONE, Tone::Faint),
            });
        }
    }
    row(true, &format!("{of} per {}", unit_of(explanation)), &|of| {
        time(of.cpu_ns_per_message.value).into()
    });
    if scope != Scope::Both {
        let off = |of: &ScopeAttribution| of.busy_share.map(|busy| (1.0 - busy).max(0.0));
        let idle = |of: &ScopeAttribution| Some((off(of)? - of.waiting_share?).max(0.0));
        row(false, "waiting for a CPU, of wall time", &|of| whole_percent(of.waiting_share));
        row(false, "idle, of wall time", &|of| whole_percent(idle(of)));
        if arms.iter().any(|(_, of)| idle(of).is_none()) {
            row(false, "one or the other", &|of| whole_percent(off(of)));
        }
    }
    row(false, "samples", &|of| of.samples.to_string().into());
    Some(table)
}

/// `20 %`.
fn whole_percent(share: Option<f64>) -> Entry {
    share.or_dash(|share| format!("{:.0}%", 100.0 * share)).into()
}

/// `31.2 ± 2.1`.
fn share_in_table(share: &Estimate) -> String {
    share_and_half(share).replace("%", "")
}

/// Whose time a table is about.
fn words(scope: Scope) -> &'static str {
    match scope {
        Scope::Both => "Both ends together",
        Scope::Sender => "Sending end",
        Scope::Receiver => "Receiving end",
    }
}

/// `rep_movs_alternative 31 %, tcp_sendmsg_locked 4.2 %`.
fn functions(of: &ScopeAttribution) -> String {
    let shown = of.functions.iter().take(FUNCTIONS_SHOWN);
    let each = shown.map(|f| format!("{} {}", f.symbol, number::percent(f.share)));
    each.joined(", ")
}

/// What limits the samples. `analysis` is that of the run whose cell it is.
pub(crate) fn cautions(explanation: &Explanation, analysis: &Analysis) -> Vec<String> {
    let mut lines = noticed(explanation, analysis);
    lines.extend(sampling(explanation));
    lines
}

/// What sampling cost, and what the samples are.
fn sampling(explanation: &Explanation) -> Vec<String> {
    let attribution = &explanation.attribution;
    let mut lines: Vec<String> = attribution.sampling_cost.iter().map(cost).collect();
    lines.push(format!(
        "Samples of cpu-clock every {} of a thread's CPU time, in trials of their own; on loopback \
         and veth the sender's CPU runs the receive path in softirq, so both ends together is the \
         honest sum. Intervals: t over trials, 95%; those of differences hold for all classes and \
         methods together. A sample due while interrupts are off is taken once they are on \
         again; right after a system call it counts as that call's exit.",
        time(attribution.period_ns as f64)
    ));
    lines
}

/// What makes these samples worth less than others.
fn noticed(explanation: &Explanation, analysis: &Analysis) -> Vec<String> {
    let attribution = &explanation.attribution;
    let mut lines = other_states(explanation, analysis);
    if attribution.arms.iter().any(|arm| arm.both.lost > 0) {
        lines.push("Some samples were lost: shares may be off where they were.".to_owned());
    }
    let off = |arm: &&ArmAttribution| !(0.8..=1.2).contains(&arm.both.coverage);
    for arm in attribution.arms.iter().filter(off).filter(|_| attribution.kernel) {
        lines.push(format!(
            "{}: samples stand for {} of the CPU time that the kernel accounts to the sampled \
             threads: the timer did not keep up, or was held off.",
            arm.arm,
            number::percent(arm.both.coverage)
        ));
    }
    lines.extend(attribution.missing.iter().map(|why| format!("Not sampled: {why}.")));
    lines.extend(attribution.left_out.iter().map(|why| format!("Left out: {why}.")));
    lines.extend(attribution.failed.iter().map(|why| format!("A trial failed: {why}.")));
    lines
}

/// A difference is worth a word from this part of the timed value on.
const OF_TIMED_WORTH_SAYING: f64 = 0.1;

/// A line for each arm whose CPU time per message was another one in the timed trials: its shares
/// are those of another state of the machine.
fn other_states(explanation: &Explanation, analysis: &Analysis) -> Vec<String> {
    let attribution = &explanation.attribution;
    let Some(cell) = analysis.cells.iter().find(|cell| cell.cell == attribution.cell) else {
        return Vec::new();
    };
    let line = |arm: &ArmAttribution| {
        let of_run = arms::labelled(cell, &arm.arm)?;
        let timed = timed_cpu_ns(&cell.cell, of_run.figures.as_ref()?)?;
        other_state(arm, unit_of(explanation), timed)
    };
    // User time alone is no CPU time.
    attribution.arms.iter().filter(|_| attribution.kernel).filter_map(line).collect()
}

/// Of both ends; the sum's interval is not wider than the sum of the parts'.
fn timed_cpu_ns(cell: &Cell, figures: &Figures) -> Option<Interval> {
    let bounds =
        |part: Estimate| part.interval.unwrap_or(Interval { low: part.value, high: part.value });
    if cell.is_alone() {
        return figures.tx_cpu_ns_per_message.map(bounds);
    }
    let bytes = cell.size.0 as f64;
    let tx = figures.tx_cpu_ns_per_byte.map(bounds)?;
    let rx = figures.rx_cpu_ns_per_byte.map_or(Interval { low: 0.0, high: 0.0 }, bounds);
    Some(Interval { low: bytes * (tx.low + rx.low), high: bytes * (tx.high + rx.high) })
}

fn other_state(arm: &ArmAttribution, unit: &str, timed: Interval) -> Option<String> {
    let sampled = arm.both.cpu_ns_per_message;
    let of_sampled =
        sampled.interval.unwrap_or(Interval { low: sampled.value, high: sampled.value });
    let apart = of_sampled.low > timed.high * (1.0 + OF_TIMED_WORTH_SAYING)
        || of_sampled.high < timed.low * (1.0 - OF_TIMED_WORTH_SAYING);
    apart.then(|| {
        format!(
            "{} took {} of CPU time per {unit} while sampled, and {} to {} in the timed trials: \
             the machine had changed, and the shares are of the sampled state",
            arm.arm,
            time(sampled.value),
            time(timed.low),
            time(timed.high)
        )
    })
}

/// What sampling cost the arm that ran with it and without.
fn cost(cost: &SamplingCost) -> String {
    let ratio = &cost.ratio;
    let interval = ratio.interval.or_empty(|interval| {
        let ends = |i| format!("95% interval {}", number::from_to(i, |end| format!("{end:.3}")));
        format!("{}, ", number::interval(interval, ratio.n, ends))
    });
    format!(
        "Sampled, {} took {:.3} times as long as its A/A copy, which ran unsampled in between \
         ({interval}{}).",
        cost.arm,
        ratio.value,
        number::count(ratio.n, "trial")
    )
}

/// The explanation as JSON.
pub fn json(run: &str, explanation: &Explanation, analysis: &Analysis) -> String {
    let value = json!({
        "run": run,
        "attribution": explanation.attribution,
        "against": explanation.against,
        "sentences": sentences(explanation),
        "cautions": cautions(explanation, analysis),
    });
    format!("{value:#}")
}

/// Stacks of a cell, folded, each below its arm and end: what tools that draw
/// flame graphs read, `a;b;c 17` a line.
pub fn folded(trials: &[ProfileTrial]) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for end in trials.iter().flat_map(|trial| &trial.ends) {
        let side = end.side();
        for stack in &end.samples.stacks {
            let key = format!("{};{side};{}", end.arm, stack.folded);
            *sums.entry(key).or_default() += stack.samples;
        }
    }
    sums.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect()
}

#[cfg(test)]
mod tests {
    use iolens_stats::attribution;

    use super::*;
    use crate::fixture;

    fn explanation() -> (Explanation, Analysis) {
        let (run, analysis) = fixture::whole();
        (attribution::explain(&run.profiles, "send_staged").remove(0), analysis)
    }

    fn shown(verbose: bool) -> String {
        let (explanation, analysis) = explanation();
        let style = Style::plain(100);
        text("4f1c09ab", &explanation, &analysis, &style, verbose)
    }

    #[test]
    fn an_explanation_is_a_screen() {
        let screen = shown(false);
        assert!(screen.lines().count() <= 24, "{screen}");
        insta::assert_snapshot!(screen);
    }

    #[test]
    fn each_end_stands_below_it() {
        let screen = shown(true);
        let (_, below) = screen.split_once("Both ends together").unwrap();
        insta::assert_snapshot!(below);
    }

    /// A class that differs surely, by less than 2 % of the other arm's CPU time.
    #[test]
    fn small_differences_are_not_named() {
        let (mut explanation, analysis) = explanation();
        let style = Style::plain(100);
        let said = |of: &Explanation| text("4f1c09ab", of, &analysis, &style, false);
        assert!(said(&explanation).contains("it adds late copy"));
        let small = 0.019 * explanation.attribution.arms[0].both.cpu_ns_per_message.value;
        for class in &mut explanation.against[0].classes {
            let value = class.ns_per_message.value.signum() * small;
            class.ns_per_message.value = value;
            class.ns_per_message.interval = Some(Interval { low: value, high: value });
        }
        let nothing = "no class of work is shown to differ by 2% of send_staged's";
        assert!(said(&explanation).contains(nothing));
    }

    #[test]
    fn user_time_alone_is_called_so() {
        let (mut run, _) = fixture::whole();
        for end in run.profiles.iter_mut().flat_map(|trial| &mut trial.ends) {
            end.kernel = false;
        }
        let explained = attribution::explain(&run.profiles, "send_staged").remove(0);
        assert!(title(&explained).contains("user time (the kernel's is not sampled)"));
    }

    #[test]
    fn folded_stacks_begin_with_arm_and_end() {
        let (run, _) = fixture::whole();
        let folded = folded(&run.profiles);
        assert!(folded.lines().any(|line| line == "send_staged;sender;run;memcpy 100"), "{folded}");
        let total: u64 =
            folded.lines().filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        let samples = run.profiles.iter().flat_map(|t| &t.ends).map(|end| end.samples.total());
        assert_eq!(total, samples.sum::<u64>());
    }

    #[test]
    fn json_has_the_numbers_and_the_sentences() {
        let (explanation, analysis) = explanation();
        let value: serde_json::Value =
            serde_json::from_str(&json("4f1c09ab", &explanation, &analysis)).unwrap();
        assert_eq!(value["run"], "4f1c09ab");
        assert!(value["attribution"]["arms"].as_array().unwrap().len() == 2);
        assert!(!value["sentences"].as_array().unwrap().is_empty());
    }

    #[test]
    fn another_state_of_the_machine_is_told() {
        let (run, mut analysis) = fixture::whole();
        let explanation = attribution::explain(&run.profiles, "send_staged").remove(0);
        let cell = explanation.attribution.cell.clone();
        let place = analysis.cells.iter().position(|found| found.cell == cell).unwrap();
        let sampled = explanation.attribution.arms[0].both.cpu_ns_per_message.value;
        let mut told = |ratio: f64| {
            let arms = &mut analysis.cells[place].arms;
            let arm = arms.iter_mut().find(|arm| arm.arm.label == "send_staged").unwrap();
            let half = sampled * ratio / 2.0 / cell.size.0 as f64;
            let estimate = Estimate { value: half, interval: None, n: 12 };
            let figures = arm.figures.as_mut().unwrap();
            figures.tx_cpu_ns_per_byte = Some(estimate);
            figures.rx_cpu_ns_per_byte = Some(estimate);
            let lines = other_states(&explanation, &analysis);
            lines.into_iter().filter(|line| line.starts_with("send_staged took")).count()
        };
        assert_eq!([told(0.5), told(0.95), told(1.05), told(2.0)], [1, 0, 0, 1]);
    }
}

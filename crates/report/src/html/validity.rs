//! Why to believe the numbers, and which not to.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::axes::Study;
use iolens_model::host::Costs;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::analysis::{Analysis, TimeSpent, Told};
use maud::{Markup, html};

use super::answers::prose;
use crate::answers::Kind;
use crate::answers::cautions::drift_words;
use crate::number::{self, NONE};
use crate::results;
use crate::words;

/// Noise floor, rejected trials, drift, missing counters, isolation, own cost,
/// and what the numbers hold for.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let isolated = results::isolated(run, analysis);
    let told = &*analysis.told;
    super::block(
        "validity",
        "Validity",
        html! {
            h3 { "Noise floor" }
            @for sentence in crate::answers::sentences(run, analysis) {
                @if sentence.kind == Kind::NoiseFloor { p { (prose(run, sentence.text.trim_start_matches("Noise floor: "))) } }
            }
            details open[analysis.cells.len() <= 8] {
                summary { "The self-check of every cell" }
                (results::self_checks(run, analysis).html())
            }
            h3 { "Rejected trials and skipped arms" }
            @if analysis.rejected.is_empty() {
                p {
                    "None: no trial failed, was skipped or interrupted, and no gate made one "
                    "unusable. What the gates noticed and let pass stands under Remarks."
                }
            } @else { (results::rejected(analysis).html()) }
            (absent(run, analysis))
            (notes(run, analysis))
            h3 { "Drift" }
            p { (drift(run, analysis)) }
            h3 { "Not measured" }
            (not_measured(told))
            @if let Some(text) = unverified(run, told) { p { (text) } }
            (by_pmu(run, told))
            h3 { "Shared or own process" }
            @if isolated.rows.is_empty() {
                p { "No cell of this run was measured both ways." }
            } @else { (isolated.html()) }
            h3 { "What the harness costs" }
            (harness(run, told))
            h3 { "Scope" }
            (super::scope(run, analysis))
        },
    )
}

/// A remark: where, of which arm, what.
type Remark<'a> = (String, &'a str, &'a str);

/// Remarks by what they say, arms and numbers apart, each with where it is
/// made.
fn notes(run: &Run, analysis: &Analysis) -> Markup {
    let mut kinds: BTreeMap<String, Vec<Remark>> = BTreeMap::new();
    for cell in &analysis.cells {
        let subject = words::subject(&run.header, &cell.cell);
        for note in &cell.notes {
            let of_arm = cell.arms.iter().find_map(|arm| {
                let text = note.strip_prefix(arm.arm.label.as_str())?.strip_prefix(": ")?;
                Some((arm.arm.label.as_str(), text))
            });
            let (arm, text) = of_arm.unwrap_or(("", note));
            kinds.entry(without_numbers(text)).or_default().push((subject.clone(), arm, text));
        }
    }
    html! {
        @if !kinds.is_empty() {
            h3 { "Remarks" }
            p.aside {
                "What the gates noticed and let pass, by kind; every one also stands with its "
                "cell."
            }
            @for (kind, noted) in &kinds {
                details.remark {
                    summary {
                        b { (count(noted, |(subject, ..)| subject, "cell")) }
                        " " (count(noted, |(_, arm, _)| arm, "arm")) ": "
                        (prose(run, if noted.len() == 1 { noted[0].2 } else { kind }))
                    }
                    dl.answers { @for (subject, arm, text) in noted {
                        dt { (subject) }
                        dd { @if !arm.is_empty() { code { (arm) } ": " } (prose(run, text)) }
                    } }
                }
            }
        }
    }
}

/// How many different ones there are.
fn count<'a>(noted: &'a [Remark], of: fn(&'a Remark<'a>) -> &'a str, noun: &str) -> String {
    let all: BTreeSet<&str> = noted.iter().map(of).collect();
    number::count(u32::try_from(all.len()).unwrap_or(u32::MAX), noun)
}

/// A remark with `…` for its measured numbers, so that alike ones are one kind.
/// Words that hold a digit, such as `L2` or `gate 12:`, stay.
fn without_numbers(note: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in note.split(' ') {
        let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_number = !core.is_empty() && core.chars().all(|c| c.is_ascii_digit() || c == '.');
        let is_gate = words.last().is_some_and(|before| before == "gate");
        words.push(match is_number && !is_gate {
            true => word.replace(core, "…"),
            false => word.to_owned(),
        });
    }
    words.join(" ")
}

/// Arms that have no numbers in a cell, by the reason.
fn absent(run: &Run, analysis: &Analysis) -> Markup {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.status != Status::Ok) {
            let why = arm.reason.as_deref().unwrap_or("no reason was stored");
            let reason = format!("{} is {}: {why}", arm.arm.label, arm.status.word());
            let at = words::subject(&run.header, &cell.cell);
            by_reason.entry(reason).or_default().push(at);
        }
    }
    html! {
        @if !by_reason.is_empty() {
            h3 { "Arms without numbers" }
            dl.answers { @for (reason, cells) in by_reason {
                dt { (cells.join("; ")) }
                dd { (prose(run, &reason)) }
            } }
        }
    }
}

fn drift(run: &Run, analysis: &Analysis) -> String {
    match &analysis.drift {
        Some(drift) => format!("{}.", drift_words(run, drift)),
        None => "Not known: that takes at least eight trials over more than a minute.".to_owned(),
    }
}

/// What to think of hardware counts, where there are any.
fn unverified(run: &Run, told: &Told) -> Option<String> {
    let says = run.header.host.facts.iter().filter(|fact| fact.group == "counters");
    let says: Vec<String> =
        says.filter_map(|fact| Some(format!("{}: {}", fact.name, fact.value.value()?))).collect();
    told.counted_by_pmu.then(|| {
        let facts = if says.is_empty() { String::new() } else { format!(" ({})", says.join("; ")) };
        format!("Cycles and cache misses: PMU path not verified on hardware{facts}.")
    })
}

/// Cycles by kind of core, where threads of an end ran on several.
fn by_pmu(run: &Run, told: &Told) -> Markup {
    let table = results::by_pmu(run, told);
    html! {
        @if !table.rows.is_empty() {
            h3 { "Kinds of cores" }
            p {
                "Threads of one end ran on different kinds of cores. Their counts are sums over "
                "both, and here apart."
            }
            (table.html())
        }
    }
}

/// Metrics without a value, grouped by the reason.
fn not_measured(told: &Told) -> Markup {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (metric, why) in crate::json::not_measured(told) {
        by_reason.entry(why).or_default().push(metric);
    }
    html! {
        @if by_reason.is_empty() { p { "Both ends read everything they tried to." } }
        @else { dl.answers { @for (why, metrics) in by_reason {
            dt { @for metric in metrics { code { (metric) } " " } }
            dd { (why) }
        } } }
    }
}

fn harness(run: &Run, told: &Told) -> Markup {
    let calibration = &run.header.calibration;
    let ns = number::nanoseconds;
    let costs = &calibration.costs;
    let known = |reading: Option<f64>| reading.map_or_else(|| NONE.to_owned(), ns);
    let [message, slice] = match run.header.plan.study() {
        Study::Net => {
            ["one message of a primitive that does nothing", "one slice of such a message"]
        }
        Study::File | Study::Write => {
            ["one block of an engine that does nothing", "one slice of such a block"]
        }
        Study::Copy => ["one copy of an engine that does nothing", "one slice of such a copy"],
        Study::Server => {
            ["one request of a client that does nothing", "one slice of such requests"]
        }
        Study::Syscall => ["one call of the loop around nothing", "one slice of one such call"],
    };
    let receipt = known(calibration.receipt_round_trip_ns);
    let receipt = ("a receipt there and back, of which a slice holds one way", receipt);
    let mut rows = vec![
        (message, ns(calibration.harness_message_ns)),
        (slice, ns(calibration.harness_slice_ns)),
        ("one reading of the clock", ns(calibration.clock_read_ns)),
        ("one system call that does nothing (getppid)", ns(calibration.empty_call_ns)),
        ("readings next to the clock, at one edge of a slice", known(costs.inner_readings_ns)),
        ("slower readings around them", known(costs.outer_readings_ns)),
        ("counters, at each context switch of a thread", at_a_switch(costs)),
        ("reading counters, outside the clock", reading_counters(told)),
    ];
    if run.header.plan.net().is_some() {
        rows.insert(2, receipt);
    }
    html! {
        dl.facts { @for (what, value) in rows { dt { (what) } dd { (value) } } }
        p.aside { "Shown, never subtracted." }
    }
}

/// What open counters add to a hand-over of the CPU, from two hand-overs.
fn at_a_switch(costs: &Costs) -> String {
    let bare = costs.switches.first().map(|bare| bare.handover_ns);
    match costs.counted_handover_ns.zip(bare) {
        Some((counted, bare)) => format!(
            "{} with them, {} without",
            number::nanoseconds(counted),
            number::nanoseconds(bare)
        ),
        None => NONE.to_owned(),
    }
}

/// The share of the trials' time that went into reading counters, by the end
/// that spent more.
fn reading_counters(told: &Told) -> String {
    let TimeSpent { reading_ns, trials_ns, .. } = told.spent;
    if trials_ns == 0 {
        return number::NONE.to_owned();
    }
    let share = number::percent(reading_ns as f64 / trials_ns as f64);
    format!("{} in {} of trials ({share})", Nanos(reading_ns), Nanos(trials_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_that_differ_in_numbers_alone_are_one_kind() {
        let kind = |note: &str| without_numbers(note);
        assert_eq!(
            kind("send: retransmitted segments: 8, in 7 of 27 trials"),
            "send: retransmitted segments: …, in … of … trials"
        );
        assert_eq!(kind("gate 12: 2.00 times the L2 cache"), "gate 12: … times the L2 cache");
    }
}

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
use crate::remarks;
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
                @if sentence.kind == Kind::NoiseFloor { p { (prose(run, &sentence.claim)) } }
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
type Said<'a> = (String, &'a str, String);

/// Remarks by their kind, each with where it is made.
fn notes(run: &Run, analysis: &Analysis) -> Markup {
    let mut kinds: BTreeMap<&str, Vec<Said>> = BTreeMap::new();
    for cell in &analysis.cells {
        let subject = words::subject(&run.header, &cell.cell);
        for remark in &cell.remarks {
            let arm = remark.arm.as_deref().unwrap_or("");
            let said = (subject.clone(), arm, remarks::kind(&remark.kind));
            kinds.entry(remarks::title(&remark.kind)).or_default().push(said);
        }
    }
    html! {
        @if !kinds.is_empty() {
            h3 { "Remarks" }
            p.aside {
                "What the gates noticed and let pass, by kind; every one also stands with its "
                "cell."
            }
            @for (kind, said) in &kinds {
                details.remark {
                    summary {
                        b { (count(said, |(subject, ..)| subject, "cell")) }
                        " " (count(said, |(_, arm, _)| arm, "arm")) ": "
                        @match said.as_slice() {
                            [(.., text)] => (prose(run, text)),
                            _ => (prose(run, kind)),
                        }
                    }
                    dl.answers { @for (subject, arm, text) in said {
                        dt { (subject) }
                        dd { @if !arm.is_empty() { code { (arm) } ": " } (prose(run, text)) }
                    } }
                }
            }
        }
    }
}

/// How many different ones there are.
fn count<'a>(said: &'a [Said], of: fn(&'a Said<'a>) -> &'a str, noun: &str) -> String {
    let all: BTreeSet<&str> = said.iter().map(of).collect();
    number::count(u32::try_from(all.len()).unwrap_or(u32::MAX), noun)
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
    let costs = calibration.costs.as_ref();
    let readings =
        |of: fn(&Costs) -> Option<f64>| costs.and_then(of).map_or_else(|| NONE.to_owned(), ns);
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
    let receipt = calibration.receipt_round_trip_ns.map_or_else(|| NONE.to_owned(), ns);
    let receipt = ("a receipt there and back, of which a slice holds one way", receipt);
    let mut rows = vec![
        (message, ns(calibration.harness_message_ns)),
        (slice, ns(calibration.harness_slice_ns)),
        ("one reading of the clock", ns(calibration.clock_read_ns)),
        ("one system call that does nothing (getppid)", ns(calibration.empty_call_ns)),
        (
            "readings next to the clock, at one edge of a slice",
            readings(|costs| costs.inner_readings_ns),
        ),
        ("slower readings around them", readings(|costs| costs.outer_readings_ns)),
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
fn at_a_switch(costs: Option<&Costs>) -> String {
    let counted = costs.and_then(|costs| costs.counted_handover_ns);
    let bare = costs.and_then(|costs| Some(costs.switches.first()?.handover_ns));
    match counted.zip(bare) {
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

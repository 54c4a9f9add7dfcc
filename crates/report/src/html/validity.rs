//! Why to believe the numbers, and which not to.

use std::collections::BTreeMap;

use iolens_model::run::Run;
use iolens_model::units::{Nanos, three_digits};
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use super::answers::prose;
use crate::answers::Kind;
use crate::number::{self, NONE};
use crate::results;
use crate::words;

/// Noise floor, rejected trials, missing counters, isolation, own cost.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let isolated = results::isolated(run, analysis);
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
            h3 { "Rejected trials" }
            @if analysis.rejected.is_empty() { p { "None." } }
            @else { (results::rejected(analysis).html()) }
            (notes(run, analysis))
            h3 { "Not measured" }
            (not_measured(run))
            h3 { "Shared or own process" }
            @if isolated.rows.is_empty() {
                p { "No cell of this run was measured both ways." }
            } @else { (isolated.html()) }
            h3 { "What the harness costs" }
            (harness(run))
        },
    )
}

fn notes(run: &Run, analysis: &Analysis) -> Markup {
    let noted: Vec<_> = analysis.cells.iter().filter(|cell| !cell.notes.is_empty()).collect();
    html! {
        @if !noted.is_empty() {
            h3 { "Remarks" }
            dl.answers { @for cell in noted {
                dt { (words::subject(&run.header.plan, &cell.cell)) }
                dd { (cell.notes.join("; ")) }
            } }
        }
    }
}

/// Metrics without a value, grouped by the reason.
fn not_measured(run: &Run) -> Markup {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (metric, why) in crate::json::not_measured(run) {
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

fn harness(run: &Run) -> Markup {
    let calibration = &run.header.calibration;
    let ns = |value: f64| match value {
        v if v >= 1e3 => format!("{} µs", three_digits(v / 1e3)),
        v => format!("{} ns", three_digits(v)),
    };
    let rows = [
        ("one message of a primitive that does nothing", ns(calibration.harness_message_ns)),
        ("one slice of such a message", ns(calibration.harness_slice_ns)),
        (
            "a receipt there and back, of which a slice holds one way",
            calibration.receipt_round_trip_ns.map_or_else(|| NONE.to_owned(), ns),
        ),
        ("one reading of the clock", ns(calibration.clock_read_ns)),
        ("one system call that does nothing (getppid)", ns(calibration.empty_call_ns)),
        ("reading counters, outside the clock", reading_counters(run)),
    ];
    html! {
        dl.facts { @for (what, value) in rows { dt { (what) } dd { (value) } } }
        p.aside { "Shown, never subtracted." }
    }
}

/// The share of the trials' time that went into reading counters, by the end
/// that spent more.
fn reading_counters(run: &Run) -> String {
    let mut spent = 0u64;
    let mut total = 0u64;
    for trial in &run.trials {
        let ends = [&trial.tx, &trial.rx].into_iter().flatten();
        if let Some(most) = ends.map(|end| end.bracket_ns).max() {
            spent += most;
            total += trial.duration_ns;
        }
    }
    if total == 0 {
        return number::NONE.to_owned();
    }
    let share = number::percent(spent as f64 / total as f64);
    format!("{} in {} of trials ({share})", Nanos(spent), Nanos(total))
}

//! What a crossing costs here, in sentences.

use iolens_model::arm::Role;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::{Row, filled, rows, said, series, time_of};
use crate::answers::{Kind, Sentence, not_ranked};
use crate::number::{list, nanoseconds, percent, ratio};
use crate::standing::{Candidate, Standing, standing};
use crate::words;

/// Calls that are named at most as not separated from the cheapest.
const NAMED: usize = 3;

/// The empty call, which most are told in.
const EMPTY: &str = "getppid";

/// Every sentence of the study.
pub(crate) fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let cells = filled(analysis);
    let mut out = Vec::new();
    if let Some(cell) = cells.first() {
        out.extend(crossing(run, cell));
        out.extend(one_byte(run, cell));
        out.extend(extremes(run, cell, analysis.delta));
    }
    out.extend(threads(run, &cells));
    out.extend(in_a_row(run, analysis));
    out.extend(checks(run));
    out
}

fn about(run: &Run, kind: Kind, cell: &CellAnalysis, claim: &str) -> Sentence {
    Sentence::about(run, kind, words::subject(&run.header, &cell.cell), claim)
}

/// What a crossing costs, beside what costs none.
fn crossing(run: &Run, cell: &CellAnalysis) -> Option<Sentence> {
    let baseline = &run.header.plan.baseline;
    let (call, what) = match time_of(cell, EMPTY) {
        Some(_) => (EMPTY, "a crossing into the kernel and back costs"),
        None => (baseline.as_str(), "the call that the others are compared with costs"),
    };
    let ns = time_of(cell, call)?;
    let beside = [
        ("function", "a function call"),
        ("clock_gettime_vdso", "the clock without a crossing (vDSO)"),
        ("read_bad", "a call that is refused at the door (read from descriptor −1)"),
    ];
    let beside: Vec<String> = beside
        .into_iter()
        .filter_map(|(id, words)| {
            Some(format!("{words} {}", nanoseconds(time_of(cell, id)?.value)))
        })
        .collect();
    let beside = match beside.is_empty() {
        true => String::new(),
        false => format!("; beside it {}", list(&beside)),
    };
    let claim = format!("{what} {}, {call}, n = {}{beside}.", said(ns), ns.n);
    Some(about(run, Kind::Headline, cell, &claim))
}

/// What moving bytes one by one costs.
fn one_byte(run: &Run, cell: &CellAnalysis) -> Option<Sentence> {
    let moved = [
        ("read_zero", "from /dev/zero"),
        ("read_file", "from a file in the page cache"),
        ("read_pipe", "from a pipe"),
        ("write_null", "to /dev/null"),
        ("write_file", "to a file in the page cache"),
        ("write_pipe", "to a pipe"),
    ];
    let rows = rows(run, cell);
    let one = |(id, words): (&str, &str)| {
        let row = rows.iter().find(|row| row.arm.arm.primitive == id)?;
        let rate = crate::rates::rate(row.bytes_per_s()?);
        Some(format!("{words} {} ({rate})", nanoseconds(row.ns.value)))
    };
    let moved: Vec<String> = moved.into_iter().filter_map(one).collect();
    let claim = format!("one byte by one call takes, {}.", list(&moved));
    (!moved.is_empty()).then(|| about(run, Kind::Answer, cell, &claim))
}

/// The cheapest call that enters the kernel, as in every study, and the one with the highest
/// ratio.
fn extremes(run: &Run, cell: &CellAnalysis, delta: f64) -> Option<Sentence> {
    let rows = rows(run, cell);
    let enters = |row: &&Row| row.arm.arm.role != Role::Control && row.arm.is_ranked();
    let entering: Vec<&Row> = rows.iter().filter(enters).collect();
    let [_, .., last] = entering.as_slice() else { return None };
    let standing = standing(cell, delta);
    let best = standing.best()?;
    let first = entering.iter().find(|row| row.arm.arm.label == best.label)?;
    let named = |others: &[Candidate<'_>]| match others.len() {
        0..=NAMED => list(&others.iter().map(Candidate::shown).collect::<Vec<_>>()),
        several => format!("{several} others"),
    };
    let how = match &standing {
        Standing::Cheapest { .. } => "is cheapest".to_owned(),
        Standing::Tie { others, .. } => {
            format!("is lowest, equal within δ = {} to {}", percent(delta), named(others))
        }
        Standing::Unseparated { others, .. } => {
            format!("is lowest in this run, not separated from {}", named(others))
        }
        Standing::NoInterval { .. } | Standing::Alone(_) | Standing::Nothing(_) => {
            "is lowest (no interval)".to_owned()
        }
    };
    let times = last.times()?.0 / first.times()?.0;
    let without = match not_ranked(cell).as_slice() {
        [] => String::new(),
        arms => format!("; not ranked: {}", arms.join(", ")),
    };
    let claim = format!(
        "of {} that enter the kernel {} {how}, {}; {} takes most, {}: {}× as much{without}.",
        crate::number::count(u32::try_from(entering.len()).unwrap_or(u32::MAX), "call"),
        best.shown(),
        nanoseconds(first.ns.value),
        last.arm.arm.label,
        nanoseconds(last.ns.value),
        super::tables::fold(times),
    );
    (entering.len() > 1).then(|| about(run, Kind::Answer, cell, &claim))
}

/// Whether calls of several threads are as many as of one, times the threads.
fn threads(run: &Run, cells: &[&CellAnalysis]) -> Option<Sentence> {
    let (one, all) = (cells.first()?, cells.last()?);
    if one.cell.threads == all.cell.threads {
        return None;
    }
    let more = f64::from(all.cell.threads) / f64::from(one.cell.threads);
    let mut gains: Vec<(f64, &str)> = rows(run, one)
        .iter()
        .filter_map(|row| {
            let label = row.arm.arm.label.as_str();
            Some((row.ns.value / time_of(all, &row.arm.arm.primitive)?.value, label))
        })
        .collect();
    gains.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (gains.first()?, gains.last()?);
    let own = gains.iter().find(|(_, label)| *label == run.header.plan.baseline);
    let own = own.map_or_else(String::new, |(gain, label)| format!("{label} {}×, ", ratio(*gain)));
    let claim = format!(
        "{} make, against {}, {own}least of all {} {}×, most {} {}× the calls per second ({}× would \
         be all); the cells have trials of their own, so the machine's drift is in these ratios.",
        words::threads(all.cell.threads),
        words::threads(one.cell.threads),
        least.1,
        ratio(least.0),
        most.1,
        ratio(most.0),
        ratio(more),
    );
    Some(Sentence::about(run, Kind::Answer, "threads".to_owned(), &claim))
}

/// What the first call of a row costs more than those after it.
fn in_a_row(run: &Run, analysis: &Analysis) -> Option<Sentence> {
    let cells = series(analysis);
    let call = &run.header.plan.baseline;
    let steady = time_of(filled(analysis).first()?, call)?;
    let told: Vec<String> = cells
        .iter()
        .filter_map(|(calls, cell)| {
            let ns = time_of(cell, call)?;
            let over = ns.value / steady.value - 1.0;
            let sign = if over < 0.0 { '−' } else { '+' };
            let (each, over) = (nanoseconds(ns.value), percent(over.abs()));
            Some(format!("{calls}: {each} each ({sign}{over})"))
        })
        .collect();
    if told.is_empty() {
        return None;
    }
    let claim = format!(
        "calls in a row of {call}, against {} each where a slice is full of them, {}. Each \
         row has a reading of the clock in it, and begins with caches that others have used.",
        nanoseconds(steady.value),
        told.join("; ")
    );
    Some(Sentence::about(run, Kind::Answer, "in a row".to_owned(), &claim))
}

/// What is in each crossing on this machine beside the call.
fn checks(run: &Run) -> Option<Sentence> {
    let host = &run.header.host;
    let said = |name: &str, words: &str| {
        words::fact(host, &[name]).map(|value| format!("{words} {value}"))
    };
    let facts: Vec<String> = [
        said("mitigations", "mitigations:"),
        said("seccomp", "seccomp:"),
        said("audit", "audit:"),
        said("virtualization", "virtualization:"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let text = format!("In every crossing here: {}.", facts.join(". "));
    (!facts.is_empty()).then(|| Sentence::plain(Kind::Caution, text))
}

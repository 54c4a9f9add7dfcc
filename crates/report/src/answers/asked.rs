//! The answer to a question about one message, in one sentence, and what a reader needs to
//! know beside it: how far it holds, what a connection is here, how noisy it was, where it
//! comes from.

use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::run::{Part, Run};
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::{Kind, Sentence, Speaker, cautions, conditional, without};
use crate::number::{count, list};
use crate::standing::{Standing, standing};
use crate::words;

/// Where the numbers of an answer come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// They were measured for it.
    Measured,
    /// From a run that was stored before, and what has changed since.
    Stored(Vec<Part>),
}

/// Every sentence about `cell` of a run, the answer first unless the run spoils it.
pub(crate) fn sentences(
    run: &Run,
    analysis: &Analysis,
    cell: &CellAnalysis,
    source: &Source,
) -> Vec<Sentence> {
    let mut out: Vec<Sentence> = cautions::untrustworthy(analysis).into_iter().collect();
    out.push(answer(run, analysis, cell));
    out.extend(reach(run, analysis, cell));
    out.extend(connections(run, &cell.cell));
    out.push(cautions::noise_floor(run, analysis));
    // Of the cell alone: what happened elsewhere in the run is not asked.
    let alone = Analysis { cells: vec![cell.clone()], ..analysis.clone() };
    out.extend(cautions::tails(run, &alone));
    out.extend(cautions::isolated(run, &alone));
    out.extend(cautions::drift(run, analysis));
    let is_cut = run.header.end.as_ref().is_none_or(|end| end.stopped_by.is_cut_short());
    out.extend(cautions::ending(run).filter(|_| is_cut));
    let sinks = cell.cell.topology() == Some(Topology::Sink);
    out.extend(cautions::without_receiver(run).filter(|_| sinks));
    out.extend(analysis.warnings.iter().map(cautions::warning));
    out.push(cautions::scope(run, &alone));
    out.extend(stored(run, source));
    out
}

/// `For messages of 12 KiB in 3 fields over 40 connections, …`.
fn answer(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Sentence {
    let plan = &run.header.plan;
    let speaker = |than| Speaker {
        quick: plan.quick,
        delta: analysis.delta,
        baseline: &plan.baseline,
        arm: words::arm_of(plan),
        than,
    };
    let by_time = speaker("as fast as").claim(&standing(cell, analysis.delta));
    let mut text = format!("{}, {by_time}{}", question(&cell.cell), conditional::beside(cell));
    let by_cpu = cell.by_cpu();
    text.push_str(&match standing(&by_cpu, analysis.delta) {
        // Why there is nothing was said of time.
        Standing::Nothing(_) if standing(cell, analysis.delta).best().is_none() => String::new(),
        Standing::Nothing(_) => "; CPU time was not counted for all of them".to_owned(),
        found => {
            let claim = speaker("as cheap as").claim(&found);
            format!("; by CPU time of both ends, {claim}")
        }
    });
    text.push_str(&without(cell));
    let n = if plan.quick { words::trials(cell) } else { String::new() };
    let lead = if plan.quick { "Indicative: for" } else { "For" };
    let text = format!("{lead} {text}{n}.");
    Sentence { indicative: plan.quick, ..Sentence::plain(Kind::Headline, text) }
}

/// `messages of 12 KiB in 3 fields over 40 connections (veth, stream)`.
pub(crate) fn question(cell: &Cell) -> String {
    let mut text = format!("messages of {}", cell.size);
    let mut rest: Vec<String> = cell.words();
    if let Some(net) = cell.net() {
        text.push_str(&format!(" in {}", net.fields_in_words()));
        let said = net.fields_in_words();
        rest.extend(cell.unusual().into_iter().filter(|word| *word != said));
    }
    format!("{text} over {} ({})", count(cell.threads, "connection"), rest.join(", "))
}

/// The cells of the same curve, the smallest message first.
fn curve<'a>(analysis: &'a Analysis, cell: &Cell) -> Vec<&'a CellAnalysis> {
    let own = cell.curve();
    let mut cells: Vec<&CellAnalysis> =
        analysis.cells.iter().filter(|other| other.cell.curve() == own).collect();
    cells.sort_by_key(|cell| cell.cell.size);
    cells
}

/// At which sizes beside it the same is said, and what is at the next one.
fn reach(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Option<Sentence> {
    let here = standing(cell, analysis.delta);
    here.best()?;
    let curve = curve(analysis, &cell.cell);
    let own = curve.iter().position(|other| other.cell == cell.cell)?;
    let said = |i: usize| standing(curve[i], analysis.delta).brief();
    let same = |i: &usize| said(*i) == here.brief();
    let first = (0..own).rev().take_while(same).last().unwrap_or(own);
    let last = (own + 1..curve.len()).take_while(same).last().unwrap_or(own);
    let beside: Vec<String> =
        (first..=last).filter(|i| *i != own).map(|i| curve[i].cell.size.to_string()).collect();
    let next = first.checked_sub(1).into_iter().chain((last + 1 < curve.len()).then_some(last + 1));
    let other: Vec<String> =
        next.map(|i| format!("at {}: {}", curve[i].cell.size, said(i))).collect();
    let text = match (beside.as_slice(), other.as_slice()) {
        ([], []) => {
            "no other size was measured with it: how far this holds is not known".to_owned()
        }
        ([], other) => format!("next to it {}", other.join("; ")),
        (beside, []) => {
            format!("the same holds at {}, beyond which nothing was measured", list(beside))
        }
        (beside, other) => format!("the same holds at {}; {}", list(beside), other.join("; ")),
    };
    let indicative = run.header.plan.quick;
    let lead = if indicative { "Indicative: by" } else { "By" };
    let text = format!("{lead} time, {text}.");
    Some(Sentence { indicative, ..Sentence::plain(Kind::Answer, text) })
}

/// What a connection is here, where there are several.
fn connections(run: &Run, cell: &Cell) -> Option<Sentence> {
    let turns = words::turns_of(run, &[cell.threads]);
    if cell.threads == 1 && turns.is_none() {
        return None;
    }
    let each = "Each connection has a thread of its own at either end.";
    let text = turns.map_or_else(|| each.to_owned(), |turns| format!("{each} {turns}."));
    Some(Sentence::plain(Kind::Turns, text))
}

/// Which run it is from, and how to have a new one.
fn stored(run: &Run, source: &Source) -> Option<Sentence> {
    let Source::Stored(changed) = source else { return None };
    let changed: Vec<String> =
        changed.iter().map(|part| format!("another {}", part.word())).collect();
    let since = match changed.is_empty() {
        true => String::new(),
        false => format!(", since when there is {}", list(&changed)),
    };
    let text = format!(
        "From run {} of {}{since}; --fresh measures anew.",
        run.header.id,
        iolens_model::moment::utc(run.header.started_unix_ns)
    );
    Some(Sentence::plain(Kind::Scope, text))
}

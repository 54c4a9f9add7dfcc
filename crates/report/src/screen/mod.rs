//! What a run shows first: what it was, a table, answers, how far they are to be trusted, what
//! to do next. Facts are [`findings`](crate::findings); here they get their words.

pub(crate) mod asked;
pub(crate) mod confirm;
pub(crate) mod effort;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod trust;

pub use self::effort::longer;

use iolens_document::{Answer, Joined, Label, Text};
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::units::{Bytes, Nanos};

use crate::findings::{Outcome, Ranking};
use crate::groups::grouped;
use crate::number::percent;
use crate::words;

/// What stands on the screen of a run that has just been measured.
#[derive(Debug, Clone, Copy)]
pub struct After<'a> {
    /// Where its page is; `None` where it could not be written.
    pub page: Option<&'a str>,
    /// How long the run may take that measures [`longer`] and gives verdicts; `None` where nobody
    /// knows.
    pub full_run: Option<Nanos>,
}

/// Which method at which sizes, curve by curve, those that can do any job; neighbouring sizes
/// with one answer are told together. `curve` names a curve where there are several.
pub(crate) fn choices(
    label: Label,
    run: &Run,
    rankings: &[Ranking],
    curve: impl Fn(&Ranking) -> String,
) -> Vec<Answer> {
    let mut curves = by_curve(rankings, run.header.plan.delta, curve);
    let several = curves.len() > 1;
    if several && curves.iter().all(|(_, said)| *said == curves[0].1) {
        curves.truncate(1);
        curves[0].0 = "every setting".to_owned();
    }
    let mut answers: Vec<Answer> = Vec::new();
    let more = more(run, curves.len(), CURVES_MAX, "");
    for (name, mut said) in curves.into_iter().take(CURVES_MAX) {
        if let (true, Some(first)) = (several, said.first_mut()) {
            *first = format!("{name}: {first}");
        }
        answers.push(Answer::of(label, said));
    }
    if let Some(last) = answers.last_mut() {
        last.said.extend(more);
    }
    answers
}

/// Curves that have a line of their own on the screen.
pub(crate) const CURVES_MAX: usize = 3;

/// What is said of each curve, which `curve` names.
pub(crate) fn by_curve(
    rankings: &[Ranking],
    delta: f64,
    curve: impl Fn(&Ranking) -> String,
) -> Vec<(String, Vec<String>)> {
    let curves = grouped(rankings.iter().map(|ranking| (curve(ranking), ranking)));
    curves.into_iter().map(|(name, rankings)| (name, spans(&rankings, delta))).collect()
}

/// What is said of a curve, one part for each stretch of sizes.
fn spans(rankings: &[&Ranking], delta: f64) -> Vec<String> {
    let one = |ranking: &&Ranking| (outcome(&ranking.outcome, delta), ranking.setting.size);
    let all = rankings.iter().map(one);
    let all: Vec<(String, Bytes)> = all.collect();
    let spans: Vec<&[(String, Bytes)]> = all.chunk_by(|(a, _), (b, _)| a == b).collect();
    let has_sizes = rankings.iter().any(|ranking| ranking.setting.size.0 > 0);
    let one = spans.len() == 1 && rankings.len() > 1;
    let span = |span: &&[(String, Bytes)]| match **span {
        [(ref said, _), ..] if !has_sizes => said.clone(),
        [(ref said, _), ..] if one => format!("{said} at every size"),
        [(ref said, size)] => format!("{size} {said}"),
        [(ref said, first), .., (_, last)] => format!("{} {said}", span_of(first, last)),
        [] => String::new(),
    };
    spans.iter().map(span).collect()
}

/// `64 B to 4 KiB`, `4 to 16 KiB`.
pub(crate) fn span_of(first: Bytes, last: Bytes) -> String {
    two_sizes(first, last, "to")
}

/// Two sizes with a word between, and the unit once where both have it.
pub(crate) fn two_sizes(first: Bytes, last: Bytes, word: &str) -> String {
    let (first, last) = (first.to_string(), last.to_string());
    match (first.split_once(' '), last.split_once(' ')) {
        (Some((value, unit)), Some((_, same))) if unit == same => format!("{value} {word} {last}"),
        _ => format!("{first} {word} {last}"),
    }
}

/// Who is ahead, in a few words; differences within `delta` do not matter.
pub(crate) fn outcome(outcome: &Outcome, delta: f64) -> String {
    /// Methods that are named.
    const NAMED: usize = 3;
    match outcome {
        Outcome::Fastest { method, .. } | Outcome::Alone { method } => method.clone(),
        Outcome::Same { methods } => {
            format!("{} (same within {})", methods.join(" or "), percent(delta))
        }
        Outcome::Undecided { methods, .. } if methods.len() <= NAMED => {
            format!("undecided ({})", methods.join(", "))
        }
        Outcome::Undecided { methods, .. } => format!("undecided ({} methods)", methods.len()),
        Outcome::NoInterval { lowest } => format!("undecided (one trial; {lowest} led)"),
        Outcome::Nothing { .. } => "no answer".to_owned(),
    }
}

/// What tells a curve from others of the run: its threads, if they differ, and what else does.
pub(crate) fn short(run: &Run, cell: &Cell) -> String {
    let plan = &run.header.plan;
    let mut parts: Vec<String> = Vec::new();
    parts.extend((plan.threads.len() > 1).then(|| words::threads(cell.threads)));
    parts.extend(plan.told_apart(cell));
    words::joined(words::as_found(&run.header, cell, parts))
}

/// What tells a setting from others of the run: its size, and what tells its curve.
pub(crate) fn place(run: &Run, cell: &Cell) -> String {
    let size = cell.own_size().map(|size| size.to_string());
    let short = Some(short(run, cell)).filter(|words| !words.is_empty());
    size.into_iter().chain(short).joined(", ")
}

/// Where the rest is of what has room for so many: `3 more settings: iolens show 4f1c09ab`.
pub(crate) fn more(run: &Run, all: usize, room: usize, what: &str) -> Option<Text> {
    let more = all.saturating_sub(room);
    (more > 0).then(|| Text::plain(format!("{more} more{what}: ")).and_code(show(run)))
}

/// As many of these as have room, and how many there are besides.
pub(crate) fn told(all: Vec<Text>, room: usize) -> Vec<Text> {
    let more = all.len().saturating_sub(room);
    let rest = (more > 0).then(|| Text::plain(format!("{more} more")));
    all.into_iter().take(room).chain(rest).collect()
}

/// The command that shows the rest of this run.
pub(crate) fn show(run: &Run) -> String {
    format!("iolens show {}", run.header.id)
}

//! The runs of `ab` beside one baseline file: what a terminal, a pull request and a program read of
//! an [`AbHistory`].

#[cfg(test)]
mod tests;
mod words;

use iolens_document::plain::folded;
use iolens_document::table::{Filled, Table, left, right};
use iolens_document::{Align, Block, Column, Grid, Joined, Screen, Style, Text, terminal};
use iolens_model::{command_line, units};
use iolens_stats::ab::{AbHistory, AbNamed, AbRow, AbSeries, AbStep, AbVerdict};
use iolens_stats::analysis::Interval;
use serde_json::{Value, json};

pub use self::words::left_words;
use self::words::{beyond, cautions, left_out, next, sentences, trust};
use super::compare::with_judged;
use super::json::pair;
use super::words::{change_parts, mode, quantity, setting_words, signed, with_interval};
use crate::compare::{markdown_answers, markdown_head};
use crate::groups::distinct;
use crate::number::{InWords, count, percent};
use crate::text::one_line;

/// Lines of all tables together that a first screen shows, and those of a table besides its rows.
const LINES_SHOWN: usize = 24;
const LINES_BESIDE: usize = 3;

/// Columns from which dates have times and changes verdicts, and from which runs have names.
const WITH_TIMES: usize = 90;
const WITH_NAMES: usize = 100;

/// One screen: each run's change against the baseline, and what changed from run to run. Where
/// that is too much of several series, a line of each; `is_verbose` shows every run.
pub fn text(history: &AbHistory, is_verbose: bool, style: &Style) -> String {
    terminal::draw(&screen(history, is_verbose, style.columns()), style)
}

/// A comment for a pull request, in the Markdown of GitHub.
pub fn markdown(history: &AbHistory) -> String {
    let screen = screen(history, true, WITH_NAMES);
    let (head, answers) = (markdown_head(&screen), markdown_answers(&screen));
    match &history.series[..] {
        [one] => format!("{head}{}\n{answers}", numbers(history, one).markdown()),
        all => {
            let fold =
                |series| folded(&label(history, series), &numbers(history, series).markdown());
            format!("{head}{answers}{}", all.iter().map(fold).collect::<String>())
        }
    }
}

fn screen(history: &AbHistory, is_verbose: bool, columns: usize) -> Screen {
    let series = &history.series;
    let lines: usize = series.iter().map(|series| series.rows.len() + LINES_BESIDE).sum();
    let is_short = series.len() > 1 && lines > LINES_SHOWN && !is_verbose;
    let mut screen = Screen {
        header: Text::parts(header(history)),
        effort: Text::parts(effort(history)),
        ..Screen::default()
    };
    screen.blocks = match is_short {
        true => vec![Block::Grid(overview(history))],
        false => {
            let one = |series| Block::Grid(grid(history, series, columns));
            series.iter().map(one).collect()
        }
    };
    screen.legend = legend(history, is_short);
    screen.answers = sentences(history, &|series| label(history, series));
    screen.answers.extend(cautions(history));
    screen.answers.extend(trust(history));
    screen.answers.extend(left_out(history));
    screen.answers.push(next(history, is_short));
    screen
}

/// `pr against v1.4 (0f3a91c0)`.
fn versus(series: &AbSeries) -> String {
    let AbSeries { baseline, arm, .. } = series;
    let to = if series.is_chain { "since" } else { "against" };
    format!("{} {to} {} ({})", arm.name, baseline.name, short(baseline))
}

/// What a run's change is against.
fn standing_head(series: &AbSeries) -> String {
    match series.is_chain {
        true => format!("since {} [95%]", short(&series.baseline)),
        false => format!("vs {} [95%]", series.baseline.name),
    }
}

/// What tells a series from the others; nothing of the only one.
fn label(history: &AbHistory, series: &AbSeries) -> String {
    const PARTS: [fn(&AbSeries) -> String; 3] = [
        versus,
        |series| setting_words(&series.setting),
        |series| quantity(series.quantity).to_owned(),
    ];
    const MORE: [fn(&AbSeries) -> String; 2] = [
        |series| one_line(&command_line::join(command_line::redacted(&series.arm.command))),
        |series| {
            let first = series.rows.first().map(|row| row.run.as_str());
            format!("from run {}", first.unwrap_or("?"))
        },
    ];
    let differs =
        |of: &fn(&AbSeries) -> String| history.series.iter().any(|other| of(other) != of(series));
    let mut told: Vec<fn(&AbSeries) -> String> = PARTS.into_iter().filter(differs).collect();
    let is_like = |other: &&AbSeries, told: &[fn(&AbSeries) -> String]| {
        told.iter().all(|of| of(other) == of(series))
    };
    for more in MORE {
        if history.series.iter().filter(|other| is_like(other, &told)).count() > 1 {
            told.push(more);
        }
    }
    let parts = told.into_iter().map(|of| of(series)).filter(|part| !part.is_empty());
    parts.joined(", ")
}

/// The beginning of a file's SHA-256.
fn short(program: &AbNamed) -> String {
    const SHOWN: usize = 8;
    let sha256 = program.sha256.as_deref().unwrap_or("unknown");
    sha256.chars().take(SHOWN).collect()
}

fn header(history: &AbHistory) -> Vec<String> {
    let common = |of: &dyn Fn(&AbSeries) -> String| {
        let first = of(history.series.first()?);
        history.series.iter().all(|series| of(series) == first).then_some(first)
    };
    let command = |series: &AbSeries| {
        one_line(&command_line::join(command_line::redacted(&series.arm.command)))
    };
    let several = history.series.len();
    let parts = [
        Some("history".to_owned()),
        common(&versus),
        common(&command),
        common(&|series| setting_words(&series.setting)),
        (several != 1).then(|| format!("{several} series")),
        common(&|series| if series.is_chain { "chain" } else { "" }.to_owned()),
        common(&|series| mode(series.setting.mode).to_owned()),
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect()
}

fn effort(history: &AbHistory) -> Vec<String> {
    let rows = || history.series.iter().flat_map(|series| &series.rows);
    let runs = distinct(rows().map(|row| &row.run)).len();
    let days = rows().map(|row| date(row).to_owned());
    let days = days.clone().min().zip(days.max());
    let days = days.or_empty(|(first, last)| match first == last {
        true => format!(" of {first}"),
        false => format!(", {first} to {last}"),
    });
    let mut parts = vec![format!("{}{days} (UTC)", count(runs, "run"))];
    if let [only] = distinct(history.series.iter().map(|series| series.quantity))[..] {
        parts.push(format!("{} per operation", quantity(only)));
    }
    let older = history.series.iter().map(|series| series.older).max().unwrap_or(0);
    parts.extend((older > 0).then(|| format!("{older} older not shown")));
    parts
}

/// `2026-11-26`.
fn date(row: &AbRow) -> String {
    let utc = units::utc(row.started_unix_ns);
    utc.split(' ').next().unwrap_or_default().to_owned()
}

/// When a run was, with as much as tells it from others: `11-26 00:41`.
struct When {
    has_year: bool,
    has_time: bool,
}

impl When {
    fn of(series: &AbSeries, columns: usize) -> When {
        let year = |row: &AbRow| date(row).split('-').next().map(str::to_owned);
        let first = series.rows.first().map(year);
        let has_year = series.rows.iter().any(|row| Some(year(row)) != first);
        When { has_year, has_time: columns >= WITH_TIMES }
    }

    fn shown(&self, row: &AbRow) -> String {
        let utc = units::utc(row.started_unix_ns);
        let utc = utc.trim_end_matches(" UTC");
        let (date, time) = utc.split_once(' ').unwrap_or((utc, ""));
        let day = date.split_once('-').map_or(date, |(_, day)| day);
        match (self.has_year, self.has_time) {
            (true, _) => date.to_owned(),
            (false, true) => format!("{day} {time}"),
            (false, false) => day.to_owned(),
        }
    }
}

/// A run in each row: how its arm stands against the baseline, and what changed since the one
/// before.
fn grid(history: &AbHistory, series: &AbSeries, columns: usize) -> Grid {
    const PARTS: [Align; 4] = [Align::Decimal, Align::Right, Align::Right, Align::Left];
    let when = When::of(series, columns);
    // What it says follows from the interval.
    let verdict = |row: &AbRow| row.standing.verdict.filter(|_| columns >= WITH_TIMES);
    let row = |(nth, row): (usize, &AbRow)| {
        let before = nth.checked_sub(1).and_then(|before| series.rows.get(before));
        let mut cells = vec![
            (Column::left(""), vec![when.shown(row)]),
            (Column::left(""), vec![row.run.clone()]),
            (Column::left("file"), vec![file(row, before)]),
            (
                Column::of(standing_head(series), &PARTS),
                parts(row.standing.change, row.standing.pointwise, verdict(row)),
            ),
            (Column::of(step_head(history), &PARTS), step(row)),
        ];
        let name = row.name.as_deref().filter(|_| columns >= WITH_NAMES).map(name);
        cells.push((Column::left("name"), vec![name.unwrap_or_default()]));
        cells
    };
    Grid::filled(label(history, series), series.rows.iter().enumerate().map(row)).without_empty()
}

fn step_head(history: &AbHistory) -> String {
    match history.claims {
        1 => "step [95%]".to_owned(),
        n => format!("step [95%, all {n}]"),
    }
}

/// The user's name for a run, as long as there is room.
fn name(name: &str) -> String {
    const SHOWN: usize = 12;
    let name = one_line(name);
    match name.chars().count() > SHOWN {
        true => name.chars().take(SHOWN - 1).chain(['…']).collect(),
        false => name,
    }
}

/// The file of a run's arm, or that it is that of the row above.
fn file(row: &AbRow, before: Option<&AbRow>) -> String {
    match before {
        Some(before) if row.arm.sha256.is_some() && before.arm.sha256 == row.arm.sha256 => {
            "same".to_owned()
        }
        _ => short(&row.arm),
    }
}

fn step(row: &AbRow) -> Vec<String> {
    match (&row.step, &row.unusable) {
        (_, Some(_)) => vec!["not compared".to_owned()],
        (None, None) if row.is_apart => vec!["other slices".to_owned()],
        (None, None) => vec![String::new(); 4],
        (Some(AbStep { judged, .. }), None) => {
            parts(judged.change, judged.simultaneous, Some(judged.verdict))
        }
    }
}

fn parts(
    change: Option<f64>,
    interval: Option<Interval>,
    verdict: Option<AbVerdict>,
) -> Vec<String> {
    let mark = verdict.map(mark).unwrap_or_default().to_owned();
    change_parts(change, interval).into_iter().chain([mark]).collect()
}

/// A word for what matters, a sign for the rest.
fn mark(verdict: AbVerdict) -> &'static str {
    match verdict {
        AbVerdict::Small => "~",
        AbVerdict::Equivalent => "=",
        AbVerdict::Inconclusive => "?",
        verdict => verdict.word(),
    }
}

/// What signs mean that occur.
fn legend(history: &AbHistory, is_short: bool) -> Vec<Text> {
    let steps = |series: &AbSeries| {
        let steps: Vec<AbVerdict> =
            series.steps().filter(|_| !is_short).map(|(_, step)| step.judged.verdict).collect();
        let rows = series.rows.iter().filter(|_| !is_short).chain(series.rows.last());
        rows.filter_map(|row| row.standing.verdict).chain(steps).collect::<Vec<_>>()
    };
    let all: Vec<AbVerdict> = history.series.iter().flat_map(steps).collect();
    let deltas = distinct(history.series.iter().map(|series| percent(series.delta)));
    let delta = if let [only] = &deltas[..] { only } else { "the threshold" };
    let known = [
        (AbVerdict::Equivalent, format!("= EQUIVALENT within {delta}")),
        (AbVerdict::Small, format!("~ SMALL: maybe less than {delta}")),
        (AbVerdict::Inconclusive, "? INCONCLUSIVE".to_owned()),
    ];
    let occurring = known.into_iter().filter(|(verdict, _)| all.contains(verdict));
    Text::parts(occurring.map(|(_, words)| words))
}

/// A line of each series: where it stands now, and its largest step.
fn overview(history: &AbHistory) -> Grid {
    const PARTS: [Align; 4] = [Align::Decimal, Align::Right, Align::Right, Align::Left];
    let row = |series: &AbSeries| {
        let newest = series.rows.last().map(|row| &row.standing);
        let now = newest.map(|now| parts(now.change, now.pointwise, now.verdict));
        let when = When::of(series, 0);
        let largest = beyond(series).into_iter().next().map(|(row, step)| {
            let change = step.judged.change.or_empty(signed);
            let day = when.shown(row);
            vec![change, step.judged.verdict.word().to_owned(), format!("{} {day}", row.run)]
        });
        vec![
            (Column::left(""), vec![label(history, series)]),
            (Column::right("runs"), vec![series.rows.len().to_string()]),
            (Column::of("newest [95%]", &PARTS), now.unwrap_or_default()),
            (
                Column::of("largest step", &[Align::Decimal, Align::Left, Align::Left]),
                largest.unwrap_or_else(|| vec![String::new(); 3]),
            ),
        ]
    };
    Grid::filled(String::new(), history.series.iter().map(row))
}

/// The same rows as a table of Markdown, with words instead of signs.
fn numbers(history: &AbHistory, series: &AbSeries) -> Table {
    let row = |row: &AbRow| -> Vec<Filled> {
        let standing = &row.standing;
        let step = row.step.as_ref().map(|step| &step.judged);
        let word = |verdict: Option<AbVerdict>| verdict.map_or("", AbVerdict::word);
        vec![
            left("date (UTC)", "", date(row)),
            left("run", "", row.run.clone()),
            left("file", "", short(&row.arm)),
            right(&standing_head(series), "", with_interval(standing.change, standing.pointwise)),
            left("verdict", "", word(standing.verdict)),
            right(
                &step_head(history),
                "",
                step.or_empty(|step| with_interval(step.change, step.simultaneous)),
            ),
            left(
                "verdict of the step",
                "",
                match row.unusable {
                    Some(_) => "not compared",
                    None if row.is_apart => "other slices",
                    None => word(step.map(|step| step.verdict)),
                },
            ),
        ]
    };
    Table::of("", series.rows.iter().map(row))
}

// A history for programs.

/// Names the form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "iolens-ab-history/1";

/// JSON. Changes are fractions: 0.02 is 2 % more. `interval` covers a change by itself,
/// `simultaneous` all `claims` together, by which steps are judged.
pub fn json(history: &AbHistory) -> String {
    let result = json!({
        "schema": SCHEMA,
        "claims": history.claims,
        "series": history.series.iter().map(series).collect::<Value>(),
        "left_out": history.left_out,
    });
    format!("{result:#}")
}

fn series(series: &AbSeries) -> Value {
    json!({
        "chain": series.is_chain,
        "baseline": program(&series.baseline),
        "arm": program(&series.arm),
        "mode": series.setting.mode,
        "values": series.setting.values.iter().cloned().collect::<Value>(),
        "quantity": series.quantity.word(),
        "threshold": series.delta,
        "older": series.older,
        "runs": series.rows.iter().map(|one| row(series, one)).collect::<Value>(),
        "overall": series.overall.as_ref().map(|overall| step_json(series, overall)),
    })
}

fn program(program: &AbNamed) -> Value {
    json!({
        "name": program.name,
        "sha256": program.sha256,
        "command": command_line::redacted(&program.command),
    })
}

fn row(series: &AbSeries, row: &AbRow) -> Value {
    let standing = &row.standing;
    json!({
        "id": row.run,
        "name": row.name,
        "started_unix_ns": row.started_unix_ns,
        "host": row.host,
        "arm": row.arm.name,
        "sha256": row.arm.sha256,
        "units": standing.units,
        "change": standing.change,
        "interval": standing.pointwise.map(pair),
        "verdict": standing.verdict.map(AbVerdict::word),
        "unusable": row.unusable,
        "slices_apart": row.is_apart,
        "step": row.step.as_ref().map(|one| step_json(series, one)),
    })
}

fn step_json(series: &AbSeries, step: &AbStep) -> Value {
    let runs = json!({
        "since": step.since.and_then(|since| series.rows.get(since)).map(|row| &row.run),
        "same_file": step.is_one_file,
    });
    with_judged(runs, &step.judged)
}

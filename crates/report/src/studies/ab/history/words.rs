//! What is found in a series, in words.

use iolens_document::{Answer, Joined, Label, Text};
use iolens_model::units;
use iolens_stats::ab::{
    AbChangeReason, AbHistory, AbJudgedChange, AbLeftOut, AbLeftOutWhy, AbReason, AbRow, AbSeries,
    AbStep, AbUnit, AbUnusable, AbVerdict,
};
use iolens_stats::analysis::Interval;

use super::super::words::{bracket, from_to, layout, signed};
use crate::groups::distinct;
use crate::number::{InWords, count, list, percent};

/// Steps that are told one by one, and runs in which many series changed.
const TOLD: usize = 2;
const GROUPS_TOLD: usize = 4;

/// Steps beyond the threshold, the largest first.
pub(super) fn beyond(series: &AbSeries) -> Vec<(&AbRow, &AbStep)> {
    let mut all: Vec<_> = series.steps().filter(|(_, step)| step.judged.is_beyond()).collect();
    all.sort_by(|(_, a), (_, b)| size(&b.judged).total_cmp(&size(&a.judged)));
    all
}

/// How large a change is, either way.
fn size(judged: &AbJudgedChange) -> f64 {
    judged.change.map_or(0.0, |change| change.ln_1p().abs())
}

/// What one wants to know: which step changed, by how much, how sure.
pub(super) fn sentence(series: &AbSeries) -> Vec<String> {
    let name = &series.arm.name;
    let steps: Vec<&AbJudgedChange> = series.steps().map(|(_, step)| &step.judged).collect();
    let whole = series.overall.as_ref().map(|whole| &whole.judged);
    let rest: Vec<&AbJudgedChange> =
        steps.iter().copied().filter(|step| !step.is_beyond()).collect();
    if steps.is_empty() {
        return vec![format!("{name} has no two runs that can be compared")];
    }
    if rest.len() < steps.len() {
        let mut said = events(series);
        said.extend(others(&rest, series.delta));
        said.extend(whole.map(|whole| first_to_last(series, whole)));
        return said;
    }
    match (whole.filter(|whole| whole.is_beyond()), &rest[..]) {
        (Some(whole), _) => vec![
            format!("{name} became {} from the first run to the last", claim(whole)),
            format!("by small steps: {}", counted(&rest, series.delta)),
        ],
        (None, [only]) => vec![single(series, only)],
        (None, _) => {
            let all = rest.iter().all(|step| step.verdict == AbVerdict::Equivalent);
            let delta = percent(series.delta);
            let said = match all {
                true => format!(
                    "{name} is EQUIVALENT within {delta} in each of the {} steps",
                    rest.len()
                ),
                false => format!(
                    "no step is shown to be beyond {delta}: {}",
                    counted(&rest, series.delta)
                ),
            };
            [said].into_iter().chain(whole.map(|whole| first_to_last(series, whole))).collect()
        }
    }
}

/// Steps beyond the threshold, in the order in which they came.
fn events(series: &AbSeries) -> Vec<String> {
    let mut told = beyond(series);
    let all = told.len();
    told.truncate(TOLD);
    told.sort_by_key(|(row, _)| row.started_unix_ns);
    let mut said: Vec<String> = told.iter().map(|(row, step)| event(row, step)).collect();
    for (nth, event) in said.iter_mut().enumerate() {
        *event = match nth {
            0 => format!("{} became {event}", series.arm.name),
            _ => format!("then {event}"),
        };
    }
    let more = all.saturating_sub(TOLD);
    said.extend((more > 0).then(|| {
        format!("{} beyond {}, and smaller", are_more(more, "step"), percent(series.delta))
    }));
    said
}

/// `1 more step is`, `3 more steps are`.
fn are_more(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 more {noun} is") } else { format!("{n} more {noun}s are") }
}

/// `SLOWER by more than 3% (+4.5% [+3.5, +5.5]) with run 77aa0011 of 2026-11-26`.
fn event(row: &AbRow, step: &AbStep) -> String {
    let said = format!("{} with run {} of {}", claim(&step.judged), row.run, day(row));
    match (step.is_one_file, step.judged.verdict) {
        (true, _) => format!("{said}, which has the same file: something else changed"),
        (false, AbVerdict::Build) => format!("{said}: linking the same source again can do that"),
        (false, _) => said,
    }
}

fn day(row: &AbRow) -> String {
    units::utc(row.started_unix_ns).chars().take("2026-11-26".len()).collect()
}

/// `SLOWER by more than 3% (+4.5% [+3.5, +5.5])`.
fn claim(step: &AbJudgedChange) -> String {
    let is_faster = step.change.is_some_and(|change| change < 0.0);
    let numbers = numbers(step);
    match (&step.reason, step.verdict) {
        (AbChangeReason::Rule(AbReason::Beyond { bound, .. }), verdict) => {
            format!("{} by more than {} ({numbers})", verdict.word(), percent(*bound))
        }
        (_, AbVerdict::Build) => {
            let word = if is_faster { "faster" } else { "slower" };
            format!("{word} as it was built (BUILD, {numbers})")
        }
        (_, verdict) => format!("{} ({numbers})", verdict.word()),
    }
}

fn numbers(step: &AbJudgedChange) -> String {
    let value = step.change.map_or_else(|| "no number".to_owned(), signed);
    let interval = step.simultaneous.or_empty(|interval| format!(" {}", bracket(interval)));
    format!("{value}{interval}")
}

/// What is said of two runs without a step beyond the threshold.
fn single(series: &AbSeries, step: &AbJudgedChange) -> String {
    let numbers = numbers(step);
    match step.verdict {
        AbVerdict::Equivalent if !series.is_chain => format!(
            "{} is the same in both runs: EQUIVALENT within {} ({numbers})",
            series.arm.name,
            percent(series.delta)
        ),
        verdict => format!("the step is {} ({numbers})", verdict.word()),
    }
}

fn first_to_last(series: &AbSeries, whole: &AbJudgedChange) -> String {
    let what = if series.is_chain { "all steps together" } else { "first run to last" };
    format!("{what}: {}, {}", numbers(whole), whole.verdict.word())
}

fn others(rest: &[&AbJudgedChange], delta: f64) -> Option<String> {
    let steps = match rest.len() {
        0 => return None,
        1 => "the other step".to_owned(),
        n => format!("the other {n} steps"),
    };
    Some(format!("{steps}: {}", counted(rest, delta)))
}

/// `3 EQUIVALENT within 3%, 1 INCONCLUSIVE (up to 6.1% is possible)`.
fn counted(steps: &[&AbJudgedChange], delta: f64) -> String {
    let of = |verdict: AbVerdict| steps.iter().filter(|step| step.verdict == verdict).count();
    let words = [
        (AbVerdict::Equivalent, format!("EQUIVALENT within {}", percent(delta))),
        (AbVerdict::Small, "SMALL".to_owned()),
        (AbVerdict::Inconclusive, "INCONCLUSIVE".to_owned()),
        (AbVerdict::Invalid, "INVALID".to_owned()),
    ];
    let counts = words.into_iter().map(|(verdict, words)| (of(verdict), words));
    let counts = counts.filter(|(n, _)| *n > 0).map(|(n, words)| match n {
        1 if steps.len() == 1 => words,
        n if n == steps.len() => format!("all {words}"),
        n => format!("{n} {words}"),
    });
    let counts = counts.joined(", ");
    let hides = hidden(steps).or_empty(|most| format!(" (up to {most} is possible)"));
    format!("{counts}{hides}")
}

/// How large a step may be that is not shown to be equivalent, either way.
fn hidden(steps: &[&AbJudgedChange]) -> Option<String> {
    let open = steps.iter().filter(|step| step.verdict != AbVerdict::Equivalent);
    let ends = open.filter_map(|step| step.simultaneous);
    let most = ends.map(|interval| interval.low.abs().max(interval.high.abs()));
    most.reduce(f64::max).filter(|most| most.is_finite()).map(percent)
}

/// Of few series all that is found, of many what changed and that the others did not.
pub(super) fn sentences(history: &AbHistory, label: &dyn Fn(&AbSeries) -> String) -> Vec<Answer> {
    const EACH: usize = 3;
    let of = |series: &AbSeries| match label(series) {
        label if label.is_empty() => label,
        label => format!("{label}: "),
    };
    let all = &history.series;
    let whole = |series: &AbSeries| {
        let mut said = sentence(series);
        if let Some(first) = said.first_mut() {
            first.insert_str(0, &of(series));
        }
        Answer::of(Label::Verdict, said)
    };
    if all.len() <= EACH {
        return all.iter().map(whole).collect();
    }
    let mut said = together(all);
    let others: Vec<&AbSeries> = all.iter().filter(|series| !has_changed(series)).collect();
    said.extend(told_shortly(&others, all.len()));
    said.into_iter().map(|said| Answer::one(Label::Verdict, said)).collect()
}

fn has_changed(series: &AbSeries) -> bool {
    series.overall.as_ref().is_some_and(|whole| whole.judged.is_beyond())
        || !beyond(series).is_empty()
}

/// `SLOWER with run 77aa0011 of 2026-11-26: 3 of 4 series, by up to +5.9%`: the largest steps of
/// series, those of one run together.
fn together(all: &[AbSeries]) -> Vec<String> {
    type Alike<'a> = (AbVerdict, Option<&'a AbRow>, Vec<f64>);
    let mut alike: Vec<Alike<'_>> = Vec::new();
    for series in all.iter().filter(|series| has_changed(series)) {
        let largest = beyond(series).into_iter().next().map(|(row, step)| (Some(row), step));
        let Some((row, step)) = largest.or(series.overall.as_ref().map(|step| (None, step))) else {
            continue;
        };
        let (verdict, change) = (step.judged.verdict, step.judged.change.unwrap_or(0.0));
        let run = |row: Option<&AbRow>| row.map(|row| row.run.clone());
        match alike.iter_mut().find(|(of, at, _)| *of == verdict && run(*at) == run(row)) {
            Some((.., changes)) => changes.push(change),
            None => alike.push((verdict, row, vec![change])),
        }
    }
    let told = alike.iter().take(GROUPS_TOLD).map(|(verdict, row, changes)| {
        let when = match row {
            Some(row) => format!("with run {} of {}", row.run, day(row)),
            None => "from the first run to the last, by small steps".to_owned(),
        };
        let most = changes.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let most = most.or_empty(signed);
        let upto = if changes.len() == 1 { "by" } else { "by up to" };
        let word = verdict.word();
        format!("{word} {when}: {} of {} series, {upto} {most}", changes.len(), all.len())
    });
    let mut said: Vec<String> = told.collect();
    let more = alike.len().saturating_sub(GROUPS_TOLD);
    said.extend((more > 0).then(|| format!("{} beyond the threshold", are_more(more, "run"))));
    said
}

/// Series in which no step is beyond the threshold, where they are many.
fn told_shortly(others: &[&AbSeries], all: usize) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let steps: Vec<&AbJudgedChange> =
        others.iter().flat_map(|series| series.steps().map(|(_, step)| &step.judged)).collect();
    let delta = others.iter().map(|series| series.delta).fold(0.0, f64::max);
    let of = match others.len() {
        n if n == all => format!("no step of the {all} series is"),
        1 => "no step of the other series is".to_owned(),
        n => format!("no step of the other {n} series is"),
    };
    let counted = counted(&steps, delta);
    Some(format!("{of} shown to be beyond {}: {counted}", percent(delta)))
}

/// Without which a decision could go wrong.
pub(super) fn cautions(history: &AbHistory) -> Vec<Answer> {
    let steps = || history.series.iter().flat_map(AbSeries::steps);
    let rows = || history.series.iter().flat_map(|series| &series.rows);
    let mut said: Vec<String> = Vec::new();
    let mut hosts: Vec<String> = rows().filter_map(|row| row.host.clone()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > 1 {
        said.push(format!(
            "these are runs of {} machines ({}), on which the same two programs may differ by \
             different amounts",
            hosts.len(),
            list(&hosts)
        ));
    }
    let layout = layout(steps().map(|(_, step)| step.judged.layout_allowance));
    said.extend(layout.map(|share| {
        format!("up to {share} of a step between two files may come from code placement")
    }));
    let unusable = history.series.iter().flat_map(|series| {
        let unit = AbUnit::of(series.setting.mode);
        let unfit_rows = series.rows.iter().filter_map(|row| Some((row, row.unusable.as_ref()?)));
        unfit_rows.map(move |(row, why)| {
            format!("run {} is not compared: {}", row.run, unfit(why, unit.word()))
        })
    });
    let unusable: Vec<String> = unusable.collect();
    let has_gap = |series: &&AbSeries| {
        let steps = series.steps().count();
        series.is_chain && series.overall.is_none() && steps.max(series.rows.len()) > 1
    };
    if history.series.iter().any(|series| has_gap(&series)) {
        said.push(
            "the chain has a gap: what its steps come to is not known from there on".to_owned(),
        );
    }
    said.extend(apart(history));
    let more = unusable.len().saturating_sub(TOLD);
    said.extend(unusable.into_iter().take(TOLD));
    said.extend((more > 0).then(|| format!("{} more are not compared", count(more, "run"))));
    said.into_iter().map(|said| Answer::one(Label::Caution, said)).collect()
}

/// Runs without a step, because their slices are unlike those before.
fn apart(history: &AbHistory) -> Option<String> {
    let rows = history.series.iter().flat_map(|series| &series.rows);
    let runs = distinct(rows.filter(|row| row.is_apart).map(|row| &row.run));
    let who = match runs[..] {
        [] => return None,
        [run] => format!("run {run} has no step: its"),
        _ => format!("{} have no step: their", count(runs.len(), "run")),
    };
    Some(format!("{who} slices are over twice as long or short as in every run before"))
}

fn unfit(why: &AbUnusable, unit: &str) -> String {
    match why {
        AbUnusable::CopiesDiffer { of: 0 } => "two copies of its baseline differ".to_owned(),
        AbUnusable::CopiesDiffer { .. } => "two copies of its program differ".to_owned(),
        AbUnusable::WorksBetween { of: 0 } => "its baseline works between its turns".to_owned(),
        AbUnusable::WorksBetween { .. } => "its program works between its turns".to_owned(),
        AbUnusable::Missing { .. } => "it has no number".to_owned(),
        AbUnusable::TooFew { units, least } => {
            format!("{units} of the {} a verdict needs", count(*least, unit))
        }
        AbUnusable::NoInterval { units } => {
            format!("{}, too few for an interval", count(*units, unit))
        }
    }
}

/// What runs of one file differ by.
pub(super) fn trust(history: &AbHistory) -> Option<Answer> {
    let steps = || history.series.iter().flat_map(AbSeries::steps);
    steps().next()?;
    let checked = "files named in commands are not checked".to_owned();
    if history.series.iter().all(|series| series.is_chain) {
        let said = "each run's baseline is the file that the run before measured; errors add up";
        return Some(Answer::of(Label::Trust, [said.to_owned(), checked]));
    }
    let repeats = steps().filter(|(_, step)| step.is_one_file);
    let changes: Vec<f64> = repeats.filter_map(|(_, step)| step.judged.change).collect();
    let low = changes.iter().copied().reduce(f64::min);
    let said = match low.zip(changes.iter().copied().reduce(f64::max)) {
        Some((only, _)) if changes.len() == 1 => {
            format!("two runs of one file differ by {}", signed(only))
        }
        Some((low, high)) => {
            let by = match signed(low) == signed(high) {
                true => signed(low),
                false => from_to(Interval { low, high }),
            };
            format!("runs of one file differ by {by} ({} pairs)", changes.len())
        }
        None => "no file was measured twice, so run-to-run variance is unknown".to_owned(),
    };
    Some(Answer::of(Label::Trust, [said, checked]))
}

/// How many runs are in no series, and why.
pub(super) fn left_out(history: &AbHistory) -> Option<Answer> {
    let said: Vec<String> = history.left_out.iter().map(left_words).collect();
    (!said.is_empty()).then(|| Answer::one(Label::Notes, format!("left out: {}", said.join("; "))))
}

/// `2 runs of --links (their baseline is several files)`.
pub fn left_words(left: &AbLeftOut) -> String {
    let runs = count(left.runs.len(), "run");
    let verb =
        |one: &'static str, many: &'static str| if left.runs.len() == 1 { one } else { many };
    match left.why {
        AbLeftOutWhy::OtherFile => format!("{runs} beside another file of that name"),
        AbLeftOutWhy::Alone => {
            format!("{runs} with a baseline, arguments or settings of {} own", verb("its", "their"))
        }
        AbLeftOutWhy::PartlyAlone => {
            format!("settings that only one run has, of {runs}")
        }
        AbLeftOutWhy::OneFile => format!("{runs} with one file on both sides"),
        AbLeftOutWhy::Links => format!("{runs} of --links, whose baseline is several files"),
        AbLeftOutWhy::NotJudged => format!("{runs} that did not judge this"),
        AbLeftOutWhy::NotEnded => {
            format!(
                "{runs} that {} not ended, or {} killed",
                verb("has", "have"),
                verb("was", "were")
            )
        }
        AbLeftOutWhy::Damaged => format!("{runs} that {} damaged", verb("is", "are")),
    }
}

/// What to type next: the largest step, and more of the same.
pub(super) fn next(history: &AbHistory, is_short: bool) -> Answer {
    let of_series = history.series.iter().filter_map(|series| {
        let (row, step) = beyond(series).into_iter().next()?;
        Some((series, row, step))
    });
    let largest = of_series.max_by(|(.., a), (.., b)| size(&a.judged).total_cmp(&size(&b.judged)));
    let largest = largest.map(|(series, row, step)| {
        let before = step.since.and_then(|since| series.rows.get(since));
        let command = match before {
            Some(before) => format!("iolens compare {} {}", before.run, row.run),
            None => format!("iolens show {}", row.run),
        };
        Text::code(command).and(" (the largest step)")
    });
    let newest = history.series.first().and_then(|series| series.rows.last());
    let newest =
        newest.map(|row| Text::code(format!("iolens show {}", row.run)).and(" (the newest run)"));
    let mut said: Vec<Text> = largest.or(newest).into_iter().collect();
    said.push(match is_short {
        true => Text::code("--verbose").and(" (every run)"),
        false => Text::code("--markdown").and(" (for a pull request)"),
    });
    Answer { label: Label::Next, said }
}

//! An explanation as a screen: what each method spends by class of work, and where the
//! difference is.

use iolens_document::{Align, Answer, Block, Column, Grid, Label, Row, Screen, Text};
use iolens_model::units::three_digits;
use iolens_stats::analysis::Analysis;
use iolens_stats::attribution::{
    Against, ArmAttribution, Class, Explanation, SamplingCost, ScopeAttribution,
};

use super::{WORTH_SAYING, is_sure, noticed, time, time_of, unit_of, worth_saying};
use crate::number::{InWords, count, list};

/// Classes that are named of a difference, at most.
const NAMED_MAX: usize = 3;

/// A class is named from this part of the difference on, of both directions together.
const WORTH_NAMING: f64 = 0.1;

/// The screen.
pub(super) fn screen(
    run: &str,
    explanation: &Explanation,
    analysis: &Analysis,
    verbose: bool,
) -> Screen {
    let attribution = &explanation.attribution;
    let samples: u64 = attribution.arms.iter().map(|arm| arm.both.samples).sum();
    let each = samples / (attribution.arms.len() as u64).max(1);
    let mut answers: Vec<Answer> = Vec::new();
    answers.extend(
        explanation
            .against
            .iter()
            .map(|one| Answer { label: Label::Why, said: difference(explanation, one) }),
    );
    let noticed = noticed(explanation, analysis);
    answers.extend(noticed.into_iter().map(|said| Answer::one(Label::Caution, said)));
    answers.push(Answer { label: Label::Trust, said: trust(explanation) });
    answers.push(next(run, verbose));
    Screen {
        header: vec![
            "explain".into(),
            format!("run {run}").into(),
            attribution.cell.to_string().into(),
        ],
        effort: vec![
            count(attribution.trials, "sampled trial").into(),
            format!("about {each} samples of each method").into(),
        ],
        blocks: vec![Block::Grid(grid(explanation))],
        answers,
        ..Screen::default()
    }
}

fn shown<'a>(explanation: &'a Explanation, label: &str) -> Option<&'a ArmAttribution> {
    explanation.attribution.arms.iter().find(|arm| arm.arm == label)
}

/// A time and its share of all: `2.50  33%`.
const PARTS: [Align; 2] = [Align::Decimal, Align::Right];

/// The unit of all times of a table: a name, and how many nanoseconds it has.
fn unit(arms: &[ArmAttribution]) -> (&'static str, f64) {
    let totals = arms.iter().map(|arm| arm.both.cpu_ns_per_message.value);
    match totals.fold(0.0, f64::max) {
        ns if ns < 1e3 => ("ns", 1.0),
        ns if ns < 1e6 => ("µs", 1e3),
        _ => ("ms", 1e6),
    }
}

/// Of each method the time of each class and its share; of two methods the difference as well.
fn grid(explanation: &Explanation) -> Grid {
    let attribution = &explanation.attribution;
    let arms = &attribution.arms;
    let both = if attribution.cell.is_alone() { "" } else { ", both ends" };
    let (unit, scale) = unit(arms);
    let title = format!("{} per {}{both}, {unit}", time_of(explanation), unit_of(explanation));
    let only = explanation.against.first().filter(|_| explanation.against.len() == 1);
    let mut columns = vec![Column::left("")];
    columns.extend(arms.iter().map(|arm| Column::of(arm.shown(), &PARTS)));
    columns.extend(only.map(|_| Column::decimal("difference")));
    let has = |class: &Class| arms.iter().any(|arm| arm.both.class(*class).is_some());
    let mut classes: Vec<Class> = Class::ALL.iter().copied().filter(has).collect();
    let most = |class: &Class| {
        let of = |arm: &ArmAttribution| arm.both.class(*class).map_or(0.0, |c| c.share.value);
        arms.iter().map(of).fold(0.0, f64::max)
    };
    classes.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let mut rows: Vec<Row> = classes
        .into_iter()
        .map(|class| {
            let mut cells = vec![vec![class.word().to_owned()]];
            cells.extend(arms.iter().map(|arm| spent(&arm.both, class, scale)));
            cells.extend(only.map(|only| {
                let mut of = only.classes.iter();
                let own = of.find(|one| one.class == class && is_sure(&one.ns_per_message));
                own.map_or_else(Vec::new, |own| vec![plus(own.ns_per_message.value / scale)])
            }));
            Row::Cells(cells)
        })
        .collect();
    let mut total = vec![vec!["total".to_owned()]];
    let of = |arm: &ArmAttribution| three_digits(arm.both.cpu_ns_per_message.value / scale);
    total.extend(arms.iter().map(|arm| vec![of(arm)]));
    total.extend(only.map(|only| vec![plus(only.cpu_ns_per_message.value / scale)]));
    rows.push(Row::Cells(total));
    Grid { title, columns, rows }
}

fn spent(of: &ScopeAttribution, class: Class, scale: f64) -> Vec<String> {
    let Some(share) = of.class(class) else { return Vec::new() };
    let ns = share.ns_per_message.value;
    // Of the time beside it: the mean of trials' own shares is another number.
    let all_ns = Some(of.cpu_ns_per_message.value).filter(|&all_ns| all_ns > 0.0);
    let part = all_ns.or_empty(|all_ns| format!("{:.0}%", 100.0 * ns / all_ns));
    vec![three_digits(ns / scale), part]
}

fn plus(difference: f64) -> String {
    let sign = if difference < 0.0 { '−' } else { '+' };
    format!("{sign}{}", three_digits(difference.abs()))
}

/// What a method saves against the baseline and what it spends instead.
fn difference(explanation: &Explanation, against: &Against) -> Vec<Text> {
    let arm = shown(explanation, &against.arm).map_or(against.arm.clone(), ArmAttribution::shown);
    let worth = || worth_saying(explanation, against);
    let all: f64 = worth().map(|class| class.ns_per_message.value.abs()).sum();
    let named = |is_less: bool| -> Vec<String> {
        worth()
            .map(|class| (class.class, class.ns_per_message.value))
            .filter(|(_, ns)| (*ns < 0.0) == is_less && ns.abs() >= WORTH_NAMING * all)
            .take(NAMED_MAX)
            .map(|(class, _)| class.word().to_owned())
            .collect()
    };
    let (less, more) = (named(true), named(false));
    let total = &against.cpu_ns_per_message;
    let sum = match (is_sure(total), total.value < 0.0) {
        (false, _) => format!("no difference from {} shown in all", against.other),
        (true, true) => format!("{} less than {} in all", time(-total.value), against.other),
        (true, false) => format!("{} more than {} in all", time(total.value), against.other),
    };
    let said = match (less.is_empty(), more.is_empty()) {
        (true, true) => format!(
            "{arm}: no class of work is shown to differ by {:.0}% of {}'s {} or more",
            100.0 * WORTH_SAYING,
            against.other,
            time_of(explanation)
        ),
        (false, true) => format!("{arm} saves {}", list(&less)),
        (true, false) => format!("{arm} adds {}", list(&more)),
        (false, false) => format!("{arm} saves {}; it adds {}", list(&less), list(&more)),
    };
    vec![said.into(), sum.into()]
}

/// What sampling cost, and how often was looked.
fn trust(explanation: &Explanation) -> Vec<Text> {
    let attribution = &explanation.attribution;
    let cost = |cost: &SamplingCost| -> Text {
        let extra = 100.0 * (cost.ratio.value - 1.0);
        format!("sampling changed the time of {} by {extra:+.1}%", cost.arm)
            .replace('-', "−")
            .into()
    };
    let period = time(attribution.period_ns as f64);
    let mut said: Vec<Text> = attribution.sampling_cost.iter().map(cost).collect();
    said.push(format!("a sample every {period} of CPU time, in trials of their own").into());
    said
}

fn next(run: &str, verbose: bool) -> Answer {
    let command = format!("iolens explain {run}");
    let mut said = vec![Text::code(format!("{command} --folded out.txt")).and(" (flame graph)")];
    if !verbose {
        said.push(Text::code(format!("{command} --verbose")).and(" (per end, by function)"));
    }
    Answer { label: Label::Next, said }
}

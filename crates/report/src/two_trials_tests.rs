//! Runs of two passes in which arms take turns in being thousands of times slower: intervals that
//! say nothing are named as such, in every form and of every study, and no end is printed.

use iolens_model::arm::Role;
use iolens_model::outcome::Counts;
use iolens_model::plan::Passes;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::studies::files;
use crate::studies::tests::studies;
use crate::text::{self, Style};
use crate::{fixture, html, studies};

/// Digits in a row, a point among them, beyond which a number is no figure of anything.
const DIGITS_MAX: usize = 12;

/// How much slower.
const TIMES: u64 = 2000;

/// The first two passes, of each arm one slowed down.
fn restless((mut run, _): (Run, Analysis)) -> (Run, Analysis) {
    run.header.plan.passes = Passes { minimum: 2, maximum: 2 };
    run.trials.retain(|trial| trial.pass <= 2);
    for trial in &mut run.trials {
        trial.duration_ns *= TIMES;
        for slice in &mut trial.slices {
            let is_slow = (slice.arm as u64 + u64::from(trial.pass)).is_multiple_of(2);
            let times = if is_slow { TIMES } else { 1 };
            let slow = |counts: &mut Counts| {
                counts.time_ns *= times;
                counts.task_clock_ns = counts.task_clock_ns.map(|ns| ns * times);
            };
            slow(&mut slice.tx);
            slice.rx.as_mut().map(slow);
            slice.all_active_ns *= times;
        }
    }
    let analysis = iolens_stats::analyse(&run);
    (run, analysis)
}

/// One way alone, with its hidden copy.
fn alone((mut run, analysis): (Run, Analysis)) -> (Run, Analysis) {
    let baseline = run.header.plan.baseline.clone();
    run.header.plan.primitives.retain(|primitive| *primitive == baseline);
    for trial in &mut run.trials {
        let of_baseline: Vec<usize> = (0..trial.arms.len())
            .filter(|&place| trial.arms[place].arm.primitive == baseline)
            .collect();
        trial.slices.retain(|slice| of_baseline.contains(&slice.arm));
        for slice in &mut trial.slices {
            slice.arm = of_baseline.iter().position(|&place| place == slice.arm).unwrap();
        }
        trial.arms.retain(|arm| arm.arm.primitive == baseline);
    }
    (run, analysis)
}

/// What of a text nobody could have measured: numbers of very many digits, and intervals,
/// `[a, b]`, `(a to b)` or `(a–b)`, whose ends are more than a factor of ten apart.
pub(crate) fn absurd(text: &str) -> Vec<&str> {
    let digits = |word: &&str| word.chars().filter(char::is_ascii_digit).count() > DIGITS_MAX;
    let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.').filter(digits);
    let groups = text.split(['[', '(']).skip(1).filter_map(|rest| rest.split([']', ')']).next());
    let wide = |group: &&str| {
        let ends = group.trim_start_matches("95% interval ");
        let both = [", ", " to ", "–"].into_iter().find_map(|between| ends.split_once(between));
        let both = both.and_then(|(low, high)| amount(low).zip(amount(high)));
        // An end at 0 is no ratio's.
        both.is_some_and(|(low, high)| low > 0.0 && high > 10.5 * low)
    };
    numbers.chain(groups.filter(wide)).collect()
}

/// `3.05 µs`, or another number with or without a unit of time; `None` for other words.
fn amount(text: &str) -> Option<f64> {
    let (digits, unit) = text.split_once(' ').unwrap_or((text, ""));
    let unit = match unit.split([',', ';']).next()? {
        "µs" => 1e3,
        "ms" => 1e6,
        _ => 1.0,
    };
    Some(digits.parse::<f64>().ok()? * unit)
}

/// The lines that have such a number, of all that is told of a run.
fn absurd_lines(name: &str, (run, analysis): (Run, Analysis)) -> Vec<String> {
    let style = Style::plain(300);
    let mut texts = vec![
        text::run(&run, &analysis, &style),
        text::whole(&run, &analysis, &style),
        text::first(&run, &analysis, None, &style),
    ];
    let shown = analysis.cells.iter().map(|cell| text::show(&run, &analysis, cell, &style));
    texts.extend(shown);
    let page = html::page(&run, &analysis);
    let plan = page.find("The plan as stored").expect("how to reproduce");
    texts.push(page[page.find("<body").expect("a body")..plan].to_owned());
    for figure in studies::figures(&run, &analysis) {
        texts.extend([figure.svg, figure.table.text(300)]);
    }
    assert!(
        texts.iter().any(|text| text.contains("no usable interval")),
        "{name}: {:#?}",
        analysis.rejected
    );
    let lines = texts.iter().flat_map(|text| text.lines());
    let found = lines.filter(|line| !absurd(line).is_empty());
    found.map(|line| format!("{name}: {:?} in {line}", absurd(line))).collect()
}

#[test]
fn no_end_of_an_interval_that_says_nothing_is_printed() {
    let runs = [
        ("net", fixture::run()),
        ("net, one way", alone(fixture::run())),
        ("file, one engine", alone(files::tests::run())),
    ];
    let runs = runs.into_iter().chain(studies());
    let found = runs.flat_map(|(name, run)| absurd_lines(name, restless(run)));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_nobody_measured_is_found() {
    let text = "1.03× [0.0000, 2363516810150224592896], 123456789012 and 1.0, a = 3 [0, 63]";
    assert_eq!(absurd(text), ["2363516810150224592896"]);
    let text = "100 ns (20.0 ns to 3.11 µs), 96% (1.00–99.0), 5 [0.500 ms, 4.90 ms], f(1, 2)";
    assert_eq!(absurd(text), ["20.0 ns to 3.11 µs", "1.00–99.0"]);
}

/// A run of so many passes whose copy of the baseline takes a fifth longer in each.
fn astray(passes: u32) -> iolens_document::Screen {
    let (mut run, _) = files::tests::run();
    run.header.plan.passes = Passes { minimum: passes, maximum: passes };
    run.trials.retain(|trial| trial.pass <= passes);
    for trial in &mut run.trials {
        let copy = trial.arms.iter().position(|arm| arm.arm.role == Role::SelfCheck);
        for slice in trial.slices.iter_mut().filter(|slice| Some(slice.arm) == copy) {
            slice.tx.time_ns = slice.tx.time_ns / 5 * 6;
        }
    }
    let analysis = iolens_stats::analyse(&run);
    studies::screen(&run, &analysis, None)
}

#[test]
fn self_checks_of_fewer_than_five_passes_head_nothing() {
    let has_alarm = |passes| astray(passes).alarm.is_some();
    assert_eq!([2, 4, 5, 12].map(has_alarm), [false, false, true, true]);
    let drawn = iolens_document::terminal::draw(&astray(4), &Style::plain(100));
    assert!(drawn.contains("too few trials to check itself"), "{drawn}");
}

//! The first screen.

use std::collections::BTreeMap;

use iolens_document::{Align, Answer, Block, Column, Grid, Label, Screen, Text};
use iolens_model::ab::AbQuantity;
use iolens_model::run::{Run, StoppedBy};
use iolens_model::units::Nanos;
use iolens_stats::ab::{
    AB_UNITS_MIN, AbAnalysis, AbArmFigures, AbCell, AbContrast, AbReason, AbThrottled, AbVerdict,
    passes_ns,
};

use super::words::{
    Said, Unit, change_parts, contrasts, from_to, layout, mode, of_setting, per_operation, place,
    quantity, signed,
};
use super::{calls, links};
use crate::number::{InWords, count, list, list_with, percent};
use crate::screen::After;
use crate::screen::effort::{machine, spent};

/// The screen of a run; one that has just been measured ends with what to type next.
pub(super) fn screen(run: &Run, analysis: &AbAnalysis, after: Option<After<'_>>) -> Screen {
    let said = Said::of(run);
    let mut screen = Screen {
        header: Text::parts(header(run)),
        effort: Text::parts(effort(run, analysis)),
        problems: problems(analysis),
        ..Screen::default()
    };
    for cell in &analysis.cells {
        screen.blocks.push(Block::Grid(table(cell, &place(cell))));
        let of = of_setting(analysis, cell);
        let verdicts = said.verdicts(cell).into_iter().map(|verdict| format!("{of}{verdict}"));
        screen.answers.extend(verdicts.map(|said| Answer::one(Label::Verdict, said)));
    }
    screen.answers.extend(why(&said, analysis));
    screen.answers.extend(trust(&said, run, analysis));
    screen.answers.extend(cautions(run, analysis));
    if let Some(After { page, .. }) = after {
        screen.answers.push(next(run, analysis));
        screen.answers.extend(page.map(|page| Answer::one(Label::Report, Text::file(page))));
    }
    screen
}

fn all_contrasts(analysis: &AbAnalysis) -> impl Iterator<Item = &AbContrast> {
    analysis.cells.iter().flat_map(|cell| &cell.judgement.contrasts)
}

fn all_arms(analysis: &AbAnalysis) -> impl Iterator<Item = &AbArmFigures> {
    analysis.cells.iter().flat_map(|cell| &cell.arms)
}

fn header(run: &Run) -> Vec<String> {
    let mode = run.header.plan.ab().map(|axes| mode(axes.mode));
    let parts = [Some("ab".to_owned()), mode.map(str::to_owned), machine(run)];
    parts.into_iter().flatten().collect()
}

fn effort(run: &Run, analysis: &AbAnalysis) -> Vec<String> {
    let units = all_contrasts(analysis);
    let units = units.map(|contrast| contrast.units).max().unwrap_or(0);
    let several = if analysis.cells.len() > 1 { " per setting" } else { "" };
    let mut parts = vec![format!("{}{several}", count(units, analysis.unit.word()))];
    let is_own = analysis.cells.iter().any(|cell| cell.is_own_time);
    parts.extend(is_own.then(|| "times are the programs' own".to_owned()));
    let end = run.header.end.as_ref();
    parts.extend(run.header.took_ns().map(|ns| format!("{} in all", spent(ns))));
    parts.extend(
        match end.map(|end| end.stopped_by) {
            None => Some("not ended, or killed"),
            Some(StoppedBy::Interrupted) => Some("interrupted"),
            Some(StoppedBy::Budget) => Some("out of time"),
            Some(StoppedBy::Stalled) => Some("more trials of these links tell no more"),
            Some(StoppedBy::NothingUsable) => Some("nothing usable"),
            _ => None,
        }
        .map(str::to_owned),
    );
    parts
}

/// Arms with what an operation takes of them, and how that differs from the baseline.
fn table(cell: &AbCell, title: &str) -> Grid {
    let unit = Unit::of(cell);
    let has_calls = cell.arms.iter().any(|arm| !arm.calls.is_empty());
    let has_faults =
        cell.arms.iter().any(|arm| arm.op_faults.is_some_and(|faults| faults >= 0.005));
    let row = |(nth, arm): (usize, &AbArmFigures)| {
        let contrast = |quantity| {
            let mut all = cell.judgement.contrasts.iter();
            all.find(|contrast| contrast.arm == nth && contrast.quantity == quantity)
        };
        let name = if nth == 0 { format!("{} (baseline)", arm.name) } else { arm.name.clone() };
        let mut row = vec![(Column::left(""), vec![name])];
        row.push((
            Column::decimal(format!("{}/op", unit.word)),
            vec![unit.shown(cell.op_ns(nth, AbQuantity::Time))],
        ));
        row.push(compared(contrast(AbQuantity::Time)));
        row.push((
            Column::decimal(format!("CPU {}/op", unit.word)),
            vec![unit.shown(cell.op_ns(nth, AbQuantity::Cpu))],
        ));
        row.push(compared(contrast(AbQuantity::Cpu)));
        if has_calls {
            row.push((Column::decimal("calls/op"), vec![calls::shown(arm)]));
        }
        if has_faults {
            let faults = arm.op_faults.or_empty(per_operation);
            row.push((Column::decimal("faults/op"), vec![faults]));
        }
        row
    };
    Grid::filled(title, cell.arms.iter().enumerate().map(row)).without_empty()
}

/// The change of an arm and its interval.
fn compared(contrast: Option<&AbContrast>) -> (Column, Vec<String>) {
    let column = Column::of("change [95%]", &[Align::Decimal, Align::Right, Align::Right]);
    let Some(contrast) = contrast else { return (column, vec![String::new(); 3]) };
    (column, change_parts(contrast.change, contrast.pointwise).into())
}

/// What the arms do differently, and where, if that is in one setting of several.
fn why(said: &Said<'_>, analysis: &AbAnalysis) -> Option<Answer> {
    let cell = analysis.cells.first()?;
    let base = cell.arms.first()?;
    let others = cell.arms.iter().skip(1).filter(|arm| !arm.calls.is_empty());
    let mut parts: Vec<String> = others.map(|arm| calls::told(said, base, arm)).collect();
    parts.extend(cell.arms.iter().last().and_then(|arm| {
        let kernel = percent(((1.0 - arm.user_share?) * 100.0).round() / 100.0);
        Some(format!("{kernel} of the CPU time of {} is in the kernel", arm.name))
    }));
    in_setting(analysis, cell, Label::Why, parts)
}

/// An answer of these parts, which begins with the setting that it holds of.
fn in_setting(
    analysis: &AbAnalysis,
    cell: &AbCell,
    label: Label,
    mut parts: Vec<String>,
) -> Option<Answer> {
    parts.first_mut()?.insert_str(0, &of_setting(analysis, cell));
    Some(Answer::of(label, parts))
}

/// What is found between equals, and what could have been seen.
fn trust(said: &Said<'_>, run: &Run, analysis: &AbAnalysis) -> Option<Answer> {
    let cell = least_sure(analysis)?;
    let quantity_of = cell.judgement.contrasts.first()?.quantity;
    let copies = cell.judgement.copies.iter().filter(|copies| copies.quantity == quantity_of);
    let copies: Vec<String> = copies
        .filter_map(|copies| Some((copies.arm, copies.pointwise?)))
        .map(|(arm, interval)| format!("{} ({})", from_to(interval), said.name(arm)))
        .collect();
    let mut parts: Vec<String> = Vec::new();
    if !copies.is_empty() {
        parts.push(format!(
            "two copies of the same program differ in {} by {}",
            quantity(quantity_of),
            list(&copies)
        ));
    }
    parts.extend(alone(said, cell));
    let links = links::told(said, cell, quantity_of);
    let has_links = links.is_some();
    parts.extend(links);
    let power = contrasts(cell, quantity_of);
    let worst = |of: fn(&AbContrast) -> Option<f64>| {
        let all: Option<Vec<f64>> = power.clone().map(of).collect();
        all.and_then(|all| all.into_iter().reduce(f64::max))
    };
    if let Some(now) = worst(|contrast| contrast.power.now) {
        let at_budget = worst(|contrast| contrast.power.at_budget)
            .filter(|at| *at < now * 0.97)
            .or_empty(|at| format!(" ({} after {})", percent(at), spent(run.header.plan.budget.0)));
        let more = if has_links { "; more links show smaller ones" } else { "" };
        parts.push(format!(
            "a slowdown of {} would be called SLOWER 9 times in 10{at_budget}{more}",
            percent(now)
        ));
    }
    in_setting(analysis, cell, Label::Trust, parts)
}

/// The setting in which least can be seen; of equals the first.
fn least_sure(analysis: &AbAnalysis) -> Option<&AbCell> {
    let seen = |cell: &AbCell| {
        let contrasts = &cell.judgement.contrasts;
        let first = contrasts.first()?.quantity;
        let own = contrasts.iter().filter(|contrast| contrast.quantity == first);
        // Where it is not known, it may be anything.
        own.map(|contrast| contrast.power.now.unwrap_or(f64::INFINITY)).reduce(f64::max)
    };
    let all = analysis.cells.iter().filter_map(|cell| Some((cell, seen(cell)?)));
    all.rev().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(cell, _)| cell)
}

/// Programs without a hidden copy, which only the baseline has where memory is short.
fn alone(said: &Said<'_>, cell: &AbCell) -> Option<String> {
    let has_copy = |arm: usize| cell.judgement.copies.iter().any(|copies| copies.arm == arm);
    let is_alone = |arm: &usize| !has_copy(*arm) && cell.arms[*arm].op_time_ns.is_some();
    let alone: Vec<&str> =
        (1..cell.arms.len()).filter(is_alone).map(|arm| said.name(arm)).collect();
    (has_copy(0) && !alone.is_empty())
        .then(|| format!("memory had no room for a second copy of {}", list(&alone)))
}

/// Without which a decision could go wrong.
fn cautions(run: &Run, analysis: &AbAnalysis) -> Vec<Answer> {
    let mut parts: Vec<String> = Vec::new();
    let layout = layout(all_contrasts(analysis).map(|contrast| contrast.layout_allowance));
    parts.extend(layout.map(|share| {
        format!("each program was linked once: up to {share} may come from code placement")
    }));
    parts.extend(analysis.throttled.map(throttled));
    parts.extend(cpu_unknown(run));
    parts.extend(uncounted(analysis));
    let arms = || all_arms(analysis);
    parts.extend(written(arms().filter(|arm| arm.stray_lines >= 0.5), "between answers"));
    parts.extend(written(arms().filter(|arm| arm.stderr_bytes >= 1.0), "to stderr in slices"));
    parts.extend(arms().filter_map(|arm| {
        let said = arm.passed_over.as_ref()?;
        Some(format!("{} says {said}, which is passed over: write ns=", arm.name))
    }));
    parts.extend(analysis.cells.iter().filter_map(between_turns));
    parts.extend(cold_caches(analysis));
    parts.into_iter().map(|part| Answer::one(Label::Caution, part)).collect()
}

/// That waiting for a quota is in the times.
fn throttled(held: AbThrottled) -> String {
    let AbThrottled { periods, lasted_ns, trials, of } = held;
    format!(
        "a cgroup held programs back (cpu.max) in {}, {} in all, and that is in the times of \
         {trials} of {of} trials: allow more CPU time",
        count(periods, "period"),
        Nanos(lasted_ns)
    )
}

/// Whose system calls are not counted, and why.
fn uncounted(analysis: &AbAnalysis) -> Vec<String> {
    let mut of_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for arm in all_arms(analysis) {
        let Some(why) = &arm.calls_missing else { continue };
        let names = of_reason.entry(why).or_default();
        if !names.contains(&arm.name) {
            names.push(arm.name.clone());
        }
    }
    let said = of_reason.into_iter();
    said.map(|(why, names)| format!("{} ({})", why, names.join(", "))).collect()
}

/// That some programs print where that is measured.
fn written<'a>(arms: impl Iterator<Item = &'a AbArmFigures>, place: &str) -> Option<String> {
    let who: Vec<&str> = arms.map(|arm| arm.name.as_str()).collect();
    let prints = list_with(&who, "prints", "print");
    (!who.is_empty()).then(|| format!("{prints} {place}, and that is in the time"))
}

/// CPU time between turns, as a part of that within them, that needs no word.
const IDLE_SHARE_MAX: f64 = 0.01;

/// A difference between two changes that is not worth telling.
const SAME_CHANGE: f64 = 0.005;

/// Work between turns, such as the collection of garbage, and what a change is with it.
fn between_turns(cell: &AbCell) -> Option<String> {
    let share = |nth: usize| cell.arms[nth].idle_share.unwrap_or(0.0);
    let busy = (0..cell.arms.len()).filter(|&nth| share(nth) > IDLE_SHARE_MAX);
    let busy: Vec<String> = busy
        .map(|nth| {
            format!("{} as much as within them ({})", percent(share(nth)), cell.arms[nth].name)
        })
        .collect();
    if busy.is_empty() {
        return None;
    }
    let with_all = contrasts(cell, AbQuantity::Cpu).filter_map(|contrast| {
        let change = contrast.change?;
        let all = (1.0 + change) * (1.0 + share(contrast.arm)) / (1.0 + share(0)) - 1.0;
        let name = &cell.arms[contrast.arm].name;
        ((all - change).abs() >= SAME_CHANGE).then(|| format!("{} ({name})", signed(all)))
    });
    let with_all: Vec<String> = with_all.collect();
    let counted = match with_all.is_empty() {
        true => String::new(),
        false => format!("; counting it, CPU time changes by {}", list(&with_all)),
    };
    Some(format!(
        "CPU time between turns, while others are timed, is not counted: {}{counted}",
        list(&busy)
    ))
}

/// The part of a slice that caches left cold may take before a change reads visibly too small.
/// Where it was 0.33 to 0.64, a planted 18% read as 15.5% to 17.7% (Xeon, 8 MiB, 15 runs).
const COLD_SHARE_MAX: f64 = 0.3;

/// That refilling caches is much of a slice, which the correction for it does not take out whole.
fn cold_caches(analysis: &AbAnalysis) -> Option<String> {
    let cold = |arm: &AbArmFigures| {
        let slice_ns = arm.op_time_ns? * arm.operations;
        let asking = arm.asking_ns.unwrap_or(0) as f64 / slice_ns;
        Some((arm.fixed_share? - asking).max(0.0))
    };
    let most = all_arms(analysis).filter_map(cold).max_by(f64::total_cmp)?;
    (most > COLD_SHARE_MAX).then(|| {
        format!(
            "{} of a slice does not grow with its operations, probably because turns leave caches \
             cold: changes may read up to a sixth too small",
            percent(most)
        )
    })
}

/// Why CPU time is not known, and in how many trials where that is not all.
fn cpu_unknown(run: &Run) -> Vec<String> {
    let timed = || run.trials.iter().filter(|trial| trial.pass > 0);
    let mut trials_of: BTreeMap<&str, usize> = BTreeMap::new();
    let missing = timed().filter_map(|trial| trial.tx.as_ref()).flat_map(|end| &end.not_measured);
    for missing in missing.filter(|missing| missing.metric == "task_clock") {
        *trials_of.entry(&missing.why).or_default() += 1;
    }
    let all = timed().count();
    let said = |(why, trials): (&str, usize)| match trials == all {
        true => why.to_owned(),
        false => format!("{why} (in {trials} of {all} trials)"),
    };
    trials_of.into_iter().map(said).collect()
}

/// What failed, and why.
fn problems(analysis: &AbAnalysis) -> Vec<Text> {
    let arms = all_arms(analysis).filter(|arm| arm.failed > 0);
    let problem = |arm: &AbArmFigures| {
        let why = arm.failure.as_deref().unwrap_or("no reason is known");
        Text::plain(format!("{} failed in {}: {why}", arm.name, count(arm.failed, "trial")))
    };
    arms.map(problem).collect()
}

fn next(run: &Run, analysis: &AbAnalysis) -> Answer {
    let mut all = all_contrasts(analysis);
    let is_build = all.any(|contrast| contrast.verdict == AbVerdict::Build);
    let links = is_build.then(|| {
        Text::code("iolens ab --links 'A-*' 'B-*'")
            .and(" (several links of each: code, or layout?)")
    });
    let longer = needed_ns(run, analysis).map(|needed_ns| {
        Text::code(format!("--budget {}", longer_budget(needed_ns)))
            .and(format!(" ({AB_UNITS_MIN} {}s)", analysis.unit.word()))
    });
    let stored = [Text::code("iolens show last"), Text::code("iolens export last --rows slices")];
    Answer { label: Label::Next, said: longer.into_iter().chain(links).chain(stored).collect() }
}

/// What a verdict would have taken, ns, of a run whose budget was too short for any.
fn needed_ns(run: &Run, analysis: &AbAnalysis) -> Option<u64> {
    let units = |contrast: &AbContrast| match contrast.reason {
        AbReason::TooFew { units, .. } => Some(units),
        _ => None,
    };
    let end = run.header.end.as_ref().filter(|end| end.stopped_by == StoppedBy::Budget)?;
    let contrasts = all_contrasts(analysis);
    let units = contrasts.filter_map(units).min().filter(|units| *units > 0)?;
    let more = u64::from(AB_UNITS_MIN.saturating_sub(units));
    let passes_ns = passes_ns(&run.trials);
    Some(end.took_ns(run.header.started_unix_ns) + passes_ns / u64::from(units) * more)
}

/// A budget with room for so much, in whole steps: `20s`, `3m`.
fn longer_budget(needed_ns: u64) -> String {
    const SECONDS: [u64; 11] = [10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600];
    let seconds = needed_ns.div_ceil(1_000_000_000);
    let enough = SECONDS.into_iter().find(|step| step * 4 >= seconds * 5);
    match enough.unwrap_or(seconds.div_ceil(3600) * 3600 + 3600) {
        seconds if seconds < 60 => format!("{seconds}s"),
        seconds => format!("{}m", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::reading::Reading;
    use iolens_model::server::Throttled;

    use super::*;
    use crate::studies::ab::tests::run;

    #[test]
    fn work_between_turns_is_told_with_the_change_that_counts_it() {
        let run = run(0.049, Vec::new());
        let mut analysis = iolens_stats::ab::analyse(&run).expect("it is one of `ab`");
        let cell = &mut analysis.cells[0];
        for arm in &mut cell.arms {
            arm.idle_share = Some(0.004);
        }
        assert_eq!(between_turns(cell), None);
        cell.arms[0].idle_share = Some(0.25);
        let said = between_turns(cell).expect("the baseline works between its turns");
        assert_eq!(
            said,
            "CPU time between turns, while others are timed, is not counted: 25% as much as within \
             them (main); counting it, CPU time changes by −15.7% (pr)"
        );
    }

    #[test]
    fn changes_that_cold_caches_hide_are_told() {
        let run = run(0.049, Vec::new());
        let mut analysis = iolens_stats::ab::analyse(&run).expect("it is one of `ab`");
        assert_eq!(cold_caches(&analysis), None);
        let arm = &mut analysis.cells[0].arms[0];
        (arm.op_time_ns, arm.operations) = (Some(1e4), 100.0);
        arm.fixed_share = Some(0.5);
        // Asking does take the same time in every slice.
        arm.asking_ns = Some(210_000);
        assert_eq!(cold_caches(&analysis), None);
        analysis.cells[0].arms[0].asking_ns = None;
        let said = cold_caches(&analysis).expect("half of a slice is fixed");
        assert_eq!(
            said,
            "50% of a slice does not grow with its operations, probably because turns leave caches \
             cold: changes may read up to a sixth too small"
        );
    }

    #[test]
    fn waiting_for_a_quota_is_told() {
        let mut run = run(0.049, Vec::new());
        let held = Throttled { periods: 6, time: Nanos(310_000_000) };
        run.trials[1].environment.throttled = Reading::Exact(held);
        let analysis = iolens_stats::ab::analyse(&run).expect("it is one of `ab`");
        let answers = cautions(&run, &analysis);
        let said: Vec<String> =
            answers.iter().flat_map(|answer| &answer.said).map(Text::words).collect();
        let timed = run.trials.iter().filter(|trial| trial.pass > 0).count();
        let expect = format!(
            "a cgroup held programs back (cpu.max) in 6 periods, 310 ms in all, and that is in the \
             times of 1 of {timed} trials: allow more CPU time"
        );
        assert!(said.iter().any(|said| said.contains(&expect)), "{said:?}");
    }

    #[test]
    fn where_layout_may_be_the_cause_links_are_offered() {
        let run = run(0.049, Vec::new());
        let mut analysis = iolens_stats::ab::analyse(&run).expect("it is one of `ab`");
        assert_eq!(next(&run, &analysis).said.len(), 2);
        analysis.cells[0].judgement.contrasts[0].verdict = AbVerdict::Build;
        let said = next(&run, &analysis).said;
        assert!(said.len() == 3 && said[0].words().starts_with("iolens ab --links"), "{said:?}");
    }

    #[test]
    fn a_budget_that_was_too_short_is_told_with_one_that_is_not() {
        let budgets = [1, 8, 9, 17, 48, 49, 100, 3000].map(|s| longer_budget(s * 1_000_000_000));
        assert_eq!(budgets, ["10s", "10s", "20s", "30s", "1m", "2m", "3m", "120m"]);
        let mut run = run(0.049, Vec::new());
        run.header.end.as_mut().expect("it ended").stopped_by = StoppedBy::Budget;
        let mut analysis = iolens_stats::ab::analyse(&run).expect("it is one of `ab`");
        assert_eq!(needed_ns(&run, &analysis), None);
        let contrast = &mut analysis.cells[0].judgement.contrasts[0];
        contrast.reason = AbReason::TooFew { units: 4, least: AB_UNITS_MIN };
        let (took_ns, passes_ns) =
            (run.header.took_ns().expect("it ended"), passes_ns(&run.trials));
        assert_eq!(needed_ns(&run, &analysis), Some(took_ns + 2 * passes_ns));
        assert!(next(&run, &analysis).said[0].words().starts_with("--budget "));
    }
}

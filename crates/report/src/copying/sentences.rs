//! What a run of `copy` says besides what every study says: whether anything beats dd at
//! each file size, what starting a program is of its time, what bounds the fastest, and
//! of which files all that is true.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::copy::ProgramStart;
use iolens_model::file::CacheState;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::{secret, shell};
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Interval, Told, Verdict,
};

use super::{is_control, is_program, start_of};
use crate::answers::{Kind, Sentence};
use crate::bounds::{Bound, NO_BOUND, Standing, copy_limit};
use crate::files::rate_of;
use crate::number::percent;
use crate::rates::rate;
use crate::results::{curves, interval_text};
use crate::words;

/// The program that everybody compares with.
const DD: &str = "dd";

/// The sentences of the study, over those of each cell.
pub(crate) fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let mut out = Vec::new();
    for (curve, cells) in curves(analysis) {
        out.extend(against_dd(run, analysis, &curve, &cells));
        out.extend(bound(run, &curve, &cells));
        out.extend(starts(run, &analysis.told, &curve, &cells));
        out.extend(reflinked(run, &curve, &cells));
    }
    out.extend(programs(run));
    out.extend(of_files(run));
    out.extend(guest_cold(run));
    out
}

fn about(run: &Run, curve: &Cell, claim: &str) -> Sentence {
    let mut parts = words::curve_parts(&run.header.plan, curve);
    let block = curve.copy().map(|copy| copy.block_in_words());
    parts.extend(block.filter(|block| !parts.contains(block)).into_iter().collect::<Vec<_>>());
    let subject = words::joined(words::as_found(&run.header, curve, parts));
    Sentence::about(run, Kind::Crossover, subject, claim)
}

/// Arms that have usable numbers and play a part.
fn usable(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    let plays = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
    cell.arms.iter().filter(plays).filter(|arm| arm.status == Status::Ok && arm.figures.is_some())
}

/// Whether the fastest beats dd, at each file size; null where dd was not compared.
fn against_dd(
    run: &Run,
    analysis: &Analysis,
    curve: &Cell,
    cells: &[&CellAnalysis],
) -> Option<Sentence> {
    let is_baseline = run.header.plan.baseline == DD;
    let parts: Vec<String> = cells
        .iter()
        .filter_map(|cell| {
            let found =
                if is_baseline { best(cell) } else { of_dd(cell, &run.header.plan.baseline) };
            let (label, contrast, share) = found?;
            let answer = match run.header.plan.quick {
                true => String::new(),
                false => format!("{}, ", answer(contrast, is_baseline, analysis.delta)),
            };
            Some(format!("at {} {answer}{label} takes {share} of its time", cell.cell.size))
        })
        .collect();
    let what = if is_baseline { "anything here beats dd" } else { "the baseline beats dd" };
    let how = if parts.iter().any(|part| part.contains('[')) { " (95 % intervals)" } else { "" };
    let claim = format!("whether {what}: {}{how}.", parts.join("; "));
    (!parts.is_empty()).then(|| about(run, curve, &claim))
}

/// The arm that is the fastest against a baseline of dd, with its share of dd's time.
fn best(cell: &CellAnalysis) -> Option<(&str, &Contrast, String)> {
    let compared = usable(cell).filter_map(|arm| Some((arm, arm.contrast.as_ref()?)));
    let others = compared.filter(|(arm, _)| arm.arm.primitive != DD);
    let (arm, contrast) = others.max_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio))?;
    Some((&arm.arm.label, contrast, share(contrast, Upside::Down)))
}

/// The baseline's share of dd's time, from the contrast of dd.
fn of_dd<'a>(cell: &'a CellAnalysis, baseline: &'a str) -> Option<(&'a str, &'a Contrast, String)> {
    let dd = usable(cell).find(|arm| arm.arm.primitive == DD)?;
    let contrast = dd.contrast.as_ref()?;
    Some((baseline, contrast, share(contrast, Upside::Up)))
}

/// How a share of time follows from a ratio of speeds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upside {
    /// It is one over it.
    Down,
    /// It is it.
    Up,
}

/// `0.62 [0.60, 0.64]`.
fn share(contrast: &Contrast, upside: Upside) -> String {
    let turned = |value: f64| if upside == Upside::Down { 1.0 / value } else { value };
    let interval = contrast.pointwise.map(|Interval { low, high }| match upside {
        Upside::Down => Interval { low: turned(high), high: turned(low) },
        Upside::Up => Interval { low, high },
    });
    interval_text(Some(Estimate { value: turned(contrast.ratio), interval, n: contrast.n }), 1.0)
}

/// The verdict as an answer: of an arm against dd, or of dd against the baseline.
fn answer(contrast: &Contrast, is_of_arm: bool, delta: f64) -> String {
    let is_ahead = (contrast.ratio > 1.0) == is_of_arm;
    match contrast.verdict {
        Verdict::Faster | Verdict::Slower => if is_ahead { "yes" } else { "no" }.to_owned(),
        Verdict::Small if is_ahead => format!("yes, by less than δ = {}", percent(delta)),
        Verdict::Small => format!("no, by less than δ = {}", percent(delta)),
        Verdict::Equivalent => format!("a tie within δ = {}", percent(delta)),
        Verdict::Inconclusive => "not decided".to_owned(),
        Verdict::Invalid | Verdict::Unranked => "not usable".to_owned(),
    }
}

/// How close the fastest comes to a copy in memory.
fn bound(run: &Run, curve: &Cell, cells: &[&CellAnalysis]) -> Option<Sentence> {
    let all = cells
        .iter()
        .flat_map(|cell| usable(cell).filter_map(move |arm| Some((cell, arm, rate_of(arm)?))));
    let (cell, arm, best) = all.max_by(|(.., a), (.., b)| a.value.total_cmp(&b.value))?;
    let lead =
        format!("the fastest is {} at {}, {}", arm.arm.label, cell.cell.size, rate(best.value));
    let copy = copy_limit(run, curve.threads, cell.cell.size);
    let claim = match copy.filter(|_| curve.cache() == Some(CacheState::Warm)) {
        Some(limit) => format!("{lead}: {}.", of_memory(&limit, &best)),
        None => format!("{lead}."),
    };
    Some(about(run, curve, &claim))
}

/// What a rate is of a copy in memory.
fn of_memory(limit: &Bound, best: &Estimate) -> String {
    let told = limit.told();
    match limit.standing(best) {
        Standing::Below(share) => format!(
            "{} of the rate at which as many bytes are only copied from memory to memory ({told}); \
             a copy of a file also makes every page of the new one",
            percent(share)
        ),
        Standing::At => format!("as fast as bytes are only copied from memory to memory ({told})"),
        Standing::Above => format!(
            "faster than bytes were only copied from memory to memory before the run ({told}), \
             which {NO_BOUND}"
        ),
    }
}

/// What of a program's time its start is, at each file size.
fn starts(run: &Run, told: &Told, curve: &Cell, cells: &[&CellAnalysis]) -> Vec<Sentence> {
    let ids = run.header.plan.primitives.iter().filter(|id| is_program(&run.header, id));
    let sentence = |id: &String| {
        let start = start_of(&run.header, told, id)?;
        let at = |cell: &&CellAnalysis| {
            let arm = usable(cell).find(|arm| arm.arm.primitive == *id)?;
            let copy_ns = arm.figures.as_ref()?.ns_per_message.value;
            let share = percent(start.median_ns as f64 / copy_ns);
            Some(format!("{share} of its time at {}", cell.cell.size))
        };
        let shares: Vec<String> = cells.iter().filter_map(at).collect();
        let ProgramStart { median_ns, min_ns, max_ns, .. } = start;
        let ms = |ns: u64| iolens_model::units::three_digits(ns as f64 / 1e6);
        let claim = format!(
            "starting {id} takes {} ms ({} to {} ms in {} starts with an empty file, measured \
             apart and not subtracted): {}.",
            ms(median_ns),
            ms(min_ns),
            ms(max_ns),
            start.runs,
            shares.join(", ")
        );
        (!shares.is_empty()).then(|| about(run, curve, &claim))
    };
    ids.filter_map(sentence).collect()
}

/// What sharing blocks takes, which is no copy.
fn reflinked(run: &Run, curve: &Cell, cells: &[&CellAnalysis]) -> Option<Sentence> {
    let at = |cell: &&CellAnalysis| {
        let arm = cell.arms.iter().find(|arm| is_control(arm) && arm.status == Status::Ok)?;
        let time = arm.figures.as_ref()?.ns_per_message;
        let text = interval_text(Some(time), 1e6);
        Some(format!("{text} ms at {}", cell.cell.size))
    };
    let parts: Vec<String> = cells.iter().filter_map(at).collect();
    let claim = format!(
        "reflink moves no bytes and is compared with nothing: both files have the same blocks \
         then; it takes {}.",
        parts.join(", ")
    );
    (!parts.is_empty()).then(|| about(run, curve, &claim))
}

/// What programs are started as, and on what terms.
fn programs(run: &Run) -> Option<Sentence> {
    let programs = run.header.engines.iter().filter_map(|facts| {
        let line = shell::join(secret::redacted(facts.program.as_ref()?));
        let own = if line.contains("{block}") { "" } else { ", in blocks of its own choice" };
        Some(format!("{}: `{line}`{own}", facts.id))
    });
    let parts: Vec<String> = programs.collect();
    let text = format!(
        "Programs are timed as whole processes, from the call that starts them to the end of \
         waiting for them, on the processor of the engine's thread; engines are timed from their \
         first call to their last, with both files open. {}.",
        parts.join("; ")
    );
    (!parts.is_empty()).then(|| Sentence::plain(Kind::Scope, text))
}

/// The files, and where they were copied.
fn of_files(run: &Run) -> Option<Sentence> {
    let file = run.header.file.as_ref()?;
    let to = file.destination.as_ref().map_or_else(String::new, |destination| {
        format!(", copied to a folder in {}, on {}", destination.place, destination.file_system)
    });
    let what = match file.is_ours {
        true => format!("Files of our own in {}", file.place),
        false => format!("The file: the user's {} ({})", file.place, file.bytes),
    };
    let text = format!(
        "{what}, on {}{to}. No copy was there before, each was compared with its source by size, \
         and the first of each arm in each trial by content; all were removed, with what of them \
         was not on the device yet, before the next slice began.",
        file.file_system
    );
    Some(Sentence::plain(Kind::Scope, text))
}

/// What cold means in a virtual machine.
fn guest_cold(run: &Run) -> Option<Sentence> {
    let is_cold = run.header.plan.copy()?.cache.contains(&CacheState::Cold);
    crate::files::cold_in_a_guest(run, is_cold)
}

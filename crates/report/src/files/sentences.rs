//! What a run of `file` says besides what every study says: of its file, from where
//! on larger blocks do not help, what caching is worth, what a crossing costs.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::file::CacheState;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis, CostModel, PlateauAxis, ReadPlateau};

use super::{Caching, bandwidth, best_cold, caching, drops, engines, knee, times};
use crate::alone;
use crate::answers::{Kind, Sentence};
use crate::bounds::rooflines;
use crate::number::{list, percent};
use crate::rates::rate;
use crate::results::{curves, interval_text};
use crate::words::{self, GUEST_COLD};

/// What makes the file unfit to be timed.
pub(crate) fn alarms(run: &Run) -> Vec<Sentence> {
    let warnings = run.header.file.iter().flat_map(|file| &file.warnings);
    warnings.map(|text| Sentence::plain(Kind::Alarm, format!("The file: {text}"))).collect()
}

/// The sentences of the study, over those of each cell.
pub(crate) fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let mut out = Vec::new();
    for (curve, cells) in curves(analysis) {
        out.extend(bound(run, analysis, &curve, &cells));
        out.extend(no_faster(run, analysis, &curve));
        out.extend(cost(run, analysis, &curve));
    }
    out.extend(worth(run, analysis));
    out.extend(threads(run, analysis));
    out.extend(drops::sentences(run));
    out.extend(unread(analysis));
    out.extend(of_file(run));
    out.extend(guest_cold(run));
    out
}

pub(crate) fn about(run: &Run, curve: &Cell, claim: &str) -> Sentence {
    Sentence::about(run, Kind::Crossover, words::curve(&run.header, curve), claim)
}

/// How close the fastest comes to what bounds it.
pub(crate) fn bound(
    run: &Run,
    analysis: &Analysis,
    curve: &Cell,
    cells: &[&CellAnalysis],
) -> Option<Sentence> {
    let all = cells.iter().flat_map(|cell| engines(cell).map(move |(arm, rate)| (cell, arm, rate)));
    let (cell, arm, best) = all.max_by(|(.., a), (.., b)| a.value.total_cmp(&b.value))?;
    let lead =
        format!("the fastest is {} at {}, {}", arm.arm.label, cell.cell.size, rate(best.value));
    let is_cold = super::is_cold(curve);
    let claim = match is_cold {
        true => {
            let (at, engine, device) = best_cold(analysis)?;
            let is_best = at.cell == cell.cell && engine.arm.label == arm.arm.label;
            let place =
                format!("{} at {}", engine.arm.label, words::subject(&run.header, &at.cell));
            let of_device = match is_best {
                true => "the best cold rate of this run".to_owned(),
                false => format!(
                    "{} of the best cold rate of this run ({}, {place})",
                    percent(best.value / device.value),
                    rate(device.value)
                ),
            };
            format!("{lead}, {of_device}: the best evidence here of what the device delivers.")
        }
        false => {
            let bounds = rooflines(run, curve.threads);
            let shares: Vec<String> = bounds.iter().map(|bound| bound.of(&best)).collect();
            match shares.is_empty() {
                true => format!("{lead}; no bound was measured for this number of threads."),
                false => format!("{lead}: {}.", list(&shares)),
            }
        }
    };
    Some(about(run, curve, &claim))
}

/// From which block size on engines do not get faster.
pub(crate) fn no_faster(run: &Run, analysis: &Analysis, curve: &Cell) -> Option<Sentence> {
    let own = |plateau: &&ReadPlateau| {
        plateau.axis == PlateauAxis::Size && plateau.from.curve() == *curve
    };
    let of = |plateau: &ReadPlateau| {
        let here = rate(plateau.read_bytes_per_s.value);
        format!("{} from {} on ({here})", plateau.label, plateau.from.size)
    };
    let found: Vec<String> = analysis.read_plateaus.iter().filter(own).map(of).collect();
    let others = still_rising(analysis, curve);
    let delta = percent(analysis.delta);
    let claim = match others.is_empty() {
        true => {
            format!("larger blocks do not raise the rate by δ = {delta} or more: {}.", list(&found))
        }
        false => format!(
            "larger blocks do not raise the rate by δ = {delta} or more: {}; of {} that is not \
             shown of any size.",
            list(&found),
            list(&others)
        ),
    };
    // Of an engine that is alone its headline says it.
    let is_told = alone::is_alone(&analysis.cells);
    (!found.is_empty() && !is_told).then(|| about(run, curve, &claim))
}

/// The engines of a curve whose rate rises to the largest block, or may.
fn still_rising(analysis: &Analysis, curve: &Cell) -> Vec<String> {
    let has_one = |label: &str| {
        let mut own = analysis.read_plateaus.iter().filter(|plateau| plateau.label == label);
        own.any(|plateau| plateau.axis == PlateauAxis::Size && plateau.from.curve() == *curve)
    };
    let mut labels: Vec<String> = Vec::new();
    let cells = analysis.cells.iter().filter(|cell| cell.cell.curve() == *curve);
    for arm in cells.flat_map(|cell| &cell.arms) {
        let is_compared = matches!(arm.arm.role, Role::Baseline | Role::Compared);
        let label = &arm.arm.label;
        if is_compared && arm.figures.is_some() && !labels.contains(label) && !has_one(label) {
            labels.push(label.clone());
        }
    }
    labels
}

/// Lines that a sentence tells; more stand in the table alone.
const LINES_MAX: usize = 3;

/// The cost model of the engines of a curve: of the baseline alone where there are many.
pub(crate) fn cost(run: &Run, analysis: &Analysis, curve: &Cell) -> Option<Sentence> {
    let models = || analysis.cost_models.iter().filter(|model| model.curve == *curve);
    let count = models().count();
    let is_told =
        |model: &&CostModel| count <= LINES_MAX || model.label == run.header.plan.baseline;
    let mut parts: Vec<String> = models().filter(is_told).map(fitted).collect();
    if parts.len() < count {
        parts.push(format!("the fits of all {count} engines stand in a table"));
    }
    let of_all = match curve.threads {
        1 => String::new(),
        threads => format!(" over all {threads} threads"),
    };
    let claim = format!(
        "time of a block{of_all} as a + b·n, a what any block costs (the crossing into the \
         kernel, where one is made for each), 1/b the bandwidth of the copy, n½ the block size at \
         which half of the time is a: {}.",
        parts.join("; ")
    );
    (count > 0).then(|| about(run, curve, &claim))
}

/// The line, which is one of points that are on none too, and said to be.
fn fitted(model: &CostModel) -> String {
    let at_most = if model.fixed_is_upper_bound { "at most " } else { "" };
    let bandwidth = match bandwidth(model) {
        Some(found) => format!("1/b = {} GiB/s", interval_text(Some(found), Bytes::GIB as f64)),
        None => "no cost per byte".to_owned(),
    };
    let below = match model.breaks_at {
        Some(size) => format!(" below {size}, from where on another line would fit"),
        None => String::new(),
    };
    let line = format!(
        "a = {at_most}{} ns, {bandwidth}, n½ = {}{below}",
        interval_text(Some(model.fixed_ns), 1.0),
        knee(model)
    );
    if model.is_affine() {
        return format!("{} {line}", model.label);
    }
    let off = 100.0 * model.worst_residual;
    format!(
        "{} is not affine ({off:+.0} % off at {}; the nearest line has {line})",
        model.label, model.worst_at
    )
}

/// What caching is worth to the baseline, at the ends of its sizes.
fn worth(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let mut all = caching(run, analysis);
    all.retain(|one| one.label == run.header.plan.baseline);
    let mut curves: Vec<Cell> = Vec::new();
    for one in &all {
        if !curves.contains(&one.cell.curve()) {
            curves.push(one.cell.curve());
        }
    }
    let sentence = |curve: &Cell| {
        let own = all.iter().filter(|one| one.cell.curve() == *curve);
        let own: Vec<&Caching> = own.collect();
        let (first, last) = (own.first()?, own.last()?);
        let at = |one: &Caching| format!("{} times at {}", times(&one.ratio), one.cell.size);
        let ends = match first.cell == last.cell {
            true => at(first),
            false => format!("{}, {}", at(first), at(last)),
        };
        let claim = format!(
            "caching is worth this to {}: its rate warm over its rate cold is {ends} (95 % \
             intervals from both; they are different cells, not interleaved).",
            first.label
        );
        let subject = super::without_cache(run, curve);
        Some(Sentence::about(run, Kind::Crossover, subject, &claim))
    };
    curves.iter().filter_map(sentence).collect()
}

/// How many threads help, where the plan has several counts.
pub(crate) fn threads(run: &Run, analysis: &Analysis) -> Option<Sentence> {
    if run.header.plan.threads.len() < 2 {
        return None;
    }
    let by_threads = |plateau: &&ReadPlateau| plateau.axis == PlateauAxis::Threads;
    let of = |plateau: &ReadPlateau| {
        format!("{} from {}", plateau.label, words::subject(&run.header, &plateau.from))
    };
    let found: Vec<String> = analysis.read_plateaus.iter().filter(by_threads).map(of).collect();
    let delta = percent(analysis.delta);
    let text = match found.is_empty() {
        true => {
            format!("Threads: nowhere is it shown that more of them help by less than {delta}.")
        }
        false => {
            let cells = found.join("; ");
            format!("Threads: more of them do not raise the rate by δ = {delta} or more: {cells}.")
        }
    };
    Some(Sentence::plain(Kind::Crossover, text))
}

/// Which engines read nothing where nobody looks at the bytes.
fn unread(analysis: &Analysis) -> Option<Sentence> {
    let mut labels: Vec<String> = Vec::new();
    for arm in analysis.arms() {
        if arm.arm.role == Role::Control && !labels.contains(&arm.arm.label) {
            labels.push(arm.arm.label.clone());
        }
    }
    let text = format!(
        "Where the consumer is none, {} {} pages and one byte of each is touched: the bytes are not \
         read, so that this is a control, not compared. --consumer scan compares it.",
        list(&labels),
        if labels.len() == 1 { "maps" } else { "map" }
    );
    (!labels.is_empty()).then(|| Sentence::plain(Kind::Caution, text))
}

/// The file, and the one pass over it that nothing is compared with.
pub(crate) fn of_file(run: &Run) -> Option<Sentence> {
    let file = run.header.file.as_ref()?;
    let whose = if file.is_ours { "made for this run in" } else { "the user's" };
    let why = match file.size_reason.is_empty() {
        true => String::new(),
        false => format!(" ({})", file.size_reason),
    };
    let first = file.first_pass.map_or_else(String::new, |time| {
        let bytes_per_s = file.bytes.0 as f64 / (time.0.max(1) as f64 / 1e9);
        format!(
            " The first pass over it, evicted, from end to end: {time}, {}; stored apart and \
             compared with none, since a host or a device may know the bytes from then on.",
            rate(bytes_per_s)
        )
    });
    let text = format!(
        "The file: {}{why}, {whose} {}, on {}.{first}",
        file.bytes, file.place, file.file_system
    );
    Some(Sentence::plain(Kind::Scope, text))
}

/// What cold means in a virtual machine.
fn guest_cold(run: &Run) -> Option<Sentence> {
    cold_in_a_guest(run, run.header.plan.file()?.cache.contains(&CacheState::Cold))
}

/// The same for any run that reads a file, if it does so cold.
pub(crate) fn cold_in_a_guest(run: &Run, is_cold: bool) -> Option<Sentence> {
    let hypervisor = words::fact(&run.header.host, &["virtualization"])?;
    let text = format!(
        "This is a virtual machine ({hypervisor}): {GUEST_COLD} means that the guest's page cache \
         held nothing of the file and that the guest's device delivered the bytes; the host may \
         have had them in its memory still."
    );
    (is_cold && words::is_guest(&run.header.host)).then(|| Sentence::plain(Kind::Caution, text))
}

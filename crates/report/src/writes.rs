//! What a run of `write` says besides what every study says: what it takes that a block
//! lasts, whether a flush can be what it says, what a slice leaves to be written back.

#[cfg(test)]
pub(crate) mod tests;

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::file::{Destination, WritingFacts};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval, PairContrast,
};

use crate::answers::{Kind, Sentence};
use crate::files::sentences::{about, bound, cost, no_faster, threads};
use crate::files::times;
use crate::number::{self, count, nanoseconds};
use crate::results::curves;
use crate::words;

/// A flush of a device without a cache that survives a power cut takes longer: the
/// fastest flash takes tens of microseconds to program a page.
const PLAUSIBLE: Nanos = Nanos(20_000);

/// File systems that have no device.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The sentences of the study, over those of each cell.
pub(crate) fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let mut out = Vec::new();
    for (curve, cells) in curves(analysis) {
        out.extend(bound(run, analysis, &curve, &cells));
        out.extend(no_faster(run, analysis, &curve));
        out.extend(durability(run, &curve, &cells));
        out.extend(cost(run, analysis, &curve));
    }
    out.extend(threads(run, analysis));
    out.extend(plausibility(run));
    out.extend(preconditioning(run));
    out.extend(around(run));
    out.extend(of_file(run));
    out
}

/// Whether an engine brings each block to the device, as the run knew it.
fn is_durable(run: &Run, engine: &str) -> bool {
    run.header.engines.iter().any(|facts| facts.id == engine && facts.is_durable)
}

/// The time of a block of an arm that has usable numbers, ns.
fn time_of(arm: &ArmAnalysis) -> Option<Estimate> {
    Some(arm.figures.as_ref().filter(|_| arm.status == Status::Ok)?.ns_per_message)
}

/// The durable arms of a cell with the times of their blocks.
pub(crate) fn durable<'a>(run: &Run, cell: &'a CellAnalysis) -> Vec<(&'a ArmAnalysis, Estimate)> {
    let own = |arm: &&ArmAnalysis| {
        matches!(arm.arm.role, Role::Baseline | Role::Compared)
            && is_durable(run, &arm.arm.primitive)
    };
    cell.arms.iter().filter(own).filter_map(|arm| Some((arm, time_of(arm)?))).collect()
}

/// The arm of a cell that the durable ones are compared with: the baseline, if it leaves
/// the block to the kernel.
pub(crate) fn lazy<'a>(run: &Run, cell: &'a CellAnalysis) -> Option<(&'a ArmAnalysis, Estimate)> {
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline)?;
    (!is_durable(run, &baseline.arm.primitive)).then(|| Some((baseline, time_of(baseline)?)))?
}

/// The time of a block over the baseline's, of slices that alternated.
pub(crate) fn over_baseline(arm: &ArmAnalysis) -> Option<Estimate> {
    let contrast = arm.contrast.as_ref().filter(|contrast| contrast.ratio > 0.0)?;
    let positive = contrast.pointwise.filter(|interval| interval.low > 0.0);
    let interval =
        positive.map(|Interval { low, high }| Interval { low: 1.0 / high, high: 1.0 / low });
    Some(Estimate { value: 1.0 / contrast.ratio, interval, n: contrast.n })
}

/// `512 µs [498 µs, 527 µs]`.
pub(crate) fn time(estimate: &Estimate) -> String {
    let value = nanoseconds(estimate.value);
    let Some(interval) = estimate.interval else { return value };
    format!("{value} {}", number::ends(interval, nanoseconds))
}

/// What it takes that a block is on the device before the next one, at the ends of the
/// sizes.
fn durability(run: &Run, curve: &Cell, cells: &[&CellAnalysis]) -> Option<Sentence> {
    let measured: Vec<_> = cells.iter().filter(|cell| !durable(run, cell).is_empty()).collect();
    let (first, last) = (measured.first()?, measured.last()?);
    let mut parts = vec![at_size(run, first)];
    if first.cell != last.cell {
        parts.push(at_size(run, last));
    }
    let claim = format!(
        "a block that has to be on the device before the next one takes {} (95 % intervals; of one \
         over another simultaneous with all others).",
        parts.join("; ")
    );
    Some(about(run, curve, &claim))
}

fn at_size(run: &Run, cell: &CellAnalysis) -> String {
    let all = durable(run, cell);
    let of = |(arm, estimate): &(&ArmAnalysis, Estimate)| {
        format!("{} with {}", time(estimate), arm.arm.label)
    };
    let mut text =
        format!("at {}: {}", cell.cell.size, all.iter().map(of).collect::<Vec<_>>().join(", "));
    if let Some((baseline, lazily)) = lazy(run, cell) {
        text.push_str(&format!(", where {} takes {}", baseline.arm.label, time(&lazily)));
    }
    let find = |id: &str| all.iter().find(|(arm, _)| arm.arm.primitive == id);
    for (a, b) in [("write_fsync", "write_fdatasync"), ("write_fdatasync", "write_dsync")] {
        let both = find(a).zip(find(b)).map(|((a, _), (b, _))| (&a.arm.label, &b.arm.label));
        let ratio = both.and_then(|(slow, fast)| Some((slow, fast, over(cell, slow, fast)?)));
        if let Some((slow, fast, ratio)) = ratio {
            text.push_str(&format!("; {slow} over {fast} {}", times(&ratio)));
        }
    }
    text
}

/// The time of one arm over that of another, of what they were measured in together: totals of
/// each alone hold the moods that the machine was in. Its interval is the simultaneous one of
/// pairs; null where they never met.
fn over(cell: &CellAnalysis, slow: &str, fast: &str) -> Option<Estimate> {
    let is_theirs = |pair: &&PairContrast| {
        [(slow, fast), (fast, slow)].contains(&(pair.first.as_str(), pair.second.as_str()))
    };
    let pair = cell.pairs.iter().find(is_theirs)?;
    let value = if pair.first == fast { pair.ratio } else { 1.0 / pair.ratio };
    Some(Estimate { value, interval: pair.interval_of(fast), n: pair.n })
}

/// Median, least and most of the flushes that were tried: `412 µs (388 µs to 2.1 ms)`.
pub(crate) fn flush(writing: &WritingFacts) -> Option<String> {
    let median = writing.flush()?;
    let (least, most) = (writing.flushes.iter().min()?, writing.flushes.iter().max()?);
    let n = writing.flushes.len();
    Some(format!("{median}, the median of {n} ({least} to {most})"))
}

/// Whether a block can be on a device in the time that its flush takes.
fn plausibility(run: &Run) -> Option<Sentence> {
    let file = run.header.file.as_ref()?;
    let writing = file.writing.as_ref()?;
    if IN_MEMORY.contains(&file.file_system.as_str()) {
        let text = format!(
            "{} has no device: nothing written there lasts, and fsync(2), fdatasync(2) and O_DSYNC \
             do nothing.",
            file.file_system
        );
        return Some(Sentence::plain(Kind::Caution, text));
    }
    let (median, tried) = (writing.flush()?, flush(writing)?);
    let lead = format!("Writing a page and bringing it to the device (fdatasync) took {tried}");
    if median < PLAUSIBLE {
        let text = format!(
            "{lead}: no device programs flash or disk in that time. Either its cache is protected \
             against power loss, or the flush is acknowledged and not made: durability is not \
             observable from here."
        );
        return Some(Sentence::plain(Kind::Caution, text));
    }
    let guest = match words::is_guest(&run.header.host) {
        true => {
            " This is a virtual machine, though, whose host may acknowledge a flush that it does \
             not make: durability is not observable from here."
        }
        false => " Whether the bytes survive a power cut only a power cut can show.",
    };
    let text = format!("{lead}, which a flush can take.{guest}");
    Some(Sentence::plain(Kind::Caution, text))
}

/// What the device was not made to do before.
fn preconditioning(run: &Run) -> Option<Sentence> {
    let file = run.header.file.as_ref()?;
    if IN_MEMORY.contains(&file.file_system.as_str()) {
        return None;
    }
    let text = format!(
        "The device was not preconditioned: what waits for it (direct, fsync, fdatasync, O_DSYNC) \
         met it as it was, with whatever room its caches and erased blocks had; in a steady state, \
         after {} and more of writing without a pause, it may be slower.",
        file.bytes
    );
    Some(Sentence::plain(Kind::Caution, text))
}

/// What is done about the pages that direct writes would drop.
fn around(run: &Run) -> Option<Sentence> {
    let is_existing = run.header.plan.write()?.destination.contains(&Destination::Existing);
    let has_direct = run.header.engines.iter().any(|engine| engine.is_direct);
    let text = "Direct writes drop the cached pages of what they write. Each arm has a region of \
                the file to itself: that of a direct engine is evicted before each slice, outside \
                of its time, as where nobody reads it through the page cache; those of the others \
                are in the page cache whole, and clean.";
    (is_existing && has_direct).then(|| Sentence::plain(Kind::Scope, text))
}

/// The file, and how much of it a slice may write.
fn of_file(run: &Run) -> Option<Sentence> {
    let file = run.header.file.as_ref()?;
    let writing = file.writing.as_ref()?;
    let background = writing.dirty_background.map_or_else(
        || "from how much dirty memory on the kernel writes back by itself is not known".to_owned(),
        |bytes| {
            format!(
                "no slice writes more than the {bytes} of dirty memory from which on the \
                     kernel writes back by itself"
            )
        },
    );
    let text = format!(
        "The file: {} in {} of {} ({}), made for this run in {}, on {}; {background}.",
        file.bytes,
        count(writing.regions, "region"),
        writing.region,
        file.size_reason,
        file.place,
        file.file_system
    );
    Some(Sentence::plain(Kind::Scope, text))
}

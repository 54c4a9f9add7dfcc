//! `perf stat`, as text or as fields: what it prints beside a count has to
//! follow from the count.

mod checks;
mod human;
mod section;

use crate::bounds::Bounds;
use crate::finding::{Audit, Format, Ledger};
use checks::Judge;
use section::Section;

/// Audits what `perf stat` printed; `None` for any other text.
pub(crate) fn audit(file: &str, text: &str, bounds: &Bounds) -> Option<Audit> {
    let (format, sections) = match human::sections(text) {
        sections if !sections.is_empty() => (Format::PerfStat, sections),
        _ => (Format::PerfStatFields, human::sections_of_fields(text)),
    };
    if sections.is_empty() {
        return None;
    }
    let mut ledger = Ledger::default();
    for section in &sections {
        checks::all(&mut Judge { section, bounds, ledger: &mut ledger });
    }
    let lines = sections.iter().flat_map(|section| &section.counters).map(|counter| counter.line);
    let notes = sections.iter().filter_map(missing).collect();
    Some(Audit { notes, ..ledger.audit(file, format, lines) })
}

/// The option of `perf stat` that spread the counts of this text over
/// intervals, CPUs or objects; `None` for any other text.
pub(crate) fn spread_by(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
    lines.find_map(|line| match line {
        _ if line.starts_with('#') && line.contains("counts") && line.contains("events") => {
            Some("-I")
        }
        _ if line.starts_with('{') && line.contains("\"counter-value\"") => Some("-j"),
        _ if is_of_a_cpu(line) => Some("-A"),
        _ => None,
    })
}

/// `CPU0    304.44 msec cpu-clock`.
fn is_of_a_cpu(line: &str) -> bool {
    let Some((cpu, rest)) = line.split_once(' ') else { return false };
    let number = cpu.strip_prefix("CPU").map(str::parse::<u32>);
    let count = rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '<');
    matches!(number, Some(Ok(_))) && count
}

/// Names the counters of a section that have no count.
fn missing(section: &Section) -> Option<String> {
    let counters = section.counters.iter().filter(|counter| counter.count.is_none());
    let missing: Vec<&str> = counters.map(|counter| counter.event.as_str()).collect();
    let all = missing.join(", ");
    (!missing.is_empty()).then(|| format!("not counted or not supported: {all}"))
}

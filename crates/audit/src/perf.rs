//! `perf stat`, as text or as fields: what it prints beside a count has to
//! follow from the count.

mod checks;
mod human;
mod section;

use crate::bounds::Bounds;
use crate::finding::{Audit, Format, GateUse, Severity};
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
    let mut audit = Audit {
        file: file.to_owned(),
        format,
        rows: 0,
        passed: 0,
        impossible: 0,
        suspicious: 0,
        unchecked: 0,
        findings: Vec::new(),
        columns: Vec::new(),
        gates: Vec::new(),
        notes: Vec::new(),
    };
    for section in &sections {
        add(&mut audit, section, bounds);
    }
    audit.findings.sort_by_key(|finding| (finding.severity, finding.lines.clone(), finding.gate));
    audit.gates.sort_by_key(|gate| gate.gate);
    Some(audit)
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

/// Adds what is found in one section.
fn add(audit: &mut Audit, section: &Section, bounds: &Bounds) {
    let mut judge = Judge::new(section, bounds);
    checks::all(&mut judge);
    for gate in judge.gates {
        match audit.gates.iter_mut().find(|known| known.name == gate.name) {
            Some(known) => known.judged += gate.judged,
            None => audit.gates.push(GateUse { ..gate }),
        }
    }
    let missing: Vec<&str> = section
        .counters
        .iter()
        .filter(|counter| counter.count.is_none())
        .map(|counter| counter.event.as_str())
        .collect();
    if !missing.is_empty() {
        audit.notes.push(format!("not counted or not supported: {}", missing.join(", ")));
    }
    for (counter, looked_at) in section.counters.iter().zip(judge.looked_at) {
        let of_it = judge.findings.iter().filter(|finding| finding.lines.contains(&counter.line));
        audit.rows += 1;
        match of_it.map(|finding| finding.severity).min() {
            Some(Severity::Impossible) => audit.impossible += 1,
            Some(Severity::Suspicious) => audit.suspicious += 1,
            None if !looked_at => audit.unchecked += 1,
            Some(Severity::Remark) | None => audit.passed += 1,
        }
    }
    audit.findings.extend(judge.findings);
}

//! `perf stat`, as text or as fields: what it prints beside a count has to
//! follow from the count.

mod checks;
mod human;

use checks::Judge;
use iolens_stats::physics::Rounded;

use self::human::count;
use crate::bounds::Bounds;
use crate::finding::{Audit, Format, GateUse, Severity};
use crate::number::{self, DecimalMark};

/// Audits what `perf stat` printed; `None` for any other text.
pub(crate) fn audit(file: &str, text: &str, bounds: &Bounds) -> Option<Audit> {
    let (format, sections) = match human::sections(text) {
        sections if !sections.is_empty() => (Format::PerfStat, sections),
        _ => (Format::PerfStatFields, sections(text)),
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

// What `perf stat -x` writes: `305,,context-switches,21140000,100.00,520.3,/sec`,
// with the time or the CPU before it for intervals and for each CPU.

/// The sections of a text, one for each time or CPU; none where no line is a
/// counter that is known.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let read = [',', ';', '\t'].into_iter().find_map(|by| counter(line, by, index + 1));
        let Some((title, counter, is_repeated)) = read else { continue };
        let at = sections.iter().position(|section| section.title == title).unwrap_or_else(|| {
            sections.push(Section { title, ..Section::default() });
            sections.len() - 1
        });
        let section = &mut sections[at];
        section.is_repeated |= is_repeated;
        match (counter.name, counter.count) {
            ("duration_time", Some(ns)) => section.elapsed_ns = Some(ns),
            _ => section.counters.push(counter),
        }
    }
    sections
}

/// A line: what stands before the counter, the counter, and whether it is a
/// mean over several runs.
fn counter(line: &str, separator: char, at: usize) -> Option<(String, Counter, bool)> {
    let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
    // Value, unit, event, [variance], time on the PMU, share, metric, unit.
    let place = (2..fields.len().min(6)).find(|&place| event(fields[place]).is_some())?;
    let (before, rest) = fields.split_at(place - 2);
    let [value, unit, written, rest @ ..] = rest else { return None };
    let (name, pmu, modifier) = event(written)?;
    let mark = DecimalMark::Point;
    let is_missing = value.starts_with("<not");
    let number = number::leading(value, mark).filter(|number| number.rest.is_empty());
    if number.is_none() && !is_missing {
        return None;
    }
    let unit_ns = match (*unit, name) {
        ("msec" | "ms", _) => Some(1e6),
        ("ns", _) => Some(1.0),
        // Clocks are in ms where older versions name no unit.
        ("", "task-clock" | "cpu-clock") => Some(1e6),
        ("", _) => None,
        _ => return None,
    };
    let is_repeated = rest.first().is_some_and(|field| field.ends_with('%'));
    let rest = &rest[usize::from(is_repeated)..];
    let read = |index: usize| number::leading(rest.get(index)?, mark);
    let metric = read(2).and_then(|metric| {
        let unit = *rest.get(3).filter(|unit| !unit.is_empty())?;
        Some((metric.rounded(), unit.to_owned()))
    });
    let counter = Counter {
        line: at,
        event: (*written).to_owned(),
        name,
        pmu: pmu.map(str::to_owned),
        modifier: modifier.to_owned(),
        count: number.map(|number| count(&number, unit_ns)),
        metric,
        running: read(1).map(|share| share.value / 100.0),
        shown: line.trim().to_owned(),
    };
    Some((before.join(" "), counter, is_repeated))
}

// What `perf stat` says of one command, however it was printed.

/// One command.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Section {
    /// What was counted, in perf's words.
    pub(crate) title: String,
    pub(crate) counters: Vec<Counter>,
    /// Wall time in ns.
    pub(crate) elapsed_ns: Option<Rounded>,
    /// CPU time of the command in user mode, in ns, from getrusage.
    pub(crate) user_ns: Option<Rounded>,
    /// CPU time of the command in the kernel, in ns.
    pub(crate) system_ns: Option<Rounded>,
    /// Whether the numbers are means over several runs.
    pub(crate) is_repeated: bool,
}

/// One counter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counter {
    pub(crate) line: usize,
    /// As it stands there: `cpu_core/cycles/u`.
    pub(crate) event: String,
    /// Its kind without PMU and mode: `cycles`.
    pub(crate) name: &'static str,
    pub(crate) pmu: Option<String>,
    /// `u`, `k` and the like; empty for all modes.
    pub(crate) modifier: String,
    /// The count, or ns of a clock; `None` where it was not counted.
    pub(crate) count: Option<Rounded>,
    /// What perf made of it, with its unit in perf's words.
    pub(crate) metric: Option<(Rounded, String)>,
    /// Share of the time in which it was on the PMU, where it is printed.
    pub(crate) running: Option<f64>,
    /// Count and metric as they stand there.
    pub(crate) shown: String,
}

impl Section {
    /// A counter of this kind, on this PMU, in this mode.
    pub(crate) fn like(&self, name: &str, as_of: &Counter) -> Option<&Counter> {
        let alike = |counter: &&Counter| {
            counter.name == name && counter.pmu == as_of.pmu && counter.modifier == as_of.modifier
        };
        self.counters.iter().find(alike)
    }

    /// The CPU time that perf relates counts to.
    pub(crate) fn clock(&self) -> Option<(&Counter, Rounded)> {
        ["task-clock", "cpu-clock"].into_iter().find_map(|name| {
            let clock = self.counters.iter().find(|counter| counter.name == name)?;
            Some((clock, clock.count.filter(|count| count.value > 0.0)?))
        })
    }
}

/// An event's kind, its PMU and its mode; `None` for events that nothing is
/// known of.
pub(crate) fn event(text: &str) -> Option<(&'static str, Option<&str>, &str)> {
    let (pmu, rest) = crate::header::split_pmu(text);
    let (base, modifier) = match (pmu, text.split_once('/')) {
        (Some(_), Some((_, inner))) => inner.split_once('/').unwrap_or((inner, "")),
        _ => rest.split_once(':').unwrap_or((rest, "")),
    };
    let modifier = modifier.trim_start_matches(':');
    EVENTS.iter().find(|(_, names)| names.contains(&base)).map(|(name, _)| (*name, pmu, modifier))
}

/// Events by kind, with other names of theirs.
const EVENTS: &[(&str, &[&str])] = &[
    ("task-clock", &["task-clock"]),
    ("cpu-clock", &["cpu-clock"]),
    ("duration_time", &["duration_time"]),
    ("cycles", &["cycles", "cpu-cycles"]),
    ("instructions", &["instructions"]),
    ("branches", &["branches", "branch-instructions"]),
    ("branch-misses", &["branch-misses"]),
    ("context-switches", &["context-switches", "cs"]),
    ("cpu-migrations", &["cpu-migrations", "migrations"]),
    ("page-faults", &["page-faults", "faults"]),
    ("minor-faults", &["minor-faults"]),
    ("major-faults", &["major-faults"]),
    ("cache-references", &["cache-references"]),
    ("cache-misses", &["cache-misses"]),
    ("L1-dcache-loads", &["L1-dcache-loads"]),
    ("L1-dcache-load-misses", &["L1-dcache-load-misses"]),
    ("LLC-loads", &["LLC-loads"]),
    ("LLC-load-misses", &["LLC-load-misses"]),
    ("dTLB-loads", &["dTLB-loads"]),
    ("dTLB-load-misses", &["dTLB-load-misses"]),
    ("stalled-cycles-frontend", &["stalled-cycles-frontend"]),
    ("stalled-cycles-backend", &["stalled-cycles-backend"]),
    ("ref-cycles", &["ref-cycles"]),
    ("bus-cycles", &["bus-cycles"]),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{event, *};

    #[test]
    fn fields_are_read_with_their_metrics() {
        let text = "# started on Sat Nov 21\n\n21.14,msec,task-clock,21140000,100.00,0.004,CPUs utilized\n\
                    305,,context-switches,21140000,100.00,520.340,/sec\n\
                    <not supported>,,cycles:u,0,100.00,,\n";
        let sections = sections(text);
        assert_eq!(sections.len(), 1);
        let [clock, switches, cycles] = sections[0].counters.as_slice() else { panic!() };
        assert_eq!(clock.count.map(|ns| ns.value), Some(21.14e6));
        assert_eq!((switches.line, switches.running), (4, Some(1.0)));
        assert_eq!(switches.metric.as_ref().map(|m| m.1.as_str()), Some("/sec"));
        assert_eq!((cycles.count, cycles.modifier.as_str()), (None, "u"));
    }

    #[test]
    fn intervals_cpus_and_repeated_runs_are_read() {
        let text = "1.000,5,,cs,10,100.00,,\n2.000,7,,cs,10,100.00,,\nCPU0;9;;cs;10;100.00;;\n";
        let titles: Vec<String> = sections(text).into_iter().map(|s| s.title).collect();
        assert_eq!(titles, ["1.000", "2.000", "CPU0"]);
        let repeated = &sections("5,,cs,0.52%,10,50.00,3.1,K/sec\n")[0];
        assert!(repeated.is_repeated);
        assert_eq!(repeated.counters[0].running, Some(0.5));
    }

    #[test]
    fn a_table_is_not_that() {
        assert!(sections("metric,unit,cycles\nx,y,5\n").is_empty());
        assert!(sections("size,threads,cycles\n64,1,100\n").is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\PC\n\t]{0,120}") {
            let _ = sections(&text);
        }

        #[test]
        fn field_like_lines_do_not_panic(
            lines in proptest::collection::vec(
                "[0-9.]{0,5},(msec)?,(cs|cycles|task-clock)(,[0-9.%]{0,5}){0,4}", 0..6,
            ),
        ) {
            let _ = sections(&lines.join("\n"));
        }
    }

    #[test]
    fn events_are_known_by_kind() {
        assert_eq!(event("cycles:u"), Some(("cycles", None, "u")));
        assert_eq!(event("cs"), Some(("context-switches", None, "")));
        assert_eq!(event("cpu_core/cycles/"), Some(("cycles", Some("cpu_core"), "")));
        assert_eq!(event("cpu_atom/instructions/u"), Some(("instructions", Some("cpu_atom"), "u")));
        assert_eq!(event("sends"), None);
    }
}

//! What `perf stat` says of one command, however it was printed.

use std::collections::HashMap;

use iolens_stats::physics::Rounded;

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

/// What a counter counts in: its PMU and its mode.
pub(crate) type Scope<'a> = (Option<&'a str>, &'a str);

impl Counter {
    pub(crate) fn scope(&self) -> Scope<'_> {
        (self.pmu.as_deref(), &self.modifier)
    }

    /// What perf made of it, where that is in this unit.
    pub(crate) fn printed(&self, unit: &str) -> Option<Rounded> {
        self.metric.as_ref().filter(|(_, words)| words.starts_with(unit)).map(|(value, _)| *value)
    }
}

impl Section {
    /// The first counter of this kind in each scope.
    pub(crate) fn firsts(&self, name: &str) -> HashMap<Scope<'_>, &Counter> {
        let named = self.counters.iter().filter(|counter| counter.name == name);
        // The last that is put in stays.
        named.rev().map(|counter| (counter.scope(), counter)).collect()
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
    use super::event;

    #[test]
    fn events_are_known_by_kind() {
        assert_eq!(event("cycles:u"), Some(("cycles", None, "u")));
        assert_eq!(event("cs"), Some(("context-switches", None, "")));
        assert_eq!(event("cpu_core/cycles/"), Some(("cycles", Some("cpu_core"), "")));
        assert_eq!(event("cpu_atom/instructions/u"), Some(("instructions", Some("cpu_atom"), "u")));
        assert_eq!(event("sends"), None);
    }
}

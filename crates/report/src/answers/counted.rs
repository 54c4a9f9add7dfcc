//! What a run was to count and did not, each said once with its reason.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::axes::{Counting, Study};
use iolens_model::metrics::METRICS;
use iolens_model::outcome::PmuCounts;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{Kind, Sentence};
use crate::number::list;

/// Why metrics are null.
type Reasons<'a> = BTreeMap<&'a str, String>;

/// A sentence for what was asked for, and one for the counters of the hardware.
pub(super) fn not_counted(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let reasons = crate::json::not_measured(&analysis.told);
    let probes = &run.header.plan.probes;
    let asked = [("--tracepoints", probes.tracepoints), ("--software-events", probes.software)];
    let mut out: Vec<Sentence> = Vec::new();
    for (flag, _) in asked.into_iter().filter(|(_, is_asked)| *is_asked) {
        let own = METRICS.iter().filter(|metric| metric.source.contains(flag));
        let names: Vec<&str> = own.map(|metric| metric.name).collect();
        let text = without(flag, &names, &reasons);
        out.extend(text.map(|text| Sentence::plain(Kind::Caution, text)));
    }
    out.extend(no_hardware(run, &reasons));
    out
}

/// What of these metrics was not counted; nothing where all of them were.
fn without(flag: &str, names: &[&str], reasons: &Reasons<'_>) -> Option<String> {
    let missing: Vec<&str> = names.iter().copied().filter(|n| reasons.contains_key(n)).collect();
    let why = distinct(&missing, reasons);
    match missing.len() {
        0 => None,
        n if n == names.len() => Some(format!("{flag} counted nothing: {why}.")),
        _ => {
            let missing: Vec<String> = missing.into_iter().map(str::to_owned).collect();
            Some(format!("{flag} did not count {}: {why}.", list(&missing)))
        }
    }
}

/// That no counter of the hardware was read. Servers list every counter of theirs themselves.
fn no_hardware(run: &Run, reasons: &Reasons<'_>) -> Option<Sentence> {
    let plan = &run.header.plan;
    if plan.study() == Study::Server || plan.probes.counting == Counting::Off {
        return None;
    }
    let has_none = PmuCounts::NAMES.iter().all(|name| reasons.contains_key(name));
    let why = distinct(&PmuCounts::NAMES, reasons);
    has_none.then(|| Sentence::plain(Kind::Scope, format!("No hardware counters: {why}.")))
}

/// The reasons of these metrics, one of each kind: some differ in a name alone.
fn distinct(names: &[&str], reasons: &Reasons<'_>) -> String {
    let all: BTreeSet<&str> = names.iter().filter_map(|n| Some(reasons.get(n)?.as_str())).collect();
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    for why in all {
        match kinds.iter_mut().find(|(kind, ..)| *kind == nameless(why)) {
            Some((.., others)) => *others += 1,
            None => kinds.push((nameless(why), why, 0)),
        }
    }
    let one = |(_, why, others): (String, &str, usize)| match others {
        0 => why.to_owned(),
        n => format!("{why}; and so {n} more"),
    };
    kinds.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A reason without the first name in it.
fn nameless(why: &str) -> String {
    let mut parts = why.splitn(3, '`');
    let before = parts.next().unwrap_or_default();
    format!("{before}{}", parts.nth(1).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_counted_is_said_with_its_reason() {
        let reasons: Reasons<'_> =
            [("a", "no tracefs".to_owned()), ("b", "no tracefs".to_owned())].into();
        let said = |names: &[&str]| without("--tracepoints", names, &reasons);
        assert_eq!(
            said(&["a", "b"]).as_deref(),
            Some("--tracepoints counted nothing: no tracefs.")
        );
        let part = "--tracepoints did not count a and b: no tracefs.";
        assert_eq!(said(&["a", "b", "c"]).as_deref(), Some(part));
        assert_eq!(said(&["c"]), None);
        let reasons: Reasons<'_> = [("a", "no `x` here"), ("b", "no `y` here"), ("c", "none")]
            .map(|(name, why)| (name, why.to_owned()))
            .into();
        let said = distinct(&["a", "b", "c"], &reasons);
        assert_eq!(said, "no `x` here; and so 1 more; none");
    }
}

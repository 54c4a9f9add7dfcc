//! What the threads of an end bring home, and how it becomes the end's report:
//! the same for both ends.

use std::collections::BTreeMap;

use iolens_model::outcome::{Counts, CountsByPmu};
use iolens_model::reading::Histogram;
use iolens_model::trial::{SliceKind, Trial};

use super::bracket::{self};
use super::crew::ThreadReport;
use super::facts;
use super::flow;
use super::link::Links;
use super::protocol::{EndReport, EndSlice};
use super::sampling;
use iolens_harness::op::Span;

/// The report of an end. `takes_part` says whether an arm (by its index) has
/// anything to count here.
pub(crate) fn merge(
    trial: &Trial,
    links: &Links,
    threads: &[ThreadReport],
    takes_part: impl Fn(usize) -> bool,
) -> EndReport {
    let wanted = |index: usize| {
        let slice = &trial.slices[index];
        slice.kind != SliceKind::Warm && takes_part(slice.arm)
    };
    let slices = (0..trial.slices.len())
        .map(|index| wanted(index).then(|| slice(index, threads)).flatten())
        .collect();
    let ends = threads.iter().map(|thread| (&thread.bracket, thread.cpus.clone()));
    let mut facts = facts::end_facts(trial, links, ends);
    facts.flows = flow::facts_of(trial, links, threads);
    let measured = |index: usize| trial.slices[index].kind == SliceKind::Measured;
    let slices_of = |thread: &ThreadReport, arm: usize| {
        let of_arm = |&index: &usize| measured(index) && trial.slices[index].arm == arm;
        let indices = (0..trial.slices.len()).filter(of_arm);
        indices.map(|index| thread.slices[index].counts).collect::<Vec<Counts>>()
    };
    for arm in (0..trial.arms.len()).filter(|&arm| takes_part(arm)) {
        let counted = threads
            .iter()
            .filter_map(|thread| Some((thread.bracket.pmu()?.to_owned(), slices_of(thread, arm))));
        facts.by_pmu.extend(by_pmu(arm, counted));
    }
    for fact in threads.iter().flat_map(|thread| &thread.arm_facts) {
        if !facts.arm_facts.contains(fact) {
            facts.arm_facts.push(fact.clone());
        }
    }
    facts.starts = threads.iter().flat_map(|thread| thread.starts.iter().copied()).collect();
    EndReport {
        facts,
        slices,
        latency: latency(threads),
        samples: sampling::merge(threads.iter().map(|thread| &thread.sampler)),
    }
}

/// What each kind of cores counted for an arm, from the kind that each thread
/// ran on and its slices; nothing where all ran on one.
fn by_pmu(
    arm: usize,
    threads: impl Iterator<Item = (String, Vec<Counts>)>,
) -> impl Iterator<Item = CountsByPmu> {
    let mut kinds: BTreeMap<String, (u32, Option<Counts>)> = BTreeMap::new();
    for (pmu, slices) in threads {
        let (threads, sum) = kinds.entry(pmu).or_default();
        *threads += 1;
        for slice in &slices {
            let first = sum.is_none();
            bracket::add(sum.get_or_insert_default(), slice, first);
        }
    }
    let several = kinds.len() > 1;
    kinds.into_iter().filter(move |_| several).filter_map(move |(pmu, (threads, sum))| {
        let sum = sum?;
        Some(CountsByPmu { pmu, arm, threads, task_clock_ns: sum.task_clock_ns, counts: sum.pmu })
    })
}

/// One slice over all threads that did something in it; `None` where none did.
fn slice(index: usize, threads: &[ThreadReport]) -> Option<EndSlice> {
    let parts = || threads.iter().map(|thread| &thread.slices[index]);
    let mut counts = Counts::default();
    for (i, part) in parts().enumerate() {
        bracket::add(&mut counts, &part.counts, i == 0);
    }
    let spans = || parts().filter(|part| part.span.first_call_ns > 0).map(|part| part.span);
    let first = |pick: fn(&Span) -> u64| spans().map(|span| pick(&span)).min();
    let last = |pick: fn(&Span) -> u64| spans().map(|span| pick(&span)).max();
    let end_ns = parts().map(|part| part.end_ns).max()?;
    counts.time_ns = end_ns.saturating_sub(first(|s| s.first_call_ns)?);
    let all_active_ns = first(|s| s.last_call_ns)?.saturating_sub(last(|s| s.first_call_ns)?);
    Some(EndSlice { counts, all_active_ns })
}

/// Times of all threads together, by arm.
fn latency(threads: &[ThreadReport]) -> Vec<Histogram> {
    let mut all: Vec<Histogram> = Vec::new();
    for thread in threads {
        all.resize(all.len().max(thread.latency.len()), Histogram::default());
        for (sum, part) in all.iter_mut().zip(&thread.latency) {
            sum.add(part);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::PmuCounts;

    use super::*;

    fn slice(cycles_user: Option<u64>) -> Counts {
        let pmu = PmuCounts { cycles_user, ..PmuCounts::default() };
        Counts { pmu, task_clock_ns: Some(7), ..Counts::default() }
    }

    #[test]
    fn kinds_of_cores_are_summed_apart() {
        let threads = [
            ("cpu_core".to_owned(), vec![slice(Some(10)), slice(Some(20))]),
            ("cpu_atom".to_owned(), vec![slice(Some(1)), slice(None)]),
            ("cpu_core".to_owned(), vec![slice(Some(30)), slice(Some(40))]),
        ];
        let rows: Vec<CountsByPmu> = by_pmu(3, threads.iter().cloned()).collect();
        let [atom, core] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((atom.pmu.as_str(), atom.arm, atom.threads), ("cpu_atom", 3, 1));
        assert_eq!(atom.counts.cycles_user, None, "a slice of it is not known");
        assert_eq!((core.threads, core.counts.cycles_user), (2, Some(100)));
        assert_eq!(core.task_clock_ns, Some(28));
        let alike = threads.iter().filter(|(pmu, _)| pmu == "cpu_core").cloned();
        assert_eq!(by_pmu(3, alike).count(), 0, "one kind needs no rows of its own");
    }
}

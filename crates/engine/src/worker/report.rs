//! What the threads of an end bring home, and how it becomes the end's report:
//! the same for both ends.

use iolens_model::latency::Histogram;
use iolens_model::outcome::Counts;
use iolens_model::trial::{SliceKind, Trial};

use super::bracket::{self, Bracket};
use super::facts;
use super::link::Links;
use super::protocol::{EndReport, EndSlice};
use super::sampling::{self, StackSampler};
use crate::op::Span;

/// One slice on one thread.
pub(crate) struct ThreadSlice {
    /// First and last call; at the receiving end the first and the last bytes.
    pub(crate) span: Span,
    /// When the slice was over for this thread.
    pub(crate) end_ns: u64,
    pub(crate) counts: Counts,
}

/// What one thread brings home.
pub(crate) struct ThreadReport {
    /// One entry per slice of the trial.
    pub(crate) slices: Vec<ThreadSlice>,
    pub(crate) bracket: Bracket,
    pub(crate) cpus: Vec<u32>,
    /// Round-trip times by arm; empty at the answering end.
    pub(crate) latency: Vec<Histogram>,
    pub(crate) sampler: StackSampler,
}

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
    EndReport {
        facts: facts::end_facts(trial, links, ends),
        slices,
        latency: latency(threads),
        samples: sampling::merge(threads.iter().map(|thread| &thread.sampler)),
    }
}

/// One slice over all threads that did something in it; null where none did.
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

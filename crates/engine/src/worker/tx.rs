//! The sending end of a trial. Each slice, on each thread: wait for the
//! receiver's `ready` byte, touch the ring, read the slow counters, meet at
//! the gate, send, wait for the receipt, meet again, read the slow counters,
//! release the receiver. The clock runs from the first call of the first
//! thread to the receipt of the last one.

use iolens_model::axes::WorkingSet;
use iolens_model::outcome::Counts;
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_sys::{clock, tcp};

use super::bracket::{self, Bracket};
use super::crew::{Crew, Stop};
use super::facts;
use super::link::{self, Links};
use super::protocol::{EndReport, EndSlice, Failure};
use crate::op::{Budget, Sender, Span};
use crate::registry::{self, Ends, Entry, Link, Setup, Shape};

/// One slice on one thread.
struct ThreadSlice {
    span: Span,
    end_ns: u64,
    counts: Counts,
}

/// What one thread brings home.
struct ThreadReport {
    slices: Vec<ThreadSlice>,
    bracket: Bracket,
    cpus: Vec<u32>,
}

/// Runs the sending end to its last slice.
///
/// Errors: the first failure of any thread, with the slice that ran.
pub(crate) fn run(crew: &Crew<'_>) -> Result<EndReport, Failure> {
    let trial = crew.trial;
    let budgets: Vec<Budget> = trial.slices.iter().map(|slice| budget(trial, slice)).collect();
    let reports = crew.run(|thread, slice| thread_slices(crew, &budgets, thread, slice))?;
    Ok(merge(trial, crew.links, &reports))
}

fn budget(trial: &Trial, slice: &Slice) -> Budget {
    match slice.work {
        Work::Messages(messages) => Budget::messages(messages, trial.cell.threads),
        Work::Window(window) => Budget::window(window.0, trial.cell.message_bytes.0),
    }
}

fn thread_slices(
    crew: &Crew<'_>,
    budgets: &[Budget],
    thread: usize,
    current: &mut Option<usize>,
) -> Result<ThreadReport, Stop> {
    let trial = crew.trial;
    let cpus = facts::pin(&trial.tx_cpus, thread)?;
    let mut bracket = Bracket::open(thread, &trial.tx_cpus, trial.pass);
    let mut senders = open_senders(crew, thread)?;
    crew.ready(thread)?;
    let mut slices = Vec::with_capacity(trial.slices.len());
    for (index, slice) in trial.slices.iter().enumerate() {
        *current = Some(index);
        let (entry, sender) = &mut senders[slice.arm];
        let task = Task { crew, thread, slice, budget: &budgets[index], ends: entry.ends };
        slices.push(task.run(sender.as_mut(), &mut bracket)?);
    }
    Ok(ThreadReport { slices, bracket, cpus })
}

/// An arm's entry and this thread's sender of it.
type Armed<'a> = (&'static Entry, Box<dyn Sender + 'a>);

/// Every arm's sender of this thread, its memory allocated and faulted in
/// here, on the CPU that uses it, in the trial's random order.
fn open_senders<'a>(crew: &Crew<'a>, thread: usize) -> Result<Vec<Armed<'a>>, Stop> {
    let (trial, cell) = (crew.trial, &crew.trial.cell);
    let shape = Shape {
        messages: trial.ring_messages as usize,
        message_bytes: usize::try_from(cell.message_bytes.0).unwrap_or(usize::MAX),
        fields: cell.fields as usize,
        iovec: cell.iovec,
    };
    let mut senders: Vec<Option<Armed<'a>>> = trial.arms.iter().map(|_| None).collect();
    for arm in trial.arms_as_they_run() {
        let id = &trial.arms[arm].primitive;
        let entry = registry::find(id)
            .ok_or_else(|| Stop::cause(format!("this build knows no primitive `{id}`")))?;
        let link = match entry.ends {
            Ends::Pair => Link::Socket(crew.links.get(arm, thread)),
            Ends::SenderOnly => Link::None,
        };
        senders[arm] = Some((entry, (entry.open)(Setup { link, shape })));
    }
    Ok(senders.into_iter().flatten().collect())
}

/// One slice of one thread.
struct Task<'a> {
    crew: &'a Crew<'a>,
    thread: usize,
    slice: &'a Slice,
    budget: &'a Budget,
    ends: Ends,
}

impl Task<'_> {
    fn run(&self, sender: &mut dyn Sender, bracket: &mut Bracket) -> Result<ThreadSlice, Stop> {
        let fd = self.crew.links.get(self.slice.arm, self.thread);
        link::receive_byte(fd).map_err(Stop::at("hear that the receiver is ready"))?;
        if self.crew.trial.cell.working_set == WorkingSet::Hot {
            sender.touch();
        }
        let tally = sender.tally();
        let outer_before = bracket.outer(Some(fd));
        self.crew.meet()?;
        let inner_before = bracket.inner_before();
        let span = sender.run(self.budget).map_err(Stop::at("send"))?;
        let windowed = matches!(self.slice.work, Work::Window(_));
        let mut end_ns = span.last_call_ns;
        if self.ends == Ends::Pair {
            if windowed {
                tcp::finish_sending(fd).map_err(Stop::at("end the stream"))?;
            }
            link::receive_byte(fd).map_err(Stop::at("hear of the receipt"))?;
            end_ns = clock::monotonic_ns();
        }
        let inner_after = bracket.inner_after();
        // Nobody of this end goes on while another one is still in the slice.
        self.crew.meet()?;
        let outer_after = bracket.outer(Some(fd));
        if self.ends == Ends::SenderOnly || !windowed {
            link::send_byte(fd).map_err(Stop::at("release the receiver"))?;
        }
        let done = sender.tally().since(tally);
        let mut counts =
            bracket.between([&inner_before, &inner_after], [&outer_before, &outer_after]);
        counts.messages = done.messages;
        counts.bytes = done.bytes;
        counts.calls = done.calls;
        Ok(ThreadSlice { span, end_ns, counts })
    }
}

/// Puts the threads' slices together.
fn merge(trial: &Trial, links: &Links, threads: &[ThreadReport]) -> EndReport {
    let slice = |(index, slice): (usize, &Slice)| {
        if slice.kind == SliceKind::Warm {
            return None;
        }
        let parts = || threads.iter().map(|thread| &thread.slices[index]);
        let first = |pick: fn(&ThreadSlice) -> u64| parts().map(pick).min().unwrap_or(0);
        let last = |pick: fn(&ThreadSlice) -> u64| parts().map(pick).max().unwrap_or(0);
        let mut counts = Counts::default();
        for (i, part) in parts().enumerate() {
            bracket::add(&mut counts, &part.counts, i == 0);
        }
        counts.time_ns = last(|s| s.end_ns) - first(|s| s.span.first_call_ns);
        let all_active_ns =
            first(|s| s.span.last_call_ns).saturating_sub(last(|s| s.span.first_call_ns));
        Some(EndSlice { counts, all_active_ns })
    };
    let ends = threads.iter().map(|thread| (&thread.bracket, thread.cpus.clone()));
    let mut facts = facts::end_facts(trial, links, ends);
    let ring = u64::from(trial.ring_messages) * trial.cell.message_bytes.0;
    facts.ring_bytes = Some(ring * u64::from(trial.cell.threads));
    EndReport { facts, slices: trial.slices.iter().enumerate().map(slice).collect() }
}

//! The sending end of a trial. Each slice, on each thread: wait for the
//! receiver's `ready` byte, touch the ring, read the slow counters, meet at
//! the gate, send, wait for the receipt, meet again, read the slow counters,
//! release the receiver. The clock runs from the first call of the first
//! thread to the receipt of the last one, or to its last completion.
//! In mode `rr` this end answers requests, and the other one holds the clock.

mod open;

use iolens_model::axes::WorkingSet;
use iolens_model::cell::Cell;
use iolens_model::copy::ProgramStart;
use iolens_model::outcome::ArmFact;
use iolens_model::transport::Transport;
use iolens_model::trial::{Slice, SliceKind, Work};
use iolens_sys::clock;
use iolens_sys::errno::Errno;

use self::open::{Armed, open_senders};
use super::bracket::{self, Bracket};
use super::crew::{Crew, Stop, ThreadReport, ThreadSlice};
use super::protocol::{EndReport, Failure};
use super::sampling::StackSampler;
use super::{facts, last_word, link, report};
use crate::stage::sink;
use iolens_file::arm::{Before, Ground};
use iolens_harness::locked_memory::Limits;
use iolens_harness::op::{Budget, Sender, Span};
use iolens_harness::perf_control::{Counting, Listener};
use iolens_net::entry::{Ends, Entry};
use iolens_net::lane::Lane;
use iolens_net::{lane, lead};

/// How an arm sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// Which ends it has.
    pub(crate) ends: Ends,
    /// What its messages travel over.
    pub(crate) transport: Transport,
    /// Whether it pins pages, which `RLIMIT_MEMLOCK` limits.
    pub(crate) locks_memory: bool,
}

impl Way {
    /// That of a primitive.
    pub(crate) fn of(entry: &Entry) -> Way {
        let &Entry { ends, transport, locks_memory, .. } = entry;
        Way { ends, transport, locks_memory }
    }

    /// Whether there is a receiving end to what an arm sends.
    pub(crate) fn is_received(&self, cell: &Cell) -> bool {
        self.ends == Ends::Pair && cell.has_receiver()
    }
}

/// Runs the sending end to its last slice.
///
/// Errors: the first failure of any thread, with the slice that ran.
pub(crate) fn run(crew: &Crew<'_>) -> Result<EndReport, Failure> {
    let trial = crew.trial;
    let budgets: Vec<Budget> = trial.slices.iter().map(|slice| Budget::of(trial, slice)).collect();
    let reports = crew.run(|thread, slice| thread_slices(crew, &budgets, thread, slice))?;
    let mut report = report::merge(trial, crew.links, &reports, |_| true);
    let ring = u64::from(trial.ring_messages) * trial.cell.size.0;
    report.facts.ring_bytes = Some(ring * u64::from(trial.cell.threads));
    Ok(report)
}

fn thread_slices(
    crew: &Crew<'_>,
    budgets: &[Budget],
    thread: usize,
    current: &mut Option<usize>,
) -> Result<ThreadReport, Stop> {
    let trial = crew.trial;
    let cpus = facts::pin(&trial.tx_cpus, thread)?;
    let mut bracket = Bracket::open(thread, &trial.tx_cpus, trial.pass, trial.probes);
    let mut senders = open_senders(crew, thread, current)?;
    let mut sampler = StackSampler::open(trial);
    for (_, sender) in &mut senders {
        idle(sender.as_mut())?;
    }
    crew.ready(thread)?;
    let mut slices = Vec::with_capacity(trial.slices.len());
    for (index, slice) in trial.slices.iter().enumerate() {
        *current = Some(index);
        last_word::slice(index);
        sampler.sample(trial.samples(slice.arm)).map_err(Stop::at("switch sampling"))?;
        let (way, sender) = &mut senders[slice.arm];
        let is_first = trial.slices[..index].iter().all(|earlier| earlier.arm != slice.arm);
        let budget = &budgets[index];
        let task = Task { crew, thread, slice, is_first, budget, way: *way };
        let done = task.run(sender.as_mut(), &mut bracket)?;
        sampler.collect(slice, &done);
        slices.push(done);
    }
    let arm_facts = facts_of(&senders);
    let starts = starts_of(&senders);
    let (homes, latency) = (Vec::new(), Vec::new());
    Ok(ThreadReport { slices, bracket, cpus, homes, latency, sampler, arm_facts, starts })
}

/// Waits until nothing of the kernel's goes on for an arm of this thread.
fn idle(sender: &mut dyn Sender) -> Result<bool, Stop> {
    sender.idle().map_err(Stop::at("hear that the kernel's thread sleeps"))
}

/// Why a call was not what it should be.
fn call_failed(id: &str, errno: Errno) -> Stop {
    Stop::cause(match errno {
        Errno::EBADMSG | Errno::ENODATA => format!("`{id}` returned what it should not"),
        Errno::ENOBUFS => format!("what `{id}` uses up was made for fewer calls than came"),
        errno => format!("`{id}` failed: {errno}"),
    })
}

fn facts_of(senders: &[Armed<'_>]) -> Vec<ArmFact> {
    let facts = senders.iter().enumerate().flat_map(|(arm, (_, sender))| {
        sender.facts().into_iter().map(move |(name, value)| (arm, name, value))
    });
    facts.map(|(arm, name, value)| ArmFact { arm, name: name.to_owned(), value }).collect()
}

fn starts_of(senders: &[Armed<'_>]) -> Vec<ProgramStart> {
    let starts = senders.iter().enumerate().filter_map(|(arm, (_, sender))| {
        let start = sender.start()?;
        Some(ProgramStart { arm, ..start })
    });
    starts.collect()
}

/// When the first thread does what all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    FirstBefore,
    FirstAfter,
}

/// One slice of one thread.
struct Task<'a> {
    crew: &'a Crew<'a>,
    thread: usize,
    slice: &'a Slice,
    /// Whether it is the arm's first of the trial.
    is_first: bool,
    budget: &'a Budget,
    /// `None` in studies without a network.
    way: Option<Way>,
}

impl Task<'_> {
    fn run(&self, sender: &mut dyn Sender, bracket: &mut Bracket) -> Result<ThreadSlice, Stop> {
        let lane = self.crew.links.lane(self.slice.arm, self.thread);
        bracket.count(self.crew.trial.counts(self.slice.arm));
        if let Some(lane) = lane {
            lane::receive_byte(lane.back()).map_err(Stop::at("hear that the receiver is ready"))?;
        }
        if self.crew.trial.cell.working_set() != Some(WorkingSet::Cold) {
            sender.touch();
        }
        self.prepare(sender)?;
        let found = self.ground()?;
        let tally = sender.tally();
        // Of a program's connections only the other end knows.
        let connection = lane.and_then(Lane::tcp).filter(|_| !self.is_program());
        let outer_before = bracket.outer_before(connection);
        let counting = self.tell_perf()?;
        self.crew.begin()?;
        let inner_before = bracket.inner_before();
        let span = self.work(lane, sender);
        let span = span.map_err(|stop| stop.counting(sender.tally().zerocopy))?;
        let end_ns = match self.way.map(|way| way.ends) {
            Some(Ends::Pair) => clock::monotonic_ns(),
            Some(Ends::SenderOnly) | None => span.last_call_ns,
        };
        let inner_after = bracket.inner_after();
        // Nobody of this end goes on while another one is still in the slice.
        self.crew.meet()?;
        counting.map_or(Ok(()), Counting::stop).map_err(Stop::cause)?;
        let outer_after = bracket.outer_after(connection);
        self.idle(sender)?;
        if let Some(lane) = lane.filter(|_| !self.ends_the_stream() && !self.is_followed()) {
            let is_rr = self.crew.trial.cell.is_rr();
            lane.release(is_rr).map_err(Stop::at("release the receiver"))?;
        }
        let around =
            found.map(|(ground, before)| ground.after(self.crew.trial, self.slice.arm, &before));
        self.check(sender)?;
        self.conclude(sender)?;
        let done = sender.tally().since(tally);
        let mut counts =
            bracket.between([&inner_before, &inner_after], [&outer_before, &outer_after]);
        counts.messages = done.messages;
        counts.bytes = done.bytes;
        counts.calls = Some(done.calls);
        counts.zerocopy = done.zerocopy;
        if let Some(children) = done.children {
            bracket::with_children(&mut counts, &children);
        }
        counts.file = done.file.map(|reads| around.map_or(reads, |around| reads.plus(&around)));
        let own_cpu_ns = inner_after.own_cpu_ns(&inner_before);
        Ok(ThreadSlice { span, end_ns, counts, own_cpu_ns })
    }

    /// Waits until nothing of the kernel's goes on for any thread: what the next slice has
    /// spent is read by one of them, which may be there before the others.
    fn idle(&self, sender: &mut dyn Sender) -> Result<(), Stop> {
        match idle(sender)? {
            true => self.crew.meet(),
            false => Ok(()),
        }
    }

    /// Brings the file to the state that the slice begins in; one thread does it for
    /// all, which wait for it.
    fn ground(&self) -> Result<Option<(&dyn Ground, Before)>, Stop> {
        let mine = self.crew.ground.filter(|_| self.thread == 0);
        let before = |ground: &dyn Ground| ground.before(self.crew.trial, self.slice.arm);
        let found = mine.map(|ground| Ok((ground, before(ground)?)));
        found.transpose().map_err(Stop::cause)
    }

    /// Looks once per arm whether what it wrote is where it belongs, when nobody writes
    /// and the file's state was looked at.
    fn check(&self, sender: &dyn Sender) -> Result<(), Stop> {
        if !self.is_first || self.crew.trial.cell.write().is_none() {
            return Ok(());
        }
        self.crew.meet()?;
        let id = &self.crew.trial.arms[self.slice.arm].primitive;
        sender.check().map_err(|why| Stop::cause(format!("`{id}`: {why}")))?;
        self.crew.meet()
    }

    /// Has the arm get ready: the first thread makes what the others then open.
    fn prepare(&self, sender: &mut dyn Sender) -> Result<(), Stop> {
        let Work::Messages(messages) = self.slice.work else { return Ok(()) };
        if self.crew.site.is_none() && !self.is_program() {
            return Ok(());
        }
        self.in_turn(Turn::FirstBefore, || Ok(sender.prepare(messages)?))
    }

    /// Has the arm look at what it left: the first thread takes it away when no other
    /// has it open any more.
    fn conclude(&self, sender: &mut dyn Sender) -> Result<(), Stop> {
        if self.crew.site.is_none() && !self.is_program() {
            return Ok(());
        }
        let lane = self.crew.links.lane(self.slice.arm, self.thread);
        if let Some(lane) = lane.filter(|_| self.is_whole_program() && self.thread == 0) {
            // Or what is wrong with them would be said in the next slice.
            let heard = lane::receive_byte(lane.back());
            heard.map_err(Stop::at("hear that all connections have ended"))?;
        }
        self.in_turn(Turn::FirstAfter, || Ok(sender.conclude()?))
    }

    /// Does something on every thread, on the first one before all others or after.
    fn in_turn(&self, turn: Turn, act: impl FnOnce() -> Result<(), Stop>) -> Result<(), Stop> {
        let goes_first = (turn == Turn::FirstBefore) == (self.thread == 0);
        if goes_first {
            act()?;
            return self.crew.meet();
        }
        self.crew.meet()?;
        act()
    }

    /// Has perf count, if it listens and the slice counts: around both ends'
    /// part in it, and outside every clock.
    fn tell_perf(&self) -> Result<Option<Counting<'_>>, Stop> {
        let counts = self.thread == 0 && self.slice.kind == SliceKind::Measured;
        let perf = self.crew.perf.as_ref().filter(|_| counts);
        perf.map(Listener::enable).transpose().map_err(Stop::cause)
    }

    /// Whether the arm is a program of the user's.
    fn is_program(&self) -> bool {
        self.crew.trial.program(self.slice.arm).is_some()
    }

    /// Whether it is one that runs once in the slice.
    fn is_whole_program(&self) -> bool {
        self.crew.trial.whole_program(self.slice.arm).is_some()
    }

    /// Whether there is a receiving end to what the slice sends.
    fn is_received(&self) -> bool {
        self.way.is_some_and(|way| way.is_received(&self.crew.trial.cell))
    }

    /// Whether messages may be lost on the way.
    fn loses(&self) -> bool {
        self.way.is_some_and(|way| way.transport.loses())
    }

    /// Whether there is a stream, from which nothing is lost.
    fn is_stream(&self) -> bool {
        let loses = self.loses();
        !loses && self.is_received() && !self.crew.trial.cell.is_rr()
    }

    /// Whether the slice ends with the connection.
    fn ends_the_stream(&self) -> bool {
        let windowed = matches!(self.slice.work, Work::Window(_));
        let counts = self.slice.kind != SliceKind::Warm;
        counts && windowed && self.is_stream()
    }

    /// Whether the receiver follows by count: no receipt, no release.
    fn is_followed(&self) -> bool {
        self.slice.is_lead() && self.is_stream() && !self.is_program()
    }

    /// All of the slice's work, to its receipt and its last completion.
    fn work(&self, lane: Option<&Lane>, sender: &mut dyn Sender) -> Result<Span, Stop> {
        let trial = self.crew.trial;
        let failed = |errno| match errno {
            Errno::ENOBUFS => Stop::refused(Limits::here().refusal(&trial.cell)),
            Errno::EMSGSIZE if self.way.is_some_and(|way| way.locks_memory) => {
                Stop::refused(sink::too_scattered(&trial.cell))
            }
            errno => Stop::at("send")(errno),
        };
        let Some(way) = self.way else {
            let id = &trial.arms[self.slice.arm].primitive;
            return sender.run(self.budget).map_err(|errno| {
                let of_file = || self.crew.ground.and_then(|ground| ground.explain(id, errno));
                match sender.explain() {
                    Some(trouble) => trouble.into(),
                    None => of_file().map_or_else(|| call_failed(id, errno), Stop::cause),
                }
            });
        };
        let failed = |sender: &mut dyn Sender, errno| {
            sender.explain().map_or_else(|| failed(errno), Stop::from)
        };
        let span = match lane.filter(|_| way.is_received(&trial.cell)) {
            None => sender.run(self.budget).map_err(|errno| failed(sender, errno))?,
            Some(lane) if trial.cell.is_rr() => {
                let ready = lane::send_byte(lane.back());
                ready.map_err(Stop::at("say that it is ready to answer"))?;
                sender.answer(lane.requests()).map_err(|errno| failed(sender, errno))?
            }
            Some(lane) => {
                let before = sender.tally();
                let span = sender.run(self.budget).map_err(|errno| failed(sender, errno))?;
                self.end(lane, sender.tally().since(before).bytes)?;
                span
            }
        };
        sender.settle().map_err(Stop::at("hear that everything was released"))?;
        Ok(span)
    }

    /// Has the receiving end know that `bytes` were all, and waits for its receipt
    /// where there is one.
    fn end(&self, lane: &Lane, bytes: u64) -> Result<(), Stop> {
        if self.loses() {
            let limit = link::stall_limit(self.crew.trial);
            return lane.finish_datagrams(limit).map_err(Stop::at("hear of the receipt"));
        }
        if self.ends_the_stream() {
            lane.finish_sending().map_err(Stop::at("end the stream"))?;
        }
        match self.crew.links.signal(self.thread).filter(|_| self.is_followed()) {
            Some(signal) => {
                lead::announce(signal, bytes).map_err(Stop::at("say how much was sent"))
            }
            None => lane::receive_byte(lane.back()).map_err(Stop::at("hear of the receipt")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use iolens_model::cell::{Setting, SyscallSetting};
    use iolens_model::units::Nanos;

    use super::super::gate::Latch;
    use super::super::link::Links;
    use super::*;
    use crate::small;
    use iolens_harness::op::Tally;

    const THREADS: usize = 2;

    /// An arm of which one thread takes its time to fall silent behind each slice.
    struct Restless<'a> {
        thread: usize,
        /// Threads that have, in all slices so far.
        silent: &'a AtomicUsize,
        /// Slices that have begun.
        begun: &'a AtomicUsize,
        slices: usize,
    }

    impl Sender for Restless<'_> {
        fn run(&mut self, _budget: &Budget) -> Result<Span, Errno> {
            Ok(Span::none().end())
        }

        fn touch(&mut self) {
            if self.thread == 0 {
                self.begun.fetch_add(1, Ordering::SeqCst);
                assert_eq!(self.silent.load(Ordering::SeqCst), THREADS * self.slices);
            }
            self.slices += 1;
        }

        fn idle(&mut self) -> Result<bool, Errno> {
            let until_ns = clock::monotonic_ns() + 20_000_000;
            let is_next = || self.begun.load(Ordering::SeqCst) > self.slices;
            while self.thread > 0 && !is_next() && clock::monotonic_ns() < until_ns {
                std::thread::yield_now();
            }
            self.silent.fetch_add(1, Ordering::SeqCst);
            Ok(true)
        }

        fn tally(&self) -> Tally {
            Tally::default()
        }
    }

    #[test]
    fn a_slice_begins_when_every_thread_of_the_last_one_is_silent() {
        let mut trial = small::trial("getppid", Nanos::SECOND);
        trial.cell.setting = Setting::Syscall(SyscallSetting { in_a_row: None });
        trial.cell.threads = 2;
        trial.slices = vec![trial.slices[0]; 5];
        let (links, go, silent, begun) =
            (Links::none(), Latch::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let crew = Crew::new(&trial, &links, &|| (), &go);
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        let done = crew.run(|thread, _| {
            let mut bracket = Bracket::open(thread, &cpus, 1, trial.probes);
            let mut sender = Restless { thread, silent: &silent, begun: &begun, slices: 0 };
            for slice in &trial.slices {
                let budget = Budget::of(&trial, slice);
                let task = Task {
                    crew: &crew,
                    thread,
                    slice,
                    is_first: false,
                    budget: &budget,
                    way: None,
                };
                task.run(&mut sender, &mut bracket)?;
            }
            Ok(())
        });
        assert_eq!(done.map(|threads| threads.len()), Ok(THREADS));
        assert_eq!(silent.load(Ordering::SeqCst), THREADS * trial.slices.len());
    }
}

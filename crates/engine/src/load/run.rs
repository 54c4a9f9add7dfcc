//! All threads of a client together: they connect, begin at the same moment, and
//! their books become one.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iolens_model::latency::Histogram;
use iolens_model::load::{ClientThread, Connects, Length, Load, NetworkCounts, Outcomes, Pace};
use iolens_model::outcome::Status;
use iolens_model::transfer::Cpu;
use iolens_model::units::Nanos;
use iolens_sys::proc::{self, Root};
use iolens_sys::{affinity, clock, process, usage};

use super::book::{Book, Demand, Limit, Results, Terms};
use super::client::{Client, Failures, Left, cannot_wait, enter};
use super::links::{LinkCounts, Links, Trouble, nobody_there};
use super::schedule::Schedule;
use super::{Count, Insistence, Settings, Stop, Watch};

/// Between the moment at which all threads know when to begin, and that one.
const LEAD_NS: u64 = 1_000_000;

/// Offers the load, on the calling thread if it is to be one, and says what came
/// of it. `watch` is told of every reply; a load that is measured has none.
///
/// [`Settings::check`] has been asked before.
#[must_use]
pub fn run(settings: &Settings, stop: &Stop, watch: Option<&Watch<'_>>) -> Load {
    // What cannot be raised was enough when it was checked.
    let _ = process::raise_descriptor_limit();
    let meeting = Meeting::of(settings);
    let before = network_counts();
    let threads: Vec<ThreadDone> = std::thread::scope(|scope| {
        let work = |thread| serve(settings, thread, &meeting, stop, watch);
        let others: Vec<_> =
            (1..settings.threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut all = vec![serve(settings, 0, &meeting, stop, watch)];
        let panicked = || ThreadDone::nothing(Some("a thread panicked".to_owned()));
        all.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|_| panicked())));
        all
    });
    let cpu = meeting.cpu_since();
    let network = before.zip(network_counts()).map(|(before, after)| NetworkCounts {
        listen_overflows: after.listen_overflows.saturating_sub(before.listen_overflows),
        listen_drops: after.listen_drops.saturating_sub(before.listen_drops),
        retransmits: after.retransmits.saturating_sub(before.retransmits),
    });
    Load { cpu, network, ..together(settings, &meeting, stop, threads) }
}

/// What one thread leaves behind; null where it did not begin.
struct ThreadDone {
    left: Option<Left>,
    client: ClientThread,
    /// Of the ramp.
    counts: LinkCounts,
    failures: Failures,
    reason: Option<String>,
}

impl ThreadDone {
    fn nothing(reason: Option<String>) -> ThreadDone {
        ThreadDone {
            left: None,
            client: ClientThread::default(),
            counts: LinkCounts::default(),
            failures: Failures::new(),
            reason,
        }
    }
}

/// Where threads wait until all are connected, and learn when to begin.
struct Meeting {
    barrier: Barrier,
    /// A thread cannot begin, so none does.
    failed: AtomicBool,
    made: AtomicU64,
    start_ns: AtomicU64,
    user_ns: AtomicU64,
    system_ns: AtomicU64,
}

impl Meeting {
    fn of(settings: &Settings) -> Meeting {
        Meeting {
            barrier: Barrier::new(settings.threads as usize),
            failed: AtomicBool::new(false),
            made: AtomicU64::new(0),
            start_ns: AtomicU64::new(0),
            user_ns: AtomicU64::new(0),
            system_ns: AtomicU64::new(0),
        }
    }

    /// When all begin; null where one cannot, or no connection could be made that
    /// was to be there. All that passes between threads is ordered by the barrier.
    fn start(&self, thread: u32, made: u64, ready: bool, needs_one: bool) -> Option<u64> {
        self.made.fetch_add(made, Ordering::Relaxed);
        if !ready {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.barrier.wait();
        if thread == 0 {
            let none = needs_one && self.made.load(Ordering::Relaxed) == 0;
            if !none && !self.failed.load(Ordering::Relaxed) {
                let spent = usage::process_cpu().unwrap_or_default();
                self.user_ns.store(spent.user_ns, Ordering::Relaxed);
                self.system_ns.store(spent.system_ns, Ordering::Relaxed);
                self.start_ns.store(clock::monotonic_ns() + LEAD_NS, Ordering::Relaxed);
            }
        }
        self.barrier.wait();
        self.begun()
    }

    /// When all began.
    fn begun(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Relaxed)).filter(|&ns| ns > 0)
    }

    /// CPU time of the process since then.
    fn cpu_since(&self) -> Option<Cpu> {
        self.begun()?;
        let after = usage::process_cpu().ok()?;
        let since = |after: u64, before: &AtomicU64| {
            Nanos(after.saturating_sub(before.load(Ordering::Relaxed)))
        };
        Some(Cpu {
            user: since(after.user_ns, &self.user_ns),
            system: since(after.system_ns, &self.system_ns),
        })
    }
}

/// The share of a thread in something that is divided as evenly as it can be:
/// where it begins and how much it is.
fn share(of: u64, thread: u32, threads: u32) -> (u64, u64) {
    let (thread, threads) = (u64::from(thread), u64::from(threads));
    let begin = |thread: u64| of / threads * thread + (of % threads).min(thread);
    (begin(thread), begin(thread + 1) - begin(thread))
}

/// One thread from its first connection to its last reply.
fn serve(
    settings: &Settings,
    thread: u32,
    meeting: &Meeting,
    stop: &Stop,
    watch: Option<&Watch<'_>>,
) -> ThreadDone {
    let (first, count) = share(u64::from(settings.connections), thread, settings.threads);
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let mut failures = Failures::new();
    let connected = prepare(settings, thread).and_then(|()| {
        let mut links = Links::new(settings, narrow(first), narrow(count)).map_err(cannot_wait)?;
        if settings.length == Length::Long {
            let failed = &mut |trouble: &Trouble| enter(&mut failures, &trouble.text);
            links.ramp(|| stop.asked().is_some(), failed)?;
        }
        Ok(links)
    });
    let counts = connected.as_ref().map(|links| links.counts).unwrap_or_default();
    let needs_one = settings.length == Length::Long;
    let start = meeting.start(thread, counts.made, connected.is_ok(), needs_one);
    let (links, start_ns) = match (connected, start) {
        (Ok(links), Some(start_ns)) => (links, start_ns),
        (connected, _) => {
            return ThreadDone { counts, failures, ..ThreadDone::nothing(connected.err()) };
        }
    };
    let book =
        Book::new(terms(settings, thread, (first, count), start_ns), demand(settings, thread));
    let before = Spent::now();
    let client = Client { settings, links, book, stop, watch, spins: spins(settings), failures };
    let left = client.run();
    let spent = Spent::now();
    let client = ClientThread {
        cpu: Nanos(spent.cpu_ns.saturating_sub(before.cpu_ns)),
        spinning: Nanos(left.spinning_ns),
        wall: Nanos(left.end_ns.saturating_sub(start_ns)),
        run_delay: before.run_delay_ns.zip(spent.run_delay_ns).map(|(a, b)| Nanos(b - a)),
        involuntary_switches: spent.involuntary_switches - before.involuntary_switches,
    };
    ThreadDone { left: Some(left), client, ..ThreadDone::nothing(None) }.with_ramp(counts)
}

impl ThreadDone {
    fn with_ramp(self, counts: LinkCounts) -> ThreadDone {
        ThreadDone { counts, ..self }
    }
}

/// Puts the calling thread where it is to run.
fn prepare(settings: &Settings, thread: u32) -> Result<(), String> {
    if let Some(cpus) = settings.cpus.as_deref().filter(|cpus| !cpus.is_empty()) {
        let cpu = cpus[thread as usize % cpus.len()];
        affinity::pin_thread(cpu).map_err(|e| format!("cannot pin a thread to CPU {cpu}: {e}"))?;
    }
    process::sharpen_timers().map_err(|e| format!("cannot set PR_SET_TIMERSLACK: {e}"))
}

/// Whether threads look without waiting before a request is due: they have a
/// schedule to keep, and a processor each that nobody else of ours needs.
fn spins(settings: &Settings) -> bool {
    let has_own = match &settings.cpus {
        Some(cpus) => cpus.len() >= settings.threads as usize,
        None => affinity::thread_cpus().is_ok_and(|cpus| cpus.len() > settings.threads as usize),
    };
    has_own && matches!(settings.pace, Pace::Open { .. })
}

fn terms(settings: &Settings, thread: u32, (first, count): (u64, u64), start_ns: u64) -> Terms {
    let in_flight = u64::from(settings.in_flight);
    let count_from_ns = start_ns + settings.warmup.0;
    Terms {
        slots: u32::try_from(count * in_flight).unwrap_or(u32::MAX),
        all_slots: u64::from(settings.connections) * in_flight,
        first_slot: first * in_flight,
        start_ns,
        count_from_ns,
        limit: match settings.count {
            Count::Requests(n) => Limit::Requests(share(n, thread, settings.threads).1),
            Count::Time(time) => Limit::Until(count_from_ns + time.0),
        },
        timeout_ns: settings.timeout.0,
    }
}

fn demand(settings: &Settings, thread: u32) -> Demand {
    match settings.pace {
        Pace::Open { rate, arrivals } => {
            Demand::Open(Schedule::new(rate, arrivals, settings.seed, thread, settings.threads))
        }
        Pace::Closed { think } => Demand::Closed {
            think_ns: think.0,
            stagger_ns: match settings.length {
                Length::Long => 0,
                Length::Short => {
                    settings.ramp.0 * u64::from(settings.threads) / u64::from(settings.connections)
                }
            },
        },
    }
}

/// What the calling thread has spent.
struct Spent {
    cpu_ns: u64,
    run_delay_ns: Option<u64>,
    involuntary_switches: u64,
}

impl Spent {
    fn now() -> Spent {
        let schedstat = Root::real().read("proc/thread-self/schedstat").unwrap_or_default();
        Spent {
            cpu_ns: clock::thread_cpu_ns(),
            run_delay_ns: proc::run_delay_ns(&schedstat),
            involuntary_switches: usage::thread_usage().unwrap_or_default().involuntary_switches,
        }
    }
}

/// What the kernel has counted in this network namespace.
fn network_counts() -> Option<NetworkCounts> {
    let read = |path| Root::real().read(path).ok();
    let (netstat, snmp) = (read("proc/self/net/netstat")?, read("proc/self/net/snmp")?);
    Some(NetworkCounts {
        listen_overflows: proc::net_counter(&netstat, "TcpExt", "ListenOverflows")?,
        listen_drops: proc::net_counter(&netstat, "TcpExt", "ListenDrops")?,
        retransmits: proc::net_counter(&snmp, "Tcp", "RetransSegs")?,
    })
}

/// The sum over all threads.
fn together(settings: &Settings, meeting: &Meeting, stop: &Stop, threads: Vec<ThreadDone>) -> Load {
    let limit = threads.iter().find_map(|thread| {
        let of_client = thread.left.as_ref().and_then(|left| left.limit.clone());
        of_client.or_else(|| thread.reason.clone())
    });
    let mut load = nothing(settings);
    load.connects = connects(settings, &threads);
    let mut failures = Failures::new();
    let mut end_ns = 0;
    for thread in threads {
        let both = [Some(thread.failures), thread.left.as_ref().map(|left| left.failures.clone())];
        for (text, count) in both.into_iter().flatten().flatten() {
            *failures.entry(text).or_default() += count;
        }
        let Some(left) = thread.left else { continue };
        load.threads.push(thread.client);
        load.sent_bytes += left.counts.sent_bytes;
        load.received_bytes += left.counts.received_bytes;
        end_ns = end_ns.max(left.results.end_ns());
        add(&mut load, &left.results);
    }
    load.failures = failures.into_iter().collect();
    load.failures.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let begun_ns = meeting.begun().map(|start_ns| start_ns + settings.warmup.0);
    load.window = Nanos(begun_ns.map_or(0, |begun_ns| end_ns.saturating_sub(begun_ns)));
    let first_failure = || load.failures.first().map(|(text, _)| text.clone());
    (load.status, load.reason) = match (limit, stop.asked()) {
        (Some(limit), _) => (Status::Failed, Some(limit)),
        (None, Some(Insistence::Asked | Insistence::Insists)) => {
            (Status::Interrupted, Some("interrupted".to_owned()))
        }
        (None, None) if load.outcomes.ok > 0 => (Status::Ok, None),
        (None, None) if meeting.begun().is_none() => {
            (Status::Failed, Some(nobody_there(&settings.address, first_failure())))
        }
        (None, None) => {
            let why = first_failure().unwrap_or_else(|| "no request was due".to_owned());
            (Status::Failed, Some(format!("no request was answered: {why}")))
        }
    };
    load
}

/// Adds what one thread's books say.
fn add(load: &mut Load, results: &Results) {
    load.scheduled += results.scheduled;
    load.outcomes = load.outcomes.plus(&results.outcomes);
    load.unsent += results.unsent;
    load.warmup += results.warmup;
    load.late_replies += results.late_replies;
    load.replies_in_window += results.replies_in_window;
    load.from_due.add(&results.from_due.histogram());
    load.from_sent.add(&results.from_sent.histogram());
    load.lag.add(&results.lag.histogram());
    if load.per_second.len() < results.per_second.len() {
        load.per_second.resize(results.per_second.len(), 0);
    }
    for (sum, own) in load.per_second.iter_mut().zip(&results.per_second) {
        *sum += own;
    }
}

fn connects(settings: &Settings, threads: &[ThreadDone]) -> Connects {
    let last = |thread: &ThreadDone| thread.left.as_ref().map_or(thread.counts, |left| left.counts);
    let sum = |of: fn(&LinkCounts) -> u64| threads.iter().map(|thread| of(&last(thread))).sum();
    let made = |thread: &&ThreadDone| thread.counts.made > 0;
    let first = threads.iter().filter(made).map(|thread| thread.counts.first_begun_ns).min();
    let all = threads.iter().filter(made).map(|thread| thread.counts.last_made_ns).max();
    let is_long = settings.length == Length::Long;
    Connects {
        made: sum(|counts| counts.made),
        failed: sum(|counts| counts.failed),
        slow: sum(|counts| counts.slow),
        ramp: first.zip(all).filter(|_| is_long).map(|(first, last)| Nanos(last - first)),
    }
}

/// A load of which nothing has come yet.
fn nothing(settings: &Settings) -> Load {
    let is_random =
        matches!(settings.pace, Pace::Open { arrivals: iolens_model::load::Arrivals::Poisson, .. });
    Load {
        address: settings.address.to_string(),
        connections: settings.connections,
        in_flight: settings.in_flight,
        length: settings.length,
        pace: settings.pace,
        seed: is_random.then_some(settings.seed),
        status: Status::Ok,
        reason: None,
        checked: settings.expected.checked().to_owned(),
        scheduled: 0,
        outcomes: Outcomes::default(),
        unsent: 0,
        warmup: 0,
        late_replies: 0,
        failures: Vec::new(),
        connects: Connects::default(),
        window: Nanos(0),
        replies_in_window: 0,
        from_due: Histogram::default(),
        from_sent: Histogram::default(),
        lag: Histogram::default(),
        per_second: Vec::new(),
        sent_bytes: 0,
        received_bytes: 0,
        threads: Vec::new(),
        cpu: None,
        network: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_leave_nothing() {
        let all = |of, threads| (0..threads).map(|t| share(of, t, threads)).collect::<Vec<_>>();
        assert_eq!(all(10, 3), [(0, 4), (4, 3), (7, 3)]);
        assert_eq!(all(2, 2), [(0, 1), (1, 1)]);
        assert_eq!(all(1, 3), [(0, 1), (1, 0), (1, 0)]);
    }
}

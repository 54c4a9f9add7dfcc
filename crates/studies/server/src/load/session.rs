//! Connections to one server that stay from one load to the next.
//!
//! The threads of a client are there while something is offered and not a moment
//! longer: between two loads nobody looks at a connection, and nothing is spent.
//! What became of the connections meanwhile is found out before the next one.

use iolens_model::load::{ClientThread, Connects, Length, Load, Pace};
use iolens_model::outcome::Status;
use iolens_model::units::Nanos;
use iolens_sys::proc::{self, Root};
use iolens_sys::{affinity, clock, process, usage};

use super::book::{Book, Demand, Limit, Terms};
use super::client::{Client, Failures, enter};
use super::links::{LinkCounts, Links, Trouble, cannot_wait, nobody_there};
use super::offered::{self, Offered, ThreadDone};
use super::schedule::Meeting;
use super::schedule::Schedule;
use super::{Count, Ends, Settings, Stop, Watch};

/// Offers the load over connections of its own, and says what came of it. `watch`
/// is told of every reply; a load that is measured has none.
///
/// [`Settings::check`] has been asked before.
pub fn run(settings: &Settings, stop: &Stop, watch: Option<&Watch<'_>>) -> Load {
    match Session::without_connections(settings.clone()) {
        Ok(mut session) => session.offer(&settings.portion(), stop, watch).load,
        Err(reason) => {
            Load { status: Status::Failed, reason: Some(reason), ..offered::nothing(settings) }
        }
    }
}

/// Connections to one server, and how it is loaded over them.
pub struct Session {
    settings: Settings,
    pub(super) hands: Vec<Hand>,
}

/// What is offered at a time, in place of what the settings say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Portion {
    /// What makes a request due.
    pub pace: Pace,
    /// How many requests there are.
    pub count: Count,
    /// Time before, with requests that do not count.
    pub warmup: Nanos,
    /// What random gaps come from: the same seed gives the same schedule again.
    pub seed: u64,
}

impl Settings {
    /// What they offer.
    pub fn portion(&self) -> Portion {
        let Settings { pace, count, warmup, seed, .. } = *self;
        Portion { pace, count, warmup, seed }
    }
}

impl Session {
    /// Makes the connections of a load with long ones, as [`run`](super::run()) does;
    /// with short ones there are none before they are needed.
    ///
    /// [`Settings::check`] has been asked before.
    ///
    /// Errors: why there is none, or why this client cannot make any more.
    pub fn open(settings: Settings, stop: &Stop) -> Result<Session, String> {
        let mut session = Session::without_connections(settings)?;
        let ends = Ends::of(stop);
        let connected = session.on_threads(&|settings, hand| {
            let mut failures = Failures::new();
            let ready = prepare(settings, hand.thread);
            ready.and_then(|()| hand.connect(settings, &ends, &mut failures))?;
            Ok(failures.into_keys().next())
        });
        let mut why = None;
        for of_thread in connected {
            why = why.or(of_thread.unwrap_or_else(|| Err(PANICKED.to_owned()))?);
        }
        let is_empty = session.hands.iter().all(|hand| hand.links.open_count() == 0);
        if session.settings.length == Length::Long && is_empty {
            let why = why.unwrap_or_else(|| "interrupted".to_owned());
            return Err(nobody_there(&why));
        }
        Ok(session)
    }

    /// A session that makes its connections when something is offered.
    pub(super) fn without_connections(settings: Settings) -> Result<Session, String> {
        // What cannot be raised was enough when it was checked.
        let _ = process::raise_descriptor_limit();
        let hands: Result<Vec<Hand>, String> =
            (0..settings.threads).map(|thread| Hand::of(&settings, thread)).collect();
        Ok(Session { hands: hands?, settings })
    }

    /// What it was opened with, and what was offered last.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Connections made so far, those lost and made again among them.
    pub fn connects(&self) -> Connects {
        let sum = |of: fn(&LinkCounts) -> u64| self.hands.iter().map(|h| of(&h.links.counts)).sum();
        let ramps = || self.hands.iter().filter_map(|hand| hand.ramp).filter(|ramp| ramp.made > 0);
        let first = ramps().map(|ramp| ramp.first_begun_ns).min();
        let all = ramps().map(|ramp| ramp.last_made_ns).max();
        Connects {
            made: sum(|counts| counts.made),
            failed: sum(|counts| counts.failed),
            slow: sum(|counts| counts.slow),
            ramp: first.zip(all).map(|(first, last)| Nanos(last - first)),
        }
    }

    /// Offers a portion, and says what came of it once every request has ended.
    /// `watch` is told of every reply; a load that is measured has none.
    ///
    /// Before it begins, long connections that are not there are made, at the pace of
    /// the ramp: those that ended or got something since the last portion, and those
    /// that could not be made or were closed in it. Afterwards no reply is under way:
    /// a connection over which one may still come, to a request that was given up,
    /// has been closed. Ids of requests go on from one portion to the next.
    ///
    /// With short connections, the first requests of each portion are spread over
    /// the time of the ramp.
    pub fn offer(&mut self, portion: &Portion, stop: &Stop, watch: Option<&Watch<'_>>) -> Offered {
        let Portion { pace, count, warmup, seed } = *portion;
        let settings = &mut self.settings;
        (settings.pace, settings.count) = (pace, count);
        (settings.warmup, settings.seed) = (warmup, seed);
        let (meeting, ends) = (Meeting::of(settings.threads), Ends::of(stop));
        let before = offered::network_counts();
        let threads =
            self.on_threads(&|settings, hand| serve(settings, hand, &meeting, &ends, watch));
        let cpu = meeting.cpu_since();
        let network = before.and_then(offered::network_since);
        let panicked = || ThreadDone::nothing(Some(PANICKED.to_owned()));
        let threads = threads.into_iter().map(|done| done.unwrap_or_else(panicked)).collect();
        let offered = offered::together(&self.settings, &meeting, &ends, threads);
        let load = Load { cpu, network, connects: self.connects(), ..offered.load };
        Offered { load, ..offered }
    }

    /// Does something with every hand at the same time, each on a thread of its own,
    /// so that the calling one stays where it is; `None` where that panicked.
    fn on_threads<R: Send>(
        &mut self,
        work: &(dyn Fn(&Settings, &mut Hand) -> R + Sync),
    ) -> Vec<Option<R>> {
        let settings = &self.settings;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                self.hands.iter_mut().map(|hand| scope.spawn(|| work(settings, hand))).collect();
            threads.into_iter().map(|thread| thread.join().ok()).collect()
        })
    }
}

/// What is said of a thread that did.
const PANICKED: &str = "a thread panicked";

/// What one thread has of a session.
pub(super) struct Hand {
    thread: u32,
    pub(super) links: Links,
    /// Its first connection among all, and how many it has.
    first: u64,
    count: u64,
    /// Requests that each of its slots may have had.
    rounds: u64,
    /// What was counted when all connections had been made for the first time; `None`
    /// for short ones.
    ramp: Option<LinkCounts>,
}

impl Hand {
    fn of(settings: &Settings, thread: u32) -> Result<Hand, String> {
        let (first, count) = share(u64::from(settings.connections), thread, settings.threads);
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let links = Links::new(settings, narrow(first), narrow(count)).map_err(cannot_wait)?;
        Ok(Hand { thread, links, first, count, rounds: 0, ramp: None })
    }

    /// Makes the connections that are to be there and are not.
    ///
    /// Errors: what keeps this client from making any more.
    fn connect(
        &mut self,
        settings: &Settings,
        ends: &Ends<'_>,
        failures: &mut Failures,
    ) -> Result<(), String> {
        if settings.length == Length::Short {
            return Ok(());
        }
        let failed = &mut |trouble: &Trouble| enter(failures, &trouble.text);
        self.links.look(failed)?;
        let made = self.links.ramp(|| ends.asked().is_some(), failed);
        self.ramp.get_or_insert(self.links.counts);
        made
    }
}

/// One thread from its first connection to its last reply.
fn serve(
    settings: &Settings,
    hand: &mut Hand,
    meeting: &Meeting,
    ends: &Ends<'_>,
    watch: Option<&Watch<'_>>,
) -> ThreadDone {
    let mut failures = Failures::new();
    let connected =
        prepare(settings, hand.thread).and_then(|()| hand.connect(settings, ends, &mut failures));
    let needs_one = settings.length == Length::Long;
    let open = hand.links.open_count();
    let Some(start_ns) = meeting.start(hand.thread, open, connected.is_ok(), needs_one) else {
        return ThreadDone { failures, ..ThreadDone::nothing(connected.err()) };
    };
    let book = Book::new(terms(settings, hand, start_ns), demand(settings, hand.thread));
    let links = &mut hand.links;
    links.count_anew();
    let before = Spent::now();
    let spins = spins(settings);
    let left =
        Client { settings, links, book, ends, watch, spins, failures: Failures::new() }.run();
    let (spent, closing) = (Spent::now(), left.closing);
    let client = ClientThread {
        cpu: Nanos(closing.cpu_ns.saturating_sub(before.cpu_ns)),
        spinning: Nanos(closing.spinning_ns),
        wall: Nanos(closing.end_ns.saturating_sub(start_ns)),
        run_delay: before.run_delay_ns.zip(spent.run_delay_ns).map(|(a, b)| Nanos(b - a)),
        involuntary_switches: spent.involuntary_switches - before.involuntary_switches,
    };
    hand.rounds = left.results.rounds;
    ThreadDone { left: Some(left), client, counts: hand.links.counts, failures, reason: None }
}

/// The share of a thread in something that is divided as evenly as it can be:
/// where it begins and how much it is.
fn share(of: u64, thread: u32, threads: u32) -> (u64, u64) {
    let (thread, threads) = (u64::from(thread), u64::from(threads));
    let begin = |thread: u64| of / threads * thread + (of % threads).min(thread);
    (begin(thread), begin(thread + 1) - begin(thread))
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

fn terms(settings: &Settings, hand: &Hand, start_ns: u64) -> Terms {
    let in_flight = u64::from(settings.in_flight);
    let count_from_ns = start_ns + settings.warmup.0;
    Terms {
        slots: u32::try_from(hand.count * in_flight).unwrap_or(u32::MAX),
        all_slots: u64::from(settings.connections) * in_flight,
        first_slot: hand.first * in_flight,
        rounds: hand.rounds,
        start_ns,
        count_from_ns,
        limit: match settings.count {
            Count::Requests(n) => Limit::Requests(share(n, hand.thread, settings.threads).1),
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

//! A trial of servers: one worker for each arm, which serves, and one for the client
//! of all of them. The coordinator has them take turns, so that it knows of every
//! failure which slice ran.

use std::net::SocketAddr;

use iolens_model::arm::ArmOutcome;
use iolens_model::axes::Topology;
use iolens_model::load::{Connects, Load, NetworkCounts};
use iolens_model::outcome::{Counts, EndFacts, SliceOutcome};
use iolens_model::reading::Histogram;
use iolens_model::server::Served;
use iolens_model::server::{CpuTime, CpuUse, OfferedSlice, ServerArm};
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_model::units::Nanos;
use iolens_sys::clock;
use iolens_sys::proc::Root;
use iolens_sys::signal::Interrupts;

use super::Trouble;
use super::cpus::{self, Ticks};
use super::workers::Workers;
use crate::worker::protocol::{
    ClientSlice, ClientTask, FromWorker, ServerSlice, ServerTask, Side, StageStep, ToWorker, Turn,
};
use iolens_programs::spawn::Launch;
use iolens_server::load::{network_between, network_counts};
use iolens_server::models;

/// What came of a trial of servers.
pub(crate) struct Outcome {
    pub(crate) slices: Vec<SliceOutcome>,
    pub(crate) arms: Vec<ServerArm>,
    /// Times from when requests were due, over the measured slices of each arm.
    pub(crate) latency: Vec<Histogram>,
    pub(crate) tx: EndFacts,
    pub(crate) rx: EndFacts,
}

/// The servers in the order of the arms, and the client behind them.
struct Cast<'a> {
    workers: Workers<'a>,
    trial: &'a Trial,
    deadline_ns: u64,
    root: Root,
    /// What every processor did before any of them was there.
    before: Vec<CpuTime>,
    /// The same when all were, and nobody asked.
    idle: Vec<CpuTime>,
}

/// Runs a trial to its end.
pub(crate) fn conduct(
    trial: &Trial,
    launch: &Launch,
    interrupts: Option<&Interrupts>,
) -> Result<Outcome, Trouble> {
    let (mut workers, root) = (Workers::none(None, interrupts), Root::real());
    let before = watched(&mut workers, trial, &root)?;
    for arm in &trial.arms {
        workers.start(&format!("`{}` server's", arm.label), Side::Tx, launch, None)?;
    }
    workers.start("client's", Side::Rx, launch, None)?;
    workers.greet()?;
    let deadline_ns = clock::monotonic_ns() + trial.trial_limit.0;
    let mut cast = Cast { workers, trial, deadline_ns, root, before, idle: Vec::new() };
    cast.stage()?;
    cast.open()?;
    cast.idle = watched(&mut cast.workers, trial, &cast.root)?;
    let mut done = Vec::with_capacity(trial.slices.len());
    for (seq, slice) in trial.slices.iter().enumerate() {
        done.push(cast.slice(seq, slice).map_err(|trouble| within(trouble, seq))?);
    }
    cast.conclude(&done)
}

/// What every processor does while nothing of ours has anything to do.
fn watched(workers: &mut Workers, trial: &Trial, root: &Root) -> Result<Vec<CpuTime>, Trouble> {
    let rest = trial.servers.as_ref().map_or(Nanos(0), |servers| servers.rest);
    if rest == Nanos(0) {
        return Ok(Vec::new());
    }
    let before = Ticks::read(root);
    workers.rest(rest)?;
    Ok(Ticks::read(root).since(&before))
}

/// The trouble of a slice that ran.
fn within(trouble: Trouble, seq: usize) -> Trouble {
    match trouble {
        Trouble::Failed { slice, what, refused } => {
            Trouble::Failed { slice: slice.or(Some(seq)), what, refused }
        }
        other => other,
    }
}

/// Both ends of a slice, and what every processor did in it.
struct Done {
    server: ServerSlice,
    client: ClientSlice,
    cpus: Vec<CpuTime>,
}

impl Cast<'_> {
    fn client(&self) -> usize {
        self.trial.arms.len()
    }

    /// Puts all servers into one network namespace and the client into another one,
    /// where the topology says so.
    fn stage(&mut self) -> Result<(), Trouble> {
        if self.trial.cell.topology() != Some(Topology::Veth) {
            return Ok(());
        }
        let (client, network) = (self.client(), self.trial.network);
        let user_namespace = self.workers.stage_veth([0, client], network, self.deadline_ns)?;
        let pid = self.workers.pid(0)?;
        for server in 1..client {
            let step = StageStep::Join { pid, user_namespace };
            self.workers.stage(server, step, self.deadline_ns)?;
        }
        Ok(())
    }

    /// Has all servers answer, one after another in the order in which they are to run,
    /// and the client connect.
    fn open(&mut self) -> Result<(), Trouble> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut addresses = vec![nowhere; self.trial.arms.len()];
        for arm in self.trial.arms_as_they_run() {
            let task = ServerTask { trial: self.trial.clone(), arm };
            addresses[arm] = self
                .ask(arm, ToWorker::Serve(Box::new(task)), |answer| match answer {
                    FromWorker::Serving { address } => Some(address),
                    _ => None,
                })
                .map_err(|trouble| self.of_arm(trouble, arm))?;
        }
        let task = ClientTask { trial: self.trial.clone(), addresses };
        self.ask(self.client(), ToWorker::Visit(Box::new(task)), |answer| match answer {
            FromWorker::Ready => Some(()),
            _ => None,
        })?;
        // What they make for connections is there before anybody is watched or asked.
        (0..self.client()).try_for_each(|server| self.begin(server))
    }

    /// Has a server take its readings.
    fn begin(&mut self, server: usize) -> Result<(), Trouble> {
        self.ask(server, ToWorker::Turn(Turn::Begin), |answer| match answer {
            FromWorker::Begun => Some(()),
            _ => None,
        })
    }

    /// Blames an arm that could not begin: it has a slice, its first.
    fn of_arm(&self, trouble: Trouble, arm: usize) -> Trouble {
        match self.trial.slices.iter().position(|slice| slice.arm == arm) {
            Some(seq) => within(trouble, seq),
            None => trouble,
        }
    }

    fn slice(&mut self, seq: usize, slice: &Slice) -> Result<Done, Trouble> {
        let (server, client) = (slice.arm, self.client());
        self.begin(server)?;
        let (before, network) = (Ticks::read(&self.root), network_counts());
        let limit = self.trial.stall_limit;
        let deadline_ns = self.deadline_ns.min(clock::monotonic_ns() + limit.0);
        let turn = ToWorker::Turn(Turn::Offer(seq));
        let offered = self.ask_until(deadline_ns, client, turn, |answer| match answer {
            FromWorker::Offered { slice } => Some(*slice),
            _ => None,
        });
        let offered = offered.map_err(|trouble| match trouble {
            Trouble::TimeUp => self.too_slow(slice, limit, network),
            other => other,
        })?;
        let cpus = Ticks::read(&self.root).since(&before);
        let counted = self.ask(server, ToWorker::Turn(Turn::End), |answer| match answer {
            FromWorker::Counted { slice } => Some(*slice),
            _ => None,
        })?;
        Ok(Done { server: counted, client: offered, cpus })
    }

    fn conclude(mut self, done: &[Done]) -> Result<Outcome, Trouble> {
        let client = self.client();
        let (rx, connects) =
            self.ask(client, ToWorker::Turn(Turn::Conclude), |answer| match answer {
                FromWorker::Visited { facts, connects } => Some((*facts, connects)),
                _ => None,
            })?;
        let mut ends = Vec::with_capacity(client);
        for server in 0..client {
            let end = self.ask(server, ToWorker::Turn(Turn::Conclude), |answer| match answer {
                FromWorker::Served { facts, served } => Some((*facts, *served)),
                _ => None,
            });
            ends.push(end.map_err(|trouble| self.of_arm(trouble, server))?);
        }
        let slices = self.trial.slices.iter().zip(done).enumerate();
        let stored = slices.filter(|(_, (slice, _))| slice.kind != SliceKind::Warm);
        let slices = stored.map(|(seq, (slice, both))| joined(self.trial, seq, slice, both));
        let slices = slices.collect();
        let arm = |arm: usize| ServerArm {
            cpus: CpuUse {
                before: self.before.clone(),
                idle: self.idle.clone(),
                slices: cpus_of(self.trial, arm, done),
            },
            ..server_arm(self.trial, arm, done, &ends[arm].1, connects.get(arm))
        };
        let latency = (0..client).map(|arm| sum_of(self.trial, arm, done, |l| &l.from_due));
        Ok(Outcome {
            slices,
            latency: latency.collect(),
            arms: (0..client).map(arm).collect(),
            tx: facts_of_all(ends.into_iter().map(|(facts, _)| facts)),
            rx,
        })
    }

    /// Why an arm is left out whose slice does not end.
    fn too_slow(&self, slice: &Slice, limit: Nanos, before: Option<NetworkCounts>) -> Trouble {
        let asked = match slice.work {
            Work::Messages(requests) => format!("{requests} requests"),
            Work::Window(window) => format!("a load of {window}"),
        };
        let mut what = format!("too slow to be measured here: {asked} did not end within {limit}");
        let setting = self.trial.cell.server();
        let keeps = models::keeps(&self.trial.arms[slice.arm].primitive);
        if keeps && setting.is_some_and(|setting| setting.service.starts_with("top2")) {
            what.push_str(
                "; each request reads all of /proc, where this model has a process or thread for \
                 each connection: the work grows with their square",
            );
        }
        let is_ours = self.trial.cell.topology() == Some(Topology::Loopback);
        let counts = before.zip(network_counts()).filter(|_| is_ours);
        let dropped = counts.map_or(0, |(a, b)| network_between(a, b).listen_overflows);
        if dropped > 0 {
            what.push_str(&format!(
                "; {dropped} new connections were dropped meanwhile, each for a second or more: \
                 the queue of those not yet taken was full (net.core.somaxconn)"
            ));
        }
        Trouble::Failed { slice: None, what, refused: true }
    }

    /// Says something to a worker and hears the answer.
    fn ask<T>(
        &mut self,
        index: usize,
        message: ToWorker,
        expected: impl FnOnce(FromWorker) -> Option<T>,
    ) -> Result<T, Trouble> {
        self.ask_until(self.deadline_ns, index, message, expected)
    }

    fn ask_until<T>(
        &mut self,
        deadline_ns: u64,
        index: usize,
        message: ToWorker,
        expected: impl FnOnce(FromWorker) -> Option<T>,
    ) -> Result<T, Trouble> {
        self.workers.say(index, message);
        let (from, answer) = self.workers.answer(deadline_ns)?;
        let answer = Some(answer).filter(|_| from == index).and_then(expected);
        answer.ok_or_else(|| self.workers.out_of_turn(from))
    }
}

/// Both ends' counts of a slice. The client has its clock, and counted what a server
/// has sent it.
fn joined(
    trial: &Trial,
    seq: usize,
    slice: &Slice,
    Done { server, client, .. }: &Done,
) -> SliceOutcome {
    let time_ns = client.counts.time_ns;
    // A program of others counts for nobody.
    let id = &trial.arms[slice.arm].primitive;
    let is_program =
        trial.servers.iter().flat_map(|servers| &servers.programs).any(|own| own.name == *id);
    let messages = if is_program { client.counts.messages } else { server.counts.messages };
    SliceOutcome {
        seq: u32::try_from(seq).unwrap_or(u32::MAX),
        round: slice.round,
        kind: slice.kind,
        arm: slice.arm,
        all_active_ns: time_ns,
        tx: Counts {
            time_ns,
            messages,
            bytes: client.counts.bytes,
            retransmits: server.network.map(|network| network.retransmits),
            ..server.counts
        },
        rx: Some(client.counts),
    }
}

/// The slices of an arm that are stored, each with its position.
fn of_arm<'a>(
    trial: &'a Trial,
    arm: usize,
    done: &'a [Done],
) -> impl Iterator<Item = (usize, &'a Slice, &'a Done)> {
    let slices = trial.slices.iter().zip(done).enumerate();
    slices
        .filter(move |(_, (slice, _))| slice.arm == arm && slice.kind != SliceKind::Warm)
        .map(|(seq, (slice, both))| (seq, slice, both))
}

/// Some times of an arm over its measured slices.
fn sum_of(trial: &Trial, arm: usize, done: &[Done], of: fn(&Load) -> &Histogram) -> Histogram {
    let mut sum = Histogram::default();
    for (_, slice, Done { client, .. }) in of_arm(trial, arm, done) {
        if slice.kind == SliceKind::Measured {
            sum.add(of(&client.load));
        }
    }
    sum
}

/// What every processor did in the measured slices of an arm.
fn cpus_of(trial: &Trial, arm: usize, done: &[Done]) -> Vec<CpuTime> {
    let mut sum = Vec::new();
    for (_, slice, Done { cpus, .. }) in of_arm(trial, arm, done) {
        if slice.kind == SliceKind::Measured {
            cpus::add(&mut sum, cpus);
        }
    }
    sum
}

fn server_arm(
    trial: &Trial,
    arm: usize,
    done: &[Done],
    served: &Served,
    connects: Option<&Connects>,
) -> ServerArm {
    let mut failures: Vec<(String, u64)> = Vec::new();
    for (_, _, Done { client, .. }) in of_arm(trial, arm, done) {
        for (text, count) in &client.load.failures {
            match failures.iter_mut().find(|(known, _)| known == text) {
                Some((_, sum)) => *sum += count,
                None => failures.push((text.clone(), *count)),
            }
        }
    }
    let apart = trial.cell.topology() != Some(Topology::Loopback);
    let offered =
        of_arm(trial, arm, done).map(|(seq, _, Done { server, client, .. })| OfferedSlice {
            seq: u32::try_from(seq).unwrap_or(u32::MAX),
            scheduled: client.load.scheduled,
            outcomes: client.load.outcomes,
            replies_in_window: client.load.replies_in_window,
            window: client.load.window,
            late_replies: client.load.late_replies,
            threads: client.load.threads.clone(),
            network: client.load.network,
            server_network: server.network.filter(|_| apart),
            processes: server.processes,
            throttled: [server.throttled, client.throttled],
        });
    let servers = trial.servers.as_ref();
    let entry = models::find(&trial.arms[arm].primitive);
    ServerArm {
        rate: servers.and_then(|servers| servers.rate),
        at_others_rate: servers.is_some_and(|servers| servers.at_others_rate.contains(&arm)),
        offered: offered.collect(),
        from_sent: sum_of(trial, arm, done, |load| &load.from_sent),
        lag: sum_of(trial, arm, done, |load| &load.lag),
        connects: connects.copied().unwrap_or_default(),
        failures,
        mishaps: served.mishaps.clone(),
        requests_by_task: served.requests_by_task.clone(),
        tasks_max: of_arm(trial, arm, done).map(|(_, _, d)| d.server.tasks).max().unwrap_or(0),
        tasks_asked: entry
            .zip(trial.cell.server())
            .map(|(entry, setting)| entry.tasks(trial.cell.threads, setting)),
        cpus: CpuUse::default(),
    }
}

/// The facts of one server, and what any of them could not read.
fn facts_of_all(ends: impl Iterator<Item = EndFacts>) -> EndFacts {
    let joined = |mut all: EndFacts, other: EndFacts| {
        all.bracket_ns += other.bracket_ns;
        for missing in other.not_measured {
            if !all.not_measured.contains(&missing) {
                all.not_measured.push(missing);
            }
        }
        all.arm_facts.extend(other.arm_facts);
        all
    };
    let all: Option<EndFacts> = ends.reduce(joined);
    all.expect("a trial has an arm")
}

/// Hands each arm what came of it.
pub(crate) fn hand_out(arms: &mut [ArmOutcome], outcome: &mut Outcome) {
    let all = std::mem::take(&mut outcome.arms).into_iter().zip(&outcome.latency);
    for (arm, (server, times)) in arms.iter_mut().zip(all) {
        arm.server = Some(Box::new(server));
        arm.latency = (times.total() > 0).then(|| times.clone());
    }
}

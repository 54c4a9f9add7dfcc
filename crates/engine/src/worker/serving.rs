//! A worker in a trial of servers: one process for each server, and one for the client
//! of all of them. The coordinator has them take turns, a slice at a time: what a
//! server reads before and after a slice is not in the client's clock, and a server
//! whose slice it is not has nothing to do.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::external::External;
use iolens_model::load::{Load, Outcomes, Pace};
use iolens_model::outcome::{ArmFact, Counts, EndFacts, Status};
use iolens_model::reading::NotMeasured;
use iolens_model::server::Served;
use iolens_model::server::{MAKES, ServerSetting, TrialServers};
use iolens_model::trial::{Trial, Work};
use iolens_model::units::Nanos;
use iolens_sys::proc::Root;
use iolens_sys::{affinity, clock, process};

use super::family::Family;
use super::program::{Program, Serves};
use super::protocol::{
    BUILD, ClientSlice, ClientTask, Failure, FromWorker, ServerSlice, ServerTask, Side, Turn,
};
use crate::stage::Place;
use iolens_server::limits::Limits;
use iolens_server::load::{
    ClientLimits, Count, Expected, Form, Offered, Portion, ROOM, Session, Settings, Stop,
};
use iolens_server::services::Spec;
use iolens_server::{Close, Running, ServeOptions, Server, models};

/// A request that has no reply after this is a timeout: ten thousand that wait for one
/// thread, a millisecond each, are none.
const TIMEOUT: Nanos = Nanos(30 * Nanos::SECOND.0);

/// How long a client may keep a model waiting that serves nobody else meanwhile.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// What a worker answers with.
type Say<'a> = &'a (dyn Fn(&FromWorker) -> io::Result<()> + Sync);

/// Starts a thread that serves; it takes its turns from what is returned.
pub(super) fn serve(
    task: ServerTask,
    say: impl Fn(&FromWorker) -> io::Result<()> + Send + Sync + 'static,
) -> Sender<Turn> {
    in_thread(say, move |turns, say| {
        be_server(&task, turns, say).map_err(|failure| of_arm(&task.trial, task.arm, failure))
    })
}

/// Starts a thread that is the client.
pub(super) fn visit(
    task: ClientTask,
    say: impl Fn(&FromWorker) -> io::Result<()> + Send + Sync + 'static,
) -> Sender<Turn> {
    in_thread(say, move |turns, say| be_client(&task, turns, say))
}

fn in_thread(
    say: impl Fn(&FromWorker) -> io::Result<()> + Send + Sync + 'static,
    work: impl FnOnce(&Receiver<Turn>, Say<'_>) -> Result<FromWorker, Failure> + Send + 'static,
) -> Sender<Turn> {
    let (tells, hears) = channel();
    std::thread::spawn(move || {
        let last = work(&hears, &say).unwrap_or_else(|failure| FromWorker::Failed { failure });
        // If nobody listens any more, there is nobody to tell.
        let _ = say(&last);
    });
    tells
}

/// The axes and the rest of a trial of servers.
fn parts(trial: &Trial) -> Result<(&ServerSetting, &TrialServers), Failure> {
    let (setting, servers) = (trial.cell.server(), trial.servers.as_ref());
    setting.zip(servers).ok_or_else(|| Failure::cause("the trial is not one of servers"))
}

/// Waits until the place of an end is usable.
fn usable(trial: &Trial, side: Side) -> Result<Place, Failure> {
    if trial.cell.topology() == Some(Topology::Veth) {
        for (name, value) in ROOM {
            // Where /proc/sys may not be written, or an unprivileged user does not see one
            // of them, it is as it is, and what overflows is counted.
            let _ = std::fs::write(Root::real().path(&format!("proc/sys/{name}")), value);
        }
    }
    let place = Place::of(trial, side).ok_or_else(|| Failure::cause("the trial has no network"))?;
    place.wait_until_usable(super::link::stall_limit(trial))?;
    Ok(place)
}

/// Restricts the calling thread, and all that it starts, to processors.
fn stay_on(cpus: &[u32]) -> Result<(), Failure> {
    affinity::restrict_thread(cpus)
        .map_err(|e| Failure::cause(format!("cannot run on the processors {cpus:?}: {e}")))
}

/// A failure that is an arm's, whoever's slice it is: that of its first one.
fn of_arm(trial: &Trial, arm: usize, failure: Failure) -> Failure {
    let first = trial.slices.iter().position(|slice| slice.arm == arm);
    Failure { slice: failure.slice.or(first), ..failure }
}

fn gone() -> Failure {
    Failure { consequence: true, ..Failure::cause("the coordinator has gone") }
}

impl Serves for Running {
    fn tasks(&self) -> Vec<u32> {
        Running::tasks(self).iter().filter_map(|task| task.id).collect()
    }

    fn at_once(&self) -> u64 {
        // Those that wait for a connection are there too.
        self.tasks_at_once().max(Serves::tasks(self).len() as u64)
    }

    fn requests(&self) -> u64 {
        Running::tasks(self).iter().map(|task| task.requests).sum()
    }

    fn failure(&self) -> Option<String> {
        Running::failure(self).or_else(|| {
            let mishaps = self.mishaps();
            (!mishaps.is_empty()).then(|| Limits::here().met(&mishaps)).flatten()
        })
    }
}

/// One server from its first connection to its last.
fn be_server(
    task: &ServerTask,
    turns: &Receiver<Turn>,
    say: Say<'_>,
) -> Result<FromWorker, Failure> {
    let trial = &task.trial;
    let (setting, servers) = parts(trial)?;
    let place = usable(trial, Side::Tx)?;
    stay_on(&trial.tx_cpus)?;
    // Before the server's first thread: those that it starts are counted with it.
    let mut family = Family::open(&trial.tx_cpus, trial.pass, trial.probes, trial.counts(task.arm));
    let id = &trial.arms[task.arm].primitive;
    if let Some(external) = servers.programs.iter().find(|external| external.name == *id) {
        return be_program(task, external, place, family, (turns, say));
    }
    let server = Server::open(options(trial, task.arm, setting, servers, place)?);
    let running = server.and_then(Server::start).map_err(Failure::cause)?;
    let address = running.address();
    family.leave_out(vec![process::id(), process::thread_id()]);
    say(&FromWorker::Serving { address }).map_err(|_| gone())?;
    let at_rest = |entry: &models::Entry| entry.tasks_at_rest(trial.cell.threads, setting);
    let least = models::find(id).map_or(0, at_rest);
    let settled = Settled { tasks: least, limit: trial.stall_limit };
    take_turns((setting, settled), &mut family, &running, (turns, say))?;
    let mut facts = facts(&trial.cell, &family, &trial.tx_cpus);
    place.describe(&mut facts);
    facts.arm_facts.extend(makes(trial, task.arm));
    let served = running.stop();
    match served.failure {
        Some(why) => Err(Failure::cause(why)),
        None => Ok(FromWorker::Served { facts: Box::new(facts), served: Box::new(served) }),
    }
}

/// The same, where a program of the user's is the server.
fn be_program(
    task: &ServerTask,
    external: &External,
    place: Place,
    mut family: Family,
    (turns, say): (&Receiver<Turn>, Say<'_>),
) -> Result<FromWorker, Failure> {
    let trial = &task.trial;
    let (setting, _) = parts(trial)?;
    let since_ns = clock::monotonic_ns();
    let program = Program::start(external, place.address())?;
    family.is_program(program.id());
    let (address, stopping) = (program.address(), AtomicBool::new(false));
    let owner = std::thread::scope(|scope| {
        scope.spawn(|| {
            let how = program.watch();
            if !stopping.load(Ordering::SeqCst) {
                // Said at once: the client sees no more than connections that end.
                let failure = of_arm(trial, task.arm, Failure::cause(how));
                let _ = say(&FromWorker::Failed { failure });
            }
        });
        let served = program.wait_until_it_listens().and_then(|owner| {
            say(&FromWorker::Serving { address }).map_err(|_| gone())?;
            let settled = Settled { tasks: 0, limit: trial.stall_limit };
            take_turns((setting, settled), &mut family, &program, (turns, say))?;
            Ok(owner)
        });
        stopping.store(true, Ordering::SeqCst);
        program.stop();
        served
    })?;
    let mut facts = facts(&trial.cell, &family, &trial.tx_cpus);
    place.describe(&mut facts);
    facts.arm_facts.extend(owner.fact(task.arm));
    let served = Served {
        model: external.name.clone(),
        service: setting.service.clone(),
        address: address.to_string(),
        time: Nanos(clock::monotonic_ns() - since_ns),
        connections: 0,
        requests: 0,
        mishaps: Vec::new(),
        requests_by_task: Vec::new(),
        tasks: 0,
        tasks_at_once: 0,
        cpu: None,
        failure: None,
    };
    Ok(FromWorker::Served { facts: Box::new(facts), served: Box::new(served) })
}

/// When a server that makes a process or a thread for each connection has made them all.
#[derive(Debug, Clone, Copy)]
struct Settled {
    /// So many serve then.
    tasks: u64,
    /// How long that may take; what takes longer is in the slices, which have a limit too.
    limit: Nanos,
}

impl Settled {
    /// Waits for it: making them is no part of the requests of a slice.
    ///
    /// Errors: the server has ended, or has met a limit.
    fn wait(self, server: &dyn Serves) -> Result<(), Failure> {
        /// How often is looked.
        const LOOK: Duration = Duration::from_millis(2);
        let deadline_ns = clock::monotonic_ns() + self.limit.0 / 2;
        loop {
            // What could not be had for a connection shows before the first slice.
            if let Some(why) = server.failure() {
                return Err(Failure::cause(why));
            }
            let is_there = server.tasks().len() as u64 >= self.tasks;
            if is_there || clock::monotonic_ns() >= deadline_ns {
                return Ok(());
            }
            std::thread::park_timeout(LOOK);
        }
    }
}

/// Counts what each slice of an arm has spent, until no more comes.
fn take_turns(
    (setting, settled): (&ServerSetting, Settled),
    family: &mut Family,
    server: &dyn Serves,
    (turns, say): (&Receiver<Turn>, Say<'_>),
) -> Result<(), Failure> {
    let mut begun = None;
    loop {
        match turns.recv().map_err(|_| gone())? {
            Turn::Begin => {
                settled.wait(server)?;
                begun = Some((server.requests(), family.before(&server.tasks())));
                say(&FromWorker::Begun).map_err(|_| gone())?;
            }
            Turn::End => {
                let Some((answered, before)) = begun.take() else { continue };
                let tasks = server.tasks();
                let after = family.after(&tasks);
                // Fewer connections than it was asked for would look cheaper.
                if let Some(why) = server.failure() {
                    return Err(Failure::cause(why));
                }
                let mut counts = family.between([&before, &after]);
                counts.messages = server.requests().saturating_sub(answered);
                let slice = ServerSlice {
                    counts,
                    tasks: server.at_once(),
                    network: after.network_since(&before),
                    processes: processes(setting),
                    throttled: after.throttled_since(&before),
                };
                say(&FromWorker::Counted { slice: Box::new(slice) }).map_err(|_| gone())?;
            }
            Turn::Conclude => return Ok(()),
            Turn::Offer(_) => {}
        }
    }
}

/// What an arm serves.
fn options(
    trial: &Trial,
    arm: usize,
    setting: &ServerSetting,
    servers: &TrialServers,
    place: Place,
) -> Result<ServeOptions, Failure> {
    let id = &trial.arms[arm].primitive;
    let unknown = || Failure::cause(format!("this build has no model `{id}`"));
    Ok(ServeOptions {
        model: models::find(id).ok_or_else(unknown)?,
        service: Spec::parse(&setting.service).map_err(Failure::cause)?,
        address: SocketAddr::from((place.address(), 0)),
        backlog: servers.backlog,
        workers: trial.cell.threads,
        // Whoever closes first keeps the port for a minute, and the client has many.
        close: Close::Client,
        stall_limit: STALL_LIMIT,
        cpus: Some(trial.tx_cpus.clone()),
    })
}

/// What the model makes for each connection; nothing of a program that this build does
/// not know.
fn makes(trial: &Trial, arm: usize) -> Option<ArmFact> {
    let model = models::find(&trial.arms.get(arm)?.primitive)?;
    Some(ArmFact { arm, name: MAKES.to_owned(), value: model.makes.word().to_owned() })
}

/// Processes in /proc, for a service that reads them all.
fn processes(setting: &ServerSetting) -> Option<u64> {
    let reads = setting.service.starts_with("top2");
    let is_one = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    reads.then(|| Root::real().names("proc").iter().filter(|name| is_one(name)).count() as u64)
}

/// The client of all arms from its first connection to its last.
fn be_client(
    task: &ClientTask,
    turns: &Receiver<Turn>,
    say: Say<'_>,
) -> Result<FromWorker, Failure> {
    let trial = &task.trial;
    let (setting, servers) = parts(trial)?;
    let place = usable(trial, Side::Rx)?;
    stay_on(&trial.rx_cpus)?;
    let mut family = Family::open(&trial.rx_cpus, trial.pass, trial.probes, trial.counts(0));
    let stop = Stop::default();
    let connect = |(arm, &address): (usize, &SocketAddr)| {
        let settings = settings(trial, setting, servers, address)?;
        let session = settings.check().and_then(|()| Session::open(settings, &stop));
        session.map_err(|why| of_arm(trial, arm, Failure::cause(why)))
    };
    let addresses = task.addresses.iter().enumerate();
    let mut sessions = addresses.map(connect).collect::<Result<Vec<Session>, Failure>>()?;
    say(&FromWorker::Ready).map_err(|_| gone())?;
    loop {
        match turns.recv().map_err(|_| gone())? {
            Turn::Offer(seq) => {
                let arm = trial.slices.get(seq).map(|slice| slice.arm);
                let session = arm.and_then(|arm| sessions.get_mut(arm));
                let session = session.ok_or_else(|| Failure::cause("there is no such slice"))?;
                let before = family.before(&[]);
                let offered = session.offer(&portion(trial, servers, seq), &stop, None);
                let after = family.after(&[]);
                if offered.load.status != Status::Ok {
                    return Err(not_offered(seq, &offered.load));
                }
                let counts = client_counts(family.between([&before, &after]), &offered);
                let throttled = after.throttled_since(&before);
                let slice = Box::new(ClientSlice { counts, load: offered.load, throttled });
                say(&FromWorker::Offered { slice }).map_err(|_| gone())?;
            }
            Turn::Conclude => break,
            Turn::Begin | Turn::End => {}
        }
    }
    let mut facts = facts(&trial.cell, &family, &trial.rx_cpus);
    place.describe(&mut facts);
    let connects = sessions.iter().map(Session::connects).collect();
    Ok(FromWorker::Visited { facts: Box::new(facts), connects })
}

/// Why a slice is none, with how its requests ended. Where the server is why, it says more.
fn not_offered(seq: usize, load: &Load) -> Failure {
    let why = load.reason.as_deref().unwrap_or("the load failed");
    // What may be done about it in `load` is none of the words of a run.
    let why = why.lines().next().unwrap_or_default();
    let Outcomes { ok, timeout, refused, reset, invalid, abandoned } = load.outcomes;
    let what = format!(
        "{why}; of {} requests {ok} were answered, {timeout} timed out, {refused} were refused, \
         {reset} were reset, {invalid} had a wrong reply and {abandoned} were given up",
        load.scheduled
    );
    Failure { slice: Some(seq), consequence: true, ..Failure::cause(what) }
}

/// What is offered to one server, in all slices.
fn settings(
    trial: &Trial,
    setting: &ServerSetting,
    servers: &TrialServers,
    address: SocketAddr,
) -> Result<Settings, Failure> {
    let expected = Expected::of_service(&setting.service, &[]).map_err(Failure::cause)?;
    let settings = Settings {
        connections: setting.connections,
        in_flight: servers.in_flight,
        length: setting.length,
        timeout: TIMEOUT,
        threads: servers.client_threads,
        cpus: Some(trial.rx_cpus.clone()),
        form: Form::Line { text: Vec::new() },
        expected,
        ..Settings::closed_loop(address)
    };
    Ok(Settings { sources: ClientLimits::here(&Root::real()).sources(&settings), ..settings })
}

/// What is offered in a slice.
fn portion(trial: &Trial, servers: &TrialServers, seq: usize) -> Portion {
    let seed = servers.seed.wrapping_add(seq as u64);
    let (count, warmup) = match trial.slices[seq].work {
        Work::Messages(requests) => (Count::Requests(requests), Nanos(0)),
        Work::Window(window) => {
            let dropped = servers.dropped.min(window);
            (Count::Time(Nanos(window.0 - dropped.0)), dropped)
        }
    };
    let pace = match servers.rate {
        Some(rate) => Pace::Open { rate, arrivals: servers.arrivals },
        None => Pace::Closed { think: Nanos(0) },
    };
    Portion { pace, count, warmup, seed }
}

/// What the client counted of what it offered, warm-up and all, beside what it spent.
/// The slice's clock goes from its first request to the last reply, and its CPU time is that of
/// the threads that sent and received: to make them, and to read what the kernel counts, takes
/// its process as long as half a slice of a millisecond.
fn client_counts(spent: Counts, offered: &Offered) -> Counts {
    let load = &offered.load;
    let clock = offered.first_sent_ns.zip(offered.last_right_ns);
    Counts {
        messages: load.outcomes.ok + load.warmup,
        bytes: load.received_bytes,
        time_ns: clock.map_or(load.window.0, |(first, last)| last.saturating_sub(first)),
        calls: Some(offered.calls.sends + offered.calls.receives),
        retransmits: load.network.map(|network| network.retransmits),
        task_clock_ns: Some(load.threads.iter().map(|thread| thread.cpu.0).sum()),
        ..spent
    }
}

/// What a worker says of itself.
fn facts(cell: &Cell, family: &Family, cpus: &[u32]) -> EndFacts {
    let why = "a server has connections of its own, whose segments nobody adds up";
    let mut not_measured = family.missing();
    not_measured.push(NotMeasured { metric: "segments_out".to_owned(), why: why.to_owned() });
    EndFacts {
        build: BUILD.to_owned(),
        threads: cell.threads,
        thread_cpus: vec![cpus.to_vec()],
        bracket_ns: family.spent_ns(),
        thread_pmus: family.pmu().map(str::to_owned).into_iter().collect(),
        not_measured,
        ..EndFacts::default()
    }
}

//! Servers: one protocol and one service under many concurrency models. A model
//! is an entry in [`models`], what it does for a request one in [`services`].
//! All accept connections, read requests, answer and count with the same code
//! here; they differ in which thread waits, for what, and in which call.
//!
//! A server is a thread that runs its model, with the threads and children that
//! the model makes, so that counters opened before [`Server::start`] count all of
//! them and nothing else. Models that fork belong in a process that does nothing
//! else: a child has a copy of every descriptor that its parent has.

#![forbid(unsafe_code)]

mod acceptor;
mod conversation;
pub mod limits;
mod live;
pub mod load;
pub mod models;
mod ready;
mod request;
#[cfg(test)]
#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../../tests/support/scripted.rs"]
mod scripted;
pub mod services;
#[cfg(test)]
#[path = "../../../../tests/support/skip.rs"]
mod skip;
mod tally;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use iolens_model::server::{Mishap, Served};
use iolens_model::transfer::Cpu;
use iolens_model::units::Nanos;
use iolens_sys::errno::Errno;
use iolens_sys::event::Event;
use iolens_sys::signal::Interrupts;
use iolens_sys::tcp_server::{self, Waiting, Wishes};
use iolens_sys::{affinity, clock, poll, process, tcp, usage};

pub use request::REQUEST_MAX;
pub use tally::TaskCounts;

use acceptor::Reserve;
use conversation::Answers;
use live::Live;
use tally::{Tallies, Tally};

/// Bytes that are received with one call, in every model.
const RECEIVE_BYTES: usize = 16 << 10;

/// Congestion control of every connection: it has no timer that paces.
const CONGESTION: &str = "reno";

iolens_model::words! {
    /// Who closes a connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Close {
        /// The client, when it likes.
        Client = "client",
        /// The server, behind its first reply.
        Server = "server",
    }
}

/// What is to be served, how and where.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The concurrency model.
    pub model: &'static models::Entry,
    /// What it does for a request.
    pub service: services::Spec,
    /// Where it listens; port 0 is a free one.
    pub address: SocketAddr,
    /// Connections that may wait to be taken; the kernel has a limit of its own.
    pub backlog: u32,
    /// Threads or processes of a model that has a number of them; at least 1.
    pub workers: u32,
    /// Who closes a connection.
    pub close: Close,
    /// How long a client may not move that others wait for.
    pub stall_limit: Duration,
    /// Processors that all its threads and children may run on; `None` leaves them
    /// where they are.
    pub cpus: Option<Vec<u32>>,
}

/// A server that listens: clients can connect, and nobody answers yet.
#[derive(Debug)]
pub struct Server {
    options: ServeOptions,
    /// One for each shard of a model that has some, else one.
    listeners: Vec<OwnedFd>,
    address: SocketAddr,
    since_ns: u64,
}

/// A server that answers.
#[derive(Debug)]
pub struct Running {
    context: Arc<Context>,
    thread: JoinHandle<()>,
    /// Kept so that listening can be ended from here.
    listeners: Vec<OwnedFd>,
    since_ns: u64,
    cpu_before: Option<usage::ProcessCpu>,
}

/// Something that happened to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The user wants it to end.
    Interrupted,
    /// It has ended by itself.
    Ended,
    /// Something went wrong that had not before: see [`Running::mishaps`].
    Mishaps,
}

/// What the threads of a server share.
#[derive(Debug)]
pub(crate) struct Context {
    options: ServeOptions,
    address: SocketAddr,
    tallies: Arc<Tallies>,
    live: Live,
    reserve: Arc<Reserve>,
    /// Readable from when the server is to end.
    stop: Event,
    /// Readable from when the model has ended.
    ended: Event,
    /// Who waits to hear whether the model has begun.
    begun: Mutex<Option<SyncSender<()>>>,
    failure: Mutex<Option<String>>,
}

/// What a thread or a process serves with.
struct Hands {
    /// Room for what is received.
    received: Vec<u8>,
    answers: Answers,
}

impl Server {
    /// Listens, with as many descriptors as the hard limit allows.
    ///
    /// Errors: what was tried and what the system said.
    pub fn open(options: ServeOptions) -> Result<Server, String> {
        let entry = options.model;
        // Where it cannot be raised, it is as it is.
        let _ = process::raise_descriptor_limit();
        let shared_port = entry.workers == models::Workers::Shards;
        if shared_port && options.address.port() != 0 {
            // Somebody else's shards would share the port without a word.
            tcp_server::try_bind(&options.address).map_err(|e| cannot_listen(&e))?;
        }
        let wishes = Wishes {
            congestion: CONGESTION,
            backlog: options.backlog,
            waiting: entry.waiting,
            shared_port,
            stall_limit: entry.others_wait.then_some(options.stall_limit),
        };
        let since_ns = clock::monotonic_ns();
        let listen =
            |address| tcp_server::listen_on(&address, &wishes).map_err(|e| cannot_listen(&e));
        let first = listen(options.address)?;
        let address = tcp_server::address(first.as_fd()).map_err(|e| e.to_string())?;
        let mut listeners = vec![first];
        while shared_port && listeners.len() < options.workers as usize {
            listeners.push(listen(address)?);
        }
        Ok(Server { options, listeners, address, since_ns })
    }

    /// The address with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to answer.
    ///
    /// Errors: what the model needs and was refused; nobody listens any more.
    pub fn start(self) -> Result<Running, String> {
        let (begun, hears) = sync_channel(1);
        let failed = |what: &str, errno: Errno| cannot(what)(errno);
        let context = Arc::new(Context::of(self.options, self.address, begun)?);
        let copies: std::io::Result<Vec<OwnedFd>> =
            self.listeners.iter().map(OwnedFd::try_clone).collect();
        let copies = copies.map_err(|e| failed("duplicate a socket", e.into()))?;
        let cpu_before = usage::process_cpu_with_children().ok();
        let (of_thread, listeners) = (Arc::clone(&context), self.listeners);
        let name = format!("serve-{}", context.options.model.id);
        let thread = std::thread::Builder::new()
            .name(name.chars().take(15).collect())
            .spawn(move || of_thread.run(listeners))
            .map_err(|e| failed("start a thread", e.into()))?;
        let running =
            Running { context, thread, listeners: copies, since_ns: self.since_ns, cpu_before };
        match hears.recv() {
            Ok(()) => Ok(running),
            Err(_) => Err(running.stop().failure.unwrap_or_else(|| "its thread ended".to_owned())),
        }
    }
}

/// Why nobody listens, and what would help.
fn cannot_listen(error: &tcp::SetupError) -> String {
    match error.errno {
        Errno::EADDRINUSE => format!(
            "{error}: another program listens there\n  choose another port, or 0 for a free one; \
             `ss -ltnp` shows who has it"
        ),
        Errno::EACCES => format!(
            "{error}: ports below net.ipv4.ip_unprivileged_port_start are root's\n  choose a \
             higher one"
        ),
        Errno::EADDRNOTAVAIL => format!(
            "{error}: no interface of this machine has that address\n  `ip address` shows those \
             that there are; :PORT is 127.0.0.1"
        ),
        _ => error.to_string(),
    }
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.context.address
    }

    /// Waits until there is something to say, and says what.
    ///
    /// Errors: it cannot wait.
    pub fn wait(&self, interrupts: &Interrupts) -> Result<News, Errno> {
        let (ended, noticed) = (&self.context.ended, self.context.tallies.noticed());
        loop {
            let fds = [interrupts.as_fd(), ended.as_fd(), noticed.as_fd()];
            match poll::readable(&fds, u64::MAX) {
                Ok(_) if interrupts.came() => return Ok(News::Interrupted),
                Ok(ready) if ready[1] => return Ok(News::Ended),
                Ok(_) if noticed.take() => return Ok(News::Mishaps),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// What its threads and processes have counted so far, each.
    pub fn tasks(&self) -> Vec<TaskCounts> {
        self.context.tallies.tasks()
    }

    /// How many of them answered requests at once so far, at most; those that have ended as
    /// well.
    pub fn tasks_at_once(&self) -> u64 {
        self.context.tallies.served().1
    }

    /// What went wrong so far.
    pub fn mishaps(&self) -> Vec<(Mishap, u64)> {
        self.context.tallies.mishaps()
    }

    /// Why it has ended by itself; `None` while it goes on.
    pub fn failure(&self) -> Option<String> {
        self.context.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it: nobody listens, requests under way are answered or cut off, all
    /// connections are closed, and no thread and no child is left.
    pub fn stop(self) -> Served {
        let Running { context, thread, listeners, since_ns, cpu_before } = self;
        context.end();
        for listener in &listeners {
            // Wakes who waits for a connection, in every process.
            let _ = tcp::hang_up(listener.as_fd());
        }
        if thread.join().is_err() {
            context.fail("its thread panicked".to_owned());
        }
        let cpu_after = usage::process_cpu_with_children().ok();
        let cpu = cpu_before.zip(cpu_after).map(|(before, after)| Cpu {
            user: Nanos(after.user_ns.saturating_sub(before.user_ns)),
            system: Nanos(after.system_ns.saturating_sub(before.system_ns)),
        });
        let tasks = context.tallies.tasks();
        let (served, at_once) = context.tallies.served();
        let failure = context.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        Served {
            model: context.options.model.id.to_owned(),
            service: context.options.service.text().to_owned(),
            address: context.address.to_string(),
            time: Nanos(clock::monotonic_ns() - since_ns),
            connections: tasks.iter().map(|task| task.connections).sum(),
            requests: tasks.iter().map(|task| task.requests).sum(),
            mishaps: context.tallies.mishaps(),
            requests_by_task: tasks.iter().map(|t| t.requests).filter(|&n| n > 0).collect(),
            tasks: served,
            tasks_at_once: at_once,
            cpu,
            failure,
        }
    }
}

impl Context {
    /// Errors: what it needs and was refused.
    fn of(
        options: ServeOptions,
        address: SocketAddr,
        begun: SyncSender<()>,
    ) -> Result<Context, String> {
        Ok(Context {
            tallies: Tallies::new().map_err(cannot("get memory for counts"))?,
            options,
            address,
            live: Live::default(),
            reserve: Arc::new(Reserve::new()),
            stop: Event::new().map_err(cannot("make an eventfd"))?,
            ended: Event::new().map_err(cannot("make an eventfd"))?,
            begun: Mutex::new(Some(begun)),
            failure: Mutex::new(None),
        })
    }

    /// Runs the model to its end.
    fn run(self: &Arc<Context>, listeners: Vec<OwnedFd>) {
        let pinned = match &self.options.cpus {
            Some(cpus) => affinity::restrict_thread(cpus)
                .map_err(|e| format!("cannot run on these processors: {e}")),
            None => Ok(()),
        };
        let result = pinned.and_then(|()| (self.options.model.run)(self, listeners));
        if let Err(why) = result {
            self.fail(why);
        }
        self.ended.set();
        // Who still waits to hear that it has begun hears that it has not.
        self.begin_sender();
    }

    /// Everything is there that the model needs: from now on it serves.
    fn begun(&self) {
        if let Some(begun) = self.begin_sender() {
            let _ = begun.send(());
        }
    }

    fn begin_sender(&self) -> Option<SyncSender<()>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Why the model cannot go on.
    fn fail(&self, why: String) {
        self.end();
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(why);
    }

    /// Has everybody end.
    fn end(&self) {
        self.tallies.stop();
        self.stop.set();
        self.live.end();
    }

    fn is_stopping(&self) -> bool {
        self.tallies.is_stopping()
    }

    /// What a thread or process serves with.
    ///
    /// Errors: what the service needs and was refused, or there are too many.
    fn hands(&self) -> Result<Hands, String> {
        let tally = self.tallies.take().ok_or("there are too many threads or processes")?;
        let service = self.options.service.make(&self.tallies)?;
        Ok(self.hands_of(service, tally))
    }

    fn hands_of(&self, service: Box<dyn services::Service>, tally: Tally) -> Hands {
        tally.set_task(process::thread_id());
        Hands {
            received: vec![0; RECEIVE_BYTES],
            answers: Answers::new(service, tally, self.options.close),
        }
    }
}

/// Names what a model was about to do.
fn cannot(what: &str) -> impl Fn(Errno) -> String {
    move |errno| format!("cannot {what}: {errno}")
}

/// Whether sockets wait, for an entry.
const BLOCKING: Waiting = Waiting::Blocking;
const NEVER: Waiting = Waiting::Never;
